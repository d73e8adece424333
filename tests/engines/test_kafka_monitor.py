"""A monitor finds what one bank a partition finds, goes on where it was, and hands partitions over."""

import contextlib
import ctypes
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from kafka_broker import SETTINGS, consumed, produce, step_until

import fourrates as fr
from fourrates.engines.kafka import Folder, Monitor, reader
from fourrates.engines.kafka.reader import Reader
from fourrates.engines.kafka.source import Source
from fourrates.engines.kafka.store import Fenced, Partition
from fourrates.io import Columns, InputError

confluent_kafka = pytest.importorskip("confluent_kafka")
SIZE, ARL = 4_000, 20_000.0


def events(seed=0, keys=4):
    """Records of several streams; the first goes wrong half-way."""
    random = np.random.default_rng(seed)
    key = random.integers(0, keys, SIZE)
    truth = random.random(SIZE) < 0.5
    broken = (key == 0) & (np.arange(SIZE) > SIZE // 2)
    pred = truth ^ (random.random(SIZE) < np.where(broken, 0.6, 0.05))
    columns = zip(key.tolist(), truth.tolist(), pred.tolist(), strict=True)
    return [{"model": f"m{k}", "y_true": int(t), "y_pred": int(g)} for k, t, g in columns]


def banked(records):
    """The bank that nothing happened to, and its findings but shifts."""
    bank = fr.Bank(arl=ARL)
    bank.update(*([one[name] for one in records] for name in ("model", "y_true", "y_pred")))
    return bank, [one for one in bank.findings if one.finding.kind != "shift"]


def watched(records):
    """The watch of a partition that nothing happened to."""
    watch = fr.Watch(fr.FourRates(ARL), by="model")
    watch.update({name: [one[name] for one in records] for name in ("model", "y_true", "y_pred")})
    return watch


def states(bank):
    """Each stream of a bank, or of the watch of a partition, by its name."""
    streams = bank.watch.segments if isinstance(bank, Partition) else bank
    detectors = {name: streams[name] for name in streams}
    return {
        name: repr((one.events, one.rates, one.open, one.evidence, one.warning_since))
        for name, one in detectors.items()
    }


def url(broker, topic, more=""):
    return f"kafka://{broker.address}/{topic}?group=g-{topic}&{SETTINGS}{more}"


def saved(state, topic, partition=0):
    content = Folder(state).claim(f"g-{topic}/{topic}/{partition}").content
    return None if content is None else Partition.from_bytes(content)


def test_the_findings_are_those_of_a_bank_and_are_produced_with_their_ids(broker, topic, tmp_path):
    records, found = events(), []
    produce(broker, topic, records)
    bank, wanted = banked(records)
    with Monitor(
        url(broker, topic, f"&drifts={topic}-d"), arl=ARL, by="model", state=tmp_path, found=found.append
    ) as one:
        step_until(one, lambda: one.events >= SIZE)
    assert [(one["kind"], one["stream"], one["at"], one["row"]) for one in found] == [
        (one.finding.kind, one.key, one.finding.at, one.event) for one in wanted
    ]
    assert {one["kind"] for one in found} >= {"drift", "confirmation"}
    assert one.drifts == sum(one["kind"] == "drift" for one in found)
    produced = consumed(broker, f"{topic}-d", len(wanted))
    assert sorted(json.loads(one.value())["id"] for one in produced) == sorted(one["id"] for one in found)
    assert states(saved(tmp_path, topic)) == states(bank)


def test_it_goes_on_from_what_was_saved_and_counts_nothing_twice(broker, topic, tmp_path):
    records = events(1)
    bank, wanted = banked(records)
    found = []
    for part in (slice(0, 1_500), slice(1_500, 1_501), slice(1_501, SIZE)):
        produce(broker, topic, records[part])
        with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, found=found.append) as one:
            step_until(one, lambda one=one, part=part: one.events >= len(records[part]))
    assert states(saved(tmp_path, topic)) == states(bank)
    assert len({one["id"] for one in found}) == len(found) == len(wanted)


def test_a_recovery_is_found_also_if_the_drift_was_before_a_restart(broker, topic, tmp_path):
    random, found = np.random.default_rng(5), []
    for share, size in ((0.05, 2_000), (0.6, 400), (0.05, 2_000)):
        truth = random.random(size) < 0.5
        pred = truth ^ (random.random(size) < np.where(truth, share, 0.05))
        rows = zip(truth.tolist(), pred.tolist(), strict=True)
        produce(broker, topic, [{"model": "m", "y_true": int(t), "y_pred": int(g)} for t, g in rows])
        with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, found=found.append) as one:
            step_until(one, lambda one=one, size=size: one.events >= size)
    assert [one["kind"] for one in found] == ["drift", "confirmation", "recovery"]
    assert (found[-1]["drift"], found[-1]["closes"]) == (found[0]["at"], True)
    assert saved(tmp_path, topic).watch.now().open == ()


def test_what_has_come_meanwhile_is_taken_without_waiting_for_more(broker, topic):
    records = events(2)
    produce(broker, topic, records[:100])
    with Monitor(url(broker, topic), arl=ARL, by="model") as one:
        step_until(one, lambda: one.events >= 100)
        produce(broker, topic, records[100:200])
        time.sleep(3)  # the client library fetches them
        began = time.monotonic()
        assert one.step(60) > 0
        assert time.monotonic() - began < 50


DIES = """
import json, os, sys
from fourrates.engines.kafka import Monitor
url, state, arl, size = sys.argv[1:]
found = []
monitor = Monitor(url, arl=float(arl), by="model", state=state, found=found.append, save_every=1e9)
while monitor.events < int(size):
    monitor.step(0.1)
print(json.dumps(found), flush=True)
os._exit(9)
"""


def test_what_was_not_saved_is_read_again_and_found_under_the_same_id(broker, topic, tmp_path):
    produce(broker, topic, events(2))
    words = [sys.executable, "-c", DIES, url(broker, topic), str(tmp_path), str(ARL), str(SIZE)]
    died = subprocess.run(words, capture_output=True, text=True, timeout=180)
    assert died.returncode == 9, died.stderr
    assert saved(tmp_path, topic) is None
    again = []
    with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, found=again.append) as second:
        step_until(second, lambda: second.events >= SIZE)
    assert again
    assert json.loads(json.dumps(again)) == json.loads(died.stdout)
    assert saved(tmp_path, topic).next == SIZE


def group_offset(broker, topic, partition=0):
    """How far the group was told that a partition was taken; negative if it was not told."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": f"g-{topic}", "log_level": 0})
    (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, partition)], timeout=30)
    consumer.close()
    return found.offset


def test_the_group_is_told_of_what_a_member_saved_before_it_died(broker, topic, tmp_path):
    records = events(4)
    produce(broker, topic, records)
    folder = Folder(tmp_path)
    folder.save(folder.claim(f"g-{topic}/{topic}/0"), Partition(watched(records), SIZE).to_bytes())
    with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path) as one:
        step_until(one, lambda: group_offset(broker, topic) == SIZE)
        assert one.events == 0


def test_the_group_is_told_of_what_a_member_saves_while_it_goes_on(broker, topic, tmp_path):
    produce(broker, topic, events(5))
    with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, save_every=0.1) as one:
        step_until(one, lambda: one.events >= SIZE)
        step_until(one, lambda: group_offset(broker, topic) == SIZE)


def mock_that_refuses_offsets(errors):
    """The address of a mock cluster in this process, and a call after which it refuses offsets with these errors."""
    (path, *_) = [*Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*"), None]
    if path is None:
        pytest.skip("the client library is not beside the package")
    library, text, size = ctypes.CDLL(str(path)), ctypes.create_string_buffer(512), ctypes.c_size_t
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_handle_mock_cluster"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    config = ctypes.c_void_p(library.rd_kafka_conf_new())
    for name, value in ((b"test.mock.num.brokers", b"1"), (b"log_level", b"0")):
        library.rd_kafka_conf_set(config, name, value, text, size(512))
    cluster = ctypes.c_void_p(
        library.rd_kafka_handle_mock_cluster(ctypes.c_void_p(library.rd_kafka_new(0, config, text, size(512))))
    )
    codes = [ctypes.c_int(error) for error in errors]
    offset_commit = ctypes.c_int16(8)
    return library.rd_kafka_mock_cluster_bootstraps(
        cluster
    ).decode(), lambda: library.rd_kafka_mock_push_request_errors(cluster, offset_commit, size(len(codes)), *codes)


def test_the_group_is_told_again_what_it_did_not_hear():
    address, refuse = mock_that_refuses_offsets([27] * 3)  # as in a rebalance
    broker = SimpleNamespace(address=address)
    produce(broker, "again", events(5)[:10])
    source = Source(url(broker, "again"), Reader(fr.labels.Labels([0, 1]), Columns(by="model")))
    with contextlib.closing(source):
        end = time.monotonic() + 60
        while not sum(len(chunk) for chunk in source.take(0.2)) and time.monotonic() < end:
            pass
        refuse()
        source.commit({0: 10})
        while group_offset(broker, "again") != 10 and time.monotonic() < end:
            [*source.take(0.2)]
        assert group_offset(broker, "again") == 10


def test_the_group_is_not_told_of_partitions_that_are_not_this_members(broker, topic):
    produce(broker, topic, events(6)[:10])
    with contextlib.closing(Source(url(broker, topic), Reader(fr.labels.Labels([0, 1]), Columns(by="model")))) as one:
        one.commit({0: 7})
        end = time.monotonic() + 60
        while not (taken := sum(len(chunk) for chunk in one.take(0.2))) and time.monotonic() < end:
            pass
        assert taken == 10
        [*one.take(0.5)]
        assert group_offset(broker, topic) < 0
        one.commit({0: 10})
        while group_offset(broker, topic) != 10 and time.monotonic() < end:
            [*one.take(0.2)]
        assert group_offset(broker, topic) == 10


def test_a_second_member_takes_over_partitions_with_their_state(broker, topic, tmp_path):
    parts = {partition: events(10 + partition) for partition in range(4)}
    half = SIZE // 2
    for partition, records in parts.items():
        produce(broker, topic, records[:half], partition)
    with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path) as first:
        step_until(first, lambda: first.events >= 4 * half)
        with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path) as second:
            step_until(second, lambda: first.step(0.1) + 1 and len(second.partitions) == 2)
            assert sorted([*first.partitions, *second.partitions]) == [0, 1, 2, 3]
            for partition, records in parts.items():
                produce(broker, topic, records[half:], partition)
            step_until(second, lambda: first.step(0.1) + 1 and first.events + second.events >= 4 * SIZE)
    for partition, records in parts.items():
        assert states(saved(tmp_path, topic, partition)) == states(banked(records)[0])


def test_a_drift_that_could_not_be_told_is_found_again_and_no_event_is_counted_twice(broker, topic, tmp_path):
    records, told = events(4), []
    produce(broker, topic, records)
    bank, wanted = banked(records)

    def fails(_):
        raise BrokenPipeError("nobody listens")

    with (
        pytest.raises(BrokenPipeError),
        Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, found=fails) as one,
    ):
        step_until(one, lambda: one.events >= SIZE)
    with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, found=told.append) as second:
        step_until(second, lambda: second.events >= SIZE)
    assert [(one["stream"], one["at"]) for one in told] == [(one.key, one.finding.at) for one in wanted]
    assert states(saved(tmp_path, topic)) == states(bank)


def as_arrow(records, size=50):
    """Messages with this number of events each."""
    for i in range(0, len(records), size):
        table, sink = pa.Table.from_pylist(records[i : i + size]), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue().to_pybytes()


def test_partitions_taken_while_others_are_read_end_as_if_taken_one_by_one(broker, topic, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "JOINED", 200)
    records, told, fails = [events(seed) for seed in (5, 6)], [], [0, 1]
    for partition, part in enumerate(records):
        produce(broker, topic, as_arrow(part), partition)

    def tell(record):
        if len(told) in fails:
            fails.remove(len(told))
            raise BrokenPipeError("nobody listens")
        told.append((record["source"], record["stream"], record["at"]))

    for _ in range(3):  # two of them end while other chunks are under way
        with (
            contextlib.suppress(BrokenPipeError),
            Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path, found=tell, save_every=0) as one,
        ):
            kept = [saved(tmp_path, topic, partition) for partition in (0, 1)]
            left = 2 * SIZE - sum(state.watch.events for state in kept if state)
            step_until(one, lambda one=one, left=left: one.events >= left)
    assert not fails
    wanted = []
    for partition, part in enumerate(records):
        bank, findings = banked(part)
        assert states(saved(tmp_path, topic, partition)) == states(bank)
        wanted += [(f"{topic}/{partition}", one.key, one.finding.at) for one in findings]
    assert set(told) == set(wanted)


def test_what_cannot_be_an_event_goes_to_the_dead_letters_with_its_problem(broker, topic, tmp_path):
    good = {"model": "a", "y_true": 1, "y_pred": 1}
    bad = [b"not json", {"model": "a", "y_true": 2, "y_pred": 1}, {"model": None, "y_true": 1, "y_pred": 1}, {"x": 1}]
    produce(broker, topic, [good, bad[0], good, *bad[1:], good])
    refused = []
    with Monitor(
        url(broker, topic, f"&dead_letter={topic}-x"),
        arl=ARL,
        by="model",
        state=tmp_path,
        refuse=lambda source, one: refused.append((source, one.offset)),
    ) as one:
        step_until(one, lambda: one.events >= 3 and one.rejected >= 4)
    letters = sorted(consumed(broker, f"{topic}-x", 4), key=lambda letter: dict(letter.headers())["offset"])
    assert refused == [(f"{topic}/0", offset) for offset in (1, 3, 4, 5)]
    assert [dict(letter.headers())["offset"] for letter in letters] == [b"1", b"3", b"4", b"5"]
    assert letters[0].value() == b"not json"
    assert all(dict(letter.headers())["problem"] for letter in letters)
    assert "2" in dict(letters[1].headers())["problem"].decode()
    assert saved(tmp_path, topic).watch.events == 3


def test_bad_messages_are_only_counted_or_end_the_monitor_if_that_is_asked_for(broker, topic):
    good = {"y_true": 1, "y_pred": 1}
    produce(broker, topic, [good, {"y_true": 2, "y_pred": 1}, {"y_true": None, "y_pred": 1}, good])
    named = []
    with Monitor(url(broker, topic), arl=ARL, bad="skip", refuse=lambda *one: named.append(one)) as one:
        step_until(one, lambda: one.events >= 2)
    assert (one.rejected, one.unlabelled, named) == (1, 1, [])
    ends = Monitor(url(broker, f"{topic}").replace("group=g", "group=h"), arl=ARL, bad="reject")
    with pytest.raises(InputError, match=r"offset 1: 2 in column 'y_true' is not one of the labels 0, 1"):
        step_until(ends, lambda: ends.events >= 2)


def test_the_unit_of_times_is_saved_with_a_partition(broker, topic, tmp_path):
    first, stray = 1_700_000_000, 1_700_000_001_000
    rejected = []
    for time_ in (first, stray, first + 2):
        produce(broker, topic, [{"y_true": 1, "y_pred": 1, "at": time_}])
        with Monitor(
            url(broker, topic), arl=ARL, time="at", state=tmp_path, refuse=lambda _, one: rejected.append(one.problem)
        ) as one:
            step_until(one, lambda one=one: one.events + one.rejected >= 1)
    state = saved(tmp_path, topic)
    assert (state.clock.unit, state.watch.events) == ("s", 2)
    assert len(rejected) == 1
    assert f"offset 1: {stray} in column 'at' is not a time" in rejected[0]


def test_a_state_of_other_settings_is_refused_and_both_are_named(broker, topic, tmp_path):
    produce(broker, topic, events()[:10])
    with Monitor(url(broker, topic), arl=ARL, by="model", state=tmp_path) as one:
        step_until(one, lambda: one.events >= 10)
    other = Monitor(url(broker, topic), arl=2 * ARL, by="model", state=tmp_path)
    with pytest.raises(InputError, match=r"resumes with FourRates\(arl=20000.0.*not with FourRates\(arl=40000.0"):
        step_until(other, lambda: other.events >= 10)


def test_whoever_claimed_earlier_can_no_longer_save(tmp_path):
    store = Folder(tmp_path)
    first = store.claim("a/b")
    store.save(first, b"one")
    second = store.claim("a/b")
    assert (second.content, second.number) == (b"one", 2)
    with pytest.raises(Fenced):
        store.save(first, b"stale")
    store.save(second, b"two")
    assert store.claim("a/b").content == b"two"
    assert store.claim("other").content is None


def test_a_damaged_state_is_refused_not_believed(tmp_path):
    whole = Partition(watched(events()[:500]), next=500).to_bytes()
    assert Partition.from_bytes(whole).next == 500
    random = np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= 1 << random.integers(8)
        with pytest.raises(ValueError, match=r".+"):
            Partition.from_bytes(bytes(damaged))
    for length in range(0, len(whole), 97):
        with pytest.raises(ValueError, match=r".+"):
            Partition.from_bytes(whole[:length])


def test_watch_writes_the_drifts_of_a_topic_and_ends_when_it_is_asked_to(broker, topic, tmp_path):
    records = events(3)
    produce(broker, topic, records)
    words = [
        "watch",
        url(broker, topic),
        "--by",
        "model",
        "--budget",
        str(ARL),
        "--json",
        "--state",
        str(tmp_path / "s"),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "fourrates", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    _, wanted = banked(records)
    assert (json.loads(line)["stream"], json.loads(line)["at"]) == (wanted[0].key, wanted[0].finding.at)
    assert saved(tmp_path / "s", topic) is not None

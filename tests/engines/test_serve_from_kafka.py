"""A topic as a source of the monitor service: each event is taken exactly once, whenever the server dies."""

import json
import re
import sqlite3
import threading
import time

import numpy as np
import pytest
from kafka_broker import SETTINGS, consumed, produce, started

pytest.importorskip("starlette")
from servers import Client, Postgres, Server, postgres_programs

from fourrates.io import InputError
from fourrates.serve.batch import EVENTS
from fourrates.serve.bodies import Plan
from fourrates.serve.config import MonitorConfig
from fourrates.serve.feed import Topic, parse_topics
from fourrates.serve.messages import BatchReader
from fourrates.serve.store.sqlite import SQLite

PATIENCE = 180.0  # seconds; the group waits 4 s for a member that was killed
FRAUD = {"arl": 20_000, "by": ["country"]}


def url(broker, topic, more=""):
    return f"kafka://{broker.address}/{topic}?monitor=fraud&group=g-{topic}&{SETTINGS}{more}"


def events(size, seed=0, wrong=0.05):
    random = np.random.default_rng(seed)
    truth = random.random(size) < 0.5
    pred = truth ^ (random.random(size) < wrong)
    countries = np.array(["FR", "NO", "DE"])[random.integers(0, 3, size)]
    columns = zip(truth.tolist(), pred.tolist(), countries.tolist(), strict=True)
    return [{"y_true": int(t), "y_pred": int(g), "country": c} for t, g, c in columns]


def get(server, path="/api/monitors/fraud"):
    with Client(server.port) as client:
        status, found = client.call("GET", path)
    assert status == 200, found
    return found


def put(server, config=FRAUD):
    with Client(server.port) as client:
        assert client.call("PUT", "/api/monitors/fraud", config)[0] in (200, 201)


def wait_until(server, done, path="/api/monitors/fraud"):
    end = time.monotonic() + PATIENCE
    while not done(found := get(server, path)) and time.monotonic() < end:
        time.sleep(0.1)
    assert done(found), (found, server.data.with_suffix(".log").read_text()[-2000:])
    return found


def stop_cleanly(server):
    """Ask it to end, and see that it came to its last step, where the database is closed."""
    server.stop()
    assert not (server.data / "fourrates.db-wal").exists()
    assert "Traceback" not in server.data.with_suffix(".log").read_text()


def confusion(records):
    table = [[0, 0], [0, 0]]
    for one in records:
        table[one["y_true"]][one["y_pred"]] += 1
    return table


def test_events_of_a_topic_are_watched_and_a_drift_in_them_is_found(broker, topic, tmp_path):
    records = events(4_000) + events(2_000, seed=1, wrong=0.5)
    produce(broker, topic, records)
    with Server(tmp_path / "data", "--from", url(broker, topic)) as server:
        put(server)
        found = wait_until(server, lambda one: one["events"] >= 6_000)
        assert (found["events"], found["segments"]) == (6_000, 3)
        assert found["drifts"] >= 1
        stop_cleanly(server)


def test_a_server_killed_at_any_moment_takes_each_event_exactly_once(broker, topic, tmp_path):
    parts = {partition: events(30_000, seed=partition) for partition in range(4)}
    written, enough = [0], threading.Event()  # messages in each partition

    def write():
        while not enough.is_set() and written[0] < 30_000:
            for partition, records in parts.items():
                produce(broker, topic, records[written[0] : written[0] + 50], partition)
            written[0] += 50
            time.sleep(0.1)

    producer = threading.Thread(target=write)
    server = Server(tmp_path / "data", "--from", url(broker, topic), snapshot_bytes=3_000)
    server.start()
    put(server, {**FRAUD, "arl": 1e9})
    producer.start()
    random, before, progress = np.random.default_rng(3), 0, 0
    for number in range(4):
        wait_until(server, lambda one, before=before: one["events"] > before)
        time.sleep(random.uniform(0, 0.6))
        server.kill()
        # Every other time it dies right after a commit, before anybody is told: the worst moment there is.
        server.start(wait=number % 2 == 0, **({} if number % 2 == 0 else {"FOURRATES_FAILPOINT": "committed:2"}))
        if number % 2:
            assert server.process.wait(PATIENCE) == -9
            server.start()
        now = get(server)["events"]
        progress += now > before
        before = now
    enough.set()
    producer.join()
    size = 4 * written[0]
    wait_until(server, lambda one: one["events"] >= size)
    time.sleep(1)  # what is taken twice would come now
    found = get(server)
    stop_cleanly(server)
    assert progress >= 3  # it did work between the kills
    assert found["events"] == size
    assert found["counts"]["rejected"] == 0
    assert found["confusion"] == confusion([one for records in parts.values() for one in records[: written[0]]])
    with sqlite3.connect(tmp_path / "data" / "fourrates.db") as saved:
        positions = saved.execute("SELECT source, part, next FROM sources ORDER BY part").fetchall()
    assert positions == [(f"g-{topic}/{topic}", partition, written[0]) for partition in range(4)]


@pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed")
def test_a_database_that_goes_away_loses_nothing_and_repeats_nothing(broker, topic, tmp_path):
    records = events(3_000)
    with (
        Postgres() as postgres,
        Server(tmp_path / "data", "--from", url(broker, topic), "--database", postgres.url) as server,
    ):
        put(server)
        produce(broker, topic, records[:1_000])
        wait_until(server, lambda one: one["events"] >= 1_000)
        postgres.kill()
        produce(broker, topic, records[1_000:2_000])
        time.sleep(1.5)
        postgres.start()
        produce(broker, topic, records[2_000:])
        wait_until(server, lambda one: one["events"] >= 3_000)
        server.kill()
        server.start()
        time.sleep(6)  # longer than the group waits for the member that was killed
        assert get(server)["events"] == 3_000


def test_bad_messages_are_listed_with_their_place_and_go_to_the_dead_letters(broker, topic, tmp_path):
    good = {"y_true": 1, "y_pred": 1, "country": "FR"}
    columns = {"y_true": [1, 7, 0], "y_pred": [1, 1, 0], "country": ["FR", "NO", "DE"]}
    bad = [b"not json", {**good, "y_true": 2}, {"x": 1}, b"[1]"]
    produce(broker, topic, [good, bad[0], good, *bad[1:], columns, good])
    with Server(tmp_path / "data", "--from", url(broker, topic, f"&dead_letter={topic}-x")) as server:
        put(server)
        found = wait_until(server, lambda one: one["events"] >= 5)
        assert (found["events"], found["counts"]["rejected"]) == (5, 5)
        listed = get(server, "/api/monitors/fraud/rejected")["rejected"]
    places = sorted(re.match(rf"{topic}/0, offset (\d): ", one["problem"])[1] for one in listed)
    assert places == ["1", "3", "4", "5", "6"]
    letters = sorted(consumed(broker, f"{topic}-x", 5), key=lambda letter: dict(letter.headers())["offset"])
    assert [dict(letter.headers())["offset"] for letter in letters] == [b"1", b"3", b"4", b"5", b"6"]
    assert letters[0].value() == b"not json"
    assert json.loads(letters[4].value()) == {"y_true": [7], "y_pred": [1], "by": {"country": ["NO"]}}
    assert b"2" in dict(letters[1].headers())["problem"]


def test_a_topic_waits_for_its_monitor_and_begins_again_with_a_new_one(broker, topic, tmp_path):
    produce(broker, topic, events(300))
    with Server(tmp_path / "data", "--from", url(broker, topic)) as server:
        end, log = time.monotonic() + PATIENCE, server.data.with_suffix(".log")
        while "waiting for monitor 'fraud'" not in log.read_text() and time.monotonic() < end:
            time.sleep(0.1)
        assert "waiting for monitor 'fraud'" in log.read_text()
        for _ in range(2):
            put(server)
            wait_until(server, lambda one: one["events"] >= 300)
            with Client(server.port) as client:
                assert client.call("DELETE", "/api/monitors/fraud")[0] in (200, 204)
            time.sleep(1)  # it leaves the group


def test_predictions_and_labels_of_two_topics_meet_by_their_ids(broker, topic, tmp_path):
    records = events(500)
    scored = [{"id": f"e{i}", "y_pred": one["y_pred"], "country": one["country"]} for i, one in enumerate(records)]
    labels = [{"id": f"e{i}", "y_true": one["y_true"]} for i, one in enumerate(records)]
    produce(broker, f"{topic}-p", scored)
    produce(broker, f"{topic}-l", labels)
    sources = [url(broker, f"{topic}-p", "&kind=predictions"), url(broker, f"{topic}-l", "&kind=labels")]
    with Server(tmp_path / "data", "--from", sources[0], "--from", sources[1]) as server:
        put(server)
        found = wait_until(server, lambda one: one["events"] >= 500)
        assert found["confusion"] == confusion(records)


def test_messages_with_more_segments_than_there_may_be_are_set_aside_one_by_one(broker, topic, tmp_path):
    from served import Served

    from fourrates.serve.app import Service
    from fourrates.serve.settings import Settings

    good = events(20)
    rest = [{**one, "country": f"X{i}"} for i, one in enumerate(events(5, seed=1))]
    produce(broker, topic, [*good[:10], *rest, *good[10:]])
    app = Service(Settings(data=tmp_path / "data", max_segments=3, topics=(url(broker, topic),)))
    with Served(app) as served:
        put(served)
        end = time.monotonic() + PATIENCE
        while get(served)["events"] < 20 and time.monotonic() < end:
            time.sleep(0.1)
        found = get(served)
    assert (found["events"], found["counts"]["rejected"], found["segments"]) == (20, 5, 3)


def test_a_broker_that_is_away_keeps_nobody_waiting(tmp_path):
    broker = started()
    produce(broker, "away", events(10))
    with Server(tmp_path / "data", "--from", url(broker, "away")) as server:
        put(server)
        wait_until(server, lambda one: one["events"] >= 10)
        broker.close()
        time.sleep(3)
        assert get(server, "/api/monitors")["monitors"]
        refused = [line for line in server.data.with_suffix(".log").read_text().splitlines() if "refused" in line]
        assert len(refused) in range(1, 10)  # a minute's worth of a few kinds, not one for each attempt
        began = time.monotonic()
        stop_cleanly(server)
        assert time.monotonic() - began < 45  # the client library waits a minute for an answer


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("kafka://b:9/t", "names no monitor"),
        ("kafka://b:9/t?monitor=a/b", "cannot be the name"),
        ("kafka://b:9/t?monitor=a&kind=x", "none of events, predictions, labels"),
        ("kafka://b:9/t?monitor=a&drifts=d", "go to its alerts"),
        ("kafka://b:9/t?monitor=a&grop=x", "no setting 'grop'"),
        ("http://b:9/t?monitor=a", "is not written like"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_what_is_wrong(address, problem):
    with pytest.raises(InputError, match=re.escape(problem)):
        Topic.parse(address)


def test_two_monitors_cannot_share_a_group_on_a_topic():
    pytest.importorskip("confluent_kafka")
    one, two = "kafka://b:9/t?monitor=a", "kafka://b:9/t?monitor=b"
    assert [topic.name for topic in parse_topics([one, two])] == ["fourrates-a/t", "fourrates-b/t"]
    with pytest.raises(InputError, match="given twice in group g"):
        parse_topics([f"{one}&group=g", f"{two}&group=g"])


class Said:
    """A message as the client library has it."""

    def __init__(self, offset, value, stamp=(1, 1_600_000_000_000)):
        self._offset, self._value, self._stamp = offset, value, stamp

    def offset(self):
        return self._offset

    def value(self):
        return self._value

    def key(self):
        return None

    def timestamp(self):
        return self._stamp


def test_what_a_message_means_does_not_depend_on_its_neighbours():
    pa = pytest.importorskip("pyarrow")
    random, sink = np.random.default_rng(8), pa.BufferOutputStream()
    table = pa.table({"y_true": [1, 0, 9], "y_pred": [0, 0, 1], "id": ["x", "y", "z"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    values = [
        sink.getvalue().to_pybytes(),
        b'{"y_true": 1, "y_pred": 0}',
        b'{"truth": 1, "pred": 1, "id": "a"}',
        b'{"y_true": 1, "score": 0.7}',
        b'{"y_true": 1, "y_pred": null}',
        b'{"y_true": [1, 0, 5], "y_pred": [1, 1, 1]}',
        b'{"y_true": [1], "y_pred": 3}',
        b'{"y_true": 0, "y_pred": 0, "time": "2024-01-01T00:00:00Z"}',
        b'{"y_true": 0, "y_pred": 0, "time": "soon"}',
        b'{"y_true": {}, "y_pred": "x"}',
        b"\xff\xff\xff\xff damaged",
        b"",
        None,
        b"null",
    ]
    messages = [Said(i, values[random.integers(len(values))]) for i in range(400)]
    reader = BatchReader(EVENTS, lambda: Plan(MonitorConfig()), 1_000)

    def flat(portions):
        rows, aside, letters = [], [], []
        for one in portions:
            batch = one.batch
            times = np.broadcast_to(batch.time_column(), batch.size).tolist()
            ids = batch.listed_ids() if batch.ids else [None] * batch.size
            rows += zip(batch.truths, batch.preds, ids, times, strict=True)
            aside += one.rejected
            letters += one.refused
        return rows, aside, letters

    together = flat(reader.read("t", 0, messages))
    apart = flat(portion for message in messages for portion in reader.read("t", 0, [message]))
    assert together == apart
    assert {(1, 0, "x", 1.6e9), (1, 1, "a", 1.6e9), (1, 1, None, 1.6e9)} <= {*together[0]}
    assert not any(row[2] == "z" for row in together[0])
    assert {one.problem.partition(": ")[0] for one in together[1]} <= {f"t/0, offset {i}" for i in range(400)}
    stamped = [when for *_, when in together[0]]
    assert set(stamped) == {1.6e9, 1_704_067_200.0}


def test_the_place_in_a_topic_is_kept_and_goes_with_its_monitor(tmp_path):
    from fourrates.serve.store import base

    store = SQLite(tmp_path / "fourrates.db")
    monitor = store.add_monitor("fraud", "u", b"k" * 16).id
    assert store.next_of_source(monitor, "g/t", 0) is None
    store.commit(base.Group(sources=[base.SourceRow(monitor, "g/t", 0, number) for number in (5, 9)]))
    assert store.next_of_source(monitor, "g/t", 0) == 9
    store.remove_monitor(monitor)
    assert store.next_of_source(monitor, "g/t", 0) is None
    store.close()

"""From messages to events, and what is rejected and why. No broker is needed for that."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from fourrates.engines.kafka import Address, reader
from fourrates.engines.kafka.reader import Reader
from fourrates.events.clock import Clock
from fourrates.io import Columns, InputError
from fourrates.labels import Labels


class Message:
    def __init__(self, offset, value, key=None, time=None):
        self.content = offset, json.dumps(value).encode() if isinstance(value, dict) else value, key, time

    def offset(self):
        return self.content[0]

    def value(self):
        return self.content[1]

    def key(self):
        return self.content[2]

    def timestamp(self):
        return (0, -1) if self.content[3] is None else (1, self.content[3])


def read(values, first=0, labels=(0, 1), **options):
    names = {name: options.pop(name) for name in ("truth", "pred", "score", "time", "by") if name in options}
    given = Reader(Labels(labels), Columns(**names), **options)
    return list(given.read("t", 0, as_messages(values, first)))


def as_messages(values, first=0):
    return [value if isinstance(value, Message) else Message(first + i, value) for i, value in enumerate(values)]


def pairs(chunks):
    return [
        pair for chunk in chunks for pair in zip(chunk.events.truths.tolist(), chunk.events.preds.tolist(), strict=True)
    ]


def problems(chunks):
    return [one.problem for chunk in chunks for one in chunk.rejected]


def keys(chunks):
    return [key for chunk in chunks for key in [chunk.names[key] for key in chunk.events.keys.tolist()]]


def arrow(**columns):
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


EVENT = {"y_true": 1, "y_pred": 0}


def test_one_event_a_message():
    chunks = read([EVENT, {"y_true": 0, "y_pred": 0, "more": [1, 2]}], first=5)
    assert pairs(chunks) == [(1, 0), (0, 0)]
    assert chunks[0].events.rows.tolist() == [5, 6]
    assert chunks[0].next == 7


def test_columns_in_json_and_in_arrow_are_the_same_events():
    columns = {"y_true": [0, 1, 1, 0, 1], "y_pred": [0, 0, 1, 0, 1], "key": ["a", "b", "a", "a", "c"]}
    as_json, as_arrow = read([columns], by="key"), read([arrow(**columns)], by="key")
    assert pairs(as_json) == pairs(as_arrow) == list(zip(columns["y_true"], columns["y_pred"], strict=True))
    assert keys(as_json) == keys(as_arrow) == columns["key"]
    assert as_json[0].events.rows.tolist() == as_arrow[0].events.rows.tolist() == [0] * 5


def test_keys_of_every_type_are_named_as_in_a_file():
    given = [pa.array(["7", "8", "7"]).dictionary_encode(), [7, 8, 7], ["7", "8", "7"]]
    for column in given:
        assert keys(read([arrow(y_true=[0, 1, 1], y_pred=[0, 1, 1], key=column)], by="key")) == ["7", "8", "7"]
    assert keys(read([{**EVENT, "key": 7}, {**EVENT, "key": "7"}], by="key")) == ["7", "7"]


def test_kinds_of_messages_may_take_turns_and_keep_their_order():
    columns = {"y_true": [0, 0], "y_pred": [1, 1]}
    chunks = read([EVENT, columns, EVENT, arrow(**columns), EVENT])
    assert pairs(chunks) == [(1, 0), (0, 1), (0, 1), (1, 0), (0, 1), (0, 1), (1, 0)]
    assert [chunk.next for chunk in chunks] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"junk", "neither JSON nor Arrow"),
        (b"", "neither JSON nor Arrow"),
        (None, "no value"),
        (b"[1, 2]", "list, not an object"),
        (b"\xff\xff\xff\xff" + b"x" * 50, "a damaged Arrow stream"),
        (arrow(y_true=[1], other=[1]), "no column 'y_pred'"),
        (arrow(y_true=[1], y_pred=[1]).replace(b"y_true", b"y_tru\xa6"), "a damaged Arrow stream"),
        ({"y_true": 1}, "no field 'y_pred'; there are 'y_true'"),
        ({"y_true": 2, "y_pred": 1}, "2 in column 'y_true' is not one of the labels 0, 1"),
        ({"y_true": 1, "y_pred": {}}, "{} in column 'y_pred' is not one of the labels"),
        ({"y_true": 1, "y_pred": None}, "the value in column 'y_pred' is missing"),
        (b'{"y_true": NaN, "y_pred": 1}', "neither JSON nor Arrow"),
        ({"y_true": [1, 0], "y_pred": [1]}, "columns of different lengths: y_true 2, y_pred 1"),
        ({"y_true": [1, 0], "y_pred": 1}, "1 in column 'y_pred' while other columns have lists"),
        (b'{"y_true": 1, "y_pred": 1}, {"y_true": 1, "y_pred": 1}', "neither JSON nor Arrow"),
        (b'{"a":' * 100_000, "neither JSON nor Arrow"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_offset_and_the_rest_is_taken(value, problem):
    chunks = read([EVENT, EVENT, value, EVENT], first=10)
    assert pairs(chunks) == [(1, 0)] * 3
    (told,) = problems(chunks)
    assert told.startswith("t/0, offset 12: ")
    assert problem in told
    (rejected,) = [one for chunk in chunks for one in chunk.rejected]
    assert rejected.value == (json.dumps(value).encode() if isinstance(value, dict) else value)
    assert chunks[-1].next == 14


@pytest.mark.parametrize(
    ("key", "problem"), [(None, "the value in column 'k' is missing"), ([1], "[1] in column 'k' cannot be a key")]
)
def test_keys_that_are_none(key, problem):
    chunks = read([{**EVENT, "k": "a"}, {**EVENT, "k": key}, {**EVENT, "k": 3}], by="k")
    assert keys(chunks) == ["a", "3"]
    assert problem in problems(chunks)[0]


def test_bad_events_of_a_message_with_many_are_rejected_and_the_others_read():
    columns = {"y_true": [0, 7, 1, 1], "y_pred": [0, 1, 1, None], "note": ["a", "b", "c", "d"], "one": 1}
    for value in (columns, arrow(y_true=columns["y_true"], y_pred=columns["y_pred"])):
        (chunk,) = read([value])
        assert pairs([chunk]) == [(0, 0), (1, 1)]
        (rejected,) = chunk.rejected
        assert rejected.events == 2
        assert "offset 0, event 2: 7 in column 'y_true'" in rejected.problem
        assert "(and 1 more events of it)" in rejected.problem
    kept = json.loads(read([columns])[0].rejected[0].value)
    assert kept == {"y_true": [7, 1], "y_pred": [1, None], "note": ["b", "d"]}
    again = pa.ipc.open_stream(rejected.value).read_all().to_pydict()
    assert again == {"y_true": [7, 1], "y_pred": [1, None]}


def test_a_damaged_field_that_nobody_reads_rejects_nothing():
    damaged = b'"note": "\xff"}'
    assert pairs(read([b'{"y_true": 1, "y_pred": 0, ' + damaged])) == [(1, 0)]
    value = b'{"y_true": [1, 7], "y_pred": [0, 1], ' + damaged
    (chunk,) = read([value])
    assert pairs([chunk]) == [(1, 0)]
    assert (chunk.rejected[0].value, chunk.rejected[0].events) == (value, 1)


@pytest.mark.parametrize("bad", ["keep", "skip"])
def test_an_event_without_a_true_label_is_no_bad_one_but_is_counted(bad):
    (chunk,) = read([EVENT, {"y_true": None, "y_pred": 1}, {"y_true": "NA", "y_pred": 1}], bad=bad)
    assert (chunk.unlabelled, chunk.rejected) == (2, [])
    assert pairs([chunk]) == [(1, 0)]


def test_the_first_bad_message_can_be_an_error():
    assert pairs(read([EVENT, {"y_true": None, "y_pred": 1}], bad="reject")) == [(1, 0)]
    with pytest.raises(InputError, match=r"^t/0, offset 1: 2 in column 'y_pred' is not one of the labels 0, 1$"):
        read([EVENT, {"y_true": 1, "y_pred": 2}, b"junk"], bad="reject")
    with pytest.raises(ValueError, match="bad 'refuse' is not one of"):
        read([], bad="refuse")


KILLS = """
import sys
class NoPandas:  # without it pyarrow ends the process over an interval that becomes an array
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
import pyarrow as pa
from fourrates.engines.kafka.reader import Reader
from fourrates.events.clock import Clock
from fourrates.labels import Labels
kinds = [pa.month_day_nano_interval(), pa.duration("s"), pa.time64("us"), pa.time32("s"), pa.binary(), pa.binary(2),
    pa.list_(pa.int8()), pa.list_view(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8()),
    pa.dictionary(pa.int8(), pa.binary()), pa.run_end_encoded(pa.int32(), pa.int8())]
columns = [pa.nulls(1, kind) for kind in kinds] + [pa.array([(1, 2, 3)], kinds[0])]
class Message:
    def __init__(self, at, value): self.at, self.content = at, value
    def offset(self): return self.at
    def value(self): return self.content
    def key(self): return None
messages = []
for column in columns:
    for name, other in (("y_true", "y_pred"), ("y_pred", "y_true")):
        table, sink = pa.table({name: column, other: [1]}), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        messages.append(Message(len(messages), sink.getvalue().to_pybytes()))
for chunk in Reader(Labels([0, 1])).read("t", 0, messages):
    for rejected in chunk.rejected:
        print(rejected.problem)
"""


def test_a_column_of_any_other_type_is_a_rejected_message_not_the_end_of_the_process():
    ended = subprocess.run([sys.executable, "-c", KILLS], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    told = ended.stdout.splitlines()
    assert len(told) == 26
    assert "t/0, offset 0: column 'y_true' is of type month_day_nano_interval" in told[0]
    assert all(": column 'y_" in one for one in told)


def test_the_key_and_the_time_of_the_message_itself():
    messages = [Message(0, EVENT, b"fraud", 1_700_000_000_000), Message(1, EVENT, None), Message(2, EVENT, b"spam")]
    (chunk,) = read(messages, by="_key", time="_time")
    assert keys([chunk]) == ["fraud", "spam"]
    assert str(chunk.events.times[0]) == "2023-11-14T22:13:20.000000"
    assert np.isnat(chunk.events.times[1])
    assert "'_key' is missing" in problems([chunk])[0]
    assert keys(read([Message(0, {"y_true": [0, 1], "y_pred": [0, 1]}, b"a\xff")], by="_key")) == ["a\udcff"] * 2


def test_scores_and_labels_of_any_kind():
    assert pairs(read([{"y": "spam", "p": 0.7}], labels=["ham", "spam"], truth="y", score="p", threshold=0.6)) == [
        (1, 1)
    ]
    assert "is not a score" in problems(read([{"y_true": 1, "p": "high"}], score="p"))[0]


def test_portions_do_not_matter():
    drawn = np.random.default_rng(0)
    values = [{"y_true": int(drawn.integers(0, 3)), "y_pred": int(drawn.integers(0, 2))} for _ in range(500)]
    whole = read(values)
    parts = [chunk for i in range(0, 500, 7) for chunk in read(values[i : i + 7], first=i)]
    assert pairs(whole) == pairs(parts)
    assert problems(whole) == problems(parts)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("kafka://broker", "a broker and a topic are needed"),
        ("kafka:///topic", "a broker and a topic are needed"),
        ("http://broker/topic", "is not written like kafka://"),
        ("kafka://broker/topic?grupo=x", "no setting 'grupo'"),
        ("kafka://broker/topic?start=now", "neither earliest nor latest"),
        ("kafka://broker/topic?drifts=topic", "cannot take in its own findings"),
        ("kafka://broker/topic?config=/nowhere", "/nowhere: no such file"),
    ],
)
def test_addresses_that_are_none(url, problem):
    with pytest.raises(InputError, match=problem):
        Address.parse(url)


def test_properties_come_from_a_file_and_from_the_address(tmp_path):
    (tmp_path / "client").write_text("# ours\nsasl.password = secret=1\n\nlinger.ms=7\n")
    address = Address.parse(f"kafka://b/t?config={tmp_path}/client&session.timeout.ms=9000")
    assert address.settings == {"sasl.password": "secret=1", "linger.ms": "7", "session.timeout.ms": "9000"}


def test_the_first_number_fixes_the_unit_of_a_partition_wherever_messages_are_cut():
    times = [1_700_000_000, 1_700_000_001_000, 1_700_000_002, "2026-01-01T10:00:00Z", 0]
    values = [{**EVENT, "at": time} for time in times]
    whole = read(values, time="at")
    given = Reader(Labels([0, 1]), Columns(time="at"))
    clock, parts = Clock(), []
    for message in as_messages(values):
        clock = Clock(clock.unit, clock.dates)  # as after a restart
        given.begin(0, clock)
        parts += given.read("t", 0, [message])
    assert problems(whole) == problems(parts)
    assert "offset 1: 1700000001000 in column 'at' is not a time" in problems(whole)[0]
    moments = [str(time)[:19] for chunk in parts for time in chunk.events.times]
    assert moments == [str(time)[:19] for time in whole[0].events.times]
    assert moments == ["2023-11-14T22:13:20", "2023-11-14T22:13:22", "2026-01-01T10:00:00", "1970-01-01T00:00:00"]
    given.begin(1, other := Clock())
    assert [len(chunk) for chunk in given.read("t", 1, as_messages(values[1:2]))] == [1]
    assert (other.unit, clock.unit) == ("ms", "s")


def test_dates_that_cannot_be_told_apart_reject_their_message_and_end_nothing():
    values = [{**EVENT, "at": "01/02/2026"}, {**EVENT, "at": "2026-02-01"}]
    chunks = read(values, time="at")
    assert sum(len(chunk) for chunk in chunks) == 1
    assert "offset 0: '01/02/2026' in column 'at' may be 1 February or 2 January; " in problems(chunks)[0]


def test_one_bad_message_does_not_part_the_others():
    values = [{"y_true": i % 2, "y_pred": 1} for i in range(4_000)]
    values[1_234] = {"y_true": "?", "y_pred": 1}
    (chunk,) = read(values)
    assert pairs([chunk]) == [(i % 2, 1) for i in range(4_000) if i != 1_234]
    assert [one.offset for one in chunk.rejected] == [1_234]


def test_columns_of_many_messages_are_one_chunk_with_the_offset_of_each_event():
    values = [{"y_true": [1, 0], "y_pred": [1, 1], "k": ["a", "b"]}, {"y_true": [0], "y_pred": [0], "k": ["a"]}] * 100
    (chunk,) = read(values, first=7, by="k")
    assert chunk.events.rows.tolist() == [7 + i for pair in range(0, 200, 2) for i in (pair, pair, pair + 1)]
    assert keys([chunk]) == ["a", "b", "a"] * 100


def test_no_more_events_are_joined_than_a_bank_takes_at_a_time(monkeypatch):
    monkeypatch.setattr(reader, "JOINED", 5)
    chunks = read([{"y_true": [1, 0, 1], "y_pred": [1, 1, 1]}] * 5)
    assert [(len(chunk), chunk.next) for chunk in chunks] == [(6, 2), (6, 4), (3, 5)]


@pytest.mark.parametrize("column", [["a", "b", "c"], [1, 2, 3], pa.array(["a", "b", "c"]).dictionary_encode()])
def test_messages_of_arrow_are_taken_together_and_give_what_each_gives_by_itself(column):
    good = arrow(y_true=[1, 0, 1], y_pred=[1, 1, 0], k=column)
    bad = arrow(y_true=[1, 7, 1], y_pred=[1, 1, 0], k=column)
    values = [good] * 5 + [bad] + [good] * 3 + [good[:-40]] + [{"y_true": 0, "y_pred": 0, "k": "z"}] + [good] * 2
    chunks = read(values, by="k")
    assert [len(chunk) for chunk in chunks] == [26, 1, 6]
    assert [chunk.next for chunk in chunks] == [10, 11, 13]
    apart = [chunk for i, value in enumerate(values) for chunk in read([value], first=i, by="k")]
    assert pairs(chunks) == pairs(apart)
    assert problems(chunks) == problems(apart)
    assert keys(chunks) == keys(apart)
    together, one_by_one = (
        np.concatenate([chunk.events.rows for chunk in found]).tolist() for found in (chunks, apart)
    )
    assert together == one_by_one


def test_arrow_messages_of_other_types_are_read_next_to_each_other():
    whole = arrow(y_true=[1, 0], y_pred=[1, 1], k=[1, 2])
    with_null = arrow(y_true=[1, 1], y_pred=[1, None], k=[1, 2])
    words = arrow(y_true=["1", "0"], y_pred=["0", "1"], k=["a", "b"])
    nothing = arrow(y_true=pa.array([], pa.int64()), y_pred=pa.array([], pa.int64()), k=pa.array([], pa.int64()))
    values = [whole, with_null, whole, nothing, whole, words, words, nothing]
    chunks = read(values, by="k")
    apart = [chunk for i, value in enumerate(values) for chunk in read([value], first=i, by="k")]
    assert pairs(chunks) == pairs(apart)
    assert problems(chunks) == problems(apart)
    assert [chunk.next for chunk in chunks] == [1, 2, 5, 7, 8]
    (rejected,) = [one for chunk in chunks for one in chunk.rejected]
    assert (rejected.offset, rejected.events) == (1, 1)
    assert "offset 1, event 2" in rejected.problem

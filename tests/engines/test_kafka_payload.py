"""From messages to events, and what is refused and why. No broker is needed for that."""

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from fourrates.engines.kafka import Address, Reader
from fourrates.engines.kafka.plain import PlainReader
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
    names = {name: options.pop(name) for name in ("truth", "guess", "score", "time", "by") if name in options}
    reader = Reader(Labels(labels), Columns(**names), **options)
    messages = [value if isinstance(value, Message) else Message(first + i, value) for i, value in enumerate(values)]
    return list(reader.read("t", 0, messages))


def pairs(chunks):
    return [pair for chunk in chunks for pair in zip(chunk.truths.tolist(), chunk.guesses.tolist(), strict=True)]


def problems(chunks):
    return [one.problem for chunk in chunks for one in chunk.refused]


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
    assert chunks[0].offsets.tolist() == [5, 6]
    assert chunks[0].next == 7


def test_columns_in_json_and_in_arrow_are_the_same_events():
    columns = {"y_true": [0, 1, 1, 0, 1], "y_pred": [0, 0, 1, 0, 1], "key": ["a", "b", "a", "a", "c"]}
    as_json, as_arrow = read([columns], by="key"), read([arrow(**columns)], by="key")
    assert pairs(as_json) == pairs(as_arrow) == list(zip(columns["y_true"], columns["y_pred"], strict=True))
    assert list(as_json[0].keys) == [str(key) for key in as_arrow[0].keys] == columns["key"]
    assert as_json[0].offsets.tolist() == as_arrow[0].offsets.tolist() == [0] * 5


def test_arrow_with_a_dictionary_of_keys_and_integer_keys():
    keys = pa.array(["x", "y", "x"]).dictionary_encode()
    assert [key.as_py() for key in read([arrow(y_true=[0, 1, 1], y_pred=[0, 1, 1], key=keys)], by="key")[0].keys] == [
        "x",
        "y",
        "x",
    ]
    numbers = read([arrow(y_true=[0, 1, 1], y_pred=[0, 1, 1], key=[7, 8, 7])], by="key")[0].keys
    assert np.asarray(numbers).tolist() == [7, 8, 7]


def test_kinds_of_messages_may_take_turns_and_keep_their_order():
    columns = {"y_true": [0, 0], "y_pred": [1, 1]}
    chunks = read([EVENT, columns, EVENT, arrow(**columns), EVENT])
    assert pairs(chunks) == [(1, 0), (0, 1), (0, 1), (1, 0), (0, 1), (0, 1), (1, 0)]
    assert [chunk.next for chunk in chunks] == [3, 4, 5]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"junk", "neither JSON nor Arrow"),
        (b"", "neither JSON nor Arrow"),
        (None, "no value"),
        (b"[1, 2]", "list, not an object"),
        (b"\xff\xff\xff\xff" + b"x" * 50, "a damaged Arrow stream"),
        (arrow(y_true=[1], other=[1]), "no column 'y_pred'"),
        ({"y_true": 1}, "no field 'y_pred'; there are 'y_true'"),
        ({"y_true": 2, "y_pred": 1}, "2 in column 'y_true' is not one of the labels 0, 1"),
        ({"y_true": 1, "y_pred": {}}, "{} in column 'y_pred' is not one of the labels"),
        ({"y_true": None, "y_pred": 1}, "the value in column 'y_true' is missing"),
        ({"y_true": [1, 0], "y_pred": [1]}, "columns of different lengths: y_true 2, y_pred 1"),
        ({"y_true": [1, 0], "y_pred": 1}, "1 in column 'y_pred' where other columns have lists"),
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
    (refused,) = [one for chunk in chunks for one in chunk.refused]
    assert refused.value == (json.dumps(value).encode() if isinstance(value, dict) else value)
    assert chunks[-1].next == 14


@pytest.mark.parametrize(
    ("key", "problem"), [(None, "the value in column 'k' is missing"), ([1], "[1] in column 'k' cannot be a key")]
)
def test_keys_that_are_none(key, problem):
    chunks = read([{**EVENT, "k": "a"}, {**EVENT, "k": key}, {**EVENT, "k": 3}], by="k")
    assert [key for chunk in chunks for key in chunk.keys] == ["a", 3]
    assert problem in problems(chunks)[0]


def test_no_message_can_pass_for_two_nor_two_for_one():
    """Joined with a comma, the first two would be one object and the third two: three objects from three messages."""
    values = [b'{"y_true":1,"y_pred":1,"a":[{"b":1}', b'{"c":1}]}', b'{"y_true":1,"y_pred":1},{"y_true":0,"y_pred":0}']
    assert pairs(read(values)) == []
    assert len(problems(read(values))) == 3
    assert pairs(read([*values, EVENT])) == [(1, 0)]


def test_bad_events_of_a_message_with_many_are_refused_and_the_others_taken():
    columns = {"y_true": [0, 7, 1, None], "y_pred": [0, 1, 1, 1], "note": ["a", "b", "c", "d"], "one": 1}
    for value in (columns, arrow(y_true=columns["y_true"], y_pred=columns["y_pred"])):
        (chunk,) = read([value])
        assert pairs([chunk]) == [(0, 0), (1, 1)]
        (refused,) = chunk.refused
        assert refused.events == 2
        assert "offset 0, event 2: 7 in column 'y_true'" in refused.problem
        assert "(and 1 more events of it)" in refused.problem
    kept = json.loads(read([columns])[0].refused[0].value)
    assert kept == {"y_true": [7, None], "y_pred": [1, 1], "note": ["b", "d"]}
    again = pa.ipc.open_stream(refused.value).read_all().to_pydict()
    assert again == {"y_true": [7, None], "y_pred": [1, 1]}


def test_missing_may_be_skipped_instead():
    (chunk,) = read([EVENT, {"y_true": None, "y_pred": 1}, {"y_true": 1, "y_pred": float("nan")}], missing="skip")
    assert chunk.skipped == 2
    assert chunk.refused == []
    assert pairs([chunk]) == [(1, 0)]


def test_the_key_and_the_time_of_the_message_itself():
    messages = [Message(0, EVENT, b"fraud", 1_700_000_000_000), Message(1, EVENT, None), Message(2, EVENT, b"spam")]
    (chunk,) = read(messages, by="_key", time="_time")
    assert chunk.keys == ["fraud", "spam"]
    assert str(chunk.times[0]) == "2023-11-14T22:13:20.000000"
    assert np.isnat(chunk.times[1])
    assert "'_key' is missing" in problems([chunk])[0]
    assert read([Message(0, {"y_true": [0, 1], "y_pred": [0, 1]}, b"a")], by="_key")[0].keys == ["a", "a"]


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
        ("kafka://broker/topic?drifts=topic", "cannot take in what is found in it"),
        ("kafka://broker/topic?config=/nowhere", "/nowhere: no such file"),
    ],
)
def test_addresses_that_are_none(url, problem):
    with pytest.raises(InputError, match=problem):
        Address.parse(url)


def test_properties_come_from_a_file_and_go_where_they_belong(tmp_path):
    (tmp_path / "client").write_text("# ours\nsasl.password = secret=1\n\nlinger.ms=7\n")
    address = Address.parse(f"kafka://b/t?config={tmp_path}/client&session.timeout.ms=9000")
    assert address.consumer_settings() == {"sasl.password": "secret=1", "session.timeout.ms": "9000"}
    assert address.producer_settings() == {"sasl.password": "secret=1", "linger.ms": "7"}


# Plain messages, many at a time ---------------------------------------------------------------------------------


def spelled(draw):
    """A message, most often a plain one; now and then anything else that somebody might send."""
    labels = ["0", "1", "true", "false", "1.0", '"1"', "0"]
    odd = ["2", "null", "NaN", '"x"', "[1]", "{}", "01", "1 2", "-0", "1e0", '"\\u0031"', "", "truee", "[", "1]", "1,"]
    keys = draw.choice([["7", "-3", "0", "99"], ['"a"', '"Åse"', "1.5", "true", "12345678901234567890"]])
    times = ["1700000000", "1700000001.5", '"2026-01-01T10:00:00Z"'][: draw.randint(1, 3)]
    many = draw.random() < 0.3

    def field(name, usual):
        count = 1 if not many else draw.randint(0, 3) if draw.random() < 0.005 else 3
        values = [draw.choice(odd if draw.random() < 0.001 else usual) for _ in range(count)]
        space = draw.choice(["", " ", "  ", "\n"])
        return f'"{name}":{space}' + (f"[{(',' + space).join(values)}]" if many else values[0])

    fields = [field(*one) for one in (("y_true", labels), ("y_pred", labels), ("k", keys), ("at", times))]
    if draw.random() < 0.3:
        more = ['"x":1', '"x":"q\\n\\u00e9"', '"x":{"y":[1,{"z":null}]}', '"x":[]', '"x":-0.5e-3', '"å":"ø"', '"x":{}']
        wrong = ['"x":tru', '"x":[1,]', '"x":"\\q"', '"x":.5', '"x":{"a"}', "x:1", '"x":1,', '"y_true":1', '"x":"\t"']
        fields.append(draw.choice(wrong if draw.random() < 0.01 else more))
    draw.shuffle(fields)
    text = ("{" + ",".join(fields) + "}").encode()
    if draw.random() < 0.002:  # damaged on the way
        at = draw.randrange(len(text))
        text = draw.choice([text[:at], text[:at] + draw.randbytes(1) + text[at + 1 :], text + b" }", b"\v" + text])
    return text


def told(chunks):
    """All that was read, whatever the portions."""
    rows = []
    for chunk in chunks:
        columns = (chunk.offsets, chunk.truths, chunk.guesses, [] if chunk.keys is None else chunk.keys)
        times = [] if chunk.times is None else [str(time) for time in chunk.times]
        rows += zip(*map(list, columns), times, strict=True)
    refused = [(one.offset, one.problem, one.value, one.events) for chunk in chunks for one in chunk.refused]
    return rows, refused, chunks[-1].next, sum(chunk.skipped for chunk in chunks)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("missing", ["refuse", "skip"])
def test_compiled_code_reads_the_events_that_are_read_value_by_value(seed, missing, monkeypatch):
    draw = random.Random(seed)
    values = [spelled(draw) for _ in range(2_000)]
    values[:500] = [b'{"y_true": 1, "y_pred": 0, "k": %d, "at": 1}' % i for i in range(500)]
    asked = {"by": "k", "time": "at", "missing": missing}
    compiled, whole = [], PlainReader.read

    def counted(reader, texts):
        compiled.append(0 if (found := whole(reader, texts)) is None else len(texts))
        return found

    monkeypatch.setattr(PlainReader, "read", counted)
    quick = [chunk for i in range(0, 2_000, 500) for chunk in read(values[i : i + 500], first=i, **asked)]
    assert 500 < sum(compiled) < 2_000
    monkeypatch.setattr(PlainReader, "read", lambda *_: None)
    one_by_one = [chunk for i in range(0, 2_000, 500) for chunk in read(values[i : i + 500], first=i, **asked)]
    assert told(quick) == told(one_by_one)
    assert told(quick)[1]


def test_a_message_out_of_the_ordinary_does_not_part_the_others():
    values = [{"y_true": i % 2, "y_pred": 1} for i in range(4_000)]
    values[1_234] = {"y_true": "?", "y_pred": 1}
    chunks = read(values)
    assert len(chunks) < 20
    assert pairs(chunks) == [(i % 2, 1) for i in range(4_000) if i != 1_234]
    assert [one.offset for chunk in chunks for one in chunk.refused] == [1_234]


def test_columns_of_many_messages_are_one_chunk_with_the_offset_of_each_event():
    values = [{"y_true": [1, 0], "y_pred": [1, 1], "k": ["a", "b"]}, {"y_true": [0], "y_pred": [0], "k": ["a"]}] * 100
    (chunk,) = read(values, first=7, by="k")
    assert chunk.offsets.tolist() == [7 + i for pair in range(0, 200, 2) for i in (pair, pair, pair + 1)]
    assert chunk.keys == ["a", "b", "a"] * 100


@pytest.mark.parametrize("keys", [["a", "b", "c"], [1, 2, 3], pa.array(["a", "b", "c"]).dictionary_encode()])
def test_messages_of_arrow_are_taken_together_and_give_what_each_gives_by_itself(keys):
    good = arrow(y_true=[1, 0, 1], y_pred=[1, 1, 0], k=keys)
    bad = arrow(y_true=[1, 7, 1], y_pred=[1, 1, 0], k=keys)
    values = [good] * 5 + [bad] + [good] * 3 + [good[:-40]] + [{"y_true": 0, "y_pred": 0, "k": "z"}] + [good] * 2
    chunks = read(values, by="k")
    assert [chunk.truths.size for chunk in chunks] == [26, 1, 6]
    assert [chunk.next for chunk in chunks] == [10, 11, 13]
    apart = [chunk for i, value in enumerate(values) for chunk in read([value], first=i, by="k")]
    assert pairs(chunks) == pairs(apart)
    assert problems(chunks) == problems(apart)
    for name in ("offsets", "keys"):
        columns = [[getattr(chunk, name) for chunk in found if chunk.truths.size] for found in (chunks, apart)]
        together, one_by_one = ([str(one) for part in whole for one in np.asarray(part).tolist()] for whole in columns)
        assert together == one_by_one


def test_arrow_messages_of_other_types_are_read_next_to_each_other():
    whole = arrow(y_true=[1, 0], y_pred=[1, 1], k=[1, 2])
    with_null = arrow(y_true=[1, None], y_pred=[1, 1], k=[1, 2])
    words = arrow(y_true=["1", "0"], y_pred=["0", "1"], k=["a", "b"])
    nothing = arrow(y_true=pa.array([], pa.int64()), y_pred=pa.array([], pa.int64()), k=pa.array([], pa.int64()))
    values = [whole, with_null, whole, nothing, whole, words, words, nothing]
    chunks = read(values, by="k")
    apart = [chunk for i, value in enumerate(values) for chunk in read([value], first=i, by="k")]
    assert pairs(chunks) == pairs(apart)
    assert problems(chunks) == problems(apart)
    assert [chunk.next for chunk in chunks] == [1, 2, 5, 8]
    (refused,) = [one for chunk in chunks for one in chunk.refused]
    assert (refused.offset, refused.events) == (1, 1)
    assert "offset 1, event 2" in refused.problem

"""Awkward values through Kafka and Spark: read, or rejected for the same reason, as in a frame."""

import json
from datetime import date
from decimal import Decimal

import kafka_broker
import msgspec
import numpy as np
import pyarrow as pa
import pytest
import spark_session
from awkward import CASES, LABELS, NAMES, VERSIONS, from_frame, meaning, names_of

import fourrates as fr
from fourrates import io
from fourrates.engines.kafka import Monitor
from fourrates.engines.kafka.reader import Reader
from fourrates.labels import Labels


class Message:
    """What the client library hands over."""

    def __init__(self, value):
        self.content = value

    def offset(self):
        return 0

    def value(self):
        return self.content

    def key(self):
        return None


def as_json(row):
    return json.dumps(row).encode()


def as_arrow(row):
    table, sink = pa.table({name: [value] for name, value in row.items()}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_kafka(message, names):
    """The same, by the door of messages."""
    (chunk,) = Reader(Labels([0, 1]), io.Columns(**names)).read("t", 0, [Message(message)])
    if chunk.rejected:
        return chunk.rejected[0].problem.removeprefix("t/0, offset 0: ")
    if chunk.unlabelled:
        return "unlabelled"
    return meaning(chunk.events, chunk.names)


ALL = CASES + VERSIONS


@pytest.mark.parametrize(("column", "value"), ALL, ids=[f"{column} {value!r:.30}" for column, value in ALL])
def test_a_message_means_what_a_row_of_a_frame_means(column, value):
    names = names_of(column)
    row = {"y_true": 1, "y_pred": 0} | {column: value}
    wanted = from_frame(row, names)
    if not isinstance(value, Decimal | date | list | dict):  # a list makes a message one of columns
        assert from_kafka(as_json(row), names) == wanted
    if not isinstance(value, list | dict) and not (isinstance(value, int) and value > 2**64):
        assert from_kafka(as_arrow(row), names) == wanted


def test_nested_values_are_one_rejected_event():
    columns = {"y_true": [1, 1, {"a": 1}, [1]], "y_pred": [0, [1], 1, 1], "k": ["a", "b", "c", "d"]}
    (chunk,) = Reader(Labels([0, 1]), io.Columns(by="k")).read("t", 0, [Message(msgspec.json.encode(columns))])
    assert (chunk.events.truths.tolist(), chunk.rejected[0].events) == ([1], 3)
    row = {"y_true": [1, 1], "y_pred": [0, 1], "k": ["a", {"b": 1}]}
    (chunk,) = Reader(Labels([0, 1]), io.Columns(by="k")).read("t", 0, [Message(msgspec.json.encode(row))])
    assert (chunk.events.truths.tolist(), chunk.rejected[0].events) == ([1], 1)
    assert "{'b': 1} in column 'k' cannot be a key" in chunk.rejected[0].problem


def test_a_topic_means_what_the_rows_of_a_frame_mean(broker, topic):
    plain = [value for value in LABELS if isinstance(value, str | int | float | None)]
    rows = [{"y_true": value, "y_pred": 0} for value in plain] + [{"y_true": 1, "y_pred": value} for value in plain]
    wanted = [from_frame(row, NAMES) for row in rows]
    kafka_broker.produce(broker, topic, rows)
    rejected = {}
    url = f"kafka://{broker.address}/{topic}?group=g-{topic}&{kafka_broker.SETTINGS}"
    with Monitor(url, refuse=lambda source, one: rejected.update({one.offset: one.problem})) as monitor:
        kafka_broker.step_until(monitor, lambda: monitor.events + monitor.rejected + monitor.unlabelled >= len(rows))
    reasons = {at: one for at, one in enumerate(wanted) if isinstance(one, str) and one != "unlabelled"}
    assert rejected == {at: f"{topic}/0, offset {at}: {reason}" for at, reason in reasons.items()}
    assert monitor.unlabelled == wanted.count("unlabelled")


# Spark ----------------------------------------------------------------------------------------------------------

KINDS = {"string": str, "long": int, "double": float, "boolean": bool, "decimal(20,1)": Decimal, "date": date}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    made = spark_session.start(tmp_path_factory.mktemp("spark"))
    yield made
    made.stop()


def awkward(kind):
    """Rows of a type: each awkward value as a true label and as a prediction."""
    fits = [value for value in LABELS if type(value) is KINDS[kind] and not (type(value) is int and value > 2**63)]
    pairs = [(value, fits[0]) for value in fits] + [(fits[0], value) for value in fits] + [(None, fits[0])]
    return [(at, at, truth, pred) for at, (truth, pred) in enumerate(pairs)]


def said(found):
    """Why rows were not read, by their key, and how many were unlabelled."""
    rows = found.where("kind in ('rejected', 'unlabelled')").collect()
    rejected = {json.loads(row["row"])["k"]: row["reason"] for row in rows if row["kind"] == "rejected"}
    return rejected, sum(row["rows"] for row in rows if row["kind"] == "unlabelled")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_spark_means_what_a_row_of_a_frame_means(session, kind, tmp_path):
    from fourrates.engines import spark as engine

    rows = awkward(kind)
    wanted = {at: from_frame({"y_true": truth, "y_pred": pred}, NAMES) for at, _, truth, pred in rows}
    reasons = {at: one for at, one in wanted.items() if isinstance(one, str) and one != "unlabelled"}
    schema = f"k long, seq long, y_true {kind}, y_pred {kind}"
    call = {"truth": "y_true", "pred": "y_pred", "by": "k", "order": "seq"}
    given = session.createDataFrame(rows, schema)
    unlabelled = [*wanted.values()].count("unlabelled")
    assert unlabelled > 0
    assert said(engine.detect(given, **call)) == (reasons, unlabelled)
    if kind == "string":  # and as a stream
        given.coalesce(1).write.parquet(str(tmp_path / "in"))
        stream = session.readStream.schema(schema).parquet(str(tmp_path / "in"))
        writing = engine.detect(stream, **call).writeStream.foreachBatch(engine.write_once(str(tmp_path / "out")))
        query = writing.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        query.awaitTermination()
        assert said(session.read.parquet(str(tmp_path / "out"))) == (reasons, unlabelled)


# Versions -------------------------------------------------------------------------------------------------------


def deployed(size=16_000):
    """Two keys; v1 falls, v2 takes over and falls in one of them. Each key has every other event."""
    random = np.random.default_rng(4)
    at, truth = np.arange(size), (random.random(size) < 0.4).astype(np.int64)
    second = at >= size // 2
    fell = (~second & (at >= size // 4)) | (second & (at >= size * 7 // 8) & (at % 2 == 0))
    right = random.random(size) < np.where(fell & (truth == 1), 0.5, 0.95)
    times = np.datetime64("2026-09-01", "us") + at * np.timedelta64(60_000_000, "us")
    version = np.where(second, 2, 1)
    return {"k": at % 2, "time": times, "v": version, "y_true": truth, "y_pred": np.where(right, truth, 1 - truth)}


def in_a_frame(data, by):
    found = fr.detect(data, by=by, time="time", version="v", arl=20_000, season=None)
    assert {(one.kind, one.version) for one in found} >= {("drift", "1"), ("acceptance", "1"), ("drift", "2")}
    return sorted((one.kind, one.version, one.segment or "", one.at, one.started or 0) for one in found)


@pytest.mark.parametrize("by", [None, "k"])
def test_a_topic_finds_of_each_version_what_a_frame_finds(broker, topic, by):
    data = deployed()
    rows = {name: column.tolist() for name, column in data.items()}
    rows["time"] = data["time"].astype(np.int64).tolist()
    parts = [{name: column[at : at + 500] for name, column in rows.items()} for at in range(0, 16_000, 500)]
    kafka_broker.produce(broker, topic, parts)
    found = []
    url = f"kafka://{broker.address}/{topic}?group=g-{topic}&{kafka_broker.SETTINGS}"
    watched = {"time": "time", "by": by, "version": "v", "found": found.append}
    with Monitor(url, fr.FourRates(20_000), **watched) as monitor:
        kafka_broker.step_until(monitor, lambda: monitor.events >= 16_000)
    told = [(one["kind"], one["version"], one.get("segment", ""), one["at"], one.get("started", 0)) for one in found]
    assert sorted(told) == [one for one in in_a_frame(data, by) if one[0] != "shift"]
    assert len({one["id"] for one in found}) == len(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by", [(), ("k",)])
def test_spark_finds_of_each_version_what_a_frame_finds(session, by, tmp_path):
    from fourrates.engines import spark as engine

    data = deployed()
    wanted = in_a_frame(data, [*by] or None)
    call = {"truth": "y_true", "pred": "y_pred", "by": by, "order": "time", "version": "v", "arl": 20_000}
    given = session.createDataFrame(pa.table(data))

    def told(found):
        rows = found.where("kind not in ('rejected', 'unlabelled')").collect()
        return sorted({(r.kind, r.v, str(r.k) if by else "", r.at, r.started or 0) for r in rows})

    if not by:  # within a key, a version retires by the predictions of this key
        assert told(engine.detect(given, **call)) == wanted
    else:
        alone = [{name: column[at::2] for name, column in data.items()} for at in range(2)]
        several = [fr.detect(one, by="k", time="time", version="v", arl=20_000, season=None) for one in alone]
        rows = [(one.kind, one.version, one.segment, one.at, one.started or 0) for found in several for one in found]
        assert told(engine.detect(given, **call)) == sorted(rows)
    given.orderBy("time").coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = session.readStream.schema(given.schema).parquet(str(tmp_path / "in"))
    found = engine.detect(stream, **call, shards=1)
    writing = found.writeStream.foreachBatch(engine.write_once(str(tmp_path / "out")))
    query = writing.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert told(session.read.parquet(str(tmp_path / "out"))) == wanted

"""Awkward values through Kafka and Spark: read, or rejected for the same reason, as in a frame."""

import json
from datetime import date
from decimal import Decimal

import kafka_broker
import msgspec
import pyarrow as pa
import pytest
import spark_session
from awkward import CASES, LABELS, NAMES, from_frame

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
    """The same, by that of messages."""
    (chunk,) = Reader(Labels([0, 1]), io.Columns(**names)).read("t", 0, [Message(message)])
    if chunk.rejected:
        return chunk.rejected[0].problem.removeprefix("t/0, offset 0: ")
    if chunk.unlabelled:
        return "unlabelled"
    batch = chunk.events
    key = None if batch.keys is None else chunk.names[batch.keys[0]]
    return int(batch.truths[0]), int(batch.preds[0]), None if batch.times is None else str(batch.times[0]), key


@pytest.mark.parametrize(("column", "value"), CASES, ids=[f"{column} {value!r:.30}" for column, value in CASES])
def test_a_message_means_what_a_row_of_a_frame_means(column, value):
    names = NAMES | {"at": {"time": "at"}, "k": {"by": "k"}}.get(column, {})
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

"""Columns of every Arrow type in every place: taken or refused, never a defect."""

import io
import time

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("starlette")
from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import make_batch, read_table
from fourrates.serve.columns import Plan
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

LARGE = pa.array([0, 1, 2**62 + 7, None], pa.int64())
COLUMNS = {
    "microseconds": LARGE.cast(pa.timestamp("us"), safe=False),
    "nanoseconds": LARGE.cast(pa.timestamp("ns"), safe=False),
    "with a zone": LARGE.cast(pa.timestamp("us", tz="UTC"), safe=False),
    "without nulls": pa.array([0, 1, 2**62, 1]).cast(pa.timestamp("us")),
    "no such zone": pa.array([1, 1, 1, 1]).cast(pa.timestamp("us", tz="Nowhere/X")),
    "days": pa.array([2**30, 1, 2, None], pa.int32()).cast(pa.date32()),
    "duration": LARGE.cast(pa.duration("s")),
    "decimal": pa.array([1, 2, 3, None]).cast(pa.decimal128(38, 2)),
    "bytes": pa.array([b"a", b"\xff", b"", None]),
    "nulls": pa.nulls(4),
    "unsigned": pa.array([2**64 - 1, 1, 2, None], pa.uint64()),
    "fractions": pa.array([float("nan"), float("inf"), 1, None]),
    "flags": pa.array([True, False, None, True]),
    "text": pa.array(["0", "1", None, "\0"]),
    "dictionary": pa.array(["0", "1", None, "x"]).dictionary_encode(),
    "lists": pa.array([[1], [], None, [2]]),
    "structs": pa.array([{"a": 1}] * 4),
}


@pytest.mark.parametrize("place", ["y_true", "y_pred", "id", "time", "score", "country"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_any_type_in_any_place_is_taken_or_refused(kind, place):
    plan = Plan(MonitorConfig(by=["country"]))
    sound = pa.array([0, 1, 0, 1])
    for name, column in COLUMNS.items():
        columns = dict.fromkeys(("y_true", "y_pred", "id", "country"), sound) | {place: column}
        if place == "score":
            del columns["y_pred"]
        table, sink = pa.table(columns), io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        for skip in (False, True):
            try:
                read = read_table(sink.getvalue(), "application/vnd.apache.arrow.stream", ["country"], 1_000)
                batch, rejected = make_batch(KINDS[kind], read, plan, time.time(), max_rows=1_000, skip=skip)
            except ApiError as error:
                assert error.status in (400, 422), name
            else:
                assert batch.size + len(rejected) == 4, name

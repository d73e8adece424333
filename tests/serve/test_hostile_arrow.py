"""Columns of every Arrow type in every place: taken or refused, never a defect."""

import io
import time

import pytest

pytest.importorskip("starlette")
import pyarrow as pa

from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import Limits, Plan, make_batch, read_table
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

LIMITS = Limits(1_000, 1 << 20)
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
                read = read_table(sink.getvalue(), "application/vnd.apache.arrow.stream", ["country"], LIMITS)
                batch, rejected = make_batch(KINDS[kind], read, plan, time.time(), limits=LIMITS, skip=skip)
            except ApiError as error:
                problem = f"{name}: {error.status}"
                taken = None if error.status in (400, 422) else 0
            else:
                problem, taken = name, batch.size + len(rejected)
            assert taken in (None, 4), problem


def test_names_of_columns_that_are_no_text_are_refused():
    table, sink = pa.table({"y_true": [0], "y_pred": [1]}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ApiError) as raised:
        read_table(sink.getvalue().replace(b"y_true", b"y_tru\xa6"), "application/vnd.apache.arrow.stream", [], LIMITS)
    assert (raised.value.status, raised.value.code) == (400, "bad_arrow")

"""Columns of every Arrow type in every place: read or rejected, never a crash, never a defect.

In a process of its own without pandas: pyarrow ends the process over some of these types if pandas is not there.
"""

import subprocess
import sys

import pytest

pytest.importorskip("starlette")
pytest.importorskip("pyarrow")
pytest.importorskip("confluent_kafka")

PROGRAM = r"""
import sys
class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
import time
from decimal import Decimal
import pyarrow as pa
from fourrates import io
from fourrates.engines.kafka.reader import Reader
from fourrates.labels import Labels
from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import ARROW_TYPES, Limits, make_batch, read_table
from fourrates.serve.bodies import Plan
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

LIMITS = Limits(1_000, 1 << 20)


class Message:
    def __init__(self, content):
        self.content = content

    def offset(self):
        return 0

    def value(self):
        return self.content

    def key(self):
        return None


PLAIN = [pa.null(), pa.bool_(), pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(),
         pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
         pa.binary_view(), pa.binary(3), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
         pa.time64("ns"), pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval(), pa.decimal128(9, 2),
         pa.decimal256(40, 3)]
PLAIN += [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Nowhere/X")]
PLAIN += [getattr(pa, name)(5, 1) for name in ("decimal32", "decimal64") if hasattr(pa, name)]
FIXED = (pa.types.is_timestamp, pa.types.is_time64, pa.types.is_duration)


def values(kind):
    if pa.types.is_null(kind):
        return [pa.nulls(4)]
    if pa.types.is_interval(kind):
        return [pa.array([pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([0, 0, 0])] * 2, kind)]
    if pa.types.is_boolean(kind):
        return [pa.array([True, False, True, False])]
    if pa.types.is_decimal(kind):
        return [pa.array([Decimal(1), Decimal(0), Decimal(1), Decimal(2)], kind)]
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return [pa.array(numbers, pa.int32()).view(kind) for numbers in ([0, 1, 2, 3], [2**31 - 1, -(2**31), 0, 1])]
    if pa.types.is_date64(kind):
        return [pa.array([0, day, 2 * day, 10**10 * day], pa.int64()).view(kind) for day in (86_400_000,)]
    if any(test(kind) for test in FIXED):
        return [pa.array(numbers, pa.int64()).view(kind) for numbers in ([0, 1, 2, 3], [2**62, -(2**62), 0, 1])]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return [pa.array([0, 1, 1, 0]).cast(kind)]
    texts = [b"001", b"abc", b"\xff00", b"000"] if "binary" in str(kind) else ["0", "1", "abc", ""]
    return [pa.array(texts, kind)]


def variants(array):
    yield "plain", array
    try:
        yield "with nulls", pa.concat_arrays([array[:3], pa.nulls(1, array.type)])
    except (pa.ArrowException, NotImplementedError):
        pass
    yield "sliced", pa.concat_arrays([array, array]).slice(2, 4)
    indices = pa.array([0, 1, None, 3], pa.int8())
    try:
        yield "dictionary", pa.DictionaryArray.from_arrays(indices, array)
        yield "dictionary of 64 bits", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3], pa.uint64()), array)
    except (pa.ArrowException, NotImplementedError):
        pass
    yield "list", pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), array)
    yield "large list", pa.LargeListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int64()), array)
    yield "fixed list", pa.FixedSizeListArray.from_arrays(array, 1)
    yield "struct", pa.StructArray.from_arrays([array], names=["a"])
    yield "map", pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), pa.array(["a"] * 4), array)
    if not pa.types.is_time(array.type):  # which are looked at, and some of ours are beyond a day
        yield "run ends", pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), array)
    yield "sparse union", pa.UnionArray.from_sparse(pa.array([0] * 4, pa.int8()), [array])
    yield "dense union", pa.UnionArray.from_dense(pa.array([0] * 4, pa.int8()), pa.array(range(4), pa.int32()), [array])
    if hasattr(pa, "ListViewArray"):
        offsets, sizes = pa.array([0, 1, 2, 3], pa.int32()), pa.array([1] * 4, pa.int32())
        yield "list view", pa.ListViewArray.from_arrays(offsets, sizes, array)


plan = Plan(MonitorConfig(labels=[0, 1], by=["country"]))
tried = read = messages = 0
for kind in PLAIN:
    for array in values(kind):
        for name, column in variants(array):
            for place in ("y_true", "y_pred", "score", "time", "id", "country"):
                labels = [0, 1, 1, 0]
                data = {"y_true": labels, "y_pred": labels, "id": ["a", "b", "c", "d"], "country": ["x"] * 4}
                if place == "score":
                    del data["y_pred"]
                try:
                    table = pa.table(data | {place: column})
                    sink = pa.BufferOutputStream()
                    with pa.ipc.new_stream(sink, table.schema) as writer:
                        writer.write_table(table)
                    stream = sink.getvalue().to_pybytes()
                except (pa.ArrowException, NotImplementedError):
                    continue
                tried += 1
                print(tried, kind, name, place, file=sys.stderr)
                skip = tried % 2 == 1  # both policies for bad rows, in turn
                for what in KINDS.values():
                    try:
                        body = read_table(stream, ARROW_TYPES[0], ["country"], LIMITS)
                        make_batch(what, body, plan, time.time(), limits=LIMITS, skip=skip)
                    except ApiError as error:
                        assert error.status in (400, 413, 422), error
                columns = {"pred": "y_pred", "score": None}
                if place == "score":
                    columns = {"pred": None, "score": "score"}
                when = "time" if place == "time" else None
                asked = io.Columns("y_true", time=when, by="country", **columns)
                for source in (table, {one: table.column(one).combine_chunks() for one in table.column_names}):
                    try:
                        bad = "skip" if skip else "reject"
                        read += sum(batch.rows.size for batch in io.read(source, columns=asked, bad=bad))
                    except io.InputError:
                        pass
                for chunk in Reader(Labels([0, 1]), asked).read("t", 0, [Message(stream)]):
                    rejected = sum(one.events for one in chunk.rejected)
                    # A message that cannot be read is one rejected event, else each of its four rows is accounted for.
                    assert len(chunk) + rejected + chunk.unlabelled in (1, 4), (kind, name, place)
                    messages += 1
print(tried, read, messages)
"""


def test_a_column_of_any_type_in_any_place_is_read_or_rejected():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2_000:]
    tried, read, messages = map(int, ran.stdout.split())
    assert messages >= tried > 2_000
    assert read > 1_000

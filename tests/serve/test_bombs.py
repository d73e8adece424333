"""Small bodies that would take a lot of memory: refused, and the memory stays within its bound.

The bound is 100 MB and ten times the limit for a body, on top of what the process has before the first of them.
"""

import gzip
import subprocess
import sys
import time

import pytest

pytest.importorskip("starlette")
pytest.importorskip("pyarrow")

from fourrates.events.door import check_keys
from fourrates.events.rows import BadRows
from fourrates.serve.bodies import Limits, bad_ids, read_table, unpack
from fourrates.serve.errors import ApiError

PROGRAM = r"""
import gzip, resource, sys, time
import pyarrow as pa
from fourrates.serve.bodies import ARROW_TYPES, ROW_TYPES, Limits, make_batch, read_table, unpack
from fourrates.serve.bodies import Plan
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

LIMIT = 16 << 20
limits = Limits(1_000_000, LIMIT)


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def filled(unit, start=b"", end=b""):
    return start + unit * ((LIMIT - len(start) - len(end)) // len(unit)) + end


zeros = pa.array([0] * 900_000, pa.int64())
long_text = pa.DictionaryArray.from_arrays(pa.array([0] * 900_000, pa.int32()), pa.array(["x" * 1_000_000]))
ids = pa.DictionaryArray.from_arrays(pa.array([0] * 900_000, pa.int32()), pa.array(["x" * 1_000]))
nulls = pa.table({"y_true": pa.nulls(2_000_000_000), "y_pred": pa.nulls(2_000_000_000)})
view = pa.array(["x" * 1_000_000], pa.string_view()).buffers()
views = pa.Array.from_buffers(pa.string_view(), 20_000, [None, pa.py_buffer(view[1].to_pybytes() * 20_000), view[2]])
once = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array(["x" * (LIMIT - 10_000)]))
JSON, ROWS, ARROW = "application/json", ROW_TYPES[0], ARROW_TYPES[0]
bodies = {
    "Arrow packed inside": (ARROW, stream(pa.table({str(i): zeros for i in range(100)}), compression="zstd")),
    "two thousand million nulls": (ARROW, stream(nulls)),
    "a long text for every label": (ARROW, stream(pa.table({"y_true": long_text, "y_pred": long_text}))),
    "a long id for every row": (ARROW, stream(pa.table({"y_true": zeros, "y_pred": zeros, "id": ids}))),
    "a text that many views show": (ARROW, stream(pa.table({"y_true": views, "y_pred": views}))),
    "the same, as ids": (ARROW, stream(pa.table({"y_true": [0] * 20_000, "y_pred": [0] * 20_000, "id": views}))),
    "one long text that is no label": (ARROW, stream(pa.table({"y_true": once, "y_pred": [0] * 100}))),
    "no label": (JSON, filled(b"9,", b'{"y_pred":[1],"y_true":[', b"9]}")),
    "a million that are no label": (JSON, b'{"y_true":[%b9],"y_pred":[%b9]}' % (b"9," * 999_999, b"9," * 999_999)),
    "empty lists": (JSON, filled(b"[],", b'{"y_true":[', b"[]]}")),
    "small objects": (JSON, filled(b'{"":0},', b'{"y_true":[', b"{}]}")),
    "texts": (JSON, filled(b'"a",', b'{"y_true":[', b'"a"]}')),
    "brackets": (JSON, filled(b"[")),
    "newlines": (ROWS, filled(b"\n")),
    "rows of nothing": (ROWS, filled(b"{}\n")),
    "one line of lists": (ROWS, filled(b"[],", b'{"y_true":[', b"[]]}")),
    "rows of lists": (ROWS, filled(b'{"y_true":[[],[],[],[]],"y_pred":[]}\n')),
}
plan = Plan(MonitorConfig(labels=[0, 1]))
for kind, body in [(JSON, b'{"y_true":[1],"y_pred":["a"]}'), (ARROW, stream(pa.table({"y_true": [1], "y_pred": [1]})))]:
    try:
        make_batch(0, read_table(body, kind, [], limits), plan, 1e9, limits=limits)
    except ApiError:
        pass
packed = {name: (kind, gzip.compress(body, 1)) for name, (kind, body) in bodies.items()}
del bodies, zeros, nulls, long_text, ids, view, views, once
for name, (kind, body) in packed.items():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts anew
    before = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20
    began = time.perf_counter()
    for skip in (False, True):
        try:
            table = read_table(unpack(body, "gzip", LIMIT), kind, [], limits)
            batch, rejected = make_batch(0, table, plan, 1e9, limits=limits, skip=skip)
            answer = f"{batch.size} rows"
            assert len(rejected) <= 20
            assert all(len(str(value)) < 2_000 for row in rejected for value in row.values.values())
        except ApiError as error:
            answer = str(error.status)
        table = batch = None
    lines = open("/proc/self/status").read().splitlines()
    top = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) >> 10
    print(f"{name}: {len(body):,} bytes, {answer}, +{top - before} MB, {time.perf_counter() - began:.1f} s")
    assert top - before <= 100 + 10 * (LIMIT >> 20), name
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_no_small_body_takes_more_memory_than_its_bound():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2_000:]
    assert ran.stdout.count(" MB, ") == 17


def test_keys_that_are_all_blank_are_read_in_linear_time():
    texts = ["".join(" \t\n\r"[number >> 2 * digit & 3] for digit in range(9)) for number in range(100_000)]
    bad, began = BadRows(len(texts)), time.perf_counter()
    check_keys(texts, "country", bad)
    assert bad.counts == {"missing": len(texts)}
    assert time.perf_counter() - began < 5


def test_one_long_text_as_the_id_of_every_row_is_looked_at_quickly():
    began = time.perf_counter()
    bad, _ = bad_ids(["x" * 4_000_000] * 200_000)
    assert bad.all()
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"y_true":[%b1e308]}' % (b"1e308," * 900_000)),
        ("application/x-ndjson", b'{"y_true":[%b1e308]}\n' % (b"1e308," * 900_000)),
    ],
)
def test_numbers_of_large_exponents_are_read_quickly_and_right(kind, body):
    began = time.process_time()
    found = read_table(body, kind, [], Limits(1_000_000, 1 << 26)).truth
    assert time.process_time() - began < 4
    assert (found if kind == "application/json" else found[0])[-1] == 1e308
    with pytest.raises(ApiError, match="out of range"):
        read_table(body.replace(b"1e308]", b"1e309]"), kind, [], Limits(1_000_000, 1 << 26))


def test_what_follows_a_packed_body_is_not_lost_without_a_word():
    with pytest.raises(ApiError, match="something follows the packed body"):
        unpack(gzip.compress(b"{}\n") + gzip.compress(b"{}\n"), "gzip", 1_000)

"""Files made to do harm: the worst they may do is to be refused, in time and memory that grow with their size."""

import gzip
import json
import time
from contextlib import suppress

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fourrates import io
from fourrates.io.tail import Format


def read_all(source, **options):
    return list(io.read(source, **options))


def arrow_file(path, table, stream=False):
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)
    return path


def offsets_damaged(content, wrong):
    """The file with the offsets of a string column made wrong: they are found by their bytes."""
    offsets = np.arange(0, 65, dtype=np.int32)
    at = content.index(offsets.tobytes())
    bad = offsets.copy()
    bad[10] = wrong
    return content[:at] + bad.tobytes() + content[at + offsets.nbytes :]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wrong", [2**31 - 1, -(2**31), 1_000_000, 5])
def test_an_arrow_file_with_one_wrong_offset_is_refused(tmp_path, wrong, stream):
    """On the old code the process died of SIGSEGV."""
    words = ["0", "1"] * 32
    path = arrow_file(tmp_path / "x.arrow", pa.table({"y_true": words, "y_pred": words}), stream)
    assert sum(batch.truths.size for batch in read_all(path)) == 64
    path.write_bytes(offsets_damaged(path.read_bytes(), wrong))
    with pytest.raises(io.InputError, match=r"x\.arrow"):
        read_all(path)


@pytest.mark.parametrize("kind", ["file", "stream", "packed stream"])
@pytest.mark.parametrize("more", [2**30, 2**39, 2**62])
def test_a_length_of_more_than_there_is_makes_no_room_for_it(tmp_path, kind, more):
    words = ["0", "1"] * 33
    path = arrow_file(tmp_path / "x.arrow", pa.table({"y_true": words, "y_pred": words}), kind != "file")
    with (pa.ipc.open_file if kind == "file" else pa.ipc.open_stream)(path) as reader:
        size = pa.ipc.read_message(reader.read_all().to_batches()[0].serialize()).body.size
    content = path.read_bytes()
    assert content.count(size.to_bytes(8, "little")) == (2 if kind == "file" else 1)  # a file has it at its end too
    content = content.replace(size.to_bytes(8, "little"), (size + more).to_bytes(8, "little"))
    path.write_bytes(gzip.compress(content) if kind == "packed stream" else content)
    with pytest.raises(io.InputError, match=r"x\.arrow"):
        read_all(path)


def test_a_dictionary_index_out_of_range_is_refused(tmp_path):
    words = pa.array(["0", "1"] * 32).dictionary_encode()
    path = arrow_file(tmp_path / "x.arrow", pa.table({"y_true": words, "y_pred": words}))
    content = path.read_bytes()
    indices = np.array([0, 1] * 32, np.int32).tobytes()
    bad = np.array([0, 1] * 31 + [0, 10**6], np.int32).tobytes()
    path.write_bytes(content.replace(indices, bad))
    with pytest.raises(io.InputError, match=r"x\.arrow"):
        read_all(path)


def test_a_parquet_file_with_flipped_bytes_is_read_or_refused(tmp_path):
    words = ["0", "1"] * 500
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"y_true": words, "y_pred": words}), path)
    content = path.read_bytes()
    draw = np.random.default_rng(1)
    refused = 0
    for _ in range(150):
        bad = bytearray(content)
        for at in draw.integers(4, len(bad), 3):
            bad[at] ^= 1 << int(draw.integers(8))
        path.write_bytes(bytes(bad))
        try:
            read_all(path)
        except io.InputError:
            refused += 1
    assert refused > 50


@pytest.mark.slow
def test_an_arrow_file_with_flipped_bytes_is_read_or_refused(tmp_path):
    words = ["0", "1"] * 500
    path = arrow_file(tmp_path / "x.arrow", pa.table({"y_true": words, "y_pred": np.array([0, 1] * 500)}))
    content = path.read_bytes()
    draw = np.random.default_rng(2)
    for _ in range(300):
        bad = bytearray(content)
        for at in draw.integers(6, len(bad), 3):
            bad[at] ^= 1 << int(draw.integers(8))
        path.write_bytes(bytes(bad))
        with suppress(io.InputError):
            read_all(path)


@pytest.mark.parametrize("role", ["truth", "pred", "score", "time", "by"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([[0], [1]]),
        pa.array([{"a": 0}, {"a": 1}]),
        pa.array([b"0", b"1"]),
        pa.array([b"0", b"1"], pa.binary(1)),
        pa.array(["0", "1"], pa.large_string()),
        pa.array(["0", "1"], pa.string_view()),
        pa.array(np.array([0, 1], np.float16)),
        pa.array([0, 1], pa.decimal128(5, 2)),
        pa.array([0, 1], pa.date32()),
        pa.array([0, 1], pa.timestamp("ns", "UTC")),
        pa.array([0, 1], pa.time64("us")),
        pa.array([0, 1], pa.duration("s")),
        pa.array([0, 1], pa.uint64()),
        pa.array([None, None], pa.null()),
        pa.array([True, None]),
        pa.array(["0", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array([str(i) for i in range(128)])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint8()), pa.array([None, "1"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([[0], [1]])),
        pa.RunEndEncodedArray.from_arrays([1, 2], [0, 1]),
    ],
    ids=lambda column: str(column.type)[:30],
)
def test_a_column_of_any_type_is_read_or_refused(tmp_path, column, role):
    data = {"truth": [0, 1], "pred": [0, 1], "score": [0.1, 0.9], "time": [0, 1], "by": ["a", "b"]} | {role: column}
    names = {name: name for name in ("truth", "time", "by", "score" if role == "score" else "pred")}
    try:
        path = arrow_file(tmp_path / "x.arrow", pa.table(data))
    except (pa.ArrowException, NotImplementedError):
        pytest.skip("cannot be written")
    with suppress(io.InputError):
        read_all(path, columns=io.Columns(**names))


@pytest.mark.parametrize("in_dictionary", [False, True])
def test_a_text_that_too_many_views_show_is_refused(tmp_path, in_dictionary):
    text = pa.array(["x" * 1_000_000], pa.string_view()).buffers()
    buffers = [None, pa.py_buffer(text[1].to_pybytes() * 3_000), text[2]]
    column = pa.Array.from_buffers(pa.string_view(), 3_000, buffers)
    if in_dictionary:
        column = pa.DictionaryArray.from_arrays(pa.array(range(3_000)), column)
    path = arrow_file(tmp_path / "x.arrow", pa.table({"y_true": column, "y_pred": [0, 1] * 1_500}))
    with pytest.raises(io.InputError, match=r"texts of more than 2,147,483,647 bytes"):
        read_all(path)


# Lines ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_line_without_an_end_is_refused_at_its_bound_in_linear_time(tmp_path):
    """A line of 64 MB; on the old code it was copied once for each megabyte."""
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b'{"y_true": 1, "y_pred": 1}\n{"x": "')
        for _ in range(64):
            file.write(b"x" * (1 << 20))
    with pytest.raises(io.InputError, match=r"line 2: longer than 16,777,216 bytes"):
        read_all(path)


def test_a_long_line_in_small_pieces_takes_linear_time():
    """100 MB in pieces of 64 kB: a fraction of a second; copied anew with each piece, 80 GB are moved."""
    tail = io.Tail(io.read("-"), "a pipe")
    start = time.perf_counter()
    list(tail.feed(b'{"y_true": 1, "y_pred": 1}\n{"x": "'))
    for _ in range(1600):
        assert list(tail.feed(b"x" * (1 << 16))) == []
    with pytest.raises(io.InputError, match="line 2: longer than 16,777,216 bytes"):
        list(tail.feed(b"\n"))
    assert time.perf_counter() - start < 3


def test_a_header_without_an_end_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"y_true,y_pred," + b"x" * (1 << 25))
    with pytest.raises(io.InputError, match="first line is longer than 16,777,216 bytes"):
        read_all(path)


def test_a_header_of_many_names_one_of_them_twice_is_refused_in_linear_time(tmp_path):
    """200,000 names; counting each among all of them took minutes."""
    path = tmp_path / "x.csv"
    path.write_text(",".join([f"c{i}" for i in range(200_000)] + ["c199999"]) + "\n1,1\n")
    start = time.perf_counter()
    with pytest.raises(io.InputError, match="'c199999' is there twice"):
        read_all(path)
    assert time.perf_counter() - start < 5


def test_json_nested_beyond_the_stack_is_refused(tmp_path):
    """On the old code a RecursionError."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"y_true": 1, "y_pred": 1}\n' + "[" * 100_000 + "\n")
    with pytest.raises(io.InputError, match="line 2: not JSON"):
        read_all(path)


def test_numbers_whose_hashes_collide_cost_no_more_than_others(tmp_path):
    """Multiples of 2**61 - 1 all have the hash 0: as keys of a dict 20,000 of them take 20,000 squared steps."""
    path = tmp_path / "x.jsonl"
    prime = 2**61 - 1
    rows = [{"y_true": 1, "y_pred": 1, "key": prime * i} for i in range(1, 20_000)]
    path.write_text("\n".join(map(json.dumps, rows)))
    start = time.perf_counter()
    read_all(path, columns=io.Columns(by="key"))
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "text", [b'1,"1\n0,0\n', b'1,1\n"' + b"x" * 200_000 + b'",1\n0,0\n', b"1,1\n\xff,1\n0,0\n", b"1\n0,0\n"]
)
def test_a_bad_line_of_a_pipe_is_set_aside_and_the_others_are_taken(text):
    bad = []
    tail = io.Tail(io.read("-"), "a pipe", refuse=lambda *facts: bad.append(facts))
    batches = [*tail.feed(b"y_true,y_pred\n1,0\n"), *tail.feed(text), *tail.feed(b"0,1\n")]
    pairs = [pair for batch in batches for pair in zip(batch.truths.tolist(), batch.preds.tolist(), strict=True)]
    assert pairs[0] == (1, 0)
    assert pairs[-2:] == [(0, 0), (0, 1)]
    assert len(bad) == 1
    assert tail.events.rows == len(pairs)


def test_an_unclosed_quote_swallows_no_other_line():
    bad = []
    tail = io.Tail(io.read("-"), "a pipe", refuse=lambda *facts: bad.append(facts))
    batches = list(tail.feed(b'y_true,y_pred,note\n1,0,"open\n0,0,x\n1,1,close"\n'))
    assert [row for batch in batches for row in batch.rows.tolist()] == [2, 3]
    assert [facts[1] for facts in bad] == [2]


@pytest.mark.parametrize(
    ("head", "good", "bad"),
    [
        (b"y_true,y_pred\n", b"1,1\n", b"1,x\n"),
        (b"", b'{"y_true": 1, "y_pred": 1}\n', b'{"y_true": 1, "y_pred": "x"}\n'),
    ],
)
def test_rows_are_counted_without_header_and_blank_lines_and_over_a_restart(head, good, bad):
    tail = io.Tail(io.read("-"), "a pipe", refuse=lambda *facts: None)
    batches = [*tail.feed(head + good + b"\n" + good), *tail.feed(bad + good)]
    later = io.Tail(io.read("-"), "a pipe")
    later.restore(msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(tail.format))), Format))
    batches += [*later.feed(b"\n" + good)]
    assert [row for batch in batches for row in batch.rows.tolist()] == [1, 2, 4, 5]
    with pytest.raises(io.InputError, match=f"line {8 + bool(head)}: 'x' in column"):
        list(later.feed(bad))
    later.begin()
    assert [batch.rows.tolist() for batch in later.feed(head + good)] == [[1]]

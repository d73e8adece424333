"""Find the tables in paths, frames, arrays or iterators, and the format of a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.events.batch import Table
from fourrates.events.clock import look_like_times
from fourrates.events.columns import checked_column
from fourrates.events.rows import InputError
from fourrates.io.formats import arrow_tables, csv_tables, json_tables, seekable_tables
from fourrates.io.lines import MAX_LINE
from fourrates.io.opening import Chain, first_line, is_text, named, opened, pyarrow, spooled

if TYPE_CHECKING:
    from fourrates.io.events import Events
    from fourrates.io.history import NewPart

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
PACKED = (".gz", ".bz2", ".zst", ".lz4")
HEAD = 1 << 16  # bytes read to detect the format


def tables(source: Any, events: Events) -> Iterator[Table]:
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, list | tuple) and source and all(isinstance(path, str | os.PathLike) for path in source):
        for path in paths(source, may_be_empty=events.history is not None):
            yield from _file_tables(path, events)
        return
    if isinstance(source, list | tuple) and not source:
        raise InputError("no file given")
    if hasattr(source, "__arrow_c_stream__"):
        pa = pyarrow("pyarrow")
        try:
            reader = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowException as error:
            raise InputError(f"frame: {first_line(error)}") from None
        yield from arrow_tables(reader, "frame", events)
    elif isinstance(source, Mapping):
        yield _frame({str(name): _column(value, str(name)) for name, value in source.items()})
    elif isinstance(source, tuple) and len(source) == 2 and all(np.ndim(column) == 1 for column in source):
        yield _frame({"y_true": _column(source[0], "y_true"), "y_pred": _column(source[1], "y_pred")})
    elif isinstance(source, np.ndarray):
        if source.ndim != 2 or source.shape[1] != 2:
            raise InputError(f"an array of shape {source.shape}; two columns are needed, true labels and predictions")
        yield _frame({"y_true": source[:, 0], "y_pred": source[:, 1]})
    elif isinstance(source, Iterable) and not hasattr(source, "columns"):
        yield from _pair_tables(iter(source))
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(source)
        except TypeError:
            raise TypeError(f"cannot read events from {type(source).__name__}") from None
        arrow = (frame.collect() if isinstance(frame, nw.LazyFrame) else frame).to_arrow()
        yield from arrow_tables(arrow.to_reader(), "frame", events)


def _column(values: Any, name: str) -> Any:
    """A column of a mapping; other types, such as series, as the arrays they convert to."""
    is_ours = isinstance(values, list | tuple | np.ndarray) or (
        hasattr(values, "null_count") and hasattr(values, "type")
    )
    try:
        return checked_column(values if is_ours else np.asarray(values), name)
    except InputError as error:
        raise InputError(f"frame: {error}") from None


def _frame(data: dict[str, Any]) -> Table:
    sizes = {name: len(column) for name, column in data.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"columns of different length: {', '.join(f'{name} {size}' for name, size in sizes.items())}")
    size = next(iter(sizes.values()), 0)
    return Table(data, "frame", np.arange(1, size + 1), times=look_like_times(data), sound=True)


def _pair_tables(pairs: Iterator[Any]) -> Iterator[Table]:
    first = 1
    while chunk := list(islice(pairs, 1 << 14)):
        try:
            truths, preds = (list(side) for side in zip(*chunk, strict=True))
        except (TypeError, ValueError):
            raise InputError("an iterator must give pairs (y_true, y_pred)") from None
        yield Table({"y_true": truths, "y_pred": preds}, "iterator", np.arange(first, first + len(chunk)))
        first += len(chunk)


def paths(names: Sequence[str | os.PathLike[str]], may_be_empty: bool = False) -> list[str]:
    """All files of paths, globs and folders, in order; those of a glob or folder sorted by name."""
    files: list[str] = []
    for given in names:
        name = os.fspath(given)
        if name == "-":
            files.append(name)
        elif os.path.isdir(name):
            inside = sorted(str(path) for path in Path(name).iterdir() if _bare_suffix(path.name) in SUFFIXES)
            if not inside and not may_be_empty:
                raise InputError(f"{name}: no file in this folder ends in {', '.join(SUFFIXES)}")
            files += inside
        elif os.path.exists(name) or not glob.has_magic(name):
            files.append(name)
        elif matched := sorted(path for path in glob.glob(name, recursive=True) if not os.path.isdir(path)):
            files += matched
        else:
            raise InputError(f"{name}: no file matches")
    return files


def _bare_suffix(name: str) -> str:
    """The suffix of the format, without that of the compression."""
    stem, suffix = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if suffix in PACKED else suffix


def _file_tables(path: str, events: Events) -> Iterator[Table]:
    """The tables of a file; only the new part of one read before."""
    if events.history is None or not os.path.isfile(path):
        yield from _tables_of(path, events, None)
    elif (part := events.history.begin(path)) is not None:
        for table in _tables_of(path, events, part):
            if (new := part.new_rows(table)) is not None:
                yield new


def _tables_of(path: str, events: Events, part: NewPart | None) -> Iterator[Table]:
    source = named(path)
    stream, on_disk = opened(path)
    pa = pyarrow("pyarrow")
    try:
        head = _head(stream, source)
        stream = Chain(head, stream)
        suffix = _bare_suffix(path)
        kind = _kind(head, suffix, source)
        if not on_disk or kind not in ("jsonl", "csv"):
            part = None  # it is read from its beginning
        elif part is not None:
            if (text := part.text()) is None:
                return
            stream.close()
            stream = text
        if kind in ("parquet", "ipc file"):
            with open(path, "rb") if on_disk else spooled(stream) as file:
                yield from seekable_tables(kind, file, source, events)
        elif kind == "ipc stream":
            yield from arrow_tables(pa.ipc.open_stream(pa.PythonFile(stream, "r")), source, events)
        elif kind == "jsonl":
            yield from json_tables(stream, source, events, part)
        else:
            yield from csv_tables(stream, head, source, events, part)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:  # the last: names that are no text
        raise InputError(f"{source}: {first_line(error)}") from None
    finally:
        stream.close()


def _head(stream: Any, source: str) -> bytes:
    """The bytes up to the end of the first line at least; fewer if they are not text."""
    pieces: list[bytes] = []
    size = 0
    while more := stream.read(HEAD):
        pieces.append(more)
        size += len(more)
        if b"\n" in more or not (is_text(more) if len(pieces) == 1 else b"\0" not in more):
            break
        if size > MAX_LINE:
            raise InputError(f"{source}: the first line is longer than {MAX_LINE:,} bytes")
    return b"".join(pieces)


def _kind(head: bytes, suffix: str, source: str) -> str:
    if not head.strip():
        raise InputError(f"{source}: empty")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "ipc file"
    if head.startswith(b"\xff\xff\xff\xff"):
        return "ipc stream"
    if suffix in (".parquet", ".pq"):
        raise InputError(f"{source}: not a Parquet file, whatever its name")
    if suffix in (".arrow", ".feather", ".ipc"):
        raise InputError(f"{source}: not an Arrow file, whatever its name")
    if not is_text(head):
        raise InputError(f"{source}: neither CSV, TSV, JSON lines, Parquet nor Arrow; it holds binary data")
    return "jsonl" if suffix in (".jsonl", ".ndjson", ".json") or head.lstrip().startswith(b"{") else "csv"

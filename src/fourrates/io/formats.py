"""Readers for CSV, JSON lines, Parquet and Arrow."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.events.batch import Table
from fourrates.events.clock import looks_like_time
from fourrates.events.columns import EMPTY, checked_column
from fourrates.events.rows import InputError
from fourrates.io.lines import MAX_LINE, LineBuffer, check_length
from fourrates.io.opening import BLOCK, Chain, first_line, opened, pyarrow

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.io.events import Events
    from fourrates.io.history import NewPart

ROWS = 1 << 18  # per batch, if the format lets us choose
DELIMITERS = (",", "\t", ";", "|")
HEADER_LINE = re.compile(rb"\s*[^\r\n]*[\r\n]*")
NO_HEADER = ("y_true", "y_pred")  # columns of a CSV file without a header


def seekable_tables(kind: str, file: Any, source: str, events: Events) -> Iterator[Table]:
    """Tables of a Parquet or Arrow file, read from its end."""
    pa = pyarrow("pyarrow")
    if kind == "ipc file":
        # Read, not mapped, for if another process truncated or changed a mapped file, this one could crash.
        reader = pa.ipc.open_file(pa.OSFile(file.name) if isinstance(file.name, str) else file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        yield from _stream_tables(reader.schema, batches, source, events)
        return
    with pyarrow("pyarrow.parquet").ParquetFile(file, buffer_size=BLOCK) as parquet:
        schema = parquet.schema_arrow
        texts = _texts(schema)
        first = next(parquet.iter_batches(1, columns=texts, use_threads=False), None) if texts else None
        names = _resolve_arrow(schema, first, source, events)
        batches = parquet.iter_batches(ROWS, columns=names, use_threads=False)
        yield from _record_tables(batches, names, source)


def arrow_tables(reader: Any, source: str, events: Events) -> Iterator[Table]:
    yield from _stream_tables(reader.schema, iter(reader), source, events)


def _stream_tables(schema: Any, batches: Iterator[Any], source: str, events: Events) -> Iterator[Table]:
    try:
        first = next(batches, None)
    except pyarrow("pyarrow").ArrowException as error:
        raise InputError(f"{source}, in or after row 1: {first_line(error)}") from None
    names = _resolve_arrow(schema, first, source, events)
    yield from _record_tables(chain([] if first is None else [first], batches), names, source)


def _resolve_arrow(schema: Any, first: Any, source: str, events: Events) -> list[str]:
    """The columns used; the first value of a text column shows whether it is a time."""
    times = [field.name for field in schema if str(field.type).startswith(("timestamp", "date"))]
    if first is not None and first.num_rows and events.columns.time is None and not events.settled:
        times += [name for name in _texts(schema) if looks_like_time(_first_value(first.column(name), source))]
    return list(dict.fromkeys(events.resolve(schema.names, times, source).used()))


def _texts(schema: Any) -> list[str]:
    kinds = ("string", "large_string", "string_view")
    return [field.name for field in schema if str(field.type) in kinds and schema.names.count(field.name) == 1]


def _first_value(column: Any, source: str) -> Any:
    try:
        value = column.slice(0, 1)
        value.validate(full=True)
        return value[0].as_py()
    except pyarrow("pyarrow").ArrowException as error:
        raise InputError(f"{source}, in or after row 1: {first_line(error)}") from None


def _record_tables(batches: Iterable[Any], names: list[str], source: str) -> Iterator[Table]:
    """Tables of the columns used, fully validated first, as a wrong offset could read any memory."""
    pa = pyarrow("pyarrow")
    first = 1
    try:
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                data = {name: checked_column(part.column(name), name) for name in names}
                yield Table(data, source, np.arange(first, first + part.num_rows), sound=True)
                first += part.num_rows
    except InputError as error:
        raise InputError(f"{source}, in or after row {first}: {error}") from None
    except pa.ArrowException as error:
        raise InputError(f"{source}, in or after row {first}: {first_line(error)}") from None


def csv_tables(stream: Any, head: bytes, source: str, events: Events, part: NewPart | None = None) -> Iterator[Table]:
    """Tables of a CSV file with any usual delimiter, or of its new rows in `stream`."""
    header = read_header(head, source, events)
    first = 1 if part is None else part.rows + 1
    if header.there and (part is None or not part.start):
        stream.read(len(HEADER_LINE.match(head)[0]))  # type: ignore[index]
    times = [name for name, value in zip(header.names, header.first, strict=False) if looks_like_time(value)]
    events.resolve(header.names, times, source)

    def locate(row: int) -> str:
        return f"line {_line(source, row, header)}"

    for text in _whole_rows(stream):
        bad: list[Any] = []
        try:
            data = csv_columns(text, header, events, bad)
        except pyarrow("pyarrow").ArrowInvalid as error:
            if "Invalid UTF8" in str(error):
                raise InputError(f"{source}: not text in UTF-8, in or after row {first}") from None
            if not bad:
                raise
            expected = f"{bad[0].actual_columns} fields instead of {bad[0].expected_columns}"
            raise InputError(f"{source}, {locate(first + bad[0].number - 1)}: {expected}") from None
        size = len(next(iter(data.values()))) + len(bad)
        rows = np.delete(np.arange(first, first + size), [row.number - 1 for row in bad])
        events.malformed += len(bad)
        if rows.size:
            yield Table(data, source, rows, locate=locate, sound=True)
        first += size
    if first == 1 and part is None:
        raise InputError(f"{source}: a header and no rows")


def csv_columns(text: bytes, header: Header, events: Events, bad: list[Any]) -> dict[str, Any]:
    """Columns of some CSV rows, read by pyarrow; rows with too many or few fields go to `bad`.

    Labels, keys, ids and versions are text; pyarrow infers the type of scores and times. Unlike pyarrow's own stream
    reader, this leaves no thread behind.
    """
    pa, pc = pyarrow("pyarrow"), pyarrow("pyarrow.csv")
    columns = events.columns
    named = (columns.truth, columns.pred, *columns.by_names, columns.id, columns.version)
    texts = {name for name in named if name is not None}

    def refuse(row: Any) -> str:
        bad.append(row)
        return "error" if events.bad == "reject" else "skip"

    def parsed() -> Any:
        bad.clear()
        return pc.read_csv(
            pa.BufferReader(text),
            pc.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=header.names),
            pc.ParseOptions(delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=refuse),
            pc.ConvertOptions(
                include_columns=list(dict.fromkeys(columns.used())),
                column_types=dict.fromkeys(texts, pa.string()),
                check_utf8=False,  # done below, faster
                strings_can_be_null=True,
                null_values=[word for word in EMPTY if events.labels.read(word) < 0],
                true_values=[],
                false_values=[],
            ),
        )

    table = parsed()
    kinds = {name: str(table.column(name).type) for name in table.column_names}
    odd = {name for name, kind in kinds.items() if kind == "time32[s]"}
    if "int64" in kinds.values() and (b"0x" in text or b"0X" in text):  # pyarrow reads hexadecimal numbers
        odd |= {name for name, kind in kinds.items() if kind == "int64"}
    if odd:  # text, as elsewhere
        texts |= odd
        table = parsed()
    data = {name: table.column(name).combine_chunks() for name in table.column_names}
    for column in data.values():
        _check_utf8(column)
    return data


def _whole_rows(stream: Any) -> Iterator[bytes]:
    """Rows of a stream, about a megabyte at a time; a quoted line end does not end a row."""
    rest = b""
    while block := stream.read(BLOCK):
        block = rest + block
        end = len(block) if len(block) > MAX_LINE else _end_of_rows(block)
        rest = block[end:]
        if end:
            yield block[:end]
    if rest:
        yield rest


def _end_of_rows(text: bytes) -> int:
    """The end of the last complete row; 0 if there is none."""
    end = len(text)
    pieces = text.split(b'"')
    for place in range(len(pieces) - 1, -1, -1):  # every second piece is quoted
        if place % 2 == 0 and (at := pieces[place].rfind(b"\n")) >= 0:
            return end - len(pieces[place]) + at + 1
        end -= len(pieces[place]) + 1
    return 0


def _check_utf8(column: Any) -> None:
    """Raise if a string is not UTF-8; one look at all bytes suffices for ASCII, the common case."""
    data = column.buffers()[-1] if str(column.type) == "string" else None
    if data is not None and data.size and np.frombuffer(data, np.uint8).max() >= 128:
        column.validate(full=True)


@dataclass(frozen=True, slots=True)
class Header:
    names: list[str]
    first: list[str]  # the first row of values
    delimiter: str
    there: bool = True  # if false the names are ours


def read_header(head: bytes, source: str, events: Events) -> Header:
    try:
        lines = head.decode("utf-8-sig", "ignore").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{source}: not text in UTF-8") from None
    lines = [line for line in islice(lines, 100) if line.strip()][:2]
    if not lines:
        raise InputError(f"{source}: no header in the first lines")
    delimiter = max(DELIMITERS, key=lines[0].count)
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{source}: {first_line(error)}") from None
    names = rows[0]
    if len(names) == 2 and all(events.labels.read(name) >= 0 for name in names):
        events._on_message("no header, so the first column is read as the label, the second as the prediction")
        return Header([*NO_HEADER], names, delimiter, there=False)
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"{source}: column {twice!r} is there twice")
    return Header(names, rows[1] if len(rows) > 1 else [], delimiter)


def _line(source: str, row: int, header: Header) -> int:
    """The line of a row; blank lines and quoted line ends make the two differ."""
    if not os.path.exists(source):  # a pipe cannot be read again
        return row + header.there
    with opened(source)[0] as stream:
        bytes_ = io.BufferedReader(Chain(b"", stream))
        text = io.TextIOWrapper(bytes_, encoding="utf-8", errors="replace", newline="")
        reader, left = csv.reader(text, delimiter=header.delimiter), row + header.there
        with suppress(csv.Error):
            for fields in reader:
                left -= bool(fields)
                if left == 0:
                    return reader.line_num
    return row + header.there


def json_tables(stream: Any, source: str, events: Events, part: NewPart | None = None) -> Iterator[Table]:
    """Tables of a JSON lines file, or of its new lines in `stream`."""
    buffer = LineBuffer()
    first, row = (1, 1) if part is None else (part.lines + 1, part.rows + 1)
    while block := stream.read(BLOCK):
        if whole := buffer.feed(block):
            lines = whole[:-1].split(b"\n")
            check_length(lines, source, first)
            before = events.malformed
            for table in json_table(lines, source, first, row, events):
                yield table
                row += table.size
            row += events.malformed - before
            first += len(lines)
        if buffer.size > MAX_LINE:
            break  # it need not be read to its end to be too long
    check_length([buffer.rest()], source, first)
    if (rest := buffer.rest()).strip():
        yield from json_table([rest], source, first, row, events)


def json_table(lines: list[bytes], source: str, first: int, row: int, events: Events) -> Iterator[Table]:
    """A table of JSON lines, numbered from line `first` and row `row`; nothing if all are blank."""
    used = events.columns.used() if events.settled else None
    data = None if used is None else _decoded_columns(lines, tuple(dict.fromkeys(used)))
    there = good = [*range(len(lines))]
    if data is None:
        there = [at for at, line in enumerate(lines) if line.strip()]
        good, records = _records(lines, there, source, first, events)
        if not records:
            return
        if used is None:
            names = list(dict.fromkeys(chain.from_iterable(records)))
            times = [name for name in names if looks_like_time(records[0].get(name))]
            used = events.resolve(names, times, source).used()
        data = {name: [record.get(name) for record in records] for name in used}
    rows = np.arange(row, row + len(there))[good]
    yield Table(data, source, rows, (), line_of(np.array(there) + first, row))


def _decoded_columns(lines: list[bytes], names: tuple[str, ...]) -> dict[str, list[Any]] | None:
    """Named values of JSON objects; None if a line needs a closer look, such as one with NaN."""
    try:
        records = _decoder(names).decode(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        return None
    if len(records) != len(lines):
        return None
    return {name: [*map(attrgetter(f"_{at}"), records)] for at, name in enumerate(names)}


@functools.lru_cache(maxsize=8)
def _decoder(names: tuple[str, ...]) -> Any:
    """A decoder for lists of objects with these names; it skips all others."""
    import msgspec

    fields = [(f"_{at}", Any, None) for at in range(len(names))]
    rename = {f"_{at}": name for at, name in enumerate(names)}
    return msgspec.json.Decoder(list[msgspec.defstruct("Record", fields, rename=rename, gc=False)])  # type: ignore[misc]


def line_of(lines: npt.NDArray[np.int64], first: int) -> Callable[[int], str]:
    """A function from a row to its line, given the lines of the rows from `first` on."""
    return lambda row: f"line {lines[row - first]}"


def _records(
    lines: list[bytes], there: list[int], source: str, first: int, events: Events
) -> tuple[list[int], list[dict[str, Any]]]:
    """The lines that hold an object, by their places in `there`, and the objects; the others raise, or are counted."""
    good, records = [], []
    for place, at in enumerate(there):
        try:
            records.append(_json_record(lines[at], source, first + at))
            good.append(place)
        except InputError:
            if events.bad == "reject":
                raise
    events.malformed += len(there) - len(good)
    return good, records


def _json_record(line: bytes, source: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}, line {number}: not JSON ({first_line(error)})") from None
    if not isinstance(record, dict):
        raise InputError(f"{source}, line {number}: {type(record).__name__}, not an object with named values")
    return record

"""One reader a format: CSV, JSON lines, Parquet, Arrow."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.events.batch import Table
from fourrates.events.clock import looks_like_time
from fourrates.events.columns import EMPTY, checked_column
from fourrates.events.rows import InputError
from fourrates.io.ahead import Loan, closed_at_exit
from fourrates.io.lines import MAX_LINE, LineBuffer, check_length
from fourrates.io.opening import BLOCK, Readable, first_line, opened, pyarrow

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.io.events import Events
    from fourrates.io.history import NewPart

ROWS = 1 << 18  # in a batch, where the format lets us choose
DELIMITERS = (",", "\t", ";", "|")
NO_HEADER = ("y_true", "y_pred")  # the columns of a CSV file that begins with values


def seekable_tables(kind: str, file: Any, source: str, events: Events) -> Iterator[Table]:
    """Tables of a Parquet or Arrow file, read from its end."""
    pa = pyarrow("pyarrow")
    if kind == "ipc file":
        # Read, not mapped: a map that another process cuts short or changes under our hands would end this one.
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
    """Tables of a stream of Arrow batches."""
    yield from _stream_tables(reader.schema, iter(reader), source, events)


def _stream_tables(schema: Any, batches: Iterator[Any], source: str, events: Events) -> Iterator[Table]:
    try:
        first = next(batches, None)
    except pyarrow("pyarrow").ArrowException as error:
        raise InputError(f"{source}, in or after row 1: {first_line(error)}") from None
    names = _resolve_arrow(schema, first, source, events)
    yield from _record_tables(chain([] if first is None else [first], batches), names, source)


def _resolve_arrow(schema: Any, first: Any, source: str, events: Events) -> list[str]:
    """The columns used; of text, the first value says whether it is a time."""
    times = [field.name for field in schema if str(field.type).startswith(("timestamp", "date"))]
    if first is not None and first.num_rows and events.columns.time is None and not events.settled:
        times += [name for name in _texts(schema) if looks_like_time(_first_value(first.column(name), source))]
    return list(dict.fromkeys(events.resolve(schema.names, times, source).used()))


def _texts(schema: Any) -> list[str]:
    """The columns of text whose names are theirs alone."""
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
    """Tables of the columns used, each validated in full before a value is read: a wrong offset reads anywhere."""
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
    """Tables of a CSV file with any of the usual delimiters; of its new lines where only a part is to be read."""
    return closed_at_exit(_csv_tables(stream, head, source, events, part))


def _csv_tables(
    stream: Any, head: bytes, source: str, events: Events, part: NewPart | None
) -> Generator[Table, None, None]:
    pa = pyarrow("pyarrow")
    pc = pyarrow("pyarrow.csv")
    header, delimiter = read_header(head, source, events)
    first = 1 if part is None else part.rows + 1
    if part is not None:
        stream = part.text(_up_to_header(head) if header.there else b"")
    times = [name for name, value in zip(header.names, header.first, strict=False) if looks_like_time(value)]
    columns = events.resolve(header.names, times, source)
    types = {name: pa.string() for name in (columns.truth, columns.pred, columns.by, columns.id) if name is not None}
    invalid: list[Any] = []

    def refuse(row: Any) -> str:
        invalid.append(row)
        return "error"

    def locate(row: int) -> str:
        return f"line {_line(source, row, delimiter, header.there)}"

    loan = Loan(stream)
    try:
        reader = pc.open_csv(
            loan.file,
            read_options=pc.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=header.names, skip_rows=header.there
            ),
            parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=pc.ConvertOptions(
                include_columns=list(dict.fromkeys(columns.used())),
                column_types=types,
                check_utf8=False,  # done below, faster
                strings_can_be_null=True,
                null_values=[word for word in EMPTY if events.labels.read(word) < 0],
            ),
        )
        for batch in reader:
            if batch.num_rows:
                _check_utf8(batch)
                rows = np.arange(first, first + batch.num_rows)
                data = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield Table(data, source, rows, locate=locate, sound=True)
                first += batch.num_rows
    except pa.ArrowInvalid as error:
        number = re.search(r"Row #(\d+)", str(error))
        if invalid:
            bad = invalid[0]
            row = (bad.number or first + 1) - header.there
            raise InputError(
                f"{source}, {locate(row)}: {bad.actual_columns} fields where {bad.expected_columns} belong"
            ) from None
        if value := re.search(r"invalid value '(.*)'", str(error)):
            name = next((n for n in columns.used() if f"column #{header.names.index(n)}:" in str(error)), None)
            row = int(number[1]) - header.there if number else first
            what = f"{value[1]!r}{f' in column {name!r}' if name else ''}"
            raise InputError(f"{source}, {locate(row)}: {what} is of another kind than those before") from None
        if "Invalid UTF8" in str(error):
            raise InputError(f"{source}: not text in UTF-8, in or after row {first}") from None
        raise
    finally:
        reader = None
        loan.end()
    if first == 1 and part is None:
        raise InputError(f"{source}: a header and no rows")


def _up_to_header(head: bytes) -> bytes:
    """The first bytes of a CSV file up to the end of the line that holds its header."""
    blank = len(head) - len(head.lstrip())
    return head[: head.index(b"\n", blank) + 1]


def _check_utf8(batch: Any) -> None:
    """Raise if a string is not UTF-8. One look at all bytes settles it where they are ASCII, as they mostly are."""
    for column in batch.columns:
        data = column.buffers()[-1] if str(column.type) == "string" else None
        if data is not None and data.size and np.frombuffer(data, np.uint8).max() >= 128:
            column.validate(full=True)


@dataclass(frozen=True, slots=True)
class Header:
    """How a CSV file begins."""

    names: list[str]
    first: list[str]  # the first row of values
    there: bool = True  # false: the file begins with values, the names are ours


def read_header(head: bytes, source: str, events: Events) -> tuple[Header, str]:
    """The header of a CSV file, and its delimiter."""
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
        events._say("no header: the first column is taken for the label, the second for the prediction")
        return Header([*NO_HEADER], names, there=False), delimiter
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"{source}: column {twice!r} is there twice")
    return Header(names, rows[1] if len(rows) > 1 else []), delimiter


def _line(source: str, row: int, delimiter: str, header: bool) -> int:
    """The line that the row stands in: blank lines and quoted line ends make it differ from the row."""
    if not os.path.exists(source):  # a pipe cannot be read again
        return row + header
    with opened(source)[0] as stream:
        text = io.TextIOWrapper(io.BufferedReader(Readable(stream)), encoding="utf-8", errors="replace", newline="")
        reader, left = csv.reader(text, delimiter=delimiter), row + header
        with suppress(csv.Error):
            for fields in reader:
                left -= bool(fields)
                if left == 0:
                    return reader.line_num
    return row + header


def json_tables(stream: Any, source: str, max_line: int = MAX_LINE, part: NewPart | None = None) -> Iterator[Table]:
    """Tables of a file of JSON lines; of its new lines where only a part is to be read."""
    buffer, first, row = LineBuffer(max_line), 1, 1
    if part is not None:
        stream, first, row = part.text(b""), part.lines + 1, part.rows + 1
    while block := stream.read(BLOCK):
        if whole := buffer.feed(block):
            lines = whole[:-1].split(b"\n")
            check_length(lines, max_line, source, first)
            for table in json_table(lines, source, first, row):
                yield table
                row += table.size
            first += len(lines)
        if buffer.size > max_line:
            break  # it need not be read to its end to be too long
    check_length([buffer.rest()], max_line, source, first)
    if (rest := buffer.rest()).strip():
        yield from json_table([rest], source, first, row)


def json_table(lines: list[bytes], source: str, first: int, row: int) -> Iterator[Table]:
    """A table of some JSON lines, given the numbers of the first line and of the first row; none if all are blank."""
    numbers = np.arange(first, first + len(lines))
    if not all(lines) or any(line.isspace() for line in lines):
        numbers = numbers[[bool(line.strip()) for line in lines]]
        lines = [line for line in lines if line.strip()]
    if not lines:
        return
    try:
        records = json.loads(b"[" + b",".join(lines) + b"]")
        sound = len(records) == len(lines) and all(type(record) is dict for record in records)
    except (ValueError, RecursionError):
        sound = False
    if not sound:
        records = [_json_record(line, source, int(number)) for line, number in zip(lines, numbers, strict=True)]
    names = list(records[0])
    seen = set(names)
    for record in records:
        if not record.keys() <= seen:
            names += [name for name in record if name not in seen]
            seen.update(record)
    data = _Records(records, names)
    times = [name for name in names if looks_like_time(records[0].get(name))]
    yield Table(data, source, np.arange(row, row + len(lines)), times, line_of(numbers, row))


def line_of(lines: npt.NDArray[np.int64], first: int) -> Callable[[int], str]:
    """Says in which line a row stands, given the lines of the rows from `first` on."""
    return lambda row: f"line {lines[row - first]}"


def _json_record(line: bytes, source: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}, line {number}: not JSON ({first_line(error)})") from None
    if not isinstance(record, dict):
        raise InputError(f"{source}, line {number}: {type(record).__name__}, not an object with named values")
    return record


class _Records(Mapping[str, list[Any]]):
    """Columns of a list of records, made when asked for; a name that a record lacks is a missing value."""

    def __init__(self, records: list[dict[str, Any]], names: list[str]) -> None:
        self.records, self.names = records, names

    def __getitem__(self, name: str) -> list[Any]:
        return [record.get(name) for record in self.records]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

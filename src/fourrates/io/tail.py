"""Lines that are still arriving."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from fourrates.events.batch import Batch, Table
from fourrates.events.clock import looks_like_time
from fourrates.events.columns import pyarrow
from fourrates.events.door import Columns
from fourrates.events.rows import InputError
from fourrates.io.events import Events
from fourrates.io.formats import NO_HEADER, Header, csv_columns, json_table, line_of, read_header
from fourrates.io.lines import LineBuffer, check_length
from fourrates.io.opening import first_line, is_text

MANY = 500  # lines from which on pyarrow is quicker
MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of some files
Refuse = Callable[[str, int, bytes, str], None]


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file, as learned from its first lines, and the next line and row."""

    json: bool | None = None  # None before the first line
    header: bytes | None = None
    delimiter: Annotated[str, Meta(pattern="^[,\t;|]$", max_length=1)] = ","
    line: int = 1
    row: Annotated[int, Meta(ge=1)] = 1
    columns: Columns | None = None

    def __post_init__(self) -> None:
        missing = self.json is False and (self.columns is None or not {*self.columns.used()} <= {*self.names})
        if self.row > self.line or missing:
            raise ValueError("a damaged note of a file's format")

    @property
    def names(self) -> list[str]:
        """The columns of a CSV file."""
        return [*NO_HEADER] if self.header is None else _fields([self.header], self.delimiter)[0]


class Tail:
    r"""Lines that are still arriving, CSV or JSON lines, to batches of events.

    Parameters
    ----------
    events : Events
        What to read, as made by :func:`read`; its source is not touched.
    source : str
        The name of the stream in messages.
    refuse : callable, optional
        Given source, number, text and problem of each line that is no event; without it the first one raises.

    Examples
    --------
    >>> from fourrates import io
    >>> tail = io.Tail(io.read("-"), "a pipe")
    >>> [batch.truths.tolist() for batch in tail.feed(b"label,prediction\n1,1\n0,")]
    [[1]]
    >>> [batch.truths.tolist() for batch in tail.feed(b"1\n")]
    [[0]]
    """

    def __init__(self, events: Events, source: str, *, refuse: Refuse | None = None) -> None:
        self.events, self.source = events, source
        self.refuse = self._skip if refuse is None and events.bad == "skip" else refuse
        self.line = self.row = 1  # the next ones
        self._buffer = LineBuffer()
        self._json: bool | None = None
        self._header: Header | None = None
        self._first: bytes | None = None  # the line of the header
        self._begins = True

    def _skip(self, *_: object) -> None:
        self.events.malformed += 1

    def feed(self, data: bytes) -> Iterator[Batch]:
        if whole := self._buffer.feed(data):
            yield from self._lines(whole[:-1].split(b"\n"))

    def finish(self) -> Iterator[Batch]:
        rest = self._buffer.rest()
        self._buffer.clear()
        if rest.strip():
            yield from self._lines([rest])

    def begin(self) -> None:
        """Note that the next line is the first of another file, which may have a header again."""
        self.line = self.row = 1
        self._begins = True

    @property
    def format(self) -> Format:
        columns = self.events.columns if self.events.settled else None
        delimiter = "," if self._header is None else self._header.delimiter
        return Format(self._json, self._first, delimiter, self.line, self.row, columns)

    def restore(self, saved: Format) -> None:
        self._json, self._first = saved.json, saved.header
        self.line, self.row, self._begins = saved.line, saved.row, saved.json is None
        if saved.json is False or saved.header is not None:
            self._header = Header(saved.names, [], saved.delimiter)
        if saved.columns is not None:
            self.events.settle(saved.columns)

    def _lines(self, lines: list[bytes]) -> Iterator[Batch]:
        while self._begins and lines:
            line = lines[0]
            if line.strip() and self._is_first(lines):
                self._begins = False
                if line.removeprefix(MARK) != self._first:
                    continue
            elif line.strip():
                continue  # it was refused, so the next one may be the first
            del lines[0]
            self.line += 1
        first = self.line
        self.line += len(lines)
        if self._first is not None and self._first in lines:  # another file follows the first
            lines = [b"" if line == self._first else line for line in lines]
        if lines:
            yield from self._batches(lines, first)

    def _is_first(self, lines: list[bytes]) -> bool:
        """Learn the format from the beginning of a file; false if the first line was refused, and taken away."""
        try:
            self._learn(lines)
            return True
        except InputError as error:
            if self.refuse is None or self._header is not None or is_text(lines[0]):
                raise  # a file without these columns is not a file with a bad line
            self.refuse(self.source, self.line, lines.pop(0), str(error))
            self.line += 1
            return False

    def _learn(self, lines: list[bytes]) -> None:
        line = lines[0].removeprefix(MARK)
        check_length([line], self.source, self.line)
        if line == self._first:
            return
        if not is_text(line + b"\n"):
            raise InputError(f"{self.source}: neither CSV nor JSON lines; it holds binary data")
        known = self._header
        self._json = line.lstrip().startswith(b"{")
        if self._json:
            return
        if known is not None and self.events.settled:
            names = next(iter(_fields([line], known.delimiter)), [])
            if not set(self.events.columns.used()) <= set(names) or len(set(names)) < len(names):
                return  # a file that continues without a header
        self._header = read_header(b"\n".join(lines[:2]), self.source, self.events)
        self._first = line if self._header.there else None
        if not self.events.settled:
            values = dict(zip(self._header.names, self._header.first, strict=False))
            times = [name for name, value in values.items() if looks_like_time(value)]
            self.events.resolve(self._header.names, times, self.source)

    def _batches(self, lines: list[bytes], first: int) -> Iterator[Batch]:
        """The events of lines; those that are none are refused, found by halving."""
        malformed = self.events.malformed
        try:
            tables = [*self._tables(lines, first)]
            batches = [batch for table in tables for batch in self.events.batch(table)]
        except InputError as error:
            if self.refuse is None:
                raise
            if len(lines) == 1:
                self.refuse(self.source, first, lines[0], str(error))
                self.row += 1  # a row all the same, so that those after it keep their places
                return
            half = len(lines) // 2
            yield from self._batches(lines[:half], first)
            yield from self._batches(lines[half:], first + half)
            return
        self.row += sum(table.size for table in tables) + self.events.malformed - malformed
        yield from batches

    def _tables(self, lines: list[bytes], first: int) -> Iterator[Table]:
        check_length(lines, self.source, first)
        if self._json:
            return json_table(lines, self.source, first, self.row, self.events)
        return self._csv_table(lines, first, self.row)

    def _csv_table(self, lines: list[bytes], first: int, row: int) -> Iterator[Table]:
        assert self._header is not None
        names = self._header.names
        if (data := self._columns(lines)) is not None:
            size = len(lines)
            place = line_of(np.arange(first, first + size), row)
            yield Table(data, self.source, np.arange(row, row + size), (), place, sound=True)
            return
        try:
            rows = _fields(lines, self._header.delimiter)
        except UnicodeDecodeError:
            raise InputError(f"{self.source}: not text in UTF-8, in or after line {first}") from None
        except csv.Error as error:
            raise InputError(f"{self.source}, in or after line {first}: {first_line(error)}") from None
        numbers = np.arange(first, first + len(rows))
        if not set(map(len, rows)) <= {0, len(names)}:
            bad = next(i for i, row in enumerate(rows) if len(row) not in (0, len(names)))
            expected = f"{len(rows[bad])} fields instead of {len(names)}"
            raise InputError(f"{self.source}, line {numbers[bad]}: {expected}")
        if not all(rows):
            numbers = numbers[[bool(row) for row in rows]]
            rows = [row for row in rows if row]
        if not rows:
            return
        data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        times = [name for name, value in zip(names, rows[0], strict=True) if looks_like_time(value)]
        yield Table(data, self.source, np.arange(row, row + len(rows)), times, line_of(numbers, row))

    def _columns(self, lines: list[bytes]) -> dict[str, Any] | None:
        """The columns of many plain lines, read by pyarrow; None if one of them has to be looked at."""
        assert self._header is not None
        text = b"\n".join(lines)
        if len(lines) < MANY or not self.events.settled or b'"' in text or b"\r" in text or b"" in lines:
            return None
        try:
            data = csv_columns(text, self._header, self.events, [])
        except pyarrow("pyarrow").ArrowException:
            return None
        return data if len(data[self.events.columns.used()[0]]) == len(lines) else None


def _fields(lines: list[bytes], delimiter: str) -> list[list[str]]:
    """The fields of each line. A quote that is not closed ends with its line, and the next line is another event."""
    text = b"\n".join(lines).decode().replace("\r", "").split("\n")
    if b'"' in b"".join(lines):
        return [next(iter(csv.reader([line], delimiter=delimiter, strict=True)), []) for line in text]
    return list(csv.reader(text, delimiter=delimiter))

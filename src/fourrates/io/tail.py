"""Lines that are still arriving."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial

import numpy as np

from fourrates.io.events import Batch, Events
from fourrates.io.formats import Header, json_table, line_of, read_header
from fourrates.io.opening import is_text
from fourrates.io.table import InputError, Table
from fourrates.io.values import looks_like_time


class Tail:
    r"""Lines that are still arriving, CSV or JSON lines, to batches of events.

    Parameters
    ----------
    events : Events
        What to read, as made by :func:`read`; its source is not touched.
    source : str
        The name of the stream in messages.

    Examples
    --------
    >>> from fourrates import io
    >>> tail = io.Tail(io.read("-"), "a pipe")
    >>> [batch.truths.tolist() for batch in tail.feed(b"label,prediction\n1,1\n0,")]
    [[1]]
    >>> [batch.truths.tolist() for batch in tail.feed(b"1\n")]
    [[0]]
    """

    def __init__(self, events: Events, source: str) -> None:
        self.events, self.source = events, source
        self.line = self.row = 1  # the next ones
        self._rest = b""
        self._json: bool | None = None
        self._header: Header | None = None
        self._delimiter = ","
        self._first: bytes | None = None  # the line of the header

    def feed(self, data: bytes) -> Iterator[Batch]:
        """The events in the lines that these bytes complete."""
        whole, end, self._rest = (self._rest + data).rpartition(b"\n")
        if end:
            yield from self._lines(whole.split(b"\n"))

    def finish(self) -> Iterator[Batch]:
        """The event of a last line that has no end."""
        rest, self._rest = self._rest, b""
        if rest.strip():
            yield from self._lines([rest])

    def _lines(self, lines: list[bytes]) -> Iterator[Batch]:
        first = self.line
        self.line += len(lines)
        while self._json is None and lines:
            if lines[0].strip():
                if not is_text(lines[0] + b"\n"):
                    raise InputError(f"{self.source}: neither CSV nor JSON lines; it holds binary data")
                self._json = lines[0].lstrip().startswith(b"{")
                if not self._json:
                    self._header, self._delimiter = read_header(b"\n".join(lines[:2]), self.source, self.events)
                    if self._header.there:
                        self._first = lines[0]
                        del lines[0]
                        first += 1
            else:
                del lines[0]
                first += 1
        if self._first is not None and self._first in lines:  # another file came behind the first
            lines = [b"" if line == self._first else line for line in lines]
        if not lines:
            return
        make = partial(json_table, lines, self.source) if self._json else partial(self._csv_table, lines)
        for table in make(first, self.row):
            self.row += table.size
            yield from self.events.batch(table)

    def _csv_table(self, lines: list[bytes], first: int, row: int) -> Iterator[Table]:
        assert self._header is not None
        names = self._header.names
        try:
            text = b"\n".join(lines).decode().replace("\r", "")
        except UnicodeDecodeError:
            raise InputError(f"{self.source}: not text in UTF-8, in or after line {first}") from None
        rows = list(csv.reader(text.split("\n"), delimiter=self._delimiter))
        numbers = np.arange(first, first + len(rows))
        if not set(map(len, rows)) <= {0, len(names)}:
            bad = next(i for i, row in enumerate(rows) if len(row) not in (0, len(names)))
            raise InputError(f"{self.source}, line {numbers[bad]}: {len(rows[bad])} fields where {len(names)} belong")
        if not all(rows):
            numbers = numbers[[bool(row) for row in rows]]
            rows = [row for row in rows if row]
        if not rows:
            return
        data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        times = [name for name, value in zip(names, rows[0], strict=True) if looks_like_time(value)]
        yield Table(data, self.source, np.arange(row, row + len(rows)), times, line_of(numbers, row))

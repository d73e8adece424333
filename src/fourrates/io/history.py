"""The files that `detect --state` has read before, so that no row counts twice.

A file of lines is known by its bytes. If it starts with all that was read, reading resumes behind that. Parquet, Arrow
and compressed files are rewritten when they grow, so they are known by their path and their first rows. If these have
not changed, reading resumes behind the last row. Anything else is a new file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, BinaryIO

import numpy as np
from msgspec import Meta

from fourrates.events.batch import Table
from fourrates.events.rows import InputError
from fourrates.io.opening import BLOCK, Chain

HEAD = 1024  # bytes by which most files are distinguished
DISTINCTIVE = 4096  # bytes; files of different names that share a shorter start may be alike by chance
FIRST_ROWS = 1 << 16  # by which a rewritten file is recognized
MOST = 10_000  # files remembered; those not given for longest are forgotten first


Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class FileRecord:
    path: str  # absolute
    device: int
    inode: int
    length: Count  # in bytes; with the two above and the next one the same as long as the file has not changed
    modified: int  # ns
    size: Count  # bytes read, of lines up to the end of the last whole one
    head: str  # SHA-256 of the first of these bytes
    digest: str  # and of all
    rows: Count  # read
    first_rows: str  # SHA-256 of the first rows; empty for a file of lines

    def may_be(self, path: str, about: os.stat_result) -> bool:
        """Whether a file that starts with the same bytes is this one."""
        same = self.path == path or (self.device, self.inode) == (about.st_dev, about.st_ino)
        return self.size <= about.st_size and (same or self.size >= DISTINCTIVE)


FileRecords = Annotated[list[FileRecord], Meta(max_length=MOST)]


class NewPart:
    """A file from the end of what was read of it before, `record`, if anything was."""

    lines = 0  # before the new part
    rows = 0  # before it, and then those read
    start = end = 0  # of the new lines, in bytes
    is_text = False  # whether it is a file of lines
    first_rows = ""
    has_new = False  # whether there are bytes that were not read

    def __init__(
        self, name: str, about: os.stat_result, record: FileRecord | None, on_message: Callable[[str], None]
    ) -> None:
        self.name, self.path = name, os.path.abspath(name)
        self.about, self.record, self._on_message = about, record, on_message

    def find_start(self, records: list[FileRecord]) -> None:
        """Begin behind the longest start of the file that was read before."""
        self._before = [record for record in reversed(records) if record.path == self.path]
        self._digest = hashlib.sha256()
        digest, lines = hashlib.sha256(), 0
        with open(self.path, "rb") as file:
            head = file.read(HEAD)
            file.seek(0)
            alike = [r for r in records if r.may_be(self.path, self.about) and _sha256(head[: r.size]) == r.head]
            for record in sorted(alike, key=lambda record: (record.size, record.path == self.path)):
                while (left := record.size - file.tell()) > 0 and (data := file.read(min(left, BLOCK))):
                    digest.update(data)
                    lines += data.count(b"\n")
                if record.digest == digest.hexdigest():
                    self._digest, self.lines = digest.copy(), lines
                    self.record, self.rows, self.start = record, record.rows, record.size
        self.end = self._size = self.start
        self.has_new = self.start < self.about.st_size

    def text(self) -> Chain | None:
        """The new whole lines, hashed as they are read; None if there are none."""
        self.is_text = True
        self._file = open(self.path, "rb")  # noqa: SIM115 (closed by close)
        about = os.fstat(self._file.fileno())
        if (about.st_dev, about.st_ino) != (self.about.st_dev, self.about.st_ino):
            self.close()
            raise InputError(f"{self.path}: replaced while it was read; try again")
        self.end = _end_of_lines(self._file, self.start)
        if self.end == self.start:
            self._on_message(f"{self.name}: its last line has no end yet; it is left for the next time")
            self.close()
            return None
        self._report(changed=bool(self._before))
        self._file.seek(self.start)
        return Chain(b"", self)

    def read(self, size: int, /) -> bytes:
        data = self._file.read(min(size, self.end - self._size))
        self._hash(data)
        return data

    def close(self) -> None:
        self._file.close()

    def new_rows(self, table: Table) -> Table | None:
        if not self.is_text and not self.first_rows:
            self._recognize(table)
        old = int(np.searchsorted(table.rows, self.rows, side="right"))
        if old == table.size:
            return None
        self.rows = int(table.rows[-1])
        data = {name: column[old:] for name, column in table.data.items()} if old else table.data
        return replace(table, data=data, rows=table.rows[old:])

    def _recognize(self, table: Table) -> None:
        """Find the record of a rewritten file by its first table."""
        digest_of = cache(partial(_first_rows, table))
        known = [record for record in (self.record, *self._before) if record is not None and record.first_rows]
        same = (record for record in known if record.first_rows == digest_of(min(record.rows, FIRST_ROWS)))
        self.record = next(same, None)
        self.rows = 0 if self.record is None else self.record.rows
        self.first_rows = digest_of(FIRST_ROWS)
        self._report(changed=bool(known))

    def _report(self, *, changed: bool) -> None:
        if self.record is not None:
            self._on_message(f"{self.name} has grown; resuming after row {self.rows:,}")
        elif changed:
            self._on_message(f"{self.name} holds something else than when it was read last; it is read as a new file")

    def _hash(self, data: bytes) -> None:
        self._digest.update(data)
        self._size += len(data)

    def to_record(self) -> FileRecord | None:
        """The record to save once the rows were read, that of before if there are none."""
        if not self.has_new or (self.is_text and self.end == self.start):
            return self.record
        with open(self.path, "rb") as file:
            head = file.read(HEAD)
            file.seek(self._size)
            while not self.is_text and (data := file.read(BLOCK)):
                self._hash(data)
        return FileRecord(
            path=self.path,
            device=self.about.st_dev,
            inode=self.about.st_ino,
            length=self.about.st_size,
            modified=self.about.st_mtime_ns,
            size=self._size,
            head=_sha256(head[: self._size]),
            digest=self._digest.hexdigest(),
            rows=self.rows,
            first_rows=self.first_rows,
        )


class History:
    """The files that were read before, `records`, and those that are read now.

    `on_message` is called with a sentence about each file that has grown, changed or is empty.
    """

    def __init__(self, records: Iterable[FileRecord] = (), on_message: Callable[[str], None] | None = None) -> None:
        self._records = list(records)
        self._by_file = {(r.device, r.inode, r.length, r.modified): r for r in self._records}
        self._on_message = on_message or (lambda sentence: None)
        self._given: dict[tuple[int, int], NewPart] = {}  # by device and inode
        self._unchanged: list[str] = []

    def begin(self, path: str) -> NewPart | None:
        """The new part of a file; None if there is nothing new in it."""
        about = os.stat(path)
        file = (about.st_dev, about.st_ino)
        if file in self._given:
            self._on_message(f"{path} is given twice; it is read once")
            return None
        unchanged = self._by_file.get((*file, about.st_size, about.st_mtime_ns))
        part = self._given[file] = NewPart(path, about, unchanged, self._on_message)
        if unchanged is None:
            part.find_start(self._records)
        if part.has_new:
            return part
        if part.record is None:
            self._on_message(f"{path} is empty so far")
        else:
            other = "" if part.record.path == part.path else f", as {part.record.path}"
            self._unchanged.append(f"{path} was read before{other}, and has not changed")
        return None

    def unchanged(self) -> str | None:
        """A sentence about the files that were not read again."""
        if len(self._unchanged) > 1:
            return f"{len(self._unchanged):,} files were read before, and have not changed"
        return self._unchanged[0] if self._unchanged else None

    def records(self) -> FileRecords:
        parts = self._given.values()
        now = [record for part in parts if (record := part.to_record()) is not None]
        if len(now) > MOST:
            raise InputError(f"{len(now):,} files; at most {MOST:,} can be remembered")
        replaced = {part.record for part in parts} | {*now}
        before = [record for record in self._records if record not in replaced]
        return before[max(len(before) + len(now) - MOST, 0) :] + now


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _first_rows(table: Table, size: int) -> str:
    """A digest of the first rows of a table, whatever follows them."""
    columns = []
    for name, column in sorted(table.data.items()):
        first = column[:size]
        values = first if isinstance(first, list) else np.asarray(first).tolist()
        if any(value is not None for value in values):  # else JSON lines may have the name only further down
            columns.append((name, values))
    return _sha256(repr(columns).encode("utf-8", "surrogateescape"))


def _end_of_lines(file: BinaryIO, start: int) -> int:
    """The end of the last whole line of a file; `start` if none ends behind that."""
    end = file.seek(0, os.SEEK_END)
    while end > start:
        first = max(end - BLOCK, start)
        file.seek(first)
        if (at := file.read(end - first).rfind(b"\n")) >= 0:
            return first + at + 1
        end = first
    return start

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
from typing import Annotated, Any

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

    def is_unchanged(self, about: os.stat_result) -> bool:
        now = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        return now == (self.device, self.inode, self.length, self.modified)

    def may_be(self, path: str, about: os.stat_result) -> bool:
        """Whether a file that starts with the same bytes is this one."""
        same = self.path == path or (self.device, self.inode) == (about.st_dev, about.st_ino)
        return self.size <= about.st_size and (same or self.size >= DISTINCTIVE)


FileRecords = Annotated[list[FileRecord], Meta(max_length=MOST)]


class NewPart:
    def __init__(self, path: str, about: os.stat_result, record: FileRecord | None, digest: Any, lines: int) -> None:
        # `start`, `lines` and `rows` are those before it; `rows` grows as they are read. `end` is that of its lines.
        self.path, self.about, self.record, self.lines = path, about, record, lines
        self.start = self.end = self._size = 0 if record is None else record.size
        self.rows = 0 if record is None else record.rows
        self.is_text = True  # whether it is a file of lines
        self.first_rows = ""
        self._digest = digest

    def text(self) -> Chain:
        """The new whole lines, hashed as they are read."""
        self._file = open(self.path, "rb")  # noqa: SIM115 (closed by close)
        about = os.fstat(self._file.fileno())
        if (about.st_dev, about.st_ino) != (self.about.st_dev, self.about.st_ino):
            self.close()
            raise InputError(f"{self.path}: replaced while it was read; try again")
        self._file.seek(self.start)
        return Chain(b"", self)

    def read(self, size: int, /) -> bytes:
        data = self._file.read(min(size, self.end - self._size))
        self.hash(data)
        return data

    def close(self) -> None:
        self._file.close()

    def new_rows(self, table: Table) -> Table | None:
        old = int(np.searchsorted(table.rows, self.rows, side="right"))
        if old == table.size:
            return None
        self.rows = int(table.rows[-1])
        data = {name: column[old:] for name, column in table.data.items()} if old else table.data
        return replace(table, data=data, rows=table.rows[old:])

    def hash(self, data: bytes) -> None:
        self._digest.update(data)
        self._size += len(data)

    def to_record(self) -> FileRecord:
        """The record to save, once the rows were read."""
        with open(self.path, "rb") as file:
            head = file.read(HEAD)
            file.seek(self._size)
            while not self.is_text and (data := file.read(BLOCK)):
                self.hash(data)
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
        self._say = on_message or (lambda sentence: None)
        self._given: dict[tuple[int, int], NewPart | FileRecord] = {}  # by device and inode
        self._unchanged: list[str] = []

    def begin(self, path: str) -> NewPart | None:
        """The new part of a file; None if there is nothing new in it."""
        full, about = os.path.abspath(path), os.stat(path)
        file = (about.st_dev, about.st_ino)
        if file in self._given:
            self._say(f"{path} is given twice; it is read once")
            return None
        unchanged = next((record for record in self._records if record.is_unchanged(about)), None)
        record, digest, lines = (unchanged, None, 0) if unchanged else self._longest_start(full, about)
        if record is not None and (unchanged or record.size == about.st_size):
            self._given[file] = record
            other = "" if record.path == full else f", as {record.path}"
            self._unchanged.append(f"{path} was read before{other}, and has not changed")
            return None
        if about.st_size == 0:
            self._say(f"{path} is empty so far")
            return None
        part = self._given[file] = NewPart(full, about, record, digest, lines)
        return part

    def has_lines(self, path: str, part: NewPart) -> bool:
        """Whether there is a whole line to read."""
        part.end = _end_of_lines(part.path, part.start)
        if part.end == part.start:
            self._say(f"{path}: its last line has no end yet; it is left for the next time")
            file = (part.about.st_dev, part.about.st_ino)
            del self._given[file]
            if part.record is not None:
                self._given[file] = part.record
            return False
        self._say_what(path, part, changed=any(record.path == part.path for record in self._records))
        return True

    def new_rows(self, path: str, part: NewPart, table: Table) -> Table | None:
        if not part.is_text and not part.first_rows:
            known = [record for record in reversed(self._records) if record.path == part.path and record.first_rows]
            known = [part.record, *known] if part.record is not None else known
            same = (r for r in known if r.first_rows == _first_rows(table, min(r.rows, FIRST_ROWS)))
            part.record = next(same, None)
            part.rows = 0 if part.record is None else part.record.rows
            part.first_rows = _first_rows(table, FIRST_ROWS)
            self._say_what(path, part, changed=bool(known))
        return part.new_rows(table)

    def _say_what(self, path: str, part: NewPart, *, changed: bool) -> None:
        if part.record is not None:
            self._say(f"{path} has grown; resuming after row {part.rows:,}")
        elif changed:
            self._say(f"{path} holds something else than when it was read last; it is read as a new file")

    def unchanged(self) -> str | None:
        """A sentence about the files that were not read again."""
        if len(self._unchanged) > 1:
            return f"{len(self._unchanged):,} files were read before, and have not changed"
        return self._unchanged[0] if self._unchanged else None

    def _longest_start(self, path: str, about: os.stat_result) -> tuple[FileRecord | None, Any, int]:
        """The record of the longest start of a file that was read before, the digest of that, and its lines."""
        longest: tuple[FileRecord | None, Any, int] = None, hashlib.sha256(), 0
        digest, lines = hashlib.sha256(), 0
        with open(path, "rb") as file:
            head = file.read(HEAD)
            file.seek(0)
            alike = [r for r in self._records if r.may_be(path, about) and _sha256(head[: r.size]) == r.head]
            for record in sorted(alike, key=lambda record: (record.size, record.path == path)):
                while (left := record.size - file.tell()) > 0 and (data := file.read(min(left, BLOCK))):
                    digest.update(data)
                    lines += data.count(b"\n")
                if record.digest == digest.hexdigest():
                    longest = record, digest.copy(), lines
        return longest

    def records(self) -> FileRecords:
        now = [file.to_record() if isinstance(file, NewPart) else file for file in self._given.values()]
        if len(now) > MOST:
            raise InputError(f"{len(now):,} files; at most {MOST:,} can be remembered")
        replaced = {file.record for file in self._given.values() if isinstance(file, NewPart)} | {*now}
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


def _end_of_lines(path: str, start: int) -> int:
    """The end of the last whole line of a file; `start` if none ends behind that."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > start:
            first = max(end - BLOCK, start)
            file.seek(first)
            if (at := file.read(end - first).rfind(b"\n")) >= 0:
                return first + at + 1
            end = first
    return start

"""What was read before, so that no row counts twice: a file known already is passed over, one that has grown goes on.

A file of lines is known by its bytes: what was read of it must still be its beginning, and reading goes on behind that.
Other files (Parquet, Arrow, compressed ones) are rewritten when they grow. They are known by their rows: the first
ones must give the events that were read, and reading goes on behind those. Anything else is a new file.
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from fourrates.events.batch import Batch, Table
from fourrates.events.rows import InputError

BLOCK = 1 << 20  # bytes read at a time
HEAD = 1024  # bytes by which most files are told apart
TELLING = 4096  # bytes: files of another name that begin with fewer in common may be alike by chance
MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits without a pattern
MOST = 10_000  # files remembered; those not given for longest are forgotten first


@dataclass(frozen=True, slots=True)
class Seen:
    """A file that was read.

    Attributes
    ----------
    name : str
        Its absolute path.
    device, inode, length, modified : int
        By which it is seen that it has not changed since: the file, its size, when it was written (ns).
    size : int
        Bytes read: of lines up to the end of the last whole one.
    head, digest : str
        SHA-256 of the first of these bytes, and of all.
    rows : int
        Rows read.
    events : str
        What the rows held, as :class:`Trail` has it; empty for a file of lines.
    """

    name: str
    device: int
    inode: int
    length: int
    modified: int
    size: int
    head: str
    digest: str
    rows: int
    events: str = ""

    def is_unchanged(self, about: os.stat_result) -> bool:
        """Whether this is the file, as it was."""
        now = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        return now == (self.device, self.inode, self.length, self.modified)

    def may_be(self, name: str, about: os.stat_result) -> bool:
        """Whether a file that begins with the same bytes can be taken for this one."""
        same = self.name == name or (self.device, self.inode) == (about.st_dev, about.st_ino)
        return self.size <= about.st_size and (same or self.size >= TELLING)


class Trail:
    """A digest of events in their order, whatever batches they come in."""

    def __init__(self) -> None:
        self._sum = 0
        self._names = np.empty(0, np.uint64)

    def add(self, batch: Batch, keys: Sequence[str], size: int | None = None) -> None:
        """Add these events, or the first of them; `keys` are the names of their streams."""
        parts: list[Any] = [batch.truths, batch.preds]
        if batch.times is not None:
            parts.append(batch.times.view(np.int64))
        if batch.keys is not None:
            new = [zlib.crc32(name.encode("utf-8", "surrogateescape")) for name in keys[self._names.size :]]
            self._names = np.append(self._names, np.array(new, np.uint64))
            parts.append(self._names[batch.keys])
        mixed = batch.rows[:size].astype(np.uint64)  # of each event, its row among them: so a sum keeps their order
        for part in parts:
            mixed = (mixed ^ part[:size].astype(np.uint64)) * MIX
            mixed ^= mixed >> np.uint64(29)
        self._sum = (self._sum + int(mixed.sum(dtype=np.uint64))) % 2**64

    def digest(self) -> str:
        """The digest so far."""
        return f"{self._sum:016x}"


class Part:
    """What is new in a file, while it is read.

    Attributes
    ----------
    start, lines, rows : int
        Bytes and lines that stand before it, and rows; the last one grows as rows are read.
    """

    def __init__(self, name: str, about: os.stat_result, before: Seen | None, hashed: Any, lines: int) -> None:
        self.name, self.about, self.before, self.lines = name, about, before, lines
        self.start = 0 if before is None else before.size
        self.rows = 0 if before is None else before.rows
        self.trail: Trail | None = None
        self._hash, self._hashed = hashed, self.start

    def text(self, header: bytes) -> io.RawIOBase:
        """The whole lines that are new, behind the header where they do not begin with it."""
        return _Lines(self, header if self.start else b"", _end_of_lines(self.name, self.start))

    def take(self, table: Table) -> Table | None:
        """The rows of a table that are new; None if there are none."""
        old = int(np.searchsorted(table.rows, self.rows, side="right"))
        if old == table.size:
            return None
        self.rows = int(table.rows[-1])
        if old == 0:
            return table
        data = {name: column[old:] for name, column in table.data.items()}
        return replace(table, data=data, rows=table.rows[old:])

    def hash(self, data: bytes) -> None:
        """Go on with the digest of the file."""
        self._hash.update(data)
        self._hashed += len(data)

    def seen(self) -> Seen:
        """What to remember, now that it was read."""
        if self.trail is not None:
            with open(self.name, "rb") as file:
                file.seek(self._hashed)
                while data := file.read(BLOCK):
                    self.hash(data)
        return Seen(
            name=self.name,
            device=self.about.st_dev,
            inode=self.about.st_ino,
            length=self.about.st_size,
            modified=self.about.st_mtime_ns,
            size=self._hashed,
            head=_fingerprint(_head(self.name), self._hashed),
            digest=self._hash.hexdigest(),
            rows=self.rows,
            events="" if self.trail is None else self.trail.digest(),
        )


class History:
    """The files that were read, and those that are read now.

    Parameters
    ----------
    seen : iterable of Seen
        What an earlier reading remembered.
    say : callable, optional
        Given a sentence about each file that has grown, changed or is empty.
    """

    def __init__(self, seen: Iterable[Seen] = (), say: Callable[[str], None] | None = None) -> None:
        self._seen = list(seen)
        self._say = say or (lambda sentence: None)
        self._given: dict[tuple[int, int], Part | Seen] = {}
        self._unchanged: list[str] = []
        self._parts: dict[str, Part] = {}  # by the name that messages use

    def begin(self, path: str) -> Part | None:
        """What is new in a file; None if it was read before, and has not grown since."""
        name, about = os.path.abspath(path), os.stat(path)
        key = (about.st_dev, about.st_ino)
        if key in self._given:
            self._say(f"{path} is given twice; it is read once")
            return None
        if same := next((one for one in self._seen if one.is_unchanged(about)), None):
            self._pass_over(path, key, same)
            return None
        before, hashed, lines = self._find(name, about)
        if before is not None and before.size == about.st_size:
            self._pass_over(path, key, before)
            return None
        if about.st_size == 0:
            self._say(f"{path} is empty so far")
            return None
        part = self._given[key] = self._parts[path] = Part(name, about, before, hashed, lines)
        return part

    def go_on_by_lines(self, path: str, part: Part) -> bool:
        """Whether there is a whole line to read."""
        if _end_of_lines(part.name, part.start) == part.start:
            self._say(f"{path}: its last line has no end yet; it is left for the next time")
            self._forget(part)
            return False
        if part.before is not None:
            self._say(f"{path} has grown; reading goes on behind row {part.rows:,}")
        elif any(one.name == part.name for one in self._seen):
            self._say(f"{path} holds something else than when it was read last; it is read as a new file")
        return True

    def go_on_by_rows(
        self, path: str, part: Part, batches: Callable[[], Iterable[tuple[Batch, Sequence[str]]]]
    ) -> None:
        """Find out which of the first rows were read before; `batches` gives the events of the whole file."""
        part.trail = Trail()
        known = [part.before] if part.before is not None else []
        known += [one for one in reversed(self._seen) if one.name == part.name and one.events]
        part.before, part.rows = None, 0
        for one in known:
            trail = Trail()
            for batch, keys in batches():
                old = int(np.searchsorted(batch.rows, one.rows, side="right"))
                trail.add(batch, keys, old)
                if old < batch.rows.size:
                    break
            if trail.digest() == one.events:
                part.before, part.rows, part.trail = one, one.rows, trail
                self._say(f"{path} has grown; reading goes on behind row {one.rows:,}")
                return
        if known:
            self._say(f"{path} holds something else than when it was read last; it is read as a new file")

    def note(self, batch: Batch, keys: Sequence[str]) -> None:
        """Remember events that are read now."""
        part = self._parts.get(batch.source)
        if part is not None and part.trail is not None:
            part.trail.add(batch, keys)

    def _forget(self, part: Part) -> None:
        """Nothing of this part was read."""
        key = (part.about.st_dev, part.about.st_ino)
        if part.before is None:
            del self._given[key]
        else:
            self._given[key] = part.before

    def _pass_over(self, path: str, key: tuple[int, int], seen: Seen) -> None:
        self._given[key] = seen
        same = "" if seen.name == os.path.abspath(path) else f", as {seen.name}"
        self._unchanged.append(f"{path} was read before{same}, and has not changed")

    def unchanged(self) -> str | None:
        """A sentence about the files that were not read again."""
        if len(self._unchanged) > 1:
            return f"{len(self._unchanged):,} files were read before, and have not changed"
        return self._unchanged[0] if self._unchanged else None

    def _find(self, name: str, about: os.stat_result) -> tuple[Seen | None, Any, int]:
        """The longest beginning of a file that was read before, its hash so far, and its number of lines."""
        hashed, lines = hashlib.sha256(), 0
        sizes: dict[int, list[Seen]] = {}
        head = _head(name)
        for one in self._seen:
            if one.may_be(name, about) and _fingerprint(head, one.size) == one.head:
                sizes.setdefault(one.size, []).append(one)
        found: tuple[Seen | None, Any, int] = None, hashlib.sha256(), 0
        with open(name, "rb") as file:
            for size in sorted(sizes):
                while (left := size - file.tell()) > 0 and (data := file.read(min(left, BLOCK))):
                    hashed.update(data)
                    lines += data.count(b"\n")
                same = [one for one in sizes[size] if one.digest == hashed.hexdigest()]
                if same:
                    found = next((one for one in same if one.name == name), same[0]), hashed.copy(), lines
        return found

    # What a later process must know -------------------------------------------------------------------------

    def to_list(self) -> list[dict[str, Any]]:
        """What to remember, once everything was read, as JSON has it."""
        now = [one.seen() if isinstance(one, Part) else one for one in self._given.values()]
        if len(now) > MOST:
            raise InputError(f"{len(now):,} files; at most {MOST:,} can be remembered")
        over = {one.before for one in self._given.values() if isinstance(one, Part)} | {*now}
        before = [one for one in self._seen if one not in over]
        kept = before[max(len(before) + len(now) - MOST, 0) :] + now
        return [asdict(one) for one in kept]

    @classmethod
    def from_list(cls, saved: Any, say: Callable[[str], None] | None = None) -> History:
        """From what :meth:`to_list` gave; an `InputError` if it is anything else."""
        if not isinstance(saved, list) or len(saved) > MOST:
            raise InputError("a damaged list of the files that were read")
        return cls([_checked(one) for one in saved], say)


def _checked(saved: Any) -> Seen:
    kinds = {field.name: {"str": str, "int": int}[str(field.type)] for field in fields(Seen)}
    sound = isinstance(saved, dict) and saved.keys() == kinds.keys()
    sound = sound and all(type(saved[name]) is kind for name, kind in kinds.items())
    sound = sound and all(-(2**63) <= saved[name] < 2**64 for name, kind in kinds.items() if kind is int)
    if not sound or min(saved["size"], saved["rows"], saved["length"]) < 0:
        raise InputError("a damaged list of the files that were read")
    return Seen(**saved)


def _head(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read(HEAD)


def _fingerprint(head: bytes, size: int) -> str:
    """Of the first bytes of a file of which `size` were read."""
    return hashlib.sha256(head[:size]).hexdigest()


def _end_of_lines(name: str, start: int) -> int:
    """Where the last whole line of a file ends, `start` if none does behind that."""
    with open(name, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > start:
            first = max(end - BLOCK, start)
            file.seek(first)
            if (at := file.read(end - first).rfind(b"\n")) >= 0:
                return first + at + 1
            end = first
    return start


class _Lines(io.RawIOBase):
    """The lines of a part, hashed as they are read."""

    def __init__(self, part: Part, header: bytes, end: int) -> None:
        self._part, self._header = part, header
        self._file = open(part.name, "rb")  # noqa: SIM115 (closed by close)
        about = os.fstat(self._file.fileno())
        if (about.st_dev, about.st_ino) != (part.about.st_dev, part.about.st_ino):
            self._file.close()
            raise InputError(f"{part.name}: replaced while it was read; try again")
        self._file.seek(part.start)
        self._left = max(end - part.start, 0)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if self._header:
            taken, self._header = self._header, b""
            return taken
        data = self._file.read(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(data)
        self._part.hash(data)
        return data

    def close(self) -> None:
        self._file.close()
        super().close()

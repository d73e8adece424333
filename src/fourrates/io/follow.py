"""A file that grows and is rotated: every line of it once, across renames, truncations and restarts.

Logs are rotated in two ways. Either the file is renamed and a new one begun under its name: then the old one is read
to its end, and until nothing more is added to it, before the new one is opened. Or it is copied and emptied
(``copytruncate``): then what was not read yet is read from the copy. In between there may have been further rotations;
the files these left are read in their order. A :class:`Position` says how far a file was read; it is saved with what
was made of the lines, and the next process goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from fourrates.io.lines import MAX_LINE, LineBuffer
from fourrates.io.table import InputError

READ = 1 << 18  # bytes taken at a time
HEAD = 1024  # bytes by which the beginning of a file is known again
LAST = 64  # bytes before the position, by which it is seen that the file is still the same up to there
LINGER = 0.2  # seconds for which a file that was renamed must be quiet: whoever writes it may still have it open
PASSED = 8  # files read to their end that are remembered
ROTATED = r"[.\-_]\d[\d.\-_:T]*"  # what rotation adds to a name: .1, -20260131, .2026-01-31


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read.

    Attributes
    ----------
    inode, modified : int
        Which file, and when it was last changed as far as that was seen (ns).
    offset : int
        Bytes up to the end of the last whole line taken.
    head_size, head : int, str
        The size of what the file begins with, and its SHA-256.
    last : str
        The bytes before `offset`, as hexadecimal digits.
    carried : str
        The beginning of a line that was cut in two by a truncation, likewise.
    copied : bool
        Whether the file is the copy that a truncation left.
    passed : tuple of int
        The inodes of the files read before.
    """

    inode: int
    modified: int
    offset: int
    head_size: int
    head: str
    last: str
    carried: str = ""
    copied: bool = False
    passed: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Position:
        """From what :meth:`to_dict` gave; an `InputError` if it is anything else."""
        try:
            numbers = {name: saved[name] for name in ("inode", "modified", "offset", "head_size")}
            texts = {name: saved[name] for name in ("head", "last", "carried")}
            passed = tuple(saved["passed"])
            sound = type(saved["copied"]) is bool and all(
                type(n) is int and -(2**63) <= n < 2**64 for n in (*numbers.values(), *passed)
            )
            sound = sound and numbers["offset"] >= 0 and 0 <= numbers["head_size"] <= HEAD and len(passed) <= PASSED
            for text in texts.values():
                bytes.fromhex(text)
            if not sound or len(texts["last"]) > 2 * LAST:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise InputError("a damaged position in a file") from None
        return cls(**numbers, **texts, copied=saved["copied"], passed=passed)


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file, with their ends; `begins` if they are the first of another file than those before."""

    lines: bytes
    begins: bool


class _File(NamedTuple):
    """A file that may belong to the chain of rotated ones."""

    path: str
    inode: int
    modified: int  # ns
    changed: int  # ns; by a rename


class Follower:
    r"""Reads the lines of a file as they are written.

    Parameters
    ----------
    path : str
        The file; it may not be there yet, or for a while.
    position : Position, optional
        Where to go on.
    max_line : int
        Of longer lines no more than one byte beyond this is kept.
    linger : float
        Seconds for which a renamed file must be quiet before the next one is read.
    tell : callable, optional
        Given a sentence when the file was replaced.

    Examples
    --------
    >>> import os, tempfile
    >>> from fourrates.io import Follower
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/log.csv"
    ...     with open(path, "w") as log:
    ...         print("y_true,y_pred", "1,1", "0,", sep="\n", end="", file=log)
    ...     with Follower(path) as follower:
    ...         print(follower.read(), follower.position.offset)
    ...         position = follower.position
    ...     with open(path, "a") as log:
    ...         print("0", file=log)
    ...     with Follower(path, position) as follower:
    ...         print(follower.read())
    Piece(lines=b'y_true,y_pred\n1,1\n', begins=True) 18
    Piece(lines=b'0,0\n', begins=False)
    """

    def __init__(
        self,
        path: str,
        position: Position | None = None,
        *,
        max_line: int = MAX_LINE,
        linger: float = LINGER,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.linger = os.path.abspath(path), linger
        self._tell = tell or (lambda sentence: None)
        self._folder, name = os.path.split(self.path)
        stem, suffix = os.path.splitext(name)
        self._rotated = re.compile(
            rf"{re.escape(name)}{ROTATED}|{re.escape(stem)}{ROTATED}{re.escape(suffix)}" if stem else re.escape(name)
        )
        self._lines = LineBuffer(max_line)
        self._descriptor: int | None = None
        self._carried = 0  # bytes at the start of the buffer that come from the file before
        self._passed: list[int] = []
        self._copied = False  # whether what is read is the copy that a truncation left
        self._gone: Position | None = None  # a position in a file that is not to be found
        self._offset = 0
        self._head = self._last = b""
        self._begins = self._blank = True
        self._quiet_since, self._modified = 0.0, 0
        self._problem = ""  # why there is no file to go over to, as it was told
        if position is not None:
            self._resume(position)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def position(self) -> Position | None:
        """The end of the last line that :meth:`read` gave; None before there is a file."""
        if self._descriptor is None:
            return self._gone
        half = self._lines.size - self._carried
        return Position(
            inode=os.fstat(self._descriptor).st_ino,
            modified=self._modified,
            offset=self._offset - half,
            head_size=len(self._head),
            head=hashlib.sha256(self._head).hexdigest(),
            last=os.pread(self._descriptor, LAST, max(self._offset - half - LAST, 0))[: self._offset - half].hex()
            if half
            else self._last.hex(),
            carried=self._lines.rest()[: self._carried].hex(),
            copied=self._copied,
            passed=tuple(self._passed),
        )

    def open(self) -> bool:
        """Open the file if it is there; whether it is. From then on no rotation goes unseen."""
        return self._descriptor is not None or self._open_first()

    def read(self) -> Piece | None:
        """The next lines, as many as there are up to some hundred kilobytes; None if there are none yet."""
        while True:
            if not self.open():
                self._tell_why()
                return None
            data = self._more()
            if data is None:
                if piece := self._truncated():
                    return piece
                continue
            if data:
                self._quiet_since = time.monotonic()
                if whole := self._take(data):
                    return self._piece(whole)
                continue
            if not self._is_over():
                return None
            # A line that has begun goes on behind a truncation; elsewhere the end of the file is its end.
            rest, begins = b"" if self._copied else self._lines.rest(), self._begins
            if not self._next_file():
                self._tell_why()
                return None
            if rest:
                return Piece(rest + b"\n", begins)

    def _tell_why(self) -> None:
        """Say, once, what is wrong with what stands under the name; in the middle of a rotation nothing does."""
        problem = ""
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                problem = "not a file"
            elif not os.access(self.path, os.R_OK):
                problem = "not to be read by this user"
        except FileNotFoundError:
            pass
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
        if problem and problem != self._problem:
            self._tell(f"{self.path}: {problem}; waiting for one that can be read")
        self._problem = problem

    # Lines --------------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> bytes:
        whole = self._lines.feed(data)
        if whole:
            self._carried = 0
        return whole

    def _piece(self, whole: bytes) -> Piece:
        begins, self._begins = self._begins, False
        return Piece(whole, begins)

    def _more(self) -> bytes | None:
        """What stands behind what was read; None if the file is not the one that was read up to here any more."""
        assert self._descriptor is not None
        before = len(self._last)
        modified = os.fstat(self._descriptor).st_mtime_ns  # first: what is emptied from now on has a later copy
        try:
            data = os.pread(self._descriptor, before + READ, self._offset - before)
        except OSError as error:
            raise InputError(f"{self.path}: {(error.strerror or str(error)).lower()}") from None
        new = data[before:]
        if data[:before] != self._last or (self._offset == 0 and new[: len(self._head)] != self._head):
            return None
        self._modified = modified
        if len(self._head) < HEAD:  # of which at least what was read is there
            self._head += new[len(self._head) - self._offset : HEAD - self._offset]
        self._offset += len(new)
        self._last = data[-LAST:]
        if self._blank and new:  # whoever goes on writing at the old offset leaves a hole
            new = new.lstrip(b"\0")
            self._blank = not new
        return new

    # Files --------------------------------------------------------------------------------------------------

    def _start(self, descriptor: int, offset: int) -> None:
        """Go on with this file; its bytes up to `offset` were read."""
        self.close()
        self._descriptor, self._offset = descriptor, offset
        self._modified = os.fstat(descriptor).st_mtime_ns
        self._head = os.pread(descriptor, HEAD, 0)  # also where nothing was read yet: by this it is known again
        self._last = os.pread(descriptor, min(LAST, offset), max(offset - LAST, 0))
        self._begins = self._blank = offset == 0
        self._quiet_since = time.monotonic()

    def _open_first(self) -> bool:
        """Open the file for the first time, or the first that came after one that is gone."""
        if self._gone is None:
            try:
                self._start(os.open(self.path, os.O_RDONLY), 0)
            except OSError:
                return False
            self._copied = False
            return True
        chain = self._chain(self._gone.inode, self._gone.modified)
        return chain is not None and self._open(chain)

    def _open(self, file: _File) -> bool:
        """Go over to a file, if it is still where it was seen."""
        try:
            self._start(_opened(file), 0)
        except (OSError, _Moved):
            return False
        self._gone, self._copied = None, False
        return True

    def _is_over(self) -> bool:
        """Whether the file, read to its end, has been renamed or removed, has a successor and will not grow."""
        assert self._descriptor is not None
        here = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except OSError:
            self._tell_why()
            return False
        if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev):
            return False
        if self._copied or 2 * self.linger < time.time() - here.st_mtime:
            return True
        return time.monotonic() - self._quiet_since >= self.linger

    def _next_file(self) -> bool:
        assert self._descriptor is not None
        about = os.fstat(self._descriptor)
        if about.st_size > self._offset:
            return False  # it has grown while we looked
        chain = self._chain(about.st_ino, about.st_mtime_ns)
        if chain is None:
            return False
        copied = self._copied
        if not self._open(chain):
            return False
        self._passed = [*self._passed, about.st_ino][-PASSED:]
        if copied:
            self._carried = self._lines.size
        else:
            self._lines.clear()
            self._carried = 0
        self._tell(f"{self.path} was replaced; going on with the new one")
        return True

    def _chain(self, inode: int, modified: int) -> _File | None:
        """The file after the one that was read: the oldest of those rotated since, or the one that bears the name."""
        current, rotated = self._look()
        newer = [
            file
            for file in rotated
            if file.inode != inode
            and (file.modified > modified or (file.modified == modified and file.inode not in self._passed))
            and (current is None or file.inode != current.inode)
        ]
        return min(newer, key=lambda file: (file.modified, file.changed), default=current)

    def _look(self) -> tuple[_File | None, list[_File]]:
        """The file that bears the name, and those that rotation has left."""
        current, rotated = self._listed()
        for _ in range(50):  # a rename while the folder is listed may hide a file: look until nothing moves
            before, (current, rotated) = _names(current, rotated), self._listed()
            if _names(current, rotated) == before:
                break
        return current, rotated

    def _listed(self) -> tuple[_File | None, list[_File]]:
        current, rotated = None, []
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                named = entry.path == self.path
                if not named and not self._rotated.fullmatch(entry.name):
                    continue
                with suppress(OSError):
                    about = os.stat(entry.path)
                    if not stat.S_ISREG(about.st_mode):
                        continue
                    file = _File(entry.path, about.st_ino, about.st_mtime_ns, about.st_ctime_ns)
                    if named:
                        current = file
                    else:
                        rotated.append(file)
        return current, sorted(rotated)

    def _truncated(self) -> Piece | None:
        """The file was emptied: go on in the copy that was made of it, or at its beginning where there is none."""
        assert self._descriptor is not None
        inode = os.fstat(self._descriptor).st_ino
        for file in self._copies(inode, self._modified):
            with suppress(OSError):
                try:
                    descriptor = _opened(file)
                except _Moved:
                    return None  # and look again
                if (
                    os.pread(descriptor, len(self._head), 0) == self._head
                    and os.pread(descriptor, len(self._last), self._offset - len(self._last)) == self._last
                ):
                    begins = self._begins
                    self._start(descriptor, self._offset)
                    self._begins, self._copied = begins, True
                    return None
                os.close(descriptor)
        self._tell(f"{self.path} was emptied, and there is no copy of it; going on at its beginning")
        rest, begins = self._lines.rest(), self._begins
        self._lines.clear()
        self._carried = 0
        self._start(os.dup(self._descriptor), 0)
        self._copied = False
        return Piece(rest + b"\n", begins) if rest else None

    def _copies(self, inode: int, modified: int) -> list[_File]:
        """What may be the copy of a file that was emptied since: made later than it was last seen, oldest first."""
        _, rotated = self._look()
        later = [file for file in rotated if file.modified >= modified and file.inode != inode]
        return sorted(later, key=lambda file: (file.modified, file.changed))

    # Going on -----------------------------------------------------------------------------------------------

    def _resume(self, position: Position) -> None:
        """Find the file of a position again: under its name, under another, or a copy of it."""
        self._passed = list(position.passed)
        self._gone = position
        for _ in range(50):  # a file may be renamed between being seen and being opened
            with suppress(_Moved):
                self._go_on(position)
                return

    def _go_on(self, position: Position) -> None:
        carried, last = bytes.fromhex(position.carried), bytes.fromhex(position.last)
        current, rotated = self._look()
        files = ([current] if current is not None else []) + rotated
        same = [file for file in files if file.inode == position.inode]
        for file in [*same, *self._copies(position.inode, position.modified)]:
            with suppress(OSError):
                descriptor = _opened(file)
                if _fits(descriptor, position, last):
                    self._start(descriptor, position.offset)
                    self._gone, self._copied = None, position.copied or file not in same
                    if carried:
                        self._lines.feed(carried)
                        self._carried = len(carried)
                    return
                os.close(descriptor)
        with suppress(OSError):
            for file in same:
                self._start(_opened(file), 0)
                self._gone, self._copied = None, False
                self._tell(f"{self.path} was emptied, and there is no copy of it; going on at its beginning")
                return
        if position.offset:
            self._tell(f"{self.path} was replaced, and the old one is not to be found; going on with the new one")


class _Moved(Exception):
    """A file is not where it was seen any more."""


def _opened(file: _File) -> int:
    try:
        descriptor = os.open(file.path, os.O_RDONLY)
    except FileNotFoundError:
        raise _Moved from None
    if os.fstat(descriptor).st_ino != file.inode:
        os.close(descriptor)
        raise _Moved
    return descriptor


def _names(current: _File | None, rotated: list[_File]) -> list[tuple[str, int]]:
    return [(file.path, file.inode) for file in (current, *rotated) if file is not None]


def _fits(descriptor: int, position: Position, last: bytes) -> bool:
    """Whether a file holds, up to the position, what was read."""
    if os.fstat(descriptor).st_size < position.offset:
        return False
    head = os.pread(descriptor, position.head_size, 0)
    before = os.pread(descriptor, len(last), position.offset - len(last)) if last else b""
    return hashlib.sha256(head).hexdigest() == position.head and before == last

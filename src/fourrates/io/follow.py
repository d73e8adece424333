"""A file that grows and is rotated: every line of it once, across renames, truncations, links and restarts.

Logs are rotated in three ways. A file is renamed and a new one created under its name, or a link is switched to another
file: then the old one is read until it has been quiet for a moment, and the new one next. Or the file is copied and
emptied (``copytruncate``): then what was not read yet is read from the copy. Files that further rotations left in
between are read in their order; they are looked for beside the file a link leads to. A :class:`Position` is saved with
what was made of the lines, and the next process resumes there.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from fourrates.events.rows import InputError
from fourrates.io.lines import MAX_LINE, LineBuffer

READ = 1 << 18  # bytes read at a time
HEAD = 1024  # bytes at the start by which a file is recognized
LAST = 64  # bytes before the offset, which show whether the file is still the same up to there
LINGER = 0.2  # seconds for which a rotated file must be quiet: its writer may still have it open
PASSED = 8  # files read to their end that are remembered
ROTATED = r"[.\-_]\d[\d.\-_:T]*"  # what rotation adds to a name: .1, -20260131, .2026-01-31


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read.

    Attributes
    ----------
    path : str
        Where the file was found, links resolved.
    inode, modified : int
        Which file, and when it was last changed as far as was seen (ns).
    offset : int
        Bytes read.
    head, last, half : str
        The first bytes of the file, those before `offset`, and the line that has no end yet; hexadecimal digits.
    copied : bool
        Whether the file is the copy that a truncation left.
    passed : tuple of int
        The inodes of the files read before.
    switched : tuple of (str, int)
        The files, path and inode, that a link was switched to since.
    """

    path: str
    inode: int
    modified: int
    offset: int
    head: str
    last: str
    half: str
    copied: bool
    passed: tuple[int, ...]
    switched: tuple[tuple[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Position:
        """From what :meth:`to_dict` gave; an `InputError` if it is anything else."""
        try:
            passed, switched = tuple(saved["passed"]), tuple((path, inode) for path, inode in saved["switched"])
            position = cls(**{**saved, "passed": passed, "switched": switched})
            numbers = [position.inode, position.modified, position.offset, *passed, *(inode for _, inode in switched)]
            paths = [position.path, *(path for path, _ in switched)]
            sound = all(type(number) is int and -(2**63) <= number < 2**64 for number in numbers)
            sound = sound and all(type(path) is str and "\0" not in path for path in paths)
            sound = sound and type(position.copied) is bool and position.offset >= 0 and len(passed) <= PASSED
            head, last, _ = (bytes.fromhex(saved[name]) for name in ("head", "last", "half"))
            sound = sound and len(head) <= HEAD and len(last) == min(LAST, position.offset)
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise InputError("a damaged position in a file")
        return position


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file, with their ends; `begins` if they are the first of another file than those before."""

    lines: bytes
    begins: bool


class Follower:
    r"""Reads the lines of a file as they are written.

    Parameters
    ----------
    path : str
        The file, or a link to it; it may not exist yet, or for a while.
    position : Position, optional
        Where to resume.
    max_line : int
        Of longer lines no more than one byte beyond this is kept.
    linger : float
        Seconds for which a rotated file must be quiet before the next one is read.
    tell : callable, optional
        Given a sentence when the file was replaced.

    Attributes
    ----------
    switches : int
        How often a link was seen switched. Save the position after each: the next process cannot see where the link led
        in between.

    Examples
    --------
    >>> import tempfile
    >>> from fourrates.io import Follower
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/log.csv"
    ...     with open(path, "w") as log:
    ...         print("y_true,y_pred", "1,1", "0,", sep="\n", end="", file=log)
    ...     with Follower(path) as follower:
    ...         print(follower.read())
    ...         position = follower.position
    ...     with open(path, "a") as log:
    ...         print("0", file=log)
    ...     with Follower(path, position) as follower:
    ...         print(follower.read())
    Piece(lines=b'y_true,y_pred\n1,1\n', begins=True)
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
        self._lines = LineBuffer(max_line)
        self._descriptor: int | None = None
        self._target = ""  # where the open file was found, links resolved
        self._switched: list[tuple[str, int]] = []  # the files a link was switched to since
        self.switches = 0
        self._passed: list[int] = []
        self._copied = False  # whether the open file is the copy that a truncation left
        self._gone: Position | None = None  # a position in a file that cannot be found
        self._offset = self._modified = 0
        self._head = self._last = b""
        self._begins = self._blank = True
        self._quiet_since = 0.0
        self._problem = ""  # why there is no next file, as last reported
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
        """Behind the last line that :meth:`read` gave; None before there is a file."""
        if self._descriptor is None:
            return None if self._gone is None else replace(self._gone, switched=tuple(self._switched))
        return Position(
            path=self._target,
            inode=os.fstat(self._descriptor).st_ino,
            modified=self._modified,
            offset=self._offset,
            head=self._head.hex(),
            last=self._last.hex(),
            half=self._lines.rest().hex(),
            copied=self._copied,
            passed=tuple(self._passed),
            switched=tuple(self._switched),
        )

    def open(self) -> bool:
        """Open the file if it exists; whether it does. From then on no rotation goes unseen."""
        self._notice_switch()
        if self._descriptor is not None:
            return True
        if self._gone is not None:
            return self._advance(self._gone.inode, self._gone.modified)
        target = os.path.realpath(self.path)
        current, _ = _lane(target)
        return current is not None and self._start_at(current, target)

    def read(self) -> Piece | None:
        """The next lines, up to some hundred kilobytes; None if there are none yet."""
        while True:
            if not self.open():
                self._tell_why()
                return None
            data = self._more()
            if data is None:
                if piece := self._truncated():
                    return piece
            elif data:
                self._quiet_since = time.monotonic()
                if whole := self._lines.feed(data):
                    begins, self._begins = self._begins, False
                    return Piece(whole, begins)
            elif not self._is_over():
                return None
            else:
                # The second half of a line follows behind a truncation; elsewhere the end of the file is its end.
                rest, begins = b"" if self._copied else self._lines.rest(), self._begins
                if not self._next_file():
                    self._tell_why()
                    return None
                if rest:
                    return Piece(rest + b"\n", begins)

    def _tell_why(self) -> None:
        """Report, once, why the file cannot be read; in the middle of a rotation there is none."""
        problem = ""
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                problem = "not a file"
            elif not os.access(self.path, os.R_OK):
                problem = "this user may not read it"
        except FileNotFoundError:
            pass
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
        if problem and problem != self._problem:
            self._tell(f"{self.path}: {problem}; waiting for a file that can be read")
        self._problem = problem

    def _more(self) -> bytes | None:
        """The bytes behind those read; None if the file is no longer the one that was read up to here."""
        assert self._descriptor is not None
        before = len(self._last)
        modified = os.fstat(self._descriptor).st_mtime_ns  # first: the copy of a file emptied from now on is later
        try:
            data = os.pread(self._descriptor, before + READ, self._offset - before)
        except OSError as error:
            raise InputError(f"{self.path}: {(error.strerror or str(error)).lower()}") from None
        new = data[before:]
        if data[:before] != self._last or (self._offset == 0 and new[: len(self._head)] != self._head):
            return None
        if new and not self._head:  # it was empty when last seen: it may have been filled, copied and emptied since
            return None
        self._modified = modified
        if len(self._head) < HEAD:
            self._head += new[len(self._head) - self._offset : HEAD - self._offset]
        self._offset += len(new)
        self._last = data[-LAST:]
        if self._blank and new:  # a writer that continues at its old offset leaves a hole
            new = new.lstrip(b"\0")
            self._blank = not new
        return new

    # From file to file --------------------------------------------------------------------------------------

    def _start(self, descriptor: int, target: str, offset: int = 0, *, copied: bool = False) -> None:
        """Continue with this file, of which `offset` bytes were read."""
        self.close()
        self._descriptor, self._target, self._offset = descriptor, target, offset
        self._modified = os.fstat(descriptor).st_mtime_ns
        self._head = os.pread(descriptor, HEAD, 0)  # now: it may be emptied before a line of it is read
        self._last = os.pread(descriptor, min(LAST, offset), max(offset - LAST, 0))
        self._begins, self._blank = offset <= self._lines.size, offset == 0
        self._quiet_since = time.monotonic()
        self._gone, self._copied = None, copied

    def _start_at(self, file: _File, target: str) -> bool:
        """Continue at the beginning of a file, if it is still where it was seen and can be read."""
        with suppress(OSError, _Moved):
            self._start(_opened(file), target)
            return True
        return False

    def _notice_switch(self) -> None:
        """Note the file that a link was switched to: it is read even if the link leads elsewhere by then."""
        target = os.path.realpath(self.path)
        last = self._switched[-1][0] if self._switched else self._target
        if last and target != last:
            with suppress(OSError):
                about = os.stat(target)
                if stat.S_ISREG(about.st_mode):
                    self._switched.append((target, about.st_ino))
                    self.switches += 1

    def _is_over(self) -> bool:
        """Whether the file, read to its end, was renamed, removed or switched, has a successor and will not grow."""
        assert self._descriptor is not None
        here = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except OSError:
            self._tell_why()
            return False
        if os.path.samestat(here, there) and not self._switched:
            return False
        if self._copied or 2 * self.linger < time.time() - here.st_mtime:
            return True
        return time.monotonic() - self._quiet_since >= self.linger

    def _next_file(self) -> bool:
        assert self._descriptor is not None
        about, copied = os.fstat(self._descriptor), self._copied
        if about.st_size > self._offset or not self._advance(about.st_ino, about.st_mtime_ns):
            return False  # it has grown meanwhile, or the next one was moved: look again
        self._passed = [*self._passed, about.st_ino][-PASSED:]
        if not copied:
            self._lines.clear()
        self._tell(f"{self.path} was replaced; continuing with the new file")
        return True

    def _advance(self, inode: int, modified: int) -> bool:
        """Open the file after this one: the oldest rotated since, the one of its name, or one the link leads to."""
        current, rotated = _lane(self._target)
        newer = [
            file
            for file in rotated
            if file.inode != inode
            and (file.modified > modified or (file.modified == modified and file.inode not in self._passed))
            and (current is None or file.inode != current.inode)
        ]
        file = min(newer, key=_age, default=current)
        if file is not None and (file.inode != inode or self._gone is not None):
            return self._start_at(file, self._target)
        if not self._switched:
            return False
        target, inode = self._switched[0]
        current, rotated = _lane(target)
        file = next((file for file in rotated if file.inode == inode), current)
        if file is None:
            self._tell(f"{target} was removed before it was read")
        elif not self._start_at(file, target):
            return False
        del self._switched[0]
        return file is not None

    def _truncated(self) -> Piece | None:
        """The file was emptied: continue in the copy that was made of it, or at its beginning if there is none."""
        assert self._descriptor is not None
        rest, begins = self._lines.rest(), self._begins
        with suppress(_Moved):  # then look again
            if not self._find(os.fstat(self._descriptor).st_ino, self._modified):  # it was removed as well
                self._lines.clear()
                self._start(os.dup(self._descriptor), self._target)
            if rest and not self._lines.size:
                return Piece(rest + b"\n", begins)
        return None

    def _resume(self, position: Position) -> None:
        """Find the file of a position again."""
        self._target, self._copied = position.path, position.copied
        self._passed, self._switched = list(position.passed), list(position.switched)
        self._head, self._last = bytes.fromhex(position.head), bytes.fromhex(position.last)
        self._offset = position.offset
        self._lines.feed(bytes.fromhex(position.half))
        for _ in range(50):  # a file may be renamed between being seen and being opened
            with suppress(_Moved):
                if self._find(position.inode, position.modified):
                    return
                break
        self._gone = position
        self._lines.clear()
        if position.offset:
            self._tell(f"{self.path} was replaced, and the old file cannot be found; continuing with the new one")

    def _find(self, inode: int, modified: int) -> bool:
        """Open the file that holds what was read: this one, under any name, or the copy that a truncation left."""
        for target in dict.fromkeys((self._target, os.path.realpath(self.path))):
            current, rotated = _lane(target)
            same = [file for file in (current, *rotated) if file is not None and file.inode == inode]
            if self._head:
                later = [file for file in rotated if file.inode != inode and file.modified >= modified]
                files = [*same, *sorted(later, key=_age)]
            else:  # it was empty, so any fits: the oldest that was written since
                later = [file for file in rotated if file.modified > modified and file.inode not in self._passed]
                files = [*sorted(later, key=_age), *same]
            for file in files:
                with suppress(OSError):
                    descriptor = _opened(file)
                    if (
                        os.pread(descriptor, len(self._head), 0) == self._head
                        and os.pread(descriptor, len(self._last), self._offset - len(self._last)) == self._last
                    ):
                        self._start(descriptor, target, self._offset, copied=self._copied or file not in same)
                        return True
                    os.close(descriptor)
            for file in same:
                self._lines.clear()
                if self._start_at(file, target):
                    self._tell(f"{self.path} was emptied, and there is no copy of it; continuing at its beginning")
                    return True
        return False


class _Moved(Exception):
    """A file is no longer where it was seen."""


class _File(NamedTuple):
    """A file that may be one of those rotated."""

    path: str
    inode: int
    modified: int  # ns
    changed: int  # ns; by a rename too


def _age(file: _File) -> tuple[int, int]:
    return file.modified, file.changed


def _opened(file: _File) -> int:
    try:
        descriptor = os.open(file.path, os.O_RDONLY)
    except FileNotFoundError:
        raise _Moved from None
    if os.fstat(descriptor).st_ino != file.inode:
        os.close(descriptor)
        raise _Moved
    return descriptor


def _lane(path: str) -> tuple[_File | None, list[_File]]:
    """The file at this path, and those that rotation left beside it."""
    listed = _listed(path)
    for _ in range(50):  # a rename while the folder is listed may hide a file: look until nothing moves
        before, listed = listed, _listed(path)
        if [file[:2] for file in before] == [file[:2] for file in listed]:
            break
    return next((file for file in listed if file.path == path), None), [file for file in listed if file.path != path]


def _listed(path: str) -> list[_File]:
    folder, name = os.path.split(path)
    stem, suffix = map(re.escape, os.path.splitext(name))
    pattern, files = re.compile(rf"{stem}{suffix}({ROTATED})?|{stem}{ROTATED}{suffix}"), []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name):
                with suppress(OSError):
                    about = os.stat(entry.path)
                    if stat.S_ISREG(about.st_mode):
                        files.append(_File(entry.path, about.st_ino, about.st_mtime_ns, about.st_ctime_ns))
    return sorted(files)

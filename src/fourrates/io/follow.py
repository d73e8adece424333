"""Follow a log file that grows and is rotated, every line once, across renames, truncations, links and restarts.

A :class:`Position` is a place in a file, and is saved with the results. A start, a rotation and a restart take the same
steps from it: find the file that has this place, by inode or as a copy, and read its rest; then the files rotated
beside it since, oldest first; then the file of its name; then, in the same way, those that a link was switched to.

- A renamed file is read until it has been quiet for a moment, then the next.
- A file that is copied and emptied (``copytruncate``) is read to its end in the copy, then from its beginning.
- Files that a link led to unseen are known by the numbers in their names.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from msgspec import Meta

from fourrates.events.rows import InputError
from fourrates.io.lines import LineBuffer

READ = 1 << 18  # bytes read at a time
HEAD = 1024  # bytes at the start by which a file is recognized
LAST = 64  # bytes before the offset, which show whether the file is still the same up to there
LINGER = 0.2  # seconds for which a rotated file must be quiet, as its writer may still have it open
PASSED = 8  # finished files that are remembered
TRIES = 50  # looks at a folder in which files are being renamed
ROTATED = r"[.\-_]\d[\d.\-_:T]*"  # added to a name by rotation: .1, -20260131, .2026-01-31


Path = Annotated[str, Meta(pattern=r"^[^\0]*$")]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read. Save it with the results (`msgspec.to_builtins`), and resume from it."""

    path: Path  # the path by which the file was opened, links resolved; it may have been renamed since
    inode: int
    modified: int  # ns
    offset: Annotated[int, Meta(ge=0, le=2**63 - 1)]  # bytes read
    head: Annotated[bytes, Meta(max_length=HEAD)]  # the first bytes of the file
    last: bytes  # those before the offset
    half: bytes  # the start of a line that has not ended
    copied: bool  # whether the file is the copy that a truncation left
    passed: Annotated[tuple[int, ...], Meta(max_length=PASSED)]  # the inodes of earlier files
    switched: tuple[Path, ...]  # the files that a link was switched to since

    def __post_init__(self) -> None:
        if len(self.last) != min(LAST, self.offset):
            raise ValueError("a damaged position in a file")

    def fits(self, descriptor: int) -> bool:
        """Whether an open file has the same bytes at its start and before the offset."""
        last = os.pread(descriptor, len(self.last), self.offset - len(self.last))
        return last == self.last and os.pread(descriptor, len(self.head), 0) == self.head

    def precedes(self, file: _File) -> bool:
        """Whether a rotated file was written after this one."""
        return file.modified > self.modified or (file.modified == self.modified and file.inode not in self.passed)

    def may_be_in(self, file: _File) -> bool:
        """Whether a rotated file may be a copy of this one; any is like one that was empty, except earlier ones."""
        return file.modified >= self.modified and (self.head != b"" or file.inode not in self.passed)


NOWHERE = Position("", 0, 0, 0, b"", b"", b"", copied=False, passed=(), switched=())  # before there is a file
CLOSED = -1  # the descriptor of no file


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file, with their ends; `begins` if they are the first lines of another file."""

    lines: bytes
    begins: bool


class Follower:
    r"""Reads the lines of a file as they are written.

    Parameters
    ----------
    path : str
        The file, or a link to it; it may not exist yet, or for a while.
    position : Position, optional
        The place to resume from.
    linger : float
        Seconds for which a rotated file must be quiet before the next one is read.
    on_message : callable, optional
        Called with a sentence when the file was replaced.

    Attributes
    ----------
    switches : int
        How often a link was seen switched. Save the position after each, for the next process cannot see the files in
        between.

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
        linger: float = LINGER,
        on_message: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.linger, self.switches = os.path.abspath(path), linger, 0
        self._on_message = on_message or (lambda sentence: None)
        self._at = NOWHERE if position is None else position
        self._descriptor = CLOSED
        self._lines = LineBuffer()
        self._begins = True
        self._quiet_since = 0.0
        self._problem = ""  # why there is no file to read, as last reported
        self._lines.feed(self._at.half)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor != CLOSED:
            os.close(self._descriptor)
            self._descriptor = CLOSED

    @property
    def position(self) -> Position | None:
        """Behind the last line that :meth:`read` gave; None before there is a file."""
        return replace(self._at, half=self._lines.rest()) if self._at.path else None

    def open(self) -> bool:
        """Open the file if it exists; whether it does. From then on no rotation goes unseen."""
        self._notice_switch()  # first, by the time of the last line that was read
        return self._descriptor != CLOSED or self._attempt(self._locate)

    def read(self) -> Piece | None:
        """The next lines, up to some hundred kilobytes; None if there are none yet."""
        while self.open():
            data = self._more()
            if data:
                self._quiet_since = time.monotonic()
                if whole := self._lines.feed(data):
                    begins, self._begins = self._begins, False
                    return Piece(whole, begins)
            elif data is not None and not self._is_over():
                return None
            else:
                rest, begins = self._lines.rest(), self._begins
                if not self._attempt(self._locate if data is None else self._finish):
                    break
                if rest and not self._lines.size:  # a file that ended, ended its last line
                    return Piece(rest + b"\n", begins)
        self._report_problem()
        return None

    def _more(self) -> bytes | None:
        """The bytes behind the offset; None if the file is no longer the one that was read up to there."""
        at = self._at
        before = len(at.last)
        modified = os.fstat(self._descriptor).st_mtime_ns  # first, as the copy of a file emptied from now on is later
        try:
            data = os.pread(self._descriptor, before + READ, at.offset - before)
        except OSError as error:
            raise InputError(f"{self.path}: {(error.strerror or str(error)).lower()}") from None
        new = data[before:]
        if data[:before] != at.last or (at.offset == 0 and not at.fits(self._descriptor)):
            return None
        if new and not at.head:  # it was empty when last seen, and may have been filled, copied and emptied since
            return None
        head = at.head + new[len(at.head) - at.offset : HEAD - at.offset]
        self._at = replace(at, modified=modified, offset=at.offset + len(new), head=head, last=data[-LAST:])
        return new if at.last.strip(b"\0") else new.lstrip(b"\0")  # a writer at its old offset leaves a hole

    def _attempt(self, move: Callable[[], bool]) -> bool:
        """Move to another file; False if there is none that can be read."""
        for _ in range(TRIES):  # a file may be renamed between being seen and being opened
            try:
                return move()
            except FileNotFoundError:
                continue
            except OSError:
                break
        return False

    def _locate(self) -> bool:
        """Open the file with the rows behind the position, the same file or a copy of it; else the next."""
        at, link = self._at, os.path.realpath(self.path)
        if not at.path:
            files = _files(link)
            if not files or files[-1].path != link:
                return False
            self._at = replace(at, passed=tuple(file.inode for file in files[:-1])[-PASSED:])
            return self._begin(_opened(files[-1]), link)
        for path in dict.fromkeys((at.path, link)):
            files = _files(path)
            same = [file for file in files if file.inode == at.inode]
            candidates = [file for file in files if file in same or (file.path != path and at.may_be_in(file))]
            if at.head:  # a copy may be there before the file is emptied; without a head the oldest is next
                candidates.sort(key=lambda file: file not in same)
            for file in candidates:
                with suppress(PermissionError):
                    descriptor = _opened(file)
                    if at.fits(descriptor):
                        return self._continue(descriptor, path, at.offset, copied=at.copied or file not in same)
                    os.close(descriptor)
            if same or self._descriptor != CLOSED:
                descriptor = _opened(same[0]) if self._descriptor == CLOSED else self._descriptor
                why = "was emptied, and there is no copy of it; continuing at its beginning" if at.head else ""
                return self._begin(descriptor, path, why)
        return self._advance("was replaced, and the old file cannot be found; continuing with the new one")

    def _finish(self) -> bool:
        """Leave a file that was read to its end for the next one; False if there is none, or it has grown."""
        about = os.fstat(self._descriptor)
        has_grown = (about.st_size, about.st_mtime_ns) != (self._at.offset, self._at.modified)
        return not has_grown and self._advance("was replaced; continuing with the new file")

    def _advance(self, why: str) -> bool:
        """Open the next file, the oldest rotated since, the one of the same name, or one that the link led to."""
        at = self._at
        for place, path in enumerate((at.path, *at.switched)):
            for file in _files(path):
                if file.inode != at.inode and (file.path == path or at.precedes(file)):
                    descriptor = _opened(file)
                    self._at = replace(at, switched=at.switched[place:])
                    return self._begin(descriptor, path, why)
            if place:
                self._on_message(f"{path} was removed before it was read")
        self._at = replace(at, switched=())
        return False

    def _begin(self, descriptor: int, path: str, why: str = "") -> bool:
        """Continue at the beginning of an open file."""
        at = self._at
        if not at.copied:  # else the second half of the line follows behind the truncation
            self._lines.clear()
        self._continue(descriptor, path)
        if at.inode not in (0, self._at.inode):
            self._at = replace(self._at, passed=(*at.passed, at.inode)[-PASSED:])
        if why:
            self._on_message(f"{self.path} {why}")
        return True

    def _continue(self, descriptor: int, path: str, offset: int = 0, *, copied: bool = False) -> bool:
        """Continue with an open file, of which `offset` bytes were read."""
        if descriptor != self._descriptor:
            self.close()
        about = os.fstat(descriptor)
        self._descriptor = descriptor
        self._at = replace(
            self._at,
            path=path,
            inode=about.st_ino,
            modified=about.st_mtime_ns,
            offset=offset,
            head=os.pread(descriptor, HEAD, 0),  # now, for it may be emptied before a line of it is read
            last=os.pread(descriptor, min(LAST, offset), max(offset - LAST, 0)),
            copied=copied,
        )
        self._begins = offset <= self._lines.size
        self._quiet_since = time.monotonic()
        return True

    def _is_over(self) -> bool:
        """Whether the file, read to its end, was renamed, removed or switched, has a successor and will not grow."""
        at = self._at
        here = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except OSError:
            self._report_problem()
            return False
        if os.path.samestat(here, there) and not at.switched:
            return False
        if at.copied or 2 * self.linger < time.time() - here.st_mtime:
            return True
        return time.monotonic() - self._quiet_since >= self.linger

    def _notice_switch(self) -> None:
        """Note the file that a link was switched to, behind those it led to unseen. They are read in their turn."""
        at, path = self._at, os.path.realpath(self.path)
        before = at.switched[-1] if at.switched else at.path
        if at.path and path != before and os.path.isfile(path):
            later = [file for file in _between(before, path) if file.modified >= at.modified]
            unseen = [file.path for file in later if file.inode not in (at.inode, *at.passed)]
            new = [name for name in unseen if name not in at.switched]
            self._at = replace(at, switched=(*at.switched, *new, path))
            self.switches += 1

    def _report_problem(self) -> None:
        """Report, once, why the file cannot be read; in the middle of a rotation there is no reason."""
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
            self._on_message(f"{self.path}: {problem}; waiting for a file that can be read")
        self._problem = problem


class _File(NamedTuple):
    path: str
    inode: int
    modified: int  # ns
    changed: int  # ns; by a rename too


def _opened(file: _File) -> int:
    """A descriptor of this very file; a `FileNotFoundError` if it is no longer at its path."""
    descriptor = os.open(file.path, os.O_RDONLY)
    if os.fstat(descriptor).st_ino != file.inode:
        os.close(descriptor)
        raise FileNotFoundError
    return descriptor


def _files(path: str) -> list[_File]:
    """The files that rotation left beside this path, oldest first, and the one at the path itself."""
    folder, name = os.path.split(path)
    stem, suffix = map(re.escape, os.path.splitext(name))
    pattern = rf"{stem}{suffix}({ROTATED})?|{stem}{ROTATED}{suffix}"
    files = _listed(folder, pattern)
    for _ in range(TRIES):  # a rename while the folder is listed may hide a file, so look until nothing moves
        before, files = files, _listed(folder, pattern)
        if {file[:2] for file in before} == {file[:2] for file in files}:
            break
    return sorted(files, key=lambda file: (file.path == path, file.modified, file.changed))


def _between(first: str, last: str) -> list[_File]:
    """The files beside both whose names differ from theirs in numbers only, and are between them, in order."""
    folder, name = os.path.split(first)
    pattern = re.sub(r"\d+", r"\\d+", re.escape(name))
    if os.path.dirname(last) != folder or not re.fullmatch(pattern, os.path.basename(last)):
        return []
    files = [file for file in _listed(folder, pattern) if _numbers(first) < _numbers(file.path) < _numbers(last)]
    return sorted(files, key=lambda file: _numbers(file.path))


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", os.path.basename(path))]


def _listed(folder: str, pattern: str) -> list[_File]:
    files = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if re.fullmatch(pattern, entry.name):
                with suppress(OSError):
                    about = os.stat(entry.path)
                    if stat.S_ISREG(about.st_mode):
                        files.append(_File(entry.path, about.st_ino, about.st_mtime_ns, about.st_ctime_ns))
    return files

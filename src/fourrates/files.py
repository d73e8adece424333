"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Literal

PART = ".part"
ABANDONED = 600.0  # seconds after which a scratch file is nobody's
MAC = {"cache": "~/Library/Caches", "state": "~/Library/Application Support"}
UNIX = {"cache": "~/.cache", "state": "~/.local/state"}
_swept: set[str] = set()


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the requested file in errors, not the scratch file beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside the old one, sync it, and move it in place, so that readers see the old or the new.

    Anything but a regular file (a device, a pipe) is written to directly.
    """
    with _named(path):
        target = os.path.realpath(path)  # a link stays a link
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                file.write(content)
            return
        if target not in _swept:  # once in a process; left by one that was killed
            _swept.add(target)
            sweep(*os.path.split(target))
        with scratch(target) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # so that the new name survives a power cut, if folders can be synced
            folder = os.open(os.path.dirname(target), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def scratch(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file with an unpredictable name, moved to `path` at the end; removed after an error."""
    import tempfile  # takes a while, and many runs write nothing

    folder, name = os.path.split(path)
    handle, made = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}.", suffix=PART)
    try:
        with open(made, "wb", opener=lambda *_: handle) as file:  # it knows its name
            yield file
        os.chmod(made, _mode(path) if mode is None else mode)
        os.replace(made, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise


def sweep(folder: str | os.PathLike[str], name: str = "") -> None:
    """Remove scratch files, of the file of this name or of any, that are too old to be still in use."""
    before = time.time() - ABANDONED
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(f".{name}." if name else ".") and entry.name.endswith(PART):
                with suppress(OSError):
                    if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that writing the file would raise, before any work is done for it."""
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder", os.fspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        return
    import tempfile

    with _named(path), tempfile.TemporaryFile(dir=os.path.dirname(path) or "."):
        pass


def _mode(path: str | os.PathLike[str]) -> int:
    """The mode of the existing file, or that of a new one."""
    if os.path.exists(path):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def user_folder(kind: Literal["cache", "state"]) -> str:
    """The folder of such files: FOURRATES_CACHE or FOURRATES_STATE if set, else the user's one on this system.

    For a user without a home the path begins with ~.
    """
    if named := os.environ.get(f"FOURRATES_{kind.upper()}"):
        return named
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = MAC[kind]
    else:
        base = os.environ.get(f"XDG_{kind.upper()}_HOME") or UNIX[kind]
    return os.path.join(os.path.expanduser(base), "fourrates")

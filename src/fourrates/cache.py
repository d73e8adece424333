"""Tables of bounds on disk: one file a table in the user's cache folder.

A file is three lines of text, padded to a whole number of blocks, and the numbers: what the table is of, the shapes of
its arrays, a checksum. It is written to one side and then moved in place, so no reader ever sees half a file; one that
is cut short, damaged, of another table, or whose numbers cannot be those of such a table counts as not there: a
checksum finds damage, but whoever forges a file forges that too. Only light modules are imported: with a table in the
cache the first detector takes milliseconds.
"""

from __future__ import annotations

import math
import os
import sys
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from fourrates import files

if TYPE_CHECKING:
    import numpy.typing as npt

    Arrays = tuple[npt.NDArray[np.float32], ...]

HEADER = 1 << 16  # bytes; more than the three lines of text ever have
BLOCK = 64  # bytes; numbers begin at a multiple, so that they can be used where they lie


def folder() -> str:
    """Where tables are kept: FOURRATES_CACHE if set, else the user's cache folder on this system.

    A user without a home has none: then the path begins with ~, and nothing is kept.
    """
    if named := os.environ.get("FOURRATES_CACHE"):
        return named
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.join(os.path.expanduser(base), "fourrates")


def write(key: str, arrays: Iterable[npt.NDArray[np.float32]]) -> None:
    """Keep the arrays under `key`, one line of text. Where nothing can be written, nothing is, and no error either."""
    arrays = tuple(arrays)
    payload = b"".join(array.astype("<f4").tobytes() for array in arrays)
    shapes = " ".join(",".join(map(str, array.shape)) for array in arrays)
    path = _path(key)
    if path.startswith("~"):
        return
    text = f"{key}\n{shapes}\n{_checksum(key, shapes, payload)}".encode()
    with suppress(OSError):
        os.makedirs(folder(), exist_ok=True)
        files.sweep(folder())
        with files.scratch(path) as file:
            file.write(text + b" " * (-(len(text) + 1) % BLOCK) + b"\n" + payload)


def read(key: str, numbers: int, is_sound: Callable[[Arrays], bool]) -> Arrays | None:
    """Bring back the arrays kept under `key`, or None if there is no file of them, or one that is not sound.

    No more is read than this number of values takes.
    """
    try:
        if not os.path.isfile(path := _path(key)):  # whoever opened a pipe would wait
            return None
        most = 4 * numbers + HEADER
        with open(path, "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            return None
        start = 0
        for _ in range(3):
            start = content.index(b"\n", start) + 1
        found, shapes, checksum = content[: start - 1].decode().split("\n")
        if found != key or int(checksum) != _checksum(key, shapes, memoryview(content)[start:]):
            return None
        values = np.frombuffer(content, "<f4", offset=start).astype(np.float32, copy=False)
        arrays, end = [], 0
        for text in shapes.split():
            shape = tuple(map(int, text.split(",")))
            begin, end = end, end + math.prod(shape)
            arrays.append(values[begin:end].reshape(shape))
        return tuple(arrays) if end == values.size and is_sound(tuple(arrays)) else None
    except (OSError, ValueError):  # not there, cut short, or not ours
        return None


def _checksum(key: str, shapes: str, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(f"{key} {shapes}".encode()))


def _path(key: str) -> str:
    name = f"{zlib.crc32(key.encode()):08x}{zlib.adler32(key.encode()):08x}"  # the key itself is in the file
    return os.path.join(folder(), f"{name}.table")

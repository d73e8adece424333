"""Tables of bounds on disk: one file a table in the user's cache folder.

A file is two lines of text, padded to a whole number of blocks, and the numbers: what the table is of, which says the
shapes of its arrays too, and a checksum. It is written to one side and then moved in place, so no reader ever sees half
a file; one that is cut short, damaged or of another table counts as not there. Whoever forges a file forges the
checksum too: :mod:`fourrates.null` looks at the numbers. Only light modules are imported: with a table in the cache the
first detector takes milliseconds.
"""

from __future__ import annotations

import math
import os
import sys
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from fourrates import files

Arrays = tuple[npt.NDArray[np.float32], ...]

HEADER = 1 << 16  # bytes; more than the two lines of text ever have
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
    payload = b"".join(array.astype("<f4").tobytes() for array in arrays)
    path = _path(key)
    if path.startswith("~"):
        return
    text = f"{key}\n{_checksum(key, payload)}".encode()
    with suppress(OSError):
        os.makedirs(folder(), exist_ok=True)
        files.sweep(folder())
        with files.scratch(path) as file:
            file.write(text + b" " * (-(len(text) + 1) % BLOCK) + b"\n" + payload)


def read(key: str, shapes: Sequence[tuple[int, ...]]) -> Arrays | None:
    """Bring back the arrays of these shapes kept under `key`, or None if there is no file of them, or a damaged one."""
    sizes = [math.prod(shape) for shape in shapes]
    try:
        if not os.path.isfile(path := _path(key)):  # whoever opened a pipe would wait
            return None
        with open(path, "rb") as file:
            content = file.read(4 * sum(sizes) + HEADER)  # no more than a sound file has
        start = content.index(b"\n", content.index(b"\n") + 1) + 1
        found, checksum = content[: start - 1].decode().split("\n")
        if found != key or int(checksum) != _checksum(key, memoryview(content)[start:]):
            return None
        values = np.frombuffer(content, "<f4", offset=start).astype(np.float32, copy=False)
        if values.size != sum(sizes):
            return None
        parts = np.split(values, np.cumsum(sizes)[:-1])
        return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    except (OSError, ValueError):  # not there, cut short, or not ours
        return None


def _checksum(key: str, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(key.encode()))


def _path(key: str) -> str:
    name = f"{zlib.crc32(key.encode()):08x}{zlib.adler32(key.encode()):08x}"  # the key itself is in the file
    return os.path.join(folder(), f"{name}.table")

"""Tables of bounds on disk: one file a table in the user's cache folder, saved as :mod:`fourrates.state` saves all.

It is written to one side and then moved in place, so no reader ever sees half a file; one that is cut short, damaged or
of another table counts as not there. Whoever forges a file forges the checksum too: :mod:`fourrates.null` looks at the
numbers.
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
from fourrates.state import pack, read_state, unpack

Arrays = tuple[npt.NDArray[np.float32], ...]

HEADER = 1 << 16  # bytes; more than all but the numbers ever have


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
    """Keep the arrays under `key`. Where nothing can be written, nothing is, and no error either."""
    if (path := _path(key)).startswith("~"):
        return
    sections = {str(i): array.astype("<f4").tobytes() for i, array in enumerate(arrays)}
    with suppress(OSError):
        os.makedirs(folder(), exist_ok=True)
        files.sweep(folder())
        with files.scratch(path) as file:
            file.write(pack("table", {"key": key}, **sections))


def read(key: str, shapes: Sequence[tuple[int, ...]]) -> Arrays | None:
    """Bring back the arrays of these shapes kept under `key`, or None if there is no file of them, or a damaged one."""
    try:
        saved = unpack(read_state(_path(key), 4 * sum(map(math.prod, shapes)) + HEADER))
        if saved.about != {"key": key}:
            return None
        arrays = (np.frombuffer(section, "<f4").astype(np.float32) for section in saved.sections.values())
        return tuple(array.reshape(shape) for array, shape in zip(arrays, shapes, strict=True))
    except (OSError, ValueError):  # not there, cut short, or not ours
        return None


def _path(key: str) -> str:
    name = f"{zlib.crc32(key.encode()):08x}{zlib.adler32(key.encode()):08x}"  # the key itself is in the file
    return os.path.join(folder(), f"{name}.table")

"""Tables of bounds on disk, one file each in the user's cache folder, saved as :mod:`fourrates.state` saves all.

A file is written under a temporary name and then moved in place, so no reader sees half of one. One that is truncated,
damaged or for another table counts as missing. A forged file may have a forged checksum, so :mod:`fourrates.null`
checks the numbers.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from fourrates import files
from fourrates.state import pack, read_state, unpack

Arrays = tuple[npt.NDArray[np.float32], ...]

HEADER = 1 << 16  # bytes; more than everything but the numbers


def folder() -> str:
    """The folder of the tables; nothing is saved in it for a user without a home."""
    return files.user_folder("cache")


def write(key: str, arrays: Iterable[npt.NDArray[np.float32]]) -> None:
    """Save the arrays under `key`; do nothing if the folder is not writable."""
    if (path := _path(key)).startswith("~"):
        return
    sections = {str(i): array.astype("<f4").tobytes() for i, array in enumerate(arrays)}
    with suppress(OSError):
        os.makedirs(folder(), exist_ok=True)
        files.sweep(folder())
        with files.scratch(path) as file:
            file.write(pack("table", {"key": key}, **sections))


def read(key: str, shapes: Sequence[tuple[int, ...]]) -> Arrays | None:
    """Load the arrays of these shapes under `key`; None if there is no valid file."""
    try:
        saved = unpack(read_state(_path(key), 4 * sum(map(math.prod, shapes)) + HEADER))
        if saved.about != {"key": key}:
            return None
        arrays = (np.frombuffer(section, "<f4").astype(np.float32) for section in saved.sections.values())
        return tuple(array.reshape(shape) for array, shape in zip(arrays, shapes, strict=True))
    except (OSError, ValueError):  # missing, truncated, or not ours
        return None


def _path(key: str) -> str:
    name = f"{zlib.crc32(key.encode()):08x}{zlib.adler32(key.encode()):08x}"  # the key itself is in the file
    return os.path.join(folder(), f"{name}.table")

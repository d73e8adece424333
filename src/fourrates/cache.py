"""Tables of bounds on disk: one file a table in the user's cache folder.

A file is a header in JSON, padded to a whole number of blocks, and the numbers. It is written to one side and then
moved in place, so no reader ever sees half a file; a file that is cut short, damaged or of another kind counts as not
there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK = 64  # bytes; numbers begin at a multiple, so that they can be used where they lie


def folder() -> Path:
    """Where tables are kept: FOURRATES_CACHE if set, else the user's cache folder on this system."""
    if named := os.environ.get("FOURRATES_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fourrates"


def write(key: dict[str, Any], arrays: Iterable[npt.NDArray[np.float32]]) -> None:
    """Keep the arrays under `key`. A folder that cannot be written to is no error: the table is in memory."""
    arrays = tuple(arrays)
    payload = b"".join(array.astype("<f4").tobytes() for array in arrays)
    header = {**key, "shapes": [array.shape for array in arrays], "crc32": zlib.crc32(payload)}
    path = _path(key)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                text = json.dumps(header).encode()
                file.write(text + b" " * (-(len(text) + 1) % BLOCK) + b"\n" + payload)
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise


def read(key: dict[str, Any]) -> tuple[npt.NDArray[np.float32], ...] | None:
    """Bring back the arrays kept under `key`, or None if there is no sound file of them."""
    try:
        content = _path(key).read_bytes()
        start = content.index(b"\n") + 1
        header = json.loads(content[:start])
        shapes = header.pop("shapes")
        if header.pop("crc32") != zlib.crc32(memoryview(content)[start:]) or header != _plain(key):
            return None
        values = np.frombuffer(content, "<f4", offset=start).astype(np.float32, copy=False)
        ends = accumulate(map(math.prod, shapes))
        return tuple(
            values[end - math.prod(shape) : end].reshape(shape) for shape, end in zip(shapes, ends, strict=True)
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError):  # not there, cut short, or not ours
        return None


def _path(key: dict[str, Any]) -> Path:
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return folder() / f"{name}.table"


def _plain(key: dict[str, Any]) -> Any:
    return json.loads(json.dumps(key))

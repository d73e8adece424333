"""The segments of a monitor: each name has a number, in the order of appearance.

Ten thousand segments in a hundred monitors leave no room for a Python object each: names stand one after another in one
run of bytes, and are found by a keyed fingerprint of 64 bits.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fourrates.join.ids import fingerprints
from fourrates.kernel.fingerprint import Hasher
from fourrates.kernel.index import Index

if TYPE_CHECKING:
    import numpy.typing as npt


class Segments:
    """Names to numbers 0, 1, ... and back.

    Parameters
    ----------
    key : bytes
        The key of the fingerprints: 16 bytes that nobody outside knows.
    most : int
        How many there may be.
    """

    def __init__(self, key: bytes, most: int) -> None:
        self._hasher = Hasher(key)
        self._index = Index(int.from_bytes(key[:8], "little"))
        self._data = bytearray()
        self._ends = array("I")
        self.most = most

    def __len__(self) -> int:
        return len(self._ends)

    def take(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The numbers of different names; new ones get the next. Too many are a ValueError, and nothing changes."""
        keys = fingerprints(self._hasher, list(names))["low"].view(np.int64)
        numbers, start = np.empty(keys.size, np.int32), len(self)
        self._index.take(np.ascontiguousarray(keys), False, start, numbers)
        if self._index.size > self.most:
            self._index.truncate(start)
            raise ValueError(f"more than {self.most:,} segments")
        for position in np.flatnonzero(numbers >= start).tolist():
            self._data += names[position].encode()
            self._ends.append(len(self._data))
        return numbers.astype(np.int64)

    def name(self, number: int) -> str:
        """The name with this number."""
        return self._data[self._ends[number - 1] if number else 0 : self._ends[number]].decode()

    def to_state(self) -> tuple[bytes, bytes]:
        """All names, and where each ends."""
        return bytes(self._data), np.frombuffer(self._ends, np.uint32).astype("<u4").tobytes()

    def restore(self, data: bytes, ends: bytes) -> None:
        """Know the names that :meth:`to_state` gave, in an instance that knows none."""
        edges = [0, *np.frombuffer(ends, "<u4").tolist()]
        names = [data[start:end].decode() for start, end in pairwise(edges)]
        if edges[-1] != len(data) or self.take(names).tolist() != [*range(len(names))]:
            raise ValueError("the saved names of segments do not fit")

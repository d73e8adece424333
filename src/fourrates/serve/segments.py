"""The segments of a monitor: each name has a number, in the order of appearance.

Ten thousand segments in a hundred monitors leave no room for a Python object each: names stand one after another in one
run of bytes, and are found by a keyed fingerprint of 64 bits, in a sorted array: 12 bytes each, where a table of hashes
takes 26.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.join.ids import fingerprints
from fourrates.kernel.fingerprint import Hasher

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[Any]


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
        self._known = np.empty(0, np.uint64)  # fingerprints, sorted
        self._numbers = np.empty(0, np.int32)  # whose they are
        self._data = bytearray()
        self._ends = array("I")
        self.most = most

    def __len__(self) -> int:
        return len(self._ends)

    def take(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The numbers of different names; new ones get the next. Too many are a ValueError, and nothing changes."""
        keys = fingerprints(self._hasher, list(names))["low"]
        places = self._known.searchsorted(keys)
        new = np.flatnonzero(self._known.take(places, mode="clip") != keys) if len(self) else np.arange(keys.size)
        if new.size:
            self._add(names, keys, places, new)
            places = self._known.searchsorted(keys)
        return self._numbers[places].astype(np.int64)

    def _add(self, names: Sequence[str], keys: Numbers, places: Numbers, new: Numbers) -> None:
        """Give new names the next numbers, in their order."""
        start = len(self)
        if start + new.size > self.most:
            raise ValueError(f"more than {self.most:,} segments")
        order = keys[new].argsort(kind="stable")
        self._known = np.insert(self._known, places[new][order], keys[new][order])
        self._numbers = np.insert(self._numbers, places[new][order], start + order)
        for position in new.tolist():
            self._data += names[position].encode()
            self._ends.append(len(self._data))

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

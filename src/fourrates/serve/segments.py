"""The segments of a monitor: each name has a number, in the order of appearance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class Segments:
    """Names to numbers 0, 1, ... and back.

    Parameters
    ----------
    most : int
        How many there may be.
    """

    def __init__(self, most: int) -> None:
        self._numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.most = most

    def __len__(self) -> int:
        return len(self.names)

    def take(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The numbers of different names; new ones get the next. Too many are a ValueError, and nothing changes."""
        new = [name for name in names if name not in self._numbers]
        if len(self) + len(new) > self.most:
            raise ValueError(f"more than {self.most:,} segments")
        for name in new:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return np.array([self._numbers[name] for name in names], np.int64)

    def number(self, name: str) -> int:
        """The number of a name."""
        return self._numbers[name]

    def restore(self, names: list[str]) -> None:
        """Know the names that another instance had, in an instance that knows none."""
        if len(set(names)) != len(names):
            raise ValueError("the saved names of segments do not fit")
        self.take(names)

"""The newest examples of a stream, with their labels."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.labels import Codes
from fourrates.retrain.rows import join, take


class Window:
    """The newest examples of a stream, without gaps and at most `most` of them."""

    def __init__(self, classes: int, most: int, start: int = 0) -> None:
        self.start = start
        self.counts = np.zeros(classes, np.int64)
        self._most = most
        self._size = 0
        self._parts: deque[tuple[Any, Codes]] = deque()

    @property
    def positions(self) -> range:
        """Their positions in the stream."""
        return range(self.start, self.start + self._size)

    def add(self, rows: Any, truths: Codes) -> None:
        """Append the next examples of the stream; those kept are copied."""
        self.forget_before(self.start + self._size + truths.size - self._most)
        newest = np.arange(max(truths.size - self._most, 0), truths.size)
        if newest.size:
            self._parts.append((take(rows, newest), truths[newest]))
            self._count(truths[newest], 1)

    def forget_before(self, position: int) -> None:
        """Drop the examples before a position, which may lie after the last one and is then that of the next."""
        while self.start < position and self._parts:
            rows, truths = self._parts.popleft()
            cut = min(position - self.start, truths.size)
            if cut < truths.size:
                self._parts.appendleft((take(rows, slice(cut, None)), truths[cut:]))
            self._count(truths[:cut], -1)
            self.start += cut
        self.start = max(self.start, position)

    def part(self, window: range) -> tuple[Any, Codes]:
        """The examples at these positions, all of which must be here; of none, empty lists."""
        if window.start < self.start or window.stop > self.positions.stop:
            raise IndexError(f"{window} is not within {self.positions}")
        if not window:
            return [], np.empty(0, np.uint16)
        rows, codes = [], []
        at = self.start
        for table, truths in self._parts:
            low, high = max(window.start - at, 0), min(window.stop - at, truths.size)
            if low < high:
                rows.append(take(table, slice(low, high)))
                codes.append(truths[low:high])
            at += truths.size
        return join(rows), np.concatenate(codes)

    def _count(self, truths: npt.NDArray[np.uint16], sign: int) -> None:
        self._size += sign * truths.size
        self.counts += sign * np.bincount(truths, minlength=self.counts.size)

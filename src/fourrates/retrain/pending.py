"""The examples of predictions that wait for their labels.

:class:`~fourrates.LabelJoin` decides which wait, and for how long, and keeps an id's prediction and a number. The
examples are kept here by that number, for training the next model and for its predictions.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fourrates.retrain.rows import count, join, take

Numbers = npt.NDArray[np.int64]

SLACK = 64  # examples that may be kept though nothing waits for them


class _Asked(NamedTuple):
    """The examples of one call of `predict` that may still wait."""

    numbers: Numbers  # in order
    rows: Any
    period: int


class Examples:
    """Examples by their number, in order of prediction."""

    def __init__(self) -> None:
        self._asked: list[_Asked] = []
        self._firsts: list[int] = []  # the first number of each
        self._next = self._kept = 0

    def next_numbers(self, size: int) -> Numbers:
        """The numbers that this many examples will have."""
        return np.arange(self._next, self._next + size)

    def add(self, rows: Any, period: int) -> None:
        """Keep a copy of these examples, predicted in this period."""
        size = count(rows)
        if size:
            self._asked.append(_Asked(self.next_numbers(size), take(rows, np.arange(size)), period))
            self._firsts.append(self._next)
            self._next += size
            self._kept += size

    def get(self, numbers: Numbers) -> tuple[Any, Numbers]:
        """The examples of these numbers, at least one, and the period of the model that predicted each."""
        places: dict[int, list[int]] = {}
        for position, number in enumerate(numbers.tolist()):
            places.setdefault(bisect_right(self._firsts, number) - 1, []).append(position)
        tables = []
        for place, positions in places.items():
            asked = self._asked[place]
            tables.append(take(asked.rows, np.searchsorted(asked.numbers, numbers[positions])))
        order = np.argsort(np.concatenate(list(places.values())))
        periods = np.concatenate([np.full(len(positions), self._asked[i].period) for i, positions in places.items()])
        return take(join(tables), order), periods[order]

    def outnumber(self, waiting: int) -> bool:
        """Whether more are kept than twice the number that wait."""
        return self._kept > 2 * waiting + SLACK

    def keep(self, waiting: Numbers) -> None:
        """Drop all examples but these, whose numbers are in order."""
        left = []
        for asked in self._asked:
            low, high = np.searchsorted(waiting, (asked.numbers[0], asked.numbers[-1] + 1))
            if high - low == asked.numbers.size:
                left.append(asked)
            elif high > low:
                places = np.searchsorted(asked.numbers, waiting[low:high])
                left.append(_Asked(asked.numbers[places], take(asked.rows, places), asked.period))
        self._asked = left
        self._firsts = [int(asked.numbers[0]) for asked in left]
        self._kept = sum(asked.numbers.size for asked in left)

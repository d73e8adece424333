"""Duplicate events, by repeated ids and rows equal to the row before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.events.columns import is_missing
from fourrates.join.ids import fingerprints
from fourrates.kernel.fingerprint import Hasher

Prints = npt.NDArray[np.uint64]

KEPT = 1 << 20  # ids remembered at most
APART = 7  # rows between two that are compared to see how often rows are alike by chance
ALIKE = 0.01  # share of rows that may be alike by chance; beyond, the columns do not identify a row
SCARCE = 0.001  # share of rows; fewer repeats do no harm
FEWEST = 100  # rows needed for a result
KEY = b"fourrates: ids  "  # fixed, so the same input gives the same answer


class Ids:
    """Counts repeated ids; of too many, a sample by fingerprints ending in zeros, whose counts are scaled up."""

    def __init__(self, kept: int = KEPT) -> None:
        self._hasher, self._most = Hasher(KEY), kept
        self._known: Prints = np.empty(0, np.uint64)
        self._zeros = 0
        self.repeated = 0  # events whose id was there before

    @property
    def is_estimate(self) -> bool:
        """Whether there were too many ids to remember each."""
        return self._zeros > 0

    def add(self, ids: Any) -> None:
        """Count ids; missing ones are skipped."""
        if hasattr(ids, "null_count"):
            ids = ids.drop_null() if ids.null_count else ids
        elif isinstance(ids, list):
            ids = [value for value in ids if not is_missing(value)]
        elif ids.dtype.kind == "f":
            ids = ids[~np.isnan(ids)]
        self.add_prints(fingerprints(self._hasher, ids)["low"])

    def add_prints(self, prints: Prints) -> None:
        """Count fingerprints."""
        prints = self._remembered(prints)
        new = np.setdiff1d(prints, self._known)
        self.repeated += (prints.size - new.size) << self._zeros
        self._known = np.union1d(self._known, new)
        while self._known.size > self._most:
            self._zeros += 1
            self._known = self._remembered(self._known)

    def _remembered(self, prints: Prints) -> Prints:
        remembered: Prints = prints[(prints & np.uint64((1 << self._zeros) - 1)) == 0]
        return remembered


class Rows:
    """Counts rows equal to the row before; rows seven apart show how often that is chance."""

    def __init__(self) -> None:
        self._last: Prints = np.empty(0, np.uint64)
        self.rows = 0
        self._repeated = self._by_chance = 0
        self._pairs = np.zeros(2, np.int64)  # by whether the row before has an even or an odd number
        self._alike = np.zeros(2, np.int64)

    def add(self, *columns: npt.NDArray[Any]) -> None:
        """Count rows; all columns have the same length and hold whole numbers, times or fractions."""
        mixed = np.full(columns[0].size, 0x9E3779B97F4A7C15, np.uint64)
        for column in columns:
            mixed = _stirred(mixed ^ _bits(column))
        known = self._last.size
        joined = np.concatenate([self._last, mixed])
        start = max(known, 1)
        same = joined[start:] == joined[start - 1 : -1]
        odd = (self.rows - known + np.arange(start - 1, joined.size - 1)) % 2 == 1
        for parity, which in enumerate((~odd, odd)):
            self._pairs[parity] += int(which.sum())
            self._alike[parity] += int((same & which).sum())
        self._repeated += int(same.sum())
        apart = joined[APART:] == joined[:-APART]
        self._by_chance += int(apart[-mixed.size :].sum())
        self.rows += mixed.size
        self._last = joined[-APART:]

    @property
    def repeated(self) -> int | None:
        """Rows equal to the row before, 0 if chance explains them; None if the columns do not identify a row."""
        if self.rows < FEWEST or self._by_chance >= ALIKE * self.rows:
            return None
        beyond = self._repeated - self._by_chance
        return self._repeated if beyond > max(5 * math.sqrt(self._by_chance + 1), SCARCE * self.rows) else 0

    @property
    def twice_each(self) -> bool:
        """Whether every second row equals the one before it, so that every event is there twice."""
        whole = (self._pairs >= FEWEST / 2) & (self._alike == self._pairs)
        return bool(whole.any()) and self._by_chance < 0.99 * self.rows


def _bits(column: npt.NDArray[Any]) -> Prints:
    if column.dtype.kind in "fM":
        return np.ascontiguousarray(column, "f8" if column.dtype.kind == "f" else "M8[us]").view(np.uint64)
    return column.astype(np.int64).view(np.uint64)


def _stirred(bits: Prints) -> Prints:
    """The finalizer of SplitMix64, in which every bit of the result depends on every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))

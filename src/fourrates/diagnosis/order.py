"""Errors that follow errors, and times that run backwards, stream by stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]

NONE = np.iinfo(np.int64).min  # also what NaT is


class _Previous:
    """The value before each, among those of the same group; groups are numbered from 0."""

    def __init__(self) -> None:
        self._last = np.empty(0, np.int64)

    def take(self, groups: Whole, values: Whole) -> tuple[Whole, Whole, Whole]:
        """Groups, values and those before them, group by group; `NONE` where there is none before."""
        order = np.argsort(groups, kind="stable")
        groups, values = groups[order], values[order]
        most = int(groups[-1]) + 1
        if most > self._last.size:
            self._last = np.append(self._last, np.full(most - self._last.size, NONE))
        first = np.append(True, groups[1:] != groups[:-1])
        before = np.append(NONE, values[:-1])
        before[first] = self._last[groups[first]]
        ends = np.append(first[1:], True)
        self._last[groups[ends]] = values[ends]
        return groups, values, before


class Errors:
    """The correlation of an error with the one before, among events of the same class and stream."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._previous = _Previous()
        self._counts = np.zeros((4, classes), np.int64)  # by group; events, errors, pairs, pairs of errors

    def take(self, truths: Any, preds: Any, keys: Whole | None) -> None:
        """Take events in."""
        groups = truths.astype(np.int64) + (0 if keys is None else keys * self._classes)
        groups, wrong, before = self._previous.take(groups, (truths != preds).astype(np.int64))
        size = int(groups[-1]) + 1
        size += -size % self._classes
        if size > self._counts.shape[1]:
            self._counts = np.pad(self._counts, ((0, 0), (0, size - self._counts.shape[1])))
        size = self._counts.shape[1]
        known = before != NONE
        for row, which in enumerate((slice(None), wrong == 1, known, known & (wrong == 1) & (before == 1))):
            self._counts[row] += np.bincount(groups[which], minlength=size)

    def correlations(self) -> npt.NDArray[np.float64]:
        """For each class, over all streams; nan if undefined."""
        n, wrong, pairs, both = self._counts.astype(np.float64)
        p = wrong / np.maximum(n, 1)
        spread = p * (1 - p)
        # A stream's own rate is estimated from the same bits, which costs one of them.
        own = np.where(pairs > 0, both - pairs * p * p + spread, 0.0)
        over, under = (parts.reshape(-1, self._classes).sum(0) for parts in (own, pairs * spread))
        found = np.full(self._classes, np.nan)
        np.divide(over, under, out=found, where=under > 0)
        return found

    def pairs(self) -> Whole:
        """For each class, the pairs of successive events behind its correlation."""
        found: Whole = self._counts[2].reshape(-1, self._classes).sum(0)
        return found


class Clock:
    """The span of the times, how many there are a day, and how many run backwards in their stream."""

    MOST_DAYS = 40_000

    def __init__(self) -> None:
        self._previous = _Previous()
        self._days: dict[int, int] = {}
        self.known = self.unknown = self.backwards = 0
        self.largest_step = 0  # back, in microseconds
        self.first: int | None = None
        self.last: int | None = None

    def take(self, times: npt.NDArray[np.datetime64], keys: Whole | None) -> None:
        """Count times; unknown ones are skipped."""
        there = ~np.isnat(times)
        micros = times.astype("M8[us]").astype(np.int64)[there]
        self.known, self.unknown = self.known + micros.size, self.unknown + times.size - micros.size
        if not micros.size:
            return
        groups = np.zeros(micros.size, np.int64) if keys is None else keys[there]
        _, now, before = self._previous.take(groups, micros)
        back = np.where(before == NONE, 0, before - now)
        self.backwards += int((back > 0).sum())
        self.largest_step = max(self.largest_step, int(back.max()))
        low, high = int(micros.min()), int(micros.max())
        self.first = low if self.first is None else min(self.first, low)
        self.last = high if self.last is None else max(self.last, high)
        for day, count in zip(*np.unique(micros // 86_400_000_000, return_counts=True), strict=True):
            if int(day) in self._days or len(self._days) < self.MOST_DAYS:
                self._days[int(day)] = self._days.get(int(day), 0) + int(count)

    @property
    def rate(self) -> float | None:
        """Events per second, from the first to the last; None if unknown."""
        if self.first is None or self.last is None or self.last <= self.first:
            return None
        return (self.known - 1) / (self.last - self.first) * 1e6

    def days(self) -> tuple[int, int, int] | None:
        """Events of a quiet day, of a middling and of a busy one (a tenth are beyond); whole days only, at least 3."""
        first, last = (min(self._days), max(self._days)) if self._days else (0, 0)
        inside = [self._days.get(day, 0) for day in range(first + 1, last)] if last - first <= self.MOST_DAYS else []
        if len(inside) < 3:
            return None
        low, middle, high = np.quantile(inside, [0.1, 0.5, 0.9]).round().astype(int).tolist()
        return low, middle, high

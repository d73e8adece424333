"""The clock of a stream, and times that run backwards within a segment."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]

NONE = np.iinfo(np.int64).min  # also that of NaT


class Clock:
    """The span of the times, how many there are a day, and how many run backwards in their stream."""

    MOST_DAYS = 40_000

    def __init__(self) -> None:
        self._latest = np.empty(0, np.int64)  # by group
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
        back = self._steps_back(groups, micros)
        self.backwards += int((back > 0).sum())
        self.largest_step = max(self.largest_step, int(back.max()))
        low, high = int(micros.min()), int(micros.max())
        self.first = low if self.first is None else min(self.first, low)
        self.last = high if self.last is None else max(self.last, high)
        for day, count in zip(*np.unique(micros // 86_400_000_000, return_counts=True), strict=True):
            if int(day) in self._days or len(self._days) < self.MOST_DAYS:
                self._days[int(day)] = self._days.get(int(day), 0) + int(count)

    def _steps_back(self, groups: Whole, micros: Whole) -> Whole:
        """By how much each time, group by group, is before the one that came before it."""
        order = np.argsort(groups, kind="stable")
        groups, micros = groups[order], micros[order]
        more = max(int(groups[-1]) + 1 - self._latest.size, 0)
        self._latest = np.append(self._latest, np.full(more, NONE))
        first = np.append(True, groups[1:] != groups[:-1])
        before = np.append(NONE, micros[:-1])
        before[first] = self._latest[groups[first]]
        ends = np.append(first[1:], True)
        self._latest[groups[ends]] = micros[ends]
        return np.where(before == NONE, 0, before - micros)

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

"""Days and weeks in a stream: whether errors, or the class mix, follow the clock.

Events are counted hour by hour. A daily or weekly course is a peak of the periodogram at that period and its harmonics.
The frequencies around them are the noise of this very stream, whether its errors are independent or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

HOURS = {"day": 24, "week": 168}
LEAST = {"day": 4, "week": 4}  # periods in the data before one is looked for
HARMONICS = 3
LEVEL = 1e-4  # for one quantity and one period; there are a handful of each
MOST = 1 << 18  # hours, thirty years; a wider spread is not examined
CLASSES = 8  # examined one by one; more are combined
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Cycle:
    """A quantity that follows the day or the week.

    Attributes
    ----------
    what : {"errors", "share"}
        The errors among events of a class, or the share of that class.
    place : int or None
        Which class, by code; None for the errors of all.
    period : {"day", "week"}
        Which.
    low, high : float
        The quantity where it is lowest and highest.
    low_at, high_at : str
        When that is.
    p_value : float
        How likely noise alone would look like this.
    """

    what: Literal["errors", "share"]
    place: int | None
    period: Literal["day", "week"]
    low: float
    high: float
    low_at: str
    high_at: str
    p_value: float


class Hours:
    """Events and errors of each class in each hour."""

    def __init__(self, classes: int) -> None:
        self._own = classes <= CLASSES
        self._first: int | None = None
        self._counts = np.zeros((0, classes if self._own else 1, 2), np.int64)
        self.too_long = False

    def take(self, times: npt.NDArray[np.datetime64], truths: npt.NDArray[np.uint16], wrong: Numbers) -> None:
        """Count events; those without a time are skipped."""
        there = ~np.isnat(times)
        if self.too_long or not there.any():
            return
        hours = times[there].astype("M8[us]").astype(np.int64) // HOUR
        low, high = int(hours.min()), int(hours.max())
        first = low if self._first is None else min(self._first, low)
        last = max(high, first if self._first is None else self._first + len(self._counts) - 1)
        if last - first >= MOST:
            self.too_long = True
            return
        before = 0 if self._first is None else self._first - first
        after = last - first + 1 - before - len(self._counts)
        self._counts = np.pad(self._counts, ((before, after), (0, 0), (0, 0)))
        self._first = first
        places = truths[there].astype(np.int64) if self._own else np.zeros(hours.size, np.int64)
        cells = ((hours - first) * self._counts.shape[1] + places) * 2 + wrong[there].astype(np.int64)
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(self._counts.shape)

    def cycles(self) -> list[Cycle]:
        """The significant courses, for each quantity the most significant one."""
        if self._first is None or self.too_long:
            return []
        events = self._counts.sum(2).astype(np.float64)  # by hour and class
        found = []
        for place in range(events.shape[1]):
            own = place if self._own else None
            wrong = self._counts[:, place, 1].astype(np.float64)
            found += self._strongest("errors", own, wrong, events[:, place])
            if self._own and (place > 0 or events.shape[1] > 2):  # one of two shares is enough
                found += self._strongest("share", own, events[:, place], events.sum(1))
        return found

    def _strongest(
        self, what: Literal["errors", "share"], place: int | None, ones: Numbers, of: Numbers
    ) -> list[Cycle]:
        assert self._first is not None
        found = []
        for period in ("day", "week"):
            hours = HOURS[period]
            p_value = _p_value(ones, of, hours, LEAST[period])
            if p_value < LEVEL:
                low, high, low_at, high_at = _course(ones, of, self._first, period)
                cycle = Cycle(what, place, "day" if period == "day" else "week", low, high, low_at, high_at, p_value)
                found.append(cycle)
        return found


def _p_value(ones: Numbers, of: Numbers, hours: int, least: int) -> float:
    """How likely noise alone is as strong as this at a period and its harmonics."""
    periods = ones.size // hours
    if periods < least or not 0 < ones.sum() < of.sum():
        return 1.0
    size = periods * hours
    series = ones[:size] - ones.sum() / of.sum() * of[:size]
    power = np.abs(np.fft.rfft(series)) ** 2
    logs = 0.0
    for harmonic in range(1, HARMONICS + 1):
        at = harmonic * periods
        around = power[at - periods // 2 : at + periods // 2 + 1]
        own = around[periods // 2]
        others = np.delete(around, periods // 2)
        # An F with 2 and 2 m degrees of freedom, whose law has a closed form.
        logs += others.size * math.log1p(own / max(others.sum(), 1e-300))
    # Fisher's way to combine independent p-values, chi-squared with an even number of degrees, again a closed form.
    return math.exp(-logs) * sum(logs**i / math.factorial(i) for i in range(HARMONICS))


def _course(ones: Numbers, of: Numbers, first: int, period: str) -> tuple[float, float, str, str]:
    """The lowest and highest value over a period, and when: by hours of the day, smoothed by three, or by weekday."""
    hours = first + np.arange(ones.size)
    if period == "day":
        places, bins = hours % 24, 24
    else:
        places, bins = (hours // 24 + 3) % 7, 7  # the first of January 1970 was a Thursday
    top, bottom = (np.bincount(places, counts, bins) for counts in (ones, of))
    if period == "day":
        top, bottom = (np.roll(counts, 1) + counts + np.roll(counts, -1) for counts in (top, bottom))
    rate = np.divide(top, bottom, out=np.full(bins, np.nan), where=bottom > 0)
    low, high = int(np.nanargmin(rate)), int(np.nanargmax(rate))
    names = [f"{hour:02}:00" for hour in range(24)] if period == "day" else DAYS
    return float(rate[low]), float(rate[high]), names[low], names[high]

"""When did it start: the change point of maximum likelihood, from the counts at a few past marks.

Before the change every rate has one value, after it another; the likelihood of a change at a mark follows from the
counts up to the mark and since. The marks are those a detector remembers: dense near the present, ever sparser
towards the past, and bounded in number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LEVEL = 0.9
"""How often the interval of :class:`Onset` and those of :class:`Share` are to hold the truth."""

# Twice the fall of the log-likelihood from its top to the true change point has the distribution function
# (1 - exp(-x / 2))**2 when changes are small (Siegmund, 1988).
FALL = -math.log(1 - math.sqrt(LEVEL))
DEVIATIONS = 1.6448536269514722  # of a normal law, that enclose it with probability LEVEL


class Share(NamedTuple):
    """A rate as observed over part of a stream.

    Attributes
    ----------
    value : float
        The share that was right; nan without observations.
    lower, upper : float
        Wilson's interval at 90 %.
    n : int
        Observations.
    """

    value: float
    lower: float
    upper: float
    n: int

    @classmethod
    def of(cls, ones: int, n: int) -> Share:
        """The share of ones among n observations."""
        if n == 0:
            return cls(math.nan, 0.0, 1.0, 0)
        square = DEVIATIONS**2 / n
        value = ones / n
        middle = (value + square / 2) / (1 + square)
        reach = math.sqrt(square * (value * (1 - value) + square / 4)) / (1 + square)
        return cls(value, max(0.0, middle - reach), min(1.0, middle + reach), n)


class Onset(NamedTuple):
    """Where a change lies among the marks.

    Attributes
    ----------
    mark : int
        Position of the mark of maximum likelihood.
    first, last : int
        Of the marks that are nearly as likely.
    """

    mark: int
    first: int
    last: int


def locate(n: npt.NDArray[np.int64], ones: npt.NDArray[np.int64], now: Sequence[Sequence[int]]) -> Onset:
    """Find the mark at which a change is most likely.

    Parameters
    ----------
    n, ones : arrays, marks by rates
        Observations of each rate up to each mark, and how many were ones.
    now : (n, ones)
        The same now, by rate.
    """
    total, right = (np.asarray(counts, np.int64) for counts in now)
    likelihood = (_best(ones, n) + _best(right - ones, total - n)).sum(1)
    near = np.flatnonzero(likelihood >= likelihood.max() - FALL)
    return Onset(int(likelihood.argmax()), int(near[0]), int(near[-1]))


def _best(ones: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The log-likelihood of so many ones at the rate that makes them most likely."""

    def part(count: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.asarray(count * np.log(np.maximum(count, 1) / np.maximum(n, 1)))

    return part(ones) + part(n - ones)

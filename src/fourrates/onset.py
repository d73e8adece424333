"""When did it start: the likeliest change point, and a range that holds the true one, from counts at past moments.

Before the change every rate has one value, after it another; the likelihood of a change at a moment follows from the
counts up to it and since. The moments are those a detector remembers: every one of the latest events, ever sparser
before, and bounded in number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fourrates.kernel import onset as kernel

LEVEL = 0.9
"""How often the interval of :class:`Onset` and those of :class:`Share` are to hold the truth."""

# What is known of a rate's new value before it is seen: as much as so many observations at its old value tell, each
# number with its probability. The more, the smaller the change; large ones are rare, and none is ruled out.
PRIOR = {0: 1 / 156, 4: 5 / 156, 16: 25 / 156, 64: 125 / 156}

# By how many standard deviations of its steps a random walk passes a far limit, on average (Siegmund, 1985).
OVERSHOOT = 0.583
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
    """Where a change lies.

    Attributes
    ----------
    moment : int
        Which of the moments is the likeliest.
    first, last : int
        The events between which it is nearly as likely.
    """

    moment: int
    first: int
    last: int


def locate(
    events: npt.NDArray[np.int64],
    n: npt.NDArray[np.int64],
    ones: npt.NDArray[np.int64],
    now: Sequence[Sequence[int]],
) -> Onset:
    """Find the moment at which a change is most likely.

    Parameters
    ----------
    events : array
        The moments, as numbers of events before them; rising.
    n, ones : arrays, moments by rates
        Observations of each rate up to each moment, and how many were ones.
    now : (n, ones)
        The same now, by rate.
    """
    total, right = (np.asarray(counts, np.int64) for counts in now)
    prior = np.array(list(PRIOR.items()), np.float64)

    def likelihood(moments: npt.NDArray[np.intp], prior: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        found = np.empty(len(moments))
        kernel.likelihood(n[moments], ones[moments], total, right, prior, found)
        return found

    highest = likelihood(np.arange(len(events)), prior[:0])
    # No moment whose likelihood is at best below this can be near the top.
    floor = likelihood(np.array([highest.argmax()]), prior)[0] + math.log(1 - LEVEL)
    possible = np.flatnonzero(highest >= floor)
    around = np.unique(possible[:, None] + np.arange(-1, 2))
    asked = around[(around >= 0) & (around < len(events))]
    found = np.full(len(events), -math.inf)
    found[asked] = likelihood(asked, prior)
    top = int(found.argmax())
    limit = found[top] - _fall(n[top], ones[top], total - n[top], right - ones[top])
    near = np.flatnonzero(found >= limit)
    first, last = int(near[0]), int(near[-1])
    # Between two moments the likelihood is taken to be linear.
    before, after = slice(max(first - 1, 0), first + 1), slice(last, last + 2)
    return Onset(
        top,
        math.ceil(np.interp(limit, found[before], events[before])),
        math.floor(np.interp(-limit, -found[after], events[after])),
    )


def _smooth(ones: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The rate of so many ones, never 0 nor 1: its mean under Jeffreys' prior."""
    return np.asarray((ones + 0.5) / (n + 1))


def _fall(
    n: npt.NDArray[np.int64],
    ones: npt.NDArray[np.int64],
    later: npt.NDArray[np.int64],
    later_ones: npt.NDArray[np.int64],
) -> float:
    """How far below its top the log-likelihood may be: what keeps LEVEL at a change of this size.

    Away from the true change point it falls as a random walk does, on either side. Each has a largest rise beyond x
    with probability c exp(-x); the range misses the truth where the two differ by more than its depth.
    """
    old, new = _smooth(ones, n), _smooth(later_ones, later)
    squares = np.log(new / old) ** 2, np.log((1 - new) / (1 - old)) ** 2  # of the steps at a one, and at a zero
    short = 1.0
    for rate, count in ((old, n), (new, later)):
        step = math.sqrt(np.sum(count * (rate * squares[0] + (1 - rate) * squares[1])) / max(count.sum(), 1))
        short *= 1 - math.exp(-OVERSHOOT * step)
    return math.log((1 - short) / (1 - LEVEL))

"""What the steps of FourRates know of a change together: since when, and the rate before it and since.

Every step that is looked for has its own view of when the change began and of what was seen since. A step's part of the
evidence is the probability of its view, so all of them make a mixture, and its quantiles are the intervals: a change
that a large step found may as well be a smaller one that began earlier, as far as the smaller step has evidence too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fourrates.drift import DEVIATIONS, Share

Floats = npt.NDArray[np.float64]

TAIL = 0.05  # on either side of an interval
EARLIER, LATER = 2.0, 1.6  # nats of information by which the true start scatters on either side of a step's own
WIDER = 1.3  # the rate since a start that is itself uncertain scatters as if dispersion were larger by this
HALVINGS = 45  # of the range that holds a quantile
LOGISTIC = DEVIATIONS / np.log(1 / TAIL - 1)  # the scale of a logistic law whose tails begin where a normal law's do


def started_between(weights: Floats, starts: Floats, information: Floats) -> tuple[float, float]:
    """The interval that holds the start of a change in nine of ten cases.

    Parameters
    ----------
    weights : array
        The probability of each step, summing to one.
    starts : array
        When the change began, according to each.
    information : array
        How much an event since then told of it, in nats.

    Examples
    --------
    >>> started_between(np.array([0.9, 0.1]), np.array([5000.0, 4000.0]), np.array([0.05, 0.01]))
    (3978.9, 5066.6)
    """
    below, above = EARLIER / information, LATER / information

    def law(at: Floats) -> Floats:
        apart = at[:, None] - starts
        left = below / (below + above) * np.exp(np.minimum(apart, 0) / below)
        right = above / (below + above) * np.exp(-np.maximum(apart, 0) / above)
        return np.asarray((weights * np.where(apart < 0, left, 1 - right)).sum(1))

    reach = -np.log(TAIL)
    low, high = _quantiles(law, (starts - reach * below).min(), (starts + reach * above).max())
    return round(low, 1), round(high, 1)


def share(weights: Floats, ones: Floats, n: Floats, dispersion: float) -> Share:
    """A rate of which each step has seen `ones` out of `n`: that of the likeliest step, with the interval of all."""
    best = int(weights.argmax())
    if n[best] <= 0:
        return Share.of(0.0, 0.0)
    right, wrong = ones + 0.5, np.maximum(n - ones, 0.0) + 0.5
    middle = np.log(right / wrong)
    scale = LOGISTIC * np.sqrt(dispersion * (1 / right + 1 / wrong))

    def law(odds: Floats) -> Floats:
        return np.asarray((weights * _logistic((odds[:, None] - middle) / scale)).sum(1))

    reach = np.log(1 / TAIL - 1)
    low, high = _quantiles(law, (middle - reach * scale).min(), (middle + reach * scale).max())
    value = min(float(ones[best] / n[best]), 1.0)
    lower, upper = _logistic(np.array([low, high])).tolist()
    return Share(value, min(lower, value), max(upper, value), round(float(n[best])))


def _logistic(odds: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(odds / 2)))


def _quantiles(law: Callable[[Floats], Floats], low: float, high: float) -> tuple[float, float]:
    """Where a growing law reaches TAIL and 1 - TAIL, by halving the range that holds both."""
    level = np.array([TAIL, 1 - TAIL])
    left, right = np.full(2, low), np.full(2, high)
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        short = law(middle) < level
        left, right = np.where(short, middle, left), np.where(short, right, middle)
    return float(right[0]), float(right[1])

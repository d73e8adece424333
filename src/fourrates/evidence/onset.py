"""What the steps of FourRates know of a change together: since when, and the rate before it and since.

Every step that is looked for has its own view of when the change began and of what was seen since. A step's part of the
evidence is the probability of its view, so all of them make a mixture, and its quantiles are the intervals: a change
that a large step found may also be a smaller one that began earlier, if the smaller step has evidence too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fourrates.drift import DEVIATIONS, Share

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


TAIL = 0.05  # on either side of an interval
EARLIER, LATER = 2.0, 1.6  # nats of information by which the true start scatters on either side of a step's own
WIDER = 1.3  # the rate since a start that is itself uncertain scatters as if dispersion were larger by this
HALVINGS = 40  # of the range that holds a quantile
LOGISTIC = DEVIATIONS / math.log(1 / TAIL - 1)  # the scale of a logistic law whose tails begin where a normal law's do


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
    lanes = [
        (weight, start, EARLIER / told, LATER / told)
        for weight, start, told in zip(weights.tolist(), starts.tolist(), information.tolist(), strict=True)
    ]

    def law(at: float) -> float:
        total = 0.0
        for weight, start, below, above in lanes:
            if at < start:
                total += weight * below / (below + above) * math.exp((at - start) / below)
            else:
                total += weight * (1 - above / (below + above) * math.exp((start - at) / above))
        return total

    reach = -math.log(TAIL)
    low = min(start - reach * below for _, start, below, _ in lanes)
    high = max(start + reach * above for _, start, _, above in lanes)
    return round(_quantile(law, TAIL, low, high), 1), round(_quantile(law, 1 - TAIL, low, high), 1)


def share(weights: Floats, ones: Floats, n: Floats, dispersion: float) -> Share:
    """A rate of which each step has seen `ones` out of `n`: that of the likeliest step, with the interval of all."""
    best = int(weights.argmax())
    if n[best] <= 0:
        return Share.of(0.0, 0.0)
    right, wrong = ones + 0.5, np.maximum(n - ones, 0.0) + 0.5
    middles = np.log(right / wrong)
    scales = LOGISTIC * np.sqrt(dispersion * (1 / right + 1 / wrong))
    # A logistic law is 0.5 (1 + tanh(x / 2)): halves of the weights and twice the scales, since this runs some hundred
    # times for every rate of a drift.
    lanes = [*zip((0.5 * weights).tolist(), middles.tolist(), (2 * scales).tolist(), strict=True)]

    def law(odds: float) -> float:
        total = 0.0
        for half, middle, twice in lanes:
            total += half * (1 + math.tanh((odds - middle) / twice))
        return total

    reach = math.log(1 / TAIL - 1)
    ends = float((middles - reach * scales).min()), float((middles + reach * scales).max())
    lower, upper = (_logistic(_quantile(law, level, *ends)) for level in (TAIL, 1 - TAIL))
    value = min(float(ones[best] / n[best]), 1.0)
    return Share(value, min(lower, value), max(upper, value), round(float(n[best])))


def _logistic(odds: float) -> float:
    return 0.5 * (1 + math.tanh(odds / 2))


def _quantile(law: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Where a growing law reaches a level, by halving the range that holds it."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if law(middle) < level:
            low = middle
        else:
            high = middle
    return high

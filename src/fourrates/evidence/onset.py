"""The evidence of all steps of FourRates for a change, giving its start and the rate before and since.

Every step has its own view of when the change began and of the observations since. Its part of the evidence is the
probability of its view, so together they are a mixture, whose quantiles are the intervals. So a change that a large
step found may also be a smaller one that began earlier, if the smaller step has evidence too.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fourrates.findings import DEVIATIONS, Share
from fourrates.kernel.mixtures import exponential_quantile, logistic_quantile

Floats = npt.NDArray[np.float64]

TAIL = 0.05  # on either side of an interval
EARLIER, LATER = 2.0, 1.6  # nats of information by which the true start scatters on either side of a step's own
WIDER = 1.3  # the rate since a start that is itself uncertain scatters as if dispersion were larger by this
LOGISTIC = DEVIATIONS / math.log(1 / TAIL - 1)  # of a logistic law whose tails begin with a normal law's


def started_between(weights: Floats, starts: Floats, information: Floats, gap: float = 0.0) -> tuple[float, float]:
    """The interval that holds the start of a change in nine of ten cases.

    For each step its probability, its start of the change, and its nats per event since then. `gap` is the mean number
    of events until one of the class that moved, beyond that of classes in any order.
    """
    below, above = EARLIER / information + gap, LATER / information + gap
    reach = -math.log(TAIL)
    low, high = float((starts - reach * below).min()), float((starts + reach * above).max())
    first, last = (exponential_quantile(weights, starts, below, above, level, low, high) for level in (TAIL, 1 - TAIL))
    return round(first, 1), round(last, 1)


def share(weights: Floats, ones: Floats, n: Floats, dispersion: float) -> Share:
    """A rate seen by each step as `ones` out of `n`, that of the likeliest step, with the interval of all."""
    best = int(weights.argmax())
    if n[best] <= 0:
        return Share.of(0.0, 0.0)
    right, wrong = ones + 0.5, np.maximum(n - ones, 0.0) + 0.5
    middles = np.log(right / wrong)
    scales = LOGISTIC * np.sqrt(dispersion * (1 / right + 1 / wrong))
    reach = math.log(1 / TAIL - 1)
    low, high = float((middles - reach * scales).min()), float((middles + reach * scales).max())
    lower, upper = (
        _logistic(logistic_quantile(weights, middles, scales, level, low, high)) for level in (TAIL, 1 - TAIL)
    )
    value = min(float(ones[best] / n[best]), 1.0)
    return Share(value, min(lower, value), max(upper, value), round(float(n[best])))


def _logistic(odds: float) -> float:
    return 0.5 * (1 + math.tanh(odds / 2))

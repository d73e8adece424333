"""Events between two false alarms of an LFR, for a stable concept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fourrates.budget import chain
from fourrates.budget.coincidence import Statistic, first_shares
from fourrates.budget.confusion import probabilities, rates
from fourrates.budget.simulation import simulated_run_length

if TYPE_CHECKING:
    from fourrates.detectors.lfr import LFR

ESTIMATES = 5  # values of p-hat for each rate, equally likely
DRAWS = 1_000  # of one for each rate
LONG = 30  # observations in a memory, 1 / (1 - decay): if it is longer, the start is a phase of its own,
SHORT = 40  # and in runs of fewer memories too large a part to leave out;
ALARMS = 800  # the run length then comes from simulation, with a standard error of 3.5 %
LEAST = 0.1  # of the mean hazard: p-hat does not stay for long where there is none


def expected_run_length(detector: LFR, confusion: npt.ArrayLike) -> float:
    """Events between two false alarms of a detector, for a stable concept with this confusion matrix.

    Parameters
    ----------
    detector : LFR
        Any, whatever it has seen.
    confusion : K x K array
        Probabilities or counts, by true class and then by predicted class.

    Returns
    -------
    float
        The run length from one restart to the next. Statistics that share bits, and so alarm together, are counted
        once per cluster of alarms.

    Notes
    -----
    Within 10 % of simulation, its sampling error apart, for rates from 0.5 to 0.99, decays from 0.8 to 0.98 and levels
    from 1e-3 to 1e-5 (``benchmarks/run_length.py``). With a decay near 1 and false alarms that are frequent, the first
    observations after a restart weigh too much to be left out; then the detector is simulated, always with the same
    seed.

    Examples
    --------
    >>> import fourrates as fr
    >>> f"{fr.budget.expected_run_length(fr.LFR(detect=1e-5), [[40, 10], [10, 40]]):,.0f}"
    '67,792'
    """
    matrix = probabilities(confusion, len(detector.rates) // 2)
    statistics = [
        Statistic(i, share, value, decay, (lower, upper), chain.hazard(decay, value, (lower, upper)))
        for i, (name, (share, value)) in enumerate(zip(detector.rates, rates(matrix), strict=True))
        if share
        for decay, lower, upper in detector.asymptotic_bounds(name, value)
    ]
    weights = [one.share * first for one, first in zip(statistics, first_shares(statistics, matrix), strict=True)]
    total = sum(weight * one.hazard for weight, one in zip(weights, statistics, strict=True))
    if total == 0.0:
        return math.inf
    hazards = np.array([_hazards(detector, one, 1 / total) for one in statistics])
    # While a run lasts, p-hat stays about where it is: first the run length for every draw, then the mean of those.
    chosen = np.random.default_rng(0).integers(ESTIMATES, size=(DRAWS, len(statistics)))
    drawn = (hazards[np.arange(len(statistics)), chosen] * weights).sum(1)
    drawn = np.maximum(drawn, LEAST * drawn.mean())
    parts = hazards.mean(1) * weights
    waiting = sum(part * _silence(one) / one.share for part, one in zip(parts, statistics, strict=True))
    found = float((1 / drawn).mean() + waiting / parts.sum())
    memory = max(1 / (1 - one.decay) for one in statistics)
    observations = found * np.average([one.share for one in statistics], weights=parts)
    if memory > LONG and observations < SHORT * memory:
        return simulated_run_length(detector, matrix, ALARMS).mean
    return found


def _hazards(detector: LFR, one: Statistic, length: float) -> list[float]:
    """The hazards of a statistic over what its rate may look like in runs of this length.

    Bounds follow the estimate p-hat, and given p-hat the bits look like those of a rate of that value. At rates near 1
    and with fast decays R takes few values, and a small change of p-hat decides whether the next lower one is an alarm.
    The observations in a run are about exponential, so p-hat is off by a standard error times Student's t with two
    degrees of freedom.
    """
    name = [*detector.rates][one.rate]
    which = [decay for decay, *_ in detector.asymptotic_bounds(name, one.value)].index(one.decay)
    chances = (np.arange(ESTIMATES) + 0.5) / ESTIMATES
    deviates = (2 * chances - 1) / np.sqrt(2 * chances * (1 - chances))
    error = math.sqrt(one.value * (1 - one.value) / max(one.share * length, 1.0))
    estimates = np.clip(one.value + error * deviates, 0.0, 1.0)
    found = []
    for estimate in estimates.tolist():
        _, lower, upper = detector.asymptotic_bounds(name, estimate)[which]
        found.append(chain.hazard(one.decay, estimate, (lower, upper)))
    return found


def _silence(one: Statistic) -> float:
    """Observations before a statistic can alarm: of n bits, an arrangement has about probability exp(-n entropy)."""
    below, above = chain.tails(one.decay, one.value, one.within)
    p = one.value
    entropy = -sum(chance * math.log(chance) for chance in (p, 1 - p) if chance > 0)
    level = max(below, above)
    return -math.log(level) / entropy if level > 0 and entropy > 0 else 0.0

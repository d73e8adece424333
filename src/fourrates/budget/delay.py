"""How soon a change is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fourrates.budget import chain
from fourrates.budget.confusion import Rate, probabilities, rates

if TYPE_CHECKING:
    from fourrates.detectors.lfr import LFR

Bounds = Sequence[tuple[float, float, float]]  # decay, lower and upper of a rate's statistics

Z95 = 1.96
DEVIATES = [NormalDist().inv_cdf((i + 0.5) / 9) for i in range(9)]  # equally likely values of a normal variable


@dataclass(frozen=True, slots=True, eq=False)
class Delay:
    """How long a change goes unnoticed."""

    found: npt.NDArray[np.float64]  #: `found[m]` is the chance that the change is found within m + 1 events
    streams: int | None = None  #: how many streams were simulated to find it; None if it was computed

    def within(self, events: int) -> float:
        """The chance that the change is found within this number of events."""
        return float(self.found[min(events, self.found.size) - 1]) if events > 0 else 0.0

    def standard_error(self, events: int) -> float:
        """The sampling error of :meth:`within`; 0 if the delay was computed."""
        chance = self.within(events)
        return math.sqrt(chance * (1 - chance) / self.streams) if self.streams else 0.0

    @property
    def median(self) -> float:
        """Events until the change is found in half of all cases; infinite if that is beyond the horizon."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """Mean events until the change is found; a change not found counts as found at the horizon."""
        return float(1.0 + np.sum(1.0 - self.found[:-1]))

    @property
    def median_between(self) -> tuple[float, float]:
        """The median with 95 % confidence, as far as sampling goes."""
        half = Z95 * 0.5 / math.sqrt(self.streams) if self.streams else 0.0
        return self._quantile(0.5 - half), self._quantile(0.5 + half)

    def _quantile(self, chance: float) -> float:
        at = int(np.searchsorted(self.found, chance))
        return at + 1.0 if at < self.found.size else math.inf


def expected_delay(detector: LFR, before: npt.ArrayLike, after: npt.ArrayLike, horizon: int = 5000) -> Delay:
    """Predict which changes this detector would catch, and when.

    The stream is taken to have been stable for long before the change. Recalls of different classes are independent,
    and so are precisions; a recall and a precision share bits, so only the better family counts, and only the best
    statistic of a rate. So the result is a little too low rather than too high. For any other detector, or a short
    history, see :func:`~fourrates.budget.simulation.simulated_delay`.

    Parameters
    ----------
    detector : LFR
        Any; its own events do not matter.
    before, after : K x K arrays
        Probabilities or counts, by true class and then by predicted class.
    horizon : int
        How many events to look ahead.

    Examples
    --------
    A classifier with 30 % positives loses two thirds of its true positives at constant accuracy:

    >>> import fourrates as fr
    >>> delay = fr.budget.expected_delay(fr.LFR(), before=[[65, 15], [5, 15]], after=[[75, 5], [15, 5]])
    >>> delay.median, round(delay.within(200), 2)
    (86.0, 0.97)
    """
    check_horizon(horizon)
    classes = len(detector.rates) // 2
    old, new = (rates(probabilities(matrix, classes)) for matrix in (before, after))
    bounds = [detector.asymptotic_bounds(name, rate.value) for name, rate in zip(detector.rates, old, strict=True)]
    return Delay(found_within(bounds, old, new, horizon))


def check_horizon(horizon: int) -> int:
    """`horizon` as it is, or an error that names the accepted values."""
    if horizon < 1:
        raise ValueError(f"horizon {horizon!r} is not at least one event")
    return horizon


def found_within(
    bounds: Sequence[Bounds], old: Sequence[Rate], new: Sequence[Rate], horizon: int
) -> npt.NDArray[np.float64]:
    """The chance to find a change of rates within 1, 2, ... events, given the bounds of each rate's statistics."""
    events = np.arange(1, horizon + 1)
    missed = np.ones((2, horizon))
    for position, (own, (_, rate), (share, changed)) in enumerate(zip(bounds, old, new, strict=True)):
        if share == 0.0:
            continue
        # After m events the rate has been observed share * m times, more or less.
        touched = [np.clip(share * events + z * np.sqrt(events * share * (1 - share)), 0, events) for z in DEVIATES]
        survivals = []
        for decay, lower, upper in own:
            survival = chain.survival(decay, rate, changed, (lower, upper), math.ceil(touched[-1].max()))
            survivals.append(np.mean([np.interp(count, np.arange(survival.size), survival) for count in touched], 0))
        missed[2 * position // len(old)] *= np.min(survivals, 0)  # recalls first, then precisions
    return np.asarray(1.0 - missed.min(0))

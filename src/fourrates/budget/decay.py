"""The decay that finds a change soonest, near 1 for small, lasting changes and low for large ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fourrates.budget import chain
from fourrates.budget.chain import Sides
from fourrates.budget.confusion import probabilities, rates
from fourrates.budget.delay import Delay, check_horizon, found_within
from fourrates.budget.levels import design
from fourrates.null import check_decay

DECAYS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99)


@dataclass(frozen=True, slots=True)
class BestDecay:
    """The decay that finds a change soonest."""

    decay: float  #: as :class:`~fourrates.LFR` takes it
    delay: float  #: the median delay with it, in events; infinite if it is beyond the horizon
    delays: dict[float, float]  #: the median delay with each decay that was tried


def best_decay(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    arl: float,
    *,
    sides: Sides = "both",
    decays: Iterable[float] = DECAYS,
    horizon: int = 5000,
) -> BestDecay:
    """Find the decay at which ``LFR(decay, arl=arl)`` finds a given change soonest.

    Parameters
    ----------
    before, after : K x K arrays
        Probabilities or counts, by true class and then by predicted class.
    arl : float
        Events between two false alarms, at least 100.
    sides : {"both", "down", "up"}
        The sides watched.
    decays : iterable of floats
        The decays to choose from.
    horizon : int
        How many events to look ahead. Decays with the same median, or none that finds the change in half of all cases
        by then, are compared by their mean delay, cut at the horizon.

    Examples
    --------
    A large change is found soonest by a short memory, a small one by a long memory:

    >>> import fourrates as fr
    >>> large = fr.budget.best_decay([[45, 5], [5, 45]], [[15, 35], [5, 45]], arl=10_000)
    >>> large.decay, large.delay
    (0.8, 15.0)
    >>> small = fr.budget.best_decay([[45, 5], [5, 45]], [[40, 10], [5, 45]], arl=10_000)
    >>> small.decay, small.delay
    (0.985, 239.0)
    """
    classes = max(len(np.atleast_1d(np.asarray(before, float))), 2)
    old, new = (rates(probabilities(matrix, classes)) for matrix in (before, after))
    check_horizon(horizon)
    found = {}
    for decay in sorted(set(map(check_decay, decays))):
        level = design(arl, decay, sides).detect
        bounds = [[(decay, *chain.asymptotic_bounds(decay, rate.value, level, sides))] for rate in old]
        found[decay] = Delay(found_within(bounds, old, new, horizon))
    if not found:
        raise ValueError("no decay is given to choose from")
    best = min(found, key=lambda decay: (found[decay].median, found[decay].mean))
    return BestDecay(best, found[best].median, {decay: delay.median for decay, delay in found.items()})

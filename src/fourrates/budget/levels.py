"""From a false-alarm budget to the level of the detection bounds.

A level is a tail probability per side, rate and step. People think in "at most one false alarm in N events", the
average run length (ARL). An event touches two rates, whatever the classes and their balance. So the run length in
events is at least the inverse of twice the largest hazard of a rate.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fourrates.budget import chain
from fourrates.budget.chain import Sides
from fourrates.null import check_decay, check_level

RATES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # the hazard of a rate p is that of 1 - p, sides swapped
LARGEST = 0.4  # largest level tried
SAFER = 0.98  # factor for a level until it keeps the budget


@dataclass(frozen=True, slots=True)
class Design:
    """Levels for a budget."""

    arl: float  #: the run length asked for, in events
    detect: float  #: the detection level that keeps it, as :class:`~fourrates.LFR` takes it
    #: from the value of a rate to the run length in events, if all rates had that value and no alarms coincided;
    #: infinite if none can alarm. The least of them is `arl` or slightly above
    run_lengths: dict[float, float]


def design(arl: float, decay: float | Sequence[float] = 0.9, sides: Sides = "both") -> Design:
    """Find the detection level at which a stable stream gives one false alarm in `arl` events, or fewer.

    Parameters
    ----------
    arl : float
        Events between two false alarms, at least 100.
    decay : float or sequence of floats
        As for :class:`~fourrates.LFR`.
    sides : {"both", "down", "up"}
        The sides watched.

    Examples
    --------
    At most one false alarm in a month of 40,000 predictions a day:

    >>> import fourrates as fr
    >>> found = fr.budget.design(arl=30 * 40_000)
    >>> f"{found.detect:.1e}"
    '4.2e-07'
    >>> detector = fr.LFR(decay=0.9, arl=30 * 40_000)  # the same in one step
    """
    decays = tuple(check_decay(own) for own in (decay if isinstance(decay, Sequence) else (decay,)))
    level, hazards = _level(decays, sides, 0.5 / check_arl(arl))
    return Design(float(arl), level, {rate: 0.5 / hazard if hazard else math.inf for rate, hazard in hazards})


def check_arl(arl: float) -> float:
    """`arl` as it is, or an error that names the accepted values."""
    if not (isinstance(arl, int | float | np.number) and 100 <= arl <= sys.float_info.max):
        raise ValueError(f"arl {arl!r} is not a number of events, at least 100")
    return arl


@lru_cache(maxsize=256)
def _level(decays: tuple[float, ...], sides: Sides, budget: float) -> tuple[float, tuple[tuple[float, float], ...]]:
    """The level, shared by the decays, at which the largest hazard of a rate is the budget; (rate, hazard) of each."""

    def hazard(rate: float, level: float) -> float:
        """The chance of a false alarm at an observation of a rate, long after the start."""
        bounds = ((decay, chain.asymptotic_bounds(decay, rate, level / len(decays), sides)) for decay in decays)
        return sum(chain.hazard(decay, rate, within) for decay, within in bounds)

    def hazards(level: float) -> dict[float, float]:
        return {rate: hazard(rate, level) for rate in RATES}

    level, found = budget, hazards(budget)
    # The hazard is nearly proportional to the level; follow the worst rate, then look at all of them again.
    for _ in range(2):
        worst = max(found, key=found.__getitem__)
        for _ in range(2):
            level = min(level * budget / (hazard(worst, level) or 1e-300), LARGEST)
        found = hazards(level)
    # Bounds move in steps, and the hazard with them, so end on the safe side.
    while max(found.values()) > budget:
        level *= SAFER
        found = hazards(level)
    return check_level(level, "the detection level for this arl,"), tuple(found.items())

"""Run lengths: from a false-alarm budget to levels, and from levels and a confusion matrix to what to expect.

A level is a chance per side, rate and step. People think in "at most one false alarm in N events", the average run
length (ARL). Under a stable concept R is a Markov chain; what leaves its bounds at each step follows from the chain
(Brook and Evans, 1972), here on a fine grid of [0, 1]. An event touches two rates, so the run length in events is at
least the inverse of twice the worst hazard of a rate, whatever the classes and their balance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fourrates.null import Level, check_decay, check_level

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.detectors.lfr import LFR, Sides

RATES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)  # the hazard of a rate p is that of 1 - p, sides swapped
SLOW, FAST = 0.985, 0.95  # the decays of a plan: small changes that last, and large ones soon
SHARES = {"recall slow": 0.67, "recall fast": 0.20, "precision slow": 0.03, "joint": 0.10}
SHORTEST = 20_000  # events between two false alarms from which on a slow statistic pays
LONGEST = 30_000_000  # up to which the smallest of its levels can be had
RAMP = 2500  # observations until a slow level has grown to its full size,
FRACTION = 8  # or those of this part of the run length, whichever are fewer
ATTENTION = 0.005  # p-values above it are not worth a joint test
DEPTH = 0.08  # standard deviations between two levels of a joint test
JOINT_COST = 1.4  # the hazard of a joint test, all pairs of directions together, next to that of one rate at its level
MEMORIES = 12  # of 1 / (1 - decay) observations each: after so many the start is forgotten


@dataclass(frozen=True, slots=True)
class Design:
    """Levels for a budget.

    Attributes
    ----------
    arl : float
        The run length asked for, in events.
    detect : float
        The detection level that keeps it, as :class:`~fourrates.LFR` takes it.
    run_lengths : dict
        From the value of a rate to the run length, in events, if all rates had that value and none of their alarms
        coincided. The least of them is the one asked for.
    """

    arl: float
    detect: float
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
    >>> found = fr.design(arl=30 * 40_000)
    >>> f"{found.detect:.1e}"
    '4.3e-07'
    >>> detector = fr.LFR(decay=0.9, arl=30 * 40_000)  # the same in one step
    """
    decays = tuple(check_decay(one) for one in (decay if isinstance(decay, Sequence) else (decay,)))
    level, hazards = _level(decays, sides, 0.5 / check_arl(arl))
    return Design(float(arl), level, {rate: 1 / (2 * hazard or 1e-300) for rate, hazard in hazards.items()})


def check_arl(arl: float) -> float:
    """`arl` as it is, or an error that says what is accepted."""
    if not (isinstance(arl, int | float | np.number) and 100 <= arl < math.inf):
        raise ValueError(f"arl {arl!r} is not a number of events, at least 100")
    return arl


def _level(decays: tuple[float, ...], sides: Sides, budget: float) -> tuple[float, dict[float, float]]:
    """The level, shared by the decays, at which the worst hazard of a rate is the budget; the hazards by rate."""

    def hazard(rate: float, level: float) -> float:
        return sum(_hazard(one, rate, level / len(decays), sides) for one in decays)

    def hazards(level: float) -> dict[float, float]:
        return {rate: hazard(rate, level) for rate in RATES}

    level, found = budget, hazards(budget)
    # The hazard is nearly proportional to the level; follow the worst rate, then look at all of them again.
    for _ in range(2):
        worst = max(found, key=found.__getitem__)
        for _ in range(2):
            level = min(level * budget / (hazard(worst, level) or 1e-300), 0.4)
        found = hazards(level)
    # Atoms of the law make the hazard jump a little as the level moves: end on the safe side.
    while max(found.values()) > budget:
        level *= 0.98
        found = hazards(level)
    return check_level(level, "the detection level for this arl,"), found


@dataclass(frozen=True, slots=True)
class Plan:
    """What :class:`~fourrates.LFR` watches for a budget when no decay is given.

    Attributes
    ----------
    recalls, precisions : tuples of (decay, Level)
        The statistics of each recall and of each precision, with their detection levels.
    deep : tuple of float
        Levels for the p-values of the two recalls, by the first of their statistics.
    need : tuple of int
        How many of these levels the second recall must have passed where the first has passed 1, 2, ...
    joint : float
        The chance, at a step of a stable stream and for one pair of directions, that both lie in that region: a bound.
    """

    recalls: tuple[tuple[float, Level], ...]
    precisions: tuple[tuple[float, Level], ...]
    deep: tuple[float, ...] = ()
    need: tuple[int, ...] = ()
    joint: float = 0.0


@lru_cache(maxsize=64)
def plan(arl: float, classes: int = 2, sides: Sides = "both") -> Plan:
    """Split a false-alarm budget between tests, for detection close to the limit.

    Each recall has a slow and a fast statistic, each precision a slow one; with two classes the slow statistics of the
    two recalls are also held together, for given the true classes they are independent. Nearly all of the budget goes
    to the recalls, which between them carry most of what a changed classifier shows; the precisions keep enough to
    notice what the recalls cannot, a shift of the classes. The slow levels grow with the square of the number of
    observations after a restart: early on a slow statistic and the mean it is held against are nearly the same, and a
    budget spent there buys little.

    Parameters
    ----------
    arl : float
        Events between two false alarms, from 20,000 (where they are more frequent, a slow statistic comes too late) to
        30,000,000.
    classes : int
        How many.
    sides : {"both", "down", "up"}
        The sides watched.

    Examples
    --------
    >>> from fourrates.design import plan
    >>> found = plan(arl=100_000)
    >>> for decay, level in found.recalls:
    ...     print(f"{decay}: {level.value:.1e} after {level.ramp:,} observations")
    0.985: 1.8e-05 after 2,500 observations
    0.95: 2.3e-06 after 0 observations
    """
    if not SHORTEST <= check_arl(arl) <= LONGEST:
        raise ValueError(f"arl {arl!r} is not in {SHORTEST} .. {LONGEST}, for which there are plans")
    shares = SHARES if classes == 2 else {name: share for name, share in SHARES.items() if name != "joint"}
    total = sum(shares.values())

    def level(name: str, decay: float, cost: float = 1.0) -> float:
        return _level((decay,), sides, shares[name] / total / cost / arl)[0]

    slow_level = Level(level("recall slow", SLOW), ramp := round(min(RAMP, arl / FRACTION / classes)))
    recalls = ((SLOW, slow_level), (FAST, Level(level("recall fast", FAST))))
    precisions = ((SLOW, Level(level("precision slow", SLOW), ramp)),)
    if classes > 2:
        return Plan(recalls, precisions)
    joint = level("joint", SLOW, JOINT_COST)
    return Plan(recalls, precisions, *_region(joint), joint)


def _region(level: float) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Levels for two independent p-values, and a region of them that has this chance: Stouffer's, in steps."""
    normal = NormalDist()
    first, last = -normal.inv_cdf(ATTENTION), -normal.inv_cdf(level / 2)
    scores = np.linspace(first, last, math.ceil((last - first) / DEPTH) + 1)
    deep = [normal.cdf(-score) for score in scores]
    steps = -np.diff([*deep, 0.0])

    def needed(total: float) -> npt.NDArray[np.int64]:
        return np.searchsorted(scores, total - scores - 1e-12)  # the first that makes up the sum

    def chance(total: float) -> float:
        return float(steps @ np.append(deep, 0.0)[needed(total)])

    # The sums of two scores are where the chance changes.
    sums = np.arange(2 * len(scores)) * (scores[1] - scores[0]) + 2 * first
    total = next(one for one in sums if chance(one) <= level)
    return tuple(deep), tuple(int(one) + 1 for one in needed(total))


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
        The run length if no two rates alarmed at once. Recall and precision of a class share bits, so the true one is
        somewhat longer.

    Examples
    --------
    >>> import fourrates as fr
    >>> f"{fr.expected_run_length(fr.LFR(detect=1e-5), [[40, 10], [10, 40]]):,.0f}"
    '58,165'
    """
    total = 0.0
    for name, (share, rate) in _rates(detector, confusion).items():
        for decay, lower, upper in detector.asymptotic_bounds(name, rate):
            mass = _settled(decay, rate).copy()
            total += share * _steady(decay, rate, lower, upper, mass)
    if detector.joint:
        total += JOINT_COST * max(_hazard(SLOW, rate, detector.joint, detector.common_sides) for rate in RATES)
    return 1 / total if total > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Delay:
    """How long a change goes unnoticed.

    Attributes
    ----------
    found : array
        `found[m]` is the chance that the change is found within m + 1 events.
    """

    found: npt.NDArray[np.float64]

    def within(self, events: int) -> float:
        """The chance that the change is found within so many events of it."""
        return float(self.found[min(events, self.found.size) - 1]) if events > 0 else 0.0

    @property
    def median(self) -> float:
        """Events until the change is found in half of all cases; infinite if that is beyond the horizon."""
        at = int(np.searchsorted(self.found, 0.5))
        return at + 1.0 if at < self.found.size else math.inf


def expected_delay(detector: LFR, before: npt.ArrayLike, after: npt.ArrayLike, horizon: int = 5000) -> Delay:
    """Say what this detector would catch, and when.

    The stream is taken to have been stable for long before the change. Recalls of different classes are independent,
    and so are precisions; a recall and a precision share bits, so the better of the two families counts, and so does
    the better of the statistics of one rate. What two recalls show only together is left out. So the chance given is a
    little too low rather than too high.

    Parameters
    ----------
    detector : LFR
        Any, whatever it has seen.
    before, after : K x K arrays
        Probabilities or counts, by true class and then by predicted class.
    horizon : int
        How many events to look ahead.

    Examples
    --------
    A classifier with 30 % positives loses two thirds of its true positives at constant accuracy:

    >>> import fourrates as fr
    >>> delay = fr.expected_delay(fr.LFR(), before=[[65, 15], [5, 15]], after=[[75, 5], [15, 5]])
    >>> delay.median, round(delay.within(200), 2)
    (82.0, 0.98)
    """
    if horizon < 1:
        raise ValueError(f"horizon {horizon!r} is not at least one event")
    old, new = _rates(detector, before), _rates(detector, after)
    events = np.arange(1, horizon + 1)
    missed = np.ones((2, horizon))
    for position, (name, (_, rate)) in enumerate(old.items()):
        family = missed[2 * position // len(old)]  # recalls come first, then precisions
        share, changed = new[name]
        if share == 0.0:
            continue
        survivals = []
        for decay, lower, upper in detector.asymptotic_bounds(name, rate):
            mass = _settled(decay, rate).copy()
            left = np.empty(math.ceil(share * horizon) + 1)
            _passage(decay, changed, lower, upper, mass, left)
            # After m events the rate has been touched about share * m times.
            survival = np.concatenate([[1.0], 1.0 - np.cumsum(left)])
            survivals.append(np.interp(share * events, np.arange(survival.size), survival))
        family *= np.min(survivals, 0)
    return Delay(1.0 - missed.min(0))


def _rates(detector: LFR, confusion: npt.ArrayLike) -> dict[str, tuple[float, float]]:
    """For each rate how often an event touches it, and its value."""
    matrix = np.asarray(confusion, float)
    classes = len(detector.rates) // 2
    if matrix.shape != (classes, classes):
        raise ValueError(f"the confusion matrix has shape {matrix.shape}, not {(classes, classes)}")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all() and matrix.sum() > 0):
        raise ValueError("the confusion matrix holds something other than probabilities or counts")
    matrix = matrix / matrix.sum()
    touched = np.concatenate([matrix.sum(1), matrix.sum(0)])
    right = np.tile(matrix.diagonal(), 2)
    return {
        name: (float(share), float(one / share) if share else 1.0)
        for name, share, one in zip(detector.rates, touched, right, strict=True)
    }


def _points(decay: float) -> int:
    """Grid points in [0, 1]: a hundredth of R's largest standard deviation apart."""
    return math.ceil(100 / (0.5 * math.sqrt((1 - decay) / (1 + decay))))


@lru_cache(maxsize=256)
def _settled(decay: float, rate: float) -> npt.NDArray[np.float64]:
    """The law of R after many observations, at the grid points."""
    points = _points(decay)
    mass = np.zeros(points + 1)
    mass[round(rate * points)] = 1.0
    _passage(decay, rate, -1.0, 2.0, mass, np.empty(math.ceil(MEMORIES / (1 - decay))))
    return mass


@lru_cache(maxsize=4096)
def _hazard(decay: float, rate: float, level: float, sides: Sides) -> float:
    """The chance of a false alarm at an observation of one rate, long after the start, at this level."""
    law = _settled(decay, rate)
    points = law.size - 1
    lower, upper = -1.0, 2.0
    if sides != "up":
        lower = float(np.searchsorted(np.cumsum(law), level, side="right")) / points
    if sides != "down":
        upper = 1.0 - float(np.searchsorted(np.cumsum(law[::-1]), level, side="right")) / points
    return _steady(decay, rate, lower, upper, law.copy())


def _steady(decay: float, rate: float, lower: float, upper: float, mass: npt.NDArray[np.float64]) -> float:
    """What leaves the bounds at a step, of what is still inside, once that has settled."""
    left = np.empty(math.ceil(MEMORIES / (1 - decay)))
    _passage(decay, rate, lower, upper, mass, left)
    return float(left[-1] / (left[-1] + mass.sum()))


def _passage(
    decay: float,
    rate: float,
    lower: float,
    upper: float,
    mass: npt.NDArray[np.float64],
    left: npt.NDArray[np.float64],
) -> None:
    from fourrates._law import passage

    passage(decay, rate, lower, upper, mass, left)

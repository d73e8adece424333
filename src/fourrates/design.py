"""Run lengths: from a false-alarm budget to levels, and from levels and a confusion matrix to what to expect.

A level is a chance per side, rate and step. People think in "at most one false alarm in N events", the average run
length (ARL). Under a stable concept R is a Markov chain; what leaves its bounds at each step follows from the chain
(Brook and Evans, 1972), here on a fine grid of [0, 1]. An event touches two rates, so the run length in events is at
least the inverse of twice the worst hazard of a rate, whatever the classes and their balance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fourrates.kernel.window import Window
from fourrates.null import MANY, check_decay, check_level

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.detectors.lfr import LFR, Sides

RATES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)  # the hazard of a rate p is that of 1 - p, sides swapped
SHORTEST = 20_000  # events between two false alarms from which on a plan pays
RECALLS = {100: 0.60, 250: 0.04, 40: 0.08, 16: 0.06}  # windows of a plan, and what part of the budget each has
PRECISIONS = {100: 0.04, 16: 0.01}
TOGETHER = 0.17  # what the windows of 100 observations of two recalls, held together, have of it
GROWING = 100  # observations in a window from which on its level grows after a restart,
RAMP, FRACTION = 5_000, 7  # for so many events, or this part of the run length if that is less
FIRST, START = 1.0, 400  # what the shortest of either have of the budget beside, for about so many events at first
EVENNESS = 2 / 3  # 0: every event has the same part of the budget; 1: every class has
ATTENTION = 0.01  # a chance above it is not worth holding together with another
JOINT_COST = 1.4  # the hazard of two recalls together, all pairs of directions, next to that of one at the same level
EXTREMES = 0.01, 0.99  # rates beyond them are taken for them
SIMULATED = 1_000  # streams
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
    if not (isinstance(arl, int | float | np.number) and 100 <= arl <= sys.float_info.max):
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


class Span(NamedTuple):
    """A window that a plan watches.

    Attributes
    ----------
    width : int
        Observations of a rate in it.
    detect : tuple of float
        Its detection levels, full-grown and for classes that are equally frequent, where the rate is 0, 0.05, ... 1.
    grows : bool
        Whether they grow after a restart.
    early : float
        By what part of themselves they are larger right after a restart, if they do not grow.
    """

    width: int
    detect: tuple[float, ...]
    grows: bool
    early: float = 0.0

    def level(self, rate: float) -> float:
        """The detection level at a rate."""
        return float(np.interp(rate, np.linspace(0, 1, len(self.detect)), self.detect))


@dataclass(frozen=True, slots=True)
class Plan:
    """What :class:`~fourrates.LFR` watches for a budget when no decay is given.

    Attributes
    ----------
    recalls, precisions : tuples of Span
        The windows of each recall and of each precision. The first ones of two recalls are also held together.
    ramp : float
        Up to so many events after a restart the level of a window that grows is (events / ramp)**2 times its own.
    joint : float
        The chance, at a step of a stable stream and for one pair of directions, that two recalls alarm together.
    """

    recalls: tuple[Span, ...]
    precisions: tuple[Span, ...]
    ramp: float
    joint: float = 0.0

    @property
    def product(self) -> float:
        """Two recalls alarm together where both chances are at most `ATTENTION` and their product is at most this.

        Two independent chances, each uniform or rarer, are in that region with probability x (1 + log(a**2 / x)).
        """
        found = self.joint
        for _ in range(100):
            found = self.joint / (1 + math.log(max(ATTENTION**2 / found, 1.0))) if found else 0.0
        return found


@lru_cache(maxsize=64)
def plan(arl: float, classes: int = 2, sides: Sides = "both") -> Plan:
    """Split a false-alarm budget between windows, for detection close to the limit.

    Each recall has windows of 16, 40, 100 and 250 observations: the larger the change, the shorter the window that
    finds it first. With two classes the windows of 100 are also held together, for given the true classes the two
    recalls are independent. Nearly all of the budget goes to the recalls, which between them carry most of what a
    changed classifier shows; the precisions keep enough to notice what the recalls cannot, a shift of the classes. The
    levels of the long windows grow with the square of the events after a restart: early on a long window and the mean
    it is held against are nearly the same, and a budget spent there buys little. Those of the shortest are larger for
    some hundred events, when there is nothing else to find a change by. A rare class has a larger level than a
    frequent one: it is rarely observed, so its false alarms cost little.

    Parameters
    ----------
    arl : float
        Events between two false alarms, at least 20,000; where they are more frequent, one fast decay does better.
    classes : int
        How many.
    sides : {"both", "down", "up"}
        The sides watched.

    Examples
    --------
    >>> from fourrates.design import plan
    >>> for span in plan(arl=100_000).recalls:
    ...     print(f"{span.width} observations: {span.level(0.9):.1e}{' once full-grown' if span.grows else ''}")
    100 observations: 2.9e-05 once full-grown
    250 observations: 3.4e-06 once full-grown
    40 observations: 3.1e-06
    16 observations: 1.1e-06
    """
    if not check_arl(arl) >= SHORTEST:
        raise ValueError(f"arl {arl!r} is below {SHORTEST}, from which on there are plans")
    total = sum(RECALLS.values()) + sum(PRECISIONS.values()) + (TOGETHER if classes == 2 else 0.0)

    def spans(shares: dict[int, float]) -> tuple[Span, ...]:
        return tuple(
            Span(
                width,
                _levels(width, sides, share / total / arl),
                grows=width >= GROWING,
                early=FIRST / share if width == min(shares) else 0.0,
            )
            for width, share in shares.items()
        )

    joint = min(_levels(next(iter(RECALLS)), sides, TOGETHER / JOINT_COST / total / arl)) if classes == 2 else 0.0
    return Plan(spans(RECALLS), spans(PRECISIONS), min(RAMP, arl / FRACTION), joint)


def _levels(width: int, sides: Sides, budget: float) -> tuple[float, ...]:
    """The levels of a window at which its hazard is the budget, at most, where the rate is 0, 0.05, ... 1.

    Where no window is rare enough to alarm, the level is that of the nearest rates where one is.
    """
    rates = np.linspace(0, 1, 21)
    found = {}
    for rate in rates:
        level = 8 * budget
        for _ in range(3):  # the cost depends on the level but little
            cost = _cost(width, float(np.clip(rate, *EXTREMES)), level, sides)
            level = min(budget / cost, 0.4) if cost else 0.0
        if level:
            found[rate] = level
    return tuple(np.interp(rates, [*found], [*found.values()]).tolist()) if found else (budget,) * rates.size


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
    rates = _rates(detector, confusion)
    total = 0.0
    for name, (share, rate) in rates.items():
        for decay, lower, upper in detector.asymptotic_bounds(name, rate):
            mass = _settled(decay, rate).copy()
            total += share * _steady(decay, rate, lower, upper, mass)
    if detector.plan is not None:
        total += _planned_hazard(detector, detector.plan, [*rates.values()])
    return 1 / total if total > 0 else math.inf


def _planned_hazard(detector: LFR, found: Plan, rates: list[tuple[float, float]]) -> float:
    """The chance of a false alarm of a plan's windows at an event, for (share, value) of each rate."""
    classes = len(rates) // 2
    sides = detector.common_sides
    total = 0.0
    for family, spans in ((rates[:classes], found.recalls), (rates[classes:], found.precisions)):
        for scale, (share, rate) in zip(_scales([share for share, _ in family]), family, strict=True):
            levels = [(span.width, min(span.level(rate) * scale, 0.4)) for span in spans] if share else []
            total += share * sum(_window_hazard(width, rate, level, sides) for width, level in levels)
    if found.joint:
        width = found.recalls[0].width
        total += JOINT_COST * max(_window_hazard(width, rate, found.joint, sides) for _, rate in rates[:classes])
    return total


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
    the better of the statistics of one rate. So the chance given is a little too low rather than too high. For a plan,
    where a detector has windows, a thousand streams are simulated instead, always the same ones.

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
    if detector.plan is not None:
        return Delay(_simulated(detector, before, after, horizon))
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


def _simulated(detector: LFR, before: npt.ArrayLike, after: npt.ArrayLike, horizon: int) -> npt.NDArray[np.float64]:
    """Of many streams, the share that finds a change within 1, 2, ... events of it."""
    random = np.random.default_rng(0)
    old, new = _matrix(detector, before), _matrix(detector, after)
    classes = len(old)
    rates = [*_rates(detector, old).values()]
    weights = np.concatenate([_scales([share for share, _ in rates[i : i + classes]]) for i in (0, classes)] + [[1.0]])
    counts = np.rint(old * MANY).astype(np.int64).ravel()
    twin = detector.clone()
    delays = np.zeros(horizon, np.int64)
    for _ in range(SIMULATED):
        # The windows as a long stable stream leaves them.
        latest = random.random((2 * classes, 256)) < [[rate] for _, rate in rates]
        twin._set_state(counts, np.empty(0), np.empty(0, np.uint8))
        twin._set_window_state(np.packbits(latest, axis=1).view(np.uint64), weights)
        cells = np.searchsorted(np.cumsum(new)[:-1], random.random(horizon), side="right")
        truths, guesses = np.divmod(cells, classes)
        taken, drift = twin._run(truths.astype(np.uint16), guesses.astype(np.uint16), 0)
        if drift is not None:
            delays[taken - 1] += 1
    return np.cumsum(delays) / SIMULATED


def _scales(shares: Sequence[float]) -> list[float]:
    """By what the levels of the classes of a plan are multiplied, given how frequent they are."""
    whole = sum(share ** (1 - EVENNESS) for share in shares if share)
    return [share**-EVENNESS / whole if share else 1.0 for share in shares]


def _matrix(detector: LFR, confusion: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A confusion matrix as probabilities."""
    matrix = np.asarray(confusion, float)
    classes = len(detector.rates) // 2
    if matrix.shape != (classes, classes):
        raise ValueError(f"the confusion matrix has shape {matrix.shape}, not {(classes, classes)}")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all() and matrix.sum() > 0):
        raise ValueError("the confusion matrix holds something other than probabilities or counts")
    return np.asarray(matrix / matrix.sum())


def _rates(detector: LFR, confusion: npt.ArrayLike) -> dict[str, tuple[float, float]]:
    """For each rate how often an event touches it, and its value."""
    matrix = _matrix(detector, confusion)
    touched = np.concatenate([matrix.sum(1), matrix.sum(0)])
    right = np.tile(matrix.diagonal(), 2)
    return {
        name: (float(share), float(one / share) if share else 1.0)
        for name, share, one in zip(detector.rates, touched, right, strict=True)
    }


def _window_hazard(width: int, rate: float, level: float, sides: Sides) -> float:
    """The chance of a false alarm at an observation of one rate by a window, long after the start, at this level."""
    down = 0.0 if sides == "up" else _entering(width, rate, level)[0]
    return down + (0.0 if sides == "down" else _entering(width, 1.0 - rate, level)[0])


def _cost(width: int, rate: float, level: float, sides: Sides) -> float:
    """The hazard of a window next to its level, were its values so many that this is used up; 0 if it cannot alarm."""
    found = [
        _entering(width, one, level)
        for one in ([] if sides == "up" else [rate]) + ([] if sides == "down" else [1.0 - rate])
    ]
    return sum(hazard / used for hazard, used in found if used)


@lru_cache(maxsize=4096)
def _entering(width: int, rate: float, level: float) -> tuple[float, float]:
    """How often a window's value becomes as low as the level says, and how often it is.

    Per observation, and of several visits that belong together only the first. The chance that the value is not so low
    at one observation and is at the next is a sum over the bits the two windows share: the ones in each half, the
    oldest bit, the bit that passes from the newer to the older half, and the new one. Such entries come in clumps. Just
    above the border the number of ones falls with chance u at an observation and rises with chance d, so it comes back
    with chance u / d: of all entries 1 - u / d are the first of a clump.
    """
    half, window = width // 2, Window(width)
    border = window.critical(level, MANY, round(rate * MANY))
    if border < 0:
        return 0.0, 0.0
    count = border // (half + 1)
    newer, older = _binomial(half - 1, rate), _binomial(width - half - 1, rate)
    ones_newer = np.arange(half)[:, None]
    shared = count - np.arange(-1, 4)  # ones in what the two windows share; with others the border is not passed
    ones_older = shared - ones_newer
    possible = (ones_older >= 0) & (ones_older < older.size)
    chances = newer[:, None] * np.where(possible, older[np.where(possible, ones_older, 0)], 0.0)
    entries = 0.0
    for oldest, passing, new in product((0, 1), repeat=3):
        was = (half + 1) * (shared + oldest + passing) + ones_newer + passing
        now = (half + 1) * (shared + passing + new) + ones_newer + new
        ones = oldest + passing + new
        entries += rate**ones * (1 - rate) ** (3 - ones) * chances[(was > border) & (now <= border)].sum()
    share = max(count - 0.5, 0.0) / width
    first = max(0.0, 1 - share * (1 - rate) / ((1 - share) * rate))
    return float(entries * first), window.p_value(border, MANY, round(rate * MANY))


@lru_cache(maxsize=256)
def _binomial(size: int, rate: float) -> npt.NDArray[np.float64]:
    """The chances of 0, 1, ... ones among so many independent bits."""
    counts = np.arange(size + 1)
    ways = np.array([float(math.comb(size, count)) for count in range(size + 1)])
    return np.asarray(ways * rate**counts * (1 - rate) ** (size - counts))


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
    from fourrates.kernel.law import passage

    passage(decay, rate, lower, upper, mass, left)

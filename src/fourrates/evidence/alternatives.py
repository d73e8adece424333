"""The changes FourRates looks for, as steps and weights, by the known rate and its number of observations.

A change is worth looking for if it can be found within some tenth of the budget, and within about the number of
observations the rate is known from. So steps are placed by the time it takes to find them, from 15 observations up to
that, and share the budget accordingly. A step of 0.14 in log-odds takes 9,000 observations at a rate of 0.9, and
800,000 at 0.999, and there it gets no share of the budget.

The table is a function of the past, so using it changes nothing in the theorem (see docs/mathematics.md). All weights
sum to at most one at every event.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Sides = Literal["both", "down", "up"]

RATES = 65  # rows of the table, log-odds from -8 to 8, four to a nat
ROWS_PER_NAT = 4
OCTAVES = 24  # columns, observations by powers of two, as the kernel reads them off a float's exponent
SIZES = 6  # steps of one recall in one direction
SHARED_SIZES = 3  # of two recalls together, in each of four directions

NATS = 8.0  # of information, after which an alternative is found
SHORTEST = 15.0  # observations
LARGEST = 2.5  # step in log-odds; larger ones overshoot, and this one finds them as soon
OF_KNOWN = 0.7  # the longest alternative over the observations known
OF_BUDGET = 0.1  # and over the budget
FLOOR = 40.0  # and no shorter than this
SIZE_WEIGHTS = np.array([0.6, 1.0, 1.4, 1.4, 1.0, 1.0])  # from the shortest alternative to the longest
LEAST = 0.25  # weight of a direction in which hardly a step can be found, next to one in which all can
BEGINNING, LATEST = 0.05, 300.0  # observations at which half the budget is spent, over its power of 3/4, and at most
SHARED_LONGEST = 0.15  # the longest alternative of two recalls over that of one
SHARED_WEIGHTS = np.array([1.0, 2.0, 1.0])
OWN, TOGETHER = 0.74, 0.26  # how the budget is shared between one recall and several
PAIRS = {(-1, -1): 0.68, (-1, 1): 0.12, (1, -1): 0.12, (1, 1): 0.08}  # of TOGETHER: directions of two recalls
BOTH_FALL = np.array(
    [1.2, 0.6, 0.3]
)  # steps in log-odds of both falling, as a worse model errs more often in both classes
SHARED_SHORTEST = 2.0  # the shortest alternative of other pairs over SHORTEST
QUORUM = 16.0  # observations from which a class counts in a joint change


@lru_cache(maxsize=64)
def alternatives(
    classes: int, arl: float, lag: float, sides: Sides, budget: float = 1.0, rates: int | None = None
) -> npt.NDArray[np.float32]:
    """Steps and weights for each rate and number of observations, as float32, rates x octaves x 3 x 3 x lanes.

    Steps in log-odds, their exponentials less one, and weights, for the lanes of a recall alone, and for the first and
    the second class in a joint change (the same for more than two classes). A rate is updated when observations have
    grown by the part `lag`; `budget` is the part of it that all these have. With `rates`, only that many recalls are
    watched, each alone.
    """
    levels = _rates()
    known = 2.0 ** np.arange(OCTAVES) * np.sqrt(2) / (1 + lag)
    longest = np.maximum(np.minimum(OF_KNOWN * known, OF_BUDGET * arl), FLOOR)
    begun = known / (known + min(BEGINNING * arl**0.75, LATEST) * 2 / classes)  # the observations of all classes count
    watched = {-1: sides != "up", 1: sides != "down"}
    table = np.zeros((RATES, OCTAVES, 3, 3, 2 * SIZES))
    shortest = {way: np.maximum(SHORTEST, NATS / _information(levels, way * LARGEST)) for way in (-1, 1)}
    shares = {way: _share(shortest[way], longest, arl, levels, way) * watched[way] for way in (-1, 1)}
    whole = np.maximum(shares[-1] + shares[1], 1e-30)
    for i, way in enumerate((-1, 1)):
        lanes = slice(i * SIZES, (i + 1) * SIZES)
        scales = _spread(shortest[way], np.maximum(longest, 4 * shortest[way][:, None]), SIZES)
        weights = (shares[way] / whole * begun)[..., None] * SIZE_WEIGHTS / SIZE_WEIGHTS.sum()
        table[:, :, 0, 0, lanes] = _steps(scales, NATS, way)
        table[:, :, 0, 2, lanes] = (OWN / classes if rates is None else 1 / rates) * weights
    if rates is not None:
        table[:, :, 1:, 0] = table[:, :, :1, 0]  # with no weight, as a single one is no joint change
    elif classes == 2:
        _fill_pairs(table, longest, begun, watched)
    else:  # all move alike
        table[:, :, 1:, 0] = table[:, :, :1, 0]
        table[:, :, 1:, 2] = table[:, :, :1, 2] * (TOGETHER * classes / OWN)
    table[:, known * (1 + lag) < QUORUM, 1:, 0] *= 1e-30  # too little known of the class to count; the sign stays
    table[:, :, :, 1] = np.expm1(table[:, :, :, 0])
    table[:, :, :, 2] *= budget
    found = np.ascontiguousarray(table, np.float32)
    found.setflags(write=False)
    return found


def _fill_pairs(table: Floats, longest: Floats, begun: Floats, watched: dict[int, bool]) -> None:
    """Two recalls together in four directions, by the same step if both fall, or else by equal information."""
    shares = _pair_shares(watched)
    steps = {way: _shared_steps(longest, way) for way in (-1, 1)}
    for i, (pair, share) in enumerate(shares.items()):
        lanes = slice(i * SHARED_SIZES, (i + 1) * SHARED_SIZES)
        weights = begun[:, None] * SHARED_WEIGHTS / SHARED_WEIGHTS.sum() * share
        for c, way in enumerate(pair):
            table[:, :, 1 + c, 0, lanes] = -BOTH_FALL if pair == (-1, -1) else steps[way]
            table[:, :, 1 + c, 2, lanes] = TOGETHER / sum(shares.values()) * weights


def falling(sides: Sides) -> float:
    """The share of the budget for both of two recalls falling, in their first `SHARED_SIZES` lanes."""
    shares = _pair_shares({-1: sides != "up", 1: sides != "down"})
    return TOGETHER * shares[-1, -1] / sum(shares.values())


def _pair_shares(watched: dict[int, bool]) -> dict[tuple[int, int], float]:
    return {pair: share * all(watched[way] for way in pair) for pair, share in PAIRS.items()}


def _shared_steps(longest: Floats, way: int) -> Floats:
    """The steps of one of two recalls that move together."""
    shortest = np.maximum(SHORTEST * SHARED_SHORTEST, NATS / 2 / _information(_rates(), way * LARGEST))
    scales = _spread(shortest, np.maximum(SHARED_LONGEST * longest, 4 * shortest[:, None]), SHARED_SIZES)
    return _steps(scales, NATS / 2, way)


def _rates() -> Floats:
    return 1 / (1 + np.exp(-(np.arange(RATES) - RATES // 2) / ROWS_PER_NAT))


def _information(rates: Floats, step: Any) -> Floats:
    """Nats an observation gives after a step in log-odds, if the step is true."""
    odds = rates / (1 - rates) * np.exp(step)
    moved = odds / (1 + odds)
    return np.asarray(moved * step - np.log1p(rates * np.expm1(step)))


def _share(shortest: Floats, longest: Floats, arl: float, rates: Floats, way: int) -> Floats:
    """The weight of a direction, which grows with its findable steps and is never 0 for a fall from a high rate."""
    part = np.log(longest / shortest[:, None]) / np.log(longest / SHORTEST)
    possible = (shortest < 0.3 * arl) | ((rates > 0.5) == (way < 0))
    return np.asarray(np.where(part > 0, LEAST + (1 - LEAST) * part, LEAST * possible[:, None]))


def _spread(shortest: Floats, longest: Floats, sizes: int) -> Floats:
    """Evenly spaced in logarithms."""
    low = np.broadcast_to(shortest[:, None], longest.shape)[..., None]
    return np.asarray(low * (longest[..., None] / low) ** (np.arange(sizes) / (sizes - 1)))


def _steps(scales: Floats, nats: float, way: int) -> Floats:
    """The steps, in log-odds, that give these nats in the observations of the scales, for each rate."""
    tried, logs = _tried(way)
    wanted = np.log(nats / scales)
    found = [np.interp(want, log, tried) for want, log in zip(wanted, logs, strict=True)]
    return np.asarray(way * np.exp(np.array(found)))


@cache
def _tried(way: int) -> tuple[Floats, Floats]:
    """Logarithms of steps, and of the nats each gives an observation, for each rate."""
    tried = np.geomspace(1e-4, LARGEST, 200)
    return np.log(tried), np.log(_information(_rates()[:, None], way * tried))

"""The Markov chain of R under a stable concept, with its stationary law, and how soon it leaves its bounds.

With independent bits, ones with probability p, R moves from r to eta r or to eta r + (1 - eta). Its law is carried on
points of [0, 1]; a value between two of them is split so that the mean is kept (Brook and Evans, 1972). The share of
those still inside that leaves the bounds at a step settles to the hazard of the rate.

The points lie closer near 0 and 1. A long run of equal bits brings R there by a constant factor a step, so it takes
several more observations to reach 0.997 than 0.995; equally spaced points would blur that.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from fourrates.null import KEPT, STEPS, slack

Values = npt.NDArray[np.float64]

Sides = Literal["both", "down", "up"]

WIDEST = 2e-4  # spacing of the points; the splitting then adds less than 0.2 % to the variance of R, at any decay
SLOPE = 0.004  # of the distance to 0 or 1: the largest spacing near those
LEAST = 2e-6  # spacing, at 0 and 1
MEMORIES = 12  # of 1 / (1 - decay) observations each, after which the start is forgotten,
FEWER = 7  # and after which the law near the bounds has settled
UNWATCHED = -1.0, 2.0  # bounds that R never leaves


@cache
def points() -> Values:
    """The points of [0, 1] that carry the law, symmetric around one half."""
    half = [0.0]
    while half[-1] < 0.5:
        half.append(half[-1] + min(WIDEST, LEAST + SLOPE * half[-1]))
    lower = np.array(half) * (0.5 / half[-1])
    return np.concatenate([lower, 1.0 - lower[-2::-1]])


@lru_cache(maxsize=512)
def settled(decay: float, rate: float) -> Values:
    """The law of R after many observations, at the points. It is shared, so copy it before changing it."""
    at = points()
    mass = np.zeros(at.size)
    mass[np.abs(at - rate).argmin()] = 1.0
    run(decay, rate, UNWATCHED, mass, math.ceil(MEMORIES / (1 - decay)))
    mass.flags.writeable = False
    return mass


def asymptotic_bounds(decay: float, rate: float, level: float, sides: Sides) -> tuple[float, float]:
    """The exact null's bounds after very many observations, without building its table."""
    lower = _lower(decay, rate, level) if sides != "up" else UNWATCHED[0]
    upper = 1.0 - _lower(decay, 1.0 - rate, level) if sides != "down" else UNWATCHED[1]
    return lower, upper


def _lower(decay: float, rate: float, level: float) -> float:
    law, at = settled(decay, rate), points()
    position = int(np.searchsorted(np.cumsum(law), KEPT * level, side="right"))
    quantile = float(at[min(position, at.size - 1)])
    # The table keeps multiples of 1 / STEPS, and leaves room for its own rounding and for bits it does not carry.
    return max(math.floor((quantile - slack(decay)) * STEPS), 0) / STEPS


@lru_cache(maxsize=512)
def hazard(decay: float, rate: float, within: tuple[float, float]) -> float:
    """The hazard of these bounds, the chance per observation that R leaves them, once settled."""
    mass = settled(decay, rate).copy()
    left = run(decay, rate, within, mass, math.ceil(FEWER / (1 - decay)))
    total = mass.sum()
    return float(left[-1] / (left[-1] + total)) if total > 0.0 else 1.0


def survival(decay: float, before: float, after: float, within: tuple[float, float], steps: int) -> Values:
    """The chance that R is still inside after 0, 1, ... observations of a rate that has just changed."""
    mass = settled(decay, before).copy()
    carried = min(steps, math.ceil(MEMORIES / (1 - decay)))
    left = run(decay, after, within, mass, carried)
    total = float(mass.sum())
    # By then the hazard has settled.
    kept = total / (total + left[-1]) if total > 0.0 else 0.0
    later = total * kept ** np.arange(1, steps - carried + 1)
    return np.concatenate([[1.0], 1.0 - np.cumsum(left), later])


def run(decay: float, rate: float, within: tuple[float, float], mass: Values, steps: int) -> Values:
    """Advance the law in place, and return the share that leaves the bounds at each step."""
    from fourrates.kernel.chain import passage

    left = np.empty(steps)
    passage(decay, rate, *within, points(), mass, left)
    return left

"""How often an alarm of one statistic is the first of its cluster.

Recall and precision of a class share bits, and so do statistics of one rate with different decays: they alarm together
more often than independent ones would. So the hazard of a detector is less than the sum of the hazards of its
statistics. It is exactly the sum of each hazard times the share of its alarms that no other statistic preceded.

That share is found by sampling. The bits that led one statistic to an alarm are drawn backwards, from the chain with
its time reversed; no draw is wasted, however small the level. What the other statistics saw in the meantime follows
from those bits and from independent ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fourrates.budget import chain

PATHS = 1_000  # alarms drawn of each statistic; the share of first ones then has a standard error of 0.016 at most
LOOKED_BACK = 5  # memories of 1 / (1 - decay) observations each
LITTLE = 0.1  # of the zeros of a rate: if no more come from another rate, the two hardly alarm together
DILUTED = 20  # observations of a rate for each one of another: if there are more, neither do these


class Statistic(NamedTuple):
    """A decayed mean of a rate, its bounds after many observations, and its hazard at one."""

    rate: int  # recalls by class, then precisions by class
    share: float
    value: float
    decay: float
    within: tuple[float, float]
    hazard: float


class Overlap(NamedTuple):
    """What a second rate sees of the observations of a first one, and what it sees besides."""

    ones: float  # of the ones of the first rate, the part that the second sees as well
    zeros: float
    between: float  # observations of its own for each one of the first
    right: float  # the part of ones among those


def first_shares(statistics: list[Statistic], matrix: npt.NDArray[np.float64]) -> list[float]:
    """Of the alarms of each statistic, the share that no other one preceded; of two at once each counts half."""
    alone = [one.share * one.hazard for one in statistics]
    # What has next to no part in the sum may as well be counted in full.
    enough = 0.01 * sum(alone) / len(alone) if alone else 0.0
    return [
        _first_share(one, statistics, matrix) if part > enough else 1.0
        for one, part in zip(statistics, alone, strict=True)
    ]


def _first_share(one: Statistic, statistics: list[Statistic], matrix: npt.NDArray[np.float64]) -> float:
    others = [(other, met) for other in statistics if (met := _overlap(one, other, matrix)) is not None]
    if not others:
        return 1.0
    random = np.random.default_rng(0)
    bits = _alarms(one, random)
    preceded, ties = np.zeros(PATHS, bool), np.ones(PATHS)
    quiet = 1.0  # the chance that none of the others alarms by itself in the meantime: the hazard is of what is left
    for other, met in others:
        found = _outcome(bits, other, met, random)
        preceded |= found == 2
        ties += found == 1
        quiet *= (1 - other.hazard) ** (bits.shape[1] * other.share / one.share)
    return min(1.0, float(np.where(preceded, 0.0, 1.0 / ties).mean()) / quiet)


def _overlap(one: Statistic, other: Statistic, matrix: npt.NDArray[np.float64]) -> Overlap | None:
    """What the rate of a second statistic sees of the first one's; None if that is little."""
    classes = len(matrix)
    if one.rate == other.rate:
        return Overlap(1.0, 1.0, 0.0, 0.0) if one is not other else None
    if other.share == 0.0 or (one.rate < classes) == (other.rate < classes):
        return None  # recalls of different classes share nothing, nor do precisions
    cells = matrix if one.rate < classes else matrix.T
    mine, its = one.rate % classes, other.rate % classes
    both = cells[mine, its]
    own = max(other.share - both, 0.0)
    between = own / one.share
    if between > DILUTED:
        return None
    if mine == its:
        return Overlap(1.0, 0.0, between, 0.0)
    wrong, its_wrong = one.share - cells[mine, mine], other.share - cells[its, its]
    if both < LITTLE * its_wrong or both == 0.0:
        return None
    return Overlap(0.0, both / wrong, between, cells[its, its] / own if own else 0.0)


def _alarms(one: Statistic, random: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Draw the bits that led to an alarm, from the oldest to the one that set it off: a row each."""
    steps = math.ceil(LOOKED_BACK / (1 - one.decay))
    bits = np.empty((PATHS, steps), np.uint8)
    for back, drawn in enumerate(_backwards(one, random, steps)):
        bits[:, steps - 1 - back] = drawn
    return bits


def _backwards(one: Statistic, random: np.random.Generator, steps: int) -> Iterator[npt.NDArray[np.uint8]]:
    points = chain.points()
    mass, _ = chain.inside(one.decay, one.value, one.within)
    origin = np.tile(np.arange(points.size), 2)
    bit = np.repeat(np.array([0, 1], np.uint8), points.size)
    value = one.decay * points[origin] + (1 - one.decay) * bit
    weight = mass[origin] * np.where(bit, one.value, 1 - one.value)
    lower, upper = one.within
    outside = (value < lower - 1e-12) | (value > upper + 1e-12)
    # The last step leads outside.
    taken = _draw(np.cumsum(np.where(outside, weight, 0.0)), random.random(PATHS))
    yield bit[taken]
    # Each step before it leads to where the next one began: every way there, in the order of where it leads.
    below = np.clip(np.searchsorted(points, value, side="right") - 1, 0, points.size - 2)
    part = (value - points[below]) / (points[below + 1] - points[below])
    target = np.concatenate([below, below + 1])
    weights = np.concatenate([weight * (1 - part), weight * part]) * np.tile(~outside, 2)
    order = np.argsort(target, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    ways = np.searchsorted(target[order], np.arange(points.size + 1))
    at = origin[taken]
    for _ in range(steps - 1):
        low, high = sums[ways[at]], sums[ways[at + 1]]
        found = np.searchsorted(sums, low + random.random(PATHS) * (high - low), side="right") - 1
        taken = order[np.clip(found, ways[at], ways[at + 1] - 1)] % origin.size
        yield bit[taken]
        at = origin[taken]


def _draw(sums: npt.NDArray[np.float64], uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    return np.asarray(np.minimum(np.searchsorted(sums, uniform * sums[-1], side="right"), sums.size - 1))


def _outcome(
    bits: npt.NDArray[np.uint8], other: Statistic, met: Overlap, random: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """For each row of bits: whether another statistic alarmed before (2), at the same event (1), or did not (0)."""
    from fourrates.kernel.chain import companion

    shared = (random.random(bits.shape) < np.where(bits, met.ones, met.zeros)).astype(np.uint8)
    between = (random.geometric(1 / (1 + met.between), bits.shape) - 1).astype(np.int32)
    own = (random.random(int(between.sum())) < met.right).astype(np.uint8)
    mass, _ = chain.inside(other.decay, other.value, other.within)
    start = chain.points()[_draw(np.cumsum(mass), random.random(len(bits)))]
    found = np.empty(len(bits), np.uint8)
    companion(bits, shared, between, own, other.decay, *other.within, start, found)
    return found

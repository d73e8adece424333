"""The rules of FourRates as numbers, with the measurements behind each constant; the kernel has arithmetic only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fourrates.evidence.alternatives import ROWS_PER_NAT, SHARED_SIZES, SIZES, Sides, alternatives, falling
from fourrates.evidence.layout import BLOCKS, FourRatesRules
from fourrates.kernel.evidence import NUMBERS

Mix = Literal["report", "alarm", "ignore"]

STEPS = (0.14, 0.25, 0.44, 0.78, 1.38, 2.45)  # of a class share in log-odds; see alternatives.py for recalls
STEP_WEIGHTS = (1.0, 1.1, 1.1, 1.2, 1.1, 0.6)
MARGIN = 1.03  # threshold over budget, the cost of a lag
# A recall's base is brought up to date when its observations have grown by this part; with few labels at once, as a
# lag costs a tenth of the run length and more.
LAG, LAG_OF_MANY, LAG_OF_SAMPLED = 1 / 5, 1 / 16, 1 / 64
GIVEN_LAG = 1 / 2  # and of a reference; a base from n observations may wait for n and keep its budget on average
PRIOR = 0.5  # right and wrong ones before the first observation, the Jeffreys prior
MEAN_WEIGHT = 20.0  # observations of a stratum that the mean of all strata counts for
TEMPERING = {
    "inflation": 1.1,  # dispersion beyond 1 counts for this much
    "scale": 8.0,  # nats that an alternative needs to be found, which makes its scale in observations
    "reach": 24.0,  # blocks up to this many times that scale count
    "errors": 1.9,  # standard errors subtracted from an estimate
    "pairs": 2.0,  # pairs of blocks assumed before the first,
    "scatter": 2.0,  # and their dispersion
    "remembered": 256.0,  # pairs of blocks, then sums are halved
    "cap": 4.0,  # deviations a difference of two blocks counts for at most, as one jump is not dispersion
}
MIX_SHARE = 0.25  # of the budget, if a class-mix shift is an alarm
JOINT_SHARE = 1 / 3  # of the rest, for both recalls falling in a class-mix shift
JOINT_STEPS = (1.0, 0.5, 0.25)  # of the share of a class, for each size of the fall, the largest first
CONFUSION_SHARE = 0.5  # of the budget with more than two classes, for one predicted as another more often, or both
CONFUSION_STEPS = (0.6, 1.3, 2.3, 3.6)  # of the share of such errors, in log-odds
CONFUSION_BEGINS = 300.0  # observations of a class at which half of that is spent
MOST_CONFUSED = 50  # classes; with more, single confusions are not watched
NAMING = 5.0  # a change of all recalls names those whose own evidence is at least this many times its mean
# For the second look, how much better a drift explains the observations since an alarm than normal does.
CONFIRM, WITHDRAW = 20.0, 1 / 20
RECOVER = 1 / 100  # the look at a recovery, which is not urgent
BACK, BACK_OPENS = 0.1, 0.1  # weight of "back at normal", and the share of an alarm at which a look at it opens
DISTRUST = 2.0  # n observations count this many times when compared with n0 of normal, by measurement
LEAST_KNOWN = 100  # observations of normal below which nothing is confirmed,
LEAST_HISTORY = 30  # and below which normal is not known at all
WARN = 0.1  # a warning's run length over that of an alarm


def evidence_rules(
    classes: int,
    arl: float,
    warn: float,
    *,
    sides: Sides = "both",
    mix: Mix = "report",
    hold: bool = True,
    dispersion: float | Sequence[Any] | None = None,
    reference: npt.NDArray[np.int64] | None = None,
    tolerance: Sequence[float] | None = None,
    learning: bool = False,
    strata: int = 1,
    sampled: bool = False,
    watched: Sequence[bool] | None = None,
) -> FourRatesRules:
    """The rules for a budget of one false alarm in `arl` events, with the settings of FourRates by class code.

    `watched` are the recalls, by class, that may raise an alarm; `hold`, whether normal is kept after a drift, which is
    then open until it ends. With `sampled`, an event's stratum is the ratio of the probabilities with which it was
    drawn.
    """
    lag = LAG_OF_SAMPLED if sampled else LAG if classes == 2 else LAG_OF_MANY
    joins = mix == "alarm" and classes == 2 and sides != "up" and watched is None
    mixed = [(sign * step, w) for sign in (-1, 1) for step, w in zip(STEPS, STEP_WEIGHTS, strict=True)]
    threshold = MARGIN * arl
    strata = NUMBERS["ODDS"] if sampled else strata
    plain = watched is None and not (learning or strata > 1 or (tolerance is not None and any(tolerance)))
    confusions = plain and 2 < classes <= MOST_CONFUSED and sides != "up"
    part = 1 - JOINT_SHARE if joins else 1 - CONFUSION_SHARE if confusions else 1.0
    return FourRatesRules(
        classes,
        {
            "warn": MARGIN * warn,
            "threshold": threshold / (1 - MIX_SHARE) if mix == "alarm" else threshold,
            "mix_threshold": threshold / MIX_SHARE if mix == "alarm" else threshold,
            "hold": hold,
            "watch_mix": mix != "ignore" and classes == 2 and not sampled,
            "watch_joint": joins,
            "back_weight": BACK / classes,
            "back_threshold": BACK_OPENS * threshold,
            "confirm": CONFIRM,
            "withdraw": WITHDRAW,
            "recover": RECOVER,
            "distrust": DISTRUST,
            "least_known": LEAST_KNOWN,
            "directions": 4 if classes == 2 else 2,
            "lag": lag,
            "given_lag": GIVEN_LAG,
            "prior": PRIOR,
            "tempering": TEMPERING,
            "estimate": not isinstance(dispersion, float | int),
            "dispersion": float(dispersion) if isinstance(dispersion, float | int) else 1.0,
            "scatter": _scatter(dispersion, classes),
            "reference": _given(reference, classes),
            "tolerance": np.array([0.0] * classes if tolerance is None else tolerance, np.float32),
            "learning": learning,
            "strata": strata,
            "sampled": sampled,
            "mean_weight": MEAN_WEIGHT,
            "alternatives": alternatives(
                classes, float(arl), lag, sides, part, None if watched is None else sum(watched)
            ),
            "watched": np.array([1] * classes if watched is None else watched, np.uint8),
            "watch_confusions": confusions,
            "confusion_weight": CONFUSION_SHARE / 2 / len(CONFUSION_STEPS) / max(classes - 1, 1),
            "confusion_steps": CONFUSION_STEPS,
            "confusion_begins": CONFUSION_BEGINS,
            "rows_per_nat": ROWS_PER_NAT * math.log(2),  # the kernel has base-2 logarithms
            "mix": _scaled(mixed, 1.0),
            "joint": _joint(sides) if joins else [(0.0, 0.0)] * len(mixed),
        },
    )


def _joint(sides: Sides) -> list[tuple[float, float]]:
    """The class-mix shift of each lane, down and up, and its weight over that of both recalls falling alone."""
    weight = JOINT_SHARE / 2 / ((1 - JOINT_SHARE) * falling(sides))
    none = [(0.0, 0.0)] * (SIZES - SHARED_SIZES)
    return [lane for sign in (-1, 1) for lane in [*((sign * step, weight) for step in JOINT_STEPS), *none]]


def _scatter(dispersion: float | Sequence[Any] | None, classes: int) -> npt.NDArray[np.float32]:
    """Squares and pairs of blocks, by class, overall and of the mix."""
    shape = (classes + 2, 2, BLOCKS)
    if dispersion is None or isinstance(dispersion, float | int):
        return np.zeros(shape, np.float32)
    try:
        found = np.array(dispersion, np.float32)
    except (TypeError, ValueError):
        found = np.zeros(0, np.float32)
    if (
        found.shape != shape
        or not ((found >= 0) & (found <= 1e30)).all()
        or (found[:, 1] >= TEMPERING["remembered"]).any()
    ):
        raise ValueError("dispersion is neither a number of at least 1 nor that of a reference")
    return found


def _given(reference: npt.NDArray[np.int64] | None, classes: int) -> tuple[npt.NDArray[np.float32], ...]:
    """Observations and right ones of each class."""
    counts = np.zeros((classes, classes)) if reference is None else reference
    return counts.sum(1).astype(np.float32), counts.diagonal().astype(np.float32)


def _scaled(lanes: list[tuple[float, Any]], total: float) -> list[tuple[float, float]]:
    weight = sum(w for _, w in lanes)
    return [(shift, total * w / weight) for shift, w in lanes]

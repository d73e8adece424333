"""What FourRates watches, as numbers: the alternatives, their weights, and how the budget becomes a threshold.

All that was chosen by measurement stands here, next to what it was chosen by; the kernel has arithmetic only. What each
choice was measured on is told in docs/diary.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fourrates.evidence.alternatives import ROWS_PER_NAT, SHARED_SIZES, SIZES, Sides, alternatives, falling
from fourrates.kernel.evidence import EvidenceRules

if TYPE_CHECKING:
    import numpy.typing as npt

Mix = Literal["report", "alarm", "ignore"]

STEPS = (0.14, 0.25, 0.44, 0.78, 1.38, 2.45)  # of the share of a class in log-odds; those of a recall: alternatives.py
STEP_WEIGHTS = (1.0, 1.1, 1.1, 1.2, 1.1, 0.6)
MARGIN = 1.05  # threshold over budget: what a lag costs
LAG, LAG_OF_MANY = 1 / 5, 1 / 16  # a recall's base is brought up to date when its observations have grown by this part
GIVEN_LAG = 1 / 2  # and of a reference: a base from n observations may wait for as many and keep its budget on average
PRIOR = 0.5  # right ones and wrong ones in mind before the first observation: the Jeffreys prior
TEMPERING = {
    "inflation": 1.1,  # dispersion beyond 1 counts for this much
    "scale": 8.0,  # nats that an alternative needs to be found, which makes its scale in observations
    "reach": 24.0,  # blocks up to this many times that scale count
    "errors": 2.0,  # standard errors that are taken off an estimate
    "pairs": 8.0,  # pairs of blocks without dispersion in mind before the first
    "remembered": 256.0,  # pairs of blocks, then sums are halved
    "cap": 9.0,  # no difference of two blocks counts for more than three deviations: one jump is not dispersion
}
MIX_SHARE = 0.25  # of the budget, where a shift of the classes is an alarm
JOINT_SHARE = 1 / 3  # of the rest: both recalls fell as the classes shifted
JOINT_STEPS = (1.38, 0.78, 0.44)  # of the share of a class, for each size of the fall, the largest first
BACK = 0.1  # weight of "back at the reference"
TELLING = 5.0  # a change of all recalls names those whose own evidence is at least this many times its mean
FAVOUR = 25.0  # it is a recovery if the reference explains what is seen a 25th as well as the best alternative
WARN = 0.1  # a warning's run length over that of an alarm


def evidence_rules(
    classes: int,
    arl: float,
    warn: float,
    *,
    sides: Sides = "both",
    mix: Mix = "report",
    hold: bool = False,
    keyed: bool = False,
    dispersion: float | None = None,
    reference: npt.NDArray[np.int64] | None = None,
) -> EvidenceRules:
    """The rules for a budget of one false alarm in `arl` events.

    Parameters
    ----------
    classes : int
        Number of classes.
    arl, warn : float
        Events between two false alarms, and two false warnings.
    sides : {"both", "down", "up"}
        Which way a recall may move to raise an alarm.
    mix : {"report", "alarm", "ignore"}
        What a shift of the classes is.
    hold : bool
        Whether the reference stays after a drift.
    keyed : bool
        Whether every stream has its own reference, or none.
    dispersion : float, optional
        As it is known; estimated if not given.
    reference : K x K counts, optional
        Of the classifier as it was shipped.
    """
    lag = LAG if classes == 2 else LAG_OF_MANY
    joins = mix == "alarm" and classes == 2 and sides != "up"
    mixed = [(sign * step, w) for sign in (-1, 1) for step, w in zip(STEPS, STEP_WEIGHTS, strict=True)]
    threshold = MARGIN * arl
    return EvidenceRules(
        classes,
        {
            "arl": arl,
            "warn": MARGIN * warn,
            "threshold": threshold / (1 - MIX_SHARE) if mix == "alarm" else threshold,
            "mix_threshold": threshold / MIX_SHARE if mix == "alarm" else threshold,
            "hold": hold,
            "keyed": keyed,
            "watch_mix": mix != "ignore" and classes == 2,
            "watch_joint": joins,
            "back_weight": BACK / classes,
            "favour": FAVOUR,
            "telling": TELLING,
            "directions": 4 if classes == 2 else 2,
            "lag": lag,
            "given_lag": GIVEN_LAG,
            "prior": PRIOR,
            "tempering": TEMPERING,
            "estimate": dispersion is None,
            "dispersion": 1.0 if dispersion is None else dispersion,
            "reference": _given(reference, classes),
            "alternatives": alternatives(classes, float(arl), lag, sides, 1 - JOINT_SHARE if joins else 1.0),
            "rows_per_nat": ROWS_PER_NAT * math.log(2),  # the kernel has base-2 logarithms
            "mix": _scaled(mixed, 1.0),
            "joint": _joint(sides) if joins else [(0.0, 0.0)] * len(mixed),
        },
    )


def _joint(sides: Sides) -> list[tuple[float, float]]:
    """The shift of the classes in each lane, down and up, and its weight over that of both recalls falling alone."""
    weight = JOINT_SHARE / 2 / ((1 - JOINT_SHARE) * falling(sides))
    none = [(0.0, 0.0)] * (SIZES - SHARED_SIZES)
    return [lane for sign in (-1, 1) for lane in [*((sign * step, weight) for step in JOINT_STEPS), *none]]


def _given(reference: npt.NDArray[np.int64] | None, classes: int) -> tuple[npt.NDArray[np.float32], ...]:
    """Observations and right ones of each class."""
    counts = np.zeros((classes, classes)) if reference is None else reference
    return counts.sum(1).astype(np.float32), counts.diagonal().astype(np.float32)


def _scaled(lanes: list[tuple[float, Any]], total: float) -> list[tuple[float, float]]:
    weight = sum(w for _, w in lanes)
    return [(shift, total * w / weight) for shift, w in lanes]

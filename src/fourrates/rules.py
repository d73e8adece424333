"""What FourRates watches, as numbers: the alternatives, their weights, and how the budget becomes a threshold.

All that was chosen by measurement stands here, next to what it was chosen by; the kernel has arithmetic only. What each
choice was measured on is told in docs/diary.md.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fourrates.kernel.evidence import EvidenceRules

Sides = Literal["both", "down", "up"]
Mix = Literal["report", "alarm", "ignore"]

STEPS = (0.14, 0.25, 0.44, 0.78, 1.38, 2.45)  # of a recall in log-odds: 0.9 falls to 0.887, ... 0.44
SHARED_STEPS = (0.45, 0.85, 1.6)  # of two recalls together
OWN, TOGETHER = 0.74, 0.26  # how the budget is shared between one recall and several
FALL = 0.15  # of TOGETHER: both recalls fall; the other three directions share the rest
STEP_WEIGHTS = (1.0, 1.1, 1.1, 1.2, 1.1, 0.6)
SHARED_WEIGHTS = (1.0, 2.0, 1.0)
MARGIN = 1.05  # threshold over budget: what a lag costs
LAG, LAG_OF_MANY = 1 / 8, 1 / 16  # a recall's base is brought up to date when its observations have grown by this part
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
BACK = 0.1  # weight of "back at the reference"
QUORUM = 16.0  # observations from which on a class has a say in what all do together
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
    dispersion : float, optional
        As it is known; estimated if not given.
    reference : K x K counts, optional
        Of the classifier as it was shipped.
    """
    down, up = sides != "up", sides != "down"
    own = [(-step, w * down) for step, w in zip(STEPS, STEP_WEIGHTS, strict=True)]
    own += [(step, w * up) for step, w in zip(STEPS, STEP_WEIGHTS, strict=True)]
    shared = _pairs(down, up) if classes == 2 else [own, own]
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
            "watch_mix": mix != "ignore" and classes == 2,
            "back_weight": BACK / classes,
            "favour": FAVOUR,
            "telling": TELLING,
            "directions": 4 if classes == 2 else 2,
            "lag": LAG if classes == 2 else LAG_OF_MANY,
            "quorum": QUORUM,
            "prior": PRIOR,
            "tempering": TEMPERING,
            "estimate": dispersion is None,
            "dispersion": 1.0 if dispersion is None else dispersion,
            "reference": _given(reference, classes),
            "own": _scaled(own, OWN / classes),
            "shared": [_scaled(lanes, TOGETHER) for lanes in shared],
            "mix": _scaled(mixed, 1.0),
        },
    )


def _given(reference: npt.NDArray[np.int64] | None, classes: int) -> tuple[npt.NDArray[np.float32], ...]:
    """Observations and right ones of each class."""
    counts = np.zeros((classes, classes)) if reference is None else reference
    return counts.sum(1).astype(np.float32), counts.diagonal().astype(np.float32)


def _pairs(down: bool, up: bool) -> list[list[tuple[float, float]]]:
    """The lanes of two recalls together, for each of them: both fall, opposite ways, both rise."""
    lanes: list[list[tuple[float, float]]] = [[], []]
    for first, second in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        share = FALL if (first, second) == (-1, -1) else (1 - FALL) / 3
        watched = all(down if sign < 0 else up for sign in (first, second))
        for step, w in zip(SHARED_STEPS, SHARED_WEIGHTS, strict=True):
            lanes[0].append((first * step, share * w * watched))
            lanes[1].append((second * step, share * w * watched))
    return lanes


def _scaled(lanes: list[tuple[float, Any]], total: float) -> list[tuple[float, float]]:
    weight = sum(w for _, w in lanes)
    return [(shift, total * w / weight) for shift, w in lanes]

"""Which of many streams have drifted, by e-values and the e-BH procedure (proofs in docs/many-streams.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.lfr import LFR
from fourrates.evidence.rules import MARGIN, FourRatesRules

Array = npt.NDArray[Any]


def e_values(
    detectors: Sequence[RecordDetector], records: Array, heads: dict[str, Array], begun: Array
) -> npt.NDArray[np.float64]:
    """For each stream a value whose mean is at most one while nothing changes; `begun` were before it."""
    if isinstance(detectors[0], LFR):
        level = np.array([_false_alarms(own) for own in detectors if isinstance(own, LFR)])[heads["group"]]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # expected alarms of a stable stream
            false = np.exp(level * begun) * np.expm1(level * (heads["events"] - begun))
            return np.where(heads["alarmed"], 1 / false, 0.0)
    alarms = evidence_shares(detectors, heads["group"], records)
    for slot in np.flatnonzero(heads["alarmed"]).tolist():
        detector = detectors[heads["group"][slot]]
        assert isinstance(detector, FourRates)
        alarms[slot] += detector._life_of(records[slot]).proof()
    budget = np.array([rules.threshold / MARGIN for rules in _evidence_rules(detectors)])[heads["group"]]
    waits = heads["events"] + 1.0
    return np.asarray(alarms * budget / (waits * (1 + np.log(waits)) ** 2))


def evidence_shares(detectors: Sequence[RecordDetector], groups: Array, records: Array) -> npt.NDArray[np.float64]:
    """The evidence for a change in each stream, as a share of an alarm; for FourRates."""
    shares = np.empty(len(records))
    for group, rules in enumerate(_evidence_rules(detectors)):
        own = groups == group
        shares[own] = rules.evidence(records[own].tobytes()) / rules.threshold
    return shares


def _evidence_rules(detectors: Sequence[RecordDetector]) -> list[FourRatesRules]:
    if not isinstance(detectors[0], FourRates):
        raise ValueError("a bank of LFR has no evidence: only one of FourRates does")
    return [own._evidence_rules for own in detectors if isinstance(own, FourRates)]


def discovered(values: npt.NDArray[np.float64], streams: int, q: float) -> Array:
    """Slots to name, in order, by e-BH: wrong in a share of at most q on average, of this number of streams."""
    order = np.argsort(-values, kind="stable")
    enough = np.flatnonzero(values[order] * q * np.arange(1, order.size + 1) >= max(streams, 1))
    return np.sort(order[: enough[-1] + 1]) if enough.size else order[:0]


def _false_alarms(detector: LFR) -> float:
    """Expected alarms at an event of a stable stream, at most, from two rates with levels added."""
    if detector.parameters["null"] != "exact":
        raise ValueError(f"discoveries needs the exact null; {detector.parameters['null']!r} keeps no level")
    return detector._false_alarms

"""Which of many streams have drifted, by e-values and the e-BH procedure (proofs in docs/many-streams.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates
from fourrates.evidence.rules import MARGIN

Array = npt.NDArray[Any]

PATIENCE = 10_000.0  # events; a stream of about this length pays least for looks at any time


def e_values(detector: RecordDetector, records: Array, heads: dict[str, Array]) -> npt.NDArray[np.float64]:
    """For each stream a value whose mean is at most one while nothing changes; for FourRates."""
    values = evidence_shares(detector, records)
    assert isinstance(detector, FourRates)
    for slot in np.flatnonzero(heads["alarmed"]).tolist():
        values[slot] += detector._life_of(records[slot]).proof()
    budget = detector.rules.threshold / MARGIN
    events = heads["events"]
    price = (events + PATIENCE) * (1 + np.log1p(events / PATIENCE)) ** 2
    with np.errstate(over="ignore"):  # evidence beyond every float is infinite
        return np.asarray(values * (budget / price))


def evidence_shares(detector: RecordDetector, records: Array) -> npt.NDArray[np.float64]:
    """The evidence for a change in each stream, as a share of an alarm; for FourRates."""
    if not isinstance(detector, FourRates):
        raise ValueError("a bank of LFR has no evidence, only one of FourRates does")
    rules = detector.rules
    return np.asarray(rules.evidence(records.tobytes()) / rules.threshold)


def discovered(values: npt.NDArray[np.float64], streams: int, q: float) -> Array:
    """Slots to name, in order, by e-BH. On average at most a share q of them is wrong, of this number of streams."""
    order = np.argsort(-values, kind="stable")
    enough = np.flatnonzero(values[order] * q * np.arange(1, order.size + 1) >= max(streams, 1))
    return np.sort(order[: enough[-1] + 1]) if enough.size else order[:0]

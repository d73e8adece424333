"""river: a bit an event, 1 for an error; a detector starts afresh by itself at the event after its alarm."""

from collections.abc import Iterable, Iterator
from typing import Any

from entry import Entry
from river.drift import ADWIN, KSWIN, PageHinkley
from river.drift.binary import DDM, EDDM, HDDMA, HDDMW

PACKAGE = "river"


def loop(detector: Any, events: Iterable[Any]) -> Iterator[int]:
    for at, error in enumerate(events):
        detector.update(error)
        if detector.drift_detected:
            yield at


def hddm(kind: Any) -> Any:
    return lambda drift=0.001: kind(drift_confidence=drift, warning_confidence=max(0.005, drift))


CONFIDENCES = (1e-6, 1e-4, 1e-3, 1e-2, 0.05)
ENTRIES = [
    Entry("ADWIN", loop, lambda delta=0.002: ADWIN(delta=delta), "delta", (1e-4, 2e-3, 0.02, 0.1, 0.3, 0.6, 0.9)),
    Entry(
        "DDM",
        loop,
        lambda drift=3.0: DDM(warning_threshold=min(2.0, drift), drift_threshold=drift),
        "drift_threshold",
        (2.0, 2.5, 3.0, 3.5, 4.0, 5.0),
    ),
    Entry(
        "EDDM",
        loop,
        lambda beta=0.9: EDDM(alpha=max(0.95, beta), beta=beta),
        "beta",
        (0.6, 0.7, 0.8, 0.9, 0.95),
    ),
    Entry("HDDM_A", loop, hddm(HDDMA), "drift_confidence", CONFIDENCES, streams=0.2),
    Entry("HDDM_W", loop, hddm(HDDMW), "drift_confidence", CONFIDENCES, streams=0.2),
    Entry(
        "PageHinkley",
        loop,
        lambda threshold=50.0: PageHinkley(threshold=threshold),
        "threshold",
        (5.0, 10.0, 15.0, 20.0, 30.0, 50.0),
    ),
    Entry(
        "KSWIN",
        loop,
        lambda alpha=0.005: KSWIN(alpha=alpha, seed=1),
        "alpha",
        (0.005, 1e-4),
        streams=0.02,
        events=3_000,
    ),
]

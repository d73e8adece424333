"""menelaus: truth and prediction an event; a detector starts afresh by itself at the event after its alarm."""

from collections.abc import Iterable, Iterator
from typing import Any

from entry import Entry
from menelaus.concept_drift import DDM, EDDM, STEPD, ADWINAccuracy, LinearFourRates

PACKAGE = "menelaus"
SHARE = 0.1


def loop(detector: Any, events: Iterable[Any]) -> Iterator[int]:
    for at, (truth, pred) in enumerate(events):
        detector.update(truth, pred)
        if detector.drift_state == "drift":
            yield at


ENTRIES = [
    Entry("LinearFourRates", loop, LinearFourRates, takes="pairs", streams=0, seconds=10),
    Entry(
        "ADWINAccuracy",
        loop,
        lambda delta=0.002: ADWINAccuracy(delta=delta),
        "delta",
        (2e-3, 0.1, 0.6),
        takes="pairs",
        streams=SHARE / 2,
        events=5_000,
    ),
    Entry(
        "DDM",
        loop,
        lambda drift=3.0: DDM(warning_scale=min(2.0, drift - 0.5), drift_scale=drift),
        "drift_scale",
        (2.5, 3.0, 4.0),
        takes="pairs",
        streams=SHARE,
        events=5_000,
    ),
    Entry(
        "EDDM",
        loop,
        lambda drift=0.9: EDDM(drift_thresh=drift),
        "drift_thresh",
        (0.7, 0.8, 0.9),
        takes="pairs",
        streams=SHARE,
        events=5_000,
    ),
    Entry(
        "STEPD",
        loop,
        lambda drift=0.003: STEPD(alpha_drift=drift),
        "alpha_drift",
        (1e-5, 1e-4, 0.003),
        takes="pairs",
        streams=SHARE / 2,
        events=5_000,
    ),
]

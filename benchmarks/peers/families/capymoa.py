"""CapyMOA: a number an event, here 1.0 for an error, handed to Java; a detector starts afresh by itself."""

from collections.abc import Iterable, Iterator
from typing import Any

from capymoa.drift.detectors import ADWIN, DDM, EDDM, HDDMAverage, HDDMWeighted, PageHinkley
from entry import Entry

PACKAGE = "capymoa"
SHARE = 0.2


def loop(detector: Any, events: Iterable[Any]) -> Iterator[int]:
    for at, error in enumerate(events):
        detector.add_element(error)
        if detector.detected_change():
            yield at


def hddm(kind: Any) -> Any:
    return lambda drift=0.001: kind(drift_confidence=drift, warning_confidence=max(0.005, drift))


CONFIDENCES = (1e-4, 1e-3, 1e-2)
ENTRIES = [
    Entry(
        "ADWIN",
        loop,
        lambda delta=0.002: ADWIN(delta),
        "delta",
        (2e-3, 0.1, 0.6),
        takes="floats",
        streams=SHARE,
        events=50_000,
    ),
    Entry(
        "DDM",
        loop,
        lambda drift=3.0: DDM(warning_level=min(2.0, drift), out_control_level=drift),
        "out_control_level",
        (2.5, 3.0, 4.0),
        takes="floats",
        streams=SHARE,
        events=50_000,
    ),
    Entry("EDDM", loop, lambda: EDDM(), takes="floats", streams=SHARE, events=50_000),  # nothing to vary
    Entry(
        "HDDM_A", loop, hddm(HDDMAverage), "drift_confidence", CONFIDENCES, takes="floats", streams=SHARE, events=50_000
    ),
    Entry(
        "HDDM_W",
        loop,
        hddm(HDDMWeighted),
        "drift_confidence",
        CONFIDENCES,
        takes="floats",
        streams=SHARE,
        events=50_000,
    ),
    Entry(
        "PageHinkley",
        loop,
        lambda threshold=50.0: PageHinkley(lambda_=threshold),
        "lambda_",
        (10.0, 20.0, 50.0),
        takes="floats",
        streams=SHARE,
        events=50_000,
    ),
]

"""frouros: a number an event, here 1 for an error; after an alarm its user resets the detector."""

from collections.abc import Iterable, Iterator
from typing import Any

from entry import Entry
from frouros.detectors.concept_drift import (
    ADWIN,
    DDM,
    EDDM,
    HDDMA,
    HDDMW,
    ADWINConfig,
    DDMConfig,
    EDDMConfig,
    HDDMAConfig,
    HDDMWConfig,
    PageHinkley,
    PageHinkleyConfig,
)

PACKAGE = "frouros"
SHARE = 0.1


def loop(detector: Any, events: Iterable[Any]) -> Iterator[int]:
    for at, error in enumerate(events):
        detector.update(value=error)
        if detector.drift:
            yield at
            detector.reset()


def hddm(kind: Any, config: Any) -> Any:
    return lambda drift=0.001: kind(config(alpha_d=drift, alpha_w=max(0.005, 2 * drift)))


CONFIDENCES = (1e-4, 1e-3, 1e-2)
ENTRIES = [
    Entry(
        "ADWIN",
        loop,
        lambda delta=0.002: ADWIN(ADWINConfig(delta=delta)),
        "delta",
        (2e-3, 0.1, 0.6),
        streams=SHARE / 2,
        events=20_000,
    ),
    Entry(
        "DDM",
        loop,
        lambda drift=3.0: DDM(DDMConfig(warning_level=min(2.0, drift - 0.5), drift_level=drift)),
        "drift_level",
        (2.5, 3.0, 4.0),
        streams=SHARE,
        events=20_000,
    ),
    Entry(
        "EDDM",
        loop,
        lambda beta=0.9: EDDM(EDDMConfig(beta=beta)),
        "beta",
        (0.7, 0.8, 0.9),
        streams=SHARE,
        events=20_000,
    ),
    Entry("HDDM_A", loop, hddm(HDDMA, HDDMAConfig), "alpha_d", CONFIDENCES, streams=SHARE, events=20_000),
    Entry("HDDM_W", loop, hddm(HDDMW, HDDMWConfig), "alpha_d", CONFIDENCES, streams=SHARE, events=20_000),
    Entry(
        "PageHinkley",
        loop,
        lambda threshold=50.0: PageHinkley(PageHinkleyConfig(lambda_=threshold)),
        "lambda_",
        (10.0, 20.0, 50.0),
        streams=SHARE,
        events=20_000,
    ),
]

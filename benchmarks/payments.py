"""The demo's stream of card payments: how many alarms each detector raises, river's among them.

The truth is two changes that accuracy does not show: tpr falls from 0.75 to 0.25 and recovers. FourRates and LFR have
the default budget of `fourrates detect`; the others have none. river's detectors are given the errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drawn import keep
from river.drift import ADWIN, PageHinkley, binary

import fourrates as fr
from fourrates.baselines import DETECTORS
from fourrates.budget.words import default_budget, event_rate
from fourrates.streams import fraud

OWN = ("DDM", "DDMOCI", "EDDM", "NFR", "PerfSim", "ThreeMeasures")
RIVER = (ADWIN, PageHinkley, *(getattr(binary, name) for name in binary.__all__))


def alarms() -> Iterator[tuple[str, int]]:
    """Each detector by name, and its alarms."""
    stream = fraud(seed=5)
    budget, _ = default_budget(event_rate(stream.times))
    own = {"FourRates": fr.FourRates(arl=budget), f"LFR(arl={budget:.0f})": fr.LFR(arl=budget)}
    own |= {name: DETECTORS[name]() for name in OWN}
    for name, detector in own.items():
        yield name, len(detector.update_many(stream.y_true, stream.y_pred))
    errors = (stream.y_true != stream.y_pred).tolist()
    for kind in RIVER:
        detector = kind()
        yield f"river {kind.__name__.replace('_', '')}", sum(_alarmed(detector, error) for error in errors)


def _alarmed(detector: Any, error: bool) -> bool:
    detector.update(error)
    return bool(detector.drift_detected)


if __name__ == "__main__":
    counted = dict(alarms())
    for name, count in counted.items():
        print(f"{name:<20} {count:>6}")
    keep("payments", counted)

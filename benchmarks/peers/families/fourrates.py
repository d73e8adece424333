"""What is here: truth and prediction an event, or arrays of them."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from entry import Entry

import fourrates as fr

PACKAGE = "fourrates"


def one_at_a_time(detector: Any, events: Iterable[Any]) -> Iterator[int]:
    for at, (truth, pred) in enumerate(events):
        detector.update(truth, pred)
        if detector.drift_detected:
            yield at


def at_once(detector: Any, events: Any) -> Iterator[int]:
    for drift in detector.update_many(*events):
        yield drift.at


@cache
def budget(arl: float) -> fr.LFR:
    """Its levels take a while to find, once."""
    return fr.LFR(arl=arl)


def with_level(detect: float = 1e-5) -> fr.LFR:
    return fr.LFR(warn=max(0.01, 2 * detect), detect=detect)


def with_budget(arl: float = 37_000) -> fr.LFR:
    return budget(arl).clone()


LEVELS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7, 1e-8, 1e-9)
BUDGETS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 37_000, 100_000, 1_000_000)
ENTRIES = [
    Entry("LFR()", one_at_a_time, with_level, "detect", LEVELS, "pairs"),
    Entry("LFR(arl=37_000)", one_at_a_time, with_budget, "arl", BUDGETS, "pairs"),
    Entry("DDM()", one_at_a_time, fr.baselines.DDM, takes="pairs"),
    Entry("EDDM()", one_at_a_time, fr.baselines.EDDM, takes="pairs"),
    Entry("LFR() update_many", at_once, with_level, takes="arrays", streams=0),
    Entry("LFR(arl=37_000) update_many", at_once, with_budget, takes="arrays", streams=0),
    Entry("DDM() update_many", at_once, fr.baselines.DDM, takes="arrays", streams=0),
    Entry("EDDM() update_many", at_once, fr.baselines.EDDM, takes="arrays", streams=0),
]

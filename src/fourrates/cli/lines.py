"""The view of `watch` as JSON lines, the words of a finding, and the rates of a warning."""

from __future__ import annotations

import json as js
import sys
from typing import Any

from fourrates.cli import options as opt
from fourrates.detectors import Detector
from fourrates.escaping import shortened
from fourrates.findings import RateState
from fourrates.plain import finite

FRAME = 0.1  # seconds between pictures
SHIFTS = ("shift", "prediction_shift")


class Lines:
    """One JSON object per line, flushed at once; data problems go to people, as programs read the standard output."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def show(self, record: dict[str, Any]) -> None:
        sys.stdout.write(js.dumps(record) + "\n")
        sys.stdout.flush()

    remark = staticmethod(opt.say)

    def tick(self) -> None:
        """Nothing to draw."""


def in_a_line(record: dict[str, Any]) -> str:
    return shortened(". ".join(line.removesuffix(".") for line in record["text"].split("\n")), 300)


def warned_rates(detector: Detector) -> list[dict[str, Any]]:
    """The rates behind a warning, those outside their bounds, or with most of the evidence."""
    warned = []
    most = max((state.evidence or 0.0 for state in detector.rates.values()), default=0.0)
    for name, state in detector.rates.items():
        now, normal = now_and_normal(state)
        outside = [r.value for r in state.statistics if not r.warn.lower <= r.value <= r.warn.upper]
        if outside:
            warned.append({"rate": name, "statistic": finite(outside[0]), "expected": finite(normal)})
        elif detector.warning_detected and state.evidence is not None and state.evidence >= most / 2:
            about = {"rate": name, "statistic": finite(now), "expected": finite(normal)}
            warned.append({**about, "evidence": finite(state.evidence)})
    return warned


def now_and_normal(state: RateState) -> tuple[float | None, float | None]:
    """The current value of a rate and its normal, if known."""
    if state.statistics:
        return state.statistic, state.estimate
    now = state.estimate if state.now is None else state.now.value
    return now, None if state.normal is None else state.normal.value

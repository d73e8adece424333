"""The rates of a stream over time, few enough points for a picture and none of its excursions lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fourrates.detectors import LFR, Detector
from fourrates.findings import Drift, Finding
from fourrates.kernel.trace import Recorder
from fourrates.labels import rate_names

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.kernel.tables import Table
    from fourrates.kernel.trace import Kept

POINTS = 24_000  # kept in all, about; they make a page of less than 2 MB
CLOSE = 300  # points of each statistic kept on either side of a drift
DETAILED = 12  # drifts that are kept so
ENOUGH = 8  # curves at first, unless more crossed their bounds
MARKS = 1000  # events whose times are kept
DECAYS = (0.9, 0.98, 0.998)  # a rate is followed with each of them where there are no bounds, and drawn with one
DRAWN = 30  # times the memory of that one is about what was observed of the rate


@dataclass(frozen=True, slots=True)
class Curve:
    """A statistic over time."""

    rate: str
    decay: float  # the weight of the past in it
    events: npt.NDArray[np.int64]  # those its points belong to, rising
    value: npt.NDArray[np.float64]
    warn_low: npt.NDArray[np.float64]  # bounds are nan where there are none
    warn_high: npt.NDArray[np.float64]
    detect_low: npt.NDArray[np.float64]
    detect_high: npt.NDArray[np.float64]

    @property
    def kind(self) -> str:
        """What it is next to the other statistics of its rate, or how much of the past is in it."""
        if np.isnan(self.warn_low).all():
            return f"over about {1 / (1 - self.decay):.0f} observations"
        return f"decay {self.decay:g}"


def ordered(curves: Sequence[Curve], findings: Sequence[Finding]) -> tuple[list[Curve], int]:
    """Curves in the order a reader wants them, and how many are enough at first.

    Those that crossed their detection bounds come first, then the first of each rate, then the others. Where a detector
    reports the rate alone, all curves of the rate have crossed.
    """
    crossed = {(change.rate, change.decay) for finding in findings for change in finding.changes}
    first = {curve.rate: curve for curve in reversed(curves)}

    def rank(curve: Curve) -> int:
        if (curve.rate, curve.decay) in crossed or (curve.rate, None) in crossed:
            return 0
        return 1 if first[curve.rate] is curve else 2

    ranks = [*map(rank, curves)]
    return sorted(curves, key=rank), max(ranks.count(0), min(ENOUGH, len(curves) - ranks.count(2)))


class Trace:
    """Follows the rates of one stream next to its detector.

    LFR is followed within its bounds, and starts afresh after a drift as it does. For any other detector the rates are
    followed without bounds, from the first event to the last, each over about a thirtieth of what was observed of it: a
    few observations of a rare class, hundreds of a common one, so that the picture shows levels and not noise. It goes
    on where the detector is, and keeps about `points` points in all.
    """

    def __init__(self, detector: Detector, points: int = POINTS) -> None:
        names = rate_names(detector.labels.values)
        self._bounded = isinstance(detector, LFR)
        watched: list[list[tuple[float, Table | None, int, int]]] = [
            [(decay, None, 0, 0) for decay in DECAYS] for _ in names
        ]
        if isinstance(detector, LFR):
            watched = [[(table.decay, table, warn, detect) for table, warn, detect in own] for own in detector.tables]
        self._statistics = [(name, one[0]) for name, own in zip(names, watched, strict=True) for one in own]
        tests = len(self._statistics)
        # A bin keeps six points at most, most often four different ones.
        bins = max(32, points // (4 * tests))
        self._most = max(40, points // (2 * DETAILED * tests))  # kept close to a drift, on either side
        self._recorder = Recorder(watched, detector.events, bins, min(self._most, CLOSE))
        if isinstance(detector, LFR):
            self._go_on(detector)
        self._close: list[dict[int, Kept]] = [{} for _ in range(tests)]
        self._detailed = 0
        self._until: int | None = None
        self._times: list[tuple[int, int]] = []
        self.first = detector.events

    def _go_on(self, detector: LFR) -> None:
        """Begin where the detector is."""
        counts = np.array(detector.confusion, np.int64)
        right = np.diagonal(counts)
        values = [one.value for state in detector.rates.values() for one in state.statistics]
        n = np.concatenate([counts.sum(1), counts.sum(0)])
        self._recorder.resume(n, np.concatenate([right, right]), np.array(values, np.float64))

    @property
    def events(self) -> int:
        """Events of the stream so far."""
        return int(self._recorder.events)

    def take(self, truths: npt.NDArray[np.uint16], preds: npt.NDArray[np.uint16]) -> None:
        """Take coded events."""
        start = 0
        if self._until is not None:  # the last drift's other side
            start = min(truths.size, self._until - self.events)
            self._recorder.take(truths[:start], preds[:start])
            if self.events >= self._until:
                self._keep()
                self._until = None
        self._recorder.take(truths[start:], preds[start:])

    def drift(self, drift: Drift) -> None:
        """The event just taken was a drift: keep its surroundings."""
        if self._until is not None:
            self._keep()
        if self._detailed < DETAILED:
            self._detailed += 1
            self._keep()
            # As far on as the way to it was long, so that the picture is balanced around it.
            self._until = drift.at + 1 + max(2 * (drift.at - drift.window.start), 500)
        if self._bounded:
            self._recorder.restart()

    def _keep(self) -> None:
        for test, close in enumerate(self._close):
            close.update((point[0], point) for point in self._recorder.recently(test))

    def mark(self, times: npt.NDArray[np.datetime64]) -> None:
        """The times of the events to be taken next; some are remembered."""
        step = max(1, times.size // 64)
        places = [*range(0, times.size - 1, step), times.size - 1]
        for place in places:
            if not np.isnat(times[place]):
                self._times.append((self.events + place, int(times[place].astype("M8[us]").astype(np.int64))))
        if len(self._times) > 2 * MARKS:
            self._times = [*self._times[:-1:2], self._times[-1]]

    def clock(self) -> tuple[list[int], list[int]]:
        """Some events and their times in microseconds since 1970; between them time runs evenly."""
        return [event for event, _ in self._times], [time for _, time in self._times]

    def last(self, test: int) -> tuple[int, int, float]:
        """(n, ones, statistic) of a curve as they are now."""
        found: tuple[int, int, float] = self._recorder.last(test)
        return found

    def curves(self) -> list[Curve]:
        """The statistics over time, rate by rate."""
        if self._until is not None:
            self._keep()
        curves = []
        for test in range(len(self._statistics)) if self._bounded else self._legible():
            name, decay = self._statistics[test]
            points = {point[0]: point for point in self._recorder.points(test)} | self._close[test]
            rows = np.array([points[event] for event in sorted(points)], np.float64).reshape(-1, 6)
            curves.append(Curve(name, decay, rows[:, 0].astype(np.int64), *rows[:, 1:].T))
        return curves

    def _legible(self) -> list[int]:
        """Of each rate, the statistic whose memory suits the number of its observations."""
        chosen = []
        for first in range(0, len(self._statistics), len(DECAYS)):
            memory = max(self.last(first)[0] / DRAWN, 1.0)
            misfit = [abs(math.log(memory * (1 - decay))) for decay in DECAYS]
            chosen.append(first + misfit.index(min(misfit)))
        return chosen

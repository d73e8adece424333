"""The confusion counts of a stream over time, from which every picture is drawn."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fourrates.findings import Drift
from fourrates.labels import rate_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from fourrates.detectors import Detector
    from fourrates.findings import Finding, RateState

    Integers = npt.NDArray[np.int64]

BINS = 4096  # at most; at least half, once there are enough events
CELLS = 400_000  # of all bins together, so many classes mean fewer bins
UNKNOWN = np.iinfo(np.int64).min  # a time
POINTS = 100  # of a curve
FEWEST = 20  # least observations in a point of a curve


class Curve(NamedTuple):
    """A rate over time."""

    event: npt.NDArray[np.float64]  # the middle of each point, in events
    value: npt.NDArray[np.float64]  # the rate there
    n: int  # observations per point, about; the last point has the rest


class Trace:
    """Traces one stream by counts by true and predicted class, in bins of equally many events.

    If there are too many bins, neighbours are merged, so memory stays flat.

    Parameters
    ----------
    detector : Detector
        The stream's detector; if it has events already, the trace resumes from there.
    bins : int
        The most bins.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> from fourrates.watch.trace import Trace
    >>> y_true, y_pred = (side.astype("uint16") for side in SCENARIOS["Imbalance2"].stream(seed=1))
    >>> trace = Trace(fr.LFR())
    >>> trace.take(y_true, y_pred)
    >>> trace.between(0, 5_000).tolist()
    [[3268, 734], [249, 749]]
    >>> trace.curve("tpr", points=4).value.round(2).tolist()
    [0.74, 0.75, 0.25, 0.27]
    """

    def __init__(self, detector: Detector, bins: int = BINS) -> None:
        self.labels = detector.labels.values
        self.first = self.events = detector.events
        self.width = 1
        self._classes = len(self.labels)
        self._most = max(32, min(bins, CELLS // self._classes**2) & ~1)
        self._counts = np.zeros((32, self._classes**2), np.int64)
        self._times = np.full(32, UNKNOWN, np.int64)
        self._last_time = UNKNOWN

    def take(
        self,
        truths: npt.NDArray[np.uint16],
        preds: npt.NDArray[np.uint16],
        times: npt.NDArray[np.datetime64] | None = None,
        volumes: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Add coded events; an event drawn for labelling counts for all it represents."""
        if not truths.size:
            return
        start, cells = self.events - self.first, self._classes**2
        self.events += truths.size
        while (start + truths.size - 1) // self.width >= self._most:
            self._merge()
        bins = np.arange(start, start + truths.size) // self.width
        low, high = int(bins[0]), int(bins[-1]) + 1
        self._grow(high)
        codes = (bins - low) * cells + truths.astype(np.int64) * self._classes + preds
        counted = np.bincount(codes, volumes, minlength=(high - low) * cells).reshape(-1, cells)
        self._counts[low:high] += counted if volumes is None else np.rint(counted).astype(np.int64)
        if times is not None:
            stamps = times.astype("M8[us]").view(np.int64)
            begins = np.maximum(np.arange(low, high) * self.width - start, 0)
            known = self._times[low:high]
            self._times[low:high] = np.where(known == UNKNOWN, stamps[begins], known)
            self._last_time = max(self._last_time, int(stamps.max()))

    def _grow(self, bins: int) -> None:
        while len(self._counts) < bins:
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])[: self._most]
            self._times = np.concatenate([self._times, np.full_like(self._times, UNKNOWN)])[: self._most]

    def _merge(self) -> None:
        self._grow(self._most)
        half = self._most // 2
        self._counts[:half] = self._counts[::2] + self._counts[1::2]
        self._times[:half] = np.where(self._times[::2] == UNKNOWN, self._times[1::2], self._times[::2])
        self._counts[half:], self._times[half:] = 0, UNKNOWN
        self.width *= 2

    # Counts ---------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Integers:
        """By bin, true class and predicted class."""
        used = -(-(self.events - self.first) // self.width)
        return self._counts[:used].reshape(used, self._classes, self._classes)

    @property
    def edges(self) -> Integers:
        """The first event of each bin, and the end of the last."""
        return np.minimum(self.first + self.width * np.arange(len(self.counts) + 1), self.events)

    def between(self, start: int, end: int) -> Integers:
        """Counts by true and predicted class from one event to another, to the nearest bin."""
        low, high = (int((at - self.first + self.width // 2) // self.width) for at in (start, end))
        counts: Integers = self.counts[max(low, 0) : max(high, 0) if end < self.events else None].sum(0)
        return counts

    def clock(self) -> tuple[Integers, Integers]:
        """Events, and their times in microseconds since 1970, rising; empty unless two times are known."""
        times = np.append(self._times[: len(self.counts)], self._last_time)
        known = times != UNKNOWN
        events, times = self.edges[known], np.maximum.accumulate(times[known])
        return (events, times) if times.size > 1 and times[-1] > times[0] else (events[:0], times[:0])

    def observed(self, rate: str) -> tuple[Integers, Integers] | None:
        """By bin, how often a rate was observed and was right; None for other quantities."""
        return observations(self.counts, rate, self.labels)

    def curve(self, rate: str, points: int = POINTS) -> Curve:
        """A rate over time, in points of equally many observations and so of equal precision."""
        n, right = self.observed(rate) or (np.zeros(0, np.int64),) * 2
        ns, rights = (np.append(0, np.cumsum(counts)) for counts in (n, right))
        each = max(-(-int(ns[-1]) // points), FEWEST)
        # The bins that complete a point; the rest makes a point if it is half of one.
        cuts = np.unique([0, *np.searchsorted(ns, np.arange(each, ns[-1] + each / 2, each)).clip(0, len(n))])
        if cuts.size < 2:
            cuts = np.array([0, len(n)])
        seen = np.diff(ns[cuts])
        value = np.diff(rights[cuts]) / np.where(seen, seen, np.nan)
        middle = (self.edges[cuts[1:]] + self.edges[cuts[:-1]]) / 2
        return Curve(middle[seen > 0], value[seen > 0], min(each, int(ns[-1])))


def observations(counts: Integers, rate: str, labels: tuple[object, ...]) -> tuple[Integers, Integers] | None:
    """How often a rate was observed, and was right, from counts by true and predicted class (the last two axes)."""
    right, total = np.diagonal(counts, axis1=-2, axis2=-1), counts.sum((-2, -1))
    names = rate_names(labels)
    if rate in names:
        place = names.index(rate)
        of = place % len(labels)
        return counts.sum(-1 if place < len(labels) else -2)[..., of], right[..., of]
    if rate in ("accuracy", "error"):
        return total, right.sum(-1) if rate == "accuracy" else total - right.sum(-1)
    if rate in ("recall", "precision"):  # of the positive class
        return counts.sum(-1 if rate == "recall" else -2)[..., -1], right[..., -1]
    return None


def normal_levels(
    trace: Trace, rate: str, findings: Sequence[Finding], state: RateState | None
) -> list[tuple[int, float]]:
    """Normal levels of a rate, each with the event from which it held.

    A detector that holds its normal has one level until another is accepted. Others begin a new one with every drift.
    """
    starts, levels = [trace.first], [nan]
    held = state is not None and state.normal is not None
    for finding in findings:
        moved = [change for change in finding.changes if change.rate == rate and change.before and change.before.n]
        if held and finding.kind == "drift" and moved and isnan(levels[-1]):
            levels[-1] = moved[0].before.value  # type: ignore[union-attr]
        unknown = isinstance(finding, Drift) and not finding.normal_known
        if finding.kind == "acceptance" or unknown or (finding.kind == "drift" and not held):
            about = finding.drift or finding
            starts.append(about.window.start)
            levels.append(nan)
    if held and state is not None and state.normal is not None:
        levels[-1] = state.normal.value
    ends = [*starts[1:], trace.events]
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        seen = observations(trace.between(start, end), rate, trace.labels) if isnan(levels[place]) else None
        if seen is not None and seen[0]:
            levels[place] = float(seen[1] / seen[0])
    return [(start, level) for start, level in zip(starts, levels, strict=True) if not isnan(level)]

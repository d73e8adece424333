"""The history of a monitor's segments, as counts at moments that thin out with age.

One table for all segments at each moment, so that a thousand of them cost what their counts take and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.findings import Share
from fourrates.serve.series import SHOWN, rate_columns

if TYPE_CHECKING:
    import numpy.typing as npt

ROOM = 16 << 20  # bytes of all moments, at most
LEAST, MOST = 24, 240  # moments
POOLED = 60  # observations behind a rate that is drawn


class SegmentSeries:
    """For each segment, how often each class was true, and correct when it was.

    Attributes
    ----------
    counts : array of shape (segments, 2, classes)
        Up to now.
    moments : list
        Earlier ones, each a time and the counts of the segments of then.
    """

    def __init__(self, classes: int) -> None:
        self.classes = min(classes, SHOWN)
        self.counts = np.zeros((0, 2, self.classes), np.int64)
        self.moments: list[tuple[float, npt.NDArray[np.uint32]]] = []

    def count(self, segments: npt.NDArray[np.int64], truths: Any, preds: Any) -> None:
        if (more := int(segments.max(initial=-1)) + 1 - len(self.counts)) > 0:
            self.counts = np.concatenate([self.counts, np.zeros((more, 2, self.classes), np.int64)])
        shown = truths < self.classes
        correct = shown & (truths == preds)
        np.add.at(self.counts, (segments[shown], 0, truths[shown]), 1)
        np.add.at(self.counts, (segments[correct], 1, truths[correct]), 1)

    def note(self, time: float) -> None:
        """Keep a moment; when there are many, drop every second one of the older half."""
        self.moments.append((time, self.counts.astype(np.uint32)))
        if len(self.moments) > min(max(ROOM // max(self.counts.size * 4, 1), LEAST), MOST):
            half = len(self.moments) // 2
            self.moments = self.moments[:half:2] + self.moments[half:]

    def as_json(self, segment: int, names: tuple[str, ...], now: float) -> dict[str, Any]:
        """The recalls of a segment at each moment and now, each over its latest observations."""
        moments = [(time, counts[segment]) for time, counts in self.moments if segment < len(counts)]
        if segment < len(self.counts):
            moments.append((now, self.counts[segment]))
        table = np.array([counts for _, counts in moments], np.int64).reshape(-1, 2, self.classes)
        return {
            "time": [round(time, 3) for time, _ in moments],
            "rates": {names[code]: _rate(table[:, 0, code], table[:, 1, code]) for code in range(self.classes)},
        }

    def to_state(self) -> tuple[list[Any], bytes]:
        about = [[time, len(counts)] for time, counts in self.moments]
        data = b"".join(counts.astype("<u4").tobytes() for _, counts in self.moments)
        return [about, len(self.counts)], data + self.counts.astype("<i8").tobytes()

    def restore(self, about: list[Any], data: bytes) -> None:
        place, width = 0, 2 * self.classes
        for time, size in about[0]:
            table = np.frombuffer(data, "<u4", size * width, place).astype(np.uint32)
            self.moments.append((float(time), table.reshape(size, 2, self.classes)))
            place += 4 * size * width
        self.counts = np.frombuffer(data, "<i8", -1, place).astype(np.int64).reshape(about[1], 2, self.classes)


def _rate(counts: npt.NDArray[np.int64], correct: npt.NDArray[np.int64]) -> dict[str, list[float | None]]:
    before = np.minimum(np.searchsorted(counts, counts - POOLED, side="right") - 1, np.arange(counts.size) - 1)
    n, ones = (column - np.concatenate([column, [0]])[before] for column in (counts, correct))
    return rate_columns([Share.of(k, size) for k, size in zip(ones.tolist(), n.tolist(), strict=True)])

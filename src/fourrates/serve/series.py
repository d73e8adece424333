"""The history of a monitor and of its segments, as points over its whole life, the closer the later.

One table holds all segments at a moment, so that a thousand of them cost no more than their counts.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.findings import Share
from fourrates.plain import finite

if TYPE_CHECKING:
    import numpy.typing as npt

    Point = npt.NDArray[np.float64]
    Counts = npt.NDArray[Any]

MOST = 1_600  # points
APART = 1.0  # most seconds between two points while events arrive
SOON = 0.05  # seconds between two points, at least
POOLED = 100  # fewest observations behind a drawn rate; a point alone may have few
LEAST = 25  # observations behind it at the beginning
SPARK = 48  # points of a line in a table
HEAD = 4  # numbers of a point before those of the classes
SHOWN = 8  # classes in the series of a monitor that has more
ROOM = 16 << 20  # bytes of all moments of segments, at most
MOMENTS = 24, 240  # at least and at most
POOLED_OF_SEGMENT = 60  # observations behind a drawn rate of a segment


class Series:
    """Counts at moments of a stream.

    A point has events, time, evidence, the delay of labels, a baseline for each class, and how often each class was
    true, predicted, and both.
    """

    def __init__(self, classes: int) -> None:
        self.classes = min(classes, SHOWN)
        self.width = HEAD + 4 * self.classes
        self.kept: list[Point] = []

    def wants(self, time: float) -> bool:
        """Whether a point is due, some time after the last or a fraction of a short life after it."""
        if not self.kept:
            return True
        since = time - self.kept[-1][1]
        return bool(not 0 <= since < APART or (since >= SOON and since > (time - self.kept[0][1]) / 256))

    def point(
        self,
        events: int,
        time: float,
        evidence: float,
        delay: float | None,
        baselines: list[float],
        confusion: npt.NDArray[np.int64],
    ) -> Point:
        head = np.array([events, time, evidence, math.nan if delay is None else delay])
        counts = (confusion.sum(1), confusion.sum(0), np.diagonal(confusion))
        return np.concatenate([head, *(column[: self.classes] for column in (baselines, *counts))])

    def add(self, point: Point) -> None:
        if self.kept and point[0] == self.kept[-1][0]:  # predictions alone, which would move the last one in time
            return
        self.kept.append(point)
        if len(self.kept) > MOST:
            del self.kept[most_crowded([float(kept[1]) for kept in self.kept])]

    def points(self, present: Sequence[Point] = ()) -> npt.NDArray[np.float64]:
        """All points in order, up to now."""
        return self._rows([*self.kept, *present])

    def _rows(self, points: list[Point]) -> npt.NDArray[np.float64]:
        joined = {int(point[0]): point for point in reversed(points)}  # the present may have no events of its own
        return np.stack([*joined.values()][::-1]) if joined else np.empty((0, self.width))

    def to_state(self) -> bytes:
        return b"".join(point.astype("<f8").tobytes() for point in self.kept)

    def restore(self, saved: bytes) -> None:
        self.kept = [*np.frombuffer(saved, "<f8").reshape(-1, self.width).astype(np.float64)]

    def as_json(
        self, names: tuple[str, ...], most: int, share_of: int, present: Sequence[Point], start: float = -math.inf
    ) -> dict[str, Any]:
        """The series as the page draws it; each rate over its latest observations, `POOLED` of them or more.

        `names` are those of the recalls, then of the precisions; `share_of` is the class whose share is the mix. The
        series begins at the time `start` and ends with the `present` point, as the last events may have none of their
        own yet.
        """
        rows = self.points(present)
        first = int((rows[:, 1] < start).sum())  # the first points shown pool observations of these
        rows = np.concatenate([rows[:first], rows[first:][_spread(len(rows) - first, most)]])
        k, classes = self.classes, len(names) // 2
        rates = {}
        for code, name in enumerate(names):
            kind, c = divmod(code, classes)
            if c < k:
                shares = _shares(rows[:, HEAD + (kind + 1) * k + c], rows[:, HEAD + 3 * k + c], POOLED, first)
                baselines = rows[first:, HEAD + c].tolist() if kind == 0 else [math.nan] * len(shares)
                rates[name] = {**rate_columns(shares), "baseline": [finite(value) for value in baselines]}
        since = _since(rows[:, 0], POOLED, first)
        mix = np.full(len(since), math.nan)
        if share_of < k:
            mix = _gained(rows[:, HEAD + k + share_of], since) / np.maximum(_gained(rows[:, 0], since), 1)
        return {
            "time": _rising(rows[first:, 1]),
            "event": rows[first:, 0].astype(np.int64).tolist(),
            "rates": rates,
            "evidence": [finite(value) for value in rows[first:, 2].tolist()],
            "label_delay": [finite(value) for value in rows[first:, 3].round(3).tolist()],
            "mix": [finite(value) for value in mix.tolist()],
        }

    def spark(self, code: int, start: float, present: Sequence[Point]) -> dict[str, list[Any]] | None:
        """A recall in a few points from a time on; None for a class that is not in the series."""
        if code >= self.classes:
            return None
        rows = self._rows([*self.kept[:: 1 + len(self.kept) // 200], *present])
        counts, right = rows[:, HEAD + self.classes + code], rows[:, HEAD + 3 * self.classes + code]
        since = _since(counts, POOLED)
        n = _gained(counts, since)
        shown = np.flatnonzero((rows[:, 1] >= start) & (n >= LEAST))
        shown = shown[_spread(shown.size, SPARK)]
        values = (_gained(right, since)[shown] / n[shown]).round(4)
        return {"time": rows[shown, 1].round(3).tolist(), "value": values.tolist()}

    def events_before(self, time: float) -> int:
        """The number of events before a time, as far as the points show."""
        place = bisect_right(self.kept, time, key=lambda point: float(point[1]))
        return int(self.kept[place - 1][0]) if place else 0


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

    def count(self, segments: npt.NDArray[np.int64], truths: Any, preds: Any, volumes: Any = None) -> None:
        """Add events; one drawn for labelling counts for all it represents."""
        weights = np.ones(truths.size, np.int64) if volumes is None else np.rint(volumes).astype(np.int64)
        if (more := int(segments.max(initial=-1)) + 1 - len(self.counts)) > 0:
            self.counts = np.concatenate([self.counts, np.zeros((more, 2, self.classes), np.int64)])
        shown = truths < self.classes
        correct = shown & (truths == preds)
        np.add.at(self.counts, (segments[shown], 0, truths[shown]), weights[shown])
        np.add.at(self.counts, (segments[correct], 1, truths[correct]), weights[correct])

    def note(self, time: float) -> None:
        """Keep a moment; when there are many, drop another."""
        self.moments.append((time, self.counts.astype(np.uint32)))
        if len(self.moments) > min(max(ROOM // max(self.counts.size * 4, 1), MOMENTS[0]), MOMENTS[1]):
            del self.moments[most_crowded([moment for moment, _ in self.moments])]

    def as_json(self, segment: int, names: tuple[str, ...], now: float) -> dict[str, Any]:
        """The recalls of a segment at each moment and now, each over its latest observations."""
        moments = [(time, counts[segment]) for time, counts in self.moments if segment < len(counts)]
        if segment < len(self.counts):
            moments.append((now, self.counts[segment]))
        table = np.array([counts for _, counts in moments], np.int64).reshape(-1, 2, self.classes)
        shares = [_shares(table[:, 0, code], table[:, 1, code], POOLED_OF_SEGMENT) for code in range(self.classes)]
        return {
            "time": _rising([time for time, _ in moments]),
            "rates": {name: rate_columns(own) for name, own in zip(names, shares, strict=False)},
        }

    def to_state(self) -> bytes:
        moments = [(time, counts.astype("<u4").tobytes()) for time, counts in self.moments]
        return msgspec.msgpack.encode((moments, self.counts.astype("<i8").tobytes()))

    def restore(self, saved: bytes) -> None:
        moments, counts = msgspec.msgpack.decode(saved, type=tuple[list[tuple[float, bytes]], bytes])
        shape = -1, 2, self.classes
        self.moments = [(time, np.frombuffer(own, "<u4").astype(np.uint32).reshape(shape)) for time, own in moments]
        self.counts = np.frombuffer(counts, "<i8").astype(np.int64).reshape(shape)


def most_crowded(times: list[float]) -> int:
    """The point to drop. Gaps grow with the root of their age, so there are many recent points and enough old ones."""
    moments = np.array(times)
    ages = np.maximum(moments[-1] - moments[1:-1], 1.0)
    return 1 + int(((moments[2:] - moments[:-2]) / np.sqrt(ages)).argmin())


def _rising(times: npt.ArrayLike) -> list[float]:
    """Times for an axis; a clock may have been set back."""
    rising: list[float] = np.maximum.accumulate(np.asarray(times, float)).round(3).tolist()
    return rising


def _spread(size: int, most: int) -> npt.NDArray[np.int64]:
    """At most this many places among so many, evenly, with both ends."""
    return np.unique(np.linspace(0, size - 1, min(most, size)).round().astype(np.int64))


def rate_columns(shares: list[Share]) -> dict[str, list[float | None]]:
    """A rate with its interval, column by column; the first few observations would only draw a spike."""
    return {
        name: [finite(getattr(share, name)) if share.n >= LEAST else None for share in shares]
        for name in ("value", "lower", "upper")
    }


def _shares(counts: Counts, right: Counts, pooled: int, first: int = 0) -> list[Share]:
    """At each point from `first` on, the rate over the latest `pooled` observations or more."""
    since = _since(counts, pooled, first)
    n, ones = (_gained(column, since).tolist() for column in (counts, right))
    return [Share.of(k, size) for k, size in zip(ones, n, strict=True)]


def _since(counts: Counts, pooled: int, first: int = 0) -> npt.NDArray[np.int64]:
    """For each point from `first` on, the latest one that has `pooled` observations less; -1 is the beginning."""
    enough = np.searchsorted(counts, counts[first:] - pooled, side="right") - 1
    return np.minimum(enough, np.arange(first, counts.size) - 1)


def _gained(counts: Counts, since: npt.NDArray[np.int64]) -> Counts:
    before = np.concatenate([counts, [0]])[since]
    return np.asarray(counts[counts.size - since.size :] - before)

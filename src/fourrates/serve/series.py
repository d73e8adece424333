"""The history of a monitor, as points over its whole life, thinned as they grow in number, and closer recent ones."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.checks import check_whole
from fourrates.findings import Share
from fourrates.plain import finite

if TYPE_CHECKING:
    import numpy.typing as npt

    Point = npt.NDArray[np.float64]

LONG, RECENT = 1_024, 600  # points of the whole life, and of late
APART = 1.0  # most seconds between two points while events arrive
SOON = 0.05  # seconds between two points, at least
POOLED = 100  # fewest observations behind a drawn rate; a point may have few of its own
LEAST = 25  # observations behind it at the beginning
SPARK = 48  # points of a line in a table
HEAD = 4  # numbers of a point before those of the classes
SHOWN = 8  # classes in the series of a monitor that has more


class Series:
    """Counts at moments of a stream.

    A point has events, time, evidence, the delay of labels, a baseline for each class, and how often each class was
    true, predicted, and both.
    """

    def __init__(self, classes: int) -> None:
        self.classes = min(classes, SHOWN)
        self.width = HEAD + 4 * self.classes
        self.stride = 1
        self.last = 0.0  # when the last point was taken
        self.long: list[Point] = []
        self.recent: list[Point] = []

    def wants(self, time: float) -> bool:
        """Whether a point is due, some time after the last or a fraction of a short life after it."""
        if not self.long:
            return True
        since = time - self.last
        return not 0 <= since < APART or (since >= SOON and since > (time - self.long[0][1]) / 256)

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
        events, self.last = point[0], float(point[1])
        if self.recent and events == self.recent[-1][0]:  # predictions alone, which would move the last one in time
            return
        if not self.long or events - self.long[-1][0] >= self.stride:
            self.long.append(point)
            if len(self.long) > LONG:
                self.long = self.long[::2]
                self.stride *= 2
        self.recent.append(point)
        if len(self.recent) > RECENT:
            del self.recent[: len(self.recent) - RECENT]

    def points(self, present: Sequence[Point] = ()) -> npt.NDArray[np.float64]:
        """All points in order, from the whole life, the recent past and now."""
        joined = {int(point[0]): point for point in (*present, *self.long, *self.recent)}
        return np.stack([joined[events] for events in sorted(joined)]) if joined else np.empty((0, self.width))

    def to_state(self) -> tuple[int, bytes, bytes]:
        long, recent = (b"".join(point.astype("<f8").tobytes() for point in part) for part in (self.long, self.recent))
        return self.stride, long, recent

    def restore(self, stride: int, long: bytes, recent: bytes) -> None:
        self.stride = check_whole(stride, "stride")
        for part, saved in ((self.long, long), (self.recent, recent)):
            part[:] = [row.copy() for row in np.frombuffer(saved, "<f8").reshape(-1, self.width).astype(np.float64)]
        self.last = float(self.recent[-1][1]) if self.recent else 0.0

    def last_point(self, names: tuple[str, ...], share_of: int, present: Sequence[Point]) -> dict[str, Any]:
        """The state now, with the same names as the whole series."""
        recent = [*self.recent, *present]
        if present and self.recent and self.recent[-1][0] == present[0][0]:  # no events since the last point
            recent.pop()
        rows = np.stack(recent) if recent else np.empty((0, self.width))
        columns = self._shown(rows, names, share_of, first=max(len(rows) - 1, 0))
        rates = {
            rate: {name: _last(column) for name, column in parts.items()}
            for rate, parts in columns.pop("rates").items()
        }
        return {**{name: _last(column) for name, column in columns.items()}, "rates": rates}

    def as_json(
        self, names: tuple[str, ...], most: int, share_of: int, present: Sequence[Point], start: float = -math.inf
    ) -> dict[str, Any]:
        """The series as the page draws it; each rate over its latest observations, `POOLED` of them or more.

        `names` are those of the recalls, then of the precisions; `share_of` is the class whose share is the mix. The
        series begins at the time `start` and ends with the `present` point, as the last events may have none of their
        own yet.
        """
        rows = self.points(present)
        earlier = int((rows[:, 1] < start).sum())  # the first points shown pool observations of these
        kept = np.unique(np.linspace(earlier, max(len(rows) - 1, earlier), most).round().astype(np.int64))
        shown = np.concatenate([rows[:earlier], rows[kept[kept < len(rows)]]])
        return self._shown(shown, names, share_of, first=earlier)

    def spark(self, code: int, start: float, present: Sequence[Point]) -> dict[str, list[Any]] | None:
        """A recall in a few points from a time on; None for a class that is not in the series."""
        if code >= self.classes:
            return None
        joined = {int(point[0]): point for point in (*self.long[:: LONG // 128], *self.recent[::12], *present)}
        rows = np.stack([point for _, point in sorted(joined.items())]) if joined else np.empty((0, self.width))
        counts, right = rows[:, HEAD + self.classes + code], rows[:, HEAD + 3 * self.classes + code]
        since = _since(counts, 0)
        n = _gained(counts, since)
        shown = np.flatnonzero((rows[:, 1] >= start) & (n >= LEAST))
        shown = (
            shown[np.unique(np.linspace(0, max(shown.size - 1, 0), SPARK).round().astype(np.int64))]
            if shown.size
            else shown
        )
        values = (_gained(right, since)[shown] / n[shown]).round(4)
        return {"time": rows[shown, 1].round(3).tolist(), "value": values.tolist()}

    def events_before(self, time: float) -> int:
        """The number of events before a time, as far as the points show."""
        points = self.recent if self.recent and self.recent[0][1] <= time else self.long
        place = bisect_right(points, time, key=lambda point: float(point[1]))
        return int(points[place - 1][0]) if place else 0

    def _shown(
        self, rows: npt.NDArray[np.float64], names: tuple[str, ...], share_of: int, first: int = 0
    ) -> dict[str, Any]:
        k = self.classes
        classes = len(names) // 2
        rates = {}
        for kind in (0, 1):
            for c in range(k):
                counts, right = rows[:, HEAD + (kind + 1) * k + c], rows[:, HEAD + 3 * k + c]
                since = _since(counts, first)
                shares = [
                    Share.of(ones, n)
                    for ones, n in zip(_gained(right, since).tolist(), _gained(counts, since).tolist(), strict=True)
                ]
                baselines = rows[first:, HEAD + c].tolist() if kind == 0 else [math.nan] * len(shares)
                baseline = [finite(value) for value in baselines]
                rates[names[kind * classes + c]] = {**rate_columns(shares), "baseline": baseline}
        since = _since(rows[:, 0], first)
        events = np.maximum(_gained(rows[:, 0], since), 1)
        share = (
            _gained(rows[:, HEAD + k + share_of], since) / events if share_of < k else np.full(len(events), math.nan)
        )
        return {
            "time": rows[first:, 1].round(3).tolist(),
            "event": rows[first:, 0].astype(np.int64).tolist(),
            "rates": rates,
            "evidence": [finite(value) for value in rows[first:, 2].tolist()],
            "label_delay": [finite(value) for value in rows[first:, 3].round(3).tolist()],
            "mix": [finite(value) for value in share.tolist()],
        }


def rate_columns(shares: list[Share]) -> dict[str, list[float | None]]:
    """A rate with its interval, column by column; the first few observations would only draw a spike."""
    return {
        name: [finite(getattr(share, name)) if share.n >= LEAST else None for share in shares]
        for name in ("value", "lower", "upper")
    }


def _since(counts: npt.NDArray[np.float64], first: int) -> npt.NDArray[np.int64]:
    """For each point from `first` on, the latest one that has `POOLED` observations less; -1 is the beginning."""
    enough = np.searchsorted(counts, counts[first:] - POOLED, side="right") - 1
    return np.minimum(enough, np.arange(first, counts.size) - 1)


def _gained(counts: npt.NDArray[np.float64], since: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    before: npt.NDArray[np.float64] = np.concatenate([counts, [0.0]])[since]
    return counts[counts.size - since.size :] - before


def _last(column: list[Any]) -> Any:
    return column[-1] if column else None

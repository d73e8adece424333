"""Times and rows of a stream's events, remembered more coarsely the older they are.

A drift is found some time after it started, perhaps in an earlier batch, file or night. Marks answer "when was event
27,975?" wherever the input was cut. They lie at fixed event numbers, so the answer never depends on the cuts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

FINEST = 3  # the marks of the finest level are 2^3 events apart
KEPT = 16  # marks of each level, so an event's place is known to within a sixteenth to an eighth of its age
MARKED = 5_000  # segments that have marks; each takes up to 5 kB
UNKNOWN = np.iinfo(np.int64).min  # NaT among times


class Marks:
    """Times and rows of some past events of each stream.

    Level l has the last `KEPT` events whose number is a multiple of 2^(FINEST + l).
    """

    def __init__(self) -> None:
        self._kept = np.full((2, 0, 1, KEPT), UNKNOWN, np.int64)  # times and rows; stream, level, place

    def note(
        self, streams: Integers, events: Integers, times: npt.NDArray[np.datetime64] | None, rows: Integers
    ) -> None:
        """Store events that :func:`is_marked`, by their streams, their numbers there, times if known, and rows."""
        if not streams.size:
            return
        values = np.stack([np.full(streams.size, UNKNOWN) if times is None else _whole(times), rows])
        numbers = events >> FINEST
        self._grow(int(streams.max()) + 1, int(numbers.max()).bit_length())
        level = 0
        while True:
            self._kept[:, streams, level, numbers % KEPT] = values  # if several share a place, the last one
            even = (numbers & 1) == 0
            level += 1
            if level == self._kept.shape[2] or not even.any():
                return
            streams, numbers, values = streams[even], numbers[even] >> 1, values[:, even]

    def _grow(self, streams: int, levels: int) -> None:
        _, known, deep, _ = self._kept.shape
        if streams <= known and levels <= deep:
            return
        room = known if streams <= known else max(streams, min(2 * known, MARKED))
        grown = np.full((2, room, max(levels, deep), KEPT), UNKNOWN, np.int64)
        grown[:, :known, :deep] = self._kept
        grown[:, :known, deep:, 0] = self._kept[:, :, deep - 1, :1]  # the first event is a mark of every level
        self._kept = grown

    def forget_rows(self) -> None:
        """Drop the rows when another file begins, since they belong to the earlier one."""
        self._kept[1] = UNKNOWN

    def time(self, stream: int, event: int | None, end: int) -> np.datetime64 | None:
        """When an event was, if known; all events of the stream before `end` have been noted."""
        if (found := self._mark(stream, event, end)) is None or found[0] == UNKNOWN:
            return None
        before, _, after, beyond, span = found
        since = 0 if after == UNKNOWN else (after - before) * beyond // span
        return np.datetime64(before + since, "us")

    def row(self, stream: int, event: int | None, end: int) -> int | None:
        """The row of an event; a little earlier if rows in between were no events of this stream."""
        if (found := self._mark(stream, event, end)) is None or found[1] == UNKNOWN:
            return None
        return found[1] + found[3]

    def _mark(self, stream: int, event: int | None, end: int) -> tuple[int, int, int, int, int] | None:
        """The last mark before an event, its time and row, the time of the next, events since it and between them."""
        if event is None or stream >= self._kept.shape[1]:
            return None
        for level in range(self._kept.shape[2]):
            at, last = event >> (FINEST + level), (end - 1) >> (FINEST + level)
            if last - KEPT < at <= last:  # earlier ones are overwritten; use a coarser level
                times, rows = self._kept[:, stream, level]
                following = int(times[(at + 1) % KEPT]) if at < last else UNKNOWN
                span = 1 << (FINEST + level)
                return int(times[at % KEPT]), int(rows[at % KEPT]), following, event % span, span
        return None

    # State ----------------------------------------------------------------------------------------------------

    def to_state(self, streams: int) -> tuple[list[int], bytes]:
        kept = self._kept[:, : min(streams, MARKED)]
        return list(kept.shape[1:3]), np.ascontiguousarray(kept, "<i8").tobytes()

    @classmethod
    def from_state(cls, shape: Any, saved: memoryview | bytes, streams: int) -> Marks:
        known, levels = shape
        sound = type(known) is int and type(levels) is int and 0 <= known <= min(streams, MARKED) and 1 <= levels <= 64
        if not sound or len(saved) != 16 * known * levels * KEPT:
            raise ValueError(f"marks of {shape} in {len(saved)} bytes for {streams} streams")
        marks = cls()
        marks._kept = np.frombuffer(saved, "<i8").astype(np.int64).reshape(2, known, levels, KEPT)
        return marks


def is_marked(streams: Any, events: Any) -> Any:
    """Which events are remembered, every eighth of the first streams."""
    return (events & ((1 << FINEST) - 1) == 0) & (streams < MARKED)


def _whole(times: npt.NDArray[np.datetime64]) -> Integers:
    return times.astype("M8[us]", copy=False).view(np.int64)

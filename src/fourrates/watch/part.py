"""The events of one segment in a batch: the place of each, and counts since a warning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.findings import Drift
from fourrates.io import Batch

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.findings import Matrix

    Codes = npt.NDArray[np.uint16]
    Counts = npt.NDArray[np.int64]
    Positions = npt.NDArray[np.int64]


@dataclass(slots=True)
class OpenWarning:
    """A warning that was open when a batch ended: the event that opened it, and the counts since."""

    since: int
    counts: Counts


@dataclass(slots=True)
class Part:
    """The events of one segment in a batch."""

    batch: Batch
    positions: Positions | None  # of these events in the batch; None if all
    first: int  # the number of the first of them in its segment
    classes: int
    warning: OpenWarning | None  # open before the first of them

    def codes(self) -> tuple[Codes, Codes]:
        return self._pick(self.batch.truths), self._pick(self.batch.preds)

    def strata(self) -> Codes | None:
        return None if self.batch.strata is None else self._pick(self.batch.strata)

    def volumes(self) -> npt.NDArray[np.float64] | None:
        """How many events each represents, if they were drawn for labelling."""
        return None if self.batch.volumes is None else self._pick(self.batch.volumes)

    def times(self) -> npt.NDArray[np.datetime64] | None:
        return None if self.batch.times is None else self._pick(self.batch.times)

    def rows(self) -> npt.NDArray[np.int64]:
        rows: npt.NDArray[np.int64] = self._pick(self.batch.rows)
        return rows

    def _pick(self, column: Any) -> Any:
        return column if self.positions is None else column[self.positions]

    def position(self, event: int) -> int:
        return event - self.first if self.positions is None else int(self.positions[event - self.first])

    def time(self, event: int) -> np.datetime64 | None:
        if self.batch.times is None or np.isnat(time := self.batch.times[self.position(event)]):
            return None
        return time  # type: ignore[no-any-return]

    def warning_from(self, since: int, end: int) -> OpenWarning:
        """The warning that opened at event `since`, with the counts up to event `end`, exclusive."""
        known = self.warning
        if since < self.first and known is not None and known.since == since:
            return OpenWarning(since, known.counts + self._count(self.first, end))
        return OpenWarning(since, self._count(max(since, self.first), end))

    def counts_since_warning(self, drift: Drift) -> Matrix:
        """Counts from a drift's warning up to the drift, which ends the warning."""
        counts = self.warning_from(drift.since, drift.at + 1).counts
        self.warning = None
        return tuple(tuple(int(count) for count in row) for row in counts)

    def _count(self, start: int, end: int) -> Counts:
        part: Any = slice(start - self.first, end - self.first)
        if self.positions is not None:
            part = self.positions[part]
        cells = self.batch.truths[part].astype(np.int64) * self.classes + self.batch.preds[part]
        return np.bincount(cells, minlength=self.classes**2).reshape(self.classes, self.classes)

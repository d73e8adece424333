"""The events of one stream in a batch: where each stands, and what to tell of a drift among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.findings import Drift, Finding
from fourrates.io import Batch
from fourrates.run.found import Found, Matrix, Place

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint16]
    Counts = npt.NDArray[np.int64]
    Positions = npt.NDArray[np.int64]

NAT = np.datetime64("NaT", "us")


@dataclass(slots=True)
class OpenWarning:
    """A warning that was open when a batch ended, and the counts since it opened."""

    since: Place
    counts: Counts


@dataclass(slots=True)
class Part:
    """The events of one stream in a batch.

    Attributes
    ----------
    batch : Batch
        The whole batch.
    positions : array of int, optional
        Where in the batch the events stand; None if the batch is theirs alone.
    first : int
        The number of the first of them in the stream.
    classes : int
        Number of classes.
    warning : OpenWarning, optional
        The one that was open before the first of them.
    """

    batch: Batch
    positions: Positions | None
    first: int
    classes: int
    warning: OpenWarning | None

    def codes(self) -> tuple[Codes, Codes]:
        """True and predicted classes."""
        if self.positions is None:
            return self.batch.truths, self.batch.guesses
        return self.batch.truths[self.positions], self.batch.guesses[self.positions]

    def times(self) -> npt.NDArray[np.datetime64] | None:
        """When they happened, if that is known."""
        times = self.batch.times
        return times if times is None or self.positions is None else times[self.positions]

    def place(self, event: int) -> Place:
        """Where the event of this number stands."""
        at = event - self.first if self.positions is None else int(self.positions[event - self.first])
        time = NAT if self.batch.times is None else self.batch.times[at]
        return Place(event, self.batch.source, int(self.batch.rows[at]), None if np.isnat(time) else time)

    def warning_from(self, since: int, end: int) -> OpenWarning:
        """The warning that opened at event `since`, with the counts up to event `end`, which is not in them."""
        known = self.warning
        if since < self.first and known is not None and known.since.event == since:
            return OpenWarning(known.since, known.counts + self._count(self.first, end))
        start = max(since, self.first)
        return OpenWarning(self.place(start), self._count(start, end))

    def found(self, name: str | None, finding: Finding) -> Found:
        """What was found; the warning that led to a drift is over."""
        started = None if finding.started is None or finding.started < self.first else self.place(finding.started)
        at = self.place(finding.at)
        if not isinstance(finding, Drift):
            return Found(name, finding, at, at, (), (), started)
        warning = self.warning_from(finding.since, finding.at + 1)
        before = np.maximum(np.array(finding.confusion) - warning.counts, 0)
        self.warning = None
        return Found(name, finding, at, warning.since, _matrix(before), _matrix(warning.counts), started)

    def _count(self, start: int, end: int) -> Counts:
        part: Any = slice(start - self.first, end - self.first)
        if self.positions is not None:
            part = self.positions[part]
        cells = self.batch.truths[part].astype(np.int64) * self.classes + self.batch.guesses[part]
        return np.bincount(cells, minlength=self.classes**2).reshape(self.classes, self.classes)


def _matrix(counts: Counts) -> Matrix:
    return tuple(tuple(int(count) for count in row) for row in counts)

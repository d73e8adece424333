"""What was found in a stream, and where it stands in the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fourrates.findings import Finding, Shift

Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands: its number in its stream, its file and row, and its time if that is known."""

    event: int
    source: str
    row: int
    time: np.datetime64 | None


@dataclass(frozen=True, slots=True)
class Found:
    """A drift, or what became of one, and where it was found.

    Attributes
    ----------
    stream : str, optional
        Which stream, where there are many.
    finding : Finding
        What the detector reported.
    at, since : Place
        The event that showed it and, for a drift, the first one of the warning that led to it.
    before, after : tuples of tuples
        For a drift, counts by true and predicted class: from the last alarm up to the warning, and from the warning to
        the alarm.
    started : Place or None
        The likeliest first event of the new concept, where the detector knows it and it came in the same batch as the
        alarm; not part of what makes two of them equal.
    """

    stream: str | None
    finding: Finding
    at: Place
    since: Place
    before: Matrix
    after: Matrix
    started: Place | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """That of the finding."""
        return self.finding.kind

    @property
    def is_drift(self) -> bool:
        """Whether it is a drift, not what became of one."""
        return self.finding.kind == "drift"


@dataclass(frozen=True, slots=True)
class FoundShift:
    """A shift of the true classes, and where it was found: in which stream, and at which event."""

    stream: str | None
    shift: Shift
    at: Place

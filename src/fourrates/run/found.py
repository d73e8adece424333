"""What was found in a stream, and where it stands in the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fourrates.drift import Drift, Recovery, Shift

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
    """A drift, or a recovery from one, and where it was found.

    Attributes
    ----------
    stream : str, optional
        Which stream, where there are many.
    drift : Drift
        What the detector reported; a :class:`~fourrates.Recovery` where a drift led back to where the stream was.
    at, since : Place
        The event that gave the alarm, and the first one of the warning that led to it.
    before, after : tuples of tuples
        Counts by true and predicted class: from the last reset up to the warning, and from the warning to the alarm.
    started : Place or None
        The likeliest first event of the new concept, where the detector knows it and it came in the same batch as the
        alarm; not part of what makes two of them equal.
    """

    stream: str | None
    drift: Drift
    at: Place
    since: Place
    before: Matrix
    after: Matrix
    started: Place | None = field(default=None, compare=False)

    @property
    def is_recovery(self) -> bool:
        """Whether it is the end of a drift instead of one."""
        return isinstance(self.drift, Recovery)


@dataclass(frozen=True, slots=True)
class FoundShift:
    """A shift of the true classes, and where it was found: in which stream, and at which event."""

    stream: str | None
    shift: Shift
    at: Place

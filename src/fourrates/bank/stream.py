"""One of many streams, seen as a detector."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates
from fourrates.findings import Drift, RateState, Status
from fourrates.record import head_of


class Position(NamedTuple):
    """Where a stream of a bank stands: the name of its group, a detector with its settings, and its record."""

    group: str | None
    settings: RecordDetector
    record: bytes


class Stream:
    """One stream of a bank, seen as a detector: always as it is now.

    Attributes
    ----------
    key : hashable
        Its key.
    """

    __slots__ = ("_find", "key")

    def __init__(self, key: Hashable, find: Callable[[Hashable], Position]) -> None:
        self.key, self._find = key, find

    @property
    def group(self) -> str | None:
        """The name of its group."""
        return self._find(self.key).group

    @property
    def events(self) -> int:
        """Events of this stream."""
        return head_of(self._find(self.key).record).events

    @property
    def drift_detected(self) -> bool:
        """Whether its last event was a drift."""
        return self.detector().drift_detected

    @property
    def warning_detected(self) -> bool:
        """Whether its last event left it in the warning zone, without a drift."""
        return self.detector().warning_detected

    @property
    def status(self) -> Status:
        """How things are after its last event."""
        return self.detector().status

    @property
    def open(self) -> Drift | None:
        """The drift that is open in it."""
        detector = self.detector()
        return detector.open if isinstance(detector, FourRates) else None

    @property
    def rates(self) -> Mapping[str, RateState]:
        """How each rate is."""
        return self.detector().rates

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """Counts since the last reset, by true class and then by predicted class."""
        return self.detector().confusion

    def detector(self) -> RecordDetector:
        """Make a detector of its own with this record: as if it had seen these events."""
        standing = self._find(self.key)
        detector = standing.settings.clone()
        detector.restore(standing.record)
        return detector

    def __repr__(self) -> str:
        return f"<Stream {self.key!r} of a bank, {self.events:,} events>"

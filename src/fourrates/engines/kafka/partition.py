"""What is kept of a partition: its bank, and how far it was read, in one piece."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from fourrates.bank import Bank
from fourrates.checks import check_whole
from fourrates.detectors.base import RecordDetector
from fourrates.events.clock import Clock
from fourrates.state import pack, unpack

KIND = "KafkaPartition"
LENGTH = struct.Struct("<Q")  # of what comes before the bank


@dataclass(slots=True)
class Partition:
    """The bank of a partition and its position.

    Attributes
    ----------
    bank : Bank
        The streams.
    next : int or None
        The offset to go on from: all messages before it are in the bank, none after it is. None before the first one.
    rejected, unlabelled : int
        Events that could not be used, and those that had no true label.
    clock : Clock
        How the times of the partition are written.
    """

    bank: Bank
    next: int | None = None
    rejected: int = 0
    unlabelled: int = 0
    clock: Clock = field(default_factory=Clock)

    def to_bytes(self) -> bytes:
        """All of it; both parts have a checksum of their own."""
        about = {"next": self.next, "rejected": self.rejected, "unlabelled": self.unlabelled}
        head = pack(KIND, {**about, "unit": self.clock.unit, "dates": self.clock.dates})
        return b"".join([LENGTH.pack(len(head)), head, *self.bank.to_parts()])

    @classmethod
    def from_bytes(cls, saved: bytes, max_streams: int | None = None) -> Partition:
        """Bring back what :meth:`to_bytes` gave, as :meth:`fourrates.Bank.from_bytes` does."""
        view = memoryview(saved)
        end = LENGTH.size + (LENGTH.unpack_from(view)[0] if len(view) >= LENGTH.size else 0)
        if not LENGTH.size < end <= len(view):
            raise ValueError("these bytes are not the state of a partition")
        found = unpack(view[LENGTH.size : end])
        if found.kind != KIND:
            raise ValueError(f"this is the state of {found.kind}, not of a partition")
        try:
            position = None if found.about["next"] is None else check_whole(found.about["next"], "next", 0)
            rejected, unlabelled = (check_whole(found.about[name], name, 0) for name in ("rejected", "unlabelled"))
            clock = Clock(found.about["unit"], found.about["dates"])
            bank = Bank.from_bytes(bytes(view[end:]), max_streams=max_streams)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the saved state of a partition does not fit itself ({error!r})") from None
        return cls(bank, position, rejected, unlabelled, clock)

    @classmethod
    def begin(cls, detector: RecordDetector, max_streams: int) -> Partition:
        """A partition of which nothing was read."""
        return cls(Bank(detector, max_streams=max_streams))

    def check_detector(self, asked: RecordDetector) -> None:
        """Raise a ValueError if the bank goes on with other settings than those asked for."""
        saved = self.bank.detector
        if type(asked) is not type(saved) or _settings(asked) != _settings(saved):
            raise ValueError(f"it goes on with {saved!r}, not with {asked!r}")


def _settings(detector: RecordDetector) -> dict[str, Any]:
    """Parameters, with the labels in the order of their codes: then it is clear which one is positive."""
    return {**detector.parameters, "labels": list(detector.labels.values), "positive": None}

"""What is kept of a partition: its bank, and how far it was read, in one piece."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from fourrates.bank import Bank
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.parameters import check_whole
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
    refused, skipped : int
        Events that could not be used, and those that were left out because something was missing.
    """

    bank: Bank
    next: int | None = None
    refused: int = 0
    skipped: int = 0

    def to_bytes(self) -> bytes:
        """All of it; both parts have a checksum of their own."""
        head = pack(KIND, {"next": self.next, "refused": self.refused, "skipped": self.skipped})
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
            refused, skipped = (check_whole(found.about[name], name, 0) for name in ("refused", "skipped"))
            bank = Bank.from_bytes(bytes(view[end:]), max_streams=max_streams)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the saved state of a partition does not fit itself ({error!r})") from None
        return cls(bank, position, refused, skipped)

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

"""The state of a partition, its watch together with its offset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fourrates.checks import check_whole
from fourrates.detectors.base import Detector, RecordDetector
from fourrates.events.clock import Clock
from fourrates.state import pack, unpack
from fourrates.watch import Watch

KIND = "KafkaPartition"


@dataclass(slots=True)
class Partition:
    """The watch of a partition and its position."""

    watch: Watch
    next: int | None = None  # the offset to resume from; the watch has exactly the messages before it
    rejected: int = 0
    unlabelled: int = 0
    clock: Clock = field(default_factory=Clock)  # how the times of the partition are written

    def to_bytes(self) -> bytes:
        about: dict[str, Any] = {"next": self.next, "rejected": self.rejected, "unlabelled": self.unlabelled}
        about |= {"unit": self.clock.unit, "dates": self.clock.dates}
        return pack(KIND, about, watch=self.watch.to_bytes())

    @classmethod
    def from_bytes(cls, saved: bytes, max_segments: int | None = None) -> Partition:
        found = unpack(saved)
        if found.kind != KIND:
            raise ValueError(f"this is the state of {found.kind}, not of a partition")
        try:
            position = None if found.about["next"] is None else check_whole(found.about["next"], "next", 0)
            rejected, unlabelled = (check_whole(found.about[name], name, 0) for name in ("rejected", "unlabelled"))
            clock = Clock(found.about["unit"], found.about["dates"])
            watch = Watch.from_bytes(bytes(found.sections["watch"]), max_segments=max_segments)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the saved state of a partition does not fit itself ({error!r})") from None
        return cls(watch, position, rejected, unlabelled, clock)

    def check_detector(self, asked: RecordDetector) -> None:
        """Raise a ValueError if the watch has other settings than those asked for."""
        saved = self.watch.detector
        if type(asked) is not type(saved) or _settings(asked) != _settings(saved):
            raise ValueError(f"it goes on with {saved!r}, not with {asked!r}")


def _settings(detector: Detector) -> dict[str, Any]:
    """Parameters with the labels in code order, which shows the positive one."""
    return {**detector.parameters, "labels": list(detector.labels.values), "positive": None}

"""Events of a partition with their positions, and what could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fourrates.events.batch import Batch
from fourrates.events.clock import Clock


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message, or events of one, that cannot be used."""

    offset: int
    problem: str  # the reason and the place
    value: bytes | None  # the message as received, or columns of its bad events
    key: bytes | None = None
    events: int = 1  # that are rejected


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events of one partition, in order, from whole messages; the row of each is the offset of its message."""

    partition: int
    next: int  # the offset after the last message, to resume from once all of it has been used
    events: Batch
    names: Sequence[str] = ()  # of the segments that `events.keys` count
    rejected: list[RejectedMessage] = field(default_factory=list)
    unlabelled: int = 0  # events without a true label, which were left out
    clock: Clock = field(default_factory=Clock)  # the time format known after it, saved with `next`

    def __len__(self) -> int:
        return self.events.truths.size

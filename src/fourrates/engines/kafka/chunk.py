"""Events of a partition with their positions, and what could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fourrates.events.batch import Batch
from fourrates.events.clock import Clock


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message, or events of one, that cannot be used.

    Attributes
    ----------
    offset : int
        The offset of the message.
    problem : str
        What is wrong, and where.
    value : bytes or None
        What was not used, in the form it came in: the message, or columns of the events in question.
    key : bytes or None
        The key of the message.
    events : int
        How many events are rejected; 1 for a message that cannot be read.
    """

    offset: int
    problem: str
    value: bytes | None
    key: bytes | None = None
    events: int = 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events of one partition, in order, from whole messages.

    Attributes
    ----------
    partition : int
        Which partition.
    next : int
        The offset after the last message of the chunk: where to resume when all of it has been used.
    events : Batch
        The events; the row of each is the offset of its message.
    names : sequence of str
        The segments that `events.keys` count, where a `by` column is read.
    rejected : list of RejectedMessage
        What could not be used.
    unlabelled : int
        Events without a true label, which were left out.
    clock : Clock
        How the partition's times are written, as far as is known after this chunk: to be saved with `next`.
    """

    partition: int
    next: int
    events: Batch
    names: Sequence[str] = ()
    rejected: list[RejectedMessage] = field(default_factory=list)
    unlabelled: int = 0
    clock: Clock = field(default_factory=Clock)

    def __len__(self) -> int:
        return self.events.truths.size

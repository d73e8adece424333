"""Events of a partition with their positions, and what could not be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fourrates.events.clock import Clock

if TYPE_CHECKING:
    import numpy.typing as npt


class Message(Protocol):
    """What is used of a message of the client library."""

    def offset(self) -> int:
        """Where it stands in its partition."""

    def value(self) -> bytes | None:
        """What it holds."""

    def key(self) -> bytes | None:
        """Its key."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of its time, 0 for none, and milliseconds since 1970."""


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
class Keys:
    """The segment of each event: `codes` are positions in `categories`, as in pandas, which a bank reads quickly."""

    categories: npt.NDArray[np.object_]
    codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return self.codes.size


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events of one partition, in order, from whole messages.

    Attributes
    ----------
    partition : int
        Which partition.
    next : int
        The offset after the last message of the chunk: where to resume when all of it has been used.
    truths, preds : arrays of uint16
        Class codes, in the order of the labels.
    keys : Keys, optional
        The segment of each event, where a `by` column is read.
    offsets : array of int64
        The message of each event.
    times : array of datetime64[us], optional
        When each event happened; NaT where unknown.
    rejected : list of RejectedMessage
        What could not be used.
    unlabelled : int
        Events without a true label, which were left out.
    clock : Clock
        How the partition's times are written, as far as is known after this chunk: to be saved with `next`.
    """

    partition: int
    next: int
    truths: npt.NDArray[np.uint16]
    preds: npt.NDArray[np.uint16]
    keys: Keys | None
    offsets: npt.NDArray[np.int64]
    times: npt.NDArray[np.datetime64] | None = None
    rejected: list[RejectedMessage] = field(default_factory=list)
    unlabelled: int = 0
    clock: Clock = field(default_factory=Clock)

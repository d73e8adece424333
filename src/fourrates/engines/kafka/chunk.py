"""Events of a partition with their positions, and what could not be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

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
class Refused:
    """A message, or events of one, that cannot be used.

    Attributes
    ----------
    offset : int
        Where the message stands in its partition.
    problem : str
        What is wrong, and where.
    value : bytes or None
        What was not used, in the form it came in: the message, or columns of the events in question.
    key : bytes or None
        The key of the message.
    events : int
        How many events are refused; 1 for a message that cannot be read.
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
        The offset after the last message of the chunk: where to go on when all of it has been taken.
    truths, guesses : arrays of uint16
        Class codes, in the order of the labels.
    keys : list or array, optional
        Which stream each event belongs to, where a `by` column is read.
    offsets : array of int64
        The message of each event.
    times : array of datetime64[us], optional
        When each event happened; NaT where unknown.
    refused : list of Refused
        What could not be used.
    skipped : int
        Events without a label, prediction or key that were left out on request.
    """

    partition: int
    next: int
    truths: npt.NDArray[np.uint16]
    guesses: npt.NDArray[np.uint16]
    keys: Any
    offsets: npt.NDArray[np.int64]
    times: npt.NDArray[np.datetime64] | None = None
    refused: list[Refused] = field(default_factory=list)
    skipped: int = 0

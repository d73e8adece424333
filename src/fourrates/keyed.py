"""What a bank reports: a drift or a shift, with the key of its stream."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from fourrates.drift import Drift, Shift


@dataclass(frozen=True, slots=True)
class KeyedDrift:
    """A drift of one stream of a bank.

    Attributes
    ----------
    key : hashable
        Which stream.
    event : int
        The event that gave the alarm, counted from 0 over all events of the bank.
    drift : Drift
        What happened; its `at` and `since` count the events of this stream alone.
    """

    key: Hashable
    event: int
    drift: Drift

    def __str__(self) -> str:
        return f"{self.key}: {self.drift}"


@dataclass(frozen=True, slots=True)
class KeyedShift:
    """A shift of the true classes in one stream of a bank: which stream, at which event of the bank, and what."""

    key: Hashable
    event: int
    shift: Shift

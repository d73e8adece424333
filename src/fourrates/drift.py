"""What a detector tells you: the drift, the rates that moved, and where each rate stands now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fourrates.null import Bounds

Direction = Literal["down", "up"]


@dataclass(frozen=True, slots=True)
class RateChange:
    """One rate that crossed its detection bound.

    Attributes
    ----------
    rate : str
        Its name, such as ``"tpr"`` or ``"recall:cat"``.
    direction : {"down", "up"}
        Which way it moved.
    statistic : float
        Its time-decayed value R at the alarm.
    bound : float
        The bound that R crossed.
    expected : float
        The mean of R given the n observations, had the concept been stable.
    n : int
        Observations of this rate since the last reset.
    decay : float
        The decay of the statistic that crossed (the first that did, where a rate has several).
    """

    rate: str
    direction: Direction
    statistic: float
    bound: float
    expected: float
    n: int
    decay: float

    def __str__(self) -> str:
        side = "below" if self.direction == "down" else "above"
        return (
            f"{self.rate} {self.direction}: {self.statistic:.3f}, {side} its bound {self.bound:.3f} "
            f"({self.expected:.3f} expected after {self.n:,} observations)"
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """A drift: when it was found, since when, which rates moved, and the examples of the new concept.

    Attributes
    ----------
    at : int
        The event that gave the alarm, counted from 0 since construction or ``reset()``.
    since : int
        The first event of the unbroken warning that led to it.
    changes : tuple of RateChange
        The rates that crossed their detection bounds.
    confusion : tuple of tuples of int
        Counts since the last reset, by true class and then by predicted class, in the order of the labels.
    """

    at: int
    since: int
    changes: tuple[RateChange, ...]
    confusion: tuple[tuple[int, ...], ...]

    @property
    def window(self) -> range:
        """The events of the new concept: what the next model should learn from."""
        return range(self.since, self.at + 1)

    def __str__(self) -> str:
        moved = "; ".join(str(change) for change in self.changes)
        return f"drift at {self.at:,}, since {self.since:,}: {moved}"


class Drifts(list[Drift]):
    """The drifts of a batch, in order, and how many of its events were taken.

    Attributes
    ----------
    consumed : int
        All of the batch, or with ``first_only=True`` those up to and including the first drift.
    """

    def __init__(self, drifts: list[Drift], consumed: int) -> None:
        super().__init__(drifts)
        self.consumed = consumed


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic of a rate: R for one decay, and where it may stand."""

    decay: float
    value: float
    warn: Bounds
    detect: Bounds


@dataclass(frozen=True, slots=True)
class RateState:
    """Where a rate stands.

    Attributes
    ----------
    n : int
        Observations since the last reset.
    estimate : float
        Share of them that were correct; nan before the first.
    statistics : tuple of Statistic
        One for each decay; `statistic`, `warn` and `detect` are those of the first.
    """

    n: int
    estimate: float
    statistics: tuple[Statistic, ...]

    @property
    def statistic(self) -> float:
        """The time-decayed value R."""
        return self.statistics[0].value

    @property
    def warn(self) -> Bounds:
        """The warning bounds of R now."""
        return self.statistics[0].warn

    @property
    def detect(self) -> Bounds:
        """The detection bounds of R now."""
        return self.statistics[0].detect

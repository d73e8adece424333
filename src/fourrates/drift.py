"""What a detector tells you: the drift, the rates that moved, and where each rate stands now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fourrates.null import Bounds
from fourrates.onset import Share

Direction = Literal["down", "up"]


@dataclass(frozen=True, slots=True)
class RateChange:
    """One rate, or other quantity a detector watches, that crossed its detection bound.

    Attributes
    ----------
    rate : str
        Its name, such as ``"tpr"``, ``"recall:cat"`` or ``"error"``.
    direction : {"down", "up"}
        Which way it moved.
    statistic : float
        The value that crossed: for LFR the time-decayed rate R, or the mean over a window.
    bound : float
        The bound it crossed.
    expected : float or None
        What the statistic would be had the concept been stable, where the detector has a notion of it.
    n : int
        Observations behind the statistic.
    decay : float or None
        The decay of the statistic that crossed (the first that did, where a rate has several), if it has one.
    window : int or None
        How many of the last observations the statistic is the mean of, if it is that.
    together : bool
        Whether it was too rare only together with the other recall: `bound` is then the bound given how rare that is.
    before, after : Share or None
        The rate as observed from the last restart up to the start of the drift, and since, with intervals; for LFR.
        What led to an alarm looks larger than it is, the more so the smaller the change.
    """

    rate: str
    direction: Direction
    statistic: float
    bound: float
    expected: float | None
    n: int
    decay: float | None = None
    window: int | None = None
    together: bool = False
    before: Share | None = field(default=None, compare=False)
    after: Share | None = field(default=None, compare=False)

    def __str__(self) -> str:
        side = "below" if self.direction == "down" else "above"
        expected = "" if self.expected is None else f"{self.expected:.3f} expected "
        return (
            f"{self.rate} {self.direction}{' together' if self.together else ''}: {self.statistic:.3f}, "
            f"{side} its bound {self.bound:.3f} ({expected}after {self.n:,} observations)"
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
    started : int or None
        The first event of the new concept, by maximum likelihood; None where nothing is remembered: only LFR does, with
        up to 64 classes, and not in a bank.
    started_between : (int, int) or None
        An interval that holds it in nine of ten cases.
    """

    at: int
    since: int
    changes: tuple[RateChange, ...]
    confusion: tuple[tuple[int, ...], ...]
    started: int | None = field(default=None, compare=False)
    started_between: tuple[int, int] | None = field(default=None, compare=False)

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
    """One statistic of a rate, and where it may stand.

    Attributes
    ----------
    decay : float or None
        The decay of R; None where the statistic has none.
    value : float
        The statistic; nan before the first.
    warn, detect : Bounds
        Outside them it warns or alarms. Infinite, or 0 and 1, where nothing can cross (yet).
    expected : float or None
        What it would be under a stable concept, where the detector has a notion of it.
    window : int or None
        How many of the last observations it is the mean of, if it is that.
    """

    decay: float | None
    value: float
    warn: Bounds
    detect: Bounds
    expected: float | None = None
    window: int | None = None

    def change(self, rate: str, direction: Direction, n: int) -> RateChange:
        """What to report when it has crossed its detection bound this way."""
        return RateChange(
            rate=rate,
            direction=direction,
            statistic=self.value,
            bound=self.detect.lower if direction == "down" else self.detect.upper,
            expected=self.expected,
            n=n,
            decay=self.decay,
            window=self.window,
        )


@dataclass(frozen=True, slots=True)
class RateState:
    """Where a rate stands.

    Attributes
    ----------
    n : int
        Observations since the last reset.
    estimate : float
        The plain mean of what was observed (for a rate, the share that was correct); nan before the first.
    statistics : tuple of Statistic
        One for each decay or window; `statistic`, `warn` and `detect` are those of the first.
    """

    n: int
    estimate: float
    statistics: tuple[Statistic, ...]

    @property
    def statistic(self) -> float:
        """The value that is held against the bounds: for LFR the time-decayed rate R, or the mean over a window."""
        return self.statistics[0].value

    @property
    def warn(self) -> Bounds:
        """Its warning bounds now."""
        return self.statistics[0].warn

    @property
    def detect(self) -> Bounds:
        """Its detection bounds now."""
        return self.statistics[0].detect

    @property
    def expected(self) -> float | None:
        """What the statistic would be under a stable concept."""
        return self.statistics[0].expected

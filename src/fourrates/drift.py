"""What a detector tells you: the drift, the rates that moved, and where each rate stands now."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple, Self

from fourrates.evidence.precision import PrecisionChange
from fourrates.null import Bounds

Direction = Literal["down", "up"]
Status = Literal["stable", "warning", "drifted"]


ENOUGH = 200  # examples, and examples of each class, with which a window is not called too small to learn from
ENOUGH_OF_A_CLASS = 50
CLASSES = {"tpr": "positives", "tnr": "negatives"}  # what a recall of two classes is about
DEVIATIONS = 1.6448536269514722  # of a normal law, that enclose it with probability 0.9


class Share(NamedTuple):
    """A rate as observed over part of a stream.

    Attributes
    ----------
    value : float
        The share that was right; nan without observations.
    lower, upper : float
        An interval at 90 %.
    n : int
        Observations.
    """

    value: float
    lower: float
    upper: float
    n: int

    @classmethod
    def of(cls, ones: float, n: float, dispersion: float = 1.0) -> Share:
        """The share of ones among n observations, with Wilson's interval; correlated ones tell less."""
        if n <= 0:
            return cls(math.nan, 0.0, 1.0, 0)
        square = DEVIATIONS**2 / (n / dispersion)
        value = min(ones / n, 1.0)  # of estimates, one may be a rounding error beyond the other
        middle = (value + square / 2) / (1 + square)
        reach = math.sqrt(square * (value * (1 - value) + square / 4)) / (1 + square)
        return cls(value, max(0.0, middle - reach), min(1.0, middle + reach), round(n))

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.lower:.3f}, {self.upper:.3f}]"


@dataclass(frozen=True, slots=True)
class RateChange:
    """One rate, or other quantity a detector watches, that moved.

    Attributes
    ----------
    rate : str
        Its name, such as ``"tpr"``, ``"recall:cat"`` or ``"error"``.
    direction : {"down", "up"}
        Which way it moved.
    statistic : float
        The value that crossed its bound: for LFR the time-decayed rate R, for FourRates the evidence.
    bound : float
        The bound it crossed.
    expected : float or None
        What the statistic would be had the concept been stable, where the detector has a notion of it.
    n : int
        Observations behind the statistic.
    decay : float or None
        The decay of the statistic that crossed (the first that did, where a rate has several), if it has one.
    before, after : Share or None
        The rate up to the start of the drift and since, with intervals; for FourRates. What led to an alarm looks
        larger than it is, the more so the smaller the change.
    """

    rate: str
    direction: Direction
    statistic: float
    bound: float
    expected: float | None
    n: int
    decay: float | None = None
    before: Share | None = None
    after: Share | None = None

    def __str__(self) -> str:
        if self.before is not None and self.after is not None:
            return f"{self.rate} {self.direction}: {self.before.value:.3f} -> {self.after.value:.3f}"
        side = "below" if self.direction == "down" else "above"
        expected = "" if self.expected is None else f"{self.expected:.3f} expected "
        return (
            f"{self.rate} {self.direction}: {self.statistic:.3f}, "
            f"{side} its bound {self.bound:.3f} ({expected}after {self.n:,} observations)"
        )


class Unmoved(NamedTuple):
    """A recall that did not give the alarm: where it stood up to the start of a drift, and since."""

    rate: str
    before: Share
    after: Share


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
        The rates that moved.
    confusion : tuple of tuples of int
        Counts since the last reset, by true class and then by predicted class, in the order of the labels.
    started : int or None
        The likeliest first event of the new concept; None where the detector does not know: only FourRates does.
    started_between : (int, int) or None
        An interval that is to hold it in nine of ten cases.
    precisions : tuple of PrecisionChange
        For FourRates with two classes: how ppv and npv moved with the recalls, the mix of classes or both. Not part of
        what makes two drifts equal.
    shift : Shift or None
        The shift of the true classes that the drift came with, for FourRates with ``mix="alarm"`` where both together
        gave the alarm.
    unmoved : tuple of Unmoved
        For FourRates: the other recalls. Few observations may hide a change that is theirs too. Not part of what makes
        two drifts equal.
    """

    at: int
    since: int
    changes: tuple[RateChange, ...]
    confusion: tuple[tuple[int, ...], ...]
    started: int | None = None
    started_between: tuple[int, int] | None = None
    precisions: tuple[PrecisionChange, ...] = field(default=(), compare=False)
    shift: Shift | None = None
    unmoved: tuple[Unmoved, ...] = field(default=(), compare=False)

    @property
    def window(self) -> range:
        """The events of the new concept: what the next model should learn from."""
        return range(self.since if self.started is None else self.started, self.at + 1)

    @property
    def levels(self) -> dict[str, tuple[Share, Share]]:
        """The rates that moved, before and after, where the detector observed both."""
        known = ((change.rate, change.before, change.after) for change in self.changes)
        return {rate: (before, after) for rate, before, after in known if before and after and before.n and after.n}

    @property
    def shortage(self) -> str | None:
        """A sentence if the window holds too few examples, or too few of a class, to learn from; else None.

        Examples
        --------
        >>> import fourrates as fr
        >>> from fourrates.streams import SCENARIOS
        >>> (drift,) = fr.FourRates(arl=100_000).update_many(*SCENARIOS["Imbalance2"].stream(seed=1))
        >>> drift.shortage
        'the window holds 80 examples, about 19 of them positives: too few to learn from, wait for more'
        """
        size = len(self.window)
        seen = {
            CLASSES.get(change.rate, change.rate.removeprefix("recall:")): min(change.after.n, size)
            for change in self.changes
            if change.after is not None and (change.rate in CLASSES or change.rate.startswith("recall:"))
        }
        if len(seen) == 1 and seen.keys() <= {*CLASSES.values()}:  # of two classes, the other is what is left
            (one,) = seen
            (other,) = {*CLASSES.values()} - {one}
            seen[other] = size - seen[one]
        rarest = min(seen, key=lambda name: seen[name], default=None)
        few = rarest is not None and seen[rarest] < ENOUGH_OF_A_CLASS
        if size >= ENOUGH and not few:
            return None
        told = f", about {seen[rarest]:,} of them {rarest}" if rarest is not None and few else ""
        examples = f"{size:,} example{'' if size == 1 else 's'}{told}"
        return f"the window holds {examples}: too few to learn from, wait for more"

    def shifted(self, by: int) -> Self:
        """The same drift in a stream that began `by` events earlier."""
        return replace(
            self,
            at=self.at + by,
            since=self.since + by,
            started=None if self.started is None else self.started + by,
            started_between=None
            if self.started_between is None
            else (self.started_between[0] + by, self.started_between[1] + by),
            shift=None
            if self.shift is None
            else replace(self.shift, at=self.shift.at + by, started=self.shift.started + by),
        )

    _verb: ClassVar[str] = "drift"

    def __str__(self) -> str:
        moved = "; ".join(str(change) for change in self.changes)
        began = f"since {self.since:,}" if self.started is None else f"started about {self.started:,}"
        shift = "" if self.shift is None else f"; {self.shift.shares}"
        return f"{self._verb} at {self.at:,}, {began}: {moved}{shift}"


class Recovery(Drift):
    """What had moved is back: at its reference, for a detector that holds one, or where it was before it drifted."""

    __slots__ = ()
    _verb: ClassVar[str] = "recovery"


@dataclass(frozen=True, slots=True)
class Shift:
    """The true classes come in other shares than before. Not a drift of the classifier, though its precisions move.

    Attributes
    ----------
    at : int
        The event that showed it.
    started : int
        The likeliest first event of the new mix.
    before, after : Share
        The share of the positive class.
    precisions : tuple of PrecisionChange
        How ppv and npv move with it. Not part of what makes two shifts equal.
    """

    at: int
    started: int
    before: Share
    after: Share
    precisions: tuple[PrecisionChange, ...] = field(default=(), compare=False)

    @property
    def shares(self) -> str:
        """The share of positives before and after, in words."""
        return f"positives {self.before.value:.3f} -> {self.after.value:.3f}"

    def __str__(self) -> str:
        return f"classes shifted at {self.at:,}, started about {self.started:,}: {self.shares}"


class Drifts(list[Drift]):
    """The drifts of a batch, in order, and what else there is to say of it.

    Attributes
    ----------
    consumed : int
        Events taken: all of the batch, or with ``first_only=True`` those up to and including the first drift.
    shifts : list of Shift
        Shifts of the true classes, where the detector watches them.
    """

    def __init__(self, drifts: list[Drift], consumed: int, shifts: Sequence[Shift] = ()) -> None:
        super().__init__(drifts)
        self.consumed = consumed
        self.shifts = [*shifts]


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
    """

    decay: float | None
    value: float
    warn: Bounds
    detect: Bounds
    expected: float | None = None

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
        For a detector that holds a statistic against bounds, one for each decay; `statistic`, `warn` and `detect` are
        those of the first.
    baseline : Share or None
        What the rate is compared with, for FourRates: the reference and the events since, with its interval.
    evidence : float or None
        For FourRates, how much of the evidence towards an alarm is about this rate, as a share of what an alarm takes.
    dispersion : float or None
        For FourRates, how much more the rate scatters than independent events would: with 4, a hundred events tell as
        much as 25 independent ones.
    """

    n: int
    estimate: float
    statistics: tuple[Statistic, ...] = ()
    baseline: Share | None = None
    evidence: float | None = None
    dispersion: float | None = None

    @property
    def interval(self) -> Share | None:
        """The estimate with its interval at 90 %."""
        return Share.of(self.estimate * self.n, self.n, self.dispersion or 1.0) if self.n else None

    def _first(self) -> Statistic:
        if not self.statistics:
            raise AttributeError("this detector holds no statistic against bounds: see `evidence` and `baseline`")
        return self.statistics[0]

    @property
    def statistic(self) -> float:
        """The value that is held against the bounds: for LFR the time-decayed rate R."""
        return self._first().value

    @property
    def warn(self) -> Bounds:
        """Its warning bounds now."""
        return self._first().warn

    @property
    def detect(self) -> Bounds:
        """Its detection bounds now."""
        return self._first().detect

    @property
    def expected(self) -> float | None:
        """What the statistic would be under a stable concept."""
        return self._first().expected


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

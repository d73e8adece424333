"""Findings of a detector, the rates they are about, and the current state of each rate.

A drift is found, confirmed or withdrawn, and ends; every step is a :class:`Finding`. This module imports nothing from
the package, so that everything else may use it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np

Direction = Literal["down", "up"]
Status = Literal["stable", "warning", "drifted"]
Kind = Literal[
    "drift", "confirmation", "withdrawal", "recovery", "improvement", "acceptance", "shift", "prediction_shift"
]
Condition = Literal["normal", "unconfirmed", "confirmed", "recovering"]
Matrix = tuple[tuple[int, ...], ...]

ENOUGH = 200  # examples, in all and of each class, from which a window is large enough to train on
ENOUGH_OF_A_CLASS = 50
CLASSES = {"tpr": "positives", "tnr": "negatives"}  # the class of each of two recalls
ENOUGH_HISTORY = 10.0  # nats of evidence in the events before a drift that separate the old level from the new one
DEVIATIONS = 1.6448536269514722  # of a normal law; within these, its probability is 0.9


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
        """The share of ones among n observations, with Wilson's interval, widened for correlated events."""
        if n <= 0:
            return cls(math.nan, 0.0, 1.0, 0)
        square = DEVIATIONS**2 / (n / dispersion)
        value = min(ones / n, 1.0)  # estimates may exceed n by a rounding error
        middle = (value + square / 2) / (1 + square)
        reach = math.sqrt(square * (value * (1 - value) + square / 4)) / (1 + square)
        return cls(value, max(0.0, middle - reach), min(1.0, middle + reach), round(n))

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.lower:.3f}, {self.upper:.3f}]"


@dataclass(frozen=True, slots=True)
class RateChange:
    """One rate, or other quantity of a detector, that moved.

    Attributes
    ----------
    rate : str
        Its name, such as ``"tpr"``, ``"recall:cat"`` or ``"error"``.
    direction : {"down", "up"}
        Which way it moved.
    statistic : float
        The value that crossed its bound, for LFR the time-decayed rate R, for FourRates the evidence.
    bound : float
        The bound it crossed.
    expected : float or None
        The statistic's value under a stable concept, for detectors that compute it.
    n : int
        Observations behind the statistic.
    decay : float or None
        The decay of the statistic that crossed (the first that did, if a rate has several), if it has one.
    before, after : Share or None
        The rate up to the start of the drift and since, with intervals; for FourRates. An alarm makes a change look
        larger than it is, most of all a small one.
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
            before = f"{self.before.value:.3f} -> " if self.before.n else ""
            after = f"{self.after.value:.3f}" if self.after.n else "not yet known"
            return f"{self.rate} {self.direction}: {before}{after}"
        side = "below" if self.direction == "down" else "above"
        expected = "" if self.expected is None else f"{self.expected:.3f} expected "
        return (
            f"{self.rate} {self.direction}: {self.statistic:.3f}, "
            f"{side} its bound {self.bound:.3f} ({expected}after {self.n:,} observations)"
        )


SMALL = 0.25  # a part of a precision's change below this share of the larger one is not named


class Bounds(NamedTuple):
    """A statistic stays between these, with at most the level's probability of leaving on each side."""

    lower: float
    upper: float


class PrecisionChange(NamedTuple):
    """A precision that moved, and why."""

    rate: str  #: "npv" or "ppv"
    before: float  #: its value from the recalls and the mix
    after: float
    by_recalls: float  #: the part of the change that they explain; with the next, all of it
    by_mix: float

    @property
    def because(self) -> Literal["recall", "mix", "both"]:
        """The cause, one of recalls, the mix of classes, or both."""
        recalls, mix = abs(self.by_recalls), abs(self.by_mix)
        if min(recalls, mix) >= SMALL * max(recalls, mix):
            return "both"
        return "recall" if recalls > mix else "mix"

    @property
    def reason(self) -> str:
        """The cause in words."""
        what = {"recall": "recall", "mix": "the class mix", "both": "recall and the class mix"}
        return f"because {what[self.because]} changed"

    def __str__(self) -> str:
        return f"{self.rate} {self.before:.3f} -> {self.after:.3f}, {self.reason}"


class ConfusionChange(NamedTuple):
    """A class that is mistaken for another more often."""

    truth: str  #: the class
    pred: str  #: the one it is mistaken for
    before: Share  #: among the observations of the class, up to the start
    after: Share  #: and since

    def __str__(self) -> str:
        return f"{self.truth} taken for {self.pred}: {self.before.value:.3f} -> {self.after.value:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of a detector, such as a drift, its end, or a class-mix shift.

    Attributes
    ----------
    kind : str
        "drift" (a rate moved away from normal), "confirmation" (the events since the alarm support it), "withdrawal"
        (they do not, it was a false alarm), "recovery" (the rate is back at normal), "improvement" (it moved towards
        normal but stopped short), "acceptance" (the new level was accepted as normal), "shift" (the class mix changed),
        "prediction_shift" (the share of predicted positives changed; needs no labels).
    at : int
        The event that raised it, counted from 0 since construction or ``reset()``.
    changes : tuple of RateChange
        The rates concerned, before and after. After a drift, `before` is normal and `after` the rate since the alarm.
        For a recovery or an improvement, `before` is the drifted rate and `after` the rate since then.
    started : int or None
        The likeliest first event of the new level; None if the detector does not know.
    started_between : (int, int) or None
        A 90 % interval of that event; for drifts only.
    about : Drift or None
        The drift that opened the episode, for later findings; see `drift`.
    closes : bool
        Whether it closes the drift, with every rate at normal again.
    segment : str or None
        The segment; None for the overall stream, and for a detector used alone.
    version : str or None
        The version of the model, if a watch knows it.
    time, started_time : datetime64 or None
        When that event happened, and when the new level started, if times are known. The start is accurate to about a
        tenth of the time since.
    source, row, started_row : str, int and int, or None
        The file and row of that event, and the row of the start of the new level if in the same file.
    """

    kind: Kind
    at: int
    changes: tuple[RateChange, ...] = ()
    started: int | None = None
    started_between: tuple[int, int] | None = None
    about: Drift | None = None
    closes: bool = False
    segment: str | None = None
    version: str | None = None
    time: np.datetime64 | None = None
    started_time: np.datetime64 | None = None
    source: str | None = None
    row: int | None = None
    started_row: int | None = None

    @property
    def drift(self) -> Drift | None:
        """The drift it is about, the one that opened the episode, possibly itself; None for a shift."""
        return self.about

    @property
    def where(self) -> str | None:
        """Its segment and version, if any."""
        return " of ".join(name for name in (self.segment, self.version) if name is not None) or None

    @property
    def window(self) -> range:
        """The events of the new level, to train the next model on."""
        return range(self.at if self.started is None else self.started, self.at + 1)

    @property
    def levels(self) -> dict[str, tuple[Share, Share]]:
        """The rates before and after, if the detector observed both."""
        known = ((change.rate, change.before, change.after) for change in self.changes)
        return {rate: (before, after) for rate, before, after in known if before and after and before.n and after.n}

    def shifted(self, by: int) -> Self:
        """The same finding in a stream that began `by` events earlier."""
        between = self.started_between
        return replace(
            self,
            at=self.at + by,
            started=None if self.started is None else self.started + by,
            started_between=None if between is None else (between[0] + by, between[1] + by),
            about=None if self.about is None else self.about.shifted(by),
        )

    def _moved(self) -> str:
        return "; ".join(str(change) for change in self.changes)

    def __str__(self) -> str:
        of = "" if self.about is None else f" of the drift at {self.about.at:,}"
        if self.kind != "withdrawal":
            return f"{self.kind} at {self.at:,}{of}: {self._moved()}"
        levels = self.levels.items()
        moved = "; ".join(f"{rate} {now.value:.3f}, normal {normal.value:.3f}" for rate, (normal, now) in levels)
        return f"{self.kind} at {self.at:,}{of}: {moved}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift(Finding):
    """A rate moved away from normal, with time, rates, and the examples of the new level.

    Attributes
    ----------
    since : int
        The first event of the unbroken warning before it.
    confusion : tuple of tuples of int
        Counts since the last alarm, by true class and then by predicted class, in the order of the labels.
    precisions : tuple of PrecisionChange
        For FourRates with two classes, how ppv and npv moved with the recalls, the mix of classes or both.
    confusions : tuple of ConfusionChange
        For FourRates with more than two classes, the class that is mistaken for another more often, if significant.
    shift : Shift or None
        The class-mix shift that accompanied it, for FourRates with ``mix="alarm"`` if both together raised the alarm.
    further : bool
        Whether a rate already away from normal moved further away.
    normal_known : bool
        Whether there was enough history to know normal. If not, the new level is normal from now on.
    """

    kind: Kind = "drift"
    since: int
    confusion: Matrix
    precisions: tuple[PrecisionChange, ...] = ()
    confusions: tuple[ConfusionChange, ...] = ()
    shift: Shift | None = None
    further: bool = False
    normal_known: bool = True

    @property
    def drift(self) -> Drift:
        """The drift that opened the episode."""
        return self if self.about is None else self.about

    @property
    def worse(self) -> bool:
        """Whether a rate fell."""
        return any(change.direction == "down" for change in self.changes)

    @property
    def window(self) -> range:
        """The events of the new level, to train the next model on."""
        return range(self.since if self.started is None else self.started, self.at + 1)

    @property
    def too_few_examples(self) -> str | None:
        """A sentence if the window has too few examples, or too few of a class, to train on; else None.

        Examples
        --------
        >>> import fourrates as fr
        >>> from fourrates.streams import SCENARIOS
        >>> drift, *_ = fr.FourRates(arl=100_000).update_many(*SCENARIOS["Imbalance2"].stream(seed=1))
        >>> drift.too_few_examples
        'the window holds 85 examples, about 21 of them positives: too few to train on, wait for more'
        """
        size = len(self.window)
        seen = {
            CLASSES.get(change.rate, change.rate.removeprefix("recall:")): min(change.after.n, size)
            for change in self.changes
            if change.after is not None and (change.rate in CLASSES or change.rate.startswith("recall:"))
        }
        if len(seen) == 1 and seen.keys() <= {*CLASSES.values()}:  # of two classes, the other has the rest
            (known,) = seen
            (other,) = {*CLASSES.values()} - {known}
            seen[other] = size - seen[known]
        rarest = min(seen, key=lambda name: seen[name], default=None)
        few = rarest is not None and seen[rarest] < ENOUGH_OF_A_CLASS
        if size >= ENOUGH and not few:
            return None
        told = f", about {seen[rarest]:,} of them {rarest}" if rarest is not None and few else ""
        examples = f"{size:,} example{'' if size == 1 else 's'}{told}"
        return f"the window holds {examples}: too few to train on, wait for more"

    @property
    def short_history(self) -> str | None:
        """A sentence if the history is too short to be sure of the old level and the direction; else None.

        Examples
        --------
        >>> import fourrates as fr
        >>> random, y_true = np.random.default_rng(1), np.ones(3_000, int)
        >>> wrong = random.random(3_000) < np.where(np.arange(3_000) < 40, 0.2, 0.5)
        >>> drift = fr.FourRates(arl=1_000).update_many(y_true, y_true ^ wrong)[0]
        >>> drift.short_history
        'only 43 observations of tpr before it: too few to be sure of the old level, or of the direction'
        """
        told = {}
        for rate, (before, after) in self.levels.items():
            old, new = ((share.value * share.n + 0.5) / (share.n + 1) for share in (before, after))
            told[rate] = before.n * (old * math.log(old / new) + (1 - old) * math.log((1 - old) / (1 - new)))
        best = max(told, key=lambda rate: told[rate], default=None)
        if best is None or self.confusions or told[best] >= ENOUGH_HISTORY:
            return None
        n = self.levels[best][0].n
        seen = f"only {n:,} observation{'' if n == 1 else 's'} of {best} before it"
        return f"{seen}: too few to be sure of the old level, or of the direction"

    def shifted(self, by: int) -> Self:
        """The same drift in a stream that began `by` events earlier."""
        moved = super(Drift, self).shifted(by)
        shift = None if self.shift is None else self.shift.shifted(by)
        return replace(moved, since=self.since + by, shift=shift)

    def __str__(self) -> str:
        began = f"since {self.since:,}" if self.started is None else f"started about {self.started:,}"
        shift = "" if self.shift is None else f"; {self.shift.shares}"
        shift += "".join(f"; {confusion}" for confusion in self.confusions)
        short = "; too little history to be sure" if self.short_history else ""
        return f"{'further ' if self.further else ''}drift at {self.at:,}, {began}: {self._moved()}{short}{shift}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Finding):
    """The class mix changed. This is no drift of the classifier, though its precisions move.

    Attributes
    ----------
    before, after : Share
        The share of the positive class.
    precisions : tuple of PrecisionChange
        How ppv and npv move with it.
    """

    kind: Kind = "shift"
    before: Share
    after: Share
    precisions: tuple[PrecisionChange, ...] = ()

    @property
    def shares(self) -> str:
        """The share of positives before and after, in words."""
        return f"positives {self.before.value:.3f} -> {self.after.value:.3f}"

    def __str__(self) -> str:
        return f"class mix shifted at {self.at:,}, started about {self.started:,}: {self.shares}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionShift(Shift):
    """The share of predicted positives changed, as predictions show before their labels come.

    The model may well be right, so this is no drift. `at` and `started` count predictions, labelled or not.

    Attributes
    ----------
    before, after : Share
        The share of predicted positives.
    wait : str or None
        How long labels have taken lately, such as "20 days", if known.
    """

    kind: Kind = "prediction_shift"
    wait: str | None = None

    @property
    def shares(self) -> str:
        """The share of predicted positives before and after, in words."""
        before, after = self.before.value, self.after.value
        if not before > 0:
            return f"predicted positive {before:.3f} -> {after:.3f}"
        times = after / before
        shown = f"{times:.2g}" if times < 9.95 else f"{times:,.0f}"
        return f"{shown} times as many predicted positive, {before:.3f} -> {after:.3f}"

    @property
    def in_words(self) -> str:
        """The shares, and how long labels take."""
        return self.shares + ("" if self.wait is None else f"; labels take about {self.wait}")

    def __str__(self) -> str:
        return f"prediction shift at {self.at:,}, started about {self.started:,}: {self.in_words}"


class Drifts(list[Drift]):
    """The drifts of a batch, in order; `findings` of the detector has everything else.

    Attributes
    ----------
    consumed : int
        Events taken, all of the batch, or with ``first_only=True`` those up to and including the first drift.
    """

    def __init__(self, drifts: Sequence[Drift], consumed: int) -> None:
        super().__init__(drifts)
        self.consumed = consumed


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic of a rate, and its bounds."""

    decay: float | None  #: the decay of R; None for other statistics
    value: float  #: the statistic; nan before the first
    warn: Bounds  #: infinite, or 0 and 1, if nothing can cross (yet)
    detect: Bounds
    expected: float | None = None  #: its value under a stable concept, for detectors that compute it

    def change(self, rate: str, direction: Direction, n: int) -> RateChange:
        """The change to report when it has crossed its detection bound this way."""
        bound = self.detect.lower if direction == "down" else self.detect.upper
        return RateChange(rate, direction, self.value, bound, self.expected, n, self.decay)


@dataclass(frozen=True, slots=True)
class RateState:
    """The current state of a rate.

    Attributes
    ----------
    n : int
        Observations since the last alarm.
    estimate : float
        The plain mean of the observations (for a rate, the share that was correct); nan before the first.
    statistics : tuple of Statistic
        For a detector that compares statistics with bounds, one for each decay; `statistic`, `warn` and `detect` are
        those of the first.
    baseline : Share or None
        For FourRates, the estimate of normal from the reference and the events since, with its interval.
    normal : Share or None
        For FourRates, the expected rate, that is the baseline, or during a drift the baseline before the alarm.
    evidence : float or None
        For FourRates, this rate's part of the evidence for an alarm, as a share of the alarm level.
    dispersion : float or None
        For FourRates, the clustering of its errors. With 4, a hundred events carry as much information as 25
        independent ones.
    state : {"normal", "unconfirmed", "confirmed", "recovering"}
        Whether it is away from normal, for FourRates.
    now : Share or None
        For FourRates, the rate since the alarm while a drift is open, and over the latest observations otherwise (500
        to 1,000 of the class). No choice was based on these, so the interval is honest.
    enough : int
        Observations from which `now` is worth quoting, with an interval of about five points either way.
    support : float or None
        During a drift, how much better the observations since the alarm fit the drift than normal. The drift is
        confirmed at 20 and withdrawn at 1/20.
    """

    n: int
    estimate: float
    statistics: tuple[Statistic, ...] = ()
    baseline: Share | None = None
    normal: Share | None = None
    evidence: float | None = None
    dispersion: float | None = None
    state: Condition = "normal"
    now: Share | None = None
    enough: int = 0
    support: float | None = None

    @property
    def now_in_words(self) -> str:
        """`now` with its interval and observations, or the number of observations it has and needs."""
        if self.now is None:
            return "not known"
        if self.now.n < self.enough:
            return f"not yet known: {self.now.n:,} of about {self.enough:,}"
        return f"{self.now} of {self.now.n:,}"

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
        """The value compared with the bounds, for LFR the time-decayed rate R."""
        return self._first().value

    @property
    def warn(self) -> Bounds:
        """Its current warning bounds."""
        return self._first().warn

    @property
    def detect(self) -> Bounds:
        """Its current detection bounds."""
        return self._first().detect

    @property
    def expected(self) -> float | None:
        """The statistic's value under a stable concept."""
        return self._first().expected


@dataclass(frozen=True, slots=True)
class KeyedFinding:
    """A finding in one stream of a bank."""

    key: Hashable  #: the stream
    event: int  #: the event that raised it, counted from 0 over all events of the bank
    finding: Finding  #: the finding; its `at`, `since` and `started` count the events of this stream alone

    def __str__(self) -> str:
        return f"{self.key}: {self.finding}"

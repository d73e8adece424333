"""Detections against the truth, run lengths, and how well a classifier does as the stream goes on.

`score` holds the drifts of one stream against its changes and `summarise` adds up many such; `run_length` is for
streams that do not change; `prequential` follows accuracy, F1 and G-mean event by event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from statistics import fmean, median

import numpy as np
import numpy.typing as npt

from fourrates.drift import Drift
from fourrates.labels import Labels

Curve = npt.NDArray[np.float64]

FADED = 1e-290  # a sum so small is that of no event: below, doubles lose their digits


@dataclass(frozen=True, slots=True)
class Score:
    """How the drifts found in one stream compare with its changes.

    Attributes
    ----------
    hits : int
        Changes with a drift within the allowed delay.
    false_alarms : int
        Drifts in the paper's false-detection period (see `score`).
    delays : tuple of int or None
        For each change the events from it to the first drift before the next change, whether allowed or not; None if
        there was none.
    drifts : int
        How many were reported in all.
    """

    hits: int
    false_alarms: int
    delays: tuple[int | None, ...]
    drifts: int

    @property
    def changes(self) -> int:
        """How many changes there were."""
        return len(self.delays)

    @property
    def found(self) -> int:
        """Changes that were found before the next one, however late."""
        return sum(delay is not None for delay in self.delays)

    @property
    def hit_delays(self) -> tuple[int, ...]:
        """The delays of the hits alone, the shortest first: those of HLFR, which counts no late detection."""
        return tuple(sorted(delay for delay in self.delays if delay is not None)[: self.hits])

    @property
    def precision(self) -> float:
        """Of the drifts, the share that is the first within the allowed delay of a change; nan without drifts."""
        return _share(self.hits, self.drifts)

    @property
    def recall(self) -> float:
        """Of the changes, the share with a drift within the allowed delay; nan without changes."""
        return _share(self.hits, self.changes)


def score(
    drifts: Iterable[Drift | int], changes: int | Sequence[int], within: int, *, length: int | None = None
) -> Score:
    """Judge the drifts of a stream whose changes are known.

    **False alarms** are counted where the paper counts them (Wang & Abraham, 2015, section V). With one change: all of
    the stream before it. With several: from the middle of each concept up to the next change, so that a late detection
    is none. The paper leaves open what follows the last of several changes: from the middle of the last concept on
    drifts count if `length` says where the stream ends, and otherwise not. After a single change nothing counts.
    Without any change every drift does.

    **Precision, recall and delay** are those of HLFR (Yu & Abraham, 2017): the first drift within the allowed delay of
    a change is a true positive, every other drift a false positive, a change without one a false negative. So a late
    detection costs precision here, and is not a false alarm in the sense above. The delay is that of true positives:
    `hit_delays`, while `delays` has the late detections too.

    Parameters
    ----------
    drifts : iterable of Drift or int
        As found, or the events at which they were.
    changes : int or sequence of int
        The first event of each new concept.
    within : int
        The allowed delay: a hit is a drift at `change`, ..., `change + within - 1`, and before the next change.
    length : int, optional
        Events of the stream.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.evaluate import score
    >>> from fourrates.streams import SCENARIOS
    >>> drifts = fr.LFR().update_many(*SCENARIOS["Imbalance2"].stream(seed=1))
    >>> score(drifts, changes=5000, within=200)
    Score(hits=1, false_alarms=0, delays=(98,), drifts=1)

    Three changes; one found at once and once more, one late, one not at all; and a false alarm:

    >>> found = score([1010, 1300, 2600, 2900], changes=(1000, 2000, 3000), within=100, length=4000)
    >>> found
    Score(hits=1, false_alarms=2, delays=(10, 600, None), drifts=4)
    >>> found.precision, round(found.recall, 2), found.hit_delays
    (0.25, 0.33, (10,))
    """
    starts = [index(one) for one in (changes if isinstance(changes, Iterable) else [changes])]
    if within < 1:
        raise ValueError(f"within {within}: at least one event must be allowed")
    end = math.inf if length is None else length
    if any(late <= early for early, late in pairwise([-1, *starts, end])):
        raise ValueError(f"changes {tuple(starts)} do not rise within a stream of {end:,} events")
    found = _positions(drifts, end)
    delays = tuple(
        next((at - start for at in found if start <= at < stop), None)
        for start, stop in zip(starts, [*starts, math.inf][1:], strict=True)
    )
    return Score(
        hits=sum(delay is not None and delay < within for delay in delays),
        false_alarms=sum(low <= at < high for low, high in _false_periods(starts, end) for at in found),
        delays=delays,
        drifts=len(found),
    )


def _positions(drifts: Iterable[Drift | int], end: float) -> list[int]:
    """The events at which the drifts were found, in order."""
    found = sorted(one.at if isinstance(one, Drift) else index(one) for one in drifts)
    for at in found:
        if not 0 <= at < end:
            raise ValueError(f"a drift at {at:,} is not in a stream of {end:,} events")
    return found


def _false_periods(changes: Sequence[int], end: float) -> list[tuple[float, float]]:
    """Where a drift is a false alarm, from and before which event."""
    if len(changes) <= 1:
        return [(0, changes[0] if changes else math.inf)]
    last = [end] if math.isfinite(end) else []
    return [((start + stop) / 2, stop) for start, stop in pairwise([0, *changes, *last])]


@dataclass(frozen=True, slots=True)
class Summary:
    """Scores of many streams, added up.

    Attributes
    ----------
    runs : int
        Streams.
    changes, hits, false_alarms, drifts : int
        Of all of them.
    delays : tuple of int
        Of the changes that were found, however late.
    hit_delays : tuple of int
        Of the hits alone.
    """

    runs: int
    changes: int
    hits: int
    false_alarms: int
    drifts: int
    delays: tuple[int, ...]
    hit_delays: tuple[int, ...]

    @property
    def found(self) -> int:
        """Changes that were found before the next one, however late."""
        return len(self.delays)

    @property
    def false_per_run(self) -> float:
        """False alarms a stream; nan without streams."""
        return _share(self.false_alarms, self.runs)

    @property
    def mean_delay(self) -> float:
        """The mean over the changes that were found; nan if none was."""
        return fmean(self.delays) if self.delays else math.nan

    @property
    def mean_hit_delay(self) -> float:
        """The mean over the hits, as HLFR has it; nan if there was none."""
        return fmean(self.hit_delays) if self.hit_delays else math.nan

    @property
    def median_delay(self) -> float:
        """The median over the changes that were found; nan if none was."""
        return float(median(self.delays)) if self.delays else math.nan

    @property
    def precision(self) -> float:
        """Of all drifts, the share that is the first within the allowed delay of a change; nan without drifts."""
        return _share(self.hits, self.drifts)

    @property
    def recall(self) -> float:
        """Of all changes, the share with a drift within the allowed delay; nan without changes."""
        return _share(self.hits, self.changes)

    def __str__(self) -> str:
        return (
            f"{self.hits} hits of {self.changes}, {self.false_per_run:.2f} false alarms a run, "
            f"delay {self.mean_delay:.1f} in the mean and {self.median_delay:g} in the median of {self.found} found, "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        )


def summarise(scores: Iterable[Score]) -> Summary:
    """Add up the scores of many streams.

    Precision and recall are those of all drifts and all changes together, not means over the streams.

    Parameters
    ----------
    scores : iterable of Score
        One for each stream.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.evaluate import score, summarise
    >>> from fourrates.streams import SCENARIOS
    >>> streams = (SCENARIOS["Imbalance2"].stream(seed) for seed in range(100))
    >>> print(summarise(score(fr.LFR().update_many(*stream), 5000, within=200) for stream in streams))
    100 hits of 100, 0.01 false alarms a run, delay 96.2 in the mean and 87.5 in the median of 100 found,
    precision 0.943, recall 1.000
    """
    scores = tuple(scores)
    return Summary(
        runs=len(scores),
        changes=sum(one.changes for one in scores),
        hits=sum(one.hits for one in scores),
        false_alarms=sum(one.false_alarms for one in scores),
        drifts=sum(one.drifts for one in scores),
        delays=tuple(delay for one in scores for delay in one.delays if delay is not None),
        hit_delays=tuple(delay for one in scores for delay in one.hit_delays),
    )


@dataclass(frozen=True, slots=True)
class RunLength:
    """Run lengths of streams that do not change. Those of several streams add up with ``+``.

    Attributes
    ----------
    runs : tuple of int
        Events from the start, or from the alarm before, up to and including each alarm.
    censored : tuple of int
        Events from the last alarm of each stream to its end: runs that were still going on.
    """

    runs: tuple[int, ...] = ()
    censored: tuple[int, ...] = ()

    def __add__(self, other: RunLength) -> RunLength:
        return RunLength(self.runs + other.runs, self.censored + other.censored)

    @property
    def alarms(self) -> int:
        """How many."""
        return len(self.runs)

    @property
    def events(self) -> int:
        """How many, those of the unfinished runs too."""
        return sum(self.runs) + sum(self.censored)

    @property
    def mean(self) -> float:
        """Events an alarm; infinite without alarms.

        Unfinished runs count with their events, so that long runs are not left out. The estimate of greatest likelihood
        where an alarm is as likely at every event.
        """
        return self.events / self.alarms if self.alarms else math.inf

    @property
    def error(self) -> float:
        """The standard error of the mean, where an alarm is as likely at every event; infinite without alarms."""
        return self.mean / math.sqrt(self.alarms) if self.alarms else math.inf

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The exact confidence interval of the mean for a Poisson number of alarms (Garwood, 1936).

        Parameters
        ----------
        confidence : float
            With what probability, at least, it contains the true mean.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence {confidence} is not in (0, 1)")
        tail = (1 - confidence) / 2
        most = _poisson_mean(self.alarms, tail)
        least = _poisson_mean(self.alarms - 1, 1 - tail) if self.alarms else 0.0
        return self.events / most, self.events / least if least else math.inf


def run_length(drifts: Iterable[Drift | int], length: int) -> RunLength:
    """Take the run lengths of a stream that does not change.

    Parameters
    ----------
    drifts : iterable of Drift or int
        As found, or the events at which they were.
    length : int
        Events of the stream.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.evaluate import run_length
    >>> from fourrates.streams import SCENARIOS
    >>> stream = SCENARIOS["Balance1"].stream(seed=1, length=2_000_000, change=2_000_000)
    >>> found = run_length(fr.LFR(detect=1e-4).update_many(*stream), 2_000_000)
    >>> f"{found.alarms} alarms, one in {found.mean:,.0f} events, standard error {found.error:,.0f}"
    '301 alarms, one in 6,645 events, standard error 383'
    >>> [round(limit) for limit in found.interval()]
    [5935, 7464]
    """
    ends = [-1, *_positions(drifts, length), length - 1]
    *runs, rest = (late - early for early, late in pairwise(ends))
    return RunLength(tuple(runs), (rest,))


def _poisson_mean(most: int, probability: float) -> float:
    """The mean of a Poisson count that is at most `most` with this probability."""
    counts = np.arange(most + 1)
    factorials = np.array([math.lgamma(count + 1) for count in range(most + 1)])

    def chance(mean: float) -> float:
        return float(np.exp(counts * math.log(mean) - mean - factorials).sum())

    low, high = 0.0, most + 1.0
    while chance(high) > probability:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if chance(middle) > probability else (low, middle)
    return middle


@dataclass(frozen=True, slots=True)
class Prequential:
    """How well the predictions did, after each event: curves as long as the stream.

    Attributes
    ----------
    accuracy : array of float
    f1 : array of float
        2 TP / (2 TP + FP + FN) of the positive class; nan while it was neither seen nor predicted.
    g_mean : array of float
        The geometric mean of the recalls of the classes seen.
    """

    accuracy: Curve
    f1: Curve
    g_mean: Curve


@dataclass(frozen=True, slots=True)
class Totals:
    """How well the predictions of a whole stream did: accuracy, F1 and G-mean, nan where there is nothing to say."""

    accuracy: float
    f1: float
    g_mean: float


def prequential(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    fading: float | None = None,
    window: int | None = None,
    labels: Iterable[Hashable] = (0, 1),
    positive: Hashable = None,
) -> Prequential:
    """Follow accuracy, F1 and G-mean event by event: each prediction was made before its label was known.

    A class not seen (in the window) has no recall and is left out of G-mean.

    Parameters
    ----------
    y_true, y_pred : arrays
        Labels.
    fading : float, optional
        An event counts this much less with each one that follows it, such as 0.999; in (0, 1).
    window : int, optional
        Only the last so many events count. Without either all do, alike.
    labels : iterable of hashable
        All classes.
    positive : label, optional
        The one whose F1 is taken; if not given, the second of two, and with more the mean over the classes.

    Examples
    --------
    The accuracy does not show what G-mean shows:

    >>> from fourrates.evaluate import prequential
    >>> from fourrates.streams import SCENARIOS
    >>> curves = prequential(*SCENARIOS["Imbalance2"].stream(seed=1), window=1000)
    >>> for at in (4_999, 5_999):
    ...     print(f"{curves.accuracy[at]:.2f} {curves.f1[at]:.2f} {curves.g_mean[at]:.2f}")
    0.79 0.58 0.78
    0.79 0.34 0.49
    """
    if fading is not None and window is not None:
        raise ValueError("events are forgotten by fading or by a window, not by both")
    if fading is not None and not 0 < fading < 1:
        raise ValueError(f"fading {fading} is not in (0, 1)")
    if window is not None and window < 1:
        raise ValueError(f"window {window}: at least one event must count")

    def sums(events: npt.NDArray[np.bool_]) -> Curve:
        return _faded(events, fading) if fading is not None else _windowed(events, window)

    return Prequential(*_measures(y_true, y_pred, labels, positive, sums))


def totals(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: Iterable[Hashable] = (0, 1),
    positive: Hashable = None,
) -> Totals:
    """Accuracy, F1 and G-mean of a whole stream.

    Parameters
    ----------
    y_true, y_pred : arrays
        Labels.
    labels : iterable of hashable
        All classes.
    positive : label, optional
        The one whose F1 is taken; if not given, the second of two, and with more the mean over the classes.

    Examples
    --------
    >>> from fourrates.evaluate import totals
    >>> totals(["spam", "ham", "ham", "ham"], ["ham", "ham", "ham", "ham"], labels=("ham", "spam"))
    Totals(accuracy=0.75, f1=0.0, g_mean=0.0)
    """
    measures = _measures(y_true, y_pred, labels, positive, lambda events: np.array([events.sum()], float))
    return Totals(*(float(one[0]) for one in measures))


def _measures(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    labels: Iterable[Hashable],
    positive: Hashable,
    sums: Callable[[npt.NDArray[np.bool_]], Curve],
) -> tuple[Curve, Curve, Curve]:
    """Accuracy, F1 and G-mean, from what `sums` makes of events that happened or did not."""
    known = Labels(labels)
    truth, guess = known.encode(y_true, "y_true"), known.encode(y_pred, "y_pred")
    if truth.size != guess.size:
        raise ValueError(f"y_true has {truth.size} labels, y_pred has {guess.size}")
    scored = _scored(known, positive)
    right = truth == guess
    events = sums(np.ones(truth.size, bool))
    logs, recalled, f1, counted = (np.zeros(events.size) for _ in range(4))
    for code in range(len(known.values)):
        true = truth == code
        hits, seen = sums(true & right), sums(true)
        with np.errstate(divide="ignore"):  # a recall of 0: G-mean is 0
            _add(logs, recalled, np.log(_ratio(hits, seen)))
        if code in scored:
            _add(f1, counted, _ratio(2 * hits, seen + sums(guess == code)))
    return _ratio(sums(right), events), _ratio(f1, counted), np.exp(_ratio(logs, recalled))


def _add(total: Curve, count: Curve, values: Curve) -> None:
    """Add the values that are there, and count them."""
    there = ~np.isnan(values)
    total[there] += values[there]
    count += there


def _scored(labels: Labels, positive: Hashable) -> range:
    """The codes of the classes whose F1 is taken."""
    if positive is None:
        return range(1, 2) if len(labels.values) == 2 else range(len(labels.values))
    code = labels.code(positive)
    if code < 0:
        raise ValueError(f"positive {positive!r} is not one of {labels.values!r}")
    return range(code, code + 1)


def _windowed(events: npt.NDArray[np.bool_], window: int | None) -> Curve:
    sums = np.cumsum(events, dtype=float)  # whole numbers: exact
    if window is not None:
        sums[window:] -= sums[:-window].copy()
    return sums


def _faded(events: npt.NDArray[np.bool_], fading: float) -> Curve:
    """S(t) = fading S(t - 1) + event(t): each round doubles how many events a sum contains."""
    sums, span = events.astype(float), 1
    while span < sums.size and (weight := fading**span) > 0:
        sums[span:] += weight * sums[:-span]
        span *= 2
    sums[sums < FADED] = 0
    return sums


def _ratio(part: Curve, whole: Curve) -> Curve:
    ratio = np.full(whole.size, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan

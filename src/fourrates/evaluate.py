"""Detections against the truth, and run lengths.

`score` compares the drifts of one stream with its changes, counted as the paper and HLFR do, and `summarise` adds up
many scores. `run_length` is for streams that do not change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from statistics import fmean, median

from fourrates.findings import Drift

__all__ = ["RunLength", "Score", "Summary", "run_length", "score", "summarise"]


@dataclass(frozen=True, slots=True)
class Score:
    """How the drifts found in one stream compare with its changes."""

    hits: int  #: changes with a drift within the allowed delay
    false_alarms: int  #: drifts in the paper's false-detection period (see `score`)
    #: for each change the events from it to the first drift before the next change, whether allowed or not; None if
    #: there was none
    delays: tuple[int | None, ...]
    drifts: int  #: drifts in all

    @property
    def changes(self) -> int:
        """How many changes there were."""
        return len(self.delays)

    @property
    def found(self) -> int:
        """Changes that were found before the next one, however late."""
        return sum(delay is not None for delay in self.delays)

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

    **False alarms** are counted as in the paper (Wang & Abraham, 2015, section V): with one change, all before it; with
    several, from the middle of each concept up to the next change, so that a late detection is none. After the last of
    several, from the middle of the last concept if `length` is given. Without any change every drift counts.

    **Precision and recall** are those of HLFR (Yu & Abraham, 2017). Only the first drift within the allowed
    delay of a change is a true positive. So a late detection costs precision, but is no false alarm in the sense above.

    Parameters
    ----------
    drifts : iterable of Drift or int
        As found, or the events at which they were.
    changes : int or sequence of int
        The first event of each new concept.
    within : int
        The allowed delay. A hit is a drift at `change`, ..., `change + within - 1`, and before the next change.
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

    One of three changes found at once and again, one late, one not at all, and a false alarm:

    >>> score([1010, 1300, 2600, 2900], changes=(1000, 2000, 3000), within=100, length=4000)
    Score(hits=1, false_alarms=2, delays=(10, 600, None), drifts=4)
    """
    starts = [index(change) for change in (changes if isinstance(changes, Iterable) else [changes])]
    if within < 1:
        raise ValueError(f"within {within}: at least one event must be allowed")
    end = math.inf if length is None else length
    if any(late <= early for early, late in pairwise([-1, *starts, end])):
        raise ValueError(f"changes {tuple(starts)} do not rise within a stream of {end:,} events")
    found = positions(drifts, end)
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


def positions(drifts: Iterable[Drift | int], end: float) -> list[int]:
    """The events at which the drifts were found, in order."""
    found = sorted(drift.at if isinstance(drift, Drift) else index(drift) for drift in drifts)
    for at in found:
        if not 0 <= at < end:
            raise ValueError(f"a drift at {at:,} is not in a stream of {end:,} events")
    return found


def _false_periods(changes: Sequence[int], end: float) -> list[tuple[float, float]]:
    """The events from which and before which a drift is a false alarm."""
    if len(changes) <= 1:
        return [(0, changes[0] if changes else math.inf)]
    last = [end] if math.isfinite(end) else []
    return [((start + stop) / 2, stop) for start, stop in pairwise([0, *changes, *last])]


@dataclass(frozen=True, slots=True)
class Summary:
    """Scores of many streams, added up; `delays` are of the changes found, however late.

    Precision and recall are those of all drifts and all changes together, not means over the streams.
    """

    runs: int
    changes: int
    hits: int
    false_alarms: int
    drifts: int
    delays: tuple[int, ...]

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
        changes=sum(score.changes for score in scores),
        hits=sum(score.hits for score in scores),
        false_alarms=sum(score.false_alarms for score in scores),
        drifts=sum(score.drifts for score in scores),
        delays=tuple(delay for score in scores for delay in score.delays if delay is not None),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


@dataclass(frozen=True, slots=True)
class RunLength:
    """Run lengths of streams that do not change. Those of several streams add up with ``+``."""

    runs: tuple[int, ...] = ()  #: events from the start, or from the alarm before, up to and including each alarm
    censored: tuple[int, ...] = ()  #: events from the last alarm of each stream to its end, the unfinished runs

    def __add__(self, other: RunLength) -> RunLength:
        return RunLength(self.runs + other.runs, self.censored + other.censored)

    @property
    def alarms(self) -> int:
        """How many."""
        return len(self.runs)

    @property
    def events(self) -> int:
        """Events of all runs, unfinished ones too."""
        return sum(self.runs) + sum(self.censored)

    @property
    def mean(self) -> float:
        """Events an alarm; infinite without alarms.

        Unfinished runs count with their events, so that long runs are not left out. The maximum-likelihood estimate if
        an alarm is equally likely at every event.
        """
        return self.events / self.alarms if self.alarms else math.inf

    @property
    def standard_error(self) -> float:
        """Of the mean, if an alarm is equally likely at every event; infinite without alarms."""
        return self.mean / math.sqrt(self.alarms) if self.alarms else math.inf


def run_length(drifts: Iterable[Drift | int], length: int) -> RunLength:
    """The run lengths of a stream of `length` events that does not change.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.evaluate import run_length
    >>> from fourrates.streams import SCENARIOS
    >>> stream = SCENARIOS["Balance1"].stream(seed=1, length=2_000_000, change=2_000_000)
    >>> runs = run_length(fr.LFR(detect=1e-4).update_many(*stream), 2_000_000)
    >>> f"{runs.alarms} alarms, one in {runs.mean:,.0f} events, standard error {runs.standard_error:,.0f}"
    '301 alarms, one in 6,645 events, standard error 383'
    """
    ends = [-1, *positions(drifts, length), length - 1]
    *runs, rest = (late - early for early, late in pairwise(ends))
    return RunLength(tuple(runs), (rest,))

"""Detections against the truth: hits, false alarms and delays, as the paper and HLFR count them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from statistics import fmean, median

from fourrates.findings import Drift


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
        Drifts in all.
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
        """The delays of the hits alone, the shortest first, as in HLFR, which counts no late detection."""
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

    **False alarms** are counted where the paper counts them (Wang & Abraham, 2015, section V). With one change, that is
    all of the stream before it and nothing after. With several, it is from the middle of each concept up to the next
    change, so that a late detection is none. After the last of several the paper leaves it open; drifts count from the
    middle of the last concept on if `length` gives the end of the stream, and otherwise not. Without any change every
    drift counts.

    **Precision, recall and delay** are those of HLFR (Yu & Abraham, 2017). The first drift within the allowed delay of
    a change is a true positive, every other drift a false positive, a change without one a false negative. So a late
    detection costs precision here, but is not a false alarm in the sense above. The delay is that of true positives:
    `hit_delays`, while `delays` has the late detections too.

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

    Three changes; one found at once and once more, one late, one not at all; and a false alarm:

    >>> found = score([1010, 1300, 2600, 2900], changes=(1000, 2000, 3000), within=100, length=4000)
    >>> found
    Score(hits=1, false_alarms=2, delays=(10, 600, None), drifts=4)
    >>> found.precision, round(found.recall, 2), found.hit_delays
    (0.25, 0.33, (10,))
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
        changes=sum(score.changes for score in scores),
        hits=sum(score.hits for score in scores),
        false_alarms=sum(score.false_alarms for score in scores),
        drifts=sum(score.drifts for score in scores),
        delays=tuple(delay for score in scores for delay in score.delays if delay is not None),
        hit_delays=tuple(delay for score in scores for delay in score.hit_delays),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan

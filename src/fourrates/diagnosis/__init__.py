"""Look at a stream before watching it: :func:`diagnose` reads it once, in bounded memory, and describes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.budget.falls import POINTS, Fall, falls
from fourrates.budget.words import UNITS, rate_between
from fourrates.detectors import FourRates
from fourrates.diagnosis.repeats import Ids, Rows
from fourrates.diagnosis.result import Clocked, Diagnosis, Repeats
from fourrates.events.batch import Table
from fourrates.events.columns import numbers, pick
from fourrates.events.door import By
from fourrates.frames import PeekedBatches, make, open_events, reusable
from fourrates.io import Batch, Columns, Events, InputError
from fourrates.io.late import Joined, Order
from fourrates.labels import rate_names
from fourrates.watch import Watch
from fourrates.watch.dispersion import dispersions

__all__ = ["Clocked", "Diagnosis", "Repeats", "diagnose"]

CLASSES = 10  # whose falls are simulated, the most frequent ones
MOST_DAYS = 40_000  # whose events are counted
JOINING = ("unmatched", "delays")  # data problems that are listed among the choices


def diagnose(
    source: Any,
    truth: str | None = None,
    pred: str | None = None,
    score: str | None = None,
    threshold: float | None = None,
    by: By = None,
    time: str | None = None,
    id: str | None = None,
    positive: Hashable = None,
    labels: Iterable[Hashable] | None = None,
    arl: float | None = None,
    budget: str | float | None = None,
    points: Sequence[float] = POINTS,
    labels_from: Any = None,
    order: Order = "prediction",
) -> Diagnosis:
    """Diagnose a stream before watching it, with threats to a budget, its meaning here, and the falls it would find.

    Parameters
    ----------
    source : frame, path, list of paths, pair of arrays
        As for :func:`~fourrates.detect`; files are read once, in batches.
    truth, pred, score, time, id : str, optional
        Columns of true labels, of predictions or else of scores, of times and of ids; found by common names.
    threshold : float, optional
        The score from which on the prediction is positive; 0.5.
    by : str or list of str, optional
        Column of the segments; order is examined within each.
    positive, labels
        As for :func:`~fourrates.detect`.
    arl, budget : optional
        As for :func:`~fourrates.detect`.
    points : sequence of float
        Falls of a recall, in points, whose delays are estimated; larger ones than the recall are left out.
    labels_from, order : optional
        A second source with the true labels, joined by id, as for :func:`~fourrates.detect`.

    Examples
    --------
    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(1)
    >>> truth = np.repeat(random.random(50_000) < 0.3, 2)
    >>> wrong = np.repeat(random.random(50_000) < 0.1, 2)  # every event twice
    >>> found = fr.diagnose((truth, truth ^ wrong), arl=100_000, points=[10])
    >>> found.problems[0]
    'every event is there twice in a row: leave one of each out'
    >>> found.alarms_a_month is None  # the pairs have no times
    True
    """
    messages: list[str] = []
    source = reusable(source)
    asked = Columns(truth, pred, score, time, by, id)
    joining: dict[str, Any] = {} if labels_from is None else {"order": order}
    choices = {"labels": labels, "positive": positive, "threshold": threshold, "bad": "skip", **joining}
    events = open_events(source, asked, reusable(labels_from), on_message=messages.append, **choices)
    events.optional = () if labels_from is not None else ("id",)  # which shows duplicates
    look = _Look(events)
    begun = PeekedBatches(events, look.batches())
    if begun.is_empty:
        raise InputError("no row has both a label and a prediction")
    detector = make(FourRates, events.labels, arl=arl, budget=budget, times=begun.times)
    watch, season = Watch(detector), begun.season()
    drifts = 0
    for batch in begun:
        drifts += sum(finding.kind == "drift" for finding in watch.update(batch, events.keys))
    warnings = events.data_warnings()
    messages += [warnings.pop(topic) for topic in JOINING if topic in warnings]
    dispersion = dispersions(watch)
    sizes = np.sort(watch.segments.progress(np.arange(len(watch.segments)))[0])
    scores = (events.warnings.lowest, events.warnings.highest)
    return Diagnosis(
        events=watch.events,
        rows=events.rows,
        lacking=MappingProxyType(dict(events.lacking)),
        streams=None if events.columns.by is None else sizes.size,
        labels=tuple(events.labels.values),
        confusion=tuple(tuple(row) for row in look.counts.tolist()),
        clock=_clocked(watch, look, events),
        dispersion=MappingProxyType(dispersion),
        season=season,
        repeats=Repeats(
            look.ids.repeated if look.has_ids else None,
            look.ids.is_estimate,
            look.rows.repeated,
            look.rows.twice_each,
        ),
        scores=scores if np.isfinite(scores).all() else None,
        threshold=None if events.columns.score is None else events.threshold,
        arl=float(detector.parameters["arl"]),
        drifts=drifts,
        falls=tuple(_falls(detector, look.counts, dispersion, points)),
        messages=tuple(messages),
        warnings=MappingProxyType(warnings),
        middling=None if events.columns.by is None else int(sizes[sizes.size // 2]),
    )


class _Look:
    """Everything followed while events pass."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.rows, self.ids = Rows(), Ids()
        self.has_ids = False
        self.days: Counter[int] = Counter()  # events of each
        self.unknown = 0  # events without a time
        self.counts: npt.NDArray[np.int64] = np.zeros((0, 0), np.int64)

    def batches(self) -> Iterator[Batch]:
        """The batches, each examined before it is passed on; those with late labels have lost their tables."""
        if isinstance(self._events, Joined):
            for batch in self._events:
                self._examine(None, batch)
                yield batch
            return
        for table in self._events.tables():
            for batch in self._events.batch(table):
                self._examine(table, batch)
                yield batch

    def _examine(self, table: Table | None, batch: Batch) -> None:
        classes = len(self._events.labels.values)
        if not self.counts.size:  # the classes are known by now
            self.counts = np.zeros((classes, classes), np.int64)
        cells = batch.truths.astype(np.int64) * classes + batch.preds
        self.counts += np.bincount(cells, minlength=classes**2).reshape(classes, classes)
        identifying: list[npt.NDArray[Any]] = [cells]
        if batch.keys is not None:
            identifying.append(batch.keys)
        if batch.times is not None:
            self._count_days(batch.times)
            identifying.append(batch.times)
        if table is not None:
            identifying += self._of_table(table, batch)
        self.rows.add(*identifying)

    def _count_days(self, times: npt.NDArray[np.datetime64]) -> None:
        known = times[~np.isnat(times)]
        self.unknown += times.size - known.size
        days, counts = np.unique(known.astype("M8[D]").astype(np.int64), return_counts=True)
        for day, count in zip(days.tolist(), counts.tolist(), strict=True):
            if day in self.days or len(self.days) < MOST_DAYS:
                self.days[day] += count

    def _of_table(self, table: Table, batch: Batch) -> list[npt.NDArray[Any]]:
        """Count ids, which only a table has; returns its scores."""
        kept, columns = np.searchsorted(table.rows, batch.rows), self._events.columns
        if columns.id is not None:
            self.has_ids = True
            self.ids.add(pick(table.data[columns.id], kept))
        return [] if columns.score is None else [numbers(table.data[columns.score])[0][kept]]


def _clocked(watch: Watch, look: _Look, events: Events) -> Clocked | None:
    first, last = watch.first_time, watch.last_time
    if first is None or last is None:
        return None
    rate = rate_between(watch.events - look.unknown, first, last)
    return Clocked(
        first,
        last,
        events.utc,
        None if rate is None else UNITS["day"] * rate,
        _days(look.days),
        look.unknown,
        events.warnings.backwards,
        events.warnings.largest_step,
    )


def _days(counts: Counter[int]) -> tuple[int, int, int] | None:
    """Events of a quiet day, of a middling and of a busy one (a tenth are beyond); whole days only, at least 3."""
    first, last = min(counts), max(counts)
    inside = [counts[day] for day in range(first + 1, last)] if last - first <= MOST_DAYS else []
    if len(inside) < 3:
        return None
    low, middle, high = np.quantile(inside, [0.1, 0.5, 0.9]).round().astype(int).tolist()
    return low, middle, high


def _falls(
    detector: Any, counts: npt.NDArray[np.int64], dispersion: dict[str, float], points: Sequence[float]
) -> list[Fall]:
    """How soon falls would be found, if the rates are known as well as these events allow."""
    events = counts.sum(1)
    if (events == 0).any():
        return []
    names = rate_names(detector.labels.values)
    order = [detector.labels.values.index(label) for label in detector.labels.given]
    known = detector.parameters | {"reference": counts[np.ix_(order, order)].tolist(), "after": "restart"}
    simulated = []
    for which in sorted(np.argsort(-events, kind="stable")[:CLASSES].tolist()):
        own = FourRates(**known | {"dispersion": max(dispersion.get(names[which], 1.0), 1.0)})
        simulated += falls(own, counts, points, classes=[which], history=0)
    return simulated

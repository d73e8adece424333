"""Look at a stream before watching it: :func:`diagnose` reads it once, in bounded memory, and describes it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.budget.falls import Fall, falls
from fourrates.detectors import FourRates
from fourrates.diagnosis.order import Clock
from fourrates.diagnosis.repeats import Ids, Rows
from fourrates.diagnosis.result import Clocked, Diagnosis, Repeats
from fourrates.events.batch import Table
from fourrates.events.columns import numbers
from fourrates.events.door import By
from fourrates.frames import PeekedBatches, make, open_events, reusable, times_of
from fourrates.io import Batch, Columns, Events, InputError
from fourrates.io.events import guess_column
from fourrates.io.late import Joined, Order
from fourrates.labels import Labels, rate_names
from fourrates.watch import Watch
from fourrates.watch.dispersion import dispersions

__all__ = ["Clocked", "Diagnosis", "Repeats", "diagnose"]

POINTS = (2.0, 5.0, 10.0, 20.0)
CLASSES = 10  # whose falls are simulated, the most frequent ones


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
        Falls of a recall, in points, whose delays are estimated.
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
    said: list[str] = []
    source = reusable(source)
    asked = Columns(truth, pred, score, time, by, id)
    events: Events
    if labels_from is None:
        known = None if labels is None else Labels(labels, positive)
        events = _Identified(source, asked, known, threshold, "skip", said.append, positive)
    else:
        more: dict[str, Any] = {"threshold": threshold, "labels": labels, "positive": positive, "order": order}
        events = open_events(source, asked, reusable(labels_from), bad="skip", say=said.append, **more)
    look = _Look(events)
    begun = PeekedBatches(look.batches())
    if begun.is_empty:
        raise InputError("no row has both a label and a prediction")
    detector = make(FourRates, events.labels, arl=arl, budget=budget, times=times_of(events, begun))
    watch, season = Watch(detector), begun.season()
    drifts = 0
    for batch in begun:
        drifts += sum(finding.kind == "drift" for finding in watch.update(batch, events.keys))
    warned = events.data_warnings()
    said += [warned[topic] for topic in ("unmatched", "delays") if topic in warned]
    dispersion = dispersions(watch)
    return Diagnosis(
        events=watch.events,
        rows=events.rows,
        lacking=MappingProxyType(dict(events.lacking)),
        streams=None if events.columns.by is None else len(watch.segments),
        labels=tuple(events.labels.values),
        confusion=tuple(tuple(row) for row in look.counts.tolist()),
        clock=_clocked(look.clock, events.utc),
        dispersion=MappingProxyType(dispersion),
        season=season,
        repeats=_repeats(look),
        scores=look.scores,
        threshold=None if events.columns.score is None else events.threshold,
        arl=float(detector.parameters["arl"]),
        drifts=drifts,
        falls=tuple(_falls(detector, look.counts, dispersion, points)),
        said=tuple(said),
        labelled_otherwise=warned.get("labelled"),
    )


class _Identified(Events):
    """Events with their ids too, if a column looks like that."""

    def resolve(self, names: Sequence[str], times: Sequence[str] = (), source: str = "") -> Columns:
        if self.columns.id is None and not self.settled:
            found = guess_column("id", names, self.columns.used())
            self.columns = replace(self.columns, id=found)
            if found is not None:
                self._say(f"ids in column {found!r}")
        return super().resolve(names, times, source)


class _Look:
    """Everything followed while events pass."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.clock, self.rows, self.ids = Clock(), Rows(), Ids()
        self.has_ids = False
        self.scores: tuple[float, float] | None = None
        self.counts: npt.NDArray[np.int64] = np.zeros((0, 0), np.int64)

    def batches(self) -> Iterator[Batch]:
        """The batches, each examined before it is passed on; those with late labels have lost their tables."""
        if isinstance(self._events, Joined):
            for batch in self._events:
                self._take(None, batch)
                yield batch
            return
        for table in self._events.tables():
            for batch in self._events.batch(table):
                self._take(table, batch)
                yield batch

    def _take(self, table: Table | None, batch: Batch) -> None:
        columns, classes = self._events.columns, len(self._events.labels.values)
        if not self.counts.size:  # the classes are known by now
            self.counts = np.zeros((classes, classes), np.int64)
        cells = batch.truths.astype(np.int64) * classes + batch.preds
        self.counts += np.bincount(cells, minlength=classes**2).reshape(classes, classes)
        told_apart: list[npt.NDArray[Any]] = [cells]
        if batch.keys is not None:
            told_apart.append(batch.keys)
        if batch.times is not None:
            self.clock.take(batch.times, batch.keys)
            told_apart.append(batch.times)
        if table is not None:
            told_apart += self._of_table(table, batch, columns)
        self.rows.take(*told_apart)

    def _of_table(self, table: Table, batch: Batch, columns: Columns) -> list[npt.NDArray[Any]]:
        """Take ids and scores, which only a table has; returns the scores."""
        kept, scored = np.searchsorted(table.rows, batch.rows), []
        if columns.score is not None:
            scores = numbers(table.data[columns.score])[0][kept]
            scored.append(scores)
            low, high = float(scores.min()), float(scores.max())
            self.scores = (low, high) if self.scores is None else (min(self.scores[0], low), max(self.scores[1], high))
        if columns.id is not None:
            column = table.data[columns.id]
            self.has_ids = True
            self.ids.take([column[at] for at in kept] if isinstance(column, list) else column.take(kept))
        return scored


def _clocked(clock: Clock, utc: bool) -> Clocked | None:
    if clock.first is None or clock.last is None:
        return None
    return Clocked(
        np.datetime64(clock.first, "us"),
        np.datetime64(clock.last, "us"),
        utc,
        None if clock.rate is None else 86_400 * clock.rate,
        clock.days(),
        clock.unknown,
        clock.backwards,
        np.timedelta64(clock.largest_step, "us"),
    )


def _repeats(look: _Look) -> Repeats:
    ids = look.ids.repeated if look.has_ids else None
    return Repeats(ids, look.ids.is_estimate, look.rows.repeated, look.rows.twice_each)


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
    found = []
    for which in sorted(np.argsort(-events, kind="stable")[:CLASSES].tolist()):
        own = FourRates(**known | {"dispersion": max(dispersion.get(names[which], 1.0), 1.0)})
        found += falls(own, counts, points, classes=[which], history=0)
    return found

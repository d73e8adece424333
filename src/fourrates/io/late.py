"""Two sources, predictions and labels, to batches of events: rows are brought together by id.

:func:`joined` reads both as :func:`~fourrates.io.read` does and gives :class:`Joined`, which has the face of
:class:`~fourrates.io.Events`: batches of coded pairs, and in the end the counts of what still waits, what came twice
and what never had a counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.events.batch import Batch
from fourrates.events.door import Columns
from fourrates.events.rows import Bad, InputError
from fourrates.io.events import classes_of
from fourrates.io.lines import MAX_LINE
from fourrates.io.prefetch import prefetch
from fourrates.io.remarks import Remarks, skipped
from fourrates.io.sides import ROW_BITS, LateLabels, Predictions, Rows
from fourrates.join import LabelJoin
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.clock import Times
    from fourrates.join.paired import Pairs

    Fingerprints = npt.NDArray[np.void]


def joined(
    predictions: Any,
    labels_from: Any,
    *,
    columns: Columns | None = None,
    label_columns: Columns | None = None,
    labels: Iterable[Hashable] | None = (0, 1),
    positive: Hashable = None,
    threshold: float | None = None,
    bad: Bad = "reject",
    max_waiting: int = 10_000_000,
    max_wait: timedelta | None = None,
    max_line: int = MAX_LINE,
    say: Callable[[str], None] | None = None,
) -> Joined:
    """Batches of events from predictions and labels that stand in different places.

    Where both have a time, rows are taken in the order of their times, and an event happens when both its rows are
    there. Otherwise events come in the order of the source that has times, or in that of the predictions.

    Parameters
    ----------
    predictions, labels_from
        Sources as for :func:`~fourrates.io.read`.
    columns : Columns, optional
        Of the predictions: `id`, `pred` or `score`, `time`, `by`. What is left out is guessed.
    label_columns : Columns, optional
        Of the labels: `id`, `truth`, `time`. An `id` that is left out is that of the predictions.
    labels, positive, threshold, bad, max_line, say
        As for :func:`~fourrates.io.read`.
    max_waiting, max_wait
        As for :class:`~fourrates.LabelJoin`; `max_wait` needs a time in both sources.

    Examples
    --------
    >>> from fourrates.io import joined
    >>> events = joined(
    ...     {"id": [1, 2, 3], "prediction": [0, 1, 1]},
    ...     {"id": [3, 1, 9, 1], "label": [1, 1, 0, 1]},
    ... )
    >>> for batch in events:
    ...     print(batch.truths, batch.preds, batch.rows)
    [1 1] [0 1] [1 3]
    >>> {name: count for name, count in events.counts.items() if count}
    {'pairs': 2, 'waiting': 1, 'waiting_labels': 1, 'repeated_labels': 1}
    """
    known = None if labels is None else Labels(labels, positive)
    first = Predictions(predictions, columns or Columns(), known, threshold, bad, say, positive, max_line)
    second = LateLabels(labels_from, label_columns or Columns(), known, None, bad, say, None, max_line)
    return Joined(first, second, max_waiting, max_wait)


class Joined:
    """The batches of two sources brought together. Iterate over it once.

    The rows and the source of a batch are those of the predictions; its times are those at which the pairs were
    complete.

    Attributes
    ----------
    join : LabelJoin
        What waits, and the counts.
    columns, label_columns : Columns
        What is read, guesses included; known from the first batch on.
    keys : list
        The streams met so far, when a `by` column is read.
    rows, skipped : int
        Rows read from both, and those among them that were skipped.
    sources : list of str
        The files read so far.
    utc : bool
        Whether times carry a zone; they are then given in UTC.
    """

    def __init__(
        self,
        predictions: Predictions,
        labels_from: LateLabels,
        max_waiting: int = 10_000_000,
        max_wait: timedelta | None = None,
    ) -> None:
        self._predictions, self._labels_from = predictions, labels_from
        self.keys = predictions.keys
        self.join = LabelJoin(predictions.labels.given, predictions.positive, max_waiting, max_wait)

    @property
    def labels(self) -> Labels:
        """The classes; known from the first batch on, where they are taken from the data."""
        return self._predictions.labels

    @property
    def counts(self) -> dict[str, int]:
        """What waits and what became of the rest, as :attr:`fourrates.LabelJoin.counts` has it."""
        return self.join.counts

    @property
    def columns(self) -> Columns:
        """Which column of the predictions is what."""
        return self._predictions.columns

    @property
    def label_columns(self) -> Columns:
        """Which column of the labels is what."""
        return self._labels_from.columns

    @property
    def threshold(self) -> float:
        """The score from which on the positive label is predicted."""
        return self._predictions.threshold

    @property
    def rows(self) -> int:
        """Rows read from both sources."""
        return self._predictions.rows + self._labels_from.rows

    @property
    def skipped(self) -> int:
        """Rows among them that were skipped."""
        return self._predictions.skipped + self._labels_from.skipped

    @property
    def sources(self) -> list[str]:
        """The files read so far."""
        return self._predictions.sources + self._labels_from.sources

    @property
    def utc(self) -> bool:
        """Whether times carry a zone."""
        return self._predictions.utc or self._labels_from.utc

    def ahead(self) -> Iterator[Batch]:
        """Iterate with the next batches in the making."""
        return prefetch(iter(self))

    def __iter__(self) -> Iterator[Batch]:
        first, second = self._predictions, self._labels_from
        tables, id_name = first.start(None)
        late_tables, _ = second.start(id_name)
        if not first.labelled:
            self._learn_labels()
        first.join = second.join = self.join
        timed = first.columns.time is not None, second.columns.time is not None
        if self.join.max_wait is not None and not all(timed):
            raise InputError("a longest wait needs a column of times both with the predictions and with the labels")
        predictions = (first.rows_of(table, timed[0]) for table in tables)
        labels = (second.rows_of(table, timed[1]) for table in late_tables)
        if all(timed):
            yield from self._by_time(predictions, labels)
        elif timed[1]:
            yield from self._one_side(predictions, False)
            yield from self._one_side(labels, True)
        else:
            yield from self._one_side(labels, True)
            yield from self._one_side(predictions, False)

    def _learn_labels(self) -> None:
        """Take the labels from the first rows of both sources."""
        first, second = self._predictions, self._labels_from
        preds = classes_of(first.first, first.columns.pred)
        truths = classes_of(second.first, second.columns.truth)
        read = [side.first for side in (first, second) if side.first is not None]
        rows = sum(table.size for table in read)
        first.take_labels(truths, preds, " and ".join(table.source for table in read), rows)
        second.use_labels(first.labels)
        self.join = LabelJoin(first.labels.given, first.positive, self.join.max_waiting, self.join.max_wait)

    def odd(self) -> dict[str, str]:
        """What is odd about what was read, in sentences, by what each is about."""
        left_out = skipped(self.rows, self.skipped, self._labels_from.skipped)
        threshold = None if self.columns.score is None else self.threshold
        said = {"unmatched": self._unmatched(), "skipped": left_out}
        said |= self._predictions.remarks.sentences(self.labels, threshold)
        return {about: sentence for about, sentence in said.items() if sentence is not None}

    def _unmatched(self) -> str | None:
        """What found no counterpart, in a sentence, if anything is like that."""
        counts = self.counts
        told = (
            (counts["waiting"], "prediction waits", "predictions wait", "for a label"),
            (counts["expired"] + counts["displaced"], "prediction", "predictions", "left without a label"),
            (counts["repeated_predictions"], "prediction", "predictions", "came twice"),
            (counts["waiting_labels"] + counts["unmatched"], "label has", "labels have", "no prediction"),
            (counts["repeated_labels"], "label", "labels", "came twice"),
            (counts["late_labels"], "label", "labels", "came after the prediction had left"),
        )
        parts = [f"{n:,} {one if n == 1 else many} {rest}" for n, one, many, rest in told if n]
        return ", ".join(parts) or None

    @property
    def remarks(self) -> Remarks:
        """What is odd about the rows so far."""
        return self._predictions.remarks

    def _one_side(self, parts: Iterator[Rows], is_label: bool) -> Iterator[Batch]:
        """All rows of one side; the clock stands still, since the other side has no time."""
        for rows in parts:
            yield from self._take(rows, np.full(rows.size, is_label), clocked=False)

    def _by_time(self, predictions: Iterator[Rows], labels: Iterator[Rows]) -> Iterator[Batch]:
        """Rows of both sides in the order of their times; a prediction before a label of the same moment."""
        one, other = _Queue(predictions), _Queue(labels)
        while one.fill() | other.fill():
            horizon = min(one.known_up_to, other.known_up_to)
            first = one.pop(horizon, True)
            # More predictions of this very moment may follow: then its labels wait for them.
            second = other.pop(horizon, one.known_up_to > horizon or one.ended)
            both = first.with_(second) if first is not None and second is not None else first or second
            if both is None:
                continue
            is_label = np.zeros(both.size, np.bool_)
            is_label[0 if first is None else first.size :] = True
            assert both.times is not None
            order = np.argsort(both.times, kind="stable")
            rows = Rows(both.ids[order], both.codes[order], both.tags[order], both.times[order])
            yield from self._take(rows, is_label[order], clocked=True)

    def _take(self, rows: Rows, is_label: npt.NDArray[np.bool_], clocked: bool) -> Iterator[Batch]:
        times = None if rows.times is None else _dates(rows.times)
        y = self.labels.decode(rows.codes)
        pairs = self.join.replay(rows.ids, y, is_label, times if clocked else None, rows.tags)
        if len(pairs):
            yield from self._batches(pairs, None if times is None else times[pairs.positions])

    def _batches(self, pairs: Pairs, times: Times | None) -> Iterator[Batch]:
        """The pairs as batches, one for each stretch of one file of predictions."""
        side = self._predictions
        rows = pairs.tags & (1 << ROW_BITS) - 1
        keys = pairs.tags >> ROW_BITS if side.columns.by is not None else None
        files = np.searchsorted(side.bases, rows, side="left") - 1
        edges = [0, *(np.flatnonzero(np.diff(files)) + 1).tolist(), len(pairs)]
        for start, stop in pairwise(edges):
            part, file = slice(start, stop), int(files[start])
            batch = Batch(
                pairs.truths[part],
                pairs.preds[part],
                side.sources[file],
                rows[part] - side.bases[file],
                None if times is None else times[part],
                None if keys is None else keys[part],
            )
            self.remarks.take(batch, len(self.labels.values))
            yield batch


class _Queue:
    """Rows of one side that were read and not yet taken, in the order of their times."""

    def __init__(self, parts: Iterator[Rows]) -> None:
        self._parts = parts
        self._rows: Rows | None = None
        self._at = 0
        self.ended = False

    def fill(self) -> bool:
        """Read on if nothing is left; whether there is something."""
        while not self.ended and (self._rows is None or self._at == self._rows.size):
            self._rows, self._at = next(self._parts, None), 0
            self.ended = self._rows is None
        return not self.ended

    @property
    def known_up_to(self) -> float:
        """Every row before this time has been read."""
        if self.ended or self._rows is None or self._rows.times is None:
            return np.inf
        return float(self._rows.times[-1])

    def pop(self, horizon: float, inclusive: bool) -> Rows | None:
        """Take what comes before the horizon, or at it as well; None if nothing does."""
        if self.ended or self._rows is None or self._rows.times is None:
            return None
        stop = int(np.searchsorted(self._rows.times, horizon, side="right" if inclusive else "left"))
        start, self._at = self._at, max(stop, self._at)
        return self._rows.part(start, self._at) if self._at > start else None


def _dates(micros: npt.NDArray[np.float64]) -> Times:
    """Moments as dates; those before the first known one are unknown."""
    known = np.isfinite(micros)
    whole = np.where(known, micros, 0).astype(np.int64).view("M8[us]")
    return np.where(known, whole, np.datetime64("NaT", "us"))

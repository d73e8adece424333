"""Two sources, predictions and labels, to batches of events: rows are brought together by id.

:func:`joined` reads both as :func:`~fourrates.io.read` does and gives :class:`Joined`, which has the face of
:class:`~fourrates.io.Events`: batches of coded pairs, and in the end the counts of what still waits, what came twice
and what never had a counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.io.ahead import ahead
from fourrates.io.events import Columns, Events, Missing, guess_column, listed
from fourrates.io.opening import pyarrow
from fourrates.io.remarks import Remarks, skipped
from fourrates.io.table import Batch, InputError, NoColumn, Table
from fourrates.io.values import UNKNOWN, Words, classes_of, either, is_missing, item, numbers, times_of
from fourrates.join import LabelJoin
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.io.values import Codes, Mask, Times
    from fourrates.join import Pairs

    Fingerprints = npt.NDArray[np.void]

ROW_BITS = 40  # of a tag: the row of a prediction, counted over all files; above them its key


def joined(
    predictions: Any,
    labels_from: Any,
    *,
    columns: Columns | None = None,
    label_columns: Columns | None = None,
    labels: Iterable[Hashable] | None = (0, 1),
    positive: Hashable = None,
    threshold: float | None = None,
    missing: Missing = "skip",
    max_waiting: int = 10_000_000,
    max_wait: timedelta | None = None,
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
        Of the predictions: `id`, `guess` or `score`, `time`, `by`. What is left out is guessed.
    label_columns : Columns, optional
        Of the labels: `id`, `truth`, `time`. An `id` that is left out is that of the predictions.
    labels, positive, threshold, missing, say
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
    ...     print(batch.truths, batch.guesses, batch.rows)
    [1 1] [0 1] [1 3]
    >>> {name: count for name, count in events.counts.items() if count}
    {'pairs': 2, 'waiting': 1, 'waiting_labels': 1, 'repeated_labels': 1}
    """
    known = None if labels is None else Labels(labels, positive)
    first = _Predictions(predictions, columns or Columns(), known, threshold, missing, say, positive)
    second = _LateLabels(labels_from, label_columns or Columns(), known, None, missing, say)
    return Joined(first, second, max_waiting, max_wait)


class _Rows:
    """Some rows of one side, ready for the join."""

    __slots__ = ("codes", "ids", "tags", "times")

    def __init__(
        self, ids: Fingerprints, codes: Codes, tags: npt.NDArray[np.int64], times: npt.NDArray[np.float64] | None
    ) -> None:
        self.ids, self.codes, self.tags, self.times = ids, codes, tags, times

    @property
    def size(self) -> int:
        return self.codes.size

    def part(self, start: int, stop: int) -> _Rows:
        times = None if self.times is None else self.times[start:stop]
        return _Rows(self.ids[start:stop], self.codes[start:stop], self.tags[start:stop], times)

    def with_(self, other: _Rows) -> _Rows:
        assert self.times is not None
        assert other.times is not None
        return _Rows(
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.tags, other.tags]),
            np.concatenate([self.times, other.times]),
        )


class _Side(Events):
    """One of the two sources: columns to ids, codes and times."""

    join: LabelJoin
    first: Table | None  # until it is taken

    def start(self, id_name: str | None) -> tuple[Iterator[Table], str | None]:
        """Open the source far enough to know its columns; the tables, and the column of ids."""
        if self.columns.id is None:
            self.columns = replace(self.columns, id=id_name)
        tables = self.tables()
        first = next(tables, None)
        if first is not None and not self._settled:
            self.resolve(list(first.data), first.times, first.source)
        self._latest = -np.inf
        self._base = 0  # rows of the files before this one
        self._last = 0  # the last row met, counted over all files
        self.bases: list[int] = []
        self.first = first

        def all_tables() -> Iterator[Table]:
            if first is not None:
                yield first
            self.first = None  # which need not be kept
            yield from tables

        return all_tables(), self.columns.id

    def resolve(self, names: Sequence[str], times: Sequence[str] = (), source: str = "") -> Columns:
        where = f"{source}: " if source else ""
        for name in self.columns.used():
            if name not in names:
                raise NoColumn(where, name, listed(names))
        asked, found = self.columns, self.columns
        if found.id is None:
            found = replace(found, id=guess_column("id", names, found.used()))
        if found.id is None:
            raise InputError(f"{where}which column holds the ids (--id)? There are {listed(names)}")
        found = self._resolve_rest(found, names, where)
        if found.time is None and not self._settled:
            found = replace(found, time=guess_column("time", times, found.used()))
        kinds = {"id": "ids", "truth": "labels", "guess": "predictions", "score": "scores", "time": "times"}
        guessed = [
            f"{what} in column {getattr(found, kind)!r}"
            for kind, what in kinds.items()
            if getattr(found, kind) is not None and getattr(asked, kind) is None
        ]
        if guessed:
            self._say(where + ", ".join(guessed))
        self.columns, self._settled = found, True
        return found

    def _resolve_rest(self, found: Columns, names: Sequence[str], where: str) -> Columns:
        raise NotImplementedError

    def _codes_of(self, table: Table) -> tuple[Codes, Mask | None]:
        raise NotImplementedError

    def _keys_of(self, table: Table) -> tuple[npt.NDArray[np.int64] | None, Mask | None]:
        return None, None

    def rows_of(self, table: Table, timed: bool) -> _Rows:
        """The rows of a table in which nothing is missing."""
        if table.source not in self.sources[-1:]:
            self.sources.append(table.source)
            self._base = self._last
            self.bases.append(self._base)
        self._last = self._base + int(table.rows[-1]) if table.size else self._last
        self.rows += table.size
        codes, gone = self._codes_of(table)
        keys, keyless = self._keys_of(table)
        assert self.columns.id is not None
        ids, nameless = _texts(table.data[self.columns.id])
        gone = either(either(gone, keyless), nameless)
        times = self._moments(table) if timed else None
        tags = self._base + table.rows
        if keys is not None:
            tags = tags | keys << ROW_BITS
        if gone is not None and gone.any():
            if self.missing == "refuse":
                at = int(gone.argmax())
                raise InputError(f"{table.place(at)}: {self._what_is_missing(table, at)} is missing")
            kept = ~gone
            self.skipped += table.size - int(kept.sum())
            codes, tags = codes[kept], tags[kept]
            ids = ids.filter(_bools(kept)) if hasattr(ids, "filter") else [ids[i] for i in np.flatnonzero(kept)]
            times = None if times is None else times[kept]
        return _Rows(self.join.fingerprints(ids), codes, tags, times)

    def use_labels(self, labels: Labels) -> None:
        """Read with the labels of the other side."""
        self._labelled, self.labels, self._words = True, labels, Words(labels)

    def _moments(self, table: Table) -> npt.NDArray[np.float64]:
        """Times in microseconds that never run backwards: what is earlier, or unknown, has the latest before it."""
        assert self.columns.time is not None
        given, utc = times_of(table, self.columns.time)
        self.utc |= utc
        micros = np.where(np.isnat(given), -np.inf, given.astype(np.int64).astype(np.float64))
        if micros.size:
            micros[0] = max(micros[0], self._latest)
            micros = np.maximum.accumulate(micros)
            self._latest = float(micros[-1])
        return micros

    def _coded(self, table: Table, name: str) -> tuple[Codes, Mask | None]:
        codes, gone = self._words.encode(table.data[name])
        bad = (codes == UNKNOWN) if gone is None else (codes == UNKNOWN) & ~gone
        if bad.any():
            raise self._unknown(table, name, int(bad.argmax()))
        return codes, gone

    def _what_is_missing(self, table: Table, at: int) -> str:
        for name in self.columns.used():
            if name != self.columns.time and is_missing(item(table.data[name], at)):
                return f"the value in column {name!r}"
        return "a value"


class _Predictions(_Side):
    def _resolve_rest(self, found: Columns, names: Sequence[str], where: str) -> Columns:
        if found.guess is None and found.score is None:
            if self._threshold is None:
                found = replace(found, guess=guess_column("guess", names, found.used()))
            if found.guess is None:
                found = replace(found, score=guess_column("score", names, found.used()))
        if found.guess is None and found.score is None:
            raise InputError(
                f"{where}which column holds the predictions (--pred, or --score)? There are {listed(names)}"
            )
        self._check_score(found.score, where)
        return replace(found, truth=None)

    def _codes_of(self, table: Table) -> tuple[Codes, Mask | None]:
        if self.columns.guess is not None:
            return self._coded(table, self.columns.guess)
        assert self.columns.score is not None
        scores, gone, with_comma = numbers(table, self.columns.score)
        self.remarks.scores(scores, with_comma)
        return (scores >= self.threshold).astype(np.uint16), gone

    def _keys_of(self, table: Table) -> tuple[npt.NDArray[np.int64] | None, Mask | None]:
        if self.columns.by is None:
            return None, None
        keys, gone = self._number_keys(table.data[self.columns.by])
        if len(self.keys) >= 1 << 63 - ROW_BITS:
            most = f"{1 << 63 - ROW_BITS:,}"
            raise InputError(f"{table.source}: more than {most} different values in column {self.columns.by!r}")
        return keys, gone


class _LateLabels(_Side):
    def _resolve_rest(self, found: Columns, names: Sequence[str], where: str) -> Columns:
        if found.truth is None:
            found = replace(found, truth=guess_column("truth", names, found.used()))
        if found.truth is None:
            raise InputError(f"{where}which column holds the true labels (--truth)? There are {listed(names)}")
        return Columns(truth=found.truth, time=found.time, id=found.id)

    def _codes_of(self, table: Table) -> tuple[Codes, Mask | None]:
        assert self.columns.truth is not None
        return self._coded(table, self.columns.truth)


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
        Rows read from both, and those among them that were skipped because something was missing.
    sources : list of str
        The files read so far.
    utc : bool
        Whether times carry a zone; they are then given in UTC.
    """

    def __init__(
        self,
        predictions: _Predictions,
        labels_from: _LateLabels,
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
        """Rows among them in which something was missing."""
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
        return ahead(iter(self))

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
        guesses = classes_of(first.first, first.columns.guess)
        truths = classes_of(second.first, second.columns.truth)
        read = [side.first for side in (first, second) if side.first is not None]
        rows = sum(table.size for table in read)
        first.take_labels(truths, guesses, " and ".join(table.source for table in read), rows)
        second.use_labels(first.labels)
        self.join = LabelJoin(first.labels.given, first.positive, self.join.max_waiting, self.join.max_wait)

    def odd(self) -> list[str]:
        """What is odd about what was read, in sentences."""
        left_out = skipped(self.rows, self.skipped, self._labels_from.skipped)
        threshold = None if self.columns.score is None else self.threshold
        said = self._predictions.remarks.sentences(self.labels, threshold)
        return [*self._unmatched(), *([] if left_out is None else [left_out]), *said]

    def _unmatched(self) -> list[str]:
        """What found no counterpart, in a sentence."""
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
        return [", ".join(parts)] if parts else []

    @property
    def remarks(self) -> Remarks:
        """What is odd about the rows so far."""
        return self._predictions.remarks

    def _one_side(self, parts: Iterator[_Rows], is_label: bool) -> Iterator[Batch]:
        """All rows of one side; the clock stands still, since the other side has no time."""
        for rows in parts:
            yield from self._take(rows, np.full(rows.size, is_label), clocked=False)

    def _by_time(self, predictions: Iterator[_Rows], labels: Iterator[_Rows]) -> Iterator[Batch]:
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
            rows = _Rows(both.ids[order], both.codes[order], both.tags[order], both.times[order])
            yield from self._take(rows, is_label[order], clocked=True)

    def _take(self, rows: _Rows, is_label: npt.NDArray[np.bool_], clocked: bool) -> Iterator[Batch]:
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
                pairs.guesses[part],
                side.sources[file],
                rows[part] - side.bases[file],
                None if times is None else times[part],
                None if keys is None else keys[part],
            )
            self.remarks.take(batch, len(self.labels.values))
            yield batch


class _Queue:
    """Rows of one side that were read and not yet taken, in the order of their times."""

    def __init__(self, parts: Iterator[_Rows]) -> None:
        self._parts = parts
        self._rows: _Rows | None = None
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

    def pop(self, horizon: float, inclusive: bool) -> _Rows | None:
        """Take what comes before the horizon, or at it as well; None if nothing does."""
        if self.ended or self._rows is None or self._rows.times is None:
            return None
        stop = int(np.searchsorted(self._rows.times, horizon, side="right" if inclusive else "left"))
        start, self._at = self._at, max(stop, self._at)
        return self._rows.part(start, self._at) if self._at > start else None


def _texts(column: Any) -> tuple[Any, Mask | None]:
    """Ids as text, so that 17 in one file is "17" in another, and where one is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        pa = pyarrow("pyarrow")
        return pa.array(column).cast(pa.string()), None
    if hasattr(column, "dictionary_encode") and str(column.type).endswith(("string", "string_view")):
        return column, np.array(column.is_null().to_pylist(), np.bool_) if column.null_count else None
    values = next((getattr(column, name)() for name in ("to_pylist", "tolist") if hasattr(column, name)), column)
    gone = np.array([is_missing(value) for value in values], np.bool_)
    texts = [str(int(value) if isinstance(value, float) and value.is_integer() else value) for value in values]
    return texts, gone if gone.any() else None


def _bools(mask: Mask) -> Any:
    return pyarrow("pyarrow").array(mask)


def _dates(micros: npt.NDArray[np.float64]) -> Times:
    """Moments as dates; those before the first known one are unknown."""
    known = np.isfinite(micros)
    whole = np.where(known, micros, 0).astype(np.int64).view("M8[us]")
    return np.where(known, whole, np.datetime64("NaT", "us"))

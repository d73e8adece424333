"""Join predictions and late labels from two sources by id.

:func:`joined` reads both as :func:`~fourrates.io.read` does. It gives :class:`Joined`: the
:class:`~fourrates.io.Events` of the predictions with their labels, and counts of rows that wait, repeat or have no
counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fourrates.events.batch import Batch, Table
from fourrates.events.columns import checked_column, is_missing, listed_values, pyarrow
from fourrates.events.door import Columns, missing_problem
from fourrates.events.labels import LabelEncoder
from fourrates.events.rows import Bad, InputError
from fourrates.io.cohorts import Cohorts
from fourrates.io.events import Events, classes_of
from fourrates.io.lines import MAX_LINE
from fourrates.io.prefetch import prefetch
from fourrates.join import LabelJoin
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.clock import Times
    from fourrates.events.rows import Mask
    from fourrates.io.history import History
    from fourrates.join.paired import Pairs
    from fourrates.labels import Codes

Order = Literal["prediction", "arrival"]
ROW_BITS = 40  # bits of a tag for the row of a prediction, counted over all files; segment and version are above


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
    order: Order = "prediction",
    history: History | None = None,
    cohorts: Cohorts | None = None,
) -> Joined:
    """Join predictions and labels from two sources.

    By default events are in the order of their predictions, so that a change is dated by when it happened; everything
    is read before the first batch. In the order of arrival an event happens when both its rows are there: rows are read
    by time if both sources have times, else all of one source is read first.

    Parameters
    ----------
    predictions, labels_from
        Sources as for :func:`~fourrates.io.read`.
    columns : Columns, optional
        Of the predictions: `id`, `pred` or `score`, `time`, `by`; inferred if not given.
    label_columns : Columns, optional
        Of the labels: `id`, `truth`, `time`. The default `id` is that of the predictions.
    labels, positive, threshold, bad, max_line, say
        As for :func:`~fourrates.io.read`.
    max_waiting, max_wait
        As for :class:`~fourrates.LabelJoin`; `max_wait` needs a time in both sources.
    order : {"prediction", "arrival"}
        How events are ordered.
    history : History, optional
        The files that were read before.
    cohorts : Cohorts, optional
        The state of an earlier reading; with `history`, in the order of predictions.

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
    if order not in ("prediction", "arrival"):
        raise ValueError(f"order {order!r} is neither 'prediction' nor 'arrival'")
    late = _Labels(labels_from, label_columns or Columns(), known, None, bad, say, None, max_line, history)
    events = Joined(predictions, columns or Columns(), known, threshold, bad, say, positive, max_line, history)
    events.attach(late, max_waiting, max_wait, order, cohorts)
    return events


class _Rows(NamedTuple):
    """Some rows of one side, ready for the join."""

    ids: npt.NDArray[np.void]  # fingerprints
    codes: Codes
    tags: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64] | None  # microseconds that never run backwards

    def take(self, which: Any) -> _Rows:
        return _Rows(*(None if column is None else column[which] for column in self))  # type: ignore[arg-type]


class _Side(Events):
    """One source: columns to ids, codes and times."""

    names_source = True
    join: LabelJoin
    first: Table | None = None  # until it is read
    _latest = -np.inf  # time
    _last = 0  # row met, counted over all files

    def start(self, id_name: str | None) -> Iterator[Table]:
        """Read far enough to know the columns; returns the tables."""
        if self.columns.id is None:
            self.columns = replace(self.columns, id=id_name)
        self._sorts: dict[int, int] = {}  # segment and version, numbered
        self.files: list[str] = []
        self.bases: list[int] = []  # for each file, the rows of those before it
        tables = self.tables()
        self.first = first = next(tables, None)
        if first is not None and not self.settled:
            self.resolve(list(first.data), first.times, first.source)
        return tables if first is None else chain([first], tables)

    def _guess(self, names: Sequence[str], where: str) -> Columns:
        columns = self._guess_kind(self.columns, "id", names)
        if columns.id is None:
            raise self._not_found("ids (--id)", names, where)
        return columns

    def rows_of(self, table: Table, timed: bool) -> _Rows:
        self.first = None  # release it
        self._note_source(table)
        self.rows += table.size
        name = self.columns.id
        assert name is not None
        self.door.columns = self.columns
        reading = self.door.reading(table)
        self._note_clock()
        bad = reading.bad
        ids, nameless = _texts(checked_column(table.data[name], name, validate=not table.sound))
        bad.add(nameless, name, "missing", lambda row: missing_problem(name))
        if self.bad == "reject" and (first := bad.first) is not None:
            raise self.rejection(table, first)
        if reading.scores is not None:
            self.warnings.add_scores(reading.scores, reading.with_comma)
        codes = reading.truths if reading.preds is None else reading.preds
        assert codes is not None
        times = self._moments(reading.times, reading.utc) if timed and reading.times is not None else None
        tags = self.bases[-1] + table.rows
        if (kept := bad.kept) is not None:
            self.skipped += len(bad)
            codes, tags = codes[kept], tags[kept]
            ids = (
                ids.filter(pyarrow("pyarrow").array(kept))
                if hasattr(ids, "filter")
                else [ids[i] for i in np.flatnonzero(kept)]
            )
            times = None if times is None else times[kept]
        keys, versions = self.door.named_keys(reading), self.door.named_versions(reading)
        return _Rows(self.join.fingerprints(ids), codes, self._tags(tags, keys, versions, times, table.source), times)

    def _tags(
        self, rows: Any, keys: Any, versions: Any, times: npt.NDArray[np.float64] | None, source: str
    ) -> npt.NDArray[np.int64]:
        """The tag of each row: by default its number over all files, with its segment and version."""
        if keys is None and versions is None:
            return np.asarray(rows)
        sort = np.zeros(rows.size, np.int64) if keys is None else keys
        if versions is not None:
            sort = sort << 31 | versions
        met, positions = np.unique(sort, return_inverse=True)
        numbers = np.array([self._sorts.setdefault(one, len(self._sorts)) for one in met.tolist()], np.int64)
        if len(self._sorts) >= 1 << 63 - ROW_BITS:
            most = f"{1 << 63 - ROW_BITS:,}"
            raise InputError(f"{source}: more than {most} different values in column {self.columns.by!r}")
        return np.asarray(rows | numbers[positions] << ROW_BITS)

    def _note_source(self, table: Table) -> None:
        if table.source not in self.files[-1:]:
            self.files.append(table.source)
            self.sources.append(table.source)
            self.bases.append(self._last)
        self._last = self.bases[-1] + int(table.rows[-1]) if table.size else self._last

    def _moments(self, given: Times, utc: bool) -> npt.NDArray[np.float64]:
        """Times in microseconds that never run backwards: an earlier or unknown one gets the latest before it."""
        self.utc |= utc
        micros = np.where(np.isnat(given), -np.inf, given.astype(np.int64).astype(np.float64))
        if micros.size:
            micros[0] = max(micros[0], self._latest)
            micros = np.maximum.accumulate(micros)
            self._latest = float(micros[-1])
        return micros


class _Labels(_Side):
    def _guess(self, names: Sequence[str], where: str) -> Columns:
        columns = self._guess_kind(super()._guess(names, where), "truth", names)
        if columns.truth is None:
            raise self._not_found("true labels (--truth)", names, where)
        return Columns(truth=columns.truth, time=columns.time, id=columns.id)

    def use_labels(self, labels: Labels) -> None:
        self.labelled, self.labels, self.door.encoder = True, labels, LabelEncoder(labels)


class Joined(_Side):
    """Batches of joined predictions and labels. Iterate over it once.

    Rows and source of a batch are those of the predictions. So are its times, except in the order of arrival: there an
    event's time is when its pair was complete. `rows`, `skipped` and `sources` cover both sources.

    Attributes
    ----------
    join : LabelJoin
        Holds waiting predictions and labels, and the counts.
    cohorts : Cohorts or None
        Waiting predictions and unripe pairs, in the order of predictions.
    ripe : int
        With `history`, how many batches are ripe; later ones are read again next time, with more labels.
    """

    def attach(
        self, late: _Labels, max_waiting: int, max_wait: timedelta | None, order: Order, cohorts: Cohorts | None
    ) -> None:
        self._late = late
        self.join = LabelJoin(self.labels.given, self.positive, max_waiting, max_wait)
        if order == "prediction":
            self.cohorts = cohorts or Cohorts(self.join)
            self.join = self.cohorts.join
            self._remember(self.cohorts)

    def _remember(self, cohorts: Cohorts) -> None:
        self.door.remember(cohorts.names, cohorts.versions)
        cohorts.names, cohorts.versions = self.door.names, self.door.versions

    def settle(self, columns: Columns) -> None:
        super().settle(columns)
        if self.cohorts is not None:
            self._remember(self.cohorts)

    def _tags(
        self, rows: Any, keys: Any, versions: Any, times: npt.NDArray[np.float64] | None, source: str
    ) -> npt.NDArray[np.int64]:
        if self.cohorts is None:
            return super()._tags(rows, keys, versions, times, source)
        files = self.cohorts.files
        if source not in files[-1:]:
            files.append(source)
        return self.cohorts.add(rows - self.bases[-1], keys, versions, times, len(files) - 1)

    @property
    def counts(self) -> dict[str, int]:
        return self.join.counts

    @property
    def predicted(self) -> Times | None:
        """When held predictions were made, which shows how many there are a day; None in the order of arrival."""
        return None if self.cohorts is None or self.columns.time is None else self.cohorts.times

    def _guess(self, names: Sequence[str], where: str) -> Columns:
        columns = self._guess_pred(super()._guess(names, where), names)
        return replace(self._check_pred(columns, names, where), truth=None)

    def ahead(self) -> Iterator[Batch]:
        return prefetch(iter(self))

    def __iter__(self) -> Iterator[Batch]:
        late = self._late
        tables = self.start(None)
        late_tables = late.start(self.columns.id)
        if not self.labelled:
            self._learn_labels()
        late.join = self.join
        timed = self.columns.time is not None, late.columns.time is not None
        if self.join.max_wait is not None and not all(timed):
            raise InputError("a longest wait needs a column of times both with the predictions and with the labels")
        if self.cohorts is not None and self.history is not None and not timed[0]:
            raise InputError("labels that come later need a column of times with the predictions (--time) to resume")
        predictions = (self.rows_of(table, timed[0]) for table in tables)
        labels = self._late_rows(late_tables, timed[1])
        if self.cohorts is not None:
            yield from self._in_order(self.cohorts, predictions, labels, timed)
        else:
            yield from self._as_they_come(predictions, labels, timed)

    def _in_order(
        self, cohorts: Cohorts, predictions: Iterator[_Rows], labels: Iterator[_Rows], timed: tuple[bool, bool]
    ) -> Iterator[Batch]:
        """All events in the order of their predictions; if the source will be read again, ripe ones first."""
        for _ in self._as_they_come(predictions, labels, timed):
            pass  # pairs go to the cohorts
        keyed, until = self.columns.by is not None, cohorts.ripe_until() if self.history is not None else None
        ripe = [] if until is None else [*cohorts.batches(timed[0], keyed, until=until)]
        rest = [*cohorts.batches(timed[0], keyed, since=until)]
        self.ripe = len(ripe)
        if until is not None:
            cohorts.drop(until)
        for batch in ripe + rest:
            self.warnings.add(batch, len(self.labels.values))
            yield batch

    def _as_they_come(
        self, predictions: Iterator[_Rows], labels: Iterator[_Rows], timed: tuple[bool, bool]
    ) -> Iterator[Batch]:
        if all(timed):
            yield from self._by_time(predictions, labels)
        elif timed[1]:
            yield from self._one_side(predictions, False)
            yield from self._one_side(labels, True)
        else:
            yield from self._one_side(labels, True)
            yield from self._one_side(predictions, False)

    def _late_rows(self, tables: Iterator[Table], timed: bool) -> Iterator[_Rows]:
        late = self._late
        for table in tables:
            before = late.skipped
            rows = late.rows_of(table, timed)
            self.rows += table.size
            self.skipped += late.skipped - before
            self.warnings.unlabelled += late.skipped - before
            self.utc |= late.utc
            self.sources += [source for source in late.sources if source not in self.sources]
            yield rows

    def _learn_labels(self) -> None:
        preds = classes_of(self.first, self.columns.pred)
        truths = classes_of(self._late.first, self._late.columns.truth)
        read = [table for table in (self.first, self._late.first) if table is not None]
        self.take_labels(truths, preds, " and ".join(table.source for table in read), sum(t.size for t in read))
        self._late.use_labels(self.labels)
        self.join = LabelJoin(self.labels.given, self.positive, self.join.max_waiting, self.join.max_wait)
        if self.cohorts is not None:
            self.cohorts.join = self.join

    def data_warnings(self) -> dict[str, str]:
        """A sentence about each data problem, by topic."""
        unmatched = self._unmatched()
        return {**({"unmatched": unmatched} if unmatched else {}), **super().data_warnings()}

    def _unmatched(self) -> str:
        counts = self.counts
        told = (
            (counts["waiting"], "prediction waits", "predictions wait", "for a label"),
            (counts["expired"] + counts["displaced"], "prediction", "predictions", "left without a label"),
            (counts["repeated_predictions"], "prediction", "predictions", "came twice"),
            (counts["waiting_labels"] + counts["unmatched"], "label has", "labels have", "no prediction"),
            (counts["repeated_labels"], "label", "labels", "came twice"),
            (counts["late_labels"], "label", "labels", "came after the prediction had left"),
        )
        return ", ".join(f"{n:,} {one if n == 1 else many} {rest}" for n, one, many, rest in told if n)

    def _one_side(self, parts: Iterator[_Rows], is_label: bool) -> Iterator[Batch]:
        """All rows of one side; the clock does not move, since the other side has no times."""
        for rows in parts:
            yield from self._pair(rows, np.full(rows.codes.size, is_label), clocked=False)

    def _by_time(self, predictions: Iterator[_Rows], labels: Iterator[_Rows]) -> Iterator[Batch]:
        """Rows of both sides by time; at equal times, predictions first."""
        one, other = _Queue(predictions), _Queue(labels)
        while one.fill() | other.fill():
            horizon = min(one.known_up_to, other.known_up_to)
            # More predictions of the same time may follow: its labels wait for them.
            last = one.known_up_to > horizon or one.ended
            parts = [(one.pop(horizon, True), False), (other.pop(horizon, last), True)]
            there = [(rows, is_label) for rows, is_label in parts if rows is not None]
            if there:
                both = _Rows(*map(np.concatenate, zip(*(rows for rows, _ in there), strict=True)))
                is_label = np.concatenate([np.full(rows.codes.size, label) for rows, label in there])
                order = np.argsort(both.times, kind="stable")  # type: ignore[arg-type]
                yield from self._pair(both.take(order), is_label[order], clocked=True)

    def _pair(self, rows: _Rows, is_label: npt.NDArray[np.bool_], clocked: bool) -> Iterator[Batch]:
        times = None if rows.times is None else _dates(rows.times)
        y = self.labels.decode(rows.codes)
        pairs = self.join.replay(rows.ids, y, is_label, times if clocked else None, rows.tags)
        if not len(pairs):
            return
        if self.cohorts is None:
            yield from self._pair_batches(pairs, None if times is None else times[pairs.positions])
        else:
            label_timed = rows.times is not None and is_label[pairs.positions].all()
            self.cohorts.pair(pairs, rows.times[pairs.positions] if label_timed else None)  # type: ignore[index]

    def _pair_batches(self, pairs: Pairs, times: Times | None) -> Iterator[Batch]:
        """Batches of pairs, each from one stretch of one prediction file."""
        rows = pairs.tags & (1 << ROW_BITS) - 1
        keys = versions = None
        if self._sorts:
            sorts = np.array([*self._sorts], np.int64)[pairs.tags >> ROW_BITS]
            versions = None if self.columns.version is None else sorts & (1 << 31) - 1
            keys = None if self.columns.by is None else sorts if versions is None else sorts >> 31
        files = np.searchsorted(self.bases, rows, side="left") - 1
        edges = [0, *(np.flatnonzero(np.diff(files)) + 1).tolist(), len(pairs)]
        for start, stop in pairwise(edges):
            part, file = slice(start, stop), int(files[start])
            batch = Batch(
                pairs.truths[part],
                pairs.preds[part],
                self.files[file],
                rows[part] - self.bases[file],
                None if times is None else times[part],
                None if keys is None else keys[part],
                versions=None if versions is None else versions[part],
                version_names=self.door.versions,
            )
            self.warnings.add(batch, len(self.labels.values))
            yield batch


class _Queue:
    """Unjoined rows of one side, in order of time."""

    def __init__(self, parts: Iterator[_Rows]) -> None:
        self._parts = parts
        self._times: npt.NDArray[np.float64] = np.empty(0)
        self._at = 0
        self.ended = False

    def fill(self) -> bool:
        """Read more if empty; whether there are rows."""
        while not self.ended and self._at == self._times.size:
            rows = next(self._parts, None)
            if rows is None:
                self.ended = True
            else:
                assert rows.times is not None
                self._rows, self._times, self._at = rows, rows.times, 0
        return not self.ended

    @property
    def known_up_to(self) -> float:
        """All rows before this time have been read."""
        return np.inf if self.ended else float(self._times[-1])

    def pop(self, horizon: float, inclusive: bool) -> _Rows | None:
        stop = int(np.searchsorted(self._times, horizon, side="right" if inclusive else "left"))
        start, self._at = self._at, max(stop, self._at)
        return self._rows.take(slice(start, self._at)) if self._at > start else None


def _texts(column: Any) -> tuple[Any, Mask | None]:
    """Ids as text, so that 17 equals "17" in another file, and where one is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        pa = pyarrow("pyarrow")
        return pa.array(column).cast(pa.string()), None
    if hasattr(column, "dictionary_encode") and str(column.type).endswith(("string", "string_view")):
        return column, np.array(column.is_null().to_pylist(), np.bool_) if column.null_count else None
    values = listed_values(column)
    gone = np.array([is_missing(value) for value in values], np.bool_)
    texts = [str(int(value) if isinstance(value, float) and value.is_integer() else value) for value in values]
    return texts, gone if gone.any() else None


def _dates(micros: npt.NDArray[np.float64]) -> Times:
    """Moments as dates; unknown before the first known one."""
    known = np.isfinite(micros)
    whole = np.where(known, micros, 0).astype(np.int64).view("M8[us]")
    return np.where(known, whole, np.datetime64("NaT", "us"))

"""Join predictions and late labels from two sources by id.

:func:`joined` reads both as :func:`~fourrates.io.read` does. It gives :class:`Joined`, the
:class:`~fourrates.io.Events` of the predictions with their labels, and counts of rows that wait, repeat or have no
counterpart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from fourrates.budget.words import duration
from fourrates.detectors.sampling import OwnFirst
from fourrates.events.batch import Batch, Table
from fourrates.events.columns import checked_column, is_missing, listed_values, pyarrow
from fourrates.events.door import Columns, missing_problem
from fourrates.events.labels import LabelEncoder
from fourrates.events.rows import Bad, InputError
from fourrates.io.cohorts import Cohorts
from fourrates.io.events import Events, classes_of, guess_pair
from fourrates.io.prefetch import prefetch
from fourrates.join import LabelJoin
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.clock import Times
    from fourrates.events.door import Reading
    from fourrates.events.rows import Mask
    from fourrates.io.history import History
    from fourrates.labels import Codes

    Micros = npt.NDArray[np.float64]

TOGETHER = 1 << 20  # rows joined at a time
LATEST = 101  # delays of labels, whose median is reported
Order = Literal["prediction", "arrival"]


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
    order: Order = "prediction",
    on_message: Callable[[str], None] | None = None,
    history: History | None = None,
    cohorts: Cohorts | None = None,
) -> Joined:
    """Join predictions and labels from two sources.

    Everything is read before the first batch. Rows are joined by time if both sources have times, else all of one
    source are read first.

    Parameters
    ----------
    predictions, labels_from
        Sources as for :func:`~fourrates.io.read`.
    columns : Columns, optional
        Of the predictions: `id`, `pred` or `score`, `time`, `by`; inferred if not given.
    label_columns : Columns, optional
        Of the labels: `id`, `truth`, `time`. The default `id` is that of the predictions.
    labels, positive, threshold, bad, say
        As for :func:`~fourrates.io.read`.
    max_waiting, max_wait
        As for :class:`~fourrates.LabelJoin`; `max_wait` needs a time in both sources.
    order : {"prediction", "arrival"}
        Events in the order of their predictions, so that a change is dated by when it happened, or in the order in
        which their pairs were completed.
    history : History, optional
        The files that were read before.
    cohorts : Cohorts, optional
        The state of an earlier reading, with `history`.

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
    if order not in get_args(Order):
        raise InputError(f"order {order!r} is neither prediction nor arrival")
    known = None if labels is None else Labels(labels, positive)
    late = _Labels(labels_from, label_columns or Columns(), known, None, bad, on_message, None, history)
    events = Joined(predictions, columns or Columns(), known, threshold, bad, on_message, positive, history)
    events.attach(late, max_waiting, max_wait, order, cohorts)
    return events


class _Rows(NamedTuple):
    ids: npt.NDArray[np.void]  # fingerprints
    codes: Codes
    tags: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.float32]  # probabilities of being labelled, its own first; 0 if unknown
    times: npt.NDArray[np.float64] | None  # microseconds that never run backwards

    def select(self, which: Any) -> _Rows:
        return _Rows(*(None if column is None else column[which] for column in self))  # type: ignore[arg-type]


class _Side(Events):
    """One source, its columns to ids, codes and times."""

    names_source = True
    join: LabelJoin
    first: Table | None = None  # until it is read
    _latest = -np.inf  # time

    def start(self, id_name: str | None) -> Iterator[Table]:
        """Read far enough to know the columns; returns the tables."""
        if self.columns.id is None:
            self.columns = replace(self.columns, id=id_name)
        tables = self.tables()
        self.first = first = next(tables, None)
        if first is not None and not self.settled:
            self.resolve(list(first.data), first.times, first.source)
        return tables if first is None else chain([first], tables)

    def rows_of(self, table: Table, timed: bool) -> _Rows:
        self.first = None  # release it
        name = self.columns.id
        assert name is not None
        self.door.columns = self.columns
        reading = self.door.reading(table)
        self._note_clock()
        ids, nameless = _texts(checked_column(table.data[name], name, validate=not table.sound))
        reading.bad.add(nameless, name, "missing", lambda row: missing_problem(name))
        self._accept(table, reading)
        codes = reading.truths if reading.preds is None else reading.preds
        assert codes is not None
        times = self._moments(reading.times) if timed and reading.times is not None else None
        tags = table.rows
        drawn = np.zeros((table.size, 2), np.float32) if reading.drawn is None else reading.drawn.pairs
        if (kept := reading.bad.kept) is not None:
            codes, tags, drawn = codes[kept], tags[kept], drawn[kept]
            ids = (
                ids.filter(pyarrow("pyarrow").array(kept))
                if hasattr(ids, "filter")
                else [ids[i] for i in np.flatnonzero(kept)]
            )
            times = None if times is None else times[kept]
        tags = self._tags(tags, codes, reading, times, table.source)
        return _Rows(self.join.fingerprints(ids), codes, tags, drawn, times)

    def _tags(self, rows: Any, codes: Codes, reading: Reading, times: Micros | None, source: str) -> Any:
        """The tag of each row, by which its pair is known."""
        return rows

    def _moments(self, given: Times) -> npt.NDArray[np.float64]:
        """Times in microseconds that never run backwards; an earlier or unknown one gets the latest before it."""
        micros = np.where(np.isnat(given), -np.inf, given.astype(np.int64).astype(np.float64))
        if micros.size:
            micros[0] = max(micros[0], self._latest)
            micros = np.maximum.accumulate(micros)
            self._latest = float(micros[-1])
        return micros


class _Labels(_Side):
    needs = ("id", "truth")
    time_hint = "name it known_at if labels were known then"
    pred: str | None = None  # the column of the predictions

    def _guess(self, names: Sequence[str], where: str) -> Columns:
        if self._guess_kind(self.columns, "truth", names).truth is None and self.pred is not None:
            pair = guess_pair([*names, self.pred])
            self.columns = self.columns if pair is None else replace(self.columns, truth=pair[0])
        columns = super()._guess(names, where)
        own = Columns(truth=columns.truth, time=columns.time, id=columns.id)
        return replace(own, probability=columns.probability, other=columns.other)

    def use_labels(self, labels: Labels) -> None:
        self.labelled, self.labels, self.door.encoder = True, labels, LabelEncoder(labels)


class Joined(_Side):
    """Batches of joined predictions and labels. Iterate over it once.

    Rows and source of a batch are those of the predictions. So are its times, except in the order of arrival; there an
    event's time is when its pair was complete. `rows`, `skipped` and `sources` cover both sources.

    Attributes
    ----------
    join : LabelJoin
        Holds waiting predictions and labels, and the counts.
    cohorts : Cohorts
        Waiting predictions and unripe pairs, in the order of predictions.
    ripe : int
        With `history`, how many batches are ripe; later ones are read again next time, with more labels.
    unwatched : deque of Batch, or None
        If it is set to a deque, the predictions read are appended to it, each once; their truths stand for nothing.
    """

    needs = ("id", "pred")
    cohorts: Cohorts

    def attach(
        self, late: _Labels, max_waiting: int, max_wait: timedelta | None, order: Order, cohorts: Cohorts | None
    ) -> None:
        self._late, self._completed, self._waits = late, order == "arrival", deque[float](maxlen=LATEST)
        self.cohorts = cohorts or Cohorts(LabelJoin(self.labels.given, self.positive, max_waiting, max_wait))
        self.join = self.cohorts.join
        self._remember()

    def reread(self, extra: Sequence[str]) -> Joined:
        late, columns = self._late, replace(self.columns, extra=tuple(extra))
        own = self.labels, self._threshold, self.bad, None, self._positive
        order: Order = "arrival" if self._completed else "prediction"
        made = Joined(self._source, columns, *own)
        wait: Any = self.join.max_wait
        made.attach(_Labels(late._source, late.columns, *own), self.join.max_waiting, wait, order, None)
        return made

    def _remember(self) -> None:
        self.door.remember(self.cohorts.names, self.cohorts.versions)
        self.cohorts.names, self.cohorts.versions = self.door.names, self.door.versions

    def settle(self, columns: Columns) -> None:
        super().settle(columns)
        self._remember()

    def _tags(self, rows: Any, codes: Codes, reading: Reading, times: Micros | None, source: str) -> Any:
        files = self.cohorts.files
        if source not in files[-1:]:
            files.append(source)
        keys, versions = self.door.named_keys(reading), self.door.named_versions(reading)
        if self.unwatched is not None:
            self.unwatched.append(Batch(codes, codes, source, rows, None if times is None else _dates(times), keys))
        return self.cohorts.add(rows, keys, versions, times, len(files) - 1)

    @property
    def counts(self) -> dict[str, int]:
        return self.join.counts

    @property
    def sampled(self) -> bool:
        return bool(self.columns.drawn or self._late.columns.drawn)

    @property
    def label_wait(self) -> str | None:  # type: ignore[override]
        """How long the latest labels took, if both sides have times."""
        return duration(median(self._waits) / 1e6) if self._waits else None

    @property
    def predicted(self) -> Times | None:
        """When held predictions were made, which shows how many there are a day."""
        return None if self.columns.time is None else self.cohorts.times

    def _guess(self, names: Sequence[str], where: str) -> Columns:
        return replace(super()._guess(names, where), truth=None)

    def ahead(self) -> Iterator[Batch]:
        return prefetch(iter(self))

    def __iter__(self) -> Iterator[Batch]:
        late = self._late
        tables = self.start(None)
        late.pred = self.columns.pred
        late_tables = late.start(self.columns.id)
        if not self.labelled:
            late_tables = self._learn_labels(late_tables)
        late.join = self.join
        timed = self.columns.time is not None, late.columns.time is not None
        if self.join.max_wait is not None and not all(timed):
            raise InputError("a longest wait needs a column of times both with the predictions and with the labels")
        if self.history is not None and not timed[0]:
            raise InputError("later labels need a column of times with the predictions (--time) to resume")
        predictions = (self.rows_of(table, timed[0]) for table in tables)
        labels = self._late_rows(late_tables, timed[1])
        self._join_all(predictions, labels, timed)
        yield from self._in_order(self.cohorts, timed[0] or (timed[1] and self._completed))

    def _in_order(self, cohorts: Cohorts, timed: bool) -> Iterator[Batch]:
        """All events in the order asked for; if the source will be read again, no batch is ripe in part."""
        until = cohorts.ripe_until() if self.history is not None else None
        batches = [*cohorts.batches(timed, self.columns.by is not None, self.sampled, self._completed, until)]
        if until is not None:
            ripe = np.datetime64(until, "us")
            self.ripe = sum(batch.times is not None and batch.times[-1] < ripe for batch in batches)
            cohorts.drop(until)
        for batch in batches:
            self.warnings.add(batch, len(self.labels.values))
            yield batch

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
        self.malformed += late.malformed

    def _learn_labels(self, late_tables: Iterator[Table]) -> Iterator[Table]:
        """Infer the classes; returns the tables of labels, of which enough were read to show two."""
        preds = classes_of(self.first, self.columns.pred)
        truths, late = classes_of(None, None), list[Table]()
        for table in late_tables:
            late.append(table)
            truths += classes_of(table, self._late.columns.truth)
            if len(met := preds | truths) > 1 or met.keys() <= {0, 1}:
                break
        read = late if self.first is None else [self.first, *late[:1]]
        self.take_labels(truths, preds, " and ".join(table.source for table in read), sum(t.size for t in read))
        self._late.use_labels(self.labels)
        self.join = LabelJoin(self.labels.given, self.positive, self.join.max_waiting, self.join.max_wait)
        self.cohorts.join = self.join
        return chain(late, late_tables)

    def data_warnings(self) -> dict[str, str]:
        own = {"unmatched": self._unmatched(), "delays": self.join.delay_warning}
        return {**{topic: sentence for topic, sentence in own.items() if sentence}, **super().data_warnings()}

    def _unmatched(self) -> str:
        counts = self.counts
        groups = (
            (counts["waiting"], "prediction waits", "predictions wait", "for a label"),
            (counts["expired"] + counts["displaced"], "prediction", "predictions", "left without a label"),
            (counts["repeated_predictions"], "prediction", "predictions", "arrived twice"),
            (counts["waiting_labels"] + counts["unmatched"], "label has", "labels have", "no prediction"),
            (counts["repeated_labels"], "label", "labels", "arrived twice"),
            (counts["late_labels"], "label", "labels", "arrived after the prediction had left"),
        )
        return ", ".join(f"{n:,} {singular if n == 1 else plural} {rest}" for n, singular, plural, rest in groups if n)

    def _join_all(self, predictions: Iterator[_Rows], labels: Iterator[_Rows], timed: tuple[bool, bool]) -> None:
        """Join the rows of both sides by time if both have it, at equal times predictions first."""
        sides = ((rows, False) for rows in predictions), ((rows, True) for rows in labels)
        if all(timed):
            self._join_by_time([*sides[0], *sides[1]])
            return
        # Labels without times arrive when the predictions end, so their delay shows from one night to the next.
        clocked = timed[0] and self.history is not None
        for rows, label in chain(*(sides if timed[1] or clocked else sides[::-1])):
            self._join_rows(rows, np.full(rows.codes.size, label), clocked and not label)

    def _join_by_time(self, sides: list[tuple[_Rows, bool]]) -> None:
        if not sides:
            return
        both = _Rows(*map(np.concatenate, zip(*(rows for rows, _ in sides), strict=True)))
        is_label = np.concatenate([np.full(rows.codes.size, label) for rows, label in sides])
        order = np.argsort(both.times, kind="stable")  # type: ignore[arg-type]
        for start in range(0, order.size, TOGETHER):
            part = order[start : start + TOGETHER]
            self._join_rows(both.select(part), is_label[part], True)

    def _join_rows(self, rows: _Rows, is_label: npt.NDArray[np.bool_], clocked: bool) -> None:
        """Join rows; pairs go to the cohorts."""
        times = None if rows.times is None or not clocked else _dates(rows.times)
        y = self.labels.decode(rows.codes)
        pairs = self.join.replay(rows.ids, y, is_label, times, rows.tags, OwnFirst(rows.drawn))
        if len(pairs):
            if clocked and self._late.columns.time is not None:
                waits = pairs.waits[is_label[pairs.positions]]
                self._waits.extend(waits[np.isfinite(waits)][-LATEST:].tolist())
            self.cohorts.pair(pairs, None if rows.times is None else rows.times[pairs.positions])


def _texts(column: Any) -> tuple[Any, Mask | None]:
    """Ids as text, so that 17 equals "17" in another file, and the rows without one."""
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

"""Turn tables into batches of events. Choose the columns, find missing and invalid values."""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from fourrates.events.batch import Batch, Table
from fourrates.events.columns import checked_column, distinct, is_missing, listed_values
from fourrates.events.door import Columns, Door
from fourrates.events.labels import LabelEncoder, classes_in
from fourrates.events.rows import UNLABELLED, Bad, BadRow, InputError, NoColumn, TooFewClasses
from fourrates.io.data_warnings import DataWarnings, skipped
from fourrates.io.prefetch import prefetch
from fourrates.labels import Labels, shown

if TYPE_CHECKING:
    from fourrates.events.clock import Times
    from fourrates.events.door import Reading
    from fourrates.io.cohorts import Cohorts
    from fourrates.io.history import History

RARER = 2  # of two words, one rarer by this factor becomes the positive label
SEEN = 1 << 20  # rows read, at least, to see two classes
CLASSES = 100  # most classes inferred from the data; more suggest the wrong column

NAMES = {
    "truth": "y_true true truth ground_truth true_label true_class actual_label actual_class human_label human_verdict "
    "human_grade label labels human annotation target actual actuals outcome observed y_actual gold gold_label y class "
    "is_fraud fraud churned churn defaulted converted",
    "pred": "y_pred pred prediction predictions predicted predicted_label predicted_class pred_label pred_class "
    "model_prediction y_hat yhat y_predicted guess judge_label judge_verdict verdict judge_grade grade judge",
    "score": "y_score score proba probability prob y_prob y_proba predicted_probability",
    "time": "timestamp time datetime date ts event_time created_at prediction_time label_time labelled_at "
    "labeled_at known_at",
    "probability": "label_probability",
    "other": "other_probability",
    "id": "id event_id prediction_id transaction_id transaction request_id uuid example_id trace_id run_id",
}
"""Names by which a column is recognised, the clearest first."""
PREDICTED = re.compile(r"(predicted|prediction|pred)[_ .-].+|.+[_ .-](predicted|prediction|pred)", re.IGNORECASE)
NO_CLASS = re.compile(r".*(score|prob|proba|probability|confidence|time|date|at|id|version)", re.IGNORECASE)
GUESSED = {
    "id": "ids",
    "probability": "probabilities of a label",
    "truth": "labels",
    "pred": "predictions",
    "score": "scores",
    "time": "times",
}
WANTED = {"id": "ids (--id)", "truth": "true labels (--truth)", "pred": "predictions (--pred, or --score)"}


def read(
    source: Any,
    *,
    columns: Columns | None = None,
    labels: Iterable[Hashable] | None = (0, 1),
    positive: Hashable = None,
    threshold: float | None = None,
    bad: Bad = "reject",
    history: History | None = None,
    on_message: Callable[[str], None] | None = None,
) -> Events:
    """Read batches of events from almost any source.

    Parameters
    ----------
    source : path, glob, folder, "-", list of these; frame; pair of arrays; iterator of pairs
        A frame is anything pandas, polars, pyarrow or Narwhals knows, or a mapping from names to arrays.
    columns : Columns, optional
        The columns by role; the others are inferred from common names.
    labels, positive
        As for the detectors. Text is read as the value it spells: "1", "1.0" and "true" are all the label 1. None takes
        the labels of the first rows, of a frame those of all.
    threshold : float, optional
        With a score column, the lowest score that predicts the positive label; 0.5 by default.
    bad : {"reject", "skip", "keep"}
        How to handle an invalid row, such as one without a prediction. Raise, or skip and count it. A row without a
        true label is always skipped and counted.
    history : History, optional
        Files read before, whose contents are not read again.
    on_message : callable, optional
        Receives a sentence about each inferred choice.

    Examples
    --------
    >>> from fourrates import io
    >>> events = io.read({"label": [0, 1, 1, None], "prediction": [0, 1, 0, 1]}, on_message=print)
    >>> for batch in events:
    ...     print(batch.truths, batch.preds)
    labels in column 'label', predictions in column 'prediction'
    [0 1 1] [0 1 0]
    >>> events.rows, events.skipped
    (4, 1)

    >>> list(io.read({"label": ["ham", "egg"], "prediction": ["ham", "ham"]}, labels=["ham", "spam"]))
    Traceback (most recent call last):
    ...
    fourrates.io.InputError: frame, row 2: 'egg' in column 'label' is not one of the labels ham, spam
    """
    known = None if labels is None else Labels(labels, positive)
    return Events(source, columns or Columns(), known, threshold, bad, on_message, positive, history)


class Events:
    """The batches of a source. Iterate over it once.

    Attributes
    ----------
    columns : Columns
        The columns in use, inferred ones included; known from the first batch on.
    labels : Labels
        The classes; if inferred from the data, known from the first batch on.
    keys : list
        Segments met so far, in order of appearance, if a `by` column is read.
    rows, skipped : int
        Rows read, and how many of them were skipped.
    malformed : int
        Lines that are no row, if these are skipped; :meth:`data_warnings` adds them to both.
    lacking : Counter
        By column, the rows skipped because its value was missing.
    sources : list of str
        The files read so far.
    utc : bool
        Whether times carry a zone; they are then in UTC.
    settled, labelled : bool
        Whether the columns and the classes are known.
    warnings : DataWarnings
        Problems of the rows so far; :meth:`data_warnings` describes them.
    """

    needs: tuple[str, ...] = ("truth", "pred")  # roles whose columns must be there; a score is a prediction too
    optional: tuple[str, ...] = ()  # roles whose columns are used if they are there
    names_source = False  # whether messages about columns name the source
    time_hint = "--time"

    cohorts: Cohorts | None = None  # with late labels, in the order of predictions
    ripe = 0
    unwatched: deque[Batch] | None = None  # with late labels, predictions read and not taken, if wanted
    label_wait: str | None = None  # how long labels took lately

    def __init__(
        self,
        source: Any,
        columns: Columns,
        labels: Labels | None,
        threshold: float | None = None,
        bad: Bad = "reject",
        on_message: Callable[[str], None] | None = None,
        positive: Hashable = None,
        history: History | None = None,
    ) -> None:
        if columns.score is not None and columns.pred is not None:
            raise InputError("predictions are read from a column of labels or from a score, not from both")
        self.columns, self.bad, self.history = columns, bad, history
        self.labels = labels if labels is not None else Labels((0, 1))
        self.labelled, self._positive = labels is not None, positive
        self.door = Door(self.labels, columns, 0.5 if threshold is None else threshold, bad)
        self.keys: list[str] = self.door.names
        self.rows = self.skipped = self.malformed = 0
        self.lacking: Counter[str] = Counter()
        self.warnings = DataWarnings()
        self.utc = False
        self.sources: list[str] = []
        self._threshold = threshold
        self._on_message = on_message or (lambda sentence: None)
        self._source = source
        self.settled = False

    @property
    def sampled(self) -> bool:
        """Whether its events were drawn for labelling."""
        return bool(self.columns.drawn)

    @property
    def positive(self) -> Hashable:
        """The positive label of two, given or inferred; None for more classes."""
        return self.labels.values[1] if len(self.labels.values) == 2 else None

    def settle(self, columns: Columns) -> None:
        """Use the columns of an earlier reading without checking the names again."""
        self.columns, self.settled = columns, True
        self.door = Door(self.door.encoder, columns, self.threshold, self.bad)
        self.keys = self.door.names

    def __iter__(self) -> Iterator[Batch]:
        return self._batches(self.tables())

    def ahead(self) -> Iterator[Batch]:
        """Read ahead. One thread reads tables, another encodes them."""
        return prefetch(self._batches(prefetch(self.tables())))

    def reread(self, extra: Sequence[str]) -> Events:
        """The same events once more, with more columns in their tables."""
        check_again(self._source)
        columns = replace(self.columns, extra=tuple(extra))
        return Events(self._source, columns, self.labels, self._threshold, self.bad, None, self._positive)

    def tables(self) -> Iterator[Table]:
        from fourrates.io.sources import tables  # which read the columns settled here

        return tables(self._source, self)

    def _batches(self, tables: Iterator[Table]) -> Iterator[Batch]:
        for table in tables if self.labelled else self._until_labelled(tables):
            yield from self.batch(table)

    def _until_labelled(self, tables: Iterator[Table]) -> Iterator[Table]:
        """The same tables, after reading enough to show two classes; all of a frame, which is in memory."""
        first: list[Table] = [] if is_stream(self._source) else list(tables)
        for table in tables:
            first.append(table)
            try:
                self.learn_labels(first)
                break
            except TooFewClasses:
                if sum(table.size for table in first) > SEEN:
                    raise
        if first and not self.labelled:
            self.learn_labels(first)  # which raises if they show too few
        yield from chain(first, tables)

    # From names to columns ----------------------------------------------------------------------------------

    def resolve(self, names: Sequence[str], times: Sequence[str] = (), source: str = "") -> Columns:
        """Choose columns among `names`; only those in `times` can become the time."""
        where = f"{source}: " if source else ""
        asked = self.columns
        for name in asked.used():
            if name not in names:
                raise NoColumn(where, name, listed(names))
        columns = self._guess(names, where)
        if columns.time is None and not self.settled:
            columns = replace(columns, time=guess_column("time", times, columns.used()))
        guessed = [
            f"{what} in column {getattr(columns, kind)!r}"
            + (f" (positive from {self.threshold:g} on)" if kind == "score" else "")
            for kind, what in GUESSED.items()
            if getattr(columns, kind) is not None and getattr(asked, kind) is None
        ]
        if guessed:
            self._on_message((where if self.names_source else "") + ", ".join(guessed))
        others = [name for name in times if name not in columns.used()]
        if columns.time is None and others and not self.settled:
            self._on_message(f"no times are read; dates are in column {listed(others)} ({self.time_hint})")
        self.columns, self.settled = columns, True
        return columns

    def _guess(self, names: Sequence[str], where: str) -> Columns:
        """The columns by name, with required ones inferred, and those of probabilities if both are there."""
        columns, by_score = self.columns, self._threshold is not None
        known = columns.truth or columns.pred or columns.score
        if self.needs == ("truth", "pred") and not known and not by_score and (pair := guess_pair(names)) is not None:
            columns = replace(columns, truth=pair[0], pred=pair[1])
        for kind in self.needs:
            if kind != "pred":
                columns = self._guess_kind(columns, kind, names)
                continue
            if columns.score is None and not by_score:
                columns = self._guess_kind(columns, "pred", names)
            if columns.pred is None:
                columns = self._guess_kind(columns, "score", names)
        predicted = columns.pred is not None or columns.score is not None
        for kind in self.needs:
            if getattr(columns, kind) is None and not (kind == "pred" and predicted):
                what = "scores (--score)" if kind == "pred" and by_score else WANTED[kind]
                hint = "; in a second file: detect --labels-from FILE" if kind == "truth" and predicted else ""
                there = f"is only {listed(names)}; is it a table?" if len(names) == 1 else f"are {listed(names)}"
                raise InputError(f"{where}which column holds the {what}? There {there}{hint}")
        self._check_score(columns.score, where)
        for kind in self.optional:
            columns = self._guess_kind(columns, kind, names)
        both = self._guess_kind(self._guess_kind(columns, "probability", names), "other", names)
        return both if both.drawn else columns

    def _guess_kind(self, columns: Columns, kind: str, names: Sequence[str]) -> Columns:
        if getattr(columns, kind) is not None:
            return columns
        return replace(columns, **{kind: guess_column(kind, names, columns.used())})  # type: ignore[arg-type]

    def _check_score(self, score: str | None, where: str) -> None:
        if score is not None and self.labelled and len(self.labels.values) != 2:
            raise InputError(f"{where}a score goes with two labels, not with {len(self.labels.values)}")

    def _set_labels(self, labels: Iterable[Hashable]) -> None:
        self.labelled = True
        try:
            self.labels = Labels(labels, self._positive)
        except ValueError as error:
            raise InputError(str(error)) from None
        self.door.encoder = LabelEncoder(self.labels)

    def learn_labels(self, tables: Iterable[Table]) -> None:
        """Infer the labels from tables, all of one kind, or 0 and 1 if these occur."""
        truths: Counter[Hashable] = Counter()
        preds: Counter[Hashable] = Counter()
        source, rows = "", 0
        for table in tables:
            if not self.settled:
                self.resolve(list(table.data), table.times, table.source)
            for name, met in ((self.columns.truth, truths), (self.columns.pred, preds)):
                met.update(classes_of(table, name))
            self._check_stray(table, truths)
            source, rows = table.source, rows + table.size
        self.take_labels(truths, preds, source, rows)

    def _check_stray(self, table: Table, truths: Counter[Hashable]) -> None:
        """Raise, with its place, at a third true label beside scores."""
        if self.columns.score is None or len(truths) < 3 or _is_mistake(truths):
            return
        column = listed_values(table.data[self.columns.truth or ""])
        usual = [label for label, _ in truths.most_common(2)]
        row = next((at for at, value in enumerate(column) if classes_in([value]).keys() - {*usual}), 0)
        two = ",".join(map(str, usual))
        raise InputError(
            f"{table.place(row)}: {shown(column[row])} is a label beside {two}, and scores need two; "
            f"--classes {two} rejects it"
        )

    def take_labels(self, truths: Counter[Hashable], preds: Counter[Hashable], source: str, rows: int) -> None:
        """Set the labels from counts over the first `rows` rows of a source."""
        met = truths | preds
        if met.keys() <= {0, 1} or _is_mistake(met):
            self._set_labels((0, 1))
            return
        if not 2 <= len(met) <= CLASSES:
            few = ", ".join(map(repr, met)) or "none"
            found = f"{len(met)} different labels" if len(met) > 2 else f"only one label, {few},"
            error = InputError if len(met) > 2 else TooFewClasses
            raise error(f"{source}: {found} in the first {rows:,} rows; name the classes (--classes)")
        found_labels = sorted(met, key=lambda label: (isinstance(label, str), label))
        rarer = self._rarer(found_labels, truths)
        if len(found_labels) == 2:  # the positive one last, as in the counts of a reference
            last = rarer if self._positive is None else self._positive
            found_labels.sort(key=lambda label: label == last)
        self._set_labels(found_labels)
        self._check_score(self.columns.score, f"{source}: ")
        listed_labels = ", ".join(map(str, found_labels[:12])) + (" ..." if len(found_labels) > 12 else "")
        if len(found_labels) == 2:
            why = "" if self._positive is not None else ", the rarer," if rarer is not None else ""
            guessed = "" if self._positive is not None else " (--positive)"
            listed_labels += f"; {self.labels.values[1]}{why} is the positive one{guessed}"
        self._on_message(f"classes from the data: {listed_labels}")

    def _rarer(self, labels: Sequence[Hashable], truths: Counter[Hashable]) -> Hashable:
        """The label that is much rarer among the true ones, and so likely the positive one."""
        if self._positive is not None or len(labels) != 2 or not all(isinstance(label, str) for label in labels):
            return None
        rarer, other = sorted(labels, key=lambda label: truths[label])
        return rarer if RARER * truths[rarer] <= truths[other] else None

    @property
    def threshold(self) -> float:
        return 0.5 if self._threshold is None else self._threshold

    # From columns to codes ----------------------------------------------------------------------------------

    def batch(self, table: Table) -> Iterator[Batch]:
        columns = self.columns if self.settled else self.resolve(list(table.data), table.times, table.source)
        if not self.labelled:  # a line at a time, as from a pipe
            self.learn_labels([table])
        self.door.columns = columns
        reading = self.door.reading(table)
        self._note_clock()
        self.warnings.add_drawn(reading)
        self._accept(table, reading)
        batch = self.door.batch(reading, table)
        if batch.rows.size:
            self.warnings.add(batch, len(self.labels.values))
            yield batch

    def _accept(self, table: Table, reading: Reading) -> None:
        """Count the rows of a table; a bad row raises instead, as a rejected table may be read again in parts."""
        if self.bad == "reject" and (first := reading.bad.first) is not None:
            raise self.rejection(table, first)
        self.rows += table.size
        self.skipped += len(reading.bad)
        self.lacking += reading.bad.lacking()
        self.warnings.unlabelled += reading.bad.counts[UNLABELLED]
        self.utc |= reading.utc
        if reading.scores is not None:
            self.warnings.add_scores(reading.scores, reading.with_comma)
        if table.source not in self.sources[-1:]:
            self.sources.append(table.source)

    def times_in(self, table: Table, name: str) -> tuple[Times, bool]:
        """The times of a table, NaT if invalid, and whether they carry a zone."""
        times, utc, _ = self.door.clock.read(checked_column(table.data[name], name, validate=not table.sound))
        self._note_clock()
        return times, utc

    def _note_clock(self) -> None:
        """Keep the date order and the epoch unit that the first times show."""
        clock, columns = self.door.clock, self.columns
        if clock.dates is not None and columns.dates is None:
            self._on_message(f"dates in column {columns.time!r} have the {clock.dates} first")
        if (clock.dates, clock.unit) != (columns.dates, columns.unit):
            self.columns = replace(columns, dates=clock.dates, unit=clock.unit)

    def data_warnings(self) -> dict[str, str]:
        self.rows, self.skipped, self.malformed = self.rows + self.malformed, self.skipped + self.malformed, 0
        left_out = skipped(self.rows, self.skipped, self.warnings.unlabelled)
        threshold = None if self.columns.score is None else self.threshold
        return {
            **({} if left_out is None else {"skipped": left_out}),
            **self.warnings.sentences(self.labels, threshold),
        }

    def rejection(self, table: Table, bad: BadRow) -> InputError:
        """The error for a bad row, with an option that may help if its label is unexpected."""
        from shlex import quote

        columns = [name for name in (self.columns.truth, self.columns.pred) if name is not None]
        met = dict.fromkeys(str(met) for name in columns for met in distinct(table.data[name]) if not is_missing(met))
        plain = 2 <= len(met) <= 8 and all(label.isprintable() and "," not in label for label in met)
        hinted = bad.code == "bad_label" and self.labels.values == (0, 1) and plain
        hint = f"; if these are the labels: --classes {quote(','.join(met))}" if hinted else ""
        return InputError(f"{table.place(bad.row)}: {bad.problem}{hint}")


def is_stream(source: Any) -> bool:
    """Whether a source is read piece by piece: files, pipes and iterators are, frames are not."""
    paths = source if isinstance(source, list | tuple) else [source]
    is_file = bool(paths) and all(isinstance(path, str | os.PathLike) for path in paths)
    return is_file or isinstance(source, Iterator)


def check_again(source: Any) -> None:
    if isinstance(source, Iterator):
        raise InputError("the data cannot be read again")


class Predictions(Events):
    """Predictions without their labels; the truths of a batch stand for nothing."""

    needs: tuple[str, ...] = ("pred",)


def _is_mistake(met: Counter[Hashable]) -> bool:
    """Whether a word is among 0 and 1. It will be rejected with its row."""
    return {0, 1} <= met.keys() and not all(isinstance(label, int) for label in met)


def classes_of(table: Table | None, name: str | None) -> Counter[Hashable]:
    if table is None or name is None:
        return Counter()
    return classes_in(checked_column(table.data[name], name, validate=not table.sound))


def guess_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """A prediction column named after a label column, and that column, as predicted_queue and queue."""
    plain = {_plain(name): name for name in names}
    pairs = [
        (plain[known], name)
        for text, name in plain.items()
        for known in (re.sub(r"^(predicted|prediction|pred)|(predicted|prediction|pred)$", "", text),)
        if known != text and known in plain
    ]
    return pairs[0] if len(pairs) == 1 else None


def guess_column(kind: str, names: Sequence[str], taken: Sequence[str]) -> str | None:
    """The unused column whose name marks it as of a kind in `NAMES`; or the only one named as predicted_fraud is."""
    plain = {_plain(name): name for name in reversed(names) if name not in taken}
    found = next((plain[_plain(known)] for known in NAMES[kind].split() if _plain(known) in plain), None)
    if found is None and kind == "pred":
        alike = [name for name in plain.values() if PREDICTED.fullmatch(name) and not NO_CLASS.fullmatch(name)]
        return alike[0] if len(alike) == 1 else None
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def listed(names: Sequence[str]) -> str:
    """Names for a message, shortened if there are many."""
    shown = ", ".join(repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")

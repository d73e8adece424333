"""Tables to batches of events: which column is what, and what is missing or wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from fourrates.io.ahead import ahead
from fourrates.io.lines import MAX_LINE
from fourrates.io.remarks import Remarks, skipped
from fourrates.io.table import Batch, InputError, NoColumn, Table
from fourrates.io.values import (
    UNKNOWN,
    Words,
    classes_of,
    dates_of,
    dictionary,
    distinct,
    either,
    is_missing,
    item,
    numbers,
    times_of,
)
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.io.dates import Order
    from fourrates.io.history import History
    from fourrates.io.values import Mask, Times

Missing = Literal["skip", "refuse"]
MISSING: tuple[Missing, ...] = get_args(Missing)


RARER = 2  # times: a word that is at least so much rarer than the other is taken for the positive label
CLASSES = 100  # taken from the data, at most: more are a sign that the column holds something else

NAMES = {
    "truth": "y_true true truth ground_truth true_label true_class actual_label actual_class label labels target "
    "actual actuals outcome observed y_actual gold gold_label y class",
    "guess": "y_pred pred prediction predictions predicted predicted_label predicted_class pred_label pred_class "
    "model_prediction y_hat yhat y_predicted guess",
    "score": "y_score score proba probability prob y_prob y_proba predicted_probability",
    "time": "timestamp time datetime date ts event_time created_at",
    "id": "id event_id prediction_id transaction_id transaction request_id uuid",
}
"""What a column is guessed to be by its name, most telling name first."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what. Those that are None are guessed, or not there.

    `dates` says how the times are written where they are not ISO 8601: "day" first (01.09.2026) or "month" first.
    """

    truth: str | None = None
    guess: str | None = None
    score: str | None = None
    time: str | None = None
    by: str | None = None
    id: str | None = None
    dates: Order | None = None

    def __post_init__(self) -> None:
        if self.dates not in (None, "day", "month"):
            raise ValueError(f"dates {self.dates!r}: the day or the month is first")

    def used(self) -> list[str]:
        """The names of those that are there."""
        those = (self.truth, self.guess, self.score, self.time, self.by, self.id)
        return [name for name in those if name is not None]


def read(
    source: Any,
    *,
    columns: Columns | None = None,
    labels: Iterable[Hashable] | None = (0, 1),
    positive: Hashable = None,
    threshold: float | None = None,
    missing: Missing = "skip",
    max_line: int = MAX_LINE,
    history: History | None = None,
    say: Callable[[str], None] | None = None,
) -> Events:
    """Batches of events from nearly anything.

    Parameters
    ----------
    source : path, glob, folder, "-", list of these; frame; pair of arrays; iterator of pairs
        A frame is anything pandas, polars, pyarrow or Narwhals knows, or a mapping from names to arrays.
    columns : Columns, optional
        Which column is what; what is left out is guessed from common names.
    labels, positive
        As for the detectors. Text is read as what it spells: "1", "1.0" and "true" are all the label 1. Labels None are
        taken from the first rows that are read.
    threshold : float, optional
        With a score column: the score from which on the positive label is predicted; 0.5 if not given.
    missing : {"skip", "refuse"}
        What to do with a row whose label, prediction or key is missing: count and skip it, or raise.
    max_line : int
        Bytes that a line of JSON, or the header of a CSV file, may have; 16 MiB by default.
    history : History, optional
        The files that were read before: what is in it is not read again.
    say : callable, optional
        Told, in a sentence, what was guessed.

    Examples
    --------
    >>> from fourrates import io
    >>> events = io.read({"label": [0, 1, 1, None], "prediction": [0, 1, 0, 1]}, say=print)
    >>> for batch in events:
    ...     print(batch.truths, batch.guesses)
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
    return Events(source, columns or Columns(), known, threshold, missing, say, positive, max_line, history)


class Events:
    """The batches of a source. Iterate over it once.

    Attributes
    ----------
    columns : Columns
        What is read, guesses included; known from the first batch on.
    labels : Labels
        The classes; known from the first batch on, where they are taken from the data.
    keys : list
        The streams met so far, in the order of their appearance, when a `by` column is read.
    rows, skipped : int
        Rows read, and those among them that were skipped because something was missing.
    lacking : dict
        By column, the rows in which its value was missing.
    sources : list of str
        The files read so far.
    utc : bool
        Whether times carry a zone; they are then given in UTC.
    remarks : Remarks
        What is odd about the rows so far; :meth:`odd` has it in sentences.
    """

    def __init__(
        self,
        source: Any,
        columns: Columns,
        labels: Labels | None,
        threshold: float | None = None,
        missing: Missing = "skip",
        say: Callable[[str], None] | None = None,
        positive: Hashable = None,
        max_line: int = MAX_LINE,
        history: History | None = None,
    ) -> None:
        if max_line < 1:
            raise ValueError(f"max_line {max_line!r} is not positive")
        if missing not in MISSING:
            raise ValueError(f"missing {missing!r} is not one of {MISSING}")
        if columns.score is not None and columns.guess is not None:
            raise InputError("predictions come from a column of labels or from a score, not from both")
        self.columns, self.missing, self.max_line, self.history = columns, missing, max_line, history
        self.labels = labels if labels is not None else Labels((0, 1))
        self._labelled, self._positive = labels is not None, positive
        self.keys: list[str] = []
        self.rows = self.skipped = 0
        self.lacking: dict[str, int] = {}
        self.remarks = Remarks()
        self.utc = False
        self.sources: list[str] = []
        self._known: dict[Hashable, int] = {}
        self._words = Words(self.labels)
        self._threshold = threshold
        self._say = say or (lambda sentence: None)
        self._source = source
        self._settled = False

    @property
    def positive(self) -> Hashable:
        """The positive label of two, as asked for or as guessed; None where there are more."""
        return self.labels.values[1] if len(self.labels.values) == 2 else None

    @property
    def labelled(self) -> bool:
        """Whether the labels are known."""
        return self._labelled

    @property
    def settled(self) -> bool:
        """Whether it is known which column is what."""
        return self._settled

    def settle(self, columns: Columns) -> None:
        """Go on with the columns of an earlier reading, without a look at the names that are there."""
        self.columns, self._settled = columns, True

    def __iter__(self) -> Iterator[Batch]:
        return self._batches(self.tables())

    def ahead(self) -> Iterator[Batch]:
        """Iterate with the next batches in the making: tables are read in one thread and turned into codes in another.

        Examples
        --------
        >>> from fourrates import io
        >>> [batch.truths.tolist() for batch in io.read({"y_true": [0, 1], "y_pred": [0, 1]}).ahead()]
        [[0, 1]]
        """
        return ahead(self._batches(ahead(self.tables())))

    def tables(self) -> Iterator[Table]:
        """What is read, before it is turned into codes."""
        from fourrates.io.sources import tables  # which read the columns settled here

        return tables(self._source, self)

    def _batches(self, tables: Iterator[Table]) -> Iterator[Batch]:
        for table in tables:
            for batch in self.batch(table):
                if self.history is not None:
                    self.history.note(batch, self.keys)
                yield batch

    def again(self, source: Any) -> Iterator[tuple[Batch, Sequence[str]]]:
        """Batches of a source and the names of their streams, read with the same settings and counted nowhere."""
        events = Events(
            source, self.columns, self.labels, self._threshold, self.missing, None, self._positive, self.max_line
        )
        for batch in events:
            yield batch, events.keys

    # From names to columns ----------------------------------------------------------------------------------

    def resolve(self, names: Sequence[str], times: Sequence[str] = (), source: str = "") -> Columns:
        """Settle which column is what among `names`; a time is guessed only among those that look like `times`."""
        where = f"{source}: " if source else ""
        asked = self.columns
        for name in asked.used():
            if name not in names:
                raise NoColumn(where, name, listed(names))
        taken = asked.used()
        truth, guess, score = asked.truth or guess_column("truth", names, taken), asked.guess, asked.score
        if guess is None and score is None:
            guess = None if self._threshold is not None else guess_column("guess", names, taken)
            score = guess_column("score", names, taken) if guess is None else None
        if truth is None:
            hint = "" if guess is None and score is None else "; in a file of their own: detect --labels-from FILE"
            raise InputError(f"{where}which column holds the true labels (--truth)? There are {listed(names)}{hint}")
        if guess is None and score is None:
            wanted = "scores (--score)" if self._threshold is not None else "predictions (--pred, or --score)"
            raise InputError(f"{where}which column holds the {wanted}? There are {listed(names)}")
        self._check_score(score, where)
        time = asked.time
        if time is None and not self._settled:
            time = guess_column("time", times, [*taken, *filter(None, (truth, guess, score))])
        settled = Columns(truth, guess, score, time, asked.by, asked.id, asked.dates)
        guessed = [
            f"{what} in column {getattr(settled, kind)!r}{extra}"
            for kind, what, extra in (
                ("truth", "labels", ""),
                ("guess", "predictions", ""),
                ("score", "scores", f" (positive from {self.threshold:g} on)"),
                ("time", "times", ""),
            )
            if getattr(settled, kind) is not None and getattr(asked, kind) is None
        ]
        if guessed:
            self._say(", ".join(guessed))
        self.hint_at_times(settled, times)
        self.columns, self._settled = settled, True
        return settled

    def hint_at_times(self, settled: Columns, times: Sequence[str]) -> None:
        """Say which column might be the times, where none has a name that tells."""
        others = [name for name in times if name not in settled.used()]
        if settled.time is None and others and not self._settled:
            self._say(f"no times are read; dates stand in column {listed(others)} (--time)")

    def _check_score(self, score: str | None, where: str) -> None:
        if score is not None and self._labelled and len(self.labels.values) != 2:
            raise InputError(f"{where}a score goes with two labels, not with {len(self.labels.values)}")

    def _set_labels(self, labels: Iterable[Hashable]) -> None:
        try:
            self.labels = Labels(labels, self._positive)
        except ValueError as error:
            raise InputError(str(error)) from None
        self._words = Words(self.labels)

    def learn_labels(self, tables: Iterable[Table]) -> None:
        """Take the labels from what stands in tables; all of one kind, or 0 and 1 where these are among them."""
        truths: Counter[Hashable] = Counter()
        guesses: Counter[Hashable] = Counter()
        source, rows = "", 0
        for table in tables:
            if not self._settled:
                self.resolve(list(table.data), table.times, table.source)
            for name, met in ((self.columns.truth, truths), (self.columns.guess, guesses)):
                met.update(classes_of(table, name))
            source, rows = table.source, rows + table.size
        self.take_labels(truths, guesses, source, rows)

    def take_labels(self, truths: Counter[Hashable], guesses: Counter[Hashable], source: str, rows: int) -> None:
        """Settle the labels: those that stand in so many of the first `rows` rows of a source."""
        met = truths | guesses
        self._labelled = True
        is_mistake = {0, 1} <= met.keys() and not all(isinstance(label, int) for label in met)
        if met.keys() <= {0, 1} or is_mistake:  # a word among 0 and 1 is refused with its row
            self._set_labels((0, 1))
            return
        if not 2 <= len(met) <= CLASSES:
            few = ", ".join(map(repr, met)) or "none"
            found = f"{len(met)} different labels" if len(met) > 2 else f"only one label, {few},"
            raise InputError(f"{source}: {found} in the first {rows:,} rows; name the classes (--labels)")
        found_labels = sorted(met, key=lambda label: (isinstance(label, str), label))
        rarer = self._rarer(found_labels, truths)
        if len(found_labels) == 2:  # the positive one last, as in the counts of a reference
            last = rarer if self._positive is None else self._positive
            found_labels.sort(key=lambda label: label == last)
        self._set_labels(found_labels)
        self._check_score(self.columns.score, f"{source}: ")
        told = ", ".join(map(str, found_labels[:12])) + (" ..." if len(found_labels) > 12 else "")
        if len(found_labels) == 2:
            why = "" if self._positive is not None else ", the rarer," if rarer is not None else ""
            guessed = "" if self._positive is not None else " (--positive)"
            told += f"; {self.labels.values[1]}{why} is the positive one{guessed}"
        self._say(f"classes from the data: {told}")

    def _rarer(self, labels: Sequence[Hashable], truths: Counter[Hashable]) -> Hashable:
        """The one of two words that is much rarer among the true labels, and so likelier to be what is looked for."""
        if self._positive is not None or len(labels) != 2 or not all(isinstance(label, str) for label in labels):
            return None
        rarer, other = sorted(labels, key=lambda label: truths[label])
        return rarer if RARER * truths[rarer] <= truths[other] else None

    @property
    def threshold(self) -> float:
        """The score from which on the positive label is predicted."""
        return 0.5 if self._threshold is None else self._threshold

    # From columns to codes ----------------------------------------------------------------------------------

    def batch(self, table: Table) -> Iterator[Batch]:
        """The events of a table; none if every row is skipped."""
        columns = self.columns if self._settled else self.resolve(list(table.data), table.times, table.source)
        if not self._labelled:
            self.learn_labels([table])
        size = table.size
        missing: Mask | None = None
        lacking: dict[str, int] = {}
        pairs: list[Any] = []
        for name in (columns.truth, columns.guess):
            if name is None:
                continue
            codes, gone = self._words.encode(table.data[name])
            bad = codes == UNKNOWN
            if gone is not None:
                bad &= ~gone
                missing = either(missing, gone)
                lacking[name] = int(gone.sum())
            if bad.any():
                raise self._unknown(table, name, int(bad.argmax()))
            pairs.append(codes)
        if columns.score is not None:
            scores, gone, with_comma = numbers(table, columns.score)
            self.remarks.scores(scores, with_comma)
            missing = either(missing, gone)
            lacking[columns.score] = 0 if gone is None else int(gone.sum())
            pairs.append((scores >= self.threshold).astype(np.uint16))
        times = None
        if columns.time is not None:
            times, utc = self.times_in(table, columns.time)
        keys = None
        if columns.by is not None:
            keys, gone = self._number_keys(table.data[columns.by])
            missing = either(missing, gone)
            lacking[columns.by] = 0 if gone is None else int(gone.sum())
        rows = table.rows
        if missing is not None and missing.any():
            if self.missing == "refuse":
                at = int(missing.argmax())
                raise InputError(f"{table.place(at)}: {self._what_is_missing(table, at)} is missing")
            kept = ~missing
            self.skipped += size - int(kept.sum())
            pairs = [codes[kept] for codes in pairs]
            rows = rows[kept]
            times = None if times is None else times[kept]
            keys = None if keys is None else keys[kept]
        # Counted when nothing can be wrong with the table any more: a refused one may be read again in parts.
        self.rows += size
        for name, count in lacking.items():
            if count:
                self.lacking[name] = self.lacking.get(name, 0) + count
        self.remarks.unlabelled += 0 if columns.truth is None else lacking.get(columns.truth, 0)
        self.utc |= times is not None and utc
        if table.source not in self.sources[-1:]:
            self.sources.append(table.source)
        if rows.size:
            batch = Batch(pairs[0], pairs[1], table.source, rows, times, keys)
            self.remarks.take(batch, len(self.labels.values))
            yield batch

    def times_in(self, table: Table, name: str) -> tuple[Times, bool]:
        """Times, as :func:`times_of` has them; how dates are written is learned from the first table that has some."""
        if self.columns.dates is None and (dates := dates_of(table, name)) is not None:
            self.columns = replace(self.columns, dates=dates)
            self._say(f"dates in column {name!r} have the {dates} first")
        return times_of(table, name, self.columns.dates)

    def odd(self) -> dict[str, str]:
        """What is odd about what was read, in sentences, by what each is about."""
        left_out = skipped(self.rows, self.skipped, self.remarks.unlabelled)
        threshold = None if self.columns.score is None else self.threshold
        said = self.remarks.sentences(self.labels, threshold)
        return said if left_out is None else {"skipped": left_out, **said}

    def _what_is_missing(self, table: Table, at: int) -> str:
        columns = self.columns
        for name in (columns.truth, columns.guess, columns.score, columns.by):
            if name is not None and is_missing(item(table.data[name], at)):
                return f"the value in column {name!r}"
        return "a value"

    def _unknown(self, table: Table, name: str, at: int) -> InputError:
        from shlex import quote

        value = item(table.data[name], at)
        labels = self.labels.values
        known = ", ".join(map(str, labels[:20])) + (" ..." if len(labels) > 20 else "")
        columns = [name for name in (self.columns.truth, self.columns.guess) if name is not None]
        met = dict.fromkeys(str(met) for name in columns for met in distinct(table.data[name]) if not is_missing(met))
        plain = 2 <= len(met) <= 8 and all(one.isprintable() and "," not in one for one in met)
        hint = f"; if these are the labels: --labels {quote(','.join(met))}" if labels == (0, 1) and plain else ""
        return InputError(f"{table.place(at)}: {value!r} in column {name!r} is not one of the labels {known}{hint}")

    def _number_keys(self, column: Any) -> tuple[npt.NDArray[np.int64], Mask | None]:
        values, positions, gone = dictionary(column)
        numbers = np.empty(len(values) + 1, np.int64)
        for i, value in enumerate(values):
            if is_missing(value):
                continue
            name = str(value)  # whose hash is seeded: numbers could be chosen so that theirs collide
            if name not in self._known:
                self._known[name] = len(self.keys)
                self.keys.append(name)
            numbers[i] = self._known[name]
        return numbers[positions], gone


def guess_column(kind: str, names: Sequence[str], taken: Sequence[str]) -> str | None:
    """The column that by its name is of a kind in `NAMES`, among those that are not taken."""
    plain = {_plain(name): name for name in reversed(names) if name not in taken}
    return next((plain[_plain(known)] for known in NAMES[kind].split() if _plain(known) in plain), None)


def _plain(name: str) -> str:
    """A name without case, spaces and signs: yTrue, Y True and y_true are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    shown = ", ".join(repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")

"""A classifier that is watched, and learnt anew when it drifts.

:class:`Relearner` is the paper's loop around any scikit-learn or river classifier: predict, observe what came true,
keep the examples of a warning, and on a drift learn the next model from them. It takes streams one example at a time or
in batches, labels at once or late, and gives predictions, drifts, and the :class:`Life` of every model.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from fourrates.detectors import Detector
from fourrates.detectors.parameters import check_whole
from fourrates.drift import Drift
from fourrates.rows import count, join, table, take

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes

Why = Literal["first", "drift", "hand"]
UNKNOWN = -1  # what the serving model says, where it has not been asked
FIRST_BLOCK, LARGEST_BLOCK = 256, 2048  # examples predicted at once: what lies behind a drift may be predicted in vain


class FitError(RuntimeError):
    """The next model could not be learnt; the old one keeps serving.

    Attributes
    ----------
    window : range
        The examples it should have learnt from.
    predictions : array or None
        What :meth:`Relearner.run` would have returned.
    """

    def __init__(self, window: range, reason: str) -> None:
        super().__init__(window, reason)
        self.window, self.reason = window, reason
        self.predictions: npt.NDArray[Any] | None = None

    def __str__(self) -> str:
        return (
            f"no model could be learnt from the window {self.window.start:,} to {self.window.stop - 1:,} "
            f"({self.reason}); the old model keeps serving"
        )


@dataclass(frozen=True, slots=True)
class Life:
    """What became of one model.

    Attributes
    ----------
    start, stop : int
        It served for the examples ``range(start, stop)`` of the stream; `stop` is None while it serves.
    why : {"first", "drift", "hand"}
        Why it came: it was the first, the one before had drifted, or the user replaced that by hand.
    window : range or None
        The examples of the stream it has learnt from; None if it was learnt from others.
    drift : Drift or None
        The drift that ended its concept.
    confusion : tuple of tuples of int
        How it scored: counts by true class and then by predicted class, in the order of the detector's labels.
    """

    start: int
    stop: int | None
    why: Why
    window: range | None
    drift: Drift | None
    confusion: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """How many labels it was held against."""
        return sum(map(sum, self.confusion))

    @property
    def correct(self) -> int:
        """How many of its predictions came true."""
        return sum(row[i] for i, row in enumerate(self.confusion))

    @property
    def accuracy(self) -> float:
        """The share of its predictions that came true; nan before the first."""
        return self.correct / self.n if self.n else float("nan")

    def __str__(self) -> str:
        until = "on" if self.stop is None else f"to {self.stop - 1:,}"
        source = "" if self.window is None else f", learnt from {self.window.start:,} to {self.window.stop - 1:,}"
        return f"{self.start:,} {until}: {self.why}{source}, accuracy {self.accuracy:.3f} of {self.n:,}"


class _Window:
    """The newest examples of a stream, without gaps and at most `most` of them."""

    def __init__(self, classes: int, most: int) -> None:
        self.start = 0
        self.counts = np.zeros(classes, np.int64)  # by class
        self._most = most
        self._size = 0
        self._parts: deque[tuple[Any, Codes]] = deque()

    @property
    def positions(self) -> range:
        return range(self.start, self.start + self._size)

    @property
    def has_two_classes(self) -> bool:
        return int(np.count_nonzero(self.counts)) > 1

    def add(self, rows: Any, truths: Codes) -> None:
        """Take the examples that come next in the stream; what is kept of them is copied."""
        self.forget_before(self.start + self._size + truths.size - self._most)
        newest = np.arange(max(truths.size - self._most, 0), truths.size)
        if newest.size:
            self._parts.append((take(rows, newest), truths[newest]))
            self._count(truths[newest], 1)

    def forget_before(self, position: int) -> None:
        """Drop what stands before a position, which may lie behind the last example: then the next stands there."""
        while self.start < position and self._parts:
            rows, truths = self._parts.popleft()
            cut = min(position - self.start, truths.size)
            if cut < truths.size:
                self._parts.appendleft((take(rows, slice(cut, None)), truths[cut:]))
            self._count(truths[:cut], -1)
            self.start += cut
        self.start = max(self.start, position)

    def all(self) -> tuple[Any, Codes]:
        """The examples and their codes."""
        return join([rows for rows, _ in self._parts]), np.concatenate([truths for _, truths in self._parts])

    def _count(self, truths: Codes, sign: int) -> None:
        self._size += sign * truths.size
        self.counts += sign * np.bincount(truths, minlength=self.counts.size)


class _Asked:
    """What one call of `predict` asked, as far as its labels have not come."""

    __slots__ = ("guesses", "ids", "life", "rows", "waiting")

    def __init__(self, rows: Any, guesses: npt.NDArray[np.int32], ids: list[Hashable], life: int) -> None:
        self.rows, self.guesses, self.ids, self.life = rows, guesses, ids, life
        self.waiting = len(ids)


class _Pending:
    """Predictions that wait for their labels, in the order they were made."""

    def __init__(self) -> None:
        self._places: dict[Hashable, tuple[_Asked, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, one: Hashable) -> bool:
        return one in self._places

    def add(self, asked: _Asked) -> None:
        for row, one in enumerate(asked.ids):
            self._places[one] = asked, row

    def get(self, ids: list[Hashable], life: int) -> tuple[Any, npt.NDArray[np.int32]]:
        """The examples with these ids, and what was said of each if that was in this life of the model."""
        groups: dict[int, tuple[_Asked, list[int], list[int]]] = {}
        for position, one in enumerate(ids):
            asked, row = self._places[one]
            _, positions, rows = groups.setdefault(id(asked), (asked, [], []))
            positions.append(position)
            rows.append(row)
        order = np.argsort(np.concatenate([positions for _, positions, _ in groups.values()]))
        examples = join([take(asked.rows, np.array(rows)) for asked, _, rows in groups.values()])
        guesses = [np.where(asked.life == life, asked.guesses[rows], UNKNOWN) for asked, _, rows in groups.values()]
        return take(examples, order), np.concatenate(guesses)[order].astype(np.int32)

    def forget(self, ids: Iterable[Hashable]) -> None:
        for one in ids:
            asked, _ = self._places.pop(one)
            asked.waiting -= 1
            if 2 * asked.waiting <= len(asked.ids) and asked.waiting:
                self._compact(asked)

    def oldest(self, number: int) -> list[Hashable]:
        return [one for one, _ in zip(self._places, range(number), strict=False)]

    def _compact(self, asked: _Asked) -> None:
        """Let go of the rows whose labels came, so that what is kept is at most twice what waits."""
        nowhere = (None, 0)
        rows = np.array([row for row, one in enumerate(asked.ids) if self._places.get(one, nowhere)[0] is asked])
        asked.rows, asked.guesses = take(asked.rows, rows), asked.guesses[rows]
        asked.ids = [asked.ids[row] for row in rows]
        self.add(asked)


class Relearner:
    """Predict, observe, and learn a new model when the old one drifts.

    The detector watches what the serving model said and what came true. While it warns, the examples are kept; when the
    warning lapses they are dropped; on a drift a clone of the model learns from them, and the detector starts afresh
    with it. If they are too few, or of a single class, the old model serves on, unwatched, until enough have come.

    **Input**: X is whatever the model takes, with one row an example: an array, a pandas or polars frame, a sparse
    matrix or a list; for river, dicts. Its values reach the model untouched, NaN too. Labels are those of the detector,
    and predictions are given as such.

    Parameters
    ----------
    model : scikit-learn or river classifier
        What to learn; it is cloned and stays as it is.
    detector : Detector
        As it should begin; a clone of it watches.
    min_examples : int
        How many examples a new model needs at least, 2 or more; it also needs two classes.
    max_examples : int
        How many examples are kept at most; the newest.
    max_pending : int
        How many predictions with an id wait for their label at most; beyond, the oldest are dropped.

    Attributes
    ----------
    detector : Detector
        The one that watches.
    model : classifier or None
        The one that serves.
    drifts : list of Drift
        All drifts so far. Their positions count the labels observed, from 0.
    models : tuple of Life
        The life of every model so far, the serving one last.
    collecting : bool
        Whether a drift was found and the examples to learn from are not complete yet.
    events : int
        Labels observed.
    pending : int
        Predictions that wait for their label.
    dropped : int
        Predictions that were dropped because too many waited.
    unmatched : int
        Labels that came when nothing waited for them.

    Notes
    -----
    - *Blocks*: `run` asks the model for many examples at once, at most 2,048, and asks the next model again for those
      behind its start. The result is that of one example at a time, for a model that judges each row by itself.
    - *Late labels* count where they arrive. Meanwhile another model may have come: then the label is held against what
      that one says of the example, so the new model is watched from the first label on. Late and in any order gives
      the same as all labels at once in the order they arrived.
    - *A fit that fails* raises :class:`FitError`, after the whole batch has been taken. The old model serves on, the
      examples stay, and the next try comes after another `min_examples`.
    - *An error of the model's own* `predict` in the middle of `run` passes through; `events` says how far it came.

    Examples
    --------
    The two features swap their roles at 3,000:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import fourrates as fr
    >>> from fourrates.relearn import Relearner
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> relearner = Relearner(LogisticRegression(), fr.LFR()).fit(X[:500], y[:500])
    >>> predictions = relearner.run(X[500:], y[500:])
    >>> for life in relearner.models:
    ...     print(life)
    0 to 2,599: first, accuracy 0.973 of 2,600
    2,600 on: drift, learnt from 2,500 to 2,599, accuracy 0.987 of 2,900
    """

    def __init__(
        self,
        model: Any,
        detector: Detector,
        *,
        min_examples: int = 100,
        max_examples: int = 10_000,
        max_pending: int = 100_000,
    ) -> None:
        if not isinstance(detector, Detector):
            raise TypeError(f"detector must be one of fourrates, such as LFR(), not {detector!r}")
        self._river = hasattr(model, "learn_one")
        if not self._river and not (hasattr(model, "fit") and hasattr(model, "predict")):
            raise TypeError(f"model must be a scikit-learn or river classifier, not {model!r}")
        self.min_examples = check_whole(min_examples, "min_examples", least=2)
        self.max_examples = check_whole(max_examples, "max_examples", least=self.min_examples)
        self.max_pending = check_whole(max_pending, "max_pending")
        self.detector = detector.clone()
        self.model: Any = None
        self.drifts: list[Drift] = []
        self.events = self.dropped = self.unmatched = 0
        self._template = model
        self._labels = self.detector.labels
        self._values = _array(self._labels.values)
        self._lives: list[Life] = []
        self._window = _Window(len(self._labels.values), self.max_examples)
        self._due: int | None = None  # while collecting: how many events there must be for the next try
        self._pending = _Pending()

    # What a user sees ---------------------------------------------------------------------------------------

    @property
    def models(self) -> tuple[Life, ...]:
        """The life of every model so far, the serving one last."""
        if not self._lives:
            return ()
        confusion = tuple(tuple(row) for row in self._confusion.tolist())
        return (*self._lives[:-1], replace(self._lives[-1], confusion=confusion))

    @property
    def collecting(self) -> bool:
        """Whether a drift was found and the examples to learn from are not complete yet."""
        return self._due is not None

    @property
    def pending(self) -> int:
        """Predictions that wait for their label."""
        return len(self._pending)

    # What a user does ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Learn the first model, or by hand another one; if that raises, nothing has changed.

        These examples do not count as part of the stream.
        """
        rows, truths = self._read(X, y)
        return self._begin(self._learnt(rows, truths), "hand" if self._lives else "first", None)

    def serve(self, model: Any) -> Self:
        """Put a model to service that has been learnt elsewhere; it is not cloned."""
        return self._begin(model, "hand" if self._lives else "first", None)

    def predict(self, X: Any, ids: Iterable[Hashable] | None = None) -> npt.NDArray[Any]:
        """Say what the serving model says; with ids, remember it until :meth:`observe` brings the labels.

        Parameters
        ----------
        X : table of examples
            As the model takes them.
        ids : several hashables, optional
            One an example, none of them waiting already.

        Returns
        -------
        array of labels
        """
        rows = self._table(X)
        if ids is None:
            return self._values[self._ask(rows)]
        names = _list_of_ids(ids)
        if len(names) != count(rows):
            raise ValueError(f"X has {count(rows)} examples, ids has {len(names)}")
        for one in names:
            if one in self._pending:
                raise ValueError(f"id {one!r} waits for its label already")
        guesses = self._ask(rows)
        if names:
            copied = take(rows, np.arange(len(names)))
            self._pending.add(_Asked(copied, guesses, names, len(self._lives)))
            surplus = self._pending.oldest(max(self.pending - self.max_pending, 0))
            self._pending.forget(surplus)
            self.dropped += len(surplus)
        return self._values[guesses]

    def observe(self, ids: Iterable[Hashable], y: npt.ArrayLike) -> list[Drift]:
        """Take the labels of earlier predictions, in any order.

        An id nothing waits for is an error, unless predictions have been dropped: then it may be one of those, and is
        counted in `unmatched`.

        Parameters
        ----------
        ids : several hashables
            As given to :meth:`predict`.
        y : array of labels
            What the examples turned out to be.

        Returns
        -------
        list of Drift
            The drifts these labels showed.
        """
        names = _list_of_ids(ids)
        truths = self._codes(y, "y")
        if len(names) != truths.size:
            raise ValueError(f"ids has {len(names)} examples, y has {truths.size}")
        waiting = np.array([one in self._pending for one in names], bool)
        if not waiting.all() and not self.dropped:
            raise ValueError(f"nothing waits for the label of id {names[int(waiting.argmin())]!r}")
        known = [one for one, waits in zip(names, waiting.tolist(), strict=True) if waits]
        found, before = len(self.drifts), self.events
        self.unmatched += len(names) - len(known)
        if known:
            rows, guesses = self._pending.get(known, len(self._lives))
            try:
                self._advance(rows, truths[waiting], guesses)
            finally:
                self._pending.forget(known[: self.events - before])
        return self.drifts[found:]

    def run(self, X: Any, y: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict each example, then observe its label, in order; as one at a time, but in large blocks.

        Parameters
        ----------
        X : table of examples
            As the model takes them.
        y : array of labels
            What they turned out to be.

        Returns
        -------
        array of labels
            What was predicted for each example by the model that served then.
        """
        rows, truths = self._read(X, y)
        guesses = np.full(truths.size, UNKNOWN, np.int32)
        try:
            self._advance(rows, truths, guesses)
        except FitError as error:
            error.predictions = self._values[guesses]
            raise
        return self._values[guesses]

    # The loop -----------------------------------------------------------------------------------------------

    def _advance(self, rows: Any, truths: Codes, guesses: npt.NDArray[np.int32]) -> None:
        """Take examples in order. What the serving model says of each is filled into `guesses` where it is unknown."""
        done, block = 0, FIRST_BLOCK
        failures: list[FitError] = []
        while done < truths.size:
            lives = len(self._lives)
            ahead = truths[done : done + LARGEST_BLOCK]
            part = slice(done, done + min(self._lacking(ahead) if self.collecting else block, ahead.size))
            self._fill(guesses, rows, part)
            if self.collecting:
                taken = self._collect(take(rows, part), truths[part])
            else:
                taken = self._watch(take(rows, part), truths[part], guesses[part].astype(np.uint16))
                block = min(2 * block, LARGEST_BLOCK)
            np.add.at(self._confusion, (truths[done : done + taken], guesses[done : done + taken]), 1)
            done += taken
            try:
                self._relearn()
            except FitError as error:
                failures.append(error)
            if len(self._lives) > lives:
                guesses[done:] = UNKNOWN
                block = FIRST_BLOCK
        if failures:
            if len(failures) > 1:
                failures[0].add_note(f"the first of {len(failures)} failures in this batch")
            raise failures[0]

    def _watch(self, rows: Any, truths: Codes, guesses: Codes) -> int:
        """Give examples to the detector, up to the first drift, and keep those of a warning; how many were taken."""
        start = self.events - self.detector.events  # where in the stream the detector began
        taken, drift = self.detector.update_coded(truths, guesses)
        if drift is not None:
            drift = drift.shifted(start)
            self.drifts.append(drift)
            self._lives[-1] = replace(self._lives[-1], drift=drift)
            self._due = drift.window.start + self.min_examples
        first = start + self.detector.keep_from() if drift is None else drift.window.start
        self._window.forget_before(first)
        new = max(first - self.events, 0)
        self._window.add(take(rows, slice(new, taken)), truths[new:taken])
        self.events += taken
        return taken

    def _collect(self, rows: Any, truths: Codes) -> int:
        """Keep examples for the next model; how many, which is all of them."""
        self._window.add(rows, truths)
        self.events += truths.size
        return truths.size

    def _lacking(self, truths: Codes) -> int:
        """How many of the coming examples are needed for the next try."""
        assert self._due is not None
        if self.events < self._due:
            return self._due - self.events
        other = np.flatnonzero(truths != self._window.counts.argmax())
        return int(other[0]) + 1 if other.size else truths.size

    def _relearn(self) -> None:
        """Learn the next model if it is time."""
        if self._due is None or self.events < self._due or not self._window.has_two_classes:
            return
        window = self._window.positions
        try:
            model = self._learnt(*self._window.all())
        except Exception as error:
            self._due = self.events + self.min_examples
            raise FitError(window, f"{type(error).__name__}: {error}") from error
        self._begin(model, "drift", window)

    def _begin(self, model: Any, why: Why, window: range | None) -> Self:
        """Put a model to service and watch it."""
        if self._lives:
            *self._lives, last = self.models
            self._lives.append(replace(last, stop=self.events))
        classes = len(self._labels.values)
        self._confusion = np.zeros((classes, classes), np.int64)
        self._lives.append(Life(self.events, None, why, window, None, ()))
        self.model = model
        self.detector.reset()
        self._due = None
        self._window.forget_before(self.events)
        return self

    # Models and labels --------------------------------------------------------------------------------------

    def _learnt(self, rows: Any, truths: Codes) -> Any:
        """A clone of the model that has learnt from these examples."""
        labels = self._values[truths]
        if self._river:
            model = self._template.clone()
            for example, label in zip(rows, labels.tolist(), strict=True):
                model.learn_one(example, label)
            return model
        from sklearn.base import clone

        return clone(self._template).fit(rows, labels)

    def _ask(self, rows: Any) -> npt.NDArray[np.int32]:
        """The codes of what the serving model says."""
        if self.model is None:
            raise RuntimeError("no model serves yet: fit(X, y) learns one, serve(model) takes one that is learnt")
        if count(rows) == 0:
            return np.empty(0, np.int32)
        said = [self.model.predict_one(row) for row in rows] if self._river else self.model.predict(rows)
        return self._codes(said, "prediction").astype(np.int32)

    def _fill(self, guesses: npt.NDArray[np.int32], rows: Any, part: slice) -> None:
        unknown = part.start + np.flatnonzero(guesses[part] == UNKNOWN)
        if unknown.size == part.stop - part.start:
            guesses[part] = self._ask(take(rows, part))
        elif unknown.size:
            guesses[unknown] = self._ask(take(rows, unknown))

    def _read(self, X: Any, y: npt.ArrayLike) -> tuple[Any, Codes]:
        rows, truths = self._table(X), self._codes(y, "y")
        if count(rows) != truths.size:
            raise ValueError(f"X has {count(rows)} examples, y has {truths.size}")
        return rows, truths

    def _table(self, X: Any) -> Any:
        if not self._river:
            return table(X)
        rows = [X] if isinstance(X, Mapping) else list(X)
        for position, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise TypeError(f"river's models take dicts, not {type(row).__name__}, as at position {position} of X")
        return rows

    def _codes(self, labels: npt.ArrayLike, name: str) -> Codes:
        try:
            return self._labels.encode(labels, name)
        except ValueError as error:
            error.add_note("the labels are those of the detector: make it with labels=... for others")
            raise


def _array(labels: tuple[Hashable, ...]) -> npt.NDArray[Any]:
    """Labels as an array that gives each back as it is."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


def _list_of_ids(ids: Iterable[Hashable]) -> list[Hashable]:
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids must be several, such as a list, not {ids!r}")
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if len(set(names)) < len(names):
        twice = next(one for one, times in Counter(names).items() if times > 1)
        raise ValueError(f"id {twice!r} is there twice")
    return names

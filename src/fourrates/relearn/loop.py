"""What every loop around a model does: predict, take labels at once or late, and keep the life of every model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fourrates.detectors import Detector
from fourrates.detectors.parameters import check_whole
from fourrates.drift import Drift
from fourrates.relearn.learner import Learner
from fourrates.relearn.life import FitError, Life, Why
from fourrates.relearn.pending import UNKNOWN, Asked, Pending, list_of_ids
from fourrates.rows import count, take

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes

FIRST_BLOCK, LARGEST_BLOCK = 256, 2048  # examples predicted at once: what lies behind a new model is predicted in vain


class Loop:
    """A model that serves, watched by a detector; a subclass says when another one takes its place."""

    def __init__(self, model: Any, detector: Detector, max_pending: int) -> None:
        if not isinstance(detector, Detector):
            raise TypeError(f"detector must be one of fourrates, such as LFR(), not {detector!r}")
        self._learner = Learner(model, detector.labels)
        self.max_pending = check_whole(max_pending, "max_pending")
        self.detector = detector.clone()
        self.model: Any = None
        self.drifts: list[Drift] = []
        self.events = self.dropped = self.unmatched = 0
        self._lives: list[Life] = []
        self._pending = Pending()

    # What a subclass gives ----------------------------------------------------------------------------------

    def _step(self, rows: Any, truths: Codes, guesses: npt.NDArray[np.int32], block: int) -> int:
        """Take some of these examples, at least one, and say how many; `guesses` is to be filled as far as needed."""
        raise NotImplementedError

    def _renew(self) -> None:
        """Learn what is due, after a step; a :class:`FitError` where that fails."""
        raise NotImplementedError

    def _fitted(self, rows: Any, truths: Codes) -> None:
        """Take notice of the examples that :meth:`fit` learnt from."""

    # What a user sees ---------------------------------------------------------------------------------------

    @property
    def models(self) -> tuple[Life, ...]:
        """The life of every model so far, the serving one last."""
        if not self._lives:
            return ()
        confusion = tuple(tuple(row) for row in self._confusion.tolist())
        return (*self._lives[:-1], replace(self._lives[-1], confusion=confusion))

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
        self._begin(self._learner.learnt(rows, truths), "hand" if self._lives else "first", None)
        self._fitted(rows, truths)
        return self

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
        rows = self._learner.table(X)
        if ids is None:
            return self._decoded(self._ask(rows))
        names = list_of_ids(ids)
        if len(names) != count(rows):
            raise ValueError(f"X has {count(rows)} examples, ids has {len(names)}")
        for one in names:
            if one in self._pending:
                raise ValueError(f"id {one!r} waits for its label already")
        guesses = self._ask(rows)
        if names:
            copied = take(rows, np.arange(len(names)))
            self._pending.add(Asked(copied, guesses, names, len(self._lives)))
            surplus = self._pending.oldest(max(self.pending - self.max_pending, 0))
            self._pending.forget(surplus)
            self.dropped += len(surplus)
        return self._decoded(guesses)

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
        names = list_of_ids(ids)
        truths = self._learner.codes(y, "y")
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
            error.predictions = self._decoded(guesses)
            raise
        return self._decoded(guesses)

    # The loop -----------------------------------------------------------------------------------------------

    def _advance(self, rows: Any, truths: Codes, guesses: npt.NDArray[np.int32]) -> None:
        """Take examples in order. What the serving model says of each is filled into `guesses` where it is unknown."""
        done, block = 0, FIRST_BLOCK
        failures: list[FitError] = []
        while done < truths.size:
            lives = len(self._lives)
            ahead = slice(done, done + LARGEST_BLOCK)
            taken = self._step(take(rows, ahead), truths[ahead], guesses[ahead], block)
            block = min(2 * block, LARGEST_BLOCK)
            done += taken
            try:
                self._renew()
            except FitError as error:
                failures.append(error)
            if len(self._lives) > lives:
                guesses[done:] = UNKNOWN
                block = FIRST_BLOCK
        if failures:
            if len(failures) > 1:
                failures[0].add_note(f"the first of {len(failures)} failures in this batch")
            raise failures[0]

    def _begin(self, model: Any, why: Why, window: range | None) -> Self:
        """Put a model to service."""
        if self._lives:
            *self._lives, last = self.models
            self._lives.append(replace(last, stop=self.events))
        classes = len(self._learner.labels.values)
        self._confusion = np.zeros((classes, classes), np.int64)
        self._lives.append(Life(self.events, None, why, window, None, ()))
        self.model = model
        return self

    def _note(self, drift: Drift) -> None:
        """Keep a drift, with the life of the model it was found in."""
        self.drifts.append(drift)
        self._lives[-1] = replace(self._lives[-1], drift=drift)

    def _count(self, truths: Codes, guesses: npt.NDArray[np.int32]) -> None:
        np.add.at(self._confusion, (truths, guesses), 1)

    # Models and labels --------------------------------------------------------------------------------------

    def _ask(self, rows: Any) -> npt.NDArray[np.int32]:
        """The codes of what the serving model says."""
        if self.model is None:
            raise RuntimeError("no model serves yet: fit(X, y) learns one, serve(model) takes one that is learnt")
        return self._learner.ask(self.model, rows)

    def _fill(self, guesses: npt.NDArray[np.int32], rows: Any, size: int) -> None:
        """Ask the serving model for the first `size` examples, as far as it has not been asked."""
        unknown = np.flatnonzero(guesses[:size] == UNKNOWN)
        if unknown.size == size:
            guesses[:size] = self._ask(take(rows, slice(size)))
        elif unknown.size:
            guesses[unknown] = self._ask(take(rows, unknown))

    def _read(self, X: Any, y: npt.ArrayLike) -> tuple[Any, Codes]:
        rows, truths = self._learner.table(X), self._learner.codes(y, "y")
        if count(rows) != truths.size:
            raise ValueError(f"X has {count(rows)} examples, y has {truths.size}")
        return rows, truths

    def _decoded(self, guesses: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        return self._learner.labels.decode(guesses.astype(np.intp))

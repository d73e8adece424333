"""The loop around a model. Predict, observe labels at once or late, and keep the life of every model."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_whole
from fourrates.detectors import Detector, FourRates
from fourrates.findings import Drift
from fourrates.join import LabelJoin
from fourrates.join.paired import Pairs
from fourrates.labels import Codes
from fourrates.retrain.learner import Learner
from fourrates.retrain.pending import Examples
from fourrates.retrain.rows import count, join, take
from fourrates.retrain.serving import FitError, ServingPeriod, Why

UNKNOWN = -1  # a prediction of the serving model not made yet
FIRST_BLOCK, LARGEST_BLOCK = 256, 2048  # examples predicted at once; those after a new model are wasted


class Loop:
    """A model that serves, watched by a detector; a subclass decides when another one replaces it."""

    def __init__(
        self,
        model: Any,
        detector: Detector,
        max_pending: int,
        max_wait: float | timedelta | np.timedelta64 | None,
    ) -> None:
        if not isinstance(detector, Detector):
            raise TypeError(f"detector must be one of fourrates, such as LFR(), not {detector!r}")
        self._learner = Learner(model, detector.labels)
        self.join = LabelJoin(
            detector.labels.values, max_waiting=check_whole(max_pending, "max_pending"), max_wait=max_wait
        )
        self.detector = detector.clone()
        self.model: Any = None
        self.drifts: list[Drift] = []
        self.events = 0
        self._periods: list[ServingPeriod] = []
        self._waiting = Examples()
        self._left: tuple[Any, Codes, npt.NDArray[np.int32]] | None = None  # by an error in the midst of late labels

    # For subclasses -----------------------------------------------------------------------------------------

    def _step(self, rows: Any, truths: Codes, preds: npt.NDArray[np.int32], block: int) -> int:
        """Process at least one of these examples and return how many; fill `preds` as far as needed."""
        raise NotImplementedError

    def _renew(self) -> None:
        """Train the models that are due after a step, or raise a :class:`FitError`."""
        raise NotImplementedError

    def _fitted(self, rows: Any, truths: Codes) -> None:
        """Keep the examples needed of those :meth:`fit` trained on, before that model serves."""

    # Results ------------------------------------------------------------------------------------------------

    @property
    def models(self) -> tuple[ServingPeriod, ...]:
        """The life of every model so far, the serving one last."""
        if not self._periods:
            return ()
        confusion = tuple(tuple(row) for row in self._confusion.tolist())
        return (*self._periods[:-1], replace(self._periods[-1], confusion=confusion))

    @property
    def pending(self) -> int:
        """Predictions that wait for their label."""
        return self.join.waiting

    # Methods ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Train the first model, or replace it by hand; if that raises, nothing has changed.

        These examples do not count as part of the stream.
        """
        rows, truths = self._read(X, y)
        model = self._learner.trained(rows, truths)
        self._fitted(rows, truths)
        return self.serve(model)

    def serve(self, model: Any) -> Self:
        """Put a model trained elsewhere into service; it is not cloned."""
        return self._begin(model, "hand" if self._periods else "first", None)

    def predict(self, X: Any, ids: Any = None, times: Any = None) -> npt.NDArray[Any]:
        """Predict by the serving model; with ids, remember it until :meth:`observe` brings the labels.

        Labels that arrived before their prediction count now; `drifts` has any they revealed.

        Parameters
        ----------
        X : table of examples
            As the model takes them.
        ids : array of ids, optional
            One an example, as :class:`~fourrates.LabelJoin` takes them. The first prediction of an id counts.
        times : array of numbers or dates, or one for all, optional
            When, for `max_wait`.
        """
        rows = self._learner.table(X)
        preds = self._ask(rows)
        said = self._decoded(preds)
        if ids is not None:
            pairs = self.join.predict(_several(ids), said, times, self._waiting.next_numbers(count(rows)))
            self._waiting.add(rows, len(self._periods))
            try:
                self._use(pairs)
            except FitError as error:
                error.predictions = said
                raise
        return said

    def observe(self, ids: Any, y: npt.ArrayLike, times: Any = None) -> list[Drift]:
        """Observe the labels of predictions, in any order, and return the drifts they revealed.

        One that is early waits for its prediction; the first label of an id counts. `times` are those of the labels.
        """
        before = len(self.drifts)
        self._use(self.join.label(_several(ids), y, times))
        return self.drifts[before:]

    def run(self, X: Any, y: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict each example by the model that serves then, and observe its label, as one at a time."""
        rows, truths = self._read(X, y)
        preds = np.full(truths.size, UNKNOWN, np.int32)
        try:
            self._advance(rows, truths, preds)
        except FitError as error:
            error.predictions = self._decoded(preds)
            raise
        return self._decoded(preds)

    # The loop -----------------------------------------------------------------------------------------------

    def _use(self, pairs: Pairs) -> None:
        """Resume with predictions whose labels have arrived; the rest after an error of the model waits its turn."""
        ready = [] if self._left is None else [self._left]
        if len(pairs):
            rows, lives = self._waiting.get(pairs.tags)
            preds = np.where(lives == len(self._periods), pairs.preds.astype(np.int32), UNKNOWN)
            ready.append((rows, pairs.truths, preds))
        if self._waiting.outnumber(self.pending):
            self._waiting.keep(self.join.waiting_tags)
        if not ready:
            return
        rows = join([part[0] for part in ready])
        truths, preds = (np.concatenate([part[i] for part in ready]) for i in (1, 2))
        start = self.events
        try:
            self._advance(rows, truths, preds)
        finally:
            rest = slice(self.events - start, None)
            left = take(rows, rest), truths[rest], np.full(truths[rest].size, UNKNOWN, np.int32)
            self._left = left if left[1].size else None

    def _advance(self, rows: Any, truths: Codes, preds: npt.NDArray[np.int32]) -> None:
        """Process examples in order, filling unknown `preds` with the serving model's predictions."""
        done, block = 0, FIRST_BLOCK
        failures: list[FitError] = []
        while done < truths.size:
            lives = len(self._periods)
            ahead = slice(done, done + LARGEST_BLOCK)
            taken = self._step(take(rows, ahead), truths[ahead], preds[ahead], block)
            block = min(2 * block, LARGEST_BLOCK)
            done += taken
            try:
                self._renew()
            except FitError as error:
                failures.append(error)
            if len(self._periods) > lives:
                preds[done:] = UNKNOWN
                block = FIRST_BLOCK
        if failures:
            if len(failures) > 1:
                failures[0].add_note(f"the first of {len(failures)} failures in this batch")
            raise failures[0]

    def _begin(self, model: Any, why: Why, window: range | None) -> Self:
        """Put a model into service."""
        if self._periods:
            *self._periods, last = self.models
            self._periods.append(replace(last, stop=self.events))
        classes = len(self._learner.labels.values)
        self._confusion = np.zeros((classes, classes), np.int64)
        self._periods.append(ServingPeriod(self.events, None, why, window, None, ()))
        self.model = model
        return self

    def _detect(self, truths: Codes, preds: Codes) -> tuple[int, Drift | None]:
        """Give labels to the detector up to its first finding; how many it read, and the drift if that is one."""
        start = self.events - self.detector.events  # the event at which the detector began
        taken, findings = self.detector.update_coded(truths, preds)
        drift = next((finding for finding in findings if isinstance(finding, Drift)), None)
        if drift is not None and isinstance(self.detector, FourRates):
            self.detector.accept(force=True)
        return taken, None if drift is None else drift.shifted(start)

    def _note(self, drift: Drift) -> None:
        """Record a drift, with the life of its model."""
        self.drifts.append(drift)
        self._periods[-1] = replace(self._periods[-1], drift=drift)

    def _count(self, truths: Codes, preds: npt.NDArray[np.int32]) -> None:
        np.add.at(self._confusion, (truths, preds), 1)

    # Models and labels --------------------------------------------------------------------------------------

    def _ask(self, rows: Any) -> npt.NDArray[np.int32]:
        """The codes of the serving model's predictions."""
        self._check_serving()
        return self._learner.ask(self.model, rows)

    def _check_serving(self) -> None:
        if self.model is None:
            raise RuntimeError("no model serves yet: fit(X, y) trains one, serve(model) takes one trained elsewhere")

    def _fill(self, preds: npt.NDArray[np.int32], rows: Any, size: int) -> None:
        """Predict the first `size` examples, except those predicted already."""
        unknown = np.flatnonzero(preds[:size] == UNKNOWN)
        if unknown.size == size:
            preds[:size] = self._ask(take(rows, slice(size)))
        elif unknown.size:
            preds[unknown] = self._ask(take(rows, unknown))

    def _read(self, X: Any, y: npt.ArrayLike) -> tuple[Any, Codes]:
        rows, truths = self._learner.table(X), self._learner.codes(y, "y")
        if count(rows) != truths.size:
            raise ValueError(f"X has {count(rows)} examples, y has {truths.size}")
        return rows, truths

    def _decoded(self, preds: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        return self._learner.labels.decode(preds.astype(np.intp))


def _several(ids: Any) -> Any:
    """Ids as LabelJoin takes them, from any iterable of them."""
    return ids if hasattr(ids, "__array__") or isinstance(ids, str | bytes) else list(ids)

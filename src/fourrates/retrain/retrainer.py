"""The paper's loop around a classifier: watch it, and retrain it when it drifts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_whole
from fourrates.detectors import Detector
from fourrates.labels import Codes
from fourrates.retrain.loop import Loop
from fourrates.retrain.rows import take
from fourrates.retrain.serving import FitError, Why
from fourrates.retrain.window import Window


class Retrainer(Loop):
    """Predict, observe, and retrain the model when it drifts.

    The detector watches the predictions and labels. Examples are kept while it warns and dropped when the warning
    lapses. On a drift a clone of the model is trained on them, and the detector restarts with it. If they are too few
    or of a single class, the old model keeps serving, unwatched, until there are enough.

    **Input**: X is anything the model accepts, with one row an example, such as an array, a pandas or polars frame, a
    sparse matrix, a list, or dicts for river. Its values reach the model untouched, NaN too. Labels and predictions are
    those of the detector.

    Parameters
    ----------
    model : scikit-learn or river classifier
        The model to train; it is cloned and stays as it is.
    detector : Detector
        As it should begin; a clone of it watches.
    min_examples : int
        The fewest examples to train a new model on, 2 or more; it also needs two classes.
    max_examples : int
        The most examples to keep, the newest.
    max_pending : int
        The most predictions with an id that wait for their label, and labels for their prediction; beyond, the oldest
        are dropped.
    max_wait : float or timedelta, optional
        How long they wait at most, in the unit of the times given to `predict` and `observe`.

    Attributes
    ----------
    detector, model
        The ones that watch and serve.
    drifts : list of Drift
        All drifts so far. Their positions count the labels observed, from 0.
    models : tuple of ServingPeriod
        The serving period of every model so far, the serving one last.
    collecting : bool
        Whether there was a drift and the examples to train on are not complete yet.
    events, pending : int
        Labels observed, and predictions that wait for theirs.
    join : LabelJoin
        The predictions and labels that wait. `join.counts` counts them, those left alone, and duplicates.

    Notes
    -----
    - *Blocks*: `run` predicts many examples at once, at most 2,048; a new model predicts those after its start again.
      The result is that of one example at a time, for a model that judges each row alone.
    - *Late labels* count when they arrive. If a new model serves by then, the label is compared with its prediction of
      the example, so the new model is watched from the first label on. The result is that of all labels at once in
      order of arrival.
    - *A fit that fails* raises :class:`FitError` after the whole batch. The old model keeps serving, the examples stay,
      and the next try follows after another `min_examples`.
    - *An error of the model's own* `predict` in the middle of `run` passes through; `events` is how far it got.

    Examples
    --------
    The two features swap their roles at 3,000:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import fourrates as fr
    >>> from fourrates.retrain import Retrainer
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> retrainer = Retrainer(LogisticRegression(), fr.LFR()).fit(X[:500], y[:500])
    >>> predictions = retrainer.run(X[500:], y[500:])
    >>> for period in retrainer.models:
    ...     print(period)
    0 to 2,599: first, accuracy 0.973 of 2,600
    2,600 on: drift, trained on 2,500 to 2,599, accuracy 0.987 of 2,900
    """

    def __init__(
        self,
        model: Any,
        detector: Detector,
        *,
        min_examples: int = 100,
        max_examples: int = 10_000,
        max_pending: int = 100_000,
        max_wait: float | timedelta | np.timedelta64 | None = None,
    ) -> None:
        super().__init__(model, detector, max_pending, max_wait)
        self.min_examples = check_whole(min_examples, "min_examples", least=2)
        self.max_examples = check_whole(max_examples, "max_examples", least=self.min_examples)
        self._window = Window(len(detector.labels.values), self.max_examples)
        self._due: int | None = None  # while collecting, the events needed for the next try

    @property
    def collecting(self) -> bool:
        """Whether examples to train on are still missing."""
        return self._due is not None

    # The loop -----------------------------------------------------------------------------------------------

    def _step(self, rows: Any, truths: Codes, preds: npt.NDArray[np.int32], block: int) -> int:
        size = min(self._lacking(truths) if self.collecting else block, truths.size)
        self._fill(preds, rows, size)
        if self.collecting:
            self._window.add(take(rows, slice(size)), truths[:size])
            self.events, taken = self.events + size, size
        else:
            taken = self._watch(take(rows, slice(size)), truths[:size], preds[:size].astype(np.uint16))
        self._count(truths[:taken], preds[:taken])
        return taken

    def _watch(self, rows: Any, truths: Codes, preds: Codes) -> int:
        """Give examples to the detector, up to the first drift, and keep those of a warning; returns how many."""
        taken, drift = self._detect(truths, preds)
        if drift is not None:
            self._note(drift)
            self._due = drift.window.start + self.min_examples
        start = self.events + taken - self.detector.events  # the event at which the detector began
        first = start + self.detector.earliest_start if drift is None else drift.window.start
        self._window.forget_before(first)
        new = max(first - self.events, 0)
        self._window.add(take(rows, slice(new, taken)), truths[new:taken])
        self.events += taken
        return taken

    def _lacking(self, truths: Codes) -> int:
        """How many more examples are needed for the next try."""
        assert self._due is not None
        if self.events < self._due:
            return self._due - self.events
        other = np.flatnonzero(truths != self._window.counts.argmax())
        return int(other[0]) + 1 if other.size else truths.size

    def _renew(self) -> None:
        """Train the next model if it is time."""
        if self._due is None or self.events < self._due or np.count_nonzero(self._window.counts) < 2:
            return
        window = range(max(self._window.start, self.events - self.max_examples), self.events)
        try:
            rows, truths = self._window.part(window)
            model = self._learner.trained(rows, truths)
        except Exception as error:
            self._due = self.events + self.min_examples
            raise FitError(window, f"{type(error).__name__}: {error}") from error
        self._begin(model, "drift", window)

    def _begin(self, model: Any, why: Why, window: range | None) -> Self:
        """Put a model into service and watch it."""
        super()._begin(model, why, window)
        self.detector.reset()
        self._due = None
        self._window.forget_before(self.events)
        return self

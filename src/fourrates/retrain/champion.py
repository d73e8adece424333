"""A vote of models trained on different windows of the stream, weighted by fixed share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_whole
from fourrates.detectors import Detector
from fourrates.detectors.four_rates import FourRates
from fourrates.findings import Drift
from fourrates.labels import Codes
from fourrates.retrain.fixed_share import FixedShare, Measure
from fourrates.retrain.loop import Loop
from fourrates.retrain.rows import take
from fourrates.retrain.serving import Decision, FitError, Why
from fourrates.retrain.window import Window

MEMORY = 500  # examples of the shortest window, if the first model was trained elsewhere
LONGER = 4  # each window is this many times as long as the one before
STEPS = 4  # fits while a window moves by its length, or grows by it
LEAST = 20  # examples a model is trained on
MIN_CLASS = 5  # of these, of at least two classes
SINCE = ("all since the drift began", "all since its alarm")
NEVER = 1 << 62  # a position no stream reaches


@dataclass
class Expert:
    """A model that votes, and which examples it is trained on."""

    name: str  # these examples, in words
    model: Any  # the first one until it has been retrained
    weight: float = 0.0  # its part of the vote
    window: range | None = None  # it was trained on, in the stream; negative positions belong to the first `fit`
    size: int = 0  # the most examples it is trained on, the newest
    start: int = -NEVER  # the earliest position it is trained on
    due: int = NEVER  # the number of labels at which it is retrained

    def __str__(self) -> str:
        return self.name


class ChampionRetrainer(Loop):
    """Predict by a vote of several models, each weighted by its accuracy on labels it had not seen.

    The voters are the first model as it is, and models retrained on the newest examples (`memory`, 4 times `memory` and
    so on). Two more are retrained on the examples since the last drift, one from its start and one from its alarm. The
    vote is the *fixed share* of Herbster and Warmuth (1998), never far behind the best of its models or the best
    sequence of them with few changes. So a false alarm costs little, and it follows a drift without an alarm too.

    Parameters
    ----------
    model : scikit-learn or river classifier
        As of :class:`Retrainer`. Give it `class_weight` if errors on a class cost more.
    detector : Detector, optional
        As it should begin; a clone of it watches the predictions. Default ``FourRates(arl=2_000, sides="down",
        after="restart")``. A false alarm costs some fits, so the budget is generous, and a recall that rises needs no
        new model.
    memory : int, optional
        Examples of the shortest window, 20 or more; the others are 4 times as long each, up to `max_examples`. By
        default the number given to `fit`, or 500 if the first model was trained elsewhere.
    measure : {"accuracy", "f1", "g_mean"}
        The measure of "better": accuracy, F1 of the positive class (mean F1 if there are more than two classes), or the
        geometric mean of the recalls. It sets the cost of an error on each class, and how probable a class must be to
        be predicted.
    max_examples, max_pending, max_wait
        As of :class:`Retrainer`.

    Attributes
    ----------
    experts : tuple of Expert
        The models that vote, each with its `weight` and the `window` it was trained on; `model` is the heaviest.
    models : tuple of ServingPeriod
        The vote between one drift and the next, with its counts.
    decisions : list of Decision
        Every drift and every fit, and why a fit had to wait or failed.
    fits : int
        Models trained, the first included.
    detector, drifts, events, pending, join
        As of :class:`Retrainer`.

    Notes
    -----
    - *The vote*: the class with the largest weighted mean of the models' probabilities; a model without
      `predict_proba` gives its whole weight to the class it predicts.
    - *The weights*: a wrong prediction divides a weight by e. After each label 0.005 of all weight is spread evenly, so
      the best model leads within a dozen labels. With F1 or the G-mean an error costs its effect on the measure
      (:meth:`.fixed_share.FixedShare.worth`).
    - *Cost*: a model is retrained when a quarter of its window is new. With n labels and a shortest window of m that is
      about 5.3 n / m fits, some 30 a drift, and about 6 predictions an example, or 12 if labels are late.
    - *A fit that fails*, or a window with fewer than 5 examples of all classes but one, leaves the model as it is. A
      decision records it, and new examples bring the next try. A failure raises :class:`FitError` after the batch.
    - The result is the same for batches of any size, for a model that judges each row alone.

    Examples
    --------
    The concept changes at 3,000:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fourrates.retrain import ChampionRetrainer
    >>> X = np.random.default_rng(1).normal(size=(4_000, 2))
    >>> y = X[np.arange(4_000), np.arange(4_000) // 3_000] > 0
    >>> loop = ChampionRetrainer(LogisticRegression()).fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> print(*loop.drifts)
    drift at 2,507, started about 2,474: tnr down: 0.990 -> 0.817
    >>> for expert in loop.experts:
    ...     print(f"{expert.weight:.2f} {expert}")
    0.00 the first model
    0.26 the newest 500
    0.01 the newest 2,000
    0.00 the newest 8,000
    0.14 all since the drift began
    0.59 all since its alarm
    """

    def __init__(
        self,
        model: Any,
        detector: Detector | None = None,
        *,
        memory: int | None = None,
        measure: Measure = "accuracy",
        max_examples: int = 10_000,
        max_pending: int = 100_000,
        max_wait: float | timedelta | np.timedelta64 | None = None,
    ) -> None:
        if detector is None:
            detector = FourRates(arl=2_000, sides="down", after="restart")
        super().__init__(model, detector, max_pending, max_wait)
        self.memory = None if memory is None else check_whole(memory, "memory", least=LEAST)
        self.max_examples = check_whole(max_examples, "max_examples", least=self.memory or LEAST)
        self.decisions: list[Decision] = []
        self.fits = 0
        self._shortest = MEMORY
        self._experts: list[Expert] = []
        self._vote = FixedShare.of(1, len(self.detector.labels.values), measure)
        self._examples = Window(len(self.detector.labels.values), self.max_examples)

    @property
    def measure(self) -> Measure:
        """The measure the vote improves."""
        return self._vote.measure

    @property
    def experts(self) -> tuple[Expert, ...]:
        """The models that vote."""
        return tuple(self._experts)

    # Models -------------------------------------------------------------------------------------------------

    def _fitted(self, rows: Any, truths: Codes) -> None:
        self.fits += 1
        if not self.events:
            self._examples = Window(self._examples.counts.size, self.max_examples, -truths.size)
            self._examples.add(rows, truths)

    def _begin(self, model: Any, why: Why, window: range | None) -> Self:
        """Give every expert this model, until each is retrained."""
        if why == "first":
            given = len(self._examples.positions)
            self._shortest = self.memory or (max(given, LEAST) if given else MEMORY)
        self._experts = [Expert("the first model" if why == "first" else f"the model of {self.events:,}", model)]
        size = min(self._shortest, self.max_examples)
        while size <= self.max_examples:
            due = self.events + max(size // STEPS, 1)
            self._experts.append(Expert(f"the newest {size:,}", model, size=size, due=due))
            size *= LONGER
        self._experts += [Expert(name, model, size=self.max_examples) for name in SINCE]
        self._take_vote(self._vote.even(len(self._experts)))
        return super()._begin(model, why, window)

    def _take_vote(self, vote: FixedShare) -> None:
        """Give each expert its weight, and users the heaviest model."""
        self._vote = vote
        for expert, weight in zip(self._experts, vote.weights.tolist(), strict=True):
            expert.weight = weight
        self.model = max(self._experts, key=lambda expert: expert.weight).model

    def _forecasts(self, rows: Any) -> npt.NDArray[np.float64]:
        """The probability each expert gives to each class, by expert, example and class; 0 for nan."""
        return np.nan_to_num([self._learner.forecast(expert.model, rows) for expert in self._experts])

    def _ask(self, rows: Any) -> npt.NDArray[np.int32]:
        self._check_serving()
        return self._vote.predict(self._forecasts(rows))

    # The loop -----------------------------------------------------------------------------------------------

    def _step(self, rows: Any, truths: Codes, preds: npt.NDArray[np.int32], block: int) -> int:
        self._check_serving()
        size = min(block, truths.size, min(expert.due for expert in self._experts) - self.events)
        truths = truths[:size]
        forecasts = self._forecasts(take(rows, slice(size)))
        predictions, vote = self._vote.run(forecasts, truths)
        taken, drift = self._detect(truths, predictions.astype(np.uint16))
        if taken < size:
            truths = truths[:taken]
            predictions, vote = self._vote.run(forecasts[:, :taken], truths)
        preds[:taken] = predictions
        self._take_vote(vote)
        self._examples.add(take(rows, slice(taken)), truths)
        self.events += taken
        self._count(truths, predictions)
        if drift is not None:
            self._drifted(drift)
        return taken

    def _drifted(self, drift: Drift) -> None:
        """Restart two experts, one at the start of the drift and one at its alarm in case the start is too early."""
        self._note(drift)
        self.decisions.append(Decision(self.events, "drift", str(drift)))
        for expert, start in zip(self._experts[-len(SINCE) :], (drift.window.start, self.events), strict=True):
            expert.start, expert.due = start, max(start + LEAST, self.events)
        super()._begin(self.model, "drift", None)

    def _renew(self) -> None:
        """Retrain every expert that is due."""
        failures = []
        for expert in self._experts:
            if expert.due <= self.events:
                window = range(max(self.events - expert.size, self._examples.start, expert.start), self.events)
                expert.due = self.events + max(len(window) // STEPS, LEAST // STEPS)
                try:
                    self._retrain(expert, window)
                except Exception as error:  # of the model's own
                    reason = f"{type(error).__name__}: {error}"
                    self.decisions.append(Decision(self.events, "fail", str(expert), window, reason))
                    failures.append(FitError(window, reason))
                    failures[-1].__cause__ = error
        self._take_vote(self._vote)
        if failures:
            raise failures[0]

    def _retrain(self, expert: Expert, window: range) -> None:
        """Retrain an expert, unless the window has too few examples of all classes but one."""
        rows, truths = self._examples.part(window)
        enough = np.count_nonzero(np.bincount(truths) >= MIN_CLASS) > 1
        if enough:
            expert.model, expert.window = self._learner.trained(rows, truths), window
            self.fits += 1
        self.decisions.append(Decision(self.events, "fit" if enough else "wait", str(expert), window))

"""A loop that does not hurt: what is predicted is a vote, and models have as much say in it as they have earned."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fourrates.checks import check_number, check_whole
from fourrates.detectors import Detector
from fourrates.detectors.four_rates import FourRates
from fourrates.findings import Drift
from fourrates.relearn.candidate import Candidate, Held, Memory, Since
from fourrates.relearn.contest import Contest
from fourrates.relearn.decision import Decision, Kind
from fourrates.relearn.life import FitError, Why
from fourrates.relearn.loop import Loop
from fourrates.relearn.measure import check_measure
from fourrates.relearn.rows import take
from fourrates.relearn.rules import AFTER_DRIFT, RATES, Rules
from fourrates.relearn.window import Window

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes
    from fourrates.relearn.measure import Measure

MEMORY = 500  # examples, where the first model was learnt elsewhere
LONGER = 4  # each memory is this many times as long as the one before
MOST_AHEAD = 5.0  # logarithm of the odds that a challenger may bring from the examples that led to the alarm: 150 to 1


class ChampionRelearner(Loop):
    """Predict by a vote of several models, in which each has as much say as it has earned.

    One that learns from all examples since the last drift (from `drift.window.start` on, that is `started`), one that
    learns from what came after the alarm, some that learn from the newest examples, and models as they were: the first
    one, and those that led before a drift. Each has a weight: how likely it is the best of them now, by what each
    predicted right so far. What is predicted is the class with the largest weighted mean of their probabilities, by
    weights that turn quickly or slowly, or the word of the first model or of the shortest memory alone: whichever has
    been the best by `measure`. The heaviest is the champion, until another weighs `threshold` times as much. The first
    model and one that is learnt at even intervals are among them, so the loop is never far behind either; a false alarm
    costs a few fits, a drift without an alarm is followed as well, and a concept that comes back finds its model.

    **Input**: X is whatever the model takes, with one row an example: an array, a pandas or polars frame, a sparse
    matrix or a list; for river, dicts. Its values reach the model untouched, NaN too. Labels are those of the detector,
    and predictions are given as such.

    Parameters
    ----------
    model : scikit-learn or river classifier
        What to learn; it is cloned and stays as it is. Give it `class_weight` if errors on a class are dearer.
    detector : Detector, optional
        As it should begin; a clone of it watches what is predicted. Default ``FourRates(arl=2_000, sides="down",
        after="restart")``: a false alarm costs a few fits, so the budget is generous, and a recall that rises needs no
        new model.
    memory : int, optional
        Examples of the challenger with the shortest memory; others have 4 times as many each, up to `max_examples`.
        Default: as many as the first model learnt from, or 500 if it was learnt elsewhere.
    measure : {"mean", "accuracy", "f1", "g_mean"}
        What counts as better: the share of right predictions, F1 of the positive class, the geometric mean of the
        recalls, or the mean of the three. Predictions that are best by one of them may be poor by another: told "f1" or
        "g_mean", the loop also tries to multiply the probability of each class by what an example of it is worth.
    threshold : float
        The odds it takes to become champion: how many times as much as the champion a challenger must weigh. It has no
        bearing on what is predicted.
    min_examples : int
        How many examples a challenger needs at least.
    min_class : int
        How many examples of a class, of at least two classes, a challenger needs.
    max_examples : int
        How many examples are kept at most; the newest.
    keep : int
        How many old models are kept at most, besides the champion and the first one.
    max_pending, max_wait
        As of :class:`Relearner`.

    Attributes
    ----------
    detector : Detector
        The one that watches.
    champion : Held, Since or Memory
        The candidate with the most say; `str` says which it is, `weight` how much of the say it has.
    challengers : tuple of Held, Since and Memory
        The others.
    model : classifier or None
        The champion's.
    drifts : list of Drift
        All drifts so far. Their positions count the labels observed, from 0.
    models : tuple of Life
        The life of every champion so far, with what was predicted while it led.
    decisions : list of Decision
        What was decided, when, and on what evidence.
    fits : int
        Models learnt, the first and all challengers included.
    events, pending, join
        As of :class:`Relearner`.

    Notes
    -----
    - *The vote*: `predict_proba` where the model has it; otherwise a model gives all its say to the class it predicts.
    - *The weights*: a right prediction multiplies a weight by e to the power of what the example is worth, which is 1
      for accuracy, and more for a class that matters more to the measure. After each label 0.005 of all weight is
      spread evenly, so that a model whose time comes is found within some dozen labels (:class:`.contest.Contest`).
      For the slow vote it is a tenth of that power.
    - *The rules*: how forecasts become a prediction is chosen by what each way would have predicted so far
      (:class:`.rules.Rules`); a decision of the kind "follow" says when that changes, and why.
    - *What is weighed* is a way of learning. When its examples have moved on (the newest 500, say), it is retrained
      and keeps its weight.
    - *On a drift* a copy of the champion is kept as it is. The challenger that begins there is first learnt from half
      of the examples since the start and compared with the champion on the other half. Another one begins at the alarm:
      a start that is dated too early would leave examples of the old concept in all windows.
    - *Cost*: four fits each time a memory is renewed, and one each time a window since the drift or the alarm is half
      as long again. For n labels and the shortest memory m that is about 5.3 n / m fits and some 20 a drift, and up to
      7 + `keep` predictions each, twice where labels come late.
    - *A fit that fails*, or a class with too few examples: the champion serves on, the decision is kept, and the next
      try comes when there are new examples. A failure is raised as :class:`FitError` once the batch has been taken.
    - However a stream is cut into batches, the result is the same, for a model that judges each row by itself.

    Examples
    --------
    What decides changes at 3,000 and back at 6,000:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fourrates.relearn import ChampionRelearner
    >>> X = np.random.default_rng(1).normal(size=(9_000, 2))
    >>> y = X[np.arange(9_000), np.arange(9_000) // 3_000 % 2] > 0
    >>> loop = ChampionRelearner(LogisticRegression()).fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> for decision in loop.decisions:
    ...     if decision.kind == "promote" and decision.at > 2_400:
    ...         print(f"{decision.at:,}: {decision.about}")
    2,514: all since 2,480
    2,531: all since 2,505
    4,739: the newest 500
    5,270: the newest 2,000
    5,509: the newest 8,000
    5,517: the model of 2,505

    The first change is at label 2,500. The second is at 5,500: after that the model comes back that led before the
    first. Between changes those that are about as good take turns.
    """

    def __init__(
        self,
        model: Any,
        detector: Detector | None = None,
        *,
        memory: int | None = None,
        measure: Measure = "mean",
        threshold: float = 3.0,
        min_examples: int = 20,
        min_class: int = 5,
        max_examples: int = 10_000,
        keep: int = 3,
        max_pending: int = 100_000,
        max_wait: float | timedelta | np.timedelta64 | None = None,
    ) -> None:
        if detector is None:
            detector = FourRates(arl=2_000, sides="down", after="restart")
        super().__init__(model, detector, max_pending, max_wait)
        self.threshold = check_number(threshold, "threshold")
        if not 1 <= self.threshold < math.inf:
            raise ValueError(f"threshold {threshold!r} is not a finite number of at least 1")
        self.min_class = check_whole(min_class, "min_class", least=1)
        self.min_examples = check_whole(min_examples, "min_examples", least=2 * self.min_class)
        self.max_examples = check_whole(max_examples, "max_examples", least=self.min_examples)
        self.keep = check_whole(keep, "keep", least=0)
        self.memory = None if memory is None else check_whole(memory, "memory", least=self.min_examples)
        self.decisions: list[Decision] = []
        self.fits = 0
        self.champion: Candidate = Held(None, None, "no model")
        self._challengers: list[Candidate] = []
        self._examples = Window(len(self.detector.labels.values), self.max_examples)
        self._rules = Rules(len(self.detector.labels.values), check_measure(measure))

    @property
    def challengers(self) -> tuple[Candidate, ...]:
        """Those that may take the champion's place."""
        return tuple(self._challengers)

    @property
    def measure(self) -> Measure:
        """What counts as better."""
        return self._rules.measure

    # The beginning ------------------------------------------------------------------------------------------

    def _fitted(self, rows: Any, truths: Codes) -> None:
        self.fits += 1
        if self._examples.positions or self.events:
            return
        self._examples = Window(self._examples.counts.size, self.max_examples, -truths.size)
        self._examples.add(rows, truths)
        self._enter(truths.size)

    def _enter(self, size: int) -> None:
        """Let those challengers begin that are there from the start."""
        shortest = max(self.memory or size, self.min_examples)
        whole = Since(self._examples.start, 0)
        whole.postpone(self.events)
        self._challengers.append(whole)
        memories: list[Memory] = []
        while shortest <= self.max_examples:
            memories.append(Memory(shortest, self.min_class, self.events))
            shortest *= LONGER
        for one in memories[:1]:
            one.alone = 1
        self._challengers += memories

    def _begin(self, model: Any, why: Why, window: range | None) -> Self:
        """Let a model be the champion; one by hand is held as it is and outvotes the others for now."""
        if why in ("first", "hand"):
            name = f"the model of {self.events:,}" if why == "hand" else "the first model"
            self.champion = Held(model, window, name, first=why == "first")
            others = np.sum([np.zeros(len(RATES)), *(one.weights for one in self._challengers)], axis=0)
            self.champion.weights = np.where(others > 0, self.threshold * others, 1.0)
            self._rules.shorten(0)
            self._count_anew()
        return super()._begin(model, why, window)

    def _count_anew(self) -> None:
        """Count wins and losses against the champion from now on."""
        for one in (self.champion, *self._challengers):
            one.wins = one.losses = 0

    # The loop -----------------------------------------------------------------------------------------------

    def _step(self, rows: Any, truths: Codes, guesses: npt.NDArray[np.int32], block: int) -> int:
        self._check_serving()
        if not self._challengers:  # the first model came from elsewhere
            self._enter(MEMORY)
        due = min(one.due for one in (self.champion, *self._challengers))
        size = min(block, due - self.events, truths.size)
        rows, truths = take(rows, slice(size)), truths[:size]
        members, forecasts = self._ask_all(rows)
        done = 0
        while done < size:
            served, drift = self._observe(members, forecasts[:, done:], truths[done:])
            rest = slice(done, done + served.size)
            guesses[rest] = served
            self._examples.add(take(rows, rest), truths[rest])
            self.events += served.size
            self._count(truths[rest], served)
            done = rest.stop
            if drift is not None:
                self._drifted(drift)
            best = max(members, key=lambda one: one.weight)
            if best is not self.champion and best.weight >= self.threshold * self.champion.weight:
                self._promote(best)
                order = [members.index(one) for one in (self.champion, *self._challengers) if one in members]
                members, forecasts = [members[i] for i in order], forecasts[order]
            if drift is not None:
                break
        return done

    def _observe(
        self, members: list[Candidate], forecasts: npt.NDArray[np.float64], truths: Codes
    ) -> tuple[npt.NDArray[np.int32], Drift | None]:
        """Predict and take labels up to a finding or to the moment another one should be champion."""
        contest = Contest(members, self._rules)
        served = contest.take(forecasts, truths, self.threshold)
        taken, drift = self._detect(truths[: served.size], served.astype(np.uint16))
        if taken < served.size:
            contest = Contest(members, self._rules)
            contest.take(forecasts[:, :taken], truths[:taken])
        contest.settle()
        self._rules = contest.rules
        for at, rule, why in contest.turns:
            self.decisions.append(Decision(self.events + at, "follow", rule, reason=why))
        return served[:taken], drift

    def _ask(self, rows: Any) -> npt.NDArray[np.int32]:
        """What all say together, as things stand."""
        self._check_serving()
        members, forecasts = self._ask_all(rows)
        weights = np.array([one.weights for one in members])
        each = self._rules.apply([one.alone for one in members], weights, forecasts)
        return np.asarray(each[self._rules.best()], np.int32)

    def _ask_all(self, rows: Any) -> tuple[list[Candidate], npt.NDArray[np.float64]]:
        """The champion and the challengers that have a model, and the probabilities each gives to the classes."""
        members, forecasts = [self.champion], [self._learner.forecast(self.model, rows)]
        for one in self._challengers:
            if one.model is not None:
                try:
                    forecasts.append(self._learner.forecast(one.model, rows))
                except Exception as error:  # of the model's own
                    one.model, one.weights = None, np.zeros(len(RATES))
                    self._decide("fail", one, f"it cannot predict ({type(error).__name__}: {error})")
                else:
                    members.append(one)
        return members, np.array(forecasts)

    # Drifts and champions -----------------------------------------------------------------------------------

    def _drifted(self, drift: Drift) -> None:
        """Hold the champion as it is, and let a challenger begin where the drift did; the champion goes its way."""
        self._note(drift)
        self._rules.shorten(AFTER_DRIFT)
        champion = self.champion
        self._challengers = [one for one in self._challengers if not isinstance(one, Since)]
        if not isinstance(champion, Held):
            held = Held(champion.model, champion.window, f"the model of {self.events:,}")
            held.weights = champion.weights
            self._challengers.append(held)
        start = drift.window.start
        new = Since(start, max(start + self.min_examples, self.events))
        self._challengers.append(new)
        self._decide("drift", new, str(drift))
        self._rehearse(new)
        if self.events - start >= self.min_examples:  # the start may be dated too early: what comes now is new for sure
            self._challengers.append(Since(self.events, self.events + self.min_examples))
        self._let_go()

    def _rehearse(self, new: Since) -> None:
        """Learn from half of the examples since the drift, and hold that against the champion on the other half."""
        window = new.wanted(self.events, self._examples)
        half = range(window.start, window.start + len(window) // 2)
        if len(window) < self.min_examples:
            return
        try:
            model = self._learnt(half)
            if model is None:
                return
            rows, truths = self._examples.part(range(half.stop, window.stop))
            own, champion = (self._learner.ask(one, rows) for one in (model, self.model))
        except Exception as error:  # of the model's own; the whole window is tried next
            self._decide("fail", new, f"{type(error).__name__}: {error}")
            return
        wins, losses = (own == truths) & (champion != truths), (own != truths) & (champion == truths)
        worth = self._rules.worth[0, truths]
        new.wins, new.losses = int(wins.sum()), int(losses.sum())
        new.ahead = float(worth[wins].sum() - worth[losses].sum())

    def _promote(self, best: Candidate) -> None:
        """Let a challenger be the champion; the one that was becomes a challenger."""
        self._decide("promote", best)
        self._challengers = [self.champion, *(one for one in self._challengers if one is not best)]
        self.champion = best
        self._begin(best.model, "return" if isinstance(best, Held) else "challenger", best.window)
        self._count_anew()
        self._let_go()

    def _let_go(self) -> None:
        """Keep the first model, and the newest of the other old ones only."""
        held = [one for one in self._challengers if isinstance(one, Held) and not one.first]
        for one in held[: max(len(held) - self.keep, 0)]:
            self._challengers.remove(one)
            self._decide("drop", one)

    # Learning -----------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Learn whatever is due."""
        failures = []
        for one in (self.champion, *self._challengers):
            if one.due <= self.events:
                window = one.wanted(self.events, self._examples)
                one.postpone(self.events)
                try:
                    model = self._learnt(window)
                except Exception as error:
                    self._decide("fail", one, f"{type(error).__name__}: {error}")
                    failures.append(FitError(window, f"{type(error).__name__}: {error}"))
                    failures[-1].__cause__ = error
                    continue
                if model is None:
                    self._decide("wait", one)
                    continue
                if one.model is None:
                    self._admit(one)
                one.model, one.window = model, window
                if one is self.champion:
                    self._decide("refit", one)
                    self._begin(model, "refit", window)
                else:
                    self._decide("fit", one)
        if failures:
            raise failures[0]

    def _admit(self, one: Candidate) -> None:
        """Give a challenger that takes part from now on the mean weight of all, and what it has shown already."""
        weights = [other.weights for other in (self.champion, *self._challengers) if other.model is not None]
        one.weights = np.mean(weights, axis=0) * np.exp(np.multiply(RATES, min(one.ahead, MOST_AHEAD)))

    def _learnt(self, window: range) -> Any:
        """A model that has learnt from these examples; None if they hold too few of all classes but one."""
        rows, truths = self._examples.part(window)
        counts = np.bincount(truths, minlength=self._examples.counts.size)
        if np.count_nonzero(counts >= self.min_class) < 2:
            return None
        self.fits += 1
        return self._learner.learnt(rows, truths)

    def _decide(self, kind: Kind, one: Candidate, reason: str = "") -> None:
        evidence = one.weight / self.champion.weight
        self.decisions.append(Decision(self.events, kind, str(one), one.window, evidence, one.wins, one.losses, reason))

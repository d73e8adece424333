"""A second layer behind a detector, as in HLFR: after more examples an alarm is confirmed or dismissed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_number, check_whole
from fourrates.findings import Drift
from fourrates.labels import Codes
from fourrates.retrain.learner import Learner
from fourrates.retrain.rows import join, take

Examples = tuple[Any, Codes]  # rows and the codes of their labels

LEAST = 10  # examples on either side of an alarm
PARTS = (0.1, 0.2, 0.4, 0.8)  # of the change at the alarm, which overstates the true one


@dataclass(frozen=True, slots=True)
class Verdict:
    """The second layer's verdict on an alarm.

    Attributes
    ----------
    drift : Drift
        The alarm.
    at : int
        The label at which the verdict was reached.
    confirmed : bool
        Whether the alarm is confirmed.
    p_value : float
        The p-value of the examples after the alarm if nothing changed; nan for an alarm that could not be judged, which
        is confirmed.
    why : str
        Its evidence, in words.
    """

    drift: Drift
    at: int
    confirmed: bool
    p_value: float
    why: str

    @property
    def delay(self) -> int:
        """Labels between the alarm and the verdict, the cost of the second layer."""
        return self.at - self.drift.at

    def __str__(self) -> str:
        what = "confirmed" if self.confirmed else "dismissed"
        return f"drift at {self.drift.at:,} {what} at {self.at:,}, p {self.p_value:.3f}: {self.why}"


class SecondLayer:
    """Judges an alarm by the examples before it and those since the drift began; a subclass implements the test."""

    def __init__(self, window: int, level: float) -> None:
        self.window = check_whole(window, "window", least=LEAST)
        if not 0 < check_number(level, "level") < 1:
            raise ValueError(f"level {level!r} is not in (0, 1)")
        self.level = float(level)

    def first_look(self, drift: Drift) -> int:
        """The fewest labels for the first verdict."""
        return drift.window.start + self.window

    def pause(self, waited: int) -> int:
        """How many labels to wait before another look, given those since the alarm."""
        return 1

    def _judge(
        self, learner: Learner, model: Any, before: Examples, after: Examples, drift: Drift
    ) -> tuple[bool, float, str] | None:
        """Whether the alarm is confirmed, the p-value and its evidence; None to wait for more labels."""
        raise NotImplementedError

    def test(
        self, learner: Learner, model: Any, before: Examples, after: Examples, drift: Drift, at: int
    ) -> Verdict | None:
        """Judge an alarm at a label, or return None to be asked again; confirm one that cannot be judged."""
        try:
            if before[1].size < LEAST:
                raise ValueError(f"only {before[1].size} examples before the drift")
            found = self._judge(learner, model, before, after, drift)
        except Exception as error:  # of the model's own, too
            found = True, float("nan"), f"it could not be judged ({error})"
        return None if found is None else Verdict(drift, at, *found)


class PermutationTest(SecondLayer):
    """Confirm or dismiss an alarm by the loss of a classifier trained before it (HLFR, Yu & Abraham, 2017).

    A clone of the model is trained on the `window` examples before the drift began and tested on the same number since.
    The same is done with these examples in random orders. If the concept is the same, the order does not matter. So the
    p-value is the share of orders, the true one included, with at least the loss of the true one.

    The examples after the change are counted from the start the detector gives (`drift.window`), so there are fewer to
    wait for. HLFR counts from the alarm.

    Parameters
    ----------
    window : int
        Examples on either side, 10 or more.
    permutations : int
        Random orders, each of which costs one fit.
    level : float
        An alarm is confirmed if the p-value is at most this.
    seed : int
        For the orders.

    Examples
    --------
    At so loose a level LFR alarms five times, at the change at 2,500 and by chance:

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import fourrates as fr
    >>> from fourrates.retrain import PermutationTest, Retrainer
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> loop = Retrainer(GaussianNB(), fr.LFR(warn=0.1, detect=0.001), confirm=PermutationTest(100))
    >>> loop = loop.fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> [(verdict.drift.at, verdict.confirmed, verdict.delay) for verdict in loop.verdicts]
    [(154, False, 81), (2500, True, 28), (3514, False, 85), (3799, False, 81), (4257, False, 45)]
    """

    def __init__(self, window: int = 100, *, permutations: int = 99, level: float = 0.05, seed: int = 0) -> None:
        super().__init__(window, level)
        self.permutations = check_whole(permutations, "permutations", least=1)
        if level * (permutations + 1) < 1:
            raise ValueError(f"{permutations} permutations cannot give a p-value of {level}")
        self.seed = check_whole(seed, "seed", least=0)

    def __repr__(self) -> str:
        return (
            f"PermutationTest({self.window}, permutations={self.permutations}, level={self.level:g}, seed={self.seed})"
        )

    def _judge(
        self, learner: Learner, model: Any, before: Examples, after: Examples, drift: Drift
    ) -> tuple[bool, float, str]:
        """The share of orders in which a model trained on the first examples fails as often on the rest."""
        rows = join([before[0], after[0]])
        truths = np.concatenate([before[1], after[1]])
        size = before[1].size
        random = np.random.default_rng((self.seed, drift.at))
        ordered = _loss(learner, rows, truths, np.arange(truths.size), size)
        if ordered is None:
            raise ValueError("the examples before the drift are of a single class")
        orders = (random.permutation(truths.size) for _ in range(self.permutations))
        losses = [loss for order in orders if (loss := _loss(learner, rows, truths, order, size)) is not None]
        p_value = (1 + sum(loss >= ordered for loss in losses)) / (1 + len(losses))
        why = f"loss {ordered:.3f}, in random orders {np.mean([*losses, ordered]):.3f}"
        return p_value <= self.level, p_value, why


def _loss(learner: Learner, rows: Any, truths: Codes, order: npt.NDArray[np.intp], size: int) -> float | None:
    """The share of errors on the last examples in this order by a model trained on the first `size`."""
    first, rest = order[:size], order[size:]
    if np.unique(truths[first]).size < 2:
        return None
    model = learner.trained(take(rows, first), truths[first])
    return float(np.mean(learner.ask(model, take(rows, rest)) != truths[rest]))


class SequentialTest(SecondLayer):
    """Confirm or dismiss an alarm by Wald's sequential test on the recalls of the serving model.

    Do the labels after the alarm fit the recalls before the drift, or recalls that moved the alarmed way? The size of
    the move is estimated between the start of the drift and the alarm. That overstates it, because the alarm chose
    them, so it tries a tenth, a fifth, two fifths and four fifths of the change, in log-odds, with equal priors. An
    alarm is confirmed once its labels are `odds` times as likely after a drift as without one, and dismissed once they
    are `level` times as likely. So a drift is dismissed with a probability of about `level`, and a large one is
    confirmed after a few labels. After `wait` labels the likelier of the two decides.

    The permutation test needs proof of a change, and loses drifts for which `window` labels are too few. This one
    trusts the alarm and needs proof that there was no change.

    Parameters
    ----------
    window : int
        Examples before the drift from which the recalls are estimated, 10 or more.
    wait : int
        The most labels to wait for after the alarm. Give as many as a concept can spare.
    odds : float
        How many times likelier its labels must be with a drift than without one to confirm an alarm, more than 1.
    level : float
        The probability to dismiss a drift.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import fourrates as fr
    >>> from fourrates.retrain import Retrainer, SequentialTest
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> loop = Retrainer(GaussianNB(), fr.LFR(warn=0.1, detect=0.001), confirm=SequentialTest()).fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> for verdict in loop.verdicts:
    ...     print(verdict)
    drift at 154 dismissed at 254, p 1.000: its 100 labels are 0.728 times as likely as without a drift
    drift at 2,500 confirmed at 2,504, p 0.268: its 4 labels are 3.73 times as likely as without a drift
    drift at 3,514 dismissed at 3,614, p 1.000: its 100 labels are 0.185 times as likely as without a drift
    drift at 3,800 confirmed at 3,809, p 0.396: its 9 labels are 2.52 times as likely as without a drift
    """

    def __init__(self, window: int = 200, *, wait: int = 100, odds: float = 2.0, level: float = 0.05) -> None:
        super().__init__(window, level)
        self.wait = check_whole(wait, "wait", least=1)
        self.odds = check_number(odds, "odds")
        if self.odds <= 1:
            raise ValueError(f"odds {odds!r} is not more than 1")

    def __repr__(self) -> str:
        return f"SequentialTest({self.window}, wait={self.wait}, odds={self.odds:g}, level={self.level:g})"

    def first_look(self, drift: Drift) -> int:
        """After the first label since the alarm."""
        return drift.at + 2

    def pause(self, waited: int) -> int:
        """After each label at first, then at every tenth more."""
        return min(max(waited // 10, 1), max(self.wait - waited, 1))

    def _judge(
        self, learner: Learner, model: Any, before: Examples, after: Examples, drift: Drift
    ) -> tuple[bool, float, str] | None:
        right = [learner.ask(model, rows) == truths for rows, truths in (before, after)]
        classes, seen = len(learner.labels.values), drift.at + 1 - drift.window.start
        old = _recalls(right[0], before[1], classes)
        new = _recalls(right[1][:seen], after[1][:seen], classes)
        moved = np.log(new / (1 - new)) - np.log(old / (1 - old))
        fresh, truths = right[1][seen:], after[1][seen:]
        ratios = []
        for part in PARTS:
            changed = 1 / (1 + (1 - old) / old * np.exp(-part * moved))
            steps = np.where(fresh, np.log(changed / old)[truths], np.log((1 - changed) / (1 - old))[truths])
            ratios.append(float(steps.sum()))
        most = max(ratios)
        evidence = most + math.log(sum(math.exp(ratio - most) for ratio in ratios) / len(ratios))
        if math.log(self.level) < evidence < math.log(self.odds) and fresh.size < self.wait:
            return None
        why = f"its {fresh.size} labels are {math.exp(min(evidence, 700)):.3g} times as likely as without a drift"
        return evidence >= 0, min(1.0, math.exp(-evidence)), why


def _recalls(right: npt.NDArray[np.bool_], truths: Codes, classes: int) -> npt.NDArray[np.float64]:
    """The recall of each class, with half an example of either kind added."""
    total, found = (np.bincount(truths[which], minlength=classes) for which in (slice(None), right))
    return np.asarray((found + 0.5) / (total + 1))

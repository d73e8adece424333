"""A second layer that waits no longer than it must: do the labels after an alarm fit the recalls before it or at it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.checks import check_number, check_whole
from fourrates.retrain.second_layer import LEAST, SecondLayer, Verdict

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.findings import Drift
    from fourrates.labels import Codes
    from fourrates.retrain.learner import Learner
    from fourrates.retrain.second_layer import Examples

    Recalls = npt.NDArray[np.float64]


PARTS = (0.1, 0.2, 0.4, 0.8)  # of the change that the alarm shows, which is larger than the one behind it


class SequentialTest(SecondLayer):
    """Confirm or dismiss an alarm by Wald's sequential test on the recalls of the serving model.

    After the alarm the labels are asked: do they fit the recalls before the drift, or recalls that moved the way the
    detector alarmed at? How far those moved is read from the examples between the start of the drift and the alarm.
    They look worse than they are, because the alarm chose them, so a tenth, a fifth, two fifths and four fifths of that
    change, in log-odds, are looked for, each with the same prior. An alarm is confirmed once its labels are `odds`
    times as likely after a drift as without one, and dismissed once they are `level` times as likely. So a drift is
    dismissed with a probability of about `level`, and a large one is confirmed after a few labels. After `wait` labels
    whatever is more likely decides.

    The other layers ask for proof that there was a change, and lose drifts for which `window` labels are too few. This
    one takes the alarm's word and looks for proof that there was none.

    Parameters
    ----------
    window : int
        Examples before the drift that say what the recalls were, 10 or more.
    wait : int
        Labels after the alarm that are waited for at most. Give as many as a concept can spare.
    odds : float
        How many times as likely as without a drift its labels must be to confirm an alarm, more than 1.
    level : float
        How likely a drift may be dismissed.

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

    def begins(self, drift: Drift) -> int:
        """Where the detector puts the beginning of the drift: what came since says what to look for."""
        return drift.window.start

    def first_look(self, drift: Drift) -> int:
        """After the first label behind the alarm."""
        return drift.at + 2

    def pause(self, waited: int) -> int:
        """After each label at first, then each time a tenth more have come."""
        return min(max(waited // 10, 1), max(self.wait - waited, 1))

    def test(
        self, learner: Learner, model: Any, before: Examples, after: Examples, drift: Drift, at: int
    ) -> Verdict | None:
        """Judge an alarm, or wait for another label."""
        try:
            if before[1].size < LEAST:
                raise ValueError(f"only {before[1].size} examples before the drift")
            right = [learner.ask(model, rows) == truths for rows, truths in (before, after)]
        except Exception as error:  # of the model's own, too
            return Verdict(drift, at, True, float("nan"), f"it could not be judged ({error})")
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
        evidence = most + math.log(sum(math.exp(one - most) for one in ratios) / len(ratios))
        if math.log(self.level) < evidence < math.log(self.odds) and fresh.size < self.wait:
            return None
        why = f"its {fresh.size} labels are {math.exp(min(evidence, 700)):.3g} times as likely as without a drift"
        return Verdict(drift, at, evidence >= 0, min(1.0, math.exp(-evidence)), why)


def _recalls(right: npt.NDArray[np.bool_], truths: Codes, classes: int) -> Recalls:
    """The recall of each class, half an example of either kind added."""
    total, found = (np.bincount(truths[which], minlength=classes) for which in (slice(None), right))
    return np.asarray((found + 0.5) / (total + 1))

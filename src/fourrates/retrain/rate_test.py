"""A second layer on the rates: whether a recall of the serving model is another after an alarm than before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.retrain.second_layer import SecondLayer

if TYPE_CHECKING:
    from fourrates.findings import Drift
    from fourrates.retrain.learner import Learner
    from fourrates.retrain.second_layer import Examples


class RateTest(SecondLayer):
    """Confirm or dismiss an alarm by the recalls of the serving model before and after it.

    For each class the serving model's right and wrong predictions on the `window` examples before the drift began are
    held against those on the `window` examples after the alarm, by Fisher's exact test, two-sided; the smallest p-value
    is multiplied by the number of classes. It permutes what the model got right instead of learning again for each
    permutation, so it costs next to nothing, and it sees a fall of one recall that a rise of another makes up for. The
    examples that led to the alarm are left out: they look changed by selection.

    Parameters
    ----------
    window : int
        Examples on either side, 10 or more; those after the alarm are waited for.
    level : float
        An alarm is confirmed if the p-value is at most this.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import fourrates as fr
    >>> from fourrates.retrain import RateTest, Retrainer
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> loop = Retrainer(GaussianNB(), fr.LFR(warn=0.1, detect=0.001), confirm=RateTest(30)).fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> for verdict in loop.verdicts:
    ...     print(verdict)
    drift at 154 dismissed at 184, p 1.000: recall of 0 1.000 of 13 -> 1.000 of 15
    drift at 2,500 confirmed at 2,530, p 0.004: recall of 0 1.000 of 13 -> 0.429 of 14
    drift at 3,514 dismissed at 3,544, p 0.339: recall of 0 0.647 of 17 -> 0.375 of 16
    drift at 3,805 dismissed at 3,835, p 1.000: recall of 1 0.765 of 17 -> 0.643 of 14
    drift at 5,226 dismissed at 5,256, p 0.924: recall of 0 0.467 of 15 -> 0.667 of 15
    """

    def __init__(self, window: int = 50, *, level: float = 0.05) -> None:
        super().__init__(window, level)

    def __repr__(self) -> str:
        return f"RateTest({self.window}, level={self.level:g})"

    def begins(self, drift: Drift) -> int:
        """The example after the alarm."""
        return drift.at + 1

    def p_value(self, learner: Learner, model: Any, before: Examples, after: Examples, seed: int) -> tuple[float, str]:
        """The smallest p-value over the classes, times their number."""
        right = [learner.ask(model, rows) == truths for rows, truths in (before, after)]
        found = []
        for code, label in enumerate(learner.labels.values):
            old, new = right[0][before[1] == code], right[1][after[1] == code]
            if old.size and new.size:
                words = f"recall of {label!r} {old.mean():.3f} of {old.size} -> {new.mean():.3f} of {new.size}"
                found.append((fisher(int(old.sum()), old.size, int(new.sum()), new.size), words))
        if not found:
            raise ValueError("no class is there both before and after the alarm")
        p_value, words = min(found)
        return min(1.0, len(found) * p_value), words


def fisher(first: int, of_first: int, second: int, of_second: int) -> float:
    """The two-sided p-value of Fisher's exact test that two shares are the same.

    Examples
    --------
    >>> from fourrates.retrain.rate_test import fisher
    >>> round(fisher(3, 4, 1, 4), 4)  # the lady who tastes tea
    0.4857
    """
    ones, total = first + second, of_first + of_second
    possible = range(max(0, ones - of_second), min(of_first, ones) + 1)
    logs = np.array([_log_choose(of_first, k) + _log_choose(of_second, ones - k) for k in possible])
    chances = np.exp(logs - _log_choose(total, ones))
    observed = chances[first - possible.start]
    return float(min(1.0, chances[chances <= observed * (1 + 1e-9)].sum()))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

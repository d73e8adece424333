"""The error test of Dries and Rueckert: how often a linear rule tells new rows from old ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fourrates.distribution.examples import Array, Examples
from fourrates.distribution.separation import check_threshold, held_out_margins
from fourrates.distribution.two_sample import TwoSampleTest, both_ways, check_permutations, permuted
from fourrates.distribution.watch import Comparison


class ErrorTest(TwoSampleTest):
    """Whether a linear support vector machine tells old rows from new ones with fewer errors than chance allows.

    A 1-norm machine learns from one half of both; its 0-1 error on the other half has a p-value by permutation. Then
    with the halves exchanged. Two permutations with as many errors are ordered by their mean margins: without that the
    counts would be too coarse to use up the level.

    Parameters
    ----------
    threshold : float
        Standard errors by which a feature of old and new rows must differ, about, to have a weight in the machine.
    permutations : int
        For each p-value.
    level : float
        Where a stream gives an alarm.
    window : int
        Rows of the reference window and of the latest one, in a stream.
    step : int, optional
        Rows between two comparisons in a stream; the window if not given.
    seed : int
        Of the halves, the machine and the permutations: the same rows give the same p-value.

    Notes
    -----
    The paper could not be read for this beyond its abstract, which has the zero-one error of a machine. What was left
    to us is said at :class:`MarginTest`.

    References
    ----------
    A. Dries and U. Rueckert, "Adaptive Concept Drift Detection", Statistical Analysis and Data Mining 2(5-6), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.distribution import ErrorTest
    >>> random = np.random.default_rng(1)
    >>> old, new = random.normal(size=(2, 200, 10))
    >>> found = ErrorTest().fit(old, old[:, 0] > 0).test(new, new[:, 1] > 0)
    >>> print(f"{found.statistic:.2f} right where chance has 0.50, p-value {found.p_value:.3f}")
    0.76 right where chance has 0.50, p-value 0.002
    """

    def __init__(
        self,
        *,
        threshold: float = 1.2,
        permutations: int = 999,
        level: float = 0.05,
        window: int = 200,
        step: int | None = None,
        seed: int = 0,
    ) -> None:
        self.threshold = threshold
        self.permutations = permutations
        self.level = level
        self.window = window
        self.step = step
        self.seed = seed

    def _check_settings(self) -> None:
        check_permutations(self.permutations)
        check_threshold(self.threshold)
        super()._check_settings()

    def _compare(self, reference: Examples, latest: Examples) -> Comparison:
        random = np.random.default_rng(self.seed)
        found = []
        for old, new in held_out_margins(reference, latest, self.threshold, self.seed, random):
            right = ((old < 0).mean() + (new > 0).mean()) / 2
            found.append(Comparison(float(right), permuted(_right, old, new, self.permutations, random)))
        return both_ways(*found)


def _right(old: Array, new: Array, axis: int = -1) -> Any:
    """Rows told right, of both kinds alike; the margins only order what is equal otherwise."""
    right = (old < 0).mean(axis=axis) + (new > 0).mean(axis=axis)
    ahead = np.tanh(new).mean(axis=axis) - np.tanh(old).mean(axis=axis)  # within -2 and 2
    return right + ahead / (8 * old.shape[axis] * new.shape[axis])

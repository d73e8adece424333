"""The margin test of Dries and Rueckert: how far a linear rule puts new rows from old ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fourrates.distribution.examples import Array, Examples
from fourrates.distribution.separation import check_threshold, held_out_margins
from fourrates.distribution.two_sample import TwoSampleTest, both_ways, check_permutations, permuted
from fourrates.distribution.watch import Comparison


class MarginTest(TwoSampleTest):
    """Whether a linear support vector machine gives new rows larger margins than old ones in the mean.

    A 1-norm machine learns to tell old rows from new ones by one half of both; the mean margins of the other half are
    compared, with a p-value by permutation. Then with the halves exchanged.

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
    The paper could not be read for this beyond its abstract, which has the 1-norm machine and the mean margins. Left to
    us were its C, the halves with a permutation, and labels as columns with their products with the features: a linear
    rule on features and label alone cannot see P(y | X) change.

    References
    ----------
    A. Dries and U. Rueckert, "Adaptive Concept Drift Detection", Statistical Analysis and Data Mining 2(5-6), 2009.

    Examples
    --------
    The feature that decides is another one. Neither P(X) nor P(y) has changed:

    >>> import numpy as np
    >>> from fourrates.distribution import MarginTest
    >>> random = np.random.default_rng(1)
    >>> old, new = random.normal(size=(2, 200, 10))
    >>> test = MarginTest().fit(old, old[:, 0] > 0)
    >>> test.test(new, new[:, 0] > 0).p_value > 0.05
    True
    >>> test.test(new, new[:, 1] > 0).p_value
    0.002
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
        found = [
            Comparison(float(_ahead(old, new)), permuted(_ahead, old, new, self.permutations, random))
            for old, new in held_out_margins(reference, latest, self.threshold, self.seed, random)
        ]
        return both_ways(*found)


def _ahead(old: Array, new: Array, axis: int = -1) -> Any:
    """How much larger the margins of the new rows are in the mean."""
    return new.mean(axis=axis) - old.mean(axis=axis)

"""The density test of Song et al.: the likelihood of new rows under a density of old ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fourrates.distribution.examples import Array, Examples, joined, together
from fourrates.distribution.kernel_density import log_density
from fourrates.distribution.two_sample import TwoSampleTest, both_ways, check_permutations, halves, permuted
from fourrates.distribution.watch import Comparison


class DensityTest(TwoSampleTest):
    """Whether new rows are less likely than old ones under a kernel density of old ones, and the other way round.

    The density is estimated from one half of the reference, its bandwidth by EM; the mean log-likelihood of the new
    rows is held against that of the other half. A window that lies inside the old distribution is as likely as ever:
    so the test is run both ways, with a density from half of the new rows too.

    Parameters
    ----------
    permutations : int
        For each p-value.
    level : float
        Where a stream gives an alarm.
    window : int
        Rows of the reference window and of the latest one, in a stream.
    step : int, optional
        Rows between two comparisons in a stream; the window if not given.
    seed : int
        Of the halves and the permutations: the same rows give the same p-value.

    Notes
    -----
    The paper could not be read for this, only its abstract and how others describe it. Left to us were: features on one
    scale, with the label as columns beside them, and one bandwidth for all; a p-value by permutation of the
    log-likelihoods instead of their asymptotic normal law, which keeps its level in every dimension.

    References
    ----------
    X. Song, M. Wu, C. Jermaine and S. Ranka, "Statistical Change Detection for Multi-Dimensional Data", KDD 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.distribution import DensityTest
    >>> random = np.random.default_rng(1)
    >>> test = DensityTest().fit(random.normal(size=(300, 2)))
    >>> test.test(random.normal(size=(300, 2))).p_value > 0.05
    True
    >>> test.test(random.normal(scale=1.5, size=(300, 2))).p_value
    0.002

    Along a stream that changes at 1,000:

    >>> stream = np.concatenate([random.normal(size=(1_000, 2)), random.normal(scale=1.5, size=(1_000, 2))])
    >>> [alarm.at for alarm in DensityTest(level=0.01).update_many(stream)]
    [1199]
    """

    def __init__(
        self,
        *,
        permutations: int = 999,
        level: float = 0.05,
        window: int = 200,
        step: int | None = None,
        seed: int = 0,
    ) -> None:
        self.permutations = permutations
        self.level = level
        self.window = window
        self.step = step
        self.seed = seed

    def _check_settings(self) -> None:
        check_permutations(self.permutations)
        super()._check_settings()

    def _compare(self, reference: Examples, latest: Examples) -> Comparison:
        random = np.random.default_rng(self.seed)
        rows = joined(together(reference, latest))
        old, new = rows[: len(reference)], rows[len(reference) :]
        return both_ways(self._one_way(old, new, random), self._one_way(new, old, random))

    def _one_way(self, base: Array, other: Array, random: np.random.Generator) -> Comparison:
        learn, hold = halves(random, len(base))
        values = log_density(base[learn], np.concatenate([base[hold], other]))
        held, rest = values[: len(hold)], values[len(hold) :]
        return Comparison(float(_drop(held, rest)), permuted(_drop, held, rest, self.permutations, random))


def _drop(held: Array, other: Array, axis: int = -1) -> Any:
    """How much less likely the other rows are in the mean."""
    return held.mean(axis=axis) - other.mean(axis=axis)

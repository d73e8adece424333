"""The rank test of Dries and Rueckert: the ranks of old and new rows by a density estimate."""

from __future__ import annotations

import numpy as np

from fourrates.distribution.examples import Array, Examples, joined, together
from fourrates.distribution.kernel_density import log_density
from fourrates.distribution.two_sample import TwoSampleTest, both_ways, halves
from fourrates.distribution.watch import Comparison


class RankTest(TwoSampleTest):
    """Whether old and new rows take the same ranks when they are ordered by a density estimate (Wilcoxon's rank sum).

    The density is learnt from one half of the reference; the other half and the new rows are ranked by it. Then the
    same with a density of new rows. Ranks do not mind a few rows that are very unlikely, as the mean log-likelihood of
    :class:`DensityTest` does, and both directions count: new rows that are *more* likely are a change as well.

    Parameters
    ----------
    level : float
        Where a stream gives an alarm.
    window : int
        Rows of the reference window and of the latest one, in a stream.
    step : int, optional
        Rows between two comparisons in a stream; the window if not given.
    seed : int
        Of the halves: the same rows give the same p-value.

    Notes
    -----
    The paper could not be read for this beyond its abstract. It estimates the density of a binary representation of the
    data; here it is a kernel density on features of one scale, with the label as columns beside them, which needs no
    choice of such a representation.

    References
    ----------
    A. Dries and U. Rueckert, "Adaptive Concept Drift Detection", Statistical Analysis and Data Mining 2(5-6), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.distribution import RankTest
    >>> random = np.random.default_rng(1)
    >>> test = RankTest().fit(random.normal(size=(300, 2)))
    >>> test.test(random.normal(size=(300, 2))).p_value > 0.05
    True
    >>> test.test(random.normal(scale=1.5, size=(300, 2))).p_value < 0.001
    True
    """

    def __init__(self, *, level: float = 0.05, window: int = 200, step: int | None = None, seed: int = 0) -> None:
        self.level = level
        self.window = window
        self.step = step
        self.seed = seed

    def _compare(self, reference: Examples, latest: Examples) -> Comparison:
        random = np.random.default_rng(self.seed)
        rows = joined(together(reference, latest))
        old, new = rows[: len(reference)], rows[len(reference) :]
        return both_ways(_one_way(old, new, random), _one_way(new, old, random))


def _one_way(base: Array, other: Array, random: np.random.Generator) -> Comparison:
    from scipy.stats import mannwhitneyu

    learn, hold = halves(random, len(base))
    values = log_density(base[learn], np.concatenate([base[hold], other]))
    held, rest = values[: len(hold)], values[len(hold) :]
    found = mannwhitneyu(held, rest, alternative="two-sided", method="asymptotic")
    apart = abs(float(found.statistic) / (held.size * rest.size) - 0.5)  # 0: the ranks are alike; 0.5: all apart
    return Comparison(apart, float(found.pvalue))

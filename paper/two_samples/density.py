"""Song et al.'s test on likelihoods and Dries and Rueckert's on ranks, both by a kernel density."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from fourrates.distribution import Array
from paper.two_samples.two_sample import Comparison, Sample, TwoSampleTest, both_ways, halves, permuted

SMALLEST = 1e-3  # deviations of a feature; with repeated rows the likelihood is unbounded
TURNS, CLOSE = 100, 1e-3


class _ByDensity(TwoSampleTest):
    """Compares rows by their log-density under a density of one half of the reference, then of the new rows."""

    @abstractmethod
    def _held_against(self, held: Array, other: Array, random: np.random.Generator) -> Comparison:
        """Compare the log-densities of the other half with those of the other sample."""

    def _compare(self, reference: Sample, latest: Sample) -> Comparison:
        random = np.random.default_rng(self.seed)
        rows = (reference + latest).joined()
        old, new = rows[: len(reference)], rows[len(reference) :]
        return both_ways(self._one_way(old, new, random), self._one_way(new, old, random))

    def _one_way(self, base: Array, other: Array, random: np.random.Generator) -> Comparison:
        learn, hold = halves(random, len(base))
        values = log_density(base[learn], np.concatenate([base[hold], other]))
        return self._held_against(values[: len(hold)], values[len(hold) :], random)


@dataclass(eq=False, repr=False, kw_only=True)
class DensityTest(_ByDensity):
    """Whether new rows are less likely than old ones under a kernel density of old ones, and the other way round.

    The density is estimated from one half of the reference, its bandwidth by EM. The mean log-likelihood of the new
    rows is compared with that of the other half. A window inside the old distribution is as likely as ever, so the test
    is run both ways, with a density from half of the new rows too.

    Parameters
    ----------
    permutations : int
        For each p-value.
    seed : int
        Of all random numbers.

    Notes
    -----
    Only the abstract of the paper and descriptions by others could be read. Chosen here: features on one scale with the
    label as columns beside them, one bandwidth for all, and a p-value by permutation of the log-likelihoods. Unlike
    their asymptotic normal law, that keeps its level in every dimension.

    References
    ----------
    X. Song, M. Wu, C. Jermaine and S. Ranka, "Statistical Change Detection for Multi-Dimensional Data", KDD 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.two_samples import DensityTest
    >>> random = np.random.default_rng(1)
    >>> test = DensityTest().fit(random.normal(size=(300, 2)))
    >>> test.test(random.normal(size=(300, 2))).p_value > 0.05
    True
    >>> test.test(random.normal(scale=1.5, size=(300, 2))).p_value
    0.002
    """

    permutations: int = 999

    def _held_against(self, held: Array, other: Array, random: np.random.Generator) -> Comparison:
        return Comparison(float(_drop(held, other)), permuted(_drop, held, other, self.permutations, random))


def _drop(held: Array, other: Array, axis: int = -1) -> Any:
    """How much less likely the other rows are in the mean."""
    return held.mean(axis=axis) - other.mean(axis=axis)


class RankTest(_ByDensity):
    """Whether old and new rows take the same ranks when they are ordered by a density estimate (Wilcoxon's rank sum).

    The density is estimated from one half of the reference, and ranks the other half and the new rows. Then the same
    with a density of new rows. Ranks are robust to a few very unlikely rows, unlike the mean log-likelihood of
    :class:`DensityTest`. Both directions count, as new rows that are *more* likely are a change as well.

    Parameters
    ----------
    seed : int
        Of all random numbers.

    Notes
    -----
    Only the paper's abstract could be read. It estimates the density of a binary representation of the data. Here it is
    a kernel density on features of one scale, with the label as columns beside them, which needs no such choice.

    References
    ----------
    A. Dries and U. Rueckert, "Adaptive Concept Drift Detection", Statistical Analysis and Data Mining 2(5-6), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.two_samples import RankTest
    >>> random = np.random.default_rng(1)
    >>> test = RankTest().fit(random.normal(size=(300, 2)))
    >>> test.test(random.normal(size=(300, 2))).p_value > 0.05
    True
    >>> test.test(random.normal(scale=1.5, size=(300, 2))).p_value < 0.001
    True
    """

    def _held_against(self, held: Array, other: Array, random: np.random.Generator) -> Comparison:
        from scipy.stats import mannwhitneyu

        found = mannwhitneyu(held, other, alternative="two-sided", method="asymptotic")
        apart = abs(float(found.statistic) / (held.size * other.size) - 0.5)  # 0: the ranks are alike; 0.5: all apart
        return Comparison(apart, float(found.pvalue))


def bandwidth(points: Array) -> float:
    """The deviation of the kernels that makes each point most likely under those of all others, by EM."""
    from scipy.spatial.distance import pdist, squareform
    from scipy.special import softmax

    rows, size = points.shape
    squares = squareform(pdist(points, "sqeuclidean"))
    np.fill_diagonal(squares, np.inf)  # no point explains itself
    finite = np.where(np.isfinite(squares), squares, 0.0)
    variance = (rows * (size + 2) / 4) ** (-2 / (size + 4))  # Silverman's
    for _ in range(TURNS):
        shares = softmax(-squares / (2 * variance), axis=1)
        before, variance = variance, max(float((shares * finite).sum()) / (rows * size), SMALLEST**2)
        if abs(variance / before - 1) < CLOSE:
            break
    return float(np.sqrt(variance))


def log_density(learn: Array, ask: Array) -> Array:
    """The logarithm of the density, estimated from some points, at others."""
    from sklearn.neighbors import KernelDensity

    found: Array = KernelDensity(bandwidth=bandwidth(learn)).fit(learn).score_samples(ask)
    return found

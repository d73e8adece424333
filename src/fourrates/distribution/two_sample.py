"""Tests that compare a reference with a later sample: `fit` keeps the reference, `test` compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.distribution.examples import Array, check
from fourrates.distribution.watch import Comparison, WindowWatch

Halves = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class TwoSampleTest(WindowWatch):
    """A reference against a later sample, in batch or along a stream.

    Some of the rows are used to fit a density or a rule, and the rest are compared by it; then the roles are exchanged.
    Under the null hypothesis the compared rows are exchangeable whatever was fitted to the others. So each of the two
    p-values is valid for every distribution and dimension; the smaller one is doubled (Bonferroni).
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Keep the reference, for `test` and for the stream that follows.

        Parameters
        ----------
        X : array, rows by features
            The reference.
        y : array of labels, optional
            Theirs. A test sees P(X, y) with them and P(X) without.
        """
        self._check_settings()
        reference = check(X, y, name="X of the reference")
        self._check_rows(reference.name, len(reference))
        self._reference, self._given = reference, True
        self.n_features_in_ = reference.features.shape[1]
        return self.reset()

    def test(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Comparison:
        """Compare a later sample with the reference.

        Parameters
        ----------
        X : array, rows by features
            The later sample; it need not have as many rows as the reference.
        y : array of labels, optional
            Theirs, if the reference has labels.
        """
        if self._reference is None:
            raise ValueError("there is no reference yet: call fit first")
        self._check_settings()
        latest = check(X, y)
        self._check_alike(latest)
        self._check_rows(latest.name, len(latest))
        return self._compare(self._reference, latest)

    def _check_rows(self, name: str, rows: int) -> None:
        if rows < self._least:
            raise ValueError(f"{name} has {rows} rows; this test needs at least {self._least}")


def halves(random: np.random.Generator, rows: int) -> Halves:
    """The numbers of the rows, in two halves by chance."""
    order = random.permutation(rows)
    return order[: rows // 2], order[rows // 2 :]


def permuted(
    statistic: Callable[..., Any], early: Array, late: Array, permutations: int, random: np.random.Generator
) -> float:
    """The p-value of a statistic of two samples, by permutation: (1 + those at least as large) / (permutations + 1)."""
    from scipy.stats import permutation_test

    found = permutation_test(
        (early, late),
        statistic,
        n_resamples=permutations,
        alternative="greater",
        random_state=random,
        vectorized=True,
        batch=max(1, 2_000_000 // (len(early) + len(late))),
    )
    return float(found.pvalue)


def both_ways(*ways: Comparison) -> Comparison:
    """Two comparisons as one, with the smaller p-value doubled."""
    better = min(ways, key=lambda way: way.p_value)
    return Comparison(better.statistic, min(1.0, 2 * better.p_value))

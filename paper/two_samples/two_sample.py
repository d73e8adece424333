"""The frame of all four tests: a reference, a later sample, and p-values by permutation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.distribution import Array, Labels, check, check_varied, indicators, joined, standardised

Halves = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
LEAST = 20  # rows of a sample


@dataclass(frozen=True, slots=True)
class Comparison:
    """The test's own statistic, larger if it speaks for a change, and its p-value."""

    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of features and their labels, if any."""

    features: Array
    labels: Labels | None

    def __len__(self) -> int:
        return len(self.features)

    def __add__(self, later: Sample) -> Sample:
        labels = None
        if self.labels is not None and later.labels is not None:
            labels = np.concatenate([self.labels, later.labels])
        return Sample(np.concatenate([self.features, later.features]), labels)

    def joined(self) -> Array:
        """Features and label as columns of one scale."""
        check_varied(self.features, self.labels)
        return joined(self.features, self.labels)

    def crossed(self) -> Array:
        """The same, and the product of each feature with each column of the label.

        To a linear rule these are the features of each class. Without them it is blind to concept drift, a change of
        P(y | X) while P(X) and P(y) stay.
        """
        both = self.joined()
        if self.labels is None:
            return both
        features, labels = standardised(self.features), standardised(indicators(self.labels))
        return np.concatenate([both, *(standardised(features * column[:, None]) for column in labels.T)], axis=1)


@dataclass(eq=False, kw_only=True)
class TwoSampleTest(ABC):
    """A reference against a later sample; the same `seed` gives the same p-value."""

    seed: int = 0
    _reference: Sample | None = field(default=None, init=False, repr=False)

    @abstractmethod
    def _compare(self, reference: Sample, latest: Sample) -> Comparison:
        """Compare two samples."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Take the reference. With labels a test sees P(X, y), without them P(X)."""
        if (permutations := getattr(self, "permutations", 1)) < 1:
            raise ValueError(f"permutations {permutations}: a p-value needs at least 1")
        self._reference = _sample(X, y)
        return self

    def test(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Comparison:
        """Compare a later sample with the reference; it need not have as many rows."""
        if self._reference is None:
            raise ValueError("there is no reference yet: call fit first")
        latest = _sample(X, y)
        if latest.features.shape[1] != self._reference.features.shape[1]:
            raise ValueError(
                f"X has {latest.features.shape[1]} features; the reference has {self._reference.features.shape[1]}"
            )
        if (latest.labels is None) != (self._reference.labels is None):
            raise ValueError("labels are given always or never")
        return self._compare(self._reference, latest)


def _sample(X: npt.ArrayLike, y: npt.ArrayLike | None) -> Sample:
    features, labels = check(X, y)
    if len(features) < LEAST:
        raise ValueError(f"X has {len(features)} rows; this test needs at least {LEAST}")
    return Sample(features, labels)


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

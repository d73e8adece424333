"""The best split of a segment, against its definition."""

import numpy as np
import pytest

from fourrates.kernel import energy


def by_definition(points, alpha, min_size):
    """The largest statistic over all (tau, kappa), each from the means over its blocks of distances: cubic and more."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2) ** alpha
    best = (-np.inf, 0, 0)
    for kappa in range(2 * min_size, len(points) + 1):
        for tau in range(min_size, kappa - min_size + 1):
            n, m = tau, kappa - tau
            between = distances[:tau, tau:kappa].mean()
            first = distances[:tau, :tau].sum() / (n * (n - 1))  # over pairs of different rows
            second = distances[tau:kappa, tau:kappa].sum() / (m * (m - 1))
            best = max(best, (n * m / (n + m) * (2 * between - first - second), tau, kappa))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("rows", "size", "alpha", "min_size"), [(20, 1, 1.0, 2), (24, 3, 0.7, 3), (30, 2, 2.0, 5), (26, 1, 1.5, 13)]
)
def test_the_best_split_is_that_of_the_definition(seed, rows, size, alpha, min_size):
    points = np.random.default_rng(seed).normal(size=(rows, size))
    points[rows // 2 :] += seed / 4
    statistic, tau, kappa = by_definition(points, alpha, min_size)
    found = energy.best_split(points, alpha, min_size, np.empty((6, rows + 1)))
    assert found == (pytest.approx(statistic, rel=1e-12), tau, kappa)


def test_the_second_part_may_end_before_the_segment_does():
    # 60 rows, then 20 far away, then 60 like the first: against all that follows the middle would be diluted.
    random = np.random.default_rng(1)
    points = np.concatenate([random.normal(size=60), random.normal(5, size=20), random.normal(size=60)])[:, None]
    _, tau, kappa = energy.best_split(points, 1.0, 10, np.empty((6, 141)))
    assert (tau, kappa) == (60, 80)

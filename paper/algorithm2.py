"""The paper's Algorithm 2: bounds of R by simulating the plug-in law."""

from __future__ import annotations

import numpy as np

from fourrates.findings import Bounds


def monte_carlo(
    n: int,
    k: int,
    level: float,
    decay: float = 0.9,
    *,
    samples: int = 10_000,
    seed: int = 0,
    start: float = 0.5,
) -> Bounds:
    """Algorithm 2 for one (n, k), by straightforward simulation.

    `start` is R before the first observation. The paper's text omits it here (0.0) though Algorithm 1 starts at 0.5:
    with 0.0 the very first statistic is outside every bound.

    Examples
    --------
    >>> from paper.algorithm2 import monte_carlo
    >>> monte_carlo(3, 2, 0.01, start=0.0).upper < 0.9 * 0.5
    True
    """
    random = np.random.default_rng(seed)
    statistic = np.full(samples, float(start))
    for _ in range(n):
        statistic *= decay
        statistic += (1 - decay) * (random.random(samples) < k / n)
    lower = np.quantile(statistic, level, method="lower")
    upper = np.quantile(statistic, 1 - level, method="higher")
    return Bounds(float(lower), float(upper))

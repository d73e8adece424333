"""Tests on P(X, y): how they do beside what their authors published, their levels, and their cost.

1. *Rand index* of E-divisive on N(0, 1), G, N(0, 1), three parts of the same length, beside the published ones.
2. *Level*: how often each test finds a change where there is none, over the level that was asked for, in 2, 20 and 200
   dimensions.
3. *Speed* of E-divisive next to the same computation in plain NumPy, in the same run.

Prints tables and writes the numbers as JSON; ends with status 1 if a mark is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from drawn import RESULTS
from sklearn.metrics import rand_score
from threadpoolctl import threadpool_limits
from turns import best

from fourrates.distribution import EDivisive
from paper.two_samples import DensityTest, ErrorTest, MarginTest, RankTest, TwoSampleTest

Record = dict[str, Any]
Draw = Callable[[np.random.Generator, int], np.ndarray]
ERROR = 0.005  # the largest standard error of a mean Rand index
PILOT, MOST = 100, 4_000


def shifted(mean: float) -> Draw:
    return lambda random, rows: random.normal(mean, 1, rows)


def spread(deviation: float) -> Draw:
    return lambda random, rows: random.normal(0, deviation, rows)


def plane(random: np.random.Generator, rows: int) -> np.ndarray:
    return random.normal(size=(rows, 2))


def plane_shifted(random: np.random.Generator, rows: int) -> np.ndarray:
    return random.normal(1, size=(rows, 2))


def plane_correlated(random: np.random.Generator, rows: int) -> np.ndarray:
    return random.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], rows)


# Matteson & James (2014), 1,000 runs each: the part in the middle, the rows in all, and their mean Rand index.
PUBLISHED: list[tuple[str, Draw, Draw, int, float]] = [
    (name, shifted(0), draw, rows, rand)
    for rows, values in {
        150: (0.939, 0.992, 1.000, 0.507, 0.971, 0.985),
        300: (0.969, 0.994, 0.998, 0.728, 0.987, 0.992),
        600: (0.985, 0.996, 0.997, 0.954, 0.993, 0.995),
    }.items()
    for (name, draw), rand in zip(
        [(f"mean {m}", shifted(m)) for m in (1, 2, 4)] + [(f"deviation {s}", spread(s)) for s in (2, 5, 10)],
        values,
        strict=True,
    )
] + [("both means 1", plane, plane_shifted, 300, 0.986), ("correlation 0.9", plane, plane_correlated, 300, 0.362)]


def rand_indices(outer: Draw, inner: Draw, rows: int, runs: Iterable[int], permutations: int) -> list[float]:
    truth = np.repeat([0, 1, 2], rows // 3)
    found = []
    for run in runs:
        random = np.random.default_rng(run)
        stream = np.concatenate([outer(random, rows // 3), inner(random, rows // 3), outer(random, rows // 3)])
        changes = EDivisive(permutations=permutations, seed=run).fit(stream).change_points_
        found.append(rand_score(truth, np.searchsorted(changes, np.arange(rows), side="right")))
    return found


def rand(permutations: int) -> tuple[list[Record], int]:
    """Enough runs for the standard error, by the deviation of the first; each with a stream of its own."""
    print(f"E-divisive, mean Rand index, alpha 1, min_size 30, level 0.05, {permutations} permutations")
    records: list[Record] = []
    missed = 0
    for name, outer, inner, rows, published in PUBLISHED:
        values = rand_indices(outer, inner, rows, range(PILOT), permutations)
        wanted = 1.2 * (np.std(values, ddof=1) / ERROR) ** 2  # a margin: the deviation is an estimate as well
        runs = min(max(PILOT, math.ceil(wanted)), MOST)
        values += rand_indices(outer, inner, rows, range(PILOT, runs), permutations)
        mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(runs))
        records.append(
            {"rows": rows, "middle": name, "runs": runs, "rand": mean, "standard_error": error, "published": published}
        )
        print(f"  {rows:>4} rows, {name:<16}{mean:.3f} +- {error:.3f}   published {published:.3f}   {runs:,} runs")
        sys.stdout.flush()
        deviation = error * math.sqrt(runs)
        apart = (mean - published) / math.hypot(error, deviation / math.sqrt(1_000), 0.0005)  # theirs is rounded
        records[-1]["standard_errors_apart"] = apart
        missed += apart < -3
    print(f"{missed} below the published by more than three standard errors of the difference\n")
    return records, missed


def p_value(test: EDivisive | TwoSampleTest, X: np.ndarray, y: np.ndarray) -> float:
    """Of the first half against the second; of E-divisive, of its first split of both."""
    if isinstance(test, EDivisive):
        found = test.fit(X, y)
        return float(found.p_values_.min() if len(found.p_values_) else found.rejected_p_value_)
    half = len(X) // 2
    return test.fit(X[:half], y[:half]).test(X[half:], y[half:]).p_value


def level(runs: int, window: int = 60, nominal: float = 0.05) -> tuple[list[Record], int]:
    print(f"Changes found where there is none, over the level {nominal:g}: {window} rows against {window}, labelled;")
    print(f"{runs:,} runs each, ten times as many of E-divisive, which is quick; in brackets the standard error")
    records: list[Record] = []
    dimensions = (2, 20, 200)
    print(f"  {'':<14}" + "".join(f"{f'd = {size}':>10}" for size in dimensions))
    for kind in (EDivisive, DensityTest, RankTest, MarginTest, ErrorTest):
        many = 10 * runs if kind is EDivisive else runs
        error = math.sqrt((1 - nominal) / (nominal * many))
        shown = []
        for size in dimensions:
            found = 0
            for run in range(many):
                random = np.random.default_rng((size, run))
                X = random.normal(size=(2 * window, size))
                y = X[:, 0] + random.normal(size=2 * window) > 0
                options = {} if kind is RankTest else {"permutations": 199}
                found += p_value(kind(seed=run, **options), X, y) <= nominal
            ratio = found / many / nominal
            records.append(
                {"test": kind.__name__, "d": size, "runs": many, "level": nominal, "ratio": ratio, "error": error}
            )
            shown.append(f"{ratio:>10.2f}")
        print(f"  {kind.__name__:<14}{''.join(shown)}   ({error:.2f})", flush=True)
    # A p-value by permutation is exact: its ratio is 1 and what is found lies around that. So three standard errors.
    missed = sum(not 0.8 - 3 * one["error"] <= one["ratio"] <= 1 + 3 * one["error"] for one in records)
    inside = sum(0.8 <= one["ratio"] <= 1 for one in records)
    print(f"{inside} of {len(records)} between 0.8 and 1.0; {missed} outside by more than three standard errors\n")
    return records, missed


def plain(X: np.ndarray, permutations: int, min_size: int = 30) -> float:
    """The p-value of the first split of E-divisive, as one writes it in NumPy: sums over blocks by cumulative sums."""
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    rows = len(X)
    tau, kappa = np.meshgrid(np.arange(min_size, rows), np.arange(rows + 1), indexing="ij")
    allowed = kappa - tau >= min_size
    tau, kappa = tau[allowed], kappa[allowed]
    n, m = tau, kappa - tau

    def largest(order: np.ndarray) -> float:
        sums = np.zeros((rows + 1, rows + 1))
        sums[1:, 1:] = distances[np.ix_(order, order)].cumsum(axis=0).cumsum(axis=1)
        first, both, whole = sums[tau, tau], sums[tau, kappa], sums[kappa, kappa]
        between = both - first
        second = whole - first - 2 * between
        return float((n * m / (n + m) * (2 * between / (n * m) - first / (n * (n - 1)) - second / (m * (m - 1)))).max())

    random = np.random.default_rng(0)
    observed = largest(np.arange(rows))
    return (1 + sum(largest(random.permutation(rows)) >= observed for _ in range(permutations))) / (permutations + 1)


def compiled(X: np.ndarray, permutations: int) -> float:
    found = EDivisive(permutations=permutations, level=1e-9).fit(X)
    assert found.rejected_p_value_ is not None
    return found.rejected_p_value_


def speed(permutations: int = 49) -> tuple[list[Record], int]:
    print(f"E-divisive, one split with {permutations} permutations, next to plain NumPy")
    records: list[Record] = []
    for rows, size in ((150, 1), (300, 1), (600, 1), (1_200, 1), (600, 100)):
        X = np.random.default_rng(rows).normal(size=(rows, size))
        assert compiled(X, permutations) == plain(X, permutations)
        ours, peer = best(partial(compiled, X, permutations), partial(plain, X, permutations), turns=3)
        records.append({"rows": rows, "d": size, "seconds": ours, "numpy_seconds": peer, "ratio": peer / ours})
        print(
            f"  {rows:>5} rows, d = {size:<4} {1e3 * ours:8.1f} ms, NumPy {1e3 * peer:8.1f} ms: {peer / ours:.0f} times"
        )
    slower = sum(one["ratio"] < 1 for one in records)
    print(f"{slower} slower than NumPy\n")
    return records, slower


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=RESULTS / "distribution.json", help="where the numbers go")
    parser.add_argument("--only", choices=("speed", "level", "rand"), help="one part; the others stay as they are")
    parser.add_argument("--runs", type=int, default=2_000, help="of each test and dimension, for the level")
    parser.add_argument("--permutations", type=int, default=199, help="of E-divisive, for the Rand index")
    options = parser.parse_args()
    begun = time.perf_counter()
    parts: dict[str, Callable[[], tuple[list[Record], int]]] = {
        "speed": speed,
        "level": partial(level, options.runs),
        "rand": partial(rand, options.permutations),
    }
    numbers = json.loads(options.json.read_text()) if options.json.exists() else {}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    missed = 0
    for name, part in parts.items():
        if options.only in (None, name):
            with threadpool_limits(1):
                numbers[name], short = part()
            missed += short
            options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    print(f"{missed} marks missed; {time.perf_counter() - begun:.0f} s; {options.json}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

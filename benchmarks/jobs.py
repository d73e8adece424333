"""The jobs around a drift: two models compared, the slice that carries it, what it costs.

compare: streams without a difference, looked at after every comparison: how often "better" or "worse" is ever said.
Then a fix of tpr .62 -> .78: the labels it takes, beside a test of fixed size at the same level with power .8 and .9;
paired with errors that agree or not, and a canary of a tenth of the traffic.
slices: a slice of 2 to 20 % of the traffic falls, of one column or of two, among 30 columns: how often it comes first
where an oracle that knows the columns finds it, and how often another is called significant; then a fall everywhere.
cost: how often the interval has the true extra cost, 500 streams.

    python benchmarks/jobs.py [--only compare|slices|cost] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import math
import time
from statistics import NormalDist
from typing import Any

import numpy as np
from drawn import keep

import fourrates as fr
from fourrates.comparison import STAKES, _side_by_side
from fourrates.slices import find_slices

ALPHA, CLASSES = 0.05, 2
LEVEL = ALPHA / 2 / CLASSES  # of one side of one class
FIX = 0.62, 0.78


def first_win(differences: Any, level: float) -> int | None:
    """After how many comparisons "better" is said."""
    gains = np.cumsum(np.log1p(np.multiply.outer(differences, STAKES)), axis=0)
    won = np.flatnonzero(np.logaddexp.reduce(gains, axis=1) >= np.log(STAKES.size / level))
    return int(won[0]) + 1 if won.size else None


def side_by_side(random: np.random.Generator, rates: tuple[float, float], size: int, share: float) -> Any:
    version = (random.random(size) < share).astype(int)
    return _side_by_side(version, random.random(size) < np.choose(version, rates))


def paired(random: np.random.Generator, rates: tuple[float, float], size: int, alike: float) -> Any:
    """Two models on the same events; with probability `alike` an event is as hard for both."""
    hard = random.random((2, size))
    hard[1] = np.where(random.random(size) < alike, hard[0], hard[1])
    return (hard[1] < rates[1]).astype(float) - (hard[0] < rates[0])


def fixed_size(first: float, second: float, level: float, power: float) -> float:
    """Labels a side that a test of two shares needs, at a two-sided level."""
    normal, mean = NormalDist(), (first + second) / 2
    at_null = normal.inv_cdf(1 - level / 2) * math.sqrt(2 * mean * (1 - mean))
    at_fix = normal.inv_cdf(power) * math.sqrt(first * (1 - first) + second * (1 - second))
    return ((at_null + at_fix) / (second - first)) ** 2


def compare(scale: float) -> dict[str, Any]:
    random, made = np.random.default_rng(101), {}
    streams = round(2_000 * scale)
    for share in (0.5, 0.1):
        for rate in (0.7, 0.98):
            draws = (side_by_side(random, (rate, rate), 8_000, share) for _ in range(streams))
            wrong = [(first_win(draw, LEVEL) is not None, first_win(-draw, LEVEL) is not None) for draw in draws]
            made[f"null {rate}, {share:.0%} canary"] = np.any(wrong, axis=1).mean()
    plans = {f"power {power}": fixed_size(*FIX, ALPHA / CLASSES, power) for power in (0.8, 0.9)}
    labels = {
        "canary of a half": lambda: side_by_side(random, FIX, 8_000, 0.5),
        "paired, errors independent": lambda: paired(random, FIX, 4_000, 0.0),
        "paired, errors mostly shared": lambda: paired(random, FIX, 4_000, 0.7),
    }
    for name, draw in labels.items():
        needed = [first_win(draw(), LEVEL) or math.inf for _ in range(streams // 2)]
        made[name] = {"median": float(np.median(needed)), "mean": float(np.mean(needed))} | {
            f"mean over fixed size, {plan}": float(np.mean(needed)) / size for plan, size in plans.items()
        }
    return made | {"labels a side of a test of fixed size": plans}


def planted(random: np.random.Generator, size: int, two: bool, traffic: float | None) -> tuple[Any, Any, Any, Any]:
    """Thirty columns, of which `x`, or `x` and `z`, may have the slice; None for a fall everywhere."""
    columns: dict[str, Any] = {}
    for number in range(28):
        if number % 5 == 4:
            columns[f"n{number}"] = random.lognormal(size=size)
        else:
            columns[f"c{number}"] = random.choice(10, size, p=random.dirichlet(np.full(10, 3)))
    share = 0.2 if traffic is None else math.sqrt(traffic) if two else traffic
    for name in "xz":
        columns[name] = np.where(random.random(size) < share, "a", random.choice(["b", "c", "d"], size))
    after = np.arange(size) >= size * 2 // 3
    inside = (
        np.ones(size, bool) if traffic is None else (columns["x"] == "a") & (~np.array(two) | (columns["z"] == "a"))
    )
    right = random.random(size) < 0.8 + 0.1 * np.sin(columns["c1"]) - (0.08 if traffic is None else 0.25) * (
        after & inside
    )
    where = (("x", "a"), ("z", "a")) if two else (("x", "a"),)
    return columns, after, right, where


def slices(scale: float) -> dict[str, Any]:
    random, made = np.random.default_rng(102), {}
    streams = round(100 * scale)
    for two in (False, True):
        for traffic in (0.02, 0.05, 0.2):
            found = oracle = false = 0
            for _ in range(streams):
                columns, after, right, where = planted(random, 20_000, two, traffic)
                known = {name: columns[name] for name in ("xz" if two else "x")}
                if not find_slices(known, after, right)[0].significant:
                    continue
                oracle += 1
                answer = find_slices(columns, after, right)
                found += answer[0].where == where
                false += any(one.significant and one.where != where for one in answer)
            made[f"{'two columns' if two else 'one column'}, {traffic:.0%}"] = {
                "oracle": oracle,
                "first": found / max(oracle, 1),
                "false": false / max(oracle, 1),
            }
    everywhere = [find_slices(*planted(random, 20_000, False, None)[:3]) for _ in range(streams)]
    made["everywhere: false"] = float(np.mean([any(one.significant for one in answer) for answer in everywhere]))
    columns, after, right, _ = planted(random, 1_000_000, False, 0.1)
    began = time.perf_counter()
    find_slices(columns, after, right)
    return made | {"seconds for a million rows": time.perf_counter() - began}


def cost(scale: float) -> dict[str, Any]:
    random, made = np.random.default_rng(103), {}
    for tpr, size in ((0.6, 40_000), (0.7, 80_000)):
        covered = []
        for _ in range(round(250 * scale)):
            truth, fallen = random.random(size) < 0.1, np.arange(size) >= size // 2
            right = random.random(size) < np.where(truth, np.where(fallen, tpr, 0.8), 0.97)
            times = np.datetime64("2026-05-01T00:00:00") + np.arange(size) * np.timedelta64(60, "s")
            columns = {"y_true": truth * 1, "y_pred": np.where(right, truth, ~truth) * 1, "time": times}
            found = fr.detect(columns, arl=100_000, cost={"miss": 120, "false alarm": 3})
            known = [drift.cost for drift in found.now().open if drift.cost is not None and drift.cost.days]
            truly = 144 * (0.8 - tpr) * 120
            covered += [one.lower / one.days < truly < one.upper / one.days for one in known[:1]]  # type: ignore[operator]
        made[f"tpr .8 -> {tpr}"] = {"streams": len(covered), "covered": float(np.mean(covered))}
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["compare", "slices", "cost"])
    parser.add_argument("--scale", type=float, default=1.0)
    asked = parser.parse_args()
    parts = {"compare": compare, "slices": slices, "cost": cost}
    made = {}
    for name in [asked.only] if asked.only else parts:
        made[name] = parts[name](asked.scale)
        print(name, *(f"  {key}: {value}" for key, value in made[name].items()), sep="\n", flush=True)
    if asked.only is None:
        keep("jobs", made)


if __name__ == "__main__":
    main()

"""Which rate moved, in which stream, and which class is taken for which: what a drift names, and how soon.

1. *Discoveries*: a thousand streams, forty drift; how many are named, and how many in error at the worst of ten looks.
2. *Both*: both recalls fall by the same step in log-odds; the delay over that of river's ADWIN on the errors, tuned to
   the same run length, with a look at every event and with its default of every 32nd.
3. *Named*: how often both recalls are named where both moved, and a second one where one did.
4. *Confusions*: two of K classes are taken for each other more often; the delay over that of a CUSUM that knows both
   concepts, cell by cell, and how often the pair is named. A plain fall, with and without that.

    python benchmarks/naming.py [--only discoveries|both|named|confusions] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any
from unittest import mock

import numpy as np
from any_size import ARL, _drifts, _tuned, mean
from drawn import Concept, draw, first_alarm, keep, limit

import fourrates as fr
from fourrates.evidence import rules

Q = 0.05
HISTORY = 20_000


def discoveries(scale: float, seed: int) -> dict[str, Any]:
    rows = []
    for run in range(round(100 * scale)):
        random = np.random.default_rng([seed, run])
        keys = np.tile(np.arange(1_000), 5_000)
        truth = random.random(keys.size) < 0.3
        late = (keys < 40) & (np.arange(keys.size) >= keys.size // 2)
        pred = truth ^ (random.random(keys.size) < np.where(late & truth, 0.4, np.where(truth, 0.2, 0.1)))
        bank, alarmed, wrong = fr.Bank(arl=1_000_000), set(), []
        for part in np.array_split(np.arange(keys.size), 10):
            alarmed |= {found.key for found in bank.update(keys[part], truth[part], pred[part])}
            named = bank.discoveries(Q)
            wrong.append(sum(key >= 40 for key in named) / max(len(named), 1))
        rows.append((len(alarmed), sum(key < 40 for key in named), wrong[-1], max(wrong)))
    alarms, right, last, worst = np.array(rows).T
    print(f"discoveries: {alarms.mean():.1f} alarms, {right.mean():.2f} of 40 named, least {right.min():.0f}; wrong "
          f"{last.mean():.4f} at the end, {worst.mean():.4f} at the worst look; {len(rows)} repeats")  # fmt: skip
    return {"repeats": len(rows), "alarms": alarms.mean(), "named": right.mean(), "least": right.min(),
            "wrong": last.mean(), "wrong_at_worst": worst.mean()}  # fmt: skip


def delays(before: Concept, after: Concept, streams: int, seed: int) -> tuple[float, list[fr.Drift]]:
    """The median delay of FourRates, and the drifts."""
    random, found = np.random.default_rng(seed), []
    while len(found) < streams:
        detector = fr.FourRates(ARL)
        if not detector.update_many(*draw(random, HISTORY, before), first_only=True):
            found.append(first_alarm(detector, random, after, 60_000))
    return float(np.median([np.inf if one is None else one.at - HISTORY + 1 for one in found])), [
        one for one in found if one
    ]


def adwin(before: Concept, after: Concept, clock: int, streams: int, seed: int) -> float:
    from river.drift import ADWIN

    random, found = np.random.default_rng(seed), []
    chosen = _tuned(lambda x: ADWIN(delta=x, clock=clock), [10.0**-k for k in np.arange(0.5, 8, 0.25)], before, seed)
    for _ in range(streams):
        detector = ADWIN(delta=chosen, clock=clock)
        for concept, size in ((before, HISTORY // 2), (after, 20_000)):
            truth, pred = draw(random, size, concept)
            errors = enumerate((truth != pred).tolist())
            at = next((i + 1 for i, x in errors if _drifts(detector, x) and concept is after), np.inf)
        found.append(at)
    return float(np.median(found))


def moved(random: np.random.Generator, which: str) -> tuple[Concept, Concept]:
    """A change a CUSUM finds within 1,500 events at a run length of 20,000: both fall alike, both move, or one does."""
    while True:
        positives, rates = float(random.uniform(0.1, 0.9)), 1 - np.exp(random.uniform(np.log(0.02), np.log(0.4), 2))
        step = random.choice([-1, 1], 2) * np.exp(random.uniform(np.log(0.2), np.log(1.5), 2))
        if which == "alike":
            step[:] = -abs(step[0])
        if which == "one":
            step[random.integers(2)] = 0
        odds = rates / (1 - rates) * np.exp(step)
        new = odds / (1 + odds)
        told = np.array([1 - positives, positives]) * (
            new * np.log(new / rates) + (1 - new) * np.log((1 - new) / (1 - rates))
        )
        before, after = Concept(positives, *rates), Concept(positives, *new)
        if which == "both" and told.min() < told.max() / 3:  # of a change that is lost beside the other nobody can tell
            continue
        if new.max() < 0.999 and limit(before, after, 20_000, streams=100) < 1_500:
            return before, after


def both(scale: float, seed: int) -> dict[str, Any]:
    random, ratios = np.random.default_rng(seed), {1: [], 32: []}
    for i in range(round(12 * scale)):
        change = moved(random, "alike")
        late, _ = delays(*change, 150, seed + i)
        for clock, found in ratios.items():
            found.append(late / adwin(*change, clock, 60, seed + i))
    for clock, found in ratios.items():
        error = np.std(np.log(found)) / np.sqrt(len(found))
        print(f"both alike: {mean(found):.3f} (s.e. {error:.3f}) of ADWIN's delay, clock {clock}; {len(found)} changes")
    return {f"clock {clock}": {"ratios": found, "mean": mean(found)} for clock, found in ratios.items()}


def named(scale: float, seed: int) -> dict[str, Any]:
    random, found = np.random.default_rng(seed + 1), {}
    for which in ("both", "one"):
        told: list[bool] = []
        for i in range(round(20 * scale)):
            told += [len(drift.changes) == 2 for drift in delays(*moved(random, which), 25, seed + i)[1]]
        found[which] = float(np.mean(told))
        error = np.sqrt(found[which] * (1 - found[which]) / len(told))
        print(f"two named where {which} moved: {found[which]:.3f} (s.e. {error:.3f}) of {len(told)}")
    return found


def draw_classes(random: np.random.Generator, size: int, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    truth = random.integers(len(rates), size=size)
    pred = (random.random(size)[:, None] > rates.cumsum(1)[truth]).sum(1)
    return truth, np.minimum(pred, len(rates) - 1)


def cell_limit(before: np.ndarray, after: np.ndarray, streams: int = 400, arl: int = ARL) -> float:
    """The median delay of a CUSUM that knows both concepts, at this run length; as `drawn.limit`."""
    random, classes = np.random.default_rng(0), len(before)
    cells = [(rates / classes).ravel() for rates in (before, after)]
    ratio, edges = np.log(cells[1] / cells[0]), [np.cumsum(one) for one in cells]
    same = ratio == 0

    def moves(which: int) -> np.ndarray:
        found = ratio[np.minimum(np.searchsorted(edges[which], random.random(streams)), same.size - 1)]
        return np.asarray(found)

    statistic, largest, delay, event = np.zeros(streams), np.zeros(streams), np.full(streams, np.inf), 0
    for _ in range(arl):
        statistic = np.maximum(statistic, 0) + moves(0)
        np.maximum(largest, statistic, out=largest)
    threshold = np.quantile(largest, np.exp(-1))
    statistic = np.where(statistic >= threshold, 0.0, statistic)
    while np.isinf(delay).mean() > 0.45:
        event += 1
        statistic = np.maximum(statistic, 0) + moves(1)
        delay[(statistic >= threshold) & np.isinf(delay)] = event
    return float(np.median(delay))


def class_delays(before: np.ndarray, after: np.ndarray, streams: int, seed: int) -> tuple[float, list[fr.Drift]]:
    random, late, drifts = np.random.default_rng(seed), [], []
    while len(late) < streams:
        detector = fr.FourRates(ARL, labels=range(len(before)))
        if detector.update_many(*draw_classes(random, 50_000, before), first_only=True):
            continue
        found = detector.update_many(*draw_classes(random, 40_000, after), first_only=True)
        late.append(found[0].at - 49_999 if found else np.inf)
        drifts += found
    return float(np.median(late)), drifts


def confusions(scale: float, seed: int) -> dict[str, Any]:
    random, rows, falls = np.random.default_rng(seed + 2), [], []
    streams = round(60 * scale)
    for classes in (5, 7, 20):
        recall = float(random.uniform(0.7, 0.9))
        rates = np.array(
            [np.insert((1 - recall) * random.dirichlet(np.full(classes - 1, 3.0)), c, recall) for c in range(classes)]
        )
        for swap in (0.04, 0.08, 0.15):
            after = rates.copy()
            after[[0, 1], [0, 1]] -= swap
            after[[0, 1], [1, 0]] += swap
            late, drifts = class_delays(rates, after, streams, seed)
            pair = [{(one.truth, one.pred) for one in drift.confusions} & {("0", "1"), ("1", "0")} for drift in drifts]
            rows.append([classes, swap, late, late / cell_limit(rates, after), float(np.mean([*map(bool, pair)]))])
            print(
                f"K = {classes}, swap {swap}: {late:,.0f} events, {rows[-1][3]:.2f} of the limit (at most 3), pair "
                f"named in {rows[-1][4]:.2f} of {len(pair)}",
                flush=True,
            )
        after = rates.copy()
        after[0] *= 1 + 0.1 / (1 - recall)
        after[0, 0] = recall - 0.1
        late, _ = class_delays(rates, after, 3 * streams, seed)
        with mock.patch.object(rules, "MOST_CONFUSED", 0):
            without, _ = class_delays(rates, after, 3 * streams, seed)
        falls.append([classes, late, without])
        print(f"K = {classes}, plain fall of 0.1: {late:,.0f} events, without confusions {without:,.0f}", flush=True)
    return {"swaps": rows, "falls": falls}


PARTS = {"discoveries": discoveries, "both": both, "named": named, "confusions": confusions}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*PARTS], action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer streams")
    parser.add_argument("--seed", type=int, default=31)
    options = parser.parse_args()
    start = time.time()
    numbers = {
        name: part(options.scale, options.seed)
        for name, part in PARTS.items()
        if options.only is None or name in options.only
    }
    if options.only is None:
        keep("naming", {"scale": options.scale, "seed": options.seed, **numbers})
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Against a reference: a model that is bad from its first event, and one that is as good as its reference.

The validation set is drawn as well, for every stream its own: its sampling error is part of what is measured. Bad is a
tpr of 0.5 where the reference has 0.8; found is an alarm that says tnr or tpr, named is one that says tpr fell. As good
as the reference is a million events a stream, with references of 1,000 positives and of 100.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from drawn import Concept, draw, keep

import fourrates as fr

ARL, WITHIN = 100_000, 1_500
GOOD, BAD = Concept(0.2, 0.9, 0.8), Concept(0.2, 0.9, 0.5)


def shipped(random: np.random.Generator, positives: int) -> fr.FourRates:
    """A detector with a reference of exactly this number of positives, and the negatives that go with them."""
    negatives = round(positives * (1 - GOOD.positives) / GOOD.positives)
    right = int(random.binomial(negatives, GOOD.tnr)), int(random.binomial(positives, GOOD.tpr))
    return fr.FourRates(ARL, reference=[[right[0], negatives - right[0]], [positives - right[1], right[1]]])


def bad_from_the_start(streams: int, seed: int) -> dict[str, float]:
    random = np.random.default_rng(seed)
    named, delays = 0, []
    for _ in range(streams):
        drifts = shipped(random, 1_000).update_many(*draw(random, 20_000, BAD), first_only=True)
        first = drifts[0] if drifts else None
        fell = first is not None and any((one.rate, one.direction) == ("tpr", "down") for one in first.changes)
        named += fell and first.at < WITHIN
        delays.append(np.inf if first is None else first.at + 1)
    return {
        "named": named / streams,
        "median": float(np.median(delays)),
        "latest of 95 %": float(np.quantile(delays, 0.95)),
    }


def as_good(positives: int, streams: int, seed: int) -> dict[str, Any]:
    """Alarms, recoveries included, over those asked for, in a million events a stream."""
    random = np.random.default_rng(seed)
    found, parts = [], 10
    for _ in range(streams):
        detector = shipped(random, positives)
        found.append([len(detector.update_many(*draw(random, 1_000_000 // parts, GOOD))) for _ in range(parts)])
    alarms = np.array(found, float)
    asked = 1_000_000 / ARL
    return {
        "positives": positives,
        "ratio": float(alarms.sum(1).mean() / asked),
        "standard error": float(alarms.sum(1).std(ddof=1) / np.sqrt(streams) / asked),
        "first tenth": float(alarms[:, 0].mean() / asked * parts),
        "streams beyond twice the budget": float(np.mean(alarms.sum(1) > 2 * asked)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1_000, help="that are bad; of those that are good a twentieth")
    parser.add_argument("--seed", type=int, default=8)
    options = parser.parse_args()
    start, missed = time.time(), 0
    bad = bad_from_the_start(options.streams, options.seed)
    print(f"tpr 0.5 where the reference has 0.8: named within {WITHIN:,} events in {bad['named']:.1%} (at least 95 %)")
    missed += bad["named"] < 0.95
    good = []
    for positives in (1_000, 100):
        row = as_good(positives, max(options.streams // 20, 2), options.seed)
        good.append(row)
        print(f"as good as a reference of {positives:,} positives: {row}", flush=True)
        missed += row["ratio"] - 2 * row["standard error"] > 1
    keep("reference", {"arl": ARL, "streams": options.streams, "bad": bad, "good": good})
    print(f"{missed} marks missed; {time.time() - start:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Asked against measured: the run length of FourRates over error rates, class balance and number of classes.

Every cell runs a stable stream until enough false alarms have been counted; after each the detector restarts. The
hazard within the first 100, 300, 1,000 and 5,000 events after a restart is held against its share. Ends with status 1
if a measured run length is below 0.9 of the asked one or above twice of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from drawn import keep

import fourrates as fr

CHUNK = 1_000_000
PHASES = (100, 300, 1_000, 5_000)


class Null(NamedTuple):
    """A stable concept: shares of the classes, and their recalls."""

    name: str
    shares: tuple[float, ...]
    recalls: tuple[float, ...]

    def draw(self, random: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Events of it."""
        classes = len(self.shares)
        truth = np.minimum(np.searchsorted(np.cumsum(self.shares), random.random(size)), classes - 1).astype(np.uint8)
        wrong = random.random(size) >= np.array(self.recalls)[truth]
        other = (truth + 1 + random.integers(0, classes - 1, size)) % classes if classes > 2 else 1 - truth
        return truth, np.where(wrong, other, truth).astype(np.uint8)


NULLS = [
    Null(f"{positives:.0%} positives, {error:.0%} errors", (1 - positives, positives), (1 - error, 1 - error))
    for positives in (0.5, 0.1, 0.01)
    for error in (0.01, 0.05, 0.1, 0.2, 0.4)
]
NULLS += [Null(f"ten classes, {error:.0%} errors", (0.1,) * 10, (1 - error,) * 10) for error in (0.01, 0.1, 0.4)]
NULLS += [
    Null("0.1% positives, tpr .7, tnr .999", (0.999, 0.001), (0.999, 0.7)),
    Null("50% positives, accuracy .999", (0.5, 0.5), (0.999, 0.999)),
    Null("10% positives, tpr .995, tnr .9994", (0.9, 0.1), (0.9994, 0.995)),
    Null("50% positives, 45% errors", (0.5, 0.5), (0.55, 0.55)),
    Null("five classes, shares .6 .2 .1 .06 .04", (0.6, 0.2, 0.1, 0.06, 0.04), (0.9, 0.8, 0.85, 0.7, 0.95)),
]


def measured(cell: tuple[Null, float], alarms: int) -> dict[str, Any]:
    """The run length over that asked for, and the share of alarms in each phase over what it should be."""
    null, arl = cell
    random = np.random.default_rng([int(arl) % 9973, len(null.name), int(1e6 * sum(null.recalls))])
    detector = fr.FourRates(arl, labels=range(len(null.shares)))
    lengths: list[int] = []
    last = -1
    while len(lengths) < alarms:
        for drift in detector.update_many(*null.draw(random, CHUNK)):
            lengths.append(drift.at - last)
            last = drift.at
    runs = np.array(lengths)
    phases = {
        str(phase): [float((runs <= phase).mean()) * arl / phase, int((runs <= phase).sum())]
        for phase in PHASES
        if phase <= arl / 2
    }
    return {"null": null.name, "arl": arl, "ratio": float(runs.mean()) / arl, "alarms": len(runs), "phases": phases}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alarms", type=int, default=400)
    parser.add_argument("--arl", type=float, action="append", help="may be repeated")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start = time.time()
    cells = [(null, arl) for arl in options.arl or (1e3, 1e4, 1e5, 1e6) for null in NULLS]
    found = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for one in pool.map(partial(measured, alarms=options.alarms), cells):
            found.append(one)
            phases = "  ".join(f"{phase}: {ratio:.2f} ({n})" for phase, (ratio, n) in one["phases"].items())
            print(f"{one['arl']:>11,.0f}  {one['null']:<42} {one['ratio']:.2f}   {phases}", flush=True)
    ratios = [one["ratio"] for one in found]
    missed = sum(not 0.9 <= ratio <= 2.0 for ratio in ratios)
    # A phase is over its share only if more than sampling error says so: two deviations of a Poisson count.
    late = [
        (one["null"], one["arl"], phase)
        for one in found
        for phase, (ratio, n) in one["phases"].items()
        if n and ratio * (1 - 2 / np.sqrt(n)) > 1.5
    ]
    print(f"measured / asked from {min(ratios):.2f} to {max(ratios):.2f}; {missed} of {len(ratios)} outside 0.9 to 2")
    print(f"phases above 1.5 times their share, beyond two standard errors: {len(late)} {late}")
    keep("budget", found)
    print(f"{time.time() - start:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Asked against measured: the run length of LFR(arl=...) over error rates, class balance and number of classes.

Every cell runs a stable stream until enough false alarms have been counted for the standard error given. Ends with
status 1 if a measured run length is below 0.9 of the asked one, or above 2.5 times where no rate passes 0.95.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import fourrates as fr

CHUNK = 2_000_000


def matrix(classes: int, error: float, positives: float) -> np.ndarray:
    """Confusion probabilities: one rare class or a balanced set, the same error rate for each."""
    share = np.array([1 - positives, positives]) if classes == 2 else np.full(classes, 1 / classes)
    confusion = np.outer(share, np.ones(classes)) * error / (classes - 1)
    np.fill_diagonal(confusion, share * (1 - error))
    return confusion


def measured(detector: fr.LFR, confusion: np.ndarray, alarms: int, seed: int) -> float:
    """Events a false alarm, from at least so many of them."""
    random = np.random.default_rng(seed)
    classes = len(confusion)
    edges = np.cumsum(confusion.ravel())[:-1]
    events = found = 0
    while found < alarms:
        cells = np.searchsorted(edges, random.random(CHUNK), side="right").astype(np.uint16)
        found += len(detector.update_many(cells // classes, cells % classes))
        events += CHUNK
    return events / found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arl", type=float, nargs="*", default=[1e4, 1e5, 1e6])
    parser.add_argument("--decay", type=float, nargs="*", help="instead of what LFR(arl=...) takes by itself")
    parser.add_argument("--error", type=float, default=0.05, help="standard error of a measured run length")
    options = parser.parse_args()
    alarms = round(options.error**-2)
    missed = 0
    start = time.perf_counter()
    print(f"{'arl':>10} {'classes':>8} {'errors':>7} {'positives':>10} {'measured / asked':>17} {'highest rate':>13}")
    for arl in options.arl:
        for classes, positives in ((2, 0.5), (2, 0.1), (2, 0.01), (10, 0.1)):
            for error in (0.01, 0.05, 0.1, 0.2, 0.4):
                confusion = matrix(classes, error, positives)
                rates = confusion.diagonal() / np.stack([confusion.sum(0), confusion.sum(1)])
                labels = range(classes)
                detector = fr.LFR(options.decay or None, labels=labels, arl=arl)
                ratio = measured(detector, confusion, alarms, seed=int(arl) % 997 + classes) / arl
                bad = ratio < 0.9 or (rates.max() < 0.95 and ratio > 2.5)
                missed += bad
                print(
                    f"{arl:>10,.0f} {classes:>8} {error:>7.2f} {positives:>10.2f} {ratio:>17.2f} {rates.max():>13.3f}"
                    f"{'   MISSED' if bad else ''}",
                    flush=True,
                )
    print(f"{missed} of the marks missed; {time.perf_counter() - start:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Asked against measured: the run length of LFR(arl=...) over error rates, class balance and number of classes.

Every cell runs a stable stream until enough false alarms have been counted for the standard error given. Ends with
status 1 if a measured run length is below 0.9 of the asked one, or above 2.5 times where no rate passes 0.95.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

import fourrates as fr

CHUNK = 2_000_000
PARTS = 2**16  # of certainty: a stream is drawn by looking up 16 random bits


class Cell(NamedTuple):
    """A stable stream, and the run length asked for."""

    arl: float
    classes: int
    error: float
    positives: float

    def confusion(self) -> np.ndarray:
        """Confusion probabilities: one rare class or a balanced set, the same error rate for each, in whole parts."""
        classes, rare = self.classes, self.positives
        share = np.array([1 - rare, rare]) if classes == 2 else np.full(classes, 1 / classes)
        confusion = np.outer(share, np.ones(classes)) * self.error / (classes - 1)
        np.fill_diagonal(confusion, share * (1 - self.error))
        edges = np.rint(np.cumsum(confusion) * PARTS)
        return np.diff(edges, prepend=0).reshape(classes, classes) / PARTS

    @property
    def highest(self) -> float:
        """The highest rate."""
        confusion = self.confusion()
        return float((confusion.diagonal() / np.stack([confusion.sum(0), confusion.sum(1)])).max())


CELLS = [
    Cell(arl, classes, error, positives)
    for arl in (1e4, 1e5, 1e6)
    for classes, positives in ((2, 0.5), (2, 0.1), (2, 0.01), (10, 0.1))
    for error in (0.01, 0.05, 0.1, 0.2, 0.4)
]


def measured(cell: Cell, decay: list[float] | None, alarms: int) -> float:
    """Events a false alarm over those asked for, from at least so many of them."""
    detector = fr.LFR(decay, labels=range(cell.classes), arl=cell.arl)
    random = np.random.default_rng(int(cell.arl) % 997 + cell.classes)
    counts = np.rint(cell.confusion().ravel() * PARTS).astype(np.int64)
    truths, guesses = (
        side.astype(np.uint16) for side in np.divmod(np.repeat(np.arange(counts.size), counts), cell.classes)
    )
    events = found = 0
    while found < alarms:
        drawn = random.integers(0, PARTS, CHUNK, dtype=np.uint16)
        found += len(detector.update_many(truths[drawn], guesses[drawn]))
        events += CHUNK
    return events / found / cell.arl


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arl", type=float, nargs="*", help="of 1e4, 1e5 and 1e6 only these")
    parser.add_argument("--decay", type=float, nargs="*", help="instead of what LFR(arl=...) takes by itself")
    parser.add_argument("--error", type=float, default=0.05, help="standard error of a measured run length")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    cells = [cell for cell in CELLS if cell.arl in (options.arl or [cell.arl])]
    missed = 0
    start = time.perf_counter()
    print(f"{'arl':>10} {'classes':>8} {'errors':>7} {'positives':>10} {'measured / asked':>17} {'highest rate':>13}")
    with ProcessPoolExecutor(options.jobs) as pool:
        run = partial(measured, decay=options.decay or None, alarms=round(options.error**-2))
        for cell, ratio in zip(cells, pool.map(run, cells), strict=True):
            bad = ratio < 0.9 or (cell.highest < 0.95 and ratio > 2.5)
            missed += bad
            print(
                f"{cell.arl:>10,.0f} {cell.classes:>8} {cell.error:>7.2f} {cell.positives:>10.2f} {ratio:>17.2f} "
                f"{cell.highest:>13.3f}{'   MISSED' if bad else ''}",
                flush=True,
            )
    print(f"{missed} of the marks missed; {time.perf_counter() - start:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

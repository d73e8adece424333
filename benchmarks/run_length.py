"""Run lengths of the exact LFR, asked for and measured: `LFR(decay, arl=...)` over streams of different balance.

The truth is the detector itself on a stable stream, run until enough false alarms have been counted. Ends with status
1 if a measured run length is more than three standard errors below 0.95 times the one asked for or above 2 times, 3
times where a rate is 0.95 or higher: one level serves all rates, and the higher ones alarm less often at it, and more
of their alarms together.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import fourrates as fr

DECAYS = 0.8, 0.9, 0.95, 0.98
LENGTHS = 1_000, 10_000, 100_000
NULLS = {
    "balanced, 40 % errors": [[30, 20], [20, 30]],
    "balanced, 20 % errors": [[40, 10], [10, 40]],
    "balanced, 10 % errors": [[45, 5], [5, 45]],
    "balanced, 5 % errors": [[47.5, 2.5], [2.5, 47.5]],
    "10 % positives": [[85, 5], [2, 8]],
    "1 % positives": [[98, 1], [0.3, 0.7]],
    "three classes": [[45, 3, 2], [4, 24, 2], [3, 3, 14]],
}
CHUNK = 1_000_000
PARTS = 2**16  # of certainty: a stream is drawn by looking up 16 random bits


def measured(detector: fr.LFR, confusion: list[list[float]], alarms: int, seed: int) -> tuple[float, int]:
    """Events a false alarm, and how many alarms that is from."""
    classes = len(confusion)
    edges = np.rint(np.cumsum(confusion) / np.sum(confusion) * PARTS)
    cells = np.repeat(np.arange(classes**2), np.diff(edges, prepend=0).astype(int))
    truths, preds = (side.astype(np.uint16) for side in np.divmod(cells, classes))
    random = np.random.default_rng(seed)
    events = found = 0
    while found < alarms:
        drawn = random.integers(0, PARTS, CHUNK, dtype=np.uint16)
        found += len(detector.update_many(truths[drawn], preds[drawn]))
        events += CHUNK
    return events / found, found


def asked(alarms: int) -> Iterator[dict[str, object]]:
    for seed, (name, decay, arl) in enumerate((n, d, a) for n in NULLS for d in DECAYS for a in LENGTHS):
        confusion = NULLS[name]
        detector = fr.LFR(decay, arl=arl, labels=range(len(confusion)))
        length, found = measured(detector, confusion, alarms, 1_000 + seed)
        ratio, error = length / arl, 1 / math.sqrt(found)
        matrix = np.array(confusion)
        highest = (matrix.diagonal() / np.stack([matrix.sum(0), matrix.sum(1)])).max()
        most = 2 if highest < 0.95 else 3
        missed = not 0.95 * (1 - 3 * error) <= ratio <= most * (1 + 3 * error)
        print(
            f"{name:22} decay {decay:4} arl {arl:7,}: measured / asked {ratio:5.2f} +- {ratio * error:.2f}"
            f"{'   MISSED' if missed else ''}",
            flush=True,
        )
        yield {
            "null": name, "decay": decay, "arl": arl, "measured": length,
            "ratio": ratio, "error": ratio * error, "missed": missed,
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alarms", type=int, default=400, help="of each measurement: 400 have an error of 5 %%")
    parser.add_argument("--out", type=Path, default=Path("build/run_length.json"))
    options = parser.parse_args()
    found = list(asked(options.alarms))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"asked": found}, indent=1))
    ratios = sorted(float(str(row["ratio"])) for row in found)
    missed = sum(bool(row["missed"]) for row in found)
    print(f"{ratios[0]:.2f} to {ratios[-1]:.2f}, {missed} of {len(found)} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

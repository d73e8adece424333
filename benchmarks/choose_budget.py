"""From volume and patience to a budget: how soon falls of 2, 5, 10 and 20 points are found, for three budgets.

40,000 events a day, 20 % of them positive, tnr 0.9 and tpr 0.8; one false alarm a week, a month and a quarter. As
``fourrates expect --volume 40000/day --budget 'one a quarter'``, but with 400 streams.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from drawn import keep

import fourrates as fr
from fourrates.budget import falls
from fourrates.budget.words import duration, run_length, volume

VOLUME = "40,000 a day"
CONFUSION = [[720, 80], [40, 160]]
STREAMS = 400  # for each fall


def main() -> int:
    start, rate = time.time(), volume(VOLUME)
    budgets: list[dict[str, Any]] = []
    missed = 0
    falls.STREAMS = falls.FEWEST = STREAMS
    for patience in ("week", "month", "quarter"):
        arl = run_length(f"one a {patience}", rate)
        found = falls.falls(fr.FourRates(arl), CONFUSION, history=100_000)
        rows = [{**one.to_dict(), "time": "" if one.median is None else duration(one.median / rate)} for one in found]
        budgets.append({"patience": patience, "arl": arl, "falls": rows})
        for one, row in zip(found, rows, strict=True):
            print(f"one a {patience}: {one.rate} {one.before:.2f} -> {one.after:.2f} {one.median} {row['time']}")
            missed += one.lost
    keep("choose_budget", {"volume": VOLUME, "budgets": budgets})
    print(f"{missed} falls would take as long as a false alarm; {time.time() - start:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

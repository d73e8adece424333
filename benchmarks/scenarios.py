"""Hits within 200 events and false alarms per 100 streams, on the paper's six scenarios, for settings of LFR."""

from __future__ import annotations

import argparse

import fourrates as fr
from fourrates.evaluate import Score, score, summarise
from fourrates.streams import SCENARIOS
from fourrates.streams.scenarios import Pairs

SETTINGS = (
    {"decay": 0.9, "detect": 1e-5},
    {"decay": 0.9, "detect": 1e-5, "null": "plugin"},
    {"decay": 0.98, "detect": 1e-5},
)


def judged(detector: fr.LFR, pairs: Pairs) -> Score:
    detector.reset()
    return score(detector.update_many(*pairs), changes=5_000, within=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="streams of each scenario")
    runs = parser.parse_args().runs
    print(f"{runs} streams each\n{'':<50}" + "".join(f"{name:>14}" for name in SCENARIOS))
    for setting in SETTINGS:
        detector = fr.LFR(**setting)
        cells = []
        for scenario in SCENARIOS.values():
            found = summarise(judged(detector, scenario.stream(seed)) for seed in range(runs))
            cells.append(f"{100 * found.recall:.1f} / {100 * found.false_per_run:.1f}")
        name = ", ".join(f"{key}={value}" for key, value in setting.items())
        print(f"{f'LFR({name})':<50}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

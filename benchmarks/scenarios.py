"""Hits within 200 events and false alarms per 100 streams, on the paper's six scenarios, for settings of LFR."""

from __future__ import annotations

import argparse

import fourrates as fr
from fourrates.evaluate import score
from fourrates.streams import SCENARIOS

SETTINGS = (
    {"decay": 0.9, "detect": 1e-5},
    {"decay": 0.9, "detect": 1e-5, "null": "plugin"},
    {"decay": 0.98, "detect": 1e-5},
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="streams of each scenario")
    runs = parser.parse_args().runs
    print(f"{runs} streams each\n{'':<50}" + "".join(f"{name:>14}" for name in SCENARIOS))
    for setting in SETTINGS:
        detector = fr.LFR(**setting)
        cells = []
        for scenario in SCENARIOS.values():
            hits = false = 0
            for seed in range(runs):
                detector.reset()
                found = score(detector.update_many(*scenario.stream(seed)), change=5_000, within=200)
                hits, false = hits + found.hit, false + found.false_alarms
            cells.append(f"{100 * hits / runs:.1f} / {100 * false / runs:.1f}")
        name = ", ".join(f"{key}={value}" for key, value in setting.items())
        print(f"{f'LFR({name})':<50}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

"""How often ``Drift.started_between`` holds the true start where nothing was chosen for it: other seeds, other streams.

The paper's scenarios with seeds no other benchmark uses, then rare positives, changes soon after the start, a very
large change, and three classes. Says for each how often the interval of 90 % holds the truth, its median width, and the
median distance of ``Drift.started``.
"""

from __future__ import annotations

import argparse

import numpy as np

import fourrates as fr
from fourrates.streams import SCENARIOS, Scenario

FIRST = 50_000  # seed
RARE = Scenario(((0.9702, 0.0198), (0.002, 0.008)), ((0.9702, 0.0198), (0.007, 0.003)))
HUGE = Scenario(((0.49, 0.01), (0.01, 0.49)), ((0.1, 0.4), (0.4, 0.1)))
SOUND = ((0.3, 0.02, 0.02), (0.02, 0.3, 0.02), (0.02, 0.02, 0.28))
THREE = Scenario(SOUND, (*SOUND[:2], (0.1, 0.1, 0.12)))

# Name: the scenario, its classes, about where it changes, and how long it is.
STREAMS = {
    **{name: (scenario, 2, 5_000, 10_000) for name, scenario in SCENARIOS.items()},
    "1 % positives, tpr from 0.8 to 0.3": (RARE, 2, 20_000, 30_000),
    "Imbalance2 after 300 events": (SCENARIOS["Imbalance2"], 2, 300, 3_000),
    "Balance1 after 300 events": (SCENARIOS["Balance1"], 2, 300, 6_000),
    "both recalls from 0.98 to 0.2": (HUGE, 2, 5_000, 6_000),
    "three classes, one recall to 0.38": (THREE, 3, 5_000, 8_000),
}


def judged(detector: fr.LFR, scenario: Scenario, about: int, length: int, runs: int) -> str:
    held, widths, errors = [], [], []
    for seed in range(FIRST, FIRST + runs):
        detector.reset()
        change = about - 10 + seed % 17  # marks must not happen to lie on the change
        drifts = detector.update_many(*scenario.stream(seed, length, change))
        for drift in [one for one in drifts if one.at >= change][:1]:
            first, last = drift.started_between
            held.append(first <= change <= last)
            widths.append(last - first)
            errors.append(abs(drift.started - change))
    error = 100 * np.sqrt(0.09 / len(held))
    return (
        f"{100 * np.mean(held):5.1f} % of {len(held):5} (standard error {error:.1f}), "
        f"width {np.median(widths):5.0f}, distance {np.median(errors):4.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="streams of each kind")
    runs = parser.parse_args().runs
    for name, (scenario, classes, about, length) in STREAMS.items():
        for text, parameters in {"LFR()": {}, "LFR(arl=37_000)": {"arl": 37_000}}.items():
            detector = fr.LFR(labels=range(classes), **parameters)
            print(f"{name:<36}{text:<17}{judged(detector, scenario, about, length, runs)}", flush=True)


if __name__ == "__main__":
    main()

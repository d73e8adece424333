"""Streams that are not independent: how often FourRates alarms where nothing changes, over what was asked for.

Errors that repeat, seasons of the error rate and of the class mix, classes in runs, every event twice; with dispersion
estimated, as a person gets it, and with independence taken for granted; until a cell has 100 alarms, 26 where the
budget is long, which makes its standard error 10 or less than 20 %. Then elecNorm with three models: alarms at one in
30 days, next to those of the same rows shuffled within months, and how soon an injected change is found.

With ``--mix alarm`` the same streams where a shift of the classes is an alarm, and falls together with a shift are
looked for: drifts and shifts over the alarms asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import keep

import fourrates as fr

Pairs = tuple[Any, Any]
CHUNK = 250_000
LONG = 500_000  # a budget that takes time to measure
FLIPS, MONTH = 20, 1_440
POSITIVES, ERRORS = 0.3, 0.1


def repeating(random: np.random.Generator, size: int, correlation: float) -> Pairs:
    """Right or wrong as the event before with this probability, else by chance."""
    fresh = random.random(size) >= correlation
    fresh[0] = True
    last = np.maximum.accumulate(np.where(fresh, np.arange(size), 0))
    wrong = (random.random(size) < ERRORS)[last]
    truth = random.random(size) < POSITIVES
    return truth, truth ^ wrong


def season(random: np.random.Generator, size: int, amplitude: float, period: int) -> Pairs:
    truth = random.random(size) < POSITIVES
    rate = ERRORS * (1 + amplitude * np.sin(2 * np.pi * np.arange(size) / period))
    return truth, truth ^ (random.random(size) < rate)


def mixed(random: np.random.Generator, size: int, period: int) -> Pairs:
    truth = random.random(size) < POSITIVES * (1 + 0.5 * np.sin(2 * np.pi * np.arange(size) / period))
    return truth, truth ^ (random.random(size) < ERRORS)


def runs(random: np.random.Generator, size: int, length: int) -> Pairs:
    truth = np.zeros(size, np.bool_)
    at = 0
    while at < size:
        at += int(random.geometric(POSITIVES / (length * (1 - POSITIVES))))
        run = int(random.geometric(1 / length))
        truth[at : at + run] = True
        at += run
    return truth, truth ^ (random.random(size) < ERRORS)


def twice(random: np.random.Generator, size: int) -> Pairs:
    truth = np.repeat(random.random(size // 2) < POSITIVES, 2)
    return truth, truth ^ np.repeat(random.random(size // 2) < ERRORS, 2)


STREAMS: dict[str, Callable[[np.random.Generator, int], Pairs]] = {
    "independent": lambda r, n: repeating(r, n, 0.0),
    "errors repeat, 0.05": lambda r, n: repeating(r, n, 0.05),
    "errors repeat, 0.1": lambda r, n: repeating(r, n, 0.1),
    "errors repeat, 0.3": lambda r, n: repeating(r, n, 0.3),
    "errors repeat, 0.6": lambda r, n: repeating(r, n, 0.6),
    "error rate +-20 %, period 1,440": lambda r, n: season(r, n, 0.2, 1_440),
    "error rate +-50 %, period 1,440": lambda r, n: season(r, n, 0.5, 1_440),
    "every event twice": twice,
    "positives in runs of 5": lambda r, n: runs(r, n, 5),
    "positives in runs of 50": lambda r, n: runs(r, n, 50),
    "positives in runs of 500": lambda r, n: runs(r, n, 500),
    "class mix 30 +- 15 %, period 1,000": lambda r, n: mixed(r, n, 1_000),
    "class mix 30 +- 15 %, period 10,000": lambda r, n: mixed(r, n, 10_000),
    "class mix 30 +- 15 %, period 50,000": lambda r, n: mixed(r, n, 50_000),
}


def alarms(detector: fr.FourRates, draw: Callable[[np.random.Generator, int], Pairs]) -> dict[str, Any]:
    """Alarms and shifts over those asked for."""
    random = np.random.default_rng(11)
    arl = detector.parameters["arl"]
    found = shifts = 0
    enough, most = (26, 60) if arl >= LONG else (100, 250)
    while found < enough and detector.events < most * arl:
        found += len(detector.update_many(*draw(random, CHUNK)))
        shifts += sum(finding.kind == "shift" for finding in detector.findings)
    asked = detector.events / arl
    return {"ratio": found / asked, "alarms": found, "shifts": shifts / asked, "events": detector.events}


def electricity(folder: str) -> list[dict[str, Any]]:
    """elecNorm: alarms at one in 30 days (1,440 half hours), as recorded, shuffled within months, and with a change."""
    from pathlib import Path

    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    lines = (Path(folder) / "elecNorm.arff").read_text().splitlines()
    rows = [line.split(",") for line in lines if line and not line.startswith(("@", "%"))]
    features = np.array([row[:-1] for row in rows], float)[:, 1:]
    truth = np.array([row[-1] for row in rows]) == "UP"
    random = np.random.default_rng(0)
    found = []
    for model in (GradientBoostingClassifier(random_state=0), LogisticRegression(max_iter=1_000), GaussianNB()):
        model.fit(features[:10_000], truth[:10_000])
        y, pred = truth[10_000:], model.predict(features[10_000:])
        order = np.concatenate([random.permutation(m) for m in np.array_split(np.arange(y.size), y.size // MONTH)])
        recorded, shuffled = (len(fr.FourRates(MONTH).update_many(*p)) for p in ((y, pred), (y[order], pred[order])))
        plain = len(fr.FourRates(MONTH, dispersion=1).update_many(y, pred))
        found.append(
            {
                "model": type(model).__name__,
                "asked": y.size / MONTH,
                "recorded": recorded,
                "shuffled": shuffled,
                "independence taken for granted": plain,
                "injected": injected(y, pred, random),
                "injected, shuffled": injected(y[order], pred[order], random),
            }
        )
    return found


def injected(y: Any, pred: Any, random: np.random.Generator) -> dict[str, Any]:
    """In how many of 20 draws a change is found: labels of one class flipped for 20 % of its events from the middle on.

    Found is an alarm that says tnr fell, by the end of the first, second and third month. Next to it what the stream
    itself does without the flips: whether there is such an alarm anyway.
    """
    middle = y.size // 2
    late = np.flatnonzero((np.arange(y.size) >= middle) & y)

    def fell(labels: Any) -> float:
        for drift in fr.FourRates(MONTH).update_many(labels, pred):
            if drift.at >= middle and any((one.rate, one.direction) == ("tnr", "down") for one in drift.changes):
                return (drift.at - middle) / MONTH
        return np.inf

    delays, falls = [], []
    for _ in range(FLIPS):
        flipped = y.copy()
        flipped[random.choice(late, late.size // 5, replace=False)] = False
        delays.append(fell(flipped))
        before, after = ((~pred[middle:])[~labels[middle:]].mean() for labels in (y, flipped))
        falls.append(float(before - after))
    by = [float(np.mean(np.array(delays) < months)) for months in (1, 2, 3)]
    alone = fell(y)
    return {
        "fall of tnr": float(np.mean(falls)),
        "found by month": by,
        "without flips": alone if np.isfinite(alone) else None,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arl", type=float, action="append")
    parser.add_argument("--mix", choices=("report", "alarm"), default="report", help="what a shift of the classes is")
    options = parser.parse_args()
    start, missed, numbers = time.time(), 0, []
    for arl in options.arl or (20_000, 50_000, 1_000_000):
        print(f"one alarm in {arl:,.0f} asked for; alarms over those asked for")
        for name, draw in STREAMS.items():
            row, plain = (alarms(fr.FourRates(arl, dispersion=one, mix=options.mix), draw) for one in (None, 1))
            numbers.append({"arl": arl, "stream": name, **row, "plain": plain["ratio"]})
            print(
                f"  {name:<38} {row['ratio']:5.2f} ({row['alarms']})   shifts of classes {row['shifts']:.2f}"
                f"   plain {plain['ratio']:.2f}",
                flush=True,
            )
            missed += row["ratio"] > 3
    found: dict[str, Any] = {"streams": numbers}
    if options.mix == "alarm":
        keep("real_streams_alarm", found)
        return int(missed > 0)
    if folder := os.environ.get("FOURRATES_DATA"):
        found["elecNorm"] = electricity(folder)
        for row in found["elecNorm"]:
            print(row, flush=True)
            missed += row["recorded"] > 2.5 * row["shuffled"]
    keep("real_streams", found)
    print(f"{missed} marks missed; {time.time() - start:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

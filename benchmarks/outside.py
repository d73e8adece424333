"""Benchmarks nobody here made: the streams, the changes and the rule of counting are others'.

1. *A framework for evaluating and benchmarking concept drift detection methods* (Cerqueira, Gomes, Heyden, Pfahringer &
   Bifet, KDD 2026, arXiv 2606.07789), on Electricity: its rows in random order, a Hoeffding tree that learns from every
   one, and a change somewhere between half and four fifths of the stream: one class is called the other (swap), the
   columns are permuted, three quarters of a class are left out (prior), or the rows above a column's median are
   (filter); at once, or over 2,500 rows. Detectors look from the first quarter on. An alarm within 2,500 rows of the
   change is a hit, any other a false alarm, a change without a hit a miss: F1 of all streams, and the mean delay. Their
   workflow gives detectors 1 for a right prediction, here they get errors, which is what they are made for.
2. The data of NannyML (Apache 2), from its wheel: where FourRates with a reference alarms, and where NannyML's rule
   can, which looks at chunks of 5,000 rows and alerts at the end of one whose accuracy is three standard deviations of
   the reference's chunks away from their mean.

    python benchmarks/outside.py [--streams 10] [--only swap] [--nannyml nannyml-0.13.1-py3-none-any.whl]

Nothing of theirs is in this repository; Electricity is read from the folder FOURRATES_DATA.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawn import keep

import fourrates as fr

LATEST = WIDTH = 2_500
CHANGES = ("swap", "permutation", "prior", "filter")
CHUNK = 5_000


def electricity() -> tuple[np.ndarray, np.ndarray]:
    """Columns and class; time itself is one of the columns."""
    lines = (Path(os.environ["FOURRATES_DATA"]) / "elecNorm.arff").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    rows = [line.split(",") for line in lines[start + 1 :] if line.strip()]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1].strip() == "UP" for row in rows], int)


def changed(
    random: np.random.Generator, columns: np.ndarray, classes: np.ndarray, change: str, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Rows in random order with a change, which of them are left out, and where it begins."""
    order = random.permutation(len(classes))
    columns, classes = columns[order], classes[order]
    onset = int(len(classes) * random.uniform(0.5, 0.8))
    place = np.arange(len(classes))
    new = (place >= onset) & (random.random(len(classes)) * max(width, 1) <= np.maximum(place - onset, 1 - width))
    label, out = random.integers(2), np.zeros(len(classes), bool)
    if change == "swap":
        classes = np.where(new & (classes == label), 1 - label, classes)
    elif change == "permutation":
        columns = np.where(new[:, None], columns[:, random.permutation(columns.shape[1])], columns)
    elif change == "prior":
        out = new & (classes == label) & (random.random(len(classes)) < 0.75)
    else:
        column = random.integers(columns.shape[1])
        out = new & (columns[:, column] > np.median(columns[:, column]))
    return columns, classes, out, onset


def predictions(columns: np.ndarray, classes: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of a tree that predicts each row and then learns from it: place, class, prediction, from a quarter on."""
    from river.tree import HoeffdingTreeClassifier

    tree, found = HoeffdingTreeClassifier(), []
    names = [str(i) for i in range(columns.shape[1])]
    for i, (values, truth) in enumerate(zip(columns.tolist(), classes.tolist(), strict=True)):
        if out[i]:
            continue
        row = dict(zip(names, values, strict=True))
        if i > len(classes) // 4:
            found.append((i, truth, tree.predict_one(row) or 0))
        tree.learn_one(row, truth)
    return tuple(np.array(found).T)


def four_rates(**settings: Any) -> Callable[..., list[int]]:
    def alarms(truth: np.ndarray, pred: np.ndarray) -> list[int]:
        detector = fr.FourRates(100_000, **settings)
        found = [drift.at for drift in detector.update_many(truth, pred)]
        if settings.get("mix") == "alarm":
            found += [finding.at for finding in detector.findings if finding.kind == "shift"]
        return sorted(found)

    return alarms


def of_errors(make: Callable[[], Any]) -> Callable[..., list[int]]:
    def alarms(truth: np.ndarray, pred: np.ndarray) -> list[int]:
        detector, found = make(), []
        for i, wrong in enumerate((truth != pred).astype(int).tolist()):
            detector.update(wrong)
            if detector.drift_detected:
                found.append(i)
        return found

    return alarms


def of_rising_errors(make: Callable[[], Any]) -> Callable[..., list[int]]:
    """ADWIN as MOA and CapyMOA have it: a change of the errors counts if their mean rose."""

    def alarms(truth: np.ndarray, pred: np.ndarray) -> list[int]:
        detector, found = make(), []
        for i, wrong in enumerate((truth != pred).astype(int).tolist()):
            before = detector.estimation
            detector.update(wrong)
            if detector.drift_detected and detector.estimation > before:
                found.append(i)
        return found

    return alarms


def detectors() -> dict[str, Callable[..., list[int]]]:
    import river.drift.binary
    from river.drift import ADWIN, PageHinkley

    weighted = getattr(river.drift.binary, "HDDMW", None) or river.drift.binary.HDDM_W
    return {
        "FourRates": four_rates(),
        "FourRates, learning": four_rates(learning=True, mix="alarm"),
        "FourRates, learning, 0.08": four_rates(learning=True, mix="alarm", tolerance=0.08),
        "ADWIN": of_errors(ADWIN),
        "ADWIN, rises": of_rising_errors(ADWIN),
        "ADWIN, rises, delta 0.01": of_rising_errors(lambda: ADWIN(delta=0.01)),  # as the authors tuned it
        "PageHinkley": of_errors(PageHinkley),
        "HDDM_W": of_errors(weighted),
        "DDM": of_errors(river.drift.binary.DDM),
    }


def benchmark(streams: int, changes: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    data, rows = electricity(), []
    for change in changes:
        for width in (0, WIDTH):
            counts = {name: [0, 0, 0, []] for name in detectors()}  # hits, false alarms, misses, delays
            for stream in range(streams):
                random = np.random.default_rng([seed, CHANGES.index(change), width, stream])
                columns, classes, out, onset = changed(random, *data, change, width)
                place, truth, pred = predictions(columns, classes, out)
                for name, detector in detectors().items():
                    late = [int(place[at]) - onset for at in detector(truth, pred)]
                    hits = [delay for delay in late if 0 <= delay <= LATEST]
                    counts[name][0] += len(hits)
                    counts[name][1] += len(late) - len(hits)
                    counts[name][2] += not hits
                    counts[name][3] += hits[:1]
            for name, (hits, false, missed, late) in counts.items():
                f1 = 2 * hits / max(2 * hits + false + missed, 1)
                delay = float(np.mean(late)) if late else None
                rows.append({"change": change, "width": width, "detector": name, "f1": f1, "delay": delay,
                             "false": false, "missed": missed})  # fmt: skip
                print(f"{change:12} {'gradual' if width else 'abrupt':8} {name:26} F1 {f1:.3f}, delay "
                      f"{'-' if delay is None else round(delay)}, {false} false, {missed} missed of {streams}",
                      flush=True)  # fmt: skip
    for name in detectors():
        print(f"mean {name:26} {np.mean([row['f1'] for row in rows if row['detector'] == name]):.3f}")
    return rows


SETS = {  # files, column of the class, of the prediction, whether a chunk can be read off
    "car loan": ("synthetic_car_loan", "_analysis_target.csv", "repaid", "y_pred"),
    "work from home": ("synthetic_sample", "_analysis_gt.csv", "work_home_actual", "y_pred"),
    "credit cards": ("mc", "_analysis_gt.csv", "y_true", "y_pred"),
}


def nannyml(wheel: str) -> list[dict[str, Any]]:
    """Where FourRates and NannyML's rule alarm, in rows of the period that is looked at."""
    rows = []
    with zipfile.ZipFile(wheel) as archive:

        def column(name: str, wanted: str) -> np.ndarray:
            text = archive.read(f"nannyml/datasets/data/{name}").decode()
            found = [row[wanted] for row in csv.DictReader(io.StringIO(text))]
            try:
                return np.array(found, float).astype(int)
            except ValueError:
                return np.array(found)

        for name, (stem, targets, truth, pred) in SETS.items():
            old = column(f"{stem}_reference.csv", truth), column(f"{stem}_reference.csv", pred)
            new = column(f"{stem}{targets}", truth), column(f"{stem}_analysis.csv", pred)
            detector = fr.FourRates(100_000, reference=old, labels=sorted({*old[0].tolist()}))
            drifts = detector.update_many(*new)
            chunks = [
                [np.mean((y == p)[i : i + CHUNK]) for i in range(0, len(y) - CHUNK + 1, CHUNK)]
                for y, p in ((np.asarray(one[0]), np.asarray(one[1])) for one in (old, new))
            ]
            outside = np.abs(np.array(chunks[1]) - np.mean(chunks[0])) > 3 * np.std(chunks[0])
            alert = int((outside.argmax() + 1) * CHUNK) if outside.any() else None
            first = drifts[0] if drifts else None
            rows.append({"data": name, "fourrates": first and first.at, "started": first and first.started,
                         "chunks": alert})  # fmt: skip
            print(f"{name}: {first}; by chunks {alert}", flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--only", choices=CHANGES, action="append")
    parser.add_argument("--nannyml", metavar="WHEEL")
    parser.add_argument("--seed", type=int, default=123)
    options = parser.parse_args()
    start, numbers = time.time(), {}
    if options.nannyml:
        numbers["nannyml"] = nannyml(options.nannyml)
    numbers["streams"] = options.streams
    if options.streams:
        numbers["electricity"] = benchmark(options.streams, tuple(options.only or CHANGES), options.seed)
    if options.only is None and options.nannyml and options.streams:
        keep("outside", numbers)
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

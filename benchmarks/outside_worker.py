"""The part of outside.py that needs CapyMOA, which has an environment of its own.

    python outside_worker.py learn DATA.npz CASE.npz CHANGE WIDTH STREAMS SEED
    python outside_worker.py detect CASE.npz ALARMS.json
    python outside_worker.py score ALARMS.json SCORES.json

`learn` makes changed streams of a data set and has CapyMOA's Hoeffding tree predict and then learn each row, `detect`
gives the errors of the tree to CapyMOA's detectors, and `score` counts alarms with CapyMOA's EvaluateDriftDetector.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from capymoa.classifier import HoeffdingTree
from capymoa.drift.detectors import ABCD, ADWIN, SEED, STEPD
from capymoa.drift.eval_detector import EvaluateDriftDetector
from capymoa.stream import NumpyStream

FIRST = 0.25  # the part of a stream that detectors do not see
MOST = 100_000  # rows of a stream
CHANGES = ("swap", "permutation", "prior", "filter")
# As they come, and as the authors tuned them over all their streams.
DETECTORS: dict[str, Callable[[], Any]] = {
    "ADWIN": ADWIN,
    "ADWIN, tuned": lambda: ADWIN(delta=0.01),
    "SEED": SEED,
    "SEED, tuned": lambda: SEED(delta=0.01, block_size=32, epsilon_prime=0.01, alpha=0.6),
    "STEPD": STEPD,
    "STEPD, tuned": lambda: STEPD(window_size=500, alpha_drift=0.001),
    "ABCD": ABCD,
}
SLOW = {"ABCD": 6}  # gets one stream in so many, and at least two


def changed(
    random: np.random.Generator, columns: np.ndarray, classes: np.ndarray, change: str, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Rows in random order with a change, which of them are left out, and where the change begins."""
    order = random.permutation(len(classes))[:MOST]
    columns, classes = columns[order], classes[order]
    onset = int(len(classes) * random.uniform(0.5, 0.8))
    place = np.arange(len(classes))
    new = (place >= onset) & (random.random(len(classes)) * max(width, 1) <= np.maximum(place - onset, 1 - width))
    label, other = random.choice(classes.max() + 1, 2, replace=False)
    out = np.zeros(len(classes), bool)
    if change == "swap":
        classes = np.where(new & (classes == label), other, classes)
    elif change == "permutation":
        columns = np.where(new[:, None], columns[:, random.permutation(columns.shape[1])], columns)
    elif change == "prior":
        out = new & (classes == label) & (random.random(len(classes)) < 0.75)
    else:
        column = random.integers(columns.shape[1])
        out = new & (columns[:, column] > np.median(columns[:, column]))
    return columns, classes, out, onset


def predictions(columns: np.ndarray, classes: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Place, class and prediction of the rows after the first quarter, of a tree that learns from every row."""
    stream = NumpyStream(columns[~out], classes[~out], dataset_name="rows")
    tree, found = HoeffdingTree(schema=stream.get_schema()), []
    for place, row in zip(np.flatnonzero(~out).tolist(), stream, strict=True):
        if place > FIRST * len(classes):
            found.append((place, row.y_index, tree.predict(row) or 0))
        tree.train(row)
    return np.array(found, np.int32).T


def learn(data: Path, case: Path, change: str, width: int, streams: int, seed: int) -> None:
    with np.load(data) as arrays:
        columns, classes = arrays["columns"], arrays["classes"]
    made: dict[str, np.ndarray] = {}
    onsets = []
    for stream in range(streams):
        random = np.random.default_rng([seed, CHANGES.index(change), width, stream])
        *rows, onset = changed(random, columns, classes, change, width)
        made[str(stream)] = predictions(*rows)
        onsets.append(onset)
    np.savez_compressed(case, onsets=onsets, **made)


def detect(case: Path, out: Path) -> None:
    """Where each detector alarms, in rows of the data set; slow ones get a part of the streams."""
    with np.load(case) as arrays:
        streams = [arrays[str(stream)] for stream in range(len(arrays["onsets"]))]
    found: dict[str, list[list[int]]] = {}
    for name, make in DETECTORS.items():
        found[name] = []
        part = max(2, len(streams) // SLOW.get(name, 1))
        for places, truth, pred in streams[:part]:
            detector, alarms = make(), []
            for place, wrong in zip(places.tolist(), (truth != pred).astype(float).tolist(), strict=True):
                detector.add_element(wrong)
                if detector.detected_change():
                    alarms.append(place)
            found[name].append(alarms)
    out.write_text(json.dumps(found))


def counted(episodes: list[dict[str, Any]], latest: int) -> Any:
    return EvaluateDriftDetector(max_delay=latest).calc_performance(
        trues=None, preds=None, drift_episodes=episodes, tot_n_instances=1
    )


def score(alarms: Path, out: Path) -> None:
    """F1 with its standard error (a jackknife over the streams), mean delay, and counts, of each case and detector."""
    rows = json.loads(alarms.read_text())
    for row in rows:
        streams, latest = row.pop("alarms"), row.pop("latest")
        onsets = row.pop("onsets")[: len(streams)]
        episodes = [{"preds": found, "true": (at, at)} for found, at in zip(streams, onsets, strict=True)]
        scores, n = counted(episodes, latest), len(episodes)
        without = [counted(episodes[:i] + episodes[i + 1 :], latest).f1 for i in range(n)]
        row |= {
            "streams": n,
            "f1": float(scores.f1),
            "error": float(np.std(without) * np.sqrt(n - 1)),
            "delay": None if np.isnan(scores.mdt) else float(scores.mdt),
            "false": int(scores.fp),
            "missed": int(scores.fn),
        }
    out.write_text(json.dumps(rows))


def main(job: str, source: str, out: str, *more: str) -> None:
    if job == "learn":
        change, *numbers = more
        learn(Path(source), Path(out), change, *map(int, numbers))
    else:
        {"detect": detect, "score": score}[job](Path(source), Path(out))


if __name__ == "__main__":
    main(*sys.argv[1:])

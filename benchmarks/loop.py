"""The retraining loops: the vote on real streams, and the paper's public data.

1. *Real streams*: accuracy, F1 and G-mean of every prediction, each made before its label was known, of a model that is
   never retrained, of one retrained at even intervals, of one retrained when river's ADWIN alarms, and of
   `ChampionRetrainer`. All train on the same first examples; the two peers train on as many of the newest, as often as
   the vote trained one of its models. ADWIN's delta is the one of a grid whose number of fits comes nearest to that.
   The vote runs three times, by each measure.
2. *Public data*: the share of right predictions of the paper's loop and of the vote.

Prints tables and writes the numbers as JSON; ends with status 1 if a mark is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from drawn import RESULTS, keep
from real_data import STREAMS, TUNED, Stream
from river.drift import ADWIN
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fourrates.retrain import ChampionRetrainer, Retrainer
from fourrates.retrain.fixed_share import Measure
from paper import settings
from paper.examples import permuted
from paper.public import RETRAIN, loaded, rarer
from paper.svm import RBF

Record = dict[str, Any]
MEASURES: tuple[Measure, ...] = ("accuracy", "f1", "g_mean")
MODELS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "naive Bayes": make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-6)),
    "decision tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
}
DELTAS = (0.9, 0.5, 0.2, 0.05, 0.01, 0.002, 1e-4, 1e-6)
ALLOWED = 0.5  # points below the best of the others
LOOK = 64  # predictions made at once for ADWIN
BLOCKS = 40  # of a stream, for standard errors
DATASETS = ("USENET1", "USENET2", "SEA", "HYPERPLANE")
PEERS = ("never", "periodic", "ADWIN")
VERSION = 3  # of ChampionRetrainer: raised when it predicts otherwise, so that pages can mark what is of an earlier one


def learnt(model: Any, stream: Stream, start: int, stop: int) -> Any:
    window = slice(max(start, 0), stop)
    if np.unique(stream.labels[window]).size < 2:
        return None
    return clone(model).fit(stream.features[window], stream.labels[window])


def never(model: Any, stream: Stream) -> np.ndarray:
    return learnt(model, stream, 0, stream.first).predict(stream.features[stream.first :])


def periodic(model: Any, stream: Stream, fits: int) -> tuple[np.ndarray, int]:
    """Learnt again at even intervals, from the newest examples."""
    edges = np.linspace(stream.first, stream.labels.size, fits + 2).astype(int)
    serving, said, done = learnt(model, stream, 0, stream.first), [], 0
    for start, stop in pairwise(edges.tolist()):
        if start > stream.first and (newer := learnt(model, stream, start - stream.first, start)) is not None:
            serving, done = newer, done + 1
        if stop > start:
            said.append(serving.predict(stream.features[start:stop]))
    return np.concatenate(said), done


def adwin(model: Any, stream: Stream, delta: float) -> tuple[np.ndarray, int]:
    """Learnt again when ADWIN alarms, from the newest examples."""
    serving, watch = learnt(model, stream, 0, stream.first), ADWIN(delta=delta)
    said, at, done = np.empty(stream.labels.size, int), stream.first, 0
    while at < stream.labels.size:
        block = serving.predict(stream.features[at : at + LOOK])
        for pred in block:
            said[at] = pred
            watch.update(int(pred != stream.labels[at]))
            at += 1
            if watch.drift_detected:
                if (newer := learnt(model, stream, at - stream.first, at)) is not None:
                    serving, done = newer, done + 1
                break
    return said[stream.first :], done


@cache
def adwins(name: str, kind: str) -> list[tuple[np.ndarray, int]]:
    """With each delta; they do not depend on the loop."""
    return [adwin(MODELS[kind], STREAMS[name](), delta) for delta in DELTAS]


def jackknife(truths: np.ndarray, said: np.ndarray, other: np.ndarray) -> list[float]:
    """The standard error of each difference of measures, in points: the stream's blocks left out one at a time."""
    blocks = [part for part in np.array_split(np.arange(truths.size), BLOCKS) if part.size]
    tables = np.array([[_confusion(truths[part], one[part]) for one in (said, other)] for part in blocks])
    left = tables.sum(axis=0) - tables
    differences = np.array([[_measures(own) - _measures(peer)] for own, peer in left]).reshape(len(blocks), -1)
    spread = ((differences - differences.mean(axis=0)) ** 2).sum(axis=0) * (len(blocks) - 1) / len(blocks)
    return [100 * float(one) for one in np.sqrt(spread)]


def _confusion(truths: np.ndarray, said: np.ndarray) -> np.ndarray:
    return np.bincount(2 * truths + said, minlength=4).reshape(2, 2)


def _measures(table: np.ndarray) -> np.ndarray:
    """Accuracy, F1 and G-mean of a table of truths and predictions."""
    (tn, fp), (fn, tp) = table
    recalls = tp / max(tp + fn, 1), tn / max(tn + fp, 1)
    return np.array([(tp + tn) / table.sum(), 2 * tp / max(2 * tp + fp + fn, 1), np.sqrt(recalls[0] * recalls[1])])


def of_stream(name: str, stream: Stream, kind: str, measure: Measure) -> Record:
    model, rest = MODELS[kind], slice(stream.first, None)
    X, y = stream.features, stream.labels
    begun = time.process_time()
    loop = ChampionRetrainer(model, measure=measure).fit(X[: stream.first], y[: stream.first])
    said = {"champion": loop.run(X[rest], y[rest])}
    seconds = time.process_time() - begun
    refits = {"champion": loop.fits - 1, "never": 0}
    said["never"] = never(model, stream)
    said["periodic"], refits["periodic"] = periodic(model, stream, loop.fits - 1)
    tried = adwins(name, kind)
    nearest = min(range(len(tried)), key=lambda i: abs(tried[i][1] - refits["champion"]))
    said["ADWIN"], refits["ADWIN"] = tried[nearest]
    scores = {who: (100 * _measures(_confusion(y[rest], one))).tolist() for who, one in said.items()}
    peers = [max(PEERS, key=lambda who: scores[who][i]) for i in range(len(MEASURES))]
    return {
        "stream": name,
        "model": kind,
        "measure": measure,
        "version": VERSION,
        "tuned": name in TUNED,
        "injected": stream.injected,
        "examples": int(y.size - stream.first),
        "scores": scores,
        "ahead": [scores["champion"][i] - scores[who][i] for i, who in enumerate(peers)],
        "errors": [jackknife(y[rest], said["champion"], said[who])[i] for i, who in enumerate(peers)],
        "refits": refits,
        "delta": DELTAS[nearest],
        "drifts": len(loop.drifts),
        "decisions": Counter(one.kind for one in loop.decisions),
        "seconds": seconds,
    }


def place(one: Record) -> tuple[int, int, int]:
    """Where a record stands among the others."""
    return list(STREAMS).index(one["stream"]), list(MODELS).index(one["model"]), MEASURES.index(one["measure"])


def streams(only: list[str], models: list[str]) -> list[Record]:
    """All streams with all models, by each measure; written down when done, and what is there of others stays."""
    path = RESULTS / "loop.json"
    for name, load in STREAMS.items():
        if only and name not in only:
            continue
        stream = load()
        for kind, measure in product(models or MODELS, MEASURES):
            one = of_stream(name, stream, kind, measure)
            print(
                f"{name:<14}{kind:<20}{measure:<9}"
                + "   ".join(
                    f"{who} {' '.join(f'{value:.1f}' for value in one['scores'][who])} ({one['refits'][who]})"
                    for who in one["scores"]
                )
                + "   ahead "
                + " ".join(
                    f"{value:+.1f}({error:.1f})" for value, error in zip(one["ahead"], one["errors"], strict=True)
                )
                + f"   {one['drifts']} drifts, {one['seconds']:.0f} s",
                flush=True,
            )
            numbers = json.loads(path.read_text()) if path.exists() else {}
            kept = {place(other): other for other in numbers.get("streams", [])} | {place(one): one}
            numbers["streams"] = [kept[at] for at in sorted(kept)]
            keep("loop", numbers)
    found = json.loads(path.read_text())["streams"]
    assert isinstance(found, list)
    return found


# The public data ---------------------------------------------------------------------------------------------


def public(runs: dict[str, int]) -> list[Record]:
    """The share of right predictions of the machine of the public experiments in each loop."""
    records = []
    for dataset, number in runs.items():
        examples = loaded(dataset, None)
        retrain = RETRAIN[dataset]
        detector = settings.public(dataset, rarer(examples.labels))["LFR"]
        right: dict[str, list[float]] = {"never": [], "LFR": [], "champion": []}
        for run in range(number):
            stream = permuted(examples, run)
            X, y = stream.features, stream.labels
            loops: dict[str, Any] = {
                "LFR": Retrainer(RBF(cost=5.0), detector, min_examples=retrain, max_examples=retrain),
                "champion": ChampionRetrainer(RBF(cost=5.0)),
            }
            for who, loop in loops.items():
                said = loop.fit(X[:retrain], y[:retrain]).run(X[retrain:], y[retrain:])
                right[who].append(float(np.mean(said == y[retrain:])))
            right["never"].append(
                float(np.mean(RBF(cost=5.0).fit(X[:retrain], y[:retrain]).predict(X[retrain:]) == y[retrain:]))
            )
        means = {who: float(np.mean(one)) for who, one in right.items()}
        records.append({"dataset": dataset, "runs": number, "version": VERSION, **means})
        print(records[-1], flush=True)
    return records


def marks(numbers: Record) -> int:
    """How many marks were missed: each measure of the loop that serves it, on streams no constant was chosen on."""
    own = [one for one in numbers.get("streams", []) if not one["tuned"]]
    below = [
        f"{one['stream']}, {one['model']}, {one['measure']}: {one['ahead'][i]:+.1f} ({one['errors'][i]:.1f})"
        for one in own
        if one["ahead"][i := MEASURES.index(one["measure"])] < -ALLOWED
    ]
    clear = sum(one["ahead"][i] < -2 * one["errors"][i] for one in own for i in [MEASURES.index(one["measure"])])
    injected = [
        f"{one['stream']}, {one['model']}"
        for one in own
        if one["measure"] == "accuracy" and one["injected"] and one["ahead"][0] <= 0
    ]
    print(f"{len(below)} of {len(own)} figures more than {ALLOWED} points below the best of the others: {below}")
    print(f"{clear} of {len(own)} figures are below it by more than two standard errors")
    print(f"injected changes on which another is at least as accurate: {injected}")
    return len(below) + len(injected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("streams", "public"), help="one part; the others stay as they are")
    parser.add_argument("--stream", action="append", default=[], choices=list(STREAMS), help="these streams only")
    parser.add_argument("--model", action="append", default=[], choices=list(MODELS), help="these models only")
    parser.add_argument("--dataset", action="append", default=[], choices=DATASETS, help="these data sets only")
    parser.add_argument("--runs", type=int, default=20, help="of USENET; half as many of SEA and HYPERPLANE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a regression that has not settled in 300 steps serves as it is
    runs = {
        name: options.runs if name.startswith("USENET") else max(options.runs // 2, 1)
        for name in DATASETS
        if not options.dataset or name in options.dataset
    }
    begun = time.perf_counter()
    parts: dict[str, Callable[[], list[Record]]] = {
        "streams": partial(streams, options.stream, options.model),
        "public": partial(public, runs),
    }
    path = RESULTS / "loop.json"
    for name, part in parts.items():
        if options.only in (None, name):
            found = part()
            numbers = json.loads(path.read_text()) if path.exists() else {}
            if name == "public":  # what was not measured now stays
                new = {one["dataset"] for one in found}
                others = [one for one in numbers.get(name, []) if one["dataset"] not in new]
                found = sorted(others + found, key=lambda one: DATASETS.index(one["dataset"]))
            numbers[name] = found
            keep("loop", numbers)
    missed = marks(json.loads(path.read_text()))
    print(f"{missed} marks missed; {time.perf_counter() - begun:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

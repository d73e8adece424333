"""Small samples: FourRates beside the exact LFR with one decay, at the same measured false alarms.

Where a change must be found from some ten observations, a detector that takes its time comes too late. Two questions,
each with its marks: FourRates finds no less, within two standard errors; on USENET1, where a change shows most in the
precisions, at least 0.9 of what LFR finds. Ends with status 1 if one is missed. LFR's precisions alarm when the classes
shift, so FourRates is told that a shift of the classes is an alarm too.

1. *USENET1 and USENET2*, as in the paper's experiment: 1,500 examples, a change every 300, a support vector machine
   that learns anew from 100 examples at each drift. Needs the data (``FOURRATES_DATA`` names their folder) and
   scikit-learn; what is not there is left out, and said.
2. *Few positives*: 1 % positives, tpr from 0.8 to 0.4 after 100 of them.

Both detectors are run at several settings, on the same streams, and each gives a curve: hits against false alarms. They
are compared at a few numbers of false alarms: the most that each finds with no more than so many, read off its curve,
straight between two settings. The standard error is that of the difference, by drawing the streams anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from drawn import keep

import fourrates as fr
from fourrates.evaluate import Score
from paper import tables, work
from paper.datasets import DatasetError, paths
from paper.public import Public

DECAY = 0.9
LEVELS = (3e-5, 1e-4, 1.7e-4, 3e-4, 5e-4, 1e-3)  # on USENET
BUDGETS = (300, 500, 1_000, 2_000, 3_000, 5_000, 10_000)
COUNTS = {"USENET1": (6, 20, 50), "USENET2": (15, 25, 50)}  # false alarms per 100, where the two are compared
LEAST = {"USENET1": 0.9}  # of what the exact LFR finds; all of it, but for sampling error, if not said
LOWER = (5e-6, 1e-5, 2e-5)  # with few positives; the second is that of LFR(), at whose false alarms they are compared
LONGER = (10_000, 15_000, 20_000, 30_000, 50_000, 80_000, 120_000)
POSITIVES, SOON, LATER = 100, 20, 40
DRAWN = 1_000  # times that the streams are drawn anew

Row = dict[str, Any]


@dataclass(frozen=True)
class Curve:
    """Hits and false alarms of a detector, a row for each setting, a column for each stream."""

    settings: tuple[str, ...]
    hits: np.ndarray
    false: np.ndarray

    def per_100(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hits and false alarms per 100 streams, if each stream were there so many times."""
        streams = weights.sum()
        return 100 * (self.hits @ weights) / streams, 100 * (self.false @ weights) / streams


def most(hits: np.ndarray, false: np.ndarray, allowed: float) -> float:
    """The most hits on the line through these points with no more false alarms than allowed; nan if all have more."""
    found = list(hits[false <= allowed])
    for (hits_a, false_a), (hits_b, false_b) in pairwise(zip(hits, false, strict=True)):
        if (false_a - allowed) * (false_b - allowed) < 0:
            found.append(hits_a + (hits_b - hits_a) * (allowed - false_a) / (false_b - false_a))
    return float(max(found, default=np.nan))


def judge(exact: Curve, own: Curve, counts: Iterable[float], what: str, least: float | None = None) -> list[Row]:
    """Say how much each finds at these numbers of false alarms per 100 streams: a row for each."""
    streams = exact.hits.shape[1]
    drawn = np.random.default_rng(0).multinomial(streams, np.full(streams, 1 / streams), DRAWN)
    rows: list[Row] = []
    for allowed in counts:
        theirs, ours = (most(*one.per_100(np.ones(streams)), allowed) for one in (exact, own))
        again = [[most(*one.per_100(weights), allowed) for one in (exact, own)] for weights in drawn]
        error = float(np.nanstd(np.diff(again)))  # nan: in that draw no setting had so few
        enough = ours - theirs >= -2 * error if least is None else ours >= least * theirs
        found = {"exact": theirs, "own": ours, "error": error, "missed": not enough}
        rows.append({"false": allowed, "what": what, **found})
        print(
            f"  at {allowed:.1f} false alarms, {what}: exact {theirs:.1f}, FourRates {ours:.1f}, ratio "
            f"{ours / theirs:.2f}, difference {ours - theirs:+.1f} ({error:.1f}): {verdict(ours - theirs, error)}"
            f"{'' if enough else ': MISSED'}",
            flush=True,
        )
    return rows


def verdict(difference: float, error: float) -> str:
    if np.isnan(difference):
        return "no budget has so few"
    if abs(difference) <= 2 * error:
        return "no worse, within two standard errors"
    return "FourRates is better" if difference > 0 else "FourRates is worse"


def show(curve: Curve, hits: Mapping[str, np.ndarray]) -> None:
    """A line for each setting, with the standard error of each number."""

    def cell(values: np.ndarray) -> str:
        return f"{100 * values.sum() / values.size:.1f} ({100 * values.std() / np.sqrt(values.size):.1f})"

    for row, setting in enumerate(curve.settings):
        columns = [cell(curve.false[row]), *(cell(one[row]) for one in hits.values())]
        print(f"{setting:<34}" + "".join(f"{column:>22}" for column in columns), flush=True)


def heading(title: str, hits: Iterable[str]) -> None:
    print(f"{title}; per 100, in brackets standard errors")
    print(f"{'':<34}" + "".join(f"{column:>22}" for column in ("false alarms", *hits)))


# USENET ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Usenet(Public):
    """The paper's experiment, watched by the two detectors at all settings."""

    def detectors(self, positive: int = 1) -> dict[str, fr.detectors.Detector]:
        """The exact LFR at each level, FourRates at each budget."""
        labels = (0, 1)
        exact = {level_name(level): fr.LFR(DECAY, detect=level, labels=labels, positive=positive) for level in LEVELS}
        own = {budget_name(arl): fr.FourRates(arl, mix="alarm", labels=labels, positive=positive) for arl in BUDGETS}
        return {**exact, **own}


def level_name(level: float) -> str:
    return f"LFR({DECAY}, detect={level:g})"


def budget_name(arl: int) -> str:
    return f'FourRates({arl:_}, mix="alarm")'


def curve(scores: Mapping[str, Sequence[Score]], settings: Iterable[str]) -> Curve:
    names = tuple(settings)
    return Curve(
        names,
        np.array([[one.hits for one in scores[name]] for name in names], float),
        np.array([[one.false_alarms for one in scores[name]] for name in names], float),
    )


def usenet(dataset: str, orders: int, jobs: int) -> list[Row]:
    experiment = Usenet(dataset)
    try:
        for name in experiment.needs:
            paths(name, fetch=False)
        import sklearn  # noqa: F401
    except (DatasetError, ImportError) as error:
        print(f"{dataset} is left out: {error}", file=sys.stderr)
        return []
    with TemporaryDirectory() as folder:
        results = work.results([experiment], runs=orders, seed=0, jobs=jobs, folder=Path(folder))
    scores = tables.scores(experiment, results[experiment.name])
    exact, own = curve(scores, map(level_name, LEVELS)), curve(scores, map(budget_name, BUDGETS))
    found = f"found within {experiment.window}"
    heading(f"{dataset}, {orders} orders of the examples, {len(experiment.changes)} changes in each", [found])
    for one in (exact, own):
        show(one, {found: one.hits})
    return judge(exact, own, COUNTS[dataset], found, LEAST.get(dataset))


# Few positives -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """Up to the last positive that counts; where tpr falls, and the positive up to which a drift is soon."""

    y_true: np.ndarray
    y_pred: np.ndarray
    change: int
    soon: int

    @classmethod
    def draw(cls, seed: int) -> Stream:
        """The stream of this seed."""
        random = np.random.default_rng(seed)
        y_true = random.random(25_000) < 0.01
        positives = np.cumsum(y_true)
        chance = np.where(y_true, np.where(positives > POSITIVES, 0.4, 0.8), 0.02)
        y_pred = random.random(25_000) < chance
        counts = (POSITIVES + 1, POSITIVES + SOON, POSITIVES + LATER)
        change, soon, later = (int(np.argmax(positives == count)) for count in counts)
        return cls(y_true[: later + 1].astype(np.uint8), y_pred[: later + 1].astype(np.uint8), change, soon)


def few_positives(runs: int) -> list[Row]:
    """Hits within 20 and 40 positives, at the false alarms of the exact LFR: no fewer than it has."""
    streams = [Stream.draw(seed) for seed in range(runs)]

    def judged(detector: fr.LFR) -> np.ndarray:
        """False alarms, whether found soon, whether found at all: a column for each stream."""
        found = np.zeros((3, runs))
        for column, stream in enumerate(streams):
            detector.reset()
            drifts = [drift.at for drift in detector.update_many(stream.y_true, stream.y_pred)]
            after = [at for at in drifts if at >= stream.change]
            found[:, column] = len(drifts) - len(after), bool(after) and after[0] <= stream.soon, bool(after)
        return found

    names = (f"within {SOON} positives", f"within {LATER}")
    heading(f"1 % positives, tpr from 0.8 to 0.4 after {POSITIVES} of them, {runs} streams", names)
    families = (
        {level_name(level): fr.LFR(DECAY, detect=level) for level in LOWER},
        {budget_name(arl): fr.FourRates(arl, mix="alarm") for arl in LONGER},
    )
    curves = []
    for detectors in families:
        false, soon, later = np.stack([judged(one) for one in detectors.values()], axis=1)
        curves.append([Curve(tuple(detectors), hits, false) for hits in (soon, later)])
        show(curves[-1][0], dict(zip(names, (soon, later), strict=True)))
    allowed = [100 * float(curves[0][0].false[1].sum()) / runs]
    return [row for exact, own, name in zip(*curves, names, strict=True) for row in judge(exact, own, allowed, name)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="streams with few positives")
    parser.add_argument("--orders", type=int, default=400, help="orders of the examples of USENET")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, for USENET")
    options = parser.parse_args()
    begun = time.perf_counter()
    rows = {dataset: usenet(dataset, options.orders, options.jobs) for dataset in ("USENET1", "USENET2")}
    rows["few positives"] = few_positives(options.runs)
    keep("small_samples", rows)
    missed = sum(row["missed"] for judged in rows.values() for row in judged)
    print(f"{missed} marks missed; {time.perf_counter() - begun:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

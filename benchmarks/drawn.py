"""Streams drawn for the benchmarks, the limit they are held against, and the numbers written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fourrates as fr

RESULTS = Path(__file__).parents[1] / "docs/_site/results"


class Concept(NamedTuple):
    """A two-class concept: the share of positives, and both recalls."""

    positives: float
    tnr: float
    tpr: float


def draw(random: np.random.Generator, size: int, concept: Concept, to: Concept | None = None) -> tuple[Any, Any]:
    """Events of a concept, or of one that turns evenly into another."""
    part = 0.0 if to is None else np.arange(1, size + 1) / size
    now = [before + part * (after - before) for before, after in zip(concept, to or concept, strict=True)]
    truth = random.random(size) < now[0]
    right = random.random(size) < np.where(truth, now[2], now[1])
    return truth, truth == right


def first_alarm(
    detector: fr.FourRates | fr.LFR, random: np.random.Generator, after: Concept, most: int
) -> fr.Drift | None:
    """The first drift a detector finds in events of a concept."""
    taken = 0
    while taken < most:
        size = min(4_000 if taken < 8_000 else 20_000, most - taken)
        if found := detector.update_many(*draw(random, size, after), first_only=True):
            return found[0]
        taken += size
    return None


def steps(before: Concept, after: Concept) -> np.ndarray:
    """Log-likelihood ratios of an event, by [truth][right]."""
    mix = [(1 - before.positives, before.positives), (1 - after.positives, after.positives)]
    old, new = before[1:], after[1:]
    return np.array(
        [
            [
                np.log(mix[1][c] / mix[0][c]) + np.log((1 - new[c]) / (1 - old[c])),
                np.log(mix[1][c] / mix[0][c]) + np.log(new[c] / old[c]),
            ]
            for c in range(2)
        ]
    )


def limit(before: Concept, after: Concept, arl: int, seed: int = 0, streams: int = 2_000) -> float:
    """The median delay of a CUSUM that knows both concepts, at this run length.

    A CUSUM's run length is exponential but for its first events, so in `arl` events it stays below its threshold with
    probability 1 / e: that quantile of the largest value is the threshold.
    """
    random = np.random.default_rng(seed)
    ratio = steps(before, after).ravel()

    def moves(concept: Concept) -> np.ndarray:
        cells = np.array([(1 - concept.positives), concept.positives])[:, None] * np.array(
            [[1 - concept.tnr, concept.tnr], [1 - concept.tpr, concept.tpr]]
        )
        edges = np.cumsum(cells.ravel())
        return ratio[np.minimum(np.searchsorted(edges, random.random(streams)), 3)]

    statistic = np.zeros(streams)
    largest = np.zeros(streams)
    for _ in range(arl):
        statistic = np.maximum(statistic, 0) + moves(before)
        np.maximum(largest, statistic, out=largest)
    threshold = np.quantile(largest, np.exp(-1))
    statistic = np.where(statistic >= threshold, 0.0, statistic)
    delay = np.full(streams, np.inf)
    event = 0
    while np.isinf(delay).mean() > 0.45:
        event += 1
        statistic = np.maximum(statistic, 0) + moves(after)
        delay[(statistic >= threshold) & np.isinf(delay)] = event
    return float(np.median(delay))


def keep(name: str, numbers: Any) -> None:
    """Write what was measured to where the pages read it."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n")

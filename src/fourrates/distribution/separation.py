"""A linear support vector machine that tells old rows from new ones, and how it does on rows it has not learnt from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.distribution.examples import Array, Examples, crossed, together
from fourrates.distribution.two_sample import halves

OLD, NEW = -1, 1
MOST = 1e6  # rows that no C can tell apart are equal


def check_threshold(threshold: float) -> None:
    """Refuse a threshold that is none."""
    if not threshold > 0:
        raise ValueError(f"threshold {threshold}: a number of standard errors above 0 is accepted")


def machine(rows: Array, target: npt.NDArray[np.int64], threshold: float, seed: int) -> Any:
    """The 1-norm machine, most of whose weights are 0, so that features without a change do little harm.

    At C = 1 / (2 z sqrt(rows)) a feature has a weight of its own if old and new rows differ in it by more than about z
    standard errors. Where none does, C is doubled until one has: a rule without weights would have nothing to say.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    penalty = 1 / (2 * threshold * math.sqrt(len(rows)))
    while True:
        fitted = LinearSVC(penalty="l1", dual=False, C=penalty, class_weight="balanced", random_state=seed)
        with warnings.catch_warnings():
            # A rule that is not quite the best is as valid to compare by.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(rows, target)
        if fitted.coef_.any() or penalty > MOST:
            return fitted
        penalty *= 2


def held_out_margins(
    reference: Examples, latest: Examples, threshold: float, seed: int, random: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Margins of old and of new rows of one half, by a machine that learnt from the other half; then the reverse.

    A margin is the value of the linear rule over the length of its weights, positive where it says "new".
    """
    rows = crossed(together(reference, latest))
    old, new = rows[: len(reference)], rows[len(reference) :]
    pairs = list(zip(halves(random, len(old)), halves(random, len(new)), strict=True))
    for (learn_old, learn_new), (ask_old, ask_new) in (pairs, pairs[::-1]):
        target = np.repeat([OLD, NEW], [len(learn_old), len(learn_new)])
        fitted = machine(np.concatenate([old[learn_old], new[learn_new]]), target, threshold, seed)
        length = float(np.linalg.norm(fitted.coef_)) or 1.0
        yield fitted.decision_function(old[ask_old]) / length, fitted.decision_function(new[ask_new]) / length

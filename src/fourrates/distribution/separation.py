"""A linear support vector machine that tells old rows from new ones, and how it does on rows it has not learnt from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fourrates.distribution.examples import Array, Examples, crossed
from fourrates.distribution.two_sample import halves

OLD, NEW = -1, 1


def machine(penalty: float, seed: int) -> Any:
    """The 1-norm machine: most of its weights are 0, so that features without a change do little harm."""
    from sklearn.svm import LinearSVC

    return LinearSVC(penalty="l1", dual=False, C=penalty, class_weight="balanced", random_state=seed, max_iter=2_000)


def held_out_margins(
    reference: Examples, latest: Examples, penalty: float, seed: int, random: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Margins of old and of new rows of one half, by a machine that learnt from the other half; then the reverse.

    A margin is the value of the linear rule over the length of its weights, positive where it says "new"; 0 for all
    rows if the machine found nothing to tell old from new by.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    rows = crossed(reference.followed_by(latest))
    old, new = rows[: len(reference)], rows[len(reference) :]
    pairs = list(zip(halves(random, len(old)), halves(random, len(new)), strict=True))
    for (learn_old, learn_new), (ask_old, ask_new) in (pairs, pairs[::-1]):
        target = np.repeat([OLD, NEW], [len(learn_old), len(learn_new)])
        with warnings.catch_warnings():
            # A rule that is not quite the best is as valid to compare by.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = machine(penalty, seed).fit(np.concatenate([old[learn_old], new[learn_new]]), target)
        length = float(np.linalg.norm(fitted.coef_)) or np.inf
        margins = [fitted.decision_function(part) / length for part in (old[ask_old], new[ask_new])]
        yield margins[0], margins[1]

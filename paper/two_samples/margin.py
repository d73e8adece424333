"""The margin and the error test of Dries and Rueckert: how well a linear rule separates new rows from old ones."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.distribution import Array
from paper.two_samples.two_sample import Comparison, Sample, TwoSampleTest, both_ways, halves, permuted

OLD, NEW = -1, 1
MOST = 1e6  # rows that no C separates are equal


@dataclass(eq=False, repr=False, kw_only=True)
class _ByLinearRule(TwoSampleTest):
    """Compares margins given to one half of the rows by a machine trained on the other half."""

    threshold: float = 1.2
    permutations: int = 999

    @abstractmethod
    def _held_against(self, old: Array, new: Array, random: np.random.Generator) -> Comparison:
        """Compare the margins of old and of new rows."""

    def __post_init__(self) -> None:
        if not self.threshold > 0:
            raise ValueError(f"threshold {self.threshold}: a number of standard errors above 0 is accepted")

    def _compare(self, reference: Sample, latest: Sample) -> Comparison:
        random = np.random.default_rng(self.seed)
        margins = held_out_margins(reference, latest, self.threshold, self.seed, random)
        return both_ways(*(self._held_against(old, new, random) for old, new in margins))


class MarginTest(_ByLinearRule):
    """Whether a linear support vector machine gives new rows larger margins than old ones in the mean.

    A 1-norm machine is trained on one half of old and new rows; the mean margins of the other half are compared, with a
    p-value by permutation. Then the halves are exchanged.

    Parameters
    ----------
    threshold : float
        Standard errors by which a feature of old and new rows must differ, about, to have a weight in the machine.
    permutations : int
        For each p-value.
    seed : int
        Of all random numbers.

    Notes
    -----
    Only the paper's abstract could be read, which has the 1-norm machine and the mean margins. Chosen here: its C,
    halves with a permutation, and labels as columns with their products with the features. A linear rule on features
    and label alone cannot see P(y | X) change.

    References
    ----------
    A. Dries and U. Rueckert, "Adaptive Concept Drift Detection", Statistical Analysis and Data Mining 2(5-6), 2009.

    Examples
    --------
    The feature that decides is another one. Neither P(X) nor P(y) has changed:

    >>> import numpy as np
    >>> from paper.two_samples import MarginTest
    >>> random = np.random.default_rng(1)
    >>> old, new = random.normal(size=(2, 200, 10))
    >>> test = MarginTest().fit(old, old[:, 0] > 0)
    >>> test.test(new, new[:, 0] > 0).p_value > 0.05
    True
    >>> test.test(new, new[:, 1] > 0).p_value
    0.002
    """

    def _held_against(self, old: Array, new: Array, random: np.random.Generator) -> Comparison:
        return Comparison(float(_ahead(old, new)), permuted(_ahead, old, new, self.permutations, random))


def _ahead(old: Array, new: Array, axis: int = -1) -> Any:
    """How much larger the margins of the new rows are in the mean."""
    return new.mean(axis=axis) - old.mean(axis=axis)


class ErrorTest(_ByLinearRule):
    """Whether a linear support vector machine separates old rows from new ones better than chance allows.

    A 1-norm machine is trained on one half of both; its 0-1 error on the other half has a p-value by permutation. Then
    the halves are exchanged. Permutations with equal errors are ordered by their mean margins, as counts alone would be
    too coarse to use up the level.

    Parameters
    ----------
    threshold, permutations, seed
        As of :class:`MarginTest`.

    Notes
    -----
    Only the paper's abstract could be read, which has the zero-one error of a machine. For the choices made here see
    :class:`MarginTest`.

    References
    ----------
    A. Dries and U. Rueckert, "Adaptive Concept Drift Detection", Statistical Analysis and Data Mining 2(5-6), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.two_samples import ErrorTest
    >>> random = np.random.default_rng(1)
    >>> old, new = random.normal(size=(2, 200, 10))
    >>> found = ErrorTest().fit(old, old[:, 0] > 0).test(new, new[:, 1] > 0)
    >>> print(f"{found.statistic:.2f} right where chance has 0.50, p-value {found.p_value:.3f}")
    0.76 right where chance has 0.50, p-value 0.002
    """

    def _held_against(self, old: Array, new: Array, random: np.random.Generator) -> Comparison:
        right = ((old < 0).mean() + (new > 0).mean()) / 2
        return Comparison(float(right), permuted(_right, old, new, self.permutations, random))


def _right(old: Array, new: Array, axis: int = -1) -> Any:
    """The mean share of rows classified right, old and new; the margins only break ties."""
    right = (old < 0).mean(axis=axis) + (new > 0).mean(axis=axis)
    ahead = np.tanh(new).mean(axis=axis) - np.tanh(old).mean(axis=axis)  # within -2 and 2
    return right + ahead / (8 * old.shape[axis] * new.shape[axis])


def machine(rows: Array, target: npt.NDArray[np.int64], threshold: float, seed: int) -> Any:
    """The 1-norm machine, most of whose weights are 0, so that features without a change do little harm.

    At C = 1 / (2 z sqrt(rows)) a feature gets a weight if old and new rows differ in it by more than about z standard
    errors. If none does, C is doubled until one has, as a rule without weights is useless.
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
    reference: Sample, latest: Sample, threshold: float, seed: int, random: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Margins of old and new rows of one half (positive: "new") by a machine trained on the other; then the reverse."""
    rows = (reference + latest).crossed()
    old, new = rows[: len(reference)], rows[len(reference) :]
    pairs = list(zip(halves(random, len(old)), halves(random, len(new)), strict=True))
    for (learn_old, learn_new), (ask_old, ask_new) in (pairs, pairs[::-1]):
        target = np.repeat([OLD, NEW], [len(learn_old), len(learn_new)])
        fitted = machine(np.concatenate([old[learn_old], new[learn_new]]), target, threshold, seed)
        length = float(np.linalg.norm(fitted.coef_)) or 1.0
        yield fitted.decision_function(old[ask_old]) / length, fitted.decision_function(new[ask_new]) / length

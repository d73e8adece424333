"""Changes of the joint distribution of features and label, P(X, y), in a whole array, without a classifier.

E-divisive of Matteson and James makes one split after the other, by energy statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.kernel.energy import best_split

__all__ = ["EDivisive"]

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Segment:
    """Rows without a change so far, their best split, and the best one of each permutation."""

    start: int
    stop: int
    statistic: float
    split: int  # the first row of the second part; 0 if the segment is too short
    permuted: Array


@dataclass(eq=False, kw_only=True)
class EDivisive:
    """Finds the first row of every new distribution in an array, however many there are.

    The best split of each segment is the one whose two parts have the largest energy distance, over all places tau of
    the split and all ends kappa of the second part::

        n m / (n + m) * (2 E|X - Y|^alpha - E|X - X'|^alpha - E|Y - Y'|^alpha)

    The best split of all segments is accepted if its p-value is at most `level`. Rows are permuted within the segments,
    and the p-value is (1 + the permutations with a split as good) / (`permutations` + 1). Then its two parts are
    segments, and so on, until a split is not accepted.

    Parameters
    ----------
    alpha : float
        In (0, 2]; below 2 every change of distribution is seen, with 2 only one of the means.
    min_size : int
        The fewest rows of a segment; at least 2.
    permutations : int
        For each p-value.
    level : float
        The largest p-value of a split that is accepted.
    seed : int
        Seed of the permutations, so the same rows give the same p-values.

    Attributes
    ----------
    change_points_ : array of int
        The first row of each new segment, in order.
    p_values_ : array of float
        Of each of them.
    statistics_ : array of float
        Of each of them.
    rejected_p_value_ : float or None
        Of the split that was not accepted; None if every segment was too short for another.

    Notes
    -----
    Time goes with `permutations` times the square of the rows. A segment's permutations are made once and serve until
    it is split. Distances are not kept, so memory goes with the rows.

    Without labels the features are used as they are, as in the paper; bring them to one scale yourself if needed. With
    labels every column is scaled, the label's as well.

    References
    ----------
    D. S. Matteson and N. A. James, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data",
    Journal of the American Statistical Association 109(505), 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.distribution import EDivisive
    >>> random = np.random.default_rng(0)
    >>> rows = np.concatenate([random.normal(size=100), random.normal(3, size=100), random.normal(3, 4, size=100)])
    >>> changes = EDivisive().fit(rows)
    >>> changes.change_points_, changes.p_values_
    (array([100, 200]), array([0.005, 0.005]))
    """

    alpha: float = 1.0
    min_size: int = 30
    permutations: int = 199
    level: float = 0.05
    seed: int = 0

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Find the changes.

        Parameters
        ----------
        X : array, rows by features
            In the order of time; a flat array is one feature.
        y : array of labels, optional
            With them the changes are those of P(X, y).
        """
        self._check_settings()
        features, labels = check(X, y)
        if len(features) < 2 * self.min_size:
            raise ValueError(
                f"X has {len(features)} rows; a split needs two segments of min_size {self.min_size}, "
                f"{2 * self.min_size} rows"
            )
        check_varied(features, labels)
        points = features if labels is None else joined(features, labels)
        splitter = _Splitter(points, self.alpha, self.min_size, self.permutations, self.seed)
        segments = [splitter.segment(0, len(points))]
        accepted: dict[int, tuple[float, float]] = {}
        self.rejected_p_value_: float | None = None
        while (best := max(segments, key=lambda segment: segment.statistic)).split:
            p_value = _p_value(best.statistic, segments)
            if p_value > self.level:
                self.rejected_p_value_ = p_value
                break
            accepted[best.split] = (p_value, best.statistic)
            segments.remove(best)
            segments += [splitter.segment(best.start, best.split), splitter.segment(best.split, best.stop)]
        order = sorted(accepted)
        self.change_points_ = np.array(order, dtype=np.int64)
        self.p_values_ = np.array([accepted[at][0] for at in order])
        self.statistics_ = np.array([accepted[at][1] for at in order])
        return self

    def _check_settings(self) -> None:
        if not 0 < self.alpha <= 2:
            raise ValueError(f"alpha {self.alpha} is not in (0, 2]")
        if self.min_size < 2:
            raise ValueError(f"min_size {self.min_size}: distances within a segment need at least 2 rows")
        if not 0 < self.level < 1:
            raise ValueError(f"level {self.level} is not in (0, 1)")
        if self.permutations < 1:
            raise ValueError(f"permutations {self.permutations}: a p-value needs at least 1")


def _p_value(statistic: float, segments: list[_Segment]) -> float:
    """The p-value of the best split of all segments, by one permutation of each at a time."""
    permuted = np.max([segment.permuted for segment in segments], axis=0)
    return float((1 + np.count_nonzero(permuted >= statistic)) / (permuted.size + 1))


class _Splitter:
    """The points, and the best split of any segment of them."""

    def __init__(self, points: Array, alpha: float, min_size: int, permutations: int, seed: int) -> None:
        self._points, self._alpha, self._min_size, self._permutations = points, alpha, min_size, permutations
        self._random = np.random.default_rng(seed)
        self._work = np.empty((6, len(points) + 1))

    def segment(self, start: int, stop: int) -> _Segment:
        """The best split of the rows from one to before another, and their permutations."""
        order = np.arange(start, stop)
        if stop - start < 2 * self._min_size:
            return _Segment(start, stop, -np.inf, 0, np.full(self._permutations, -np.inf))
        statistic, split = self._best(order)
        permuted = [self._best(self._random.permutation(order))[0] for _ in range(self._permutations)]
        return _Segment(start, stop, statistic, start + split, np.array(permuted))

    def _best(self, order: npt.NDArray[np.int64]) -> tuple[float, int]:
        statistic, split, _ = best_split(self._points[order], self._alpha, self._min_size, self._work)
        return statistic, split


def check(X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Labels | None]:
    """Features and labels as arrays, or an error that names the problem and its place."""
    try:
        features = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"X is not a table of numbers: {error}") from None
    if features.ndim == 1:
        features = features[:, None]
    if features.ndim != 2 or features.shape[1] == 0:
        raise ValueError(f"X has the shape {features.shape}; rows by features are accepted, one feature at least")
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        row, column = bad[0]
        value = features[row, column]
        raise ValueError(f"X is {value} at row {row}, feature {column}; {len(bad)} values are not finite")
    return features, None if y is None else _labels(y, len(features))


def _labels(y: npt.ArrayLike, rows: int) -> Labels:
    labels = np.asarray(y)
    if labels.shape != (rows,):
        raise ValueError(f"y has the shape {labels.shape}; X has {rows} rows, and there must be one label for each")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"y is {labels[~np.isfinite(labels)][0]} at row {np.argmin(np.isfinite(labels))}")
    return labels


def check_varied(features: Array, labels: Labels | None) -> None:
    """An error if a feature is constant or the labels are of one class."""
    constant = np.flatnonzero(np.ptp(features, axis=0) == 0)
    if len(constant):
        others = f", and so are {len(constant) - 1} others" if len(constant) > 1 else ""
        raise ValueError(
            f"X is constant: feature {constant[0]} is always {features[0, constant[0]]:g}{others}; leave it out"
        )
    if labels is not None and (classes := np.unique(labels)).size == 1:
        raise ValueError(f"y has one class only: {classes.tolist()[0]!r}; leave y out, or take more rows")


def joined(features: Array, labels: Labels | None) -> Array:
    """Features and label (a column for each class if there are more than two), each with mean 0 and deviation 1."""
    columns = features if labels is None else np.concatenate([features, indicators(labels)], axis=1)
    return standardised(columns)


def indicators(labels: Labels) -> Array:
    """A column for each class; one column for two classes."""
    classes, codes = np.unique(labels, return_inverse=True)
    columns: Array = np.eye(classes.size)[codes]
    return columns[:, 1:] if classes.size == 2 else columns


def standardised(columns: Array) -> Array:
    """Each column with mean 0 and deviation 1; a constant one becomes 0."""
    deviation = columns.std(axis=0)
    scaled: Array = (columns - columns.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return scaled

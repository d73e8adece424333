"""E-divisive of Matteson and James: the changes of a whole array, one split after the other, by energy statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fourrates.distribution.examples import Array, Examples, check, joined, together
from fourrates.distribution.watch import Comparison, WindowWatch
from fourrates.kernel.energy import best_split, distances

MEMORY = 2**28  # bytes for distances; beyond 5,792 rows each permutation computes them again


@dataclass(frozen=True, slots=True)
class _Segment:
    """Rows without a change so far, their best split, and the best one of each permutation."""

    start: int
    stop: int
    statistic: float
    split: int  # the first row of the second part; 0 if the segment is too short
    permuted: Array


@dataclass(eq=False, repr=False, kw_only=True)
class EDivisive(WindowWatch):
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
    level, window, step, seed
        As of :class:`WindowWatch`; `level` is also that at which `fit` accepts a split.

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
    it is split. Distances are kept for up to 5,792 rows and computed again beyond that, so that memory is bounded.

    Without labels the features are used as they are, as in the paper; bring them to one scale yourself if needed. With
    labels every column is scaled, the label's as well. In a stream the best split of both windows together is tested,
    which also dates the start of the change.

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
    >>> found = EDivisive().fit(rows)
    >>> found.change_points_, found.p_values_
    (array([100, 200]), array([0.005, 0.005]))

    Along a stream that changes at 1,000:

    >>> stream = np.concatenate([random.normal(size=(1_000, 5)), random.normal(0.7, size=(1_000, 5))])
    >>> [(alarm.at, alarm.started) for alarm in EDivisive(level=0.01).update_many(stream)]
    [(1199, 1000)]
    """

    alpha: float = 1.0
    min_size: int = 30
    permutations: int = 199

    @property
    def _least(self) -> int:
        return self.min_size

    def _check_settings(self) -> None:
        if not 0 < self.alpha <= 2:
            raise ValueError(f"alpha {self.alpha} is not in (0, 2]")
        if self.min_size < 2:
            raise ValueError(f"min_size {self.min_size}: distances within a segment need at least 2 rows")
        super()._check_settings()

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
        examples = check(X, y)
        if len(examples) < 2 * self.min_size:
            raise ValueError(
                f"X has {len(examples)} rows; a split needs two segments of min_size {self.min_size}, "
                f"{2 * self.min_size} rows"
            )
        splitter = self._splitter(together(examples))
        segments = [splitter.segment(0, len(examples))]
        found: dict[int, tuple[float, float]] = {}
        self.rejected_p_value_: float | None = None
        while True:
            best = max(segments, key=lambda segment: segment.statistic)
            if not best.split:
                break
            p_value = _p_value(best.statistic, segments)
            if p_value > self.level:
                self.rejected_p_value_ = p_value
                break
            found[best.split] = (p_value, best.statistic)
            segments = [segment for segment in segments if segment is not best]
            segments += [splitter.segment(best.start, best.split), splitter.segment(best.split, best.stop)]
        order = sorted(found)
        self.change_points_ = np.array(order, dtype=np.int64)
        self.p_values_ = np.array([found[at][0] for at in order])
        self.statistics_ = np.array([found[at][1] for at in order])
        self.n_features_in_ = examples.features.shape[1]
        return self

    def _splitter(self, examples: Examples) -> _Splitter:
        points = examples.features if examples.labels is None else joined(examples)
        return _Splitter(np.ascontiguousarray(points), self.alpha, self.min_size, self.permutations, self.seed)

    def _compare(self, reference: Examples, latest: Examples) -> Comparison:
        """The first split of both windows together."""
        both = together(reference, latest)
        whole = self._splitter(both).segment(0, len(both))
        return Comparison(whole.statistic, _p_value(whole.statistic, [whole]), whole.split)


def _p_value(statistic: float, segments: list[_Segment]) -> float:
    """The p-value of the best split of all segments, by one permutation of each at a time."""
    permuted = np.max([segment.permuted for segment in segments], axis=0)
    return float((1 + np.count_nonzero(permuted >= statistic)) / (permuted.size + 1))


class _Splitter:
    """The points, their distances if there is room, and the best split of any segment of them."""

    def __init__(self, points: Array, alpha: float, min_size: int, permutations: int, seed: int) -> None:
        self._points, self._alpha, self._min_size, self._permutations = points, alpha, min_size, permutations
        self._random = np.random.default_rng(seed)
        rows = len(points)
        kept = rows if 8 * rows * rows <= MEMORY else 0
        self._kept = np.empty((kept, kept))
        if kept:
            distances(points, alpha, self._kept)
        self._work = np.empty((6, rows + 1))

    def segment(self, start: int, stop: int) -> _Segment:
        """The best split of the rows from one to before another, and their permutations."""
        order = np.arange(start, stop)
        if stop - start < 2 * self._min_size:
            return _Segment(start, stop, -np.inf, 0, np.full(self._permutations, -np.inf))
        statistic, split, _ = self._best(order)
        permuted = [self._best(self._random.permutation(order))[0] for _ in range(self._permutations)]
        return _Segment(start, stop, statistic, start + split, np.array(permuted))

    def _best(self, order: npt.NDArray[np.int64]) -> tuple[float, int, int]:
        given = self._points, self._kept, order, self._alpha, self._min_size, self._work
        statistic, split, size = best_split(*given)
        return statistic, split, size

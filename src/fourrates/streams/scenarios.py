"""Pairs drawn from one confusion matrix, then from another, as in the paper's six scenarios or any of yours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Pairs = tuple[npt.NDArray[np.unsignedinteger[Any]], npt.NDArray[np.unsignedinteger[Any]]]

ROUNDING = 1e-9  # how far from 1 the sum of a matrix may be


@dataclass(frozen=True, slots=True)
class Scenario:
    """A concept that changes once.

    Attributes
    ----------
    before, after : K x K arrays or nested sequences; kept as tuples
        Probabilities by true class and then by predicted class (the paper prints the transpose). The labels are 0,
        ..., K - 1.

    Examples
    --------
    Three classes, of which the last is forgotten:

    >>> from fourrates.streams import Scenario
    >>> sound = [[0.3, 0.02, 0.02], [0.02, 0.3, 0.02], [0.02, 0.02, 0.28]]
    >>> blind = [[0.3, 0.02, 0.02], [0.02, 0.3, 0.02], [0.15, 0.15, 0.02]]
    >>> y_true, y_pred = Scenario(sound, blind).stream(seed=1)
    >>> third = y_true == 2
    >>> recall = (y_pred == 2)[third]
    >>> half = third[:5000].sum()
    >>> f"recall {recall[:half].mean():.2f} before the change, {recall[half:].mean():.2f} after it"
    'recall 0.88 before the change, 0.06 after it'
    """

    before: npt.ArrayLike
    after: npt.ArrayLike

    def __post_init__(self) -> None:
        matrices = {name: _probabilities(getattr(self, name), name) for name in ("before", "after")}
        before, after = (matrix.shape for matrix in matrices.values())
        if before != after:
            raise ValueError(f"before has shape {before}, after has {after}: a change keeps the classes")
        for name, matrix in matrices.items():
            object.__setattr__(self, name, tuple(map(tuple, matrix.tolist())))

    def stream(self, seed: int, length: int = 10_000, change: int | None = None, width: int = 0) -> Pairs:
        """Draw pairs (y_true, y_pred).

        Parameters
        ----------
        seed : int
            Same seed, same stream. Streams of one seed that differ only in `width` differ only in the `width` events
            from the change on.
        length : int
            How many.
        change : int, optional
            The first event of the new concept; half of `length` if not given, none if it is `length`.
        width : int
            0 for an abrupt change. Otherwise it is gradual, and over `width` events the i-th, counted from 1, is
            from the new concept with probability i / (width + 1). If the stream ends sooner, the rise is cut.

        Examples
        --------
        >>> from fourrates.streams import SCENARIOS
        >>> y_true, y_pred = SCENARIOS["Balance1"].stream(seed=1)
        >>> right = y_true == y_pred
        >>> f"{right[:5000].mean():.2f} before the change, {right[5000:].mean():.2f} after it"
        '0.80 before the change, 0.71 after it'
        """
        change = length // 2 if change is None else change
        if not 0 <= change <= length:
            raise ValueError(f"change {change} is not in 0, ..., {length}, the length of the stream")
        if width < 0:
            raise ValueError(f"width {width} is negative")
        random = np.random.default_rng(seed)
        draw = random.random(length)
        new = np.arange(length) >= change
        rising = np.arange(1, min(width, length - change) + 1) / (width + 1)
        new[change : change + rising.size] = random.random(rising.size) < rising
        cells = np.empty(length, np.intp)
        for part, matrix in ((~new, self.before), (new, self.after)):
            cells[part] = np.searchsorted(edges_of(np.asarray(matrix, float)), draw[part], side="right")
        classes = len(np.asarray(self.before))
        kind = np.min_scalar_type(classes - 1)
        return (cells // classes).astype(kind), (cells % classes).astype(kind)


def _probabilities(given: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    try:
        matrix = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a matrix of numbers: {given!r}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"{name} has shape {matrix.shape}, not K x K with two classes or more")
    if not (matrix >= 0).all():  # nan is not, either
        true, pred = np.argwhere(~(matrix >= 0))[0].tolist()
        raise ValueError(f"{name}[{true}][{pred}] is {matrix[true, pred]:g}, not a probability")
    if not abs(matrix.sum() - 1) <= ROUNDING:
        raise ValueError(f"{name} sums to {matrix.sum():.12g}, not to 1")
    return matrix


def edges_of(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The boundaries of the cells for a draw from [0, 1); the last possible one gets the rounding error."""
    edges = np.cumsum(matrix)
    edges[np.flatnonzero(matrix)[-1] :] = np.inf
    return edges


SCENARIOS = {
    # Accuracy drops, tpr stays.
    "Balance1": Scenario(((0.4, 0.1), (0.1, 0.4)), ((0.3, 0.2), (0.1, 0.4))),
    # Accuracy stays, all four rates move. The paper calls it gradual and gives no width; see `width` of `stream`.
    "Balance2": Scenario(((0.35, 0.15), (0.05, 0.45)), ((0.4, 0.1), (0.1, 0.4))),
    # Accuracy rises, tpr stays.
    "Balance3": Scenario(((0.3, 0.2), (0.2, 0.3)), ((0.4, 0.1), (0.2, 0.3))),
    # From balanced to 9:1; tpr, ppv and so F1 stay.
    "Imbalance1": Scenario(((1 / 3, 1 / 6), (1 / 6, 1 / 3)), ((13 / 15, 1 / 30), (1 / 30, 1 / 15))),
    # Accuracy and balance stay, tpr falls from 0.75 to 0.25.
    "Imbalance2": Scenario(((0.65, 0.15), (0.05, 0.15)), ((0.75, 0.05), (0.15, 0.05))),
    # tpr, ppv and accuracy fall. The paper prints one matrix twice; this pair is a reconstruction that fits its tables.
    "Imbalance3": Scenario(((0.7, 0.05), (0.05, 0.2)), ((0.6, 0.15), (0.15, 0.1))),
}
"""The paper's scenarios by its names for them."""

"""The rates of a confusion matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Rate(NamedTuple):
    """A rate under a stable concept, as its share of events and its value."""

    share: float
    value: float


def probabilities(confusion: npt.ArrayLike, classes: int) -> npt.NDArray[np.float64]:
    """A confusion matrix of counts or probabilities, by true class and then by predicted class, as probabilities."""
    matrix = np.asarray(confusion, float)
    if matrix.shape != (classes, classes):
        raise ValueError(f"the confusion matrix has shape {matrix.shape}, not {(classes, classes)}")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all() and matrix.sum() > 0):
        raise ValueError("the confusion matrix holds something other than probabilities or counts")
    return np.asarray(matrix / matrix.sum())


def rates(matrix: npt.NDArray[np.float64]) -> list[Rate]:
    """The 2K rates of a matrix of probabilities, the recall of each class, then the precision of each."""
    touched = np.concatenate([matrix.sum(1), matrix.sum(0)])
    right = np.tile(matrix.diagonal(), 2)
    return [
        Rate(float(share), float(ones / share) if share else 1.0) for share, ones in zip(touched, right, strict=True)
    ]

"""What counts as better: how much it matters that an example of each class is predicted right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fourrates.kernel import votes

if TYPE_CHECKING:
    import numpy.typing as npt

    Weights = npt.NDArray[np.float64]

Measure = Literal["mean", "accuracy", "f1", "g_mean"]
MEASURES: tuple[Measure, ...] = ("mean", "accuracy", "f1", "g_mean")


def check_measure(measure: str) -> Measure:
    """A measure there is, or an error."""
    for one in MEASURES:
        if measure == one:
            return one
    raise ValueError(f"measure {measure!r} is not one of {MEASURES}")


def class_weights(counts: Weights, measure: Measure) -> Weights:
    """What an example of each class is worth, for counts of true, predicted and right examples by class.

    A measure of the whole stream is not a sum over examples, but the next example moves it by an amount that is known:
    its slope at what was predicted so far. Two models whose next predictions differ are compared by that. An example of
    class c that is predicted right rather than wrong is worth

    - 1 for *accuracy*;
    - 1 / (right predictions of class c) for the *G-mean*, the geometric mean of the recalls;
    - for *F1* of the positive class, f so far: 2 - f if it is positive and f if it is not. With more than two classes
      the mean F1 of all of them counts;
    - for their *mean* the mean of these, each brought to one scale.

    The scale is the one at which the sum over examples varies as much as its mean: with weights of 1 it is 1, and where
    a rare class counts a hundred times as much as a common one, no single example decides.

    Examples
    --------
    One in ten is positive, and of those half are found:

    >>> import numpy as np
    >>> from fourrates.relearn.measure import class_weights
    >>> counts = np.array([[900.0, 100.0], [900.0, 100.0], [850.0, 50.0]])
    >>> for measure in ("accuracy", "f1", "g_mean", "mean"):
    ...     print(measure, class_weights(counts, measure).round(2))
    accuracy [1. 1.]
    f1 [0.67 1.99]
    g_mean [0.09 1.49]
    mean [0.46 2.07]
    """
    found = np.empty(counts.shape[1:])
    votes.class_weights(_records(counts), MEASURES.index(measure), found.reshape(-1, counts.shape[-1]))
    return found


def values(counts: Weights, measure: Measure) -> Weights:
    """The measure itself, for counts of true, predicted and right examples by class.

    A class that has not come yet is left out of the recalls.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.relearn.measure import values
    >>> counts = np.array([[900.0, 100.0], [900.0, 100.0], [850.0, 50.0]])
    >>> [float(values(counts, measure).round(3)) for measure in ("accuracy", "f1", "g_mean", "mean")]
    [0.9, 0.5, 0.687, 0.696]
    """
    found = np.empty(counts.shape[1:-1])
    votes.values(_records(counts), MEASURES.index(measure), found.reshape(-1))
    return found


def _records(counts: Weights) -> Weights:
    """One after the other, by kind of count and class."""
    return np.ascontiguousarray(counts, np.float64).reshape(len(counts), -1, counts.shape[-1])

"""What counts as better: how much it matters that an example of each class is predicted right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes

    Weights = npt.NDArray[np.float64]

Measure = Literal["mean", "accuracy", "f1", "g_mean"]
MEASURES: tuple[Measure, ...] = ("mean", "accuracy", "f1", "g_mean")


def check_measure(measure: str) -> Measure:
    """A measure there is, or an error."""
    for one in MEASURES:
        if measure == one:
            return one
    raise ValueError(f"measure {measure!r} is not one of {MEASURES}")


class Tally:
    """Counts what was predicted so far, and says what an example of each class is worth for a measure.

    A measure of the whole stream is not a sum over examples, but the next example moves it by an amount that is known:
    its slope at what was predicted so far. Two models whose next predictions differ are compared by that. An example of
    class c that is predicted right rather than wrong is worth

    - 1 for *accuracy*;
    - 1 / (right predictions of class c) for the *G-mean*, the geometric mean of the recalls;
    - for *F1* of the positive class, f so far: 2 - f if it is positive and f if it is not. With more than two classes
      the mean F1 of all of them counts;
    - for their *mean* the mean of these, each brought to one scale.

    Parameters
    ----------
    classes : int
    measure : {"mean", "accuracy", "f1", "g_mean"}

    Examples
    --------
    One in ten is positive, and of those half are found:

    >>> import numpy as np
    >>> from fourrates.relearn.measure import Tally
    >>> truths, guesses = np.repeat([0, 0, 1, 1], [850, 50, 50, 50]), np.repeat([0, 1, 0, 1], [850, 50, 50, 50])
    >>> for measure in ("accuracy", "f1", "g_mean", "mean"):
    ...     tally = Tally(2, measure)
    ...     tally.add(truths, guesses)
    ...     print(measure, tally.worth().round(2))
    accuracy [1. 1.]
    f1 [0.67 1.99]
    g_mean [0.09 1.49]
    mean [0.46 2.07]
    """

    def __init__(self, classes: int, measure: Measure) -> None:
        self.measure = measure
        self._counts = np.zeros((3, classes), np.int64)  # true, predicted, and right, by class

    def copy(self) -> Tally:
        """One that goes on counting by itself."""
        other = Tally(self._counts.shape[1], self.measure)
        other._counts = self._counts.copy()
        return other

    def add(self, truths: Codes, guesses: npt.NDArray[np.int32]) -> None:
        """Count predictions."""
        size = self._counts.shape[1]
        for row, codes in enumerate((truths, guesses, truths[truths == guesses])):
            self._counts[row] += np.bincount(codes, minlength=size)

    def add_one(self, truth: int, guess: int) -> None:
        """Count one prediction."""
        self._counts[0, truth] += 1
        self._counts[1, guess] += 1
        self._counts[2, truth] += truth == guess

    def worth(self) -> Weights:
        """What the next example is worth, by class."""
        if self.measure == "accuracy":
            return np.ones(self._counts.shape[1])
        return class_weights(self._counts, self.measure)

    def stakes(self) -> Weights:
        """What to multiply the probability of each class by before the largest is predicted.

        For F1 and the G-mean what an example of the class is worth: that maximises what the next one adds to the
        measure. For accuracy, and for the mean, which leaves that choice to the models, the most probable class is
        predicted.
        """
        return self.worth() if self.measure in ("f1", "g_mean") else np.ones(self._counts.shape[1])


def class_weights(counts: npt.NDArray[np.int64], measure: Measure) -> Weights:
    """What an example of each class is worth, for counts of true, predicted and right examples by class.

    The scale is the one at which the sum over examples varies as much as its mean: with weights of 1 it is 1, and where
    a rare class counts a hundred times as much as a common one, no single example decides.
    """
    true, predicted, right = counts + 1.0
    shares = true / true.sum(axis=-1, keepdims=True)
    found = []
    if measure in ("mean", "accuracy"):
        found.append(np.ones_like(shares))
    if measure in ("mean", "g_mean"):
        found.append(_scaled(1 / right, shares))
    if measure in ("mean", "f1"):
        found.append(_scaled(_f1_weights(true, predicted, right), shares))
    weights = np.mean(found, axis=0)
    weights *= (shares * weights).sum(axis=-1, keepdims=True) / (shares * weights**2).sum(axis=-1, keepdims=True)
    return np.asarray(weights, float)


def _f1_weights(true: Weights, predicted: Weights, right: Weights) -> Weights:
    """The slope of F1, or of the mean of those of more than two classes."""
    classes = true.shape[-1]
    f = 2 * right / (true + predicted)
    watched = np.arange(classes) > 0 if classes == 2 else np.ones(classes, bool)
    own, other = watched * (2 - f) / (true + predicted), watched * f / (true + predicted)
    return np.asarray(own + (other.sum(axis=-1, keepdims=True) - other) / (classes - 1))


def _scaled(weights: Weights, shares: Weights) -> Weights:
    """Brought to a mean of 1 over the examples."""
    return np.asarray(weights / (shares * weights).sum(axis=-1, keepdims=True))

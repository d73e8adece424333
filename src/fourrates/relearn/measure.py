"""What counts as better: how much it matters that an example of each class is predicted right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

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
    if measure == "accuracy":
        return np.ones(counts.shape[1:])
    true, predicted, right = counts + 1.0
    shares = true / true.sum(axis=-1, keepdims=True)
    if measure == "g_mean":
        weights = _scaled(1 / right, shares)
    elif measure == "f1":
        weights = _scaled(_f1_weights(true, predicted, right), shares)
    else:
        weights = (1 + _scaled(1 / right, shares) + _scaled(_f1_weights(true, predicted, right), shares)) / 3
    shared = shares * weights
    weights *= shared.sum(axis=-1, keepdims=True) / (shares * weights**2).sum(axis=-1, keepdims=True)
    return weights


def _f1_weights(true: Weights, predicted: Weights, right: Weights) -> Weights:
    """The slope of F1, or of the mean of those of more than two classes."""
    classes = true.shape[-1]
    sizes = true + predicted
    f = 2 * right / sizes
    if classes == 2:
        return np.concatenate([f[..., 1:], 2 - f[..., 1:]], axis=-1) / sizes[..., 1:]
    own, other = (2 - f) / sizes, f / sizes
    return np.asarray(own + (other.sum(axis=-1, keepdims=True) - other) / (classes - 1))


def _scaled(weights: Weights, shares: Weights) -> Weights:
    """Brought to a mean of 1 over the examples."""
    return np.asarray(weights / (shares * weights).sum(axis=-1, keepdims=True))


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
    true, predicted, right = counts
    found = []
    if measure in ("mean", "accuracy"):
        found.append(right.sum(axis=-1) / np.maximum(true.sum(axis=-1), 1))
    if measure in ("mean", "f1"):
        f = 2 * right / np.maximum(true + predicted, 1)
        found.append(f[..., 1] if f.shape[-1] == 2 else f.mean(axis=-1))
    if measure in ("mean", "g_mean"):
        recalls = np.where(true > 0, right / np.maximum(true, 1), 1)
        found.append(recalls.prod(axis=-1) ** (1 / true.shape[-1]))
    return np.asarray(sum(found[1:], found[0]) / len(found))

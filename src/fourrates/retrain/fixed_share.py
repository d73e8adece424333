"""The fixed-share vote of Herbster and Warmuth (1998), in which several models' weights track the best one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from fourrates.labels import Codes

Floats = npt.NDArray[np.float64]
Forecasts = npt.NDArray[np.float64]  # by model, example and class

Measure = Literal["accuracy", "f1", "g_mean"]
RATE = 1.0  # the paper's eta; a wrong prediction divides a weight by e
SHARE = 0.005  # the paper's alpha, for a new best model every 200 labels or so


@dataclass(frozen=True, eq=False)
class FixedShare:
    """The weights of several models, and the record of their joint predictions.

    A wrong prediction divides the weight of a model by e to the power of its loss, which is at most 1. Then the share a
    of all weight is spread evenly. Take k models, n labels and any sequence of models that changes c times and loses L.
    The loss by these weights is at most (L + ln k + c ln(k / a) - (n - c - 1) ln(1 - a)) / (1 - 1 / e).
    """

    measure: Measure
    weights: Floats  # one for each model; they sum to 1
    record: Floats  # true, predicted and right examples so far, by class

    @classmethod
    def of(cls, models: int, classes: int, measure: Measure) -> Self:
        """A vote with even weights and nothing on record."""
        if measure not in get_args(Measure):
            raise ValueError(f"measure {measure!r} is not one of {get_args(Measure)}")
        return cls(measure, np.full(models, 1 / models), np.zeros((3, classes)))

    def even(self, models: int) -> Self:
        """The vote with even weights."""
        return replace(self, weights=np.full(models, 1 / models))

    def worth(self) -> Floats:
        """The loss of a wrong prediction of each class, the slope of the measure scaled to at most 1."""
        # With f for F1 so far, a positive example counts 2 - f and a negative one f.
        true, predicted, right = self.record + 1
        if self.measure == "accuracy":
            return np.ones(true.size)
        slope = 1 / right
        if self.measure == "f1":
            total = true + predicted
            f1 = 2 * right / total
            false_positive = f1 / total
            slope = (2 - f1) / total + (false_positive.sum() - false_positive) / (true.size - 1)
            if true.size == 2:
                slope = np.array([f1[1], 2 - f1[1]])
        return np.asarray(slope / slope.max())

    def predict(self, forecasts: Forecasts) -> npt.NDArray[np.int32]:
        """The class of each example with the largest mean probability times its worth."""
        votes = np.tensordot(self.weights, forecasts, 1)
        return np.asarray((votes * self.worth()).argmax(axis=1), np.int32)

    def run(self, forecasts: Forecasts, truths: Codes) -> tuple[npt.NDArray[np.int32], Self]:
        """Predict each example, then use its label, in order; the predictions, and the vote after them."""
        wrong = (forecasts.argmax(axis=2) != truths).T
        predictions = np.empty(truths.size, np.int32)
        after = replace(self, record=self.record.copy())
        weights, record, worth = after.weights, after.record, after.worth()
        for at, truth in enumerate(truths.tolist()):
            predictions[at] = predicted = (weights @ forecasts[:, at] * worth).argmax()
            weights = weights * np.exp(-RATE * worth[truth] * wrong[at])
            weights = SHARE / weights.size + (1 - SHARE) / weights.sum() * weights
            record[0, truth] += 1
            record[1, predicted] += 1
            record[2, truth] += predicted == truth
            if self.measure != "accuracy":
                worth = after.worth()
        return predictions, replace(after, weights=weights)

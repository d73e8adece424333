"""Which of several models is the best one now, and what do they say together? Weights by what each got right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from fourrates.labels import Codes
    from fourrates.relearn.candidate import Candidate
    from fourrates.relearn.measure import Tally

    Forecasts = npt.NDArray[np.float64]  # by member, example and class

SHARE = 0.005  # of all weight is spread evenly after each label: the best model is another one about every 200 labels
RATE = 1.0  # what a right prediction that counts 1 adds to the logarithm of a weight


class Contest:
    """The weights of the champion and its challengers, and the vote they cast by them.

    What is predicted is the class with the largest mean probability, weighted by how likely each member is the best
    one, times what an example of the class is worth where the measure asks for that. When the label has come, a right
    prediction multiplies the weight of a member by e to the power of what the example is worth. Then a small share of
    all weight is spread evenly: the *fixed share* of Herbster and Warmuth (1998). So a weight is how likely it is that
    this model is the best one now, if the best one changes now and then. Whoever follows such weights is never far
    behind any of the members, nor behind the best sequence of them with few changes: the loss by n labels exceeds the
    least one by at most about ln(k) + (changes) * ln(k n / changes), over `RATE`, for k models.

    Parameters
    ----------
    members : several Candidate
        The champion first.
    tally : Tally
        What was predicted so far; it is not changed.
    """

    def __init__(self, members: Sequence[Candidate], tally: Tally) -> None:
        self.members = members
        self.weights = np.array([one.weight for one in members])
        self.tally = tally.copy()
        self._wins = np.zeros(len(members), np.int64)
        self._losses = np.zeros(len(members), np.int64)

    def take(self, forecasts: Forecasts, truths: Codes, threshold: float = math.inf) -> npt.NDArray[np.int32]:
        """Predict each example, then take its label, in order.

        Returns
        -------
        array of int
            The class predicted for each example, up to the first after which the weight of some member is `threshold`
            times that of the champion; what comes behind it is not taken.
        """
        right = forecasts.argmax(axis=2) == truths
        said = np.empty(truths.size, np.int32)
        weights, tally, even = self.weights, self.tally, SHARE / len(self.members)
        for at, truth in enumerate(truths.tolist()):
            said[at] = guess = int((tally.stakes() * _mean(weights, forecasts[:, at])).argmax())
            weights = np.where(right[:, at], weights * math.exp(RATE * tally.worth()[truth]), weights)
            weights = even + (1 - SHARE) / weights.sum() * weights
            tally.add_one(truth, guess)
            if weights.max() >= threshold * weights[0]:
                said = said[: at + 1]
                break
        self.weights = weights
        right = right[:, : said.size]
        self._wins += (right & ~right[0]).sum(axis=1)
        self._losses += (~right & right[0]).sum(axis=1)
        return said

    def settle(self) -> None:
        """Give each member its weight, and what it won and lost against the champion."""
        for one, weight, wins, losses in zip(self.members, self.weights, self._wins, self._losses, strict=True):
            one.weight = float(weight)
            one.wins += int(wins)
            one.losses += int(losses)


def vote(members: Sequence[Candidate], forecasts: Forecasts, tally: Tally) -> npt.NDArray[np.int32]:
    """What the members say together of each example, as things stand."""
    weights = np.array([one.weight for one in members])
    return np.asarray((tally.stakes() * _mean(weights, forecasts)).argmax(axis=1), np.int32)


def _mean(weights: npt.NDArray[np.float64], forecasts: Forecasts) -> npt.NDArray[np.float64]:
    """The sum over members, in their order: the same to the last bit however many examples there are."""
    return np.asarray((weights.reshape(-1, *[1] * (forecasts.ndim - 1)) * forecasts).sum(axis=0))

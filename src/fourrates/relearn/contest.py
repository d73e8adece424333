"""Which of several models is the best one now? Weights by what each got right, a share of which always starts again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from fourrates.relearn.candidate import Candidate

SHARE = 0.005  # of all weight is spread evenly after each label: the best model is another one about every 200 labels
RATE = 1.0  # what a right prediction that counts 1 adds to the logarithm of a weight


class Contest:
    """The weights of the champion and its challengers, by what each predicted right.

    A right prediction multiplies a weight by e to the power of what the example is worth. Then a small share of all
    weight is spread evenly: the *fixed share* of Herbster and Warmuth (1998). So a weight is how likely it is that this
    model is the best one now, if the best one changes now and then. The one with the largest weight is never far behind
    any of the others, nor behind the best sequence of them with few changes: the loss by n labels exceeds the least one
    by at most about ln(k) + (changes) * ln(k n / changes), over `RATE`, for k models.

    Parameters
    ----------
    members : several Candidate
        The champion first.
    """

    def __init__(self, members: Sequence[Candidate]) -> None:
        self.members = members
        self.weights = [one.weight for one in members]
        self.wins = [one.wins for one in members]
        self.losses = [one.losses for one in members]

    def take(
        self, right: npt.NDArray[np.bool_], worth: npt.NDArray[np.float64], threshold: float = math.inf
    ) -> int | None:
        """Take what each member got right, and what each example is worth, in order.

        Returns
        -------
        int or None
            The first example after which some weight is `threshold` times that of the champion; what comes behind it
            is not taken.
        """
        weights, members = self.weights, range(len(self.weights))
        even = SHARE / len(weights)
        for at, (column, gain) in enumerate(zip(right.T.tolist(), worth.tolist(), strict=True)):
            champion, factor = column[0], math.exp(RATE * gain)
            for j in members:
                if column[j]:
                    weights[j] *= factor
                if column[j] != champion:
                    self.wins[j] += column[j]
                    self.losses[j] += champion
            total = sum(weights)
            for j in members:
                weights[j] = even + (1 - SHARE) * weights[j] / total
            if max(weights) >= threshold * weights[0]:
                return at
        return None

    def settle(self) -> None:
        """Give each member its weight, and what it won and lost against the champion."""
        for one, weight, wins, losses in zip(self.members, self.weights, self.wins, self.losses, strict=True):
            one.weight, one.wins, one.losses = weight, wins, losses

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
    from fourrates.relearn.rules import Forecasts, Rules


class Contest:
    """The weights of the champion and its challengers, and what they predict together.

    When a label has come, a right prediction multiplies the weight of a member by e to the power of what the example is
    worth. Then a small share of all weight is spread evenly: the *fixed share* of Herbster and Warmuth (1998). So a
    weight is how likely it is that this model is the best one now, if the best one changes now and then. Whoever
    follows such weights is never far behind any of the members, nor behind the best sequence of them with few changes:
    the loss by n labels exceeds the least one by at most about ln(k) + (changes) * ln(k n / changes), over the rate,
    for k models. There are weights by each of `RATES`; what is predicted from them is a matter of the rules.

    Parameters
    ----------
    members : several Candidate
        The champion first.
    rules : Rules
        How forecasts become a prediction, and what was predicted so far; they are not changed.
    """

    def __init__(self, members: Sequence[Candidate], rules: Rules) -> None:
        self.members = members
        self.weights = np.array([one.weights for one in members])
        self.rules = rules.copy()
        self.turns: list[tuple[int, str, str]] = []  # from which example on which rule was followed, and why
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
        rules, places, at = self.rules, [one.alone for one in self.members], 0
        while at < truths.size:
            if (best := rules.best()) != rules.followed:
                self.turns.append((at, rules.names[best], rules.compare(best, rules.followed)))
                rules.followed = best
            at = rules.follow(places, self.weights, forecasts, truths, at, said, threshold)
            if self.weights[:, 0].max() >= threshold * self.weights[0, 0]:
                break
        said = said[:at]
        right = right[:, : said.size]
        self._wins += (right & ~right[0]).sum(axis=1)
        self._losses += (~right & right[0]).sum(axis=1)
        return said

    def settle(self) -> None:
        """Give each member its weights, and what it won and lost against the champion."""
        for one, weights, wins, losses in zip(self.members, self.weights, self._wins, self._losses, strict=True):
            one.weights = weights
            one.wins += int(wins)
            one.losses += int(losses)

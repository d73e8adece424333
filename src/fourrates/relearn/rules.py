"""How the forecasts of several models become one prediction: by rules that compete, the best one so far being followed.

No single way of voting is the best one everywhere. Where a change is sharp, a vote must turn within some labels; where
models are weak and differ by little, such a vote follows chance, and a mean of all of them is better. Probabilities
that are far off are best taken for what they predict, and sometimes nothing is better than the first model alone. So
each of these keeps a record of what it would have predicted, and the one with the best record is followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fourrates.relearn.measure import class_weights, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from fourrates.relearn.measure import Measure

    Weights = npt.NDArray[np.float64]  # by member and rate
    Forecasts = npt.NDArray[np.float64]  # by member, example and class

VOTES = ("quick vote", "slow vote")
RATES = (1.0, 0.1)  # what a right prediction that counts 1 adds to the logarithm of a weight, for each vote
ALONE = ("the first model alone", "the shortest memory alone")  # rules that take one member's word
LONGEST = 10_000  # labels: a record twice as long is halved
AFTER_DRIFT = 1000  # labels: what a record counts for after a drift


class Rules:
    """What was predicted so far, what each rule would have predicted, and the one to follow.

    In this order, the first of several that are equally good being followed: the votes by each of `RATES`, for F1 and
    the G-mean with probabilities multiplied by what a class is worth to the measure, and then without; and the members
    that speak alone.

    A record is the counts of true, predicted and right examples by class, so what is compared is the measure itself.
    After a drift it is cut short: what was best may not be now.

    Parameters
    ----------
    classes : int
    measure : {"mean", "accuracy", "f1", "g_mean"}

    Attributes
    ----------
    names : tuple of str
        The rules, in words.
    followed : int
        The one that the last prediction followed.
    worth : array of float
        What the next example is worth, by class: in its first row for what was predicted, then for each vote that
        weighs classes.
    """

    def __init__(self, classes: int, measure: Measure) -> None:
        self.measure = measure
        self._staked = len(VOTES) if measure in ("f1", "g_mean") else 0  # votes that weigh classes
        self.names = (*(f"{vote}, classes weighed" for vote in VOTES[: self._staked]), *VOTES, *ALONE)
        self._counts = np.zeros((3, 1 + len(self.names), classes))  # first what was predicted
        self.followed = 0
        self._rows = np.arange(self._counts.shape[1])
        self._weigh()

    def copy(self) -> Rules:
        """One that goes on by itself."""
        other = Rules(self._counts.shape[2], self.measure)
        other._counts, other.worth, other.followed = self._counts.copy(), self.worth, self.followed
        return other

    def best(self) -> int:
        """The rule with the best record."""
        return int(values(self._counts[:, 1:], self.measure).argmax())

    def compare(self, rule: int, other: int) -> str:
        """The records of two rules, in words."""
        record = values(self._counts[:, 1:], self.measure)
        return f"{self.measure} {record[rule]:.3f}, {self.names[other]} {record[other]:.3f}"

    def apply(self, places: Sequence[int | None], weights: Weights, forecasts: Forecasts) -> npt.NDArray[np.intp]:
        """What each rule predicts of each example, by rule and example.

        `places` has the place of each member among the rules that take one member's word, or None.
        """
        votes = (weights[:, :, None, None] * forecasts[:, None]).sum(axis=0)  # in their order, however many examples
        alone = [votes[0]] * len(ALONE)
        for member, place in enumerate(places):
            if place is not None:
                alone[place] = forecasts[member]
        staked = votes[: self._staked] * self.worth[1:, None]
        return np.asarray(np.concatenate([staked, votes, alone]).argmax(axis=2))

    def add_one(self, truth: int, guess: int, each: npt.NDArray[np.intp]) -> None:
        """Count one example: its class, what was predicted, and what each rule said."""
        said = np.array([guess, *each.tolist()])
        self._counts[0, :, truth] += 1
        self._counts[1, self._rows, said] += 1
        self._counts[2, :, truth] += said == truth
        if self._counts[0, 1].sum() >= 2 * LONGEST:
            self.shorten(LONGEST)
        self._weigh()

    def shorten(self, labels: int) -> None:
        """Let the record of each rule count for no more than this number of labels."""
        self._counts[:, 1:] *= min(1.0, labels / max(self._counts[0, 1].sum(), 1))
        self._weigh()

    def _weigh(self) -> None:
        self.worth = class_weights(self._counts[:, : 1 + self._staked], self.measure)

"""How the forecasts of several models become one prediction: by rules that compete, the best one so far being followed.

No single way of voting is the best one everywhere. Where a change is sharp, a vote must turn within some labels; where
models are weak and differ by little, such a vote follows chance, and a mean of all of them is better. Probabilities
that are far off are best taken for what they predict, and sometimes nothing is better than the first model alone. So
each of these keeps a record of what it would have predicted, and the one with the best record is followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fourrates.kernel import votes
from fourrates.relearn.measure import MEASURES, class_weights, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from fourrates.labels import Codes
    from fourrates.relearn.measure import Measure

    Weights = npt.NDArray[np.float64]  # by member and rate
    Forecasts = npt.NDArray[np.float64]  # by member, example and class

VOTES = ("quick vote", "slow vote")
RATES = (1.0, 0.1)  # what a right prediction that counts 1 adds to the logarithm of a weight, for each vote
ALONE = ("the first model alone", "the shortest memory alone")  # rules that take one member's word
SHARE = 0.005  # of all weight is spread evenly after each label: the best model is another one about every 200 labels
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
    counts : array of float
        The records: true, predicted and right examples, by rule and class; first what was predicted.
    worth : array of float
        What the next example is worth, by class: in its first row for what was predicted, then for each vote that
        weighs classes.
    """

    def __init__(self, classes: int, measure: Measure) -> None:
        self.measure = measure
        self._staked = len(VOTES) if measure in ("f1", "g_mean") else 0  # votes that weigh classes
        self.names = (*(f"{vote}, classes weighed" for vote in VOTES[: self._staked]), *VOTES, *ALONE)
        self.counts = np.zeros((3, 1 + len(self.names), classes))
        self.followed = 0
        self._weigh()

    def copy(self) -> Rules:
        """One that goes on by itself."""
        other = Rules(self.counts.shape[2], self.measure)
        other.counts, other.worth, other.followed = self.counts.copy(), self.worth.copy(), self.followed
        return other

    def best(self) -> int:
        """The rule with the best record."""
        return int(values(self.counts[:, 1:], self.measure).argmax())

    def compare(self, rule: int, other: int) -> str:
        """The records of two rules, in words."""
        record = values(self.counts[:, 1:], self.measure)
        return f"{self.measure} {record[rule]:.3f}, {self.names[other]} {record[other]:.3f}"

    def apply(self, places: Sequence[int | None], weights: Weights, forecasts: Forecasts) -> npt.NDArray[np.int32]:
        """What each rule predicts of each example, by rule and example.

        `places` has the place of each member among the rules that take one member's word, or None.
        """
        said = np.empty((forecasts.shape[1], len(self.names)), np.int32)
        votes.apply(forecasts, _numbers(places), weights, self.worth, said)
        return said.T

    def follow(
        self,
        places: Sequence[int | None],
        weights: Weights,
        forecasts: Forecasts,
        truths: Codes,
        at: int,
        served: npt.NDArray[np.int32],
        threshold: float,
    ) -> int:
        """Predict by the rule that is followed and take labels from `at` on, until there is something to decide.

        That is when another rule has the better record, or when the weight of a member is `threshold` times that of the
        first. Weights are brought up to date; `served` receives what was predicted. Returns where it stopped.
        """
        at = votes.follow(
            forecasts,
            truths,
            at,
            _numbers(places),
            weights,
            self.worth,
            self.counts,
            MEASURES.index(self.measure),
            self.followed,
            np.array(RATES),
            SHARE,
            threshold,
            2 * LONGEST,
            served,
        )
        if self.counts[0, 1].sum() >= 2 * LONGEST:
            self.shorten(LONGEST)
        return at

    def shorten(self, labels: int) -> None:
        """Let the record of each rule count for no more than this number of labels."""
        self.counts[:, 1:] *= min(1.0, labels / max(self.counts[0, 1].sum(), 1))
        self._weigh()

    def _weigh(self) -> None:
        self.worth = class_weights(self.counts[:, : 1 + self._staked], self.measure)


def _numbers(places: Sequence[int | None]) -> npt.NDArray[np.int64]:
    return np.array([-1 if place is None else place for place in places], np.int64)

"""Does a challenger do better than the champion? Evidence from the examples on which just one of them is right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Gains = tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]

BETS = (0.1, 0.3, 0.6, 0.9)  # shares of the stake: small ones for a small lasting advantage, large ones for a large one


class Contest:
    """Evidence that a challenger does better than the champion, and has done so since some moment.

    Each example on which just one of the two is right moves R <- (R + 1)(1 + bet * gain), with a gain of up to 1 in
    favour of the challenger, or against it. If the challenger is not better, the mean of each factor is at most 1, so R
    grows by at most one such example on average: before R reaches a threshold by chance, at least that many examples
    must have come on average. There is one R for each bet; the evidence is their mean.

    Attributes
    ----------
    evidence : float
    wins, losses : int
        Examples on which the challenger alone, or the champion alone, was right.
    """

    __slots__ = ("_levels", "losses", "wins")

    def __init__(self) -> None:
        self.wins = self.losses = 0
        self._levels = [0.0] * len(BETS)

    @property
    def evidence(self) -> float:
        """How much speaks for the challenger."""
        return sum(self._levels) / len(BETS)

    def copy(self) -> Contest:
        """The same contest, to be continued apart."""
        other = Contest()
        other.wins, other.losses, other._levels = self.wins, self.losses, [*self._levels]
        return other

    def take(self, gains: npt.NDArray[np.float64], thresholds: npt.NDArray[np.float64] | None = None) -> int | None:
        """Take gains, in order; with thresholds, up to the first that brings the evidence to its own: which one."""
        levels = self._levels
        needed = [math.inf] * gains.size if thresholds is None else (thresholds * len(BETS)).tolist()
        for i, (gain, enough) in enumerate(zip(gains.tolist(), needed, strict=True)):
            total = 0.0
            for j, bet in enumerate(BETS):
                levels[j] = level = (levels[j] + 1) * (1 + bet * gain)
                total += level
            if gain > 0:
                self.wins += 1
            else:
                self.losses += 1
            if total >= enough:
                return i
        return None


def class_weights(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """What an example of each class counts, up to 1, given how many there were: half as accuracy, half as mean recall.

    With one row of counts for each example, one row of weights for each.
    """
    classes = counts.shape[-1]
    shares = (counts + 1) / (counts.sum(axis=-1, keepdims=True) + classes)
    raw = 0.5 + 0.5 / (classes * shares)
    weights: npt.NDArray[np.float64] = raw / raw.max(axis=-1, keepdims=True)
    return weights


def gains(
    challenger: npt.NDArray[np.bool_], champion: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]
) -> Gains:
    """Where just one of the two is right, and what that counts for the challenger."""
    places = np.flatnonzero(challenger != champion)
    return places, np.where(challenger[places], weights[places], -weights[places])

"""The paper's six synthetic scenarios: pairs drawn from one confusion matrix, then from another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = tuple[tuple[float, float], tuple[float, float]]
Pairs = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A concept that changes once.

    Attributes
    ----------
    before, after : 2 x 2 tuples
        Probabilities by true class and then by predicted class (the paper prints the transpose).
    """

    before: Matrix
    after: Matrix

    def stream(self, seed: int, length: int = 10_000, change: int | None = None) -> Pairs:
        """Draw pairs (y_true, y_pred).

        Parameters
        ----------
        seed : int
            Same seed, same stream.
        length : int
            How many.
        change : int, optional
            The first event of the new concept; half of `length` if not given.

        Examples
        --------
        >>> from fourrates.streams import SCENARIOS
        >>> y_true, y_pred = SCENARIOS["Balance1"].stream(seed=1)
        >>> right = y_true == y_pred
        >>> f"{right[:5000].mean():.2f} before the change, {right[5000:].mean():.2f} after it"
        '0.80 before the change, 0.71 after it'
        """
        change = length // 2 if change is None else change
        draw = np.random.default_rng(seed).random(length)
        cells = np.empty(length, np.uint8)
        for part, matrix in ((slice(change), self.before), (slice(change, None), self.after)):
            cells[part] = np.searchsorted(np.cumsum(matrix)[:3], draw[part], side="right")
        return cells // np.uint8(2), cells % np.uint8(2)


SCENARIOS = {
    # Accuracy drops, tpr stays.
    "Balance1": Scenario(((0.4, 0.1), (0.1, 0.4)), ((0.3, 0.2), (0.1, 0.4))),
    # Accuracy stays, all four rates move.
    "Balance2": Scenario(((0.35, 0.15), (0.05, 0.45)), ((0.4, 0.1), (0.1, 0.4))),
    # Accuracy rises, tpr stays.
    "Balance3": Scenario(((0.3, 0.2), (0.2, 0.3)), ((0.4, 0.1), (0.2, 0.3))),
    # From balanced to 9:1; tpr, ppv and so F1 stay.
    "Imbalance1": Scenario(((1 / 3, 1 / 6), (1 / 6, 1 / 3)), ((13 / 15, 1 / 30), (1 / 30, 1 / 15))),
    # Accuracy and balance stay, tpr falls from 0.75 to 0.25.
    "Imbalance2": Scenario(((0.65, 0.15), (0.05, 0.15)), ((0.75, 0.05), (0.15, 0.05))),
    # tpr, ppv and accuracy fall. The paper prints one matrix twice; this pair is a reconstruction that fits its tables.
    "Imbalance3": Scenario(((0.7, 0.05), (0.05, 0.2)), ((0.6, 0.15), (0.15, 0.1))),
}
"""The paper's scenarios by its names for them."""

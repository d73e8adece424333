"""A fraud-like stream: rare positives, real timestamps, a loss of positives that the accuracy does not show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# By true class and then by predicted class. The accuracy is 0.97 in both; tpr is 0.75, then 0.25.
SOUND = ((0.955, 0.025), (0.005, 0.015))
BLIND = ((0.965, 0.015), (0.015, 0.005))
SHARES = (0.6, 0.8)  # of the stream, when the classifier goes blind and when it is repaired


@dataclass(frozen=True, slots=True)
class Transactions:
    """Labels, predictions and times of a stream, and its changes."""

    y_true: npt.NDArray[np.uint8]
    y_pred: npt.NDArray[np.uint8]
    times: npt.NDArray[np.datetime64]
    changes: tuple[int, int]


def fraud(seed: int = 5, length: int = 200_000, days: float = 10.0) -> Transactions:
    """Draw a stream of card transactions, 2 % of them fraud.

    At 60 % of the stream the classifier loses two thirds of the frauds it used to catch, as its tpr falls from 0.75 to
    0.25. It also raises fewer false alarms, so its accuracy stays at 0.97. At 80 % it is repaired.

    Parameters
    ----------
    seed : int
        Same seed, same stream.
    length : int
        How many transactions.
    days : float
        Over how many days from 2026-01-01 on; fewer of them at night.

    Examples
    --------
    >>> from fourrates.streams import fraud
    >>> stream = fraud(seed=5)
    >>> blind, repaired = stream.changes
    >>> right = stream.y_true == stream.y_pred
    >>> f"accuracy {right[:blind].mean():.2f}, {right[blind:repaired].mean():.2f}, {right[repaired:].mean():.2f}"
    'accuracy 0.97, 0.97, 0.97'
    """
    random = np.random.default_rng(seed)
    blind, repaired = (int(share * length) for share in SHARES)
    draw = random.random(length)
    cells = np.searchsorted(np.cumsum(SOUND)[:3], draw, side="right").astype(np.uint8)
    worse = slice(blind, repaired)
    cells[worse] = np.searchsorted(np.cumsum(BLIND)[:3], draw[worse], side="right")
    seconds = np.cumsum(random.exponential(size=length))
    seconds *= days * 86_400 / seconds[-1]
    # A clock that runs slow by day and fast by night, as transactions are densest at noon.
    hour = 2 * np.pi * seconds / 86_400
    seconds += 0.5 * 86_400 / (2 * np.pi) * np.sin(hour)
    times = np.datetime64("2026-01-01T00:00:00", "ms") + (1000 * seconds).astype(np.int64)
    return Transactions(cells // np.uint8(2), cells % np.uint8(2), np.sort(times), (blind, repaired))

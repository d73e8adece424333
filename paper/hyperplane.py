"""The rotating hyperplane: a plane through the middle of the unit cube that turns slowly, and now and then at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paper.examples import Examples, turned

CONCEPTS = 9  # as in the public files


def hyperplane(
    seed: int,
    length: int = 90_000,
    changes: Sequence[int] | None = None,
    *,
    features: int = 10,
    drifting: int = 2,
    speed: float = 0.0001,
    turns: float = 0.0001,
    noise: float = 0.05,
) -> Examples:
    """Draw examples on both sides of a rotating hyperplane (Hulten, Spencer & Domingos, 2001; Fan, 2004).

    Features x are uniform in [0, 1]. The class is 1 if w . x is at least half of the sum of the weights w, so for half
    of the examples, whatever w is. Each concept begins with new weights, uniform in [0, 1]; within it some of them move
    with every example.

    Parameters
    ----------
    seed : int
        Same seed, same examples.
    length : int
        How many.
    changes : sequence of int, optional
        The first example of each new concept, rising; if not given, nine concepts of equal length, as in the public
        files (`load("hyperplane")`).
    features : int
        How many.
    drifting : int
        How many weights move within a concept, counted from the first.
    speed : float
        How far each of them moves with an example, up or down. In Fan's terms, t / N. 0 for concepts that do not
        move.
    turns : float
        The chance of each of them to turn round, at each example.
    noise : float
        The share of labels that are turned.

    Examples
    --------
    >>> from paper.hyperplane import hyperplane
    >>> examples = hyperplane(seed=1, length=20_000, changes=[10_000])
    >>> examples.features.shape, examples.changes
    ((20000, 10), (10000,))
    >>> f"{examples.labels.mean():.2f} of them are of class 1"
    '0.50 of them are of class 1'
    """
    if changes is None:
        changes = [length * concept // CONCEPTS for concept in range(1, CONCEPTS)]
    if not (np.diff([0, *changes, length]) > 0).all():
        raise ValueError(f"changes {tuple(changes)} do not rise between 0 and {length}, the number of examples")
    if not 0 <= drifting <= features:
        raise ValueError(f"{drifting} drifting weights of {features} features")
    if not 0 <= turns <= 1:
        raise ValueError(f"turns {turns} is not in [0, 1]")
    random = np.random.default_rng(seed)
    points = random.random((length, features))
    above = [
        _above(part, drifting, speed, turns, random) for part in np.split(points, np.asarray(changes, dtype=np.intp))
    ]
    return Examples(points, turned(np.concatenate(above), noise, random), ("0", "1"), tuple(map(int, changes)))


def _above(
    points: npt.NDArray[np.float64], drifting: int, speed: float, turns: float, random: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Which points of one concept lie above its plane."""
    length, features = points.shape
    weights = random.random(features)
    rounds = np.cumsum(random.random((length, drifting)) < turns, axis=0)
    ways = random.choice([-1.0, 1.0], drifting) * (1 - 2 * (rounds % 2))
    moved = speed * np.cumsum(ways, axis=0)
    centred = points - 0.5  # w . x >= sum(w) / 2
    side: npt.NDArray[np.float64] = centred @ weights + (centred[:, :drifting] * moved).sum(1)
    return side >= 0

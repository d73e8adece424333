"""The SEA concepts: three features of which two decide, against a threshold that moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.examples import Examples, turned


def sea(
    seed: int, length: int = 60_000, thresholds: Sequence[float] = (8.0, 9.0, 7.0, 9.0), noise: float = 0.1
) -> Examples:
    """Draw examples of the SEA concepts (Street & Kim, 2001).

    Three features are uniform in [0, 10]. The class is 1 if the second and the third add up to more than the threshold
    of the concept, as in the public file (`load("sea")`), with its thresholds. Street and Kim let the first and the
    second decide, and call the other side 1.

    Parameters
    ----------
    seed : int
        Same seed, same examples.
    length : int
        How many, in concepts of equal length, one for each threshold.
    thresholds : sequence of float
        One for each concept.
    noise : float
        The share of labels that are turned.

    Examples
    --------
    >>> from paper.sea import sea
    >>> examples = sea(seed=1)
    >>> examples
    Examples(classes=('0', '1'), changes=(15000, 30000, 45000))
    >>> above = examples.features[:15_000, 1:].sum(1) > 8
    >>> f"{(above == examples.labels[:15_000]).mean():.2f} of the labels are as the threshold says"
    '0.90 of the labels are as the threshold says'
    """
    concepts = len(thresholds)
    if not 1 <= concepts <= length:
        raise ValueError(f"{concepts} thresholds for {length} examples: each needs one at least, and there must be one")
    random = np.random.default_rng(seed)
    starts = [length * concept // concepts for concept in range(concepts)]
    features = random.uniform(0, 10, (length, 3))
    threshold = np.repeat(np.asarray(thresholds, float), np.diff([*starts, length]))
    labels = turned(features[:, 1] + features[:, 2] > threshold, noise, random)
    return Examples(features, labels, ("0", "1"), tuple(starts[1:]))

"""Examples to train on, in the order of their stream, and the paper's bootstrap of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples in the order of their stream.

    Attributes
    ----------
    features : array, examples by features
    labels : array of int
        Codes of the classes.
    classes : tuple of str
        Their names, in the order of their codes.
    changes : tuple of int
        The first example of each new concept.
    """

    features: npt.NDArray[np.float64] = field(repr=False)
    labels: npt.NDArray[np.int64] = field(repr=False)
    classes: tuple[str, ...]
    changes: tuple[int, ...]


def permuted(examples: Examples, seed: int) -> Examples:
    """Shuffle the examples within each concept, the paper's bootstrap of a data set.

    Slow changes within a concept are gone in the copy; the changes between concepts stay.

    Parameters
    ----------
    examples : Examples
        With its changes known. Without any, all of it is one concept.
    seed : int
        Same seed, same order.

    Examples
    --------
    >>> from paper.examples import permuted
    >>> from paper.sea import sea
    >>> examples = sea(seed=1)
    >>> first, second = permuted(examples, seed=1), permuted(examples, seed=2)
    >>> first.changes
    (15000, 30000, 45000)
    >>> [int(copy.labels[:15_000].sum()) for copy in (examples, first, second)]
    [9593, 9593, 9593]
    """
    random = np.random.default_rng(seed)
    concepts = np.split(np.arange(len(examples.labels)), examples.changes)
    order = np.concatenate([random.permutation(concept) for concept in concepts])
    return replace(examples, features=examples.features[order], labels=examples.labels[order])


def turned(labels: npt.NDArray[np.bool_], noise: float, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Turn each label, 0 to 1 and 1 to 0, with probability `noise`."""
    if not 0 <= noise <= 1:
        raise ValueError(f"noise {noise} is not in [0, 1]")
    return (labels ^ (random.random(labels.size) < noise)).astype(np.int64)

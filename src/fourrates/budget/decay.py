"""The decay that finds a change soonest: near 1 for small, lasting changes, low for large ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fourrates.budget import chain
from fourrates.budget.chain import Sides
from fourrates.budget.confusion import probabilities, rates
from fourrates.budget.delay import Delay, check_horizon, found_within
from fourrates.budget.levels import design
from fourrates.labels import Labels
from fourrates.null import check_decay

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy.typing as npt

    Change = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

DECAYS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99)


@dataclass(frozen=True, slots=True)
class BestDecay:
    """The decay that finds a change soonest.

    Attributes
    ----------
    decay : float
        As :class:`~fourrates.LFR` takes it.
    delay : float
        The median delay with it, in events; infinite if it is beyond the horizon.
    delays : dict
        The median delay with each decay that was tried.
    """

    decay: float
    delay: float
    delays: dict[float, float]


def best_decay(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    arl: float,
    *,
    sides: Sides = "both",
    decays: Iterable[float] = DECAYS,
    horizon: int = 5000,
) -> BestDecay:
    """Find the decay at which ``LFR(decay, arl=arl)`` finds a given change soonest.

    Parameters
    ----------
    before, after : K x K arrays
        Probabilities or counts, by true class and then by predicted class.
    arl : float
        Events between two false alarms, at least 100.
    sides : {"both", "down", "up"}
        The sides watched.
    decays : iterable of floats
        The decays to choose from.
    horizon : int
        How many events to look ahead. Decays with the same median, or none that finds the change in half of all cases
        by then, are compared by their mean delay, cut at the horizon.

    Examples
    --------
    A large change is found soonest by a short memory, a small one by a long memory:

    >>> import fourrates as fr
    >>> large = fr.budget.best_decay([[45, 5], [5, 45]], [[15, 35], [5, 45]], arl=10_000)
    >>> large.decay, large.delay
    (0.8, 15.0)
    >>> small = fr.budget.best_decay([[45, 5], [5, 45]], [[40, 10], [5, 45]], arl=10_000)
    >>> small.decay, small.delay
    (0.985, 239.0)
    """
    old = np.asarray(before, float)
    change = tuple(probabilities(matrix, max(len(np.atleast_1d(old)), 2)) for matrix in (before, after))
    return _best([(change[0], change[1])], arl, sides, decays, horizon)


def best_decay_from_stream(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    changes: Sequence[int],
    arl: float,
    *,
    labels: Iterable[Hashable] = (0, 1),
    sides: Sides = "both",
    decays: Iterable[float] = DECAYS,
    horizon: int = 5000,
) -> BestDecay:
    """Learn the decay from a labelled stream whose changes are known.

    Each change is taken as one from the confusion matrix of the events since the last change to the matrix of the
    events up to the next. The decay is the one that would find such changes soonest, each of them as likely as the
    others; the delay is the median over all of them. So a stream with two or three changes is enough, where counting
    its alarms would say next to nothing.

    Parameters
    ----------
    y_true, y_pred : arrays of labels
        What the events turned out to be, and what the classifier had said.
    changes : sequence of int
        The first event of each new concept.
    arl : float
        Events between two false alarms, at least 100.
    labels : iterable of hashables
        The classes, as for :class:`~fourrates.LFR`.
    sides, decays, horizon
        As for :func:`best_decay`.

    Examples
    --------
    >>> from fourrates.budget.decay import best_decay_from_stream
    >>> from fourrates.streams import SCENARIOS
    >>> y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    >>> best_decay_from_stream(y_true, y_pred, changes=[5_000], arl=10_000).decay
    0.9
    """
    known = Labels(labels)
    classes = len(known.values)
    truths, preds = known.encode(y_true, "y_true"), known.encode(y_pred, "y_pred")
    if truths.size != preds.size:
        raise ValueError(f"y_true has {truths.size} events, y_pred has {preds.size}")
    ends = [0, *(int(change) for change in changes), truths.size]
    if len(ends) < 3:
        raise ValueError("no change is given; a decay is learned from at least one")
    for position, (first, last) in enumerate(pairwise(ends)):
        if not first < last:
            raise ValueError(
                f"changes {list(changes)!r} must ascend between 0 and {truths.size}, the length of the stream; "
                f"concept {position} would be the events from {first} to {last}"
            )
    cells = truths.astype(np.intp) * classes + preds
    matrices = [
        probabilities(np.bincount(cells[first:last], minlength=classes**2).reshape(classes, classes), classes)
        for first, last in pairwise(ends)
    ]
    return _best(list(pairwise(matrices)), arl, sides, decays, horizon)


def _best(changes: list[Change], arl: float, sides: Sides, decays: Iterable[float], horizon: int) -> BestDecay:
    found = {
        decay: Delay(np.mean([_found(change, decay, arl, sides, horizon) for change in changes], axis=0))
        for decay in sorted({check_decay(one) for one in decays})
    }
    if not found:
        raise ValueError("no decay is given to choose from")
    best = min(found, key=lambda decay: (found[decay].median, found[decay].mean))
    return BestDecay(best, found[best].median, {decay: delay.median for decay, delay in found.items()})


def _found(change: Change, decay: float, arl: float, sides: Sides, horizon: int) -> npt.NDArray[np.float64]:
    """The chance to find a change within 1, 2, ... events, with the bounds that a detector of this budget has."""
    level = design(arl, decay, sides).detect
    old, new = (rates(matrix) for matrix in change)
    limits = [[(decay, *chain.asymptotic_bounds(decay, rate.value, level, sides))] for rate in old]
    return found_within(limits, old, new, check_horizon(horizon))

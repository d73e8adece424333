"""The probabilities with which events were drawn for labelling, as the kernel has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.kernel.evidence import NUMBERS
from fourrates.labels import shown

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Labels

ODDS = NUMBERS["ODDS"]
A_DOUBLING = 16  # steps of the kernel in a ratio of two
LARGEST = 2.0 ** (ODDS // 2 // A_DOUBLING)  # ratio of two probabilities


def both_probabilities(probability: Any, labels: Labels, size: int) -> npt.NDArray[np.float64]:
    """The checked probability of each event to be drawn, for each prediction in the order of the codes.

    Parameters
    ----------
    probability : mapping from labels to numbers, or array of shape (events, 2)
        The same for all events; or by event, the columns in the order of the labels as given.
    labels : Labels
        The two classes.
    size : int
        How many events.
    """
    if isinstance(probability, Mapping):
        if {*probability} != {*labels.values}:
            raise ValueError(f"probability: for each of {shown(labels.given)}, not for {shown([*probability])}")
        found = np.array([[float(probability[label]) for label in labels.values]] * min(size, 1)).reshape(-1, 2)
        found = np.broadcast_to(found, (size, 2))
    else:
        found = np.asarray(probability, np.float64)
        if found.shape != (size, 2):
            raise ValueError(
                f"probability has shape {found.shape} for {size} events: a column for each prediction it might have had"
            )
        found = found[:, [labels.given.index(label) for label in labels.values]]
    wrong = ~((found > 0) & (found <= 1)).all(1)
    if wrong.any():
        raise ValueError(
            f"probability {found[wrong][0].tolist()} of event {int(wrong.argmax())} is not above 0 and up to 1"
        )
    return found


def odds_codes(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    """The ratio of the two probabilities of each event as the kernel has it, by its logarithm."""
    codes, far = codes_of_ratios(probabilities[:, 1] / probabilities[:, 0])
    if far.any():
        raise ValueError(
            f"probability {probabilities[far][0].tolist()} of event {int(far.argmax())}: one is more than "
            f"{LARGEST:.0f} times the other"
        )
    return codes


def codes_of_ratios(ratios: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]:
    """Ratios of probabilities as the kernel has them, and those out of its range."""
    steps = np.rint(A_DOUBLING * np.log2(ratios))
    far: npt.NDArray[np.bool_] = np.abs(steps) > ODDS // 2
    return (np.where(far, 0, steps) + ODDS // 2).astype(np.uint16), far

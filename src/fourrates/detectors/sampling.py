"""The probabilities with which events were drawn for labelling, as the kernel has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.kernel.evidence import NUMBERS
from fourrates.labels import shown

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Labels

DRAWN = "label_probability", "other_probability"  # the columns that have them: as predicted, and otherwise
ODDS = NUMBERS["ODDS"]
A_DOUBLING = 16  # steps of the kernel in a ratio of two
LARGEST = 2.0 ** (ODDS // 2 // A_DOUBLING)  # ratio of two probabilities


class OwnFirst(NamedTuple):
    """Checked probabilities by event, of the prediction made and of the other one; 0 if unknown."""

    pairs: npt.NDArray[np.float32]

    def by_class(self, preds: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
        """The same in the order of the codes."""
        return np.where(preds[:, None] == 1, self.pairs[:, ::-1], self.pairs)


def both_probabilities(probability: Any, labels: Labels, size: int) -> npt.NDArray[np.float32]:
    """The checked probability of each event to be drawn, for each prediction in the order of the codes.

    They are a mapping from labels, the same for all events, or an array with a row an event and a column a label, in
    the order of the labels as given.
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
    single = np.ascontiguousarray(found, np.float32)
    if (far := odds_codes(single)[1]).any():
        raise ValueError(
            f"probability {found[far][0].tolist()} of event {int(far.argmax())}: one is more than "
            f"{LARGEST:.0f} times the other"
        )
    return single


def odds_codes(probabilities: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]:
    """The ratio of the two probabilities of each event, as the kernel has it by its logarithm; and if out of range."""
    steps = np.rint(A_DOUBLING * np.log2(probabilities[:, 1] / probabilities[:, 0].astype(np.float64)))
    far: npt.NDArray[np.bool_] = np.abs(steps) > ODDS // 2
    return (np.where(far, 0, steps) + ODDS // 2).astype(np.uint16), far


def volumes(probabilities: npt.NDArray[np.float32], preds: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
    """How many events each represents."""
    return 1 / probabilities[np.arange(preds.size), preds].astype(np.float64)

"""Pairs of true and predicted labels, as :class:`~fourrates.LabelJoin` completes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs completed by one call, in order of completion; `y_true` and `y_pred` are the same as labels."""

    truths: Codes  #: class codes, in the order of the labels
    preds: Codes
    positions: npt.NDArray[np.int64]  #: position in the call of the id that completed each pair
    tags: npt.NDArray[np.int64]  #: the tag given with each prediction; 0 by default
    #: how long each label took, in the unit of the times, dates in microseconds; nan without times
    waits: npt.NDArray[np.float64]
    labels: Labels
    #: (pairs, 2), how likely each was drawn for labelling, for each prediction it might have had, by code; 0 if unknown
    probabilities: npt.NDArray[np.float32]
    repeated: npt.NDArray[np.bool_]  #: for each item of the call, whether it was a prediction whose id was seen before

    @property
    def probability(self) -> npt.NDArray[np.float32]:
        """The probabilities in the order of the labels as given, for a detector of sampled events."""
        return self.probabilities[:, [self.labels.values.index(label) for label in self.labels.given]]

    @property
    def y_true(self) -> npt.NDArray[Any]:
        """The true labels."""
        return self.labels.decode(self.truths)

    @property
    def y_pred(self) -> npt.NDArray[Any]:
        """The predicted labels."""
        return self.labels.decode(self.preds)

    def __len__(self) -> int:
        return self.truths.size

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """The pairs (y_true, y_pred), one by one."""
        return zip(self.y_true.tolist(), self.y_pred.tolist(), strict=True)

    def __repr__(self) -> str:
        return f"<{len(self):,} pairs>"

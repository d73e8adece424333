"""Pairs of what was true and what was predicted, as :class:`~fourrates.LabelJoin` completes them."""

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
    """Pairs that one call completed, in the order in which they were.

    Attributes
    ----------
    truths, preds : arrays of uint16
        Class codes, in the order of the labels.
    positions : array of int64
        Which of the ids of the call completed each pair.
    tags : array of int64
        What was given with each prediction; 0 if nothing was.
    y_true, y_pred : arrays of labels
        The same pairs as labels.
    """

    truths: Codes
    preds: Codes
    positions: npt.NDArray[np.int64]
    tags: npt.NDArray[np.int64]
    labels: Labels

    @property
    def y_true(self) -> npt.NDArray[Any]:
        """What the events turned out to be."""
        return self.labels.decode(self.truths)

    @property
    def y_pred(self) -> npt.NDArray[Any]:
        """What the classifier had said."""
        return self.labels.decode(self.preds)

    def __len__(self) -> int:
        return self.truths.size

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """The pairs (y_true, y_pred), one by one."""
        return zip(self.y_true.tolist(), self.y_pred.tolist(), strict=True)

    def __repr__(self) -> str:
        return f"<{len(self):,} pairs>"

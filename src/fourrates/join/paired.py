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
    """Pairs completed by one call, in order of completion.

    Attributes
    ----------
    truths, preds : arrays of uint16
        Class codes, in the order of the labels.
    positions : array of int64
        Position in the call of the id that completed each pair.
    tags : array of int64
        The tag given with each prediction; 0 by default.
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

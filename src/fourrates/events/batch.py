"""Columns as they came from somewhere, before they mean anything, and the events they turn out to hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

COLUMNS = "truths", "preds", "rows", "times", "keys", "strata", "volumes", "versions"  # of a batch


@dataclass(frozen=True, slots=True)
class Table:
    """Columns as they came: lists, NumPy or Arrow arrays, all of one length."""

    data: Mapping[str, Any]
    source: str
    rows: npt.NDArray[np.int64]
    times: Sequence[str] = ()  # columns that look like times
    locate: Callable[[int], str] = "row {}".format
    sound: bool = False  # whether Arrow columns are known to be, since our own reader made or checked them

    @property
    def size(self) -> int:
        """How many rows."""
        return self.rows.size

    def place(self, at: int) -> str:
        """File and line of a row."""
        return f"{self.source}, {self.locate(int(self.rows[at]))}"


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events, in order.

    Attributes
    ----------
    truths, preds : arrays of uint16
        Class codes, in the order of the labels.
    source : str
        The file they came from.
    rows : array of int64
        Where each is in it: rows are counted from 1, a header and blank lines are none, in every format.
    times : array of datetime64[us], optional
        When each happened; NaT where unknown.
    keys : array of int64, optional
        Which segment each belongs to, as a position in the names of the door.
    strata : array of uint16, optional
        Which stratum each belongs to, by a column of its own; or with which probabilities it was drawn for labelling.
    versions : array of int64, optional
        Which version of the model predicted each, as a position in `version_names`.
    version_names : sequence of str
        The versions that the door has met.
    volumes : array of float64, optional
        How many events each stands for that was drawn for labelling.
    """

    truths: npt.NDArray[np.uint16]
    preds: npt.NDArray[np.uint16]
    source: str
    rows: npt.NDArray[np.int64]
    times: npt.NDArray[np.datetime64] | None = None
    keys: npt.NDArray[np.int64] | None = None
    strata: npt.NDArray[np.uint16] | None = None
    volumes: npt.NDArray[np.float64] | None = None
    versions: npt.NDArray[np.int64] | None = None
    version_names: Sequence[str | None] = ()

    def take(self, which: Any) -> Batch:
        """Some of them, by slice or by positions."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return replace(self, **{name: one[which] for name, one in columns.items() if one is not None})

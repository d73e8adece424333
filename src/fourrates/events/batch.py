"""Raw columns of a source, and the batches of events made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.detectors.sampling import odds_codes, volumes
from fourrates.events.rows import InputError

COLUMNS = "truths", "preds", "rows", "times", "keys", "strata", "volumes", "versions"  # of a batch


@dataclass(frozen=True, slots=True)
class Table:
    """Raw columns, as lists, NumPy or Arrow arrays, all of one length."""

    data: Mapping[str, Any]
    source: str
    rows: npt.NDArray[np.int64]
    times: Sequence[str] = ()  # columns that look like times
    locate: Callable[[int], str] = "row {}".format
    sound: bool = False  # whether Arrow columns are known to be valid, since our own reader made or checked them

    @property
    def size(self) -> int:
        return self.rows.size

    def place(self, at: int) -> str:
        return f"{self.source}, {self.locate(int(self.rows[at]))}"


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events.

    Attributes
    ----------
    truths, preds : arrays of uint16
        Class codes, in the order of the labels.
    source : str
        The file they are from.
    rows : array of int64
        The row of each event. Rows are counted from 1 in every format; headers and blank lines do not count.
    times : array of datetime64[us], optional
        The time of each event; NaT if unknown.
    keys : array of int64, optional
        The segment of each event, as a position in the names of the door.
    strata : array of uint16, optional
        The stratum of each event, from its own column or from the probabilities it was drawn with for labelling.
    versions : array of int64, optional
        The model version that predicted each event, as a position in `version_names`.
    version_names : sequence of str
        The versions met by the door.
    volumes : array of float64, optional
        How many events each event drawn for labelling represents.
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

    def sampled(self, probabilities: npt.NDArray[np.float32]) -> Batch:
        """The same events, drawn for labelling with these probabilities, by the code of the prediction."""
        if not probabilities.all():
            at = int(np.argmin(probabilities.all(1)))
            raise InputError(
                f"{self.source}, row {self.rows[at]}: no probability of being labelled, while others have one"
            )
        return replace(self, strata=odds_codes(probabilities)[0], volumes=volumes(probabilities, self.preds))

    def take(self, which: Any) -> Batch:
        """Some events, by slice or by positions."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return replace(self, **{name: column[which] for name, column in columns.items() if column is not None})

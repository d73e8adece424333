"""How long labels take, from a sample of the ids; in memory only, for nothing that is found depends on it."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Fingerprints = npt.NDArray[np.void]

MOST = 512  # predictions followed
LATEST = 101  # delays that the median is of


class LabelDelay:
    """The median of the latest delays.

    An id is sampled if its fingerprint is a multiple of `every`, which grows until few enough are, so that predictions
    and labels sample the same ids.
    """

    def __init__(self) -> None:
        self.every = 1
        self._since: dict[int, float] = {}
        self._delays: deque[float] = deque(maxlen=LATEST)

    @property
    def seconds(self) -> float | None:
        return median(self._delays) if self._delays else None

    def predicted(self, ids: Fingerprints, times: Any) -> None:
        while len(self._since) + np.count_nonzero(self._is_followed(ids)) > MOST:
            self.every *= 2
            self._since = {id: time for id, time in self._since.items() if id % self.every == 0}
        self._since.update(self._sampled(ids, times))

    def labelled(self, ids: Fingerprints, times: Any) -> None:
        for id, time in self._sampled(ids, times):
            if (since := self._since.pop(id, None)) is not None:
                self._delays.append(max(time - since, 0.0))

    def _is_followed(self, ids: Fingerprints) -> npt.NDArray[np.bool_]:
        return np.asarray(ids["low"] % np.uint64(self.every) == 0)

    def _sampled(self, ids: Fingerprints, times: Any) -> list[tuple[int, float]]:
        rows = np.flatnonzero(self._is_followed(ids))
        rows = rows[:: max(rows.size // MOST, 1)]  # of a batch that is large, some
        moments = np.broadcast_to(times, ids.shape)
        return [(int(ids["low"][row]), float(moments[row])) for row in rows]

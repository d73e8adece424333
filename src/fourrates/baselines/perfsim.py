"""PerfSim compares the confusion matrices of consecutive batches."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_shares, check_whole
from fourrates.detectors.base import CountingDetector
from fourrates.findings import Bounds, RateState, Statistic
from fourrates.kernel.baselines import Similarity


class PerfSim(CountingDetector):
    r"""PerfSim alarms when the confusion matrices of two consecutive batches point different ways.

    The counts of a batch's confusion matrix make a vector, and PerfSim takes the cosine between the vectors of two
    consecutive batches of equal size: 1 when they are alike. Below `detect` it reports a drift, whose window is the
    batch that differed, and starts afresh; the next batch is then the first.

    Parameters
    ----------
    warn, detect : float
        Similarities in (0, 1) below which it warns and reports.
    batch : int
        Events in a batch.
    labels, positive
        As of :class:`~fourrates.baselines.NFR`.

    Notes
    -----
    - *The threshold* is the user's in the paper; a public implementation by others advises 0.98. With the 500 events of
      a batch here, a balanced classifier with accuracy 0.8 stays above it in all but one of about 200 batches.
    - *The warning* is not in the paper. It lasts from one batch to the next; one that leads to a drift begins with the
      first event of its first batch.
    - *Ties*: a similarity equal to a threshold has not fallen below it.

    References
    ----------
    D. K. Antwi, H. L. Viktor and N. Japkowicz, "The PerfSim Algorithm for Concept Drift Detection in Imbalanced Data",
    ICDM Workshops 2012.

    Examples
    --------
    The class ratio changes from 1:1 to 9:1 at event 5,000, at the start of a batch:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> for drift in fr.baselines.PerfSim().update_many(*SCENARIOS["Imbalance1"].stream(seed=1)):
    ...     print(drift)
    drift at 5,499, since 5,000: similarity down: 0.711, below its bound 0.980 (after 500 observations)
    """

    __slots__ = ()

    _kernel = Similarity
    _names = ("similarity",)

    def __init__(
        self,
        warn: float = 0.99,
        detect: float = 0.98,
        batch: int = 500,
        *,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
    ) -> None:
        warn, detect = check_shares(warn, detect)
        self._set_up(labels, positive, warn=warn, detect=detect, batch=check_whole(batch, "batch"))

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        taken, batches, similarity = numbers[:3].tolist()
        before, present = numbers[3:].reshape(2, -1)
        batch = self.parameters["batch"]
        whole = (numbers[3:] == np.floor(numbers[3:])).all() and (numbers[3:] >= 0).all()
        return bool(
            whole
            and 0 <= taken == present.sum() < batch
            and batches >= 0
            and before.sum() == (batch if batches else 0)
            and batches * batch + taken == counts.sum()
            and (math.isnan(similarity) or 0 <= similarity < 1.000001)  # rounded
        )

    def _unjudged(self) -> int:
        return int(self._numbers(self.record_bytes)[0])

    def _rate_state(self, record: bytes, i: int) -> RateState:
        _, batches, similarity, *_ = self._numbers(record).tolist()
        n = self.parameters["batch"] if batches else 0
        warn, detect = (Bounds(self.parameters[level], math.inf) for level in ("warn", "detect"))
        return RateState(n, similarity, (Statistic(None, similarity, warn, detect),))

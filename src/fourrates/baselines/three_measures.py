"""Accuracy, recall and precision of each batch against their recent history."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_deviations, check_whole
from fourrates.detectors.base import CountingDetector
from fourrates.findings import Bounds, RateState, Statistic
from fourrates.kernel.baselines import Measures
from fourrates.record import DRIFT


class ThreeMeasures(CountingDetector):
    r"""Three measures, after Klinkenberg; alarms when accuracy, recall or precision falls out of its recent history.

    Each batch of equal size has an accuracy, and a recall and precision of the positive class. Each is compared with
    its own last values, `history` of them: their mean and its standard error (standard deviation over the root of
    `history`). A value lower than the mean by more than `warn` or `detect` standard errors warns or reports a drift,
    whose window begins with the first batch of the warning. Then it starts afresh.

    Parameters
    ----------
    warn, detect : float
        Standard errors below the mean at which it warns and reports. One value by itself varies about a mean of 10 by
        :math:`\sqrt{11} = 3.3` of them. A default of 15 leaves about one false alarm in 350 batches.
    batch : int
        Events in a batch.
    history : int
        Values that make a history, at least 2. Before it is full nothing is tested.
    labels : iterable of hashables
        The classes, two or more.
    positive : label, optional
        The class whose recall and precision are watched; the last if not given.

    Notes
    -----
    The originals use the three measures to adapt the window an SVM is trained on, and leave these open:

    - *A batch without positives* has no recall, one without predicted positives no precision. That measure is then
      skipped, and its history is left as it is.
    - *A history without spread* gives no scale for a fall, so nothing is tested against it.
    - *Ties*: a value equal to a bound has not fallen below it.

    References
    ----------
    R. Klinkenberg and I. Renz, "Adaptive Information Filtering: Learning in the Presence of Concept Drifts", AAAI
    Workshop on Learning for Text Categorization, 1998.
    R. Klinkenberg and T. Joachims, "Detecting Concept Drift with Support Vector Machines", ICML 2000.

    Examples
    --------
    The tpr falls from 0.75 to 0.25 while the accuracy stays:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> for drift in fr.baselines.ThreeMeasures().update_many(*SCENARIOS["Imbalance2"].stream(seed=2)):
    ...     print(drift)
    drift at 5,199, since 4,800: recall down: 0.262, below its bound 0.454 (0.748 expected after 42 observations)
    """

    __slots__ = ()

    _kernel = Measures
    _names = ("accuracy", "recall", "precision")

    def __init__(
        self,
        warn: float = 10.0,
        detect: float = 15.0,
        batch: int = 200,
        history: int = 10,
        *,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
    ) -> None:
        warn, detect = check_deviations(warn, detect)
        batch = check_whole(batch, "batch")
        history = check_whole(history, "history", least=2)
        self._set_up_for_one(labels, positive, warn=warn, detect=detect, batch=batch, history=history)

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        size, right, positive, guessed, both = present = numbers[:5]
        n, value, mean, error, place, kept = numbers[5:23].reshape(3, 6).T
        past = numbers[23:]
        whole = np.concatenate([present, n, kept])
        shares = np.concatenate([value, mean])
        return bool(
            (whole == np.floor(whole)).all()
            and 0 <= both <= min(positive, guessed)
            and max(positive, guessed, right) <= size < self.parameters["batch"]
            and right >= 0
            and ((n >= 0) & (n <= self.parameters["batch"])).all()
            and (np.isnan(shares) | ((shares >= 0) & (shares <= 1))).all()
            and (np.isnan(error) | ((error >= 0) & (error <= 1))).all()
            and np.isin(place, (0, 1)).all()
            and ((kept >= 0) & (kept <= counts.sum())).all()
            and ((past >= 0) & (past <= 1)).all()
        )

    def _unjudged(self) -> int:
        return int(self._numbers(self.record_bytes)[0])

    @classmethod
    def _least_size(cls, about: Mapping[str, Any]) -> int:
        history = about.get("history")
        return super()._least_size(about) + (8 * len(cls._names) * history if isinstance(history, int) else 0)

    def _rate_state(self, record: bytes, i: int) -> RateState:
        n, value, mean, error, _, _ = self._numbers(record)[5:23].reshape(3, 6)[i].tolist()
        reaches = (self.parameters[level] * error if error > 0 else math.inf for level in ("warn", "detect"))
        warn, detect = (Bounds(mean - reach if reach < math.inf else -math.inf, math.inf) for reach in reaches)
        return RateState(int(n), value, (Statistic(None, value, warn, detect, None if math.isnan(mean) else mean),))

    def _crossed(self, record: bytes) -> list[tuple[int, bool]]:
        return [(int(i), True) for i in np.flatnonzero(self._numbers(record)[5:23].reshape(3, 6)[:, 4] == DRIFT)]

"""DDM for online class imbalance, the time-decayed recall of the positive class against its best so far."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_deviations, check_number, check_whole
from fourrates.detectors.base import CountingDetector
from fourrates.findings import Bounds, RateState, Statistic
from fourrates.kernel.baselines import Recall
from fourrates.labels import rate_names


class DDMOCI(CountingDetector):
    r"""Drift Detection Method for Online Class Imbalance (DDM-OCI); alarms when the rare class loses recall.

    The test of DDM on the time-decayed recall of one class: at its n-th example :math:`R \leftarrow \eta R + (1 - \eta)
    I`, with I = 1 if it was recognised, and :math:`s = \sqrt{R (1 - R) / n}`. It remembers :math:`R_{max}` and
    :math:`s_{max}` from the greatest R + s, warns when :math:`R - s < R_{max} - 2 s_{max}`, and reports a drift below
    :math:`R_{max} - 3 s_{max}`. Then it starts afresh.

    It alarms without any drift, as s is the deviation of a plain mean of n bits, while R never stops swinging. Wang &
    Abraham set 10 and 20 deviations for that reason. :class:`~fourrates.LFR` has bounds that hold.

    Parameters
    ----------
    decay : float
        Weight of the past :math:`\eta`, in (0, 1).
    warn, detect : float
        Deviations below the maximum at which it warns and reports.
    minimum : int
        The first example of the class, counted from 1 since the last drift, at which R is trusted and tested.
    labels : iterable of hashables
        The classes, two or more.
    positive : label, optional
        The class to watch, the rare one; the last if not given.

    Notes
    -----
    Where three public implementations differ (MATLAB, from the group that extended LFR; MOA, from the university that
    proposed it; Python, for a comparison of learners), the choice here is:

    - *The first R* is 0, as in MATLAB and Python. At example 30 the start weighs :math:`0.9^{30} = 0.04`.
    - *The minimum* and *n* count examples of the class. MATLAB and MOA count events of any class for the minimum, which
      at one positive in ten trusts a recall made of three.
    - *The maximum* is that of R + s, with both parts from the same example. Python has separate maxima.
    - *Ties*: a value equal to a bound has not crossed it. With "at most", a class that is never recognised would alarm
      at every example.

    References
    ----------
    S. Wang, L. Minku, D. Ghezzi, D. Caltabiano, P. Tino and X. Yao, "Concept Drift Detection for Online Class Imbalance
    Learning", IJCNN 2013.

    Examples
    --------
    The tpr falls from 0.75 to 0.25 at event 5,000. One alarm is false, one is not:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> for drift in fr.baselines.DDMOCI(warn=10, detect=20).update_many(*SCENARIOS["Imbalance2"].stream(seed=6)):
    ...     print(drift)
    drift at 1,805, since 1,792: tpr down: 0.584, below its bound 0.634 (0.905 expected after 391 observations)
    drift at 5,037, since 5,016: tpr down: 0.282, below its bound 0.299 (0.928 expected after 643 observations)
    """

    __slots__ = ("_names",)

    _kernel = Recall

    def __init__(
        self,
        decay: float = 0.9,
        warn: float = 2.0,
        detect: float = 3.0,
        minimum: int = 30,
        *,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
    ) -> None:
        decay = check_number(decay, "decay")
        if not 0 < decay < 1:
            raise ValueError(f"decay {decay!r} is not in (0, 1)")
        warn, detect = check_deviations(warn, detect)
        minimum = check_whole(minimum, "minimum")
        watched = self._set_up_for_one(labels, positive, decay=decay, warn=warn, detect=detect, minimum=minimum)
        self._names = (rate_names(self._labels.values)[watched],)

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        n, recall, r_max, s_max = numbers.tolist()
        known = 0 <= r_max <= 1 or r_max == -math.inf
        return bool(n in counts.sum(1) and 0 <= recall <= 1 and known and 0 <= s_max <= 1)

    def _rate_state(self, record: bytes, i: int) -> RateState:
        n, recall, r_max, s_max = self._numbers(record).tolist()
        value = recall - math.sqrt(recall * (1 - recall) / n) if n else math.nan
        warn, detect = (Bounds(r_max - self.parameters[level] * s_max, math.inf) for level in ("warn", "detect"))
        expected = r_max - s_max if math.isfinite(r_max) else None
        statistic = Statistic(self.parameters["decay"], value, warn, detect, expected)
        return RateState(int(n), recall if n else math.nan, (statistic,))

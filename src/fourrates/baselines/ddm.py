"""Drift Detection Method, the error rate against its best so far."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_deviations, check_whole
from fourrates.detectors.base import CountingDetector
from fourrates.findings import Bounds, RateState, Statistic
from fourrates.kernel.baselines import ErrorRate


class DDM(CountingDetector):
    r"""Drift Detection Method (DDM); alarms when the error rate rises above its best.

    After i events with error rate :math:`p_i` its deviation is :math:`s_i = \sqrt{p_i (1 - p_i) / i}`. DDM remembers
    :math:`p_{min}` and :math:`s_{min}` from when :math:`p_i + s_i` was least, warns when :math:`p_i + s_i` exceeds
    :math:`p_{min} + 2 s_{min}`, and reports a drift beyond :math:`p_{min} + 3 s_{min}`. Then it starts afresh.

    Parameters
    ----------
    warn, detect : float
        Deviations above the minimum at which it warns and reports.
    minimum : int
        The first event, counted from 1 since the last drift, at which p is trusted and tested.
    labels, positive
        As of :class:`~fourrates.baselines.NFR`.

    Notes
    -----
    The paper leaves these open:

    - *Zero errors*: there is no minimum before the first error. Otherwise it would be 0 for ever after, and the first
      error of a perfect classifier would be a drift.
    - *Ties*: a sum equal to a bound has not crossed it. The paper writes "at least", which differs only if
      :math:`s_{min} = 0`. Then a classifier that is always wrong would alarm at every event. An equal minimum leaves
      the earlier one in place.
    - *The thirtieth event* is the first that is tested, not the thirty-first.

    References
    ----------
    J. Gama, P. Medas, G. Castillo and P. Rodrigues, "Learning with Drift Detection", SBIA 2004.

    Examples
    --------
    The error rate rises from 0.1 to 0.3. If tpr falls at the same error rate, DDM stays silent:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> detector = fr.baselines.DDM()
    >>> for drift in detector.update_many(*SCENARIOS["Imbalance3"].stream(seed=3)):
    ...     print(drift)
    drift at 5,212, since 5,027: error up: 0.116, above its bound 0.116 (0.101 expected after 5,213 observations)
    >>> detector.reset()
    >>> detector.update_many(*SCENARIOS["Imbalance2"].stream(seed=3))
    []
    """

    __slots__ = ()

    _kernel = ErrorRate
    _names = ("error",)

    def __init__(
        self,
        warn: float = 2.0,
        detect: float = 3.0,
        minimum: int = 30,
        *,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
    ) -> None:
        warn, detect = check_deviations(warn, detect)
        self._set_up(labels, positive, warn=warn, detect=detect, minimum=check_whole(minimum, "minimum"))

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        n, errors, p_min, s_min = numbers.tolist()
        known = 0 <= p_min <= 1 and 0 <= s_min <= 1
        return bool(n == counts.sum() and errors == n - counts.trace() and (known or p_min == s_min == math.inf))

    def _rate_state(self, record: bytes, i: int) -> RateState:
        n, errors, p_min, s_min = self._numbers(record).tolist()
        p = errors / n if n else math.nan
        value = p + math.sqrt(p * (1 - p) / n) if n else math.nan
        warn, detect = (Bounds(-math.inf, p_min + self.parameters[level] * s_min) for level in ("warn", "detect"))
        statistic = Statistic(None, value, warn, detect, p_min + s_min if math.isfinite(p_min) else None)
        return RateState(int(n), p, (statistic,))

    def _crossed(self, record: bytes) -> list[tuple[int, bool]]:
        return [(0, False)]

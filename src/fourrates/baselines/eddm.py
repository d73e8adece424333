"""Early Drift Detection Method, the distance between errors against its longest so far."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_shares, check_whole
from fourrates.detectors.base import CountingDetector
from fourrates.findings import Bounds, RateState, Statistic
from fourrates.kernel.baselines import Distances


class EDDM(CountingDetector):
    r"""Early Drift Detection Method (EDDM); alarms when errors get closer together than they were.

    For each error EDDM computes the distance, in events, from the error before. It keeps the greatest :math:`p' + 2 s'`
    of the mean and standard deviation of these distances, warns when the present value falls below 0.95 of that, and
    reports a drift below 0.90. Then it starts afresh.

    Soon after each start it is apt to alarm without a drift: of 100 stable streams with error rates from 0.05 to 0.4,
    40 to 45 alarm by their sixtieth error.

    Parameters
    ----------
    warn, detect : float
        Shares of the greatest value, in (0, 1), below which it warns and reports; the paper's alpha and beta.
    minimum : int
        Errors since the last drift before anything is measured or tested.
    labels, positive
        As of :class:`~fourrates.baselines.NFR`.

    Notes
    -----
    The paper leaves these open:

    - *The greatest value* is the first at error number `minimum`. From the first error on (or, as in MOA, from event 30
      on), a few distances decide: of 100 such streams, 44 to 64 alarm at their thirtieth error.
    - *The first distance* is counted from the start, or from the drift before, which was an error too.
    - *The standard deviation* divides by the number of distances, as in MOA; river divides by one less.
    - *Ties*: a value equal to a bound has not crossed it. *Between errors* nothing is tested; a warning continues.

    References
    ----------
    M. Baena-Garcia, J. del Campo-Avila, R. Fidalgo, A. Bifet, R. Gavalda and R. Morales-Bueno, "Early Drift Detection
    Method", Fourth International Workshop on Knowledge Discovery from Data Streams, 2006.

    Examples
    --------
    The error rate rises from 0.1 to 0.3:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> drift, *later = fr.baselines.EDDM().update_many(*SCENARIOS["Imbalance3"].stream(seed=4))
    >>> print(drift)
    drift at 5,243, since 4,957: distance down: 25.317, below its bound 25.330 (28.145 expected after 590 observations)
    """

    __slots__ = ()

    _kernel = Distances
    _names = ("distance",)

    def __init__(
        self,
        warn: float = 0.95,
        detect: float = 0.90,
        minimum: int = 30,
        *,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
    ) -> None:
        warn, detect = check_shares(warn, detect)
        self._set_up(labels, positive, warn=warn, detect=detect, minimum=check_whole(minimum, "minimum"))

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        n, last, errors, total, squares, most = numbers.tolist()
        return bool(
            n == counts.sum()
            and errors == n - counts.trace()
            and errors <= last == total <= n
            and 0 <= squares < math.inf
            and 0 <= most < math.inf
        )

    def _rate_state(self, record: bytes, i: int) -> RateState:
        _, _, errors, total, squares, most = self._numbers(record).tolist()
        mean = total / errors if errors else math.nan
        value = mean + 2 * math.sqrt(squares / errors) if errors else math.nan
        shares = self.parameters["warn"], self.parameters["detect"]
        warn, detect = (Bounds(share * most if most else -math.inf, math.inf) for share in shares)
        return RateState(int(errors), mean, (Statistic(None, value, warn, detect, most or None),))

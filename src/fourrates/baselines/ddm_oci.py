"""DDM for online class imbalance: the time-decayed recall of the positive class against its best so far."""

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


class DDMOCI(CountingDetector, Recall):
    r"""Drift Detection Method for Online Class Imbalance (DDM-OCI): an alarm when the rare class loses recall.

    The recall of a rare class collapses long before the error rate shows it. DDM-OCI applies the test of DDM to the
    time-decayed recall of that class: at its n-th example :math:`R \leftarrow \eta R + (1 - \eta) I`, with I = 1 if it
    was recognised, and :math:`s = \sqrt{R (1 - R) / n}`. It remembers :math:`R_{max}` and :math:`s_{max}` from the
    greatest R + s, warns when :math:`R - s < R_{max} - 2 s_{max}`, and reports a drift below :math:`R_{max} - 3
    s_{max}`. Then it starts afresh.

    **Input**: pairs (y_true, y_pred) of labels. Events of other classes change nothing.

    **Blind to** everything but that recall; all of the other class may be misclassified (see the second example). And
    it alarms without any drift. Its s is the deviation of a plain mean of n bits, while R, which weighs the last
    :math:`1 / (1 - \eta)` of them, never stops swinging. The more examples, the narrower the bound and the more false
    alarms; Wang & Abraham set 10 and 20 deviations for that reason. :class:`~fourrates.LFR` is the same statistic with
    bounds that hold.

    Parameters
    ----------
    decay : float
        Weight of the past :math:`\eta`, in (0, 1).
    warn, detect : float
        Deviations below the maximum at which it warns and reports.
    minimum : int
        The first example of the class, counted from 1 since the last drift, at which R is trusted. Before it there is
        no maximum and no test.
    labels : iterable of hashables
        The classes, two or more.
    positive : label, optional
        The class to watch, the rare one; the last if not given.

    Notes
    -----
    The rule follows three public implementations: (1) in MATLAB, from the group that extended LFR, (2) for MOA, from
    the university that proposed DDM-OCI, (3) in Python, for a comparison of learners. When these differ, or the rule
    fails, the choice here is:

    - *The first R* is 0, as in (1) and (3); (2) corrects R for its start. At example 30 the start weighs
      :math:`0.9^{30} = 0.04`.
    - *The minimum count* is of examples of the class, since they make n. (1) and (2) count events of any class, which
      at one positive in ten trusts a recall made of three; (3) has none.
    - *n* counts the examples of the class, as in (1). (2) lets that count decay as well; (3) counts all events.
    - *The maximum* is that of R + s, with both parts taken from the same example, as in (1) and (2), the mirror of DDM.
      (3) has separate maxima of R and of s.
    - *Ties*: a value equal to a bound has not crossed it, as in (3). (1) and (2) write "at most", which differs only if
      :math:`s_{max} = 0`. Then a class that is never recognised would alarm at every example.
    - *Which class is rare* is up to the user; it is not estimated from the stream.

    Examples
    --------
    The tpr falls from 0.75 to 0.25 at event 5,000 while the accuracy stays. One alarm is false, one is not:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> detector = fr.baselines.DDMOCI(warn=10, detect=20)
    >>> for drift in detector.update_many(*SCENARIOS["Imbalance2"].stream(seed=6)):
    ...     print(drift)
    drift at 1,805, since 1,792: tpr down: 0.584, below its bound 0.634 (0.905 expected after 391 observations)
    drift at 5,037, since 5,016: tpr down: 0.282, below its bound 0.299 (0.928 expected after 643 observations)

    A thousand negatives, all misclassified:

    >>> detector.reset()
    >>> detector.update_many([0] * 1000, [1] * 1000)
    []

    References
    ----------
    S. Wang, L. Minku, D. Ghezzi, D. Caltabiano, P. Tino and X. Yao, "Concept Drift Detection for Online Class Imbalance
    Learning", IJCNN 2013.
    """

    __slots__ = ("_names",)

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
        watched = self._begin_watching(
            {
                "decay": decay,
                "warn": warn,
                "detect": detect,
                "minimum": minimum,
                "labels": labels,
                "positive": positive,
            }
        )
        self._names = (rate_names(self._labels.values)[watched],)
        self._configure(len(self._labels.values), watched, decay, warn, detect, minimum)

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        n, recall, r_max, s_max = numbers.tolist()
        known = 0 <= r_max <= 1 or r_max == -math.inf
        return bool(n in counts.sum(1) and 0 <= recall <= 1 and known and 0 <= s_max <= 1)

    def _rate_state(self, i: int) -> RateState:
        n, recall, r_max, s_max = self._numbers.tolist()
        value = recall - math.sqrt(recall * (1 - recall) / n) if n else math.nan
        warn, detect = (Bounds(r_max - self.parameters[level] * s_max, math.inf) for level in ("warn", "detect"))
        expected = r_max - s_max if math.isfinite(r_max) else None
        statistic = Statistic(self.parameters["decay"], value, warn, detect, expected)
        return RateState(int(n), recall if n else math.nan, (statistic,))

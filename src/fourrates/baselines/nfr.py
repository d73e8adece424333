"""Naive Four Rates, every rate of the confusion matrix against its own running average."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from fourrates.checks import check_whole
from fourrates.detectors.base import CountingDetector
from fourrates.detectors.lfr import SIDES, Sides
from fourrates.findings import Bounds, RateState, Statistic
from fourrates.kernel.baselines import RunningRates
from fourrates.labels import rate_names
from fourrates.null import check_level
from fourrates.record import DRIFT


class NFR(CountingDetector):
    r"""Naive Four Rates (NFR), the four rates of LFR, each tested by its plain share of correct predictions.

    The paper's own point of comparison. For each rate NFR keeps the share :math:`\hat P` of its n observations that
    were correct, and :math:`\bar P`, the running average of all values of :math:`\hat P`. Under a stable concept
    :math:`\hat P` is taken to be normal with mean :math:`\bar P` and variance :math:`\bar P (1 - \bar P) / n`. Beyond
    the quantile of the warning or detection level, NFR warns or reports a drift. Then it starts afresh.

    That law is not the one of :math:`\hat P - \bar P`, whose terms share their bits. So a level is no rate of false
    alarms.

    Parameters
    ----------
    warn, detect : float
        Levels of the bounds, per side, rate and step; the paper's :math:`\delta` and :math:`\epsilon`.
    minimum : int
        The first observation of a rate, counted from 1 since the last drift, at which it is tested.
    labels : iterable of hashables
        The classes. Two make the four rates, more make ``recall:<label>`` and ``precision:<label>``.
    positive : label, optional
        The positive one of two labels; the second if not given.
    sides : {"both", "down", "up"}
        Which moves raise an alarm; "down" is degradation only.

    Notes
    -----
    The paper leaves these open; benchmarks/paper_tables.py has the results of other readings:

    - *Initial values*: none, as for LFR, instead of the four pseudo-counts of the paper's Algorithm 1.
    - *The running average* contains the present :math:`\hat P`, as in the proof of the paper's Lemma 2.
    - *A minimum count* is not in the paper, but the normal law is one for large n. Without it eleven correct
      predictions and then a wrong one are a drift at level 0.001.
    - *Ties*: a rate equal to a bound has not crossed it; so one that was always 1, or always 0, never does.

    References
    ----------
    H. Wang and Z. Abraham, "Concept Drift Detection for Streaming Data", IJCNN 2015.

    Examples
    --------
    The class ratio changes from 1:1 to 9:1, first after 5,000 events, then after 100,000. Late changes take longer:

    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> for length in (10_000, 200_000):
    ...     drift, *later = fr.baselines.NFR().update_many(*SCENARIOS["Imbalance1"].stream(seed=1, length=length))
    ...     print(drift.at - length // 2, drift.changes[0].rate)
    227 tnr
    1169 npv
    """

    __slots__ = ("_deviations", "_names")

    _kernel = RunningRates

    _deviations: tuple[float, float]  # that the warning and the detection level allow

    def __init__(
        self,
        warn: float = 0.025,
        detect: float = 1e-3,
        minimum: int = 30,
        *,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
        sides: Sides = "both",
    ) -> None:
        from statistics import NormalDist  # takes as long to import as all the rest

        warn, detect = check_level(warn, "warn"), check_level(detect, "detect")
        if not detect < warn:
            raise ValueError(f"warn {warn!r} is not larger than detect {detect!r}")
        minimum = check_whole(minimum, "minimum")
        if sides not in SIDES:
            raise ValueError(f"sides {sides!r} is not one of {SIDES}")
        self._begin({"warn": warn, "detect": detect, "minimum": minimum, "labels": labels, "positive": positive})
        self.parameters["sides"] = sides
        self._names = rate_names(self._labels.values)
        self._deviations = (-NormalDist().inv_cdf(warn), -NormalDist().inv_cdf(detect))
        classes, watched = len(self._labels.values), {"down": sides != "up", "up": sides != "down"}
        self._follow(self._kernel(classes, *self._deviations, minimum, **watched))

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        n, ones, total, place, down = numbers[1:].reshape(-1, 5).T
        return bool(
            (n == np.concatenate([counts.sum(1), counts.sum(0)])).all()
            and (ones == np.tile(counts.diagonal(), 2)).all()
            and ((total >= 0) & (total <= n)).all()
            and np.isin(place, (0, 1)).all()
            and np.isin(down, (0, 1)).all()
            and numbers[0] == place.sum()
        )

    def _rate_state(self, record: bytes, i: int) -> RateState:
        n, ones, total, _, _ = self._numbers(record)[1:].reshape(-1, 5)[i].tolist()
        estimate = ones / n if n else math.nan
        expected = total / n if n else None
        warn, detect = (self._bounds(n, expected, deviations) for deviations in self._deviations)
        return RateState(int(n), estimate, (Statistic(None, estimate, warn, detect, expected),))

    def _crossed(self, record: bytes) -> list[tuple[int, bool]]:
        _, _, _, place, down = self._numbers(record)[1:].reshape(-1, 5).T
        return [(int(i), bool(down[i])) for i in np.flatnonzero(place == DRIFT)]

    def _bounds(self, n: float, expected: float | None, deviations: float) -> Bounds:
        if expected is None or n < self.parameters["minimum"]:
            return Bounds(-math.inf, math.inf)
        reach, sides = deviations * math.sqrt(expected * (1 - expected) / n), self.parameters["sides"]
        return Bounds(
            expected - reach if sides != "up" else -math.inf, expected + reach if sides != "down" else math.inf
        )

"""Events between two false alarms of an LFR, for a stable concept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fourrates.budget import chain, coincidence
from fourrates.budget.confusion import probabilities, rates

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.detectors.lfr import LFR


def expected_run_length(detector: LFR, confusion: npt.ArrayLike) -> float:
    """Events between two false alarms of a detector, for a stable concept with this confusion matrix.

    Parameters
    ----------
    detector : LFR
        Any, whatever it has seen.
    confusion : K x K array
        Probabilities or counts, by true class and then by predicted class.

    Returns
    -------
    float
        The run length of a detector that has been running for long. Statistics that share bits, and so alarm
        together, are counted once per cluster of alarms.

    Examples
    --------
    >>> import fourrates as fr
    >>> f"{fr.expected_run_length(fr.LFR(detect=1e-5), [[40, 10], [10, 40]]):,.0f}"
    '58,165'
    """
    matrix = probabilities(confusion, len(detector.rates) // 2)
    statistics = [
        coincidence.Statistic(i, share, value, decay, within, chain.hazard(decay, value, within))
        for i, (name, (share, value)) in enumerate(zip(detector.rates, rates(matrix), strict=True))
        if share
        for decay, *limits in detector.asymptotic_bounds(name, value)
        for within in [(limits[0], limits[1])]
    ]
    total = coincidence.hazard(statistics, matrix)
    return 1 / total if total > 0 else math.inf

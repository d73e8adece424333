"""How soon a detector would find a fall of one recall by some points, the question behind a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fourrates.budget.confusion import probabilities
from fourrates.budget.delay import check_horizon
from fourrates.budget.simulation import simulated_delay
from fourrates.labels import rate_names

if TYPE_CHECKING:
    from fourrates.detectors.base import Detector

Matrix = npt.NDArray[np.float64]

POINTS = (2.0, 5.0, 10.0, 20.0)
STREAMS, FEWEST = 100, 12  # for each fall; the median of 100 has a standard error of about 12 %
EVENTS = 3_000_000  # drawn for a fall, about; beyond, fewer streams are drawn
PATIENCE = 4.0  # times the best case of a fall; how far to look ahead
LOST = 0.4  # of the budget; by then a third of stable streams have had a false alarm
LONGEST = 4_000_000  # events; a fall that takes longer at best is not simulated


@dataclass(frozen=True, slots=True)
class Fall:
    """A fall of a recall, and how soon it would be found."""

    rate: str
    before: float
    after: float
    median: float | None  #: events until half of the streams had an alarm; None if that is beyond the horizon
    #: events simulated after the fall. If even a detector that knew of the fall would need more than four million,
    #: nothing is simulated, and this is its need
    horizon: int
    found: float  #: the share of the streams with an alarm by then
    streams: int  #: how many were simulated; 0 for none
    lost: bool = False  #: whether it takes as long as a false alarm would, which is then the likelier finding

    @property
    def standard_error(self) -> float:
        """Of `found`."""
        return math.sqrt(self.found * (1 - self.found) / self.streams) if self.streams else 0.0

    def to_dict(self, per_day: float | None = None) -> dict[str, Any]:
        """Plain values for JSON; the delay in days as well if the events a day are known."""
        days = None if per_day is None or self.median is None else round(self.median / per_day, 4)
        return {
            "rate": self.rate,
            "from": self.before,
            "to": self.after,
            "median": self.median,
            **({} if per_day is None else {"days": days}),
            "horizon": self.horizon,
            "found": self.found,
            "standard_error": self.standard_error,
            "streams": self.streams,
            "lost": self.lost,
        }


def fallen(confusion: npt.ArrayLike, which: int, points: float) -> Matrix | None:
    """The confusion matrix after the recall of a class fell, errors shared as before; None if it is too low."""
    if not points > 0:
        raise ValueError(f"a fall of {points:g} points: a fall is a positive number of points")
    matrix = probabilities(confusion, len(np.asarray(confusion)))
    total, right = matrix[which].sum(), matrix[which, which]
    by = points / 100 * total
    if right < by:
        return None
    after = matrix.copy()
    others = np.arange(len(matrix)) != which
    wrong = matrix[which, others]
    share = wrong / wrong.sum() if wrong.any() else np.full(wrong.size, 1 / wrong.size)
    after[which, which] = right - by
    after[which, others] = wrong + by * share
    return after


def falls(
    detector: Detector,
    confusion: npt.ArrayLike,
    points: Iterable[float] = POINTS,
    *,
    classes: Sequence[int] | None = None,
    history: int = 10_000,
    horizon: int | None = None,
    seed: int = 0,
) -> list[Fall]:
    """Estimate how soon falls of each recall would be found, by running the detector on streams that have one.

    Five `points` are from 0.90 to 0.85. `classes` are positions, all if not given; `history` is the number of events
    before the fall, `horizon` after it, by default as many as it is likely to need.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.budget.falls import falls
    >>> small, large = falls(fr.FourRates(100_000), [[720, 80], [40, 160]], points=[10, 20], classes=[1])
    >>> f"{large.rate} from {large.before:.2f} to {large.after:.2f}", large.median < small.median < 3_000
    ('tpr from 0.80 to 0.60', True)
    """
    if horizon is not None:
        check_horizon(horizon)
    if history < 0:
        raise ValueError(f"history {history!r} must be at least 0")
    before = probabilities(confusion, len(detector.labels.values))
    names = rate_names(detector.labels.values)
    random = np.random.default_rng(seed)
    found = []
    for which in range(len(before)) if classes is None else classes:
        for fall in points:
            after = fallen(before, which, fall)
            if after is None or not before[which].sum():
                continue
            rate = before[which, which] / before[which].sum(), after[which, which] / after[which].sum()
            least = _least(detector, float(before[which].sum()), *rate)
            if horizon is None and least > LONGEST:
                found.append(Fall(names[which], *rate, None, int(min(least, 1e15)), 0.0, 0))
                continue
            ahead = horizon or int(max(1_000, min(PATIENCE * least, _budget(detector))))
            streams = int(min(max(EVENTS / (history + least), FEWEST), STREAMS))
            delay = simulated_delay(
                detector, before, after, streams=streams, history=history, horizon=ahead, seed=random
            )
            median = delay.median if math.isfinite(delay.median) else None
            lost = (median or ahead) > LOST * _budget(detector)
            found.append(Fall(names[which], *rate, median, ahead, delay.within(ahead), streams, lost))
    return found


def smallest_fall(
    detector: Detector, confusion: npt.ArrayLike, which: int, within: int, most: int = 100
) -> Fall | None:
    """The smallest fall of a recall, in points, that half of the streams find within these events; or None."""

    def found(points: int) -> Fall | None:
        listed = falls(detector, confusion, [points], classes=[which], history=0, horizon=within)
        return listed[0] if listed and listed[0].median is not None else None

    matrix = probabilities(confusion, len(detector.labels.values))
    share = float(matrix[which].sum())
    points = min(most, math.ceil(100 * float(matrix[which, which]) / share) - 1) if share else 0
    best = found(points) if points > 0 else None
    missed = 0
    while best is not None and best.median is not None and points - missed > 1:
        # Half the fall takes about four times as long, so that is tried next.
        guess = min(max(round(points * math.sqrt(best.median / within)), missed + 1), points - 1)
        smaller = found(guess)
        if smaller is None:
            missed = guess
        else:
            best, points = smaller, guess
    return best


def _budget(detector: Detector) -> float:
    """Events between two false alarms; infinite if the detector has no budget."""
    return float(detector.parameters.get("arl") or math.inf)


def _least(detector: Detector, share: float, before: float, after: float) -> float:
    """Events that a detector of this budget and dispersion would need if it knew of the fall, about."""
    after = min(max(after, 1e-6), 1 - 1e-6)
    before = min(max(before, 1e-6), 1 - 1e-6)
    told = after * math.log(after / before) + (1 - after) * math.log((1 - after) / (1 - before))
    budget = min(_budget(detector), 1e12)
    known = detector.parameters.get("dispersion")
    scatter = known if isinstance(known, float | int) else 1.0
    return float(math.log(budget) * scatter / (share * told))

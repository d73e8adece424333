"""Run lengths: how many events there are between two false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fourrates.evaluate.scores import positions
from fourrates.findings import Drift


@dataclass(frozen=True, slots=True)
class RunLength:
    """Run lengths of streams that do not change. Those of several streams add up with ``+``.

    Attributes
    ----------
    runs : tuple of int
        Events from the start, or from the alarm before, up to and including each alarm.
    censored : tuple of int
        Events from the last alarm of each stream to its end, the unfinished runs.
    """

    runs: tuple[int, ...] = ()
    censored: tuple[int, ...] = ()

    def __add__(self, other: RunLength) -> RunLength:
        return RunLength(self.runs + other.runs, self.censored + other.censored)

    @property
    def alarms(self) -> int:
        """How many."""
        return len(self.runs)

    @property
    def events(self) -> int:
        """Events of all runs, unfinished ones too."""
        return sum(self.runs) + sum(self.censored)

    @property
    def mean(self) -> float:
        """Events an alarm; infinite without alarms.

        Unfinished runs count with their events, so that long runs are not left out. The maximum-likelihood estimate if
        an alarm is equally likely at every event.
        """
        return self.events / self.alarms if self.alarms else math.inf

    @property
    def standard_error(self) -> float:
        """Of the mean, if an alarm is equally likely at every event; infinite without alarms."""
        return self.mean / math.sqrt(self.alarms) if self.alarms else math.inf

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The exact confidence interval of the mean for a Poisson number of alarms (Garwood, 1936).

        Parameters
        ----------
        confidence : float
            The least probability to contain the true mean.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence {confidence} is not in (0, 1)")
        tail = (1 - confidence) / 2
        most = _poisson_mean(self.alarms, tail)
        least = _poisson_mean(self.alarms - 1, 1 - tail) if self.alarms else 0.0
        return self.events / most, self.events / least if least else math.inf


def run_length(drifts: Iterable[Drift | int], length: int) -> RunLength:
    """The run lengths of a stream that does not change.

    Parameters
    ----------
    drifts : iterable of Drift or int
        As found, or the events at which they were.
    length : int
        Events of the stream.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.evaluate import run_length
    >>> from fourrates.streams import SCENARIOS
    >>> stream = SCENARIOS["Balance1"].stream(seed=1, length=2_000_000, change=2_000_000)
    >>> found = run_length(fr.LFR(detect=1e-4).update_many(*stream), 2_000_000)
    >>> f"{found.alarms} alarms, one in {found.mean:,.0f} events, standard error {found.standard_error:,.0f}"
    '301 alarms, one in 6,645 events, standard error 383'
    >>> [round(limit) for limit in found.interval()]
    [5935, 7464]
    """
    ends = [-1, *positions(drifts, length), length - 1]
    *runs, rest = (late - early for early, late in pairwise(ends))
    return RunLength(tuple(runs), (rest,))


def _poisson_mean(most: int, probability: float) -> float:
    """The mean of a Poisson count that is at most `most` with this probability."""
    counts = np.arange(most + 1)
    factorials = np.array([math.lgamma(count + 1) for count in range(most + 1)])

    def chance(mean: float) -> float:
        return float(np.exp(counts * math.log(mean) - mean - factorials).sum())

    low, high = 0.0, most + 1.0
    while chance(high) > probability:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if chance(middle) > probability else (low, middle)
    return middle

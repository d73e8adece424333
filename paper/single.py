"""One run of LFR and NFR on the same stream, step by step: what the paper's Figure 1 shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.streams import SCENARIOS
from paper import settings
from paper.synthetic import LENGTH, WINDOW

STEP = 5  # events between two points of a curve
TRIES = 1000


@dataclass(frozen=True, slots=True)
class SingleRun:
    """The statistics of both detectors along one stream.

    Attributes
    ----------
    seed : int
        Of the stream.
    change : int
        The first event of the new concept.
    events : array
        Where the curves have points.
    linear, naive : dict of arrays
        R of LFR and P-hat of NFR, by rate.
    found : dict of lists
        When each detector reported a drift.
    """

    seed: int
    change: int
    events: npt.NDArray[np.int64]
    linear: dict[str, npt.NDArray[np.float64]]
    naive: dict[str, npt.NDArray[np.float64]]
    found: dict[str, list[int]]

    @property
    def rates(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.linear)


def single_run(seed: int) -> SingleRun:
    """The first run of Balance1 in which LFR does as in the paper's figure: one report, within 200 events.

    Parameters
    ----------
    seed : int
        Of the first run that is tried.

    Examples
    --------
    >>> from paper.single import single_run
    >>> run = single_run(0)
    >>> run.change, len(run.found["LFR"]), run.found["LFR"][0] < 5200
    (5000, 1, True)
    """
    change = LENGTH // 2
    for tried in range(seed, seed + TRIES):
        truth, pred = SCENARIOS["Balance1"].stream(seed=tried, length=LENGTH)
        times = [drift.at for drift in settings.synthetic()["LFR"].update_many(truth, pred)]
        if len(times) == 1 and change <= times[0] < change + WINDOW:
            return _followed(tried, change, truth, pred)
    raise RuntimeError(f"LFR found the change of none of {TRIES} streams from seed {seed} on")


def _followed(seed: int, change: int, truth: npt.NDArray[np.uint8], pred: npt.NDArray[np.uint8]) -> SingleRun:
    made: dict[str, Any] = dict(settings.synthetic())
    curves: dict[str, dict[str, list[float]]] = {"LFR": {}, "NFR": {}}
    found: dict[str, list[int]] = {"LFR": [], "NFR": []}
    for start in range(0, truth.size, STEP):
        part = slice(start, start + STEP)
        for name, own in curves.items():
            found[name] += [drift.at for drift in made[name].update_many(truth[part], pred[part])]
            for rate, state in made[name].rates.items():
                own.setdefault(rate, []).append(state.statistics[0].value)
    events = np.arange(STEP - 1, truth.size, STEP)
    linear, naive = ({rate: np.array(values) for rate, values in own.items()} for own in curves.values())
    return SingleRun(seed, change, events, linear, naive, found)

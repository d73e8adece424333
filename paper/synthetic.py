"""The six synthetic experiments: pairs drawn from one confusion matrix, then from another; all detectors on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fourrates import null
from fourrates.streams import SCENARIOS
from paper import settings
from paper.store import Result

VERSION = 1  # of the numbers: raise it when they come out differently
LENGTH, SHORT = 10_000, 2_000
WINDOW = 200  # events after a change in which a drift is a hit; the bin of the paper's histograms


@dataclass(frozen=True, slots=True)
class Synthetic:
    """One of the paper's scenarios, drawn anew for each run.

    Attributes
    ----------
    name : str
        As the paper names it.
    quick : bool
        Whether the streams are cut to a fifth.
    """

    name: str
    quick: bool = False

    window = WINDOW
    cost = 0.02  # seconds a run, about: what the progress bar goes by
    once = False
    needs = ()  # data sets

    @property
    def length(self) -> int:
        """Events in a stream."""
        return SHORT if self.quick else LENGTH

    @property
    def changes(self) -> tuple[int, ...]:
        """The first event of the new concept."""
        return (self.length // 2,)

    def key(self, seed: int) -> dict[str, Any]:
        """Everything the numbers depend on."""
        return {
            "version": (VERSION, null.VERSION),
            "seed": seed,
            "length": self.length,
            "scenario": repr(SCENARIOS[self.name]),
            "detectors": {name: repr(made) for name, made in settings.synthetic().items()},
        }

    def run(self, run: int, seed: int, folder: str | None = None) -> Result:
        """The drifts each detector finds in one stream."""
        number = list(SCENARIOS).index(self.name)
        stream = SCENARIOS[self.name].stream(
            seed=seed + 1_000_000 * number + run, length=self.length, change=self.changes[0]
        )
        return {
            "drifts": {
                name: [drift.at for drift in detector.update_many(*stream)]
                for name, detector in settings.synthetic().items()
            }
        }

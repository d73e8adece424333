"""The share of predicted positives, watched from predictions alone, before their labels come.

It is FourRates for one rate: if every event is counted as of the positive class, the recall of that class is the share
of predicted positives. So the evidence, its tempering for correlated events, the normal by season and the state are
those of every other watch. An alarm becomes a :class:`~fourrates.findings.PredictionShift`, and the new share is normal
at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.detectors import Detector, FourRates
from fourrates.detectors.four_rates import MOST
from fourrates.detectors.seasons import SEASONS
from fourrates.findings import Finding, PredictionShift
from fourrates.io import Batch
from fourrates.watch.versions import Version

if TYPE_CHECKING:
    from fourrates.watch.streams import Placed

TIMES = 10.0  # predictions between two false shifts, for each event between two false alarms


def watch_of_predictions(detector: Detector, overall: Detector | None) -> Version | None:
    """What watches the predictions of a watch with these detectors; None unless they are FourRates for two labels."""
    if not isinstance(detector, FourRates) or len(detector.labels.values) != 2:
        return None
    return Version.first(_share(detector), None if overall is None else _share(overall), None, None)


def _share(detector: Detector) -> FourRates:
    own = detector.parameters
    return FourRates(
        budget_of_predictions(own["arl"]),
        labels=own["labels"],
        positive=own["positive"],
        after="restart",
        mix="ignore",
        strata=own["strata"] if own["strata"] in SEASONS else None,
        rates=["tpr"],
    )


def budget_of_predictions(arl: float) -> float:
    return min(TIMES * arl, MOST)


def prediction_shifts(version: Version, batch: Batch, names: Sequence[str], wait: str | None) -> list[Placed]:
    """The prediction shifts in a batch, whose labels are not looked at."""
    alike = replace(batch, truths=np.ones_like(batch.preds), strata=None, volumes=None, versions=None)
    return [(at, _as_shift(finding, wait)) for at, finding in version.take(alike, names)]


def _as_shift(finding: Finding, wait: str | None) -> PredictionShift:
    (change,) = finding.changes
    assert change.before is not None
    assert change.after is not None
    names = ("at", "started", "started_between", "segment", "time", "started_time", "source", "row", "started_row")
    own = {name: getattr(finding, name) for name in names}
    return PredictionShift(**own, before=change.before, after=change.after, wait=wait)


def load_watch_of_predictions(
    about: Any, sections: Mapping[str, memoryview], prefix: str, detector: Detector, overall: Detector | None
) -> Version:
    """One from the state of a watch with these detectors; invalid ones raise a ValueError or the like."""
    version, wanted = Version.from_state(about, sections, prefix, None), watch_of_predictions(detector, overall)
    own, asked = (
        [one.segments.detector.parameters for one in made.streams] if made else [] for made in (version, wanted)
    )
    if own != asked:
        raise ValueError(f"predictions are watched by {own} beside {detector!r}")
    return version

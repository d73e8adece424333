"""The share of predicted positives, watched from predictions alone, before their labels come.

It is FourRates for one rate: if every event is counted as of the positive class, the recall of that class is the share
of predicted positives. So the evidence, its tempering for correlated events, the normal by season and the state are
those of every other watch. An alarm becomes a :class:`~fourrates.findings.PredictionShift`, and the new share is normal
at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fourrates.detectors import Detector, FourRates
from fourrates.detectors.four_rates import MOST
from fourrates.detectors.seasons import SEASONS
from fourrates.findings import Finding, PredictionShift
from fourrates.io import Batch

TIMES = 10.0  # predictions between two false shifts, for each event between two false alarms


def share_detector(detector: Detector | None) -> FourRates | None:
    """The detector of prediction shifts beside another one; None unless that is FourRates for two labels."""
    if not isinstance(detector, FourRates) or len(detector.labels.values) != 2:
        return None
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


def as_positives(batch: Batch) -> Batch:
    """Predictions as events of the positive class; their labels are not looked at."""
    return replace(batch, truths=np.ones_like(batch.preds), strata=None, volumes=None, versions=None)


def as_shift(finding: Finding, wait: str | None) -> PredictionShift:
    (change,) = finding.changes
    assert change.before is not None
    assert change.after is not None
    names = ("at", "started", "started_between", "segment", "time", "started_time", "source", "row", "started_row")
    own = {name: getattr(finding, name) for name in names}
    return PredictionShift(**own, before=change.before, after=change.after, wait=wait)

"""The loop on a real stream nobody tuned for: elecNorm, prices of electricity that rise or fall, 45,312 half hours.

Its changes are not known, so nothing can be hit or missed. What counts is how often the predictions were right: with a
model that is never learnt anew, and with each detector in the loop. The stream has one order, so there is one run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fourrates import null
from paper import datasets, settings
from paper.public import CODES, RETRAIN, SHORT_RETRAIN, loaded, rarer, watched
from paper.store import Result

VERSION = 1  # of the numbers: raise it when they come out differently
NEVER, LAST = "never retrained", "the label before"
SHORT = 4_000
LIKE = "SEA"  # the settings of Table V that are taken


@dataclass(frozen=True, slots=True)
class Electricity:
    """The loop on elecNorm.

    Attributes
    ----------
    quick : bool
        Whether only the first 4,000 examples are taken.
    """

    quick: bool = False

    name = "elecNorm"
    cost = 8.0
    once = True
    needs = ("elecNorm",)

    @property
    def retrain(self) -> int:
        """Examples a model learns from."""
        return SHORT_RETRAIN if self.quick else RETRAIN[self.name]

    def key(self, seed: int) -> dict[str, Any]:
        """Everything the numbers depend on; the seed is not among it."""
        return {
            "version": (VERSION, null.VERSION),
            "files": datasets.DATASETS[CODES[self.name]].files,
            "length": SHORT if self.quick else None,
            "retrain": self.retrain,
            "detectors": {name: repr(made) for name, made in settings.public(LIKE).items()},
        }

    def run(self, run: int, seed: int, folder: str | None) -> Result:
        """How often each loop was right, and when it learnt anew, by model."""
        stream = loaded(self.name, folder)
        if self.quick:
            stream = replace(stream, features=stream.features[:SHORT], labels=stream.labels[:SHORT])
        first, rest = slice(self.retrain), slice(self.retrain, None)
        before = float(np.mean(stream.labels[self.retrain - 1 : -1] == stream.labels[rest]))
        accuracy: dict[str, dict[str, float]] = {}
        drifts: dict[str, dict[str, list[int]]] = {}
        for name, model in models().items():
            fixed = model.fit(stream.features[first], stream.labels[first]).predict(stream.features[rest])
            right = {NEVER: float(np.mean(fixed == stream.labels[rest]))}
            drifts[name] = {}
            for kind, detector in settings.public(LIKE, rarer(stream.labels)).items():
                drifts[name][kind], right[kind] = watched(stream, model, detector, self.retrain)
            accuracy[name] = {**right, LAST: before}
        return {"accuracy": accuracy, "drifts": drifts, "length": int(stream.labels.size), "retrain": self.retrain}


def models() -> dict[str, Any]:
    """The machine of the public experiments, with features brought to one scale, and a model that needs none."""
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from paper.svm import RBF

    return {"support vector machine": make_pipeline(StandardScaler(), RBF()), "naive Bayes": GaussianNB()}

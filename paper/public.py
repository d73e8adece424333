"""The experiments on public data: a support vector machine that is watched, and learnt anew when it drifts.

The examples of a data set are shuffled within each concept, anew for each run. The first model learns from the first
examples; the detectors watch it over the rest, each in a loop of its own, and what a detector reports is answered by a
new model. The paper makes errors on the minority class 100 times as dear; with that and its 1,000 examples the machine
says little else than that class, so each data set is run with these weights and without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates import null
from paper import datasets, settings
from paper.examples import Examples, permuted
from paper.store import Result

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.detectors import Detector
    from paper.svm import RBF

VERSION = 1  # of the numbers: raise it when they come out differently
DEARER = 100.0  # errors on the minority class, in the paper
SLACK = 5.0  # the C of the machine, which the paper does not print
CODES = {"SEA": "sea", "HYPERPLANE": "hyperplane", "USENET1": "usenet1", "USENET2": "usenet2", "elecNorm": "elecNorm"}
RETRAIN = {"SEA": 1000, "HYPERPLANE": 1000, "USENET1": 100, "USENET2": 100, "elecNorm": 1000}
WINDOWS = {"SEA": 1000, "HYPERPLANE": 1000, "USENET1": 20, "USENET2": 50}
"""Events after a change in which a drift is a hit, and the bins of the histograms. The paper does not print its own."""
SHORT, SHORT_RETRAIN = 500, 100  # examples of a concept and examples to retrain, where a run is to be quick
COSTS = {"SEA": 3.0, "HYPERPLANE": 4.5, "USENET1": 0.2, "USENET2": 0.2}  # seconds a run, about


@dataclass(frozen=True, slots=True)
class Public:
    """A public data set, shuffled within its concepts for each run.

    Attributes
    ----------
    dataset : str
        As the paper names it.
    weighted : bool
        Whether errors on the minority class are 100 times as dear.
    quick : bool
        Whether concepts are cut to 500 examples.
    """

    dataset: str
    weighted: bool = False
    quick: bool = False

    once = False

    @property
    def name(self) -> str:
        """For the file of its results."""
        return f"{self.dataset}-weighted" if self.weighted else self.dataset

    @property
    def cost(self) -> float:
        """Seconds a run, about."""
        return COSTS[self.dataset]

    @property
    def needs(self) -> tuple[str, ...]:
        """The data sets it reads."""
        return (CODES[self.dataset],)

    @property
    def window(self) -> int:
        """Events after a change in which a drift is a hit."""
        return WINDOWS[self.dataset]

    @property
    def retrain(self) -> int:
        """Examples a model learns from."""
        return min(RETRAIN[self.dataset], SHORT_RETRAIN) if self.quick else RETRAIN[self.dataset]

    @property
    def length(self) -> int:
        """Examples in a stream."""
        concept = self._concept
        return concept * (len(self.changes) + 1)

    @property
    def changes(self) -> tuple[int, ...]:
        """The first example of each new concept."""
        known = datasets.DATASETS[CODES[self.dataset]].changes
        return tuple(self._concept * (i + 1) for i in range(len(known)))

    @property
    def _concept(self) -> int:
        """Examples in each concept."""
        whole = datasets.DATASETS[CODES[self.dataset]].changes[0]
        return min(whole, SHORT) if self.quick else whole

    def detectors(self, positive: int = 1) -> dict[str, Detector]:
        """New ones, which watch; `positive` is the code of the minority class."""
        return settings.public(self.dataset, positive)

    def key(self, seed: int) -> dict[str, Any]:
        """Everything the numbers depend on."""
        return {
            "version": (VERSION, null.VERSION),
            "seed": seed,
            "files": datasets.DATASETS[CODES[self.dataset]].files,
            "length": self.length,
            "retrain": self.retrain,
            "dearer": DEARER if self.weighted else 1.0,
            "slack": SLACK,
            "detectors": {name: repr(made) for name, made in self.detectors().items()},
        }

    def run(self, run: int, seed: int, folder: str | None) -> Result:
        """What each detector reports in one order of the examples, and how often the models were right."""
        examples = loaded(self.dataset, folder)
        stream = _cut(permuted(examples, seed + run), examples.changes, self._concept)
        minority = rarer(examples.labels)
        model = _model(minority if self.weighted else None)
        found = {
            name: watched(stream, model, detector, self.retrain) for name, detector in self.detectors(minority).items()
        }
        return {
            "drifts": {name: drifts for name, (drifts, _) in found.items()},
            "accuracy": {name: accuracy for name, (_, accuracy) in found.items()},
        }


def _model(minority: int | None) -> RBF:
    from paper.svm import RBF

    return RBF(cost=SLACK) if minority is None else RBF(minority, DEARER, SLACK)


@lru_cache(maxsize=2)
def loaded(dataset: str, folder: str | None) -> Examples:
    """A data set, read once by each process."""
    return datasets.load(CODES[dataset], folder)


def rarer(labels: npt.NDArray[np.int64]) -> int:
    """The code of the minority class."""
    return int(np.argmin(np.bincount(labels)))


def watched(stream: Examples, model: Any, detector: Detector, retrain: int) -> tuple[list[int], float]:
    """The drifts of a model that has learnt from the first examples, and the share of the others it got right."""
    from fourrates.retrain import Retrainer

    first, rest = slice(retrain), slice(retrain, None)
    # Neither fewer nor more: a warning of DDM may last for thousands of examples.
    loop = Retrainer(model, detector, min_examples=retrain, max_examples=retrain).fit(
        stream.features[first], stream.labels[first]
    )
    said = loop.run(stream.features[rest], stream.labels[rest])
    return [retrain + drift.at for drift in loop.drifts], float(np.mean(said == stream.labels[rest]))


def _cut(stream: Examples, changes: tuple[int, ...], concept: int) -> Examples:
    """The first examples of each concept."""
    starts = (0, *changes)
    if concept == changes[0]:
        return stream
    kept = np.concatenate([np.arange(start, start + concept) for start in starts])
    return replace(
        stream,
        features=stream.features[kept],
        labels=stream.labels[kept],
        changes=tuple(concept * i for i in range(1, len(starts))),
    )

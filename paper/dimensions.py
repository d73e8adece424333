"""Ours, not the paper's: power over the dimension of the features, of tests on P(X, y) and of detectors on the rates.

Section II of the paper argues that tests on the joint distribution of features and label lose their power as the
dimension grows, while four rates stay four rates. Here that is measured. A classifier has learnt the old concept; then
a window of examples before a possible change and one after it are seen by every method: examples and labels by the
tests, true and predicted labels by the detectors. Each method gives the strictest level at which it finds a change, so
that all can be compared at the same number of false alarms, whatever a level of theirs means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

import fourrates as fr
from fourrates import null
from fourrates.detectors import Detector
from fourrates.distribution import EDivisive
from paper.figures import Powers
from paper.store import Result
from paper.tables import Record, Table
from paper.two_samples import DensityTest, ErrorTest, MarginTest, RankTest, TwoSampleTest

VERSION = 1  # of the numbers: raise it when they come out differently
FALSE_ALARMS = 0.05
"""Streams without a change in which a method may find one."""

NOISE = 0.5  # deviation of what is added to the score that decides the label
LEARN = 1_000  # examples of the classifier
NONE = ("none", 0.0)
GROWN = (("concept", 45.0), ("features", 0.5))  # changes that are made in every dimension
NEVER = 1.0  # the level of a method that finds nothing


@dataclass(frozen=True, slots=True)
class Change:
    """What changes, and by how much.

    Attributes
    ----------
    kind : str
        "none"; "concept": the rule turns by `size` degrees, P(X) and P(y) stay; "features": the mean of a feature that
        does not matter for the label moves by `size` deviations, P(y | X) stays and with it every rate.
    size : float
        How much.
    dimension : int
        Features; two of them matter at most.
    """

    kind: str
    size: float
    dimension: int

    @property
    def name(self) -> str:
        """In words."""
        said = {"none": "no change", "concept": f"rule turned by {self.size:g} degrees"}
        return said.get(self.kind, f"feature moved by {self.size:g} deviations")


@dataclass(frozen=True, slots=True)
class Case:
    """Two windows of examples, old and new in one, and what the classifier said."""

    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    predictions: npt.NDArray[np.int64]
    window: int


def examples(
    random: np.random.Generator, rows: int, dimension: int, degrees: float = 0.0, moved: float = 0.0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Normal features, and a label by a noisy linear rule on the first two of them."""
    features = random.normal(size=(rows, dimension))
    features[:, 1] += moved
    angle = np.deg2rad(degrees)
    score = np.cos(angle) * features[:, 0] + np.sin(angle) * features[:, 1]
    return features, (score + NOISE * random.normal(size=rows) > 0).astype(np.int64)


def case(change: Change, window: int, seed: tuple[int, ...]) -> Case:
    """A classifier of the old concept, a window before the change and one after it."""
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(seed)
    model = LogisticRegression(C=0.1).fit(*examples(random, LEARN, change.dimension))
    turned = {"degrees": change.size} if change.kind == "concept" else {}
    moved = {"moved": change.size} if change.kind == "features" else {}
    windows = [
        examples(random, window, change.dimension),
        examples(random, window, change.dimension, **turned, **moved),
    ]
    features, labels = (np.concatenate(parts) for parts in zip(*windows, strict=True))
    return Case(features, labels, model.predict(features), window)


# Methods -----------------------------------------------------------------------------------------------------

Method = Callable[[Case], float]
"""From a case to the strictest level at which it finds a change."""


def by_test(test: TwoSampleTest, one: Case) -> float:
    """The p-value of a test."""
    old, new = slice(one.window), slice(one.window, None)
    fitted = test.fit(one.features[old], one.labels[old])
    return fitted.test(one.features[new], one.labels[new]).p_value


def by_splitting(permutations: int, one: Case) -> float:
    """The p-value of the best split of both windows."""
    found = EDivisive(permutations=permutations, level=NEVER / 1e9).fit(one.features, one.labels)
    return NEVER if found.rejected_p_value_ is None else found.rejected_p_value_


def by_detector(kind: str, quick: bool, one: Case) -> float:
    """The strictest of some levels at which a detector alarms in the window after the change."""
    for level, detector in detectors(kind, quick):
        detector.reset()
        if any(drift.at >= one.window for drift in detector.update_many(one.labels, one.predictions)):
            return level
    return NEVER


LEVELS = (1e-6, 1e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
BUDGETS = (1_000_000, 300_000, 100_000, 30_000, 10_000, 5_000, 3_000, 2_000, 1_000)
DETECTORS: dict[str, Sequence[tuple[float, Callable[[], Detector]]]] = {
    **{
        f"LFR, decay {decay:g}": [(level, partial(fr.LFR, decay=decay, detect=level)) for level in LEVELS]
        for decay in (0.9, 0.98)
    },
    "FourRates": [(1 / arl, partial(fr.FourRates, arl=arl)) for arl in BUDGETS],
}
"""By name: from the strictest level on, how the detector is made."""


@cache
def detectors(kind: str, quick: bool) -> Sequence[tuple[float, Detector]]:
    """Made once a process: the bounds of a level take longer than a case. For a trial two levels will do."""
    return [(level, make()) for level, make in DETECTORS[kind][slice(1, None, 5) if quick else slice(None)]]


def methods(permutations: int, quick: bool = False) -> Mapping[str, Method]:
    """All that are compared, by name."""
    return {
        **{name: partial(by_detector, name, quick) for name in DETECTORS},
        "E-divisive": partial(by_splitting, permutations),
        "density": partial(by_test, DensityTest(permutations=permutations)),
        "rank": partial(by_test, RankTest()),
        "margin": partial(by_test, MarginTest(permutations=permutations)),
        "error": partial(by_test, ErrorTest(permutations=permutations)),
    }


NAMES = tuple(methods(1))


# The experiment ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Power of all methods as the dimension grows and as the change shrinks.

    Attributes
    ----------
    quick : bool
        Whether two dimensions and small windows must do.
    """

    quick: bool = False

    name = "dimensions"
    cost = 5.0
    once = False
    needs = ()

    @property
    def dimensions(self) -> tuple[int, ...]:
        """How many features."""
        return (2, 20) if self.quick else (2, 10, 50, 200, 500)

    @property
    def window(self) -> int:
        """Examples before the change, and after it."""
        return 60 if self.quick else 200

    @property
    def permutations(self) -> int:
        """For each p-value."""
        return 49 if self.quick else 199

    @property
    def among(self) -> int:
        """The dimension in which the change shrinks."""
        return 20 if self.quick else 50

    @property
    def changes(self) -> list[Change]:
        """None, in every dimension; then what changes."""
        grown = [Change(kind, size, dimension) for kind, size in (NONE, *GROWN) for dimension in self.dimensions]
        return grown + [Change("concept", size, self.among) for size in (15.0, 30.0, 60.0)]

    def key(self, seed: int) -> dict[str, Any]:
        """Everything the numbers depend on."""
        return {
            "version": (VERSION, null.VERSION),
            "seed": seed,
            "changes": [repr(one) for one in self.changes],
            "window": self.window,
            "permutations": self.permutations,
            "detectors": {name: [level for level, _ in made] for name, made in DETECTORS.items()},
        }

    def run(self, run: int, seed: int, folder: str | None = None) -> Result:
        """The strictest level of each method, for each change."""
        every = methods(self.permutations, self.quick)
        found: list[dict[str, float]] = []
        for number, change in enumerate(self.changes):
            one = case(change, self.window, (seed, run, number))
            found.append({name: method(one) for name, method in every.items()})
        return {"levels": found}


@dataclass(frozen=True, slots=True)
class Share:
    """How often a method found a change, at the false alarms that are allowed to all."""

    change: Change
    method: str
    power: float
    runs: int


def shares(experiment: Dimensions, results: Sequence[Result]) -> list[Share]:
    """The power of each method for each change, at `FALSE_ALARMS` over all streams without a change.

    Between two levels the power is interpolated: a method that takes the stricter level for some streams and the other
    for the rest has it.
    """
    found = []
    for name in NAMES:
        by_change = [np.array([run["levels"][i][name] for run in results]) for i in range(len(experiment.changes))]
        false = np.concatenate(
            [own for one, own in zip(experiment.changes, by_change, strict=True) if one.kind == "none"]
        )
        for change, own in zip(experiment.changes, by_change, strict=True):
            found.append(Share(change, name, power_at(FALSE_ALARMS, own, false), len(results)))
    return found


def power_at(allowed: float, levels: npt.NDArray[np.float64], false: npt.NDArray[np.float64]) -> float:
    """The share of streams found at the level at which this share of streams without a change is.

    Parameters
    ----------
    allowed : float
        False alarms.
    levels : array of float
        The strictest level for each stream with a change.
    false : array of float
        The same without a change.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.dimensions import power_at
    >>> false = np.linspace(0.01, 1, 100)
    >>> power_at(0.05, np.array([0.001, 0.02, 0.03, 0.5]), false)
    0.75
    """
    steps = np.unique(false[false < NEVER])
    rates = np.array([0.0, *((false <= step).mean() for step in steps)])
    powers = np.array([(levels < min([*steps, NEVER])).mean(), *((levels <= step).mean() for step in steps)])
    return float(np.interp(allowed, rates, powers))


# What is shown -----------------------------------------------------------------------------------------------


def table(experiment: Dimensions, results: Sequence[Result]) -> Table:
    """Power by change and dimension, a column a method."""
    found = shares(experiment, results)
    rows, records = [], []
    for change in experiment.changes:
        own = {one.method: one.power for one in found if one.change == change}
        said = _sentence(change, own)
        rows.append([f"{change.name}, d = {change.dimension}", *(f"{own[name]:.2f}" for name in NAMES), said])
        records += [
            {
                "change": change.kind,
                "size": change.size,
                "dimension": change.dimension,
                "method": name,
                "power": round(power, 6),
                "false_alarms": FALSE_ALARMS,
                "runs": len(results),
                "sentence": said,
            }
            for name, power in own.items()
        ]
    return Table([f"power at {FALSE_ALARMS:.0%} false alarms", *NAMES, "difference"], rows, records, notes(experiment))


def _sentence(change: Change, powers: Mapping[str, float]) -> str:
    if change.kind == "none":
        return "False alarms in this dimension; they are equal over all dimensions together."
    best = max(powers, key=lambda name: powers[name])
    rates = max((name for name in DETECTORS), key=lambda name: powers[name])
    return f"{best} finds most, {powers[best]:.2f}; of the detectors on the rates {rates}, {powers[rates]:.2f}."


def notes(experiment: Dimensions) -> list[str]:
    """What the numbers are."""
    return [
        "Ours: the paper argues this in section II without a figure. Power is the share of streams in which a method "
        f"finds the change, each at the level at which it alarms in {FALSE_ALARMS:.0%} of the streams without one.",
        f"Two windows of {experiment.window} examples, before and after. The tests see features and labels, the "
        f"detectors true and predicted labels of a logistic regression that learnt from {LEARN:,} earlier examples. "
        "Features are normal; two of them matter at most.",
        "A feature that moves without any rate of the classifier moving is a change to the tests only: a detector on "
        "the rates is silent by design.",
    ]


def panels(experiment: Dimensions, results: Sequence[Result]) -> tuple[list[Powers], list[Record]]:
    """The same as curves: over the dimension, for both kinds of change, and over the size of the change."""
    found = {(one.change, one.method): one.power for one in shares(experiment, results)}

    def curves(changes: Sequence[Change]) -> dict[str, list[float]]:
        return {name: [found[change, name] for change in changes] for name in NAMES}

    grown = {kind: [one for one in experiment.changes if (one.kind, one.size) == kind] for kind in GROWN}
    sizes = sorted(
        {one for one in experiment.changes if one.kind == "concept" and one.dimension == experiment.among},
        key=lambda one: one.size,
    )
    shown = [
        Powers(f"{own[0].name}", "dimension d", [one.dimension for one in own], curves(own)) for own in grown.values()
    ]
    shown.insert(
        1,
        Powers(f"rule turned, d = {experiment.among}", "degrees", [one.size for one in sizes], curves(sizes)),
    )
    return shown, table(experiment, results).records

"""What the paper printed, number by number, and what a later paper of the same detectors adds.

H. Wang and Z. Abraham, "Concept Drift Detection for Streaming Data", IJCNN 2015; its Tables I to V. The delays are from
the hierarchical sequel, S. Yu and Z. Abraham, "Concept Drift Detection with Hierarchical Hypothesis Testing", SDM 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DETECTORS = ("LFR", "NFR", "DDM", "DDM-OCI")
SYNTHETIC = ("Balance1", "Balance2", "Balance3", "Imbalance1", "Imbalance2", "Imbalance3")
PUBLIC = ("SEA", "HYPERPLANE", "USENET1", "USENET2")
RUNS = 100


@dataclass(frozen=True, slots=True)
class Features:
    """A row of Table I.

    Attributes
    ----------
    length : int
        T, the examples of the stream.
    changes : tuple of int
        The true drift times.
    dimensions : int
        d, as the paper counts them: for USENET the class is one of the 100.
    """

    length: int
    changes: tuple[int, ...]
    dimensions: int


TABLE1: Mapping[str, Features] = MappingProxyType(
    {
        "SEA": Features(60_000, tuple(15_000 * i for i in range(1, 4)), 3),
        "HYPERPLANE": Features(90_000, tuple(10_000 * i for i in range(1, 9)), 10),
        "USENET1": Features(1_500, tuple(300 * i for i in range(1, 6)), 100),
        "USENET2": Features(1_500, tuple(300 * i for i in range(1, 6)), 100),
    }
)


def _by_detector(counts: tuple[int, ...]) -> Mapping[str, int]:
    return MappingProxyType(dict(zip(DETECTORS, counts, strict=True)))


TABLE2: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "Balance1": _by_detector((38, 12, 4, 12)),
        "Balance2": _by_detector((16, 3, 0, 11)),
        "Balance3": _by_detector((25, 4, 0, 3)),
        "Imbalance1": _by_detector((95, 59, 0, 4)),
        "Imbalance2": _by_detector((91, 21, 0, 43)),
        "Imbalance3": _by_detector((95, 38, 36, 39)),
        "SEA": _by_detector((142, 29, 17, 26)),
        "HYPERPLANE": _by_detector((671, 598, 345, 149)),
        "USENET1": _by_detector((207, 47, 108, 66)),
        "USENET2": _by_detector((3, 17, 3, 21)),
    }
)
"""Detections at the true drift points, in 100 runs."""

TABLE3: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "Balance1": _by_detector((6, 77, 36, 304)),
        "Balance2": _by_detector((13, 19, 33, 339)),
        "Balance3": _by_detector((18, 54, 11, 219)),
        "Imbalance1": _by_detector((18, 81, 16, 259)),
        "Imbalance2": _by_detector((10, 91, 23, 165)),
        "Imbalance3": _by_detector((9, 86, 55, 204)),
        "SEA": _by_detector((72, 32, 54, 658)),
        "HYPERPLANE": _by_detector((84, 56, 73, 826)),
        "USENET1": _by_detector((12, 50, 43, 322)),
        "USENET2": _by_detector((43, 80, 65, 272)),
    }
)
"""False detections, in 100 runs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a detector was set to: a level, or a number of deviations.

    Attributes
    ----------
    detect, warn : float
        Where it reports a drift, and where it begins to warn.
    """

    detect: float
    warn: float


DECAY = 0.9
"""The paper's eta, everywhere."""

TABLE4: Mapping[str, Setting] = MappingProxyType(
    {"LFR": Setting(1e-5, 0.01), "NFR": Setting(1e-3, 0.025), "DDM": Setting(3, 2), "DDM-OCI": Setting(20, 10)}
)
"""Settings for the synthetic streams."""

_PUBLIC = {"LFR": Setting(1e-4, 0.01), "NFR": Setting(1e-3, 0.025), "DDM": Setting(3, 2)}
TABLE5: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        "SEA": MappingProxyType({**_PUBLIC, "DDM-OCI": Setting(20, 10)}),
        "HYPERPLANE": MappingProxyType({**_PUBLIC, "DDM-OCI": Setting(30, 10)}),
        "USENET1": MappingProxyType({**_PUBLIC, "DDM-OCI": Setting(3, 2)}),
        "USENET2": MappingProxyType({**_PUBLIC, "DDM-OCI": Setting(3, 2)}),
    }
)
"""Settings for the public data sets."""

FIRST_FOUND = 5167
"""Where LFR reports the change of the single run (Figure 1); the stream changes at 5,000."""

DELAYS: Mapping[str, int] = MappingProxyType({"SEA": 458, "HYPERPLANE": 127, "USENET1": 17})
"""Mean delays of LFR as the hierarchical sequel publishes them."""

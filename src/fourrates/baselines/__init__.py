"""The detectors that the paper compares LFR with, for comparisons: NFR, DDM, DDM-OCI, EDDM, PerfSim, three measures."""

from typing import TYPE_CHECKING

from fourrates.detectors import LFR, Detector, FourRates
from fourrates.lazy import importer

if TYPE_CHECKING:
    from fourrates.baselines.ddm import DDM
    from fourrates.baselines.ddm_oci import DDMOCI
    from fourrates.baselines.eddm import EDDM
    from fourrates.baselines.nfr import NFR
    from fourrates.baselines.perfsim import PerfSim
    from fourrates.baselines.three_measures import ThreeMeasures

__all__ = ["DDM", "DDMOCI", "EDDM", "NFR", "PerfSim", "ThreeMeasures"]

HOMES = {
    "DDM": "ddm",
    "DDMOCI": "ddm_oci",
    "EDDM": "eddm",
    "NFR": "nfr",
    "PerfSim": "perfsim",
    "ThreeMeasures": "three_measures",
}
NAMES = ["FourRates", "LFR", *__all__]
"""All detectors."""

__getattr__ = importer(__name__, HOMES)


def detector_class(name: str) -> type[Detector] | None:
    """The class of a detector, baseline or not, by its name; None if there is none."""
    ours = {"FourRates": FourRates, "LFR": LFR}
    return ours.get(name) or (__getattr__(name) if name in HOMES else None)


def __dir__() -> list[str]:
    return sorted(__all__)

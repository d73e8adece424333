"""One detector, one class, one file."""

from typing import TYPE_CHECKING

from fourrates.detectors.base import Detector
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.lfr import LFR
from fourrates.lazy import importer

if TYPE_CHECKING:
    from fourrates.detectors.ddm import DDM
    from fourrates.detectors.ddm_oci import DDMOCI
    from fourrates.detectors.eddm import EDDM
    from fourrates.detectors.nfr import NFR
    from fourrates.detectors.perfsim import PerfSim
    from fourrates.detectors.three_measures import ThreeMeasures

__all__ = ["DDM", "DDMOCI", "EDDM", "LFR", "NFR", "Detector", "FourRates", "PerfSim", "ThreeMeasures"]

__getattr__ = importer(
    __name__,
    {
        "DDM": "ddm",
        "DDMOCI": "ddm_oci",
        "EDDM": "eddm",
        "NFR": "nfr",
        "PerfSim": "perfsim",
        "ThreeMeasures": "three_measures",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

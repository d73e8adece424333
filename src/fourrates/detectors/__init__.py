"""One detector, one class, one file."""

from fourrates.detectors.base import Detector
from fourrates.detectors.ddm import DDM
from fourrates.detectors.ddm_oci import DDMOCI
from fourrates.detectors.eddm import EDDM
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.lfr import LFR
from fourrates.detectors.nfr import NFR
from fourrates.detectors.perfsim import PerfSim
from fourrates.detectors.three_measures import ThreeMeasures

__all__ = ["DDM", "DDMOCI", "EDDM", "LFR", "NFR", "FourRates", "Detector", "PerfSim", "ThreeMeasures"]

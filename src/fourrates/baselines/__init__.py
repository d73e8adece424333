"""The detectors that the paper compares LFR with, for comparisons: NFR, DDM, DDM-OCI, EDDM, PerfSim, three measures."""

from fourrates.baselines.ddm import DDM
from fourrates.baselines.ddm_oci import DDMOCI
from fourrates.baselines.eddm import EDDM
from fourrates.baselines.nfr import NFR
from fourrates.baselines.perfsim import PerfSim
from fourrates.baselines.three_measures import ThreeMeasures
from fourrates.detectors import LFR, Detector, FourRates

__all__ = ["DDM", "DDMOCI", "EDDM", "NFR", "PerfSim", "ThreeMeasures"]

DETECTORS: dict[str, type[Detector]] = {
    kind.__name__: kind for kind in (FourRates, LFR, DDM, DDMOCI, EDDM, NFR, PerfSim, ThreeMeasures)
}
"""All of them, baselines or not, by name."""

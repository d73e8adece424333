"""One detector, one class, one file."""

from fourrates.detectors.base import Detector
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.lfr import LFR

__all__ = ["LFR", "Detector", "FourRates"]

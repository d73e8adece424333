"""Know the moment your classifier stops being the one you shipped.

>>> import fourrates as fr
>>> detector = fr.LFR()
>>> detector.update(1, 1)  # what it was, what the classifier said: Drift or None
"""

from fourrates.bank import Bank, KeyedDrift
from fourrates.design import design, expected_delay, expected_run_length
from fourrates.detectors import DDM, DDMOCI, EDDM, LFR, NFR, PerfSim, ThreeMeasures
from fourrates.drift import Drift, RateChange, RateState
from fourrates.join import LabelJoin

__all__ = [
    "DDM",
    "DDMOCI",
    "EDDM",
    "LFR",
    "NFR",
    "Bank",
    "Drift",
    "KeyedDrift",
    "LabelJoin",
    "PerfSim",
    "RateChange",
    "RateState",
    "ThreeMeasures",
    "design",
    "expected_delay",
    "expected_run_length",
]
__version__ = "0.1.0"

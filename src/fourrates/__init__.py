"""Know the moment your classifier stops being the one you shipped.

>>> import fourrates as fr
>>> detector = fr.FourRates(arl=100_000)
>>> detector.update(1, 1)  # what it was, what the classifier said: Drift or None
"""

from typing import TYPE_CHECKING

from fourrates.budget.levels import design
from fourrates.detectors import LFR, FourRates
from fourrates.detectors.step import step
from fourrates.findings import Drift, Finding, KeyedFinding, PrecisionChange, RateChange, RateState, Share, Shift
from fourrates.frames import Findings, detect
from fourrates.lazy import importer
from fourrates.watch import Watch

if TYPE_CHECKING:
    from fourrates.bank import Bank
    from fourrates.budget.decay import best_decay
    from fourrates.budget.delay import expected_delay
    from fourrates.budget.run_length import expected_run_length
    from fourrates.client import Client
    from fourrates.detectors import DDM, DDMOCI, EDDM, NFR, PerfSim, ThreeMeasures
    from fourrates.diagnosis import Diagnosis, diagnose
    from fourrates.join import LabelJoin

__all__ = [
    "DDM",
    "DDMOCI",
    "EDDM",
    "LFR",
    "NFR",
    "Bank",
    "Client",
    "Diagnosis",
    "Drift",
    "Finding",
    "Findings",
    "FourRates",
    "KeyedFinding",
    "LabelJoin",
    "PerfSim",
    "PrecisionChange",
    "RateChange",
    "RateState",
    "Share",
    "Shift",
    "ThreeMeasures",
    "Watch",
    "best_decay",
    "design",
    "detect",
    "diagnose",
    "expected_delay",
    "expected_run_length",
    "step",
]
__version__ = "0.1.0"


__getattr__ = importer(
    __name__,
    {
        "Bank": "bank",
        "Client": "client",
        "DDM": "detectors",
        "DDMOCI": "detectors",
        "Diagnosis": "diagnosis",
        "EDDM": "detectors",
        "LabelJoin": "join",
        "NFR": "detectors",
        "PerfSim": "detectors",
        "ThreeMeasures": "detectors",
        "best_decay": "budget.decay",
        "diagnose": "diagnosis",
        "expected_delay": "budget.delay",
        "expected_run_length": "budget.run_length",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

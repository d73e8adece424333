"""Know the moment your classifier stops being the one you shipped.

>>> import fourrates as fr
>>> detector = fr.FourRates(arl=100_000)
>>> detector.update(1, 1)  # what it was, what the classifier said: Drift or None
"""

from typing import TYPE_CHECKING, Any

from fourrates.bank import Bank
from fourrates.budget.decay import best_decay
from fourrates.budget.delay import expected_delay
from fourrates.budget.levels import design
from fourrates.budget.run_length import expected_run_length
from fourrates.detectors import DDM, DDMOCI, EDDM, LFR, NFR, FourRates, PerfSim, ThreeMeasures
from fourrates.drift import Drift, KeyedDrift, RateChange, RateState, Recovery, Share, Shift
from fourrates.findings import Findings, detect
from fourrates.join import LabelJoin
from fourrates.precision import PrecisionChange
from fourrates.record import step

if TYPE_CHECKING:
    from fourrates.client import Client
    from fourrates.diagnosis import Diagnosis, diagnose

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
    "Findings",
    "FourRates",
    "KeyedDrift",
    "LabelJoin",
    "PerfSim",
    "PrecisionChange",
    "RateChange",
    "RateState",
    "Recovery",
    "Share",
    "Shift",
    "ThreeMeasures",
    "best_decay",
    "design",
    "detect",
    "diagnose",
    "expected_delay",
    "expected_run_length",
    "step",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What most programs do not need, imported when it is asked for: threads and the network, a look at whole files."""
    if name == "Client":
        from fourrates.client import Client

        return Client
    if name in ("Diagnosis", "diagnose"):
        from fourrates import diagnosis

        return getattr(diagnosis, name)
    raise AttributeError(f"module 'fourrates' has no attribute {name!r}")

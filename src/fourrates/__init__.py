"""Know the moment your classifier stops being the one you shipped.

>>> import fourrates as fr
>>> detector = fr.FourRates(arl=100_000)
>>> detector.update(1, 1)  # what it was, what the classifier said: Drift or None
"""

from typing import TYPE_CHECKING

from fourrates.detectors import LFR, FourRates
from fourrates.findings import Drift, Finding, RateChange, Shift
from fourrates.lazy import importer as _importer

if TYPE_CHECKING:
    from fourrates import baselines, budget, distribution, evaluate, retrain, streams
    from fourrates.bank import Bank
    from fourrates.client import Client
    from fourrates.comparison import compare
    from fourrates.diagnosis import diagnose
    from fourrates.frames import detect
    from fourrates.join import LabelJoin
    from fourrates.labelplan import LabelPlan
    from fourrates.result import Findings
    from fourrates.watch import Watch

__all__ = [
    "LFR",
    "Bank",
    "Client",
    "Drift",
    "Finding",
    "Findings",
    "FourRates",
    "LabelJoin",
    "LabelPlan",
    "RateChange",
    "Shift",
    "Watch",
    "baselines",
    "budget",
    "compare",
    "detect",
    "diagnose",
    "distribution",
    "evaluate",
    "retrain",
    "streams",
]
__version__ = "0.1.0"

__getattr__ = _importer(
    __name__,
    {
        "Bank": "bank",
        "Client": "client",
        "Findings": "result",
        "LabelJoin": "join",
        "LabelPlan": "labelplan",
        "Watch": "watch",
        "compare": "comparison",
        "detect": "frames",
        "diagnose": "diagnosis",
    },
    ("baselines", "budget", "distribution", "evaluate", "retrain", "streams"),
)


def __dir__() -> list[str]:
    return sorted(__all__)

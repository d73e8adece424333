"""CapyMOA: a drift detector with its interface, fed with pairs.

CapyMOA's detectors take one number per event, usually 1 for an error. Four rates need the pair, so
:meth:`DriftDetector.add_element` takes that.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from capymoa.drift.base_detector import BaseDriftDetector

import fourrates as fr
from fourrates.detectors.base import Detector
from fourrates.findings import Drift


class DriftDetector(BaseDriftDetector):
    """A CapyMOA drift detector around any fourrates detector.

    Parameters
    ----------
    detector : Detector, optional
        The detector, which is copied. Default: ``LFR(sides="down")``.

    Attributes
    ----------
    drift : Drift or None
        The drift at the last element. `detection_index`, `warning_index` and the flags are CapyMOA's.

    Examples
    --------
    >>> from fourrates.adapters.capymoa import DriftDetector
    >>> from fourrates.streams import SCENARIOS
    >>> detector = DriftDetector()
    >>> for pair in zip(*SCENARIOS["Imbalance2"].stream(seed=1)):
    ...     detector.add_element(pair)
    >>> detector.detection_index  # CapyMOA counts from 1
    [5099]
    """

    def __init__(self, detector: Detector | None = None) -> None:
        super().__init__()
        self.detector = fr.LFR(sides="down") if detector is None else detector
        self.reset(clean_history=True)

    def add_element(self, element: tuple[Hashable, Hashable]) -> None:
        """Take one pair (y_true, y_pred)."""
        try:
            y_true, y_pred = element
        except (TypeError, ValueError):
            raise TypeError(
                f"add_element takes a pair (y_true, y_pred), not {element!r}: an error alone does not show its rate"
            ) from None
        self.drift: Drift | None = self._live.update(y_true, y_pred)
        self.idx += 1
        self.in_concept_change = self._live.drift_detected
        self.in_warning_zone = self._live.warning_detected
        if self.in_warning_zone:
            self.warning_index.append(self.idx)
        if self.in_concept_change:
            self.detection_index.append(self.idx)

    def reset(self, clean_history: bool = False) -> None:
        """Reset the detector, and with `clean_history` its past findings and positions too."""
        super().reset(clean_history)
        self.drift = None
        self._live: Any = self.detector.clone()

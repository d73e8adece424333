"""The names of frouros: ``drift``, ``warning`` and ``status``, for code that is written around them.

frouros itself is not needed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from fourrates.detectors.base import Detector
from fourrates.detectors.lfr import LFR


class ConceptDrift:
    """Any detector of fourrates, by the names of a streaming concept drift detector of frouros.

    Two things differ from frouros, both on purpose: an update takes the pair instead of an error, and after a drift a
    detector goes on by itself, so that ``reset()`` is not needed.

    Parameters
    ----------
    detector : Detector, optional
        What watches; it is copied, not used up. ``LFR()`` if not given.

    Examples
    --------
    >>> from fourrates.adapters.frouros import ConceptDrift
    >>> from fourrates.streams import SCENARIOS
    >>> detector = ConceptDrift()
    >>> for y_true, y_pred in zip(*SCENARIOS["Imbalance2"].stream(seed=1)):
    ...     _ = detector.update(y_true, y_pred)
    ...     if detector.drift:
    ...         print(detector.num_instances, detector.status)
    5099 {'drift': True, 'warning': False}
    """

    def __init__(self, detector: Detector | None = None) -> None:
        self.detector = LFR() if detector is None else detector.clone()

    def update(self, y_true: Hashable, y_pred: Hashable) -> dict[str, Any]:
        """Take one event. Returns the logs of callbacks, of which there are none."""
        self.detector.update(y_true, y_pred)
        return {}

    @property
    def drift(self) -> bool:
        """Whether the last update found a drift."""
        return self.detector.drift_detected

    @property
    def warning(self) -> bool:
        """Whether the last update left the detector in the warning zone."""
        return self.detector.warning_detected

    @property
    def status(self) -> dict[str, bool]:
        """Both in one."""
        return {"drift": self.drift, "warning": self.warning}

    @property
    def num_instances(self) -> int:
        """Events taken since construction or :meth:`reset`."""
        return self.detector.events

    def reset(self) -> None:
        """Forget everything."""
        self.detector.reset()

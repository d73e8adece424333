"""For river, a drift detector fed with pairs, and a classifier that retrains when a rate moves.

river gives its drift detectors one number per event, right or wrong. Four rates need the pair, so the detector here
takes that as its value, and :class:`DriftRetrainingClassifier` is river's own, modified to supply it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from river import base, drift

import fourrates as fr
from fourrates.detectors.base import Detector
from fourrates.findings import Drift, RateState


class DriftDetector(base.DriftAndWarningDetector):
    """A river drift detector around any fourrates detector.

    **Input**: pairs (y_true, y_pred) of labels, each as one value. Pairs without a prediction (None) are ignored.

    Parameters
    ----------
    detector : Detector, optional
        The detector, which is copied. Default: ``LFR(sides="down")``, because a model that learns gets better, which is
        no alarm.

    Attributes
    ----------
    drift : Drift or None
        The drift at the last update. `drift_detected` and `warning_detected` are river's flags for it.

    Examples
    --------
    A classifier whose tpr falls from 0.75 to 0.25 at event 5,000 while its accuracy stays:

    >>> from fourrates.adapters.river import DriftDetector
    >>> from fourrates.streams import SCENARIOS
    >>> detector = DriftDetector()
    >>> for pair in zip(*SCENARIOS["Imbalance2"].stream(seed=1)):
    ...     detector.update(pair)
    ...     if detector.drift_detected:
    ...         print(detector.drift)
    drift at 5,098, since 5,051: tpr down: 0.266, below its bound 0.281 (0.740 expected after 1,022 observations)

    river's forests have one for each tree; let their ``_drift_detector_input`` return the pair.
    """

    def __init__(self, detector: Detector | None = None) -> None:
        super().__init__()
        self.detector = fr.LFR(sides="down") if detector is None else detector
        self.drift: Drift | None = None
        self._live = self.detector.clone()  # river copies parameters into its clones, which begin empty

    def update(self, x: tuple[Hashable, Hashable]) -> None:
        """Take one pair (y_true, y_pred)."""
        try:
            y_true, y_pred = x
        except (TypeError, ValueError):
            raise TypeError(
                f"update takes a pair (y_true, y_pred), not {x!r}: whether a prediction was right does not show which "
                "rate it belongs to. fourrates.adapters.river.DriftRetrainingClassifier gives the pair"
            ) from None
        said = y_pred is not None
        self.drift = self._live.update(y_true, y_pred) if said else None
        self._drift_detected = said and self._live.drift_detected
        self._warning_detected = said and self._live.warning_detected

    def accept(self) -> None:
        """Take the rates from now on as normal, because another model has taken over."""
        if isinstance(self._live, fr.FourRates):
            self._live.accept(force=True)

    @property
    def rates(self) -> Mapping[str, RateState]:
        """The current state of each rate."""
        return self._live.rates

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"detector": fr.LFR()}


class DriftRetrainingClassifier(drift.DriftRetrainingClassifier):
    """A river classifier that restarts when one of its rates moves.

    river's own, with two differences. Its detector receives the pair, so it notices a drift that leaves accuracy flat.
    And a warning that lapses is forgotten. The background model that replaces the current one was trained only on
    events of the warning that led to the drift.

    Parameters
    ----------
    model : river classifier
        The model; its successors are copies of it.
    drift_detector : DriftDetector, optional
        The one above, by default with ``LFR(sides="down")``. Its labels are those of the stream.
    train_in_background : bool
        Whether a successor is trained from the warning on, or begins with the drift.

    Attributes
    ----------
    drifts : list of Drift
        All drifts. Events without a prediction, such as the very first for most models, do not count.

    Examples
    --------
    river's web sites, 1,250 of them, then the same again with labels swapped:

    >>> from river import datasets, evaluate, metrics, naive_bayes
    >>> from fourrates.adapters.river import DriftRetrainingClassifier
    >>> sites = [*datasets.Phishing(), *((x, not y) for x, y in datasets.Phishing())]
    >>> evaluate.progressive_val_score(sites, naive_bayes.GaussianNB(), metrics.Accuracy())
    Accuracy: 49.90%
    >>> model = DriftRetrainingClassifier(naive_bayes.GaussianNB())
    >>> evaluate.progressive_val_score(sites, model, metrics.Accuracy())
    Accuracy: 88.20%
    >>> for drift in model.drifts:
    ...     print(drift)
    drift at 1,256, since 1,250: tnr down: 0.421, below its bound 0.459 (0.871 expected after 708 observations)
    """

    model: Any
    bkg_model: Any

    def __init__(
        self,
        model: base.Classifier,
        drift_detector: DriftDetector | None = None,
        train_in_background: bool = True,
    ) -> None:
        chosen = DriftDetector() if drift_detector is None else drift_detector
        super().__init__(model=model, drift_detector=chosen, train_in_background=train_in_background)
        self.drifts: list[Drift] = []
        self._warned = False

    def _update_detector(self, x: dict[Any, Any], y: Hashable) -> None:
        self.drift_detector.update((y, self.model.predict_one(x)))
        if self.drift_detector.drift is not None:
            self.drifts.append(self.drift_detector.drift)
            self.drift_detector.accept()
            self.model = self.bkg_model if self.train_in_background else self.model.clone()
        if not self.train_in_background:
            return
        if self.drift_detector.warning_detected:
            self.bkg_model.learn_one(x, y)
        elif self._warned or self.drift_detector.drift_detected:
            self.bkg_model = self.model.clone()
        self._warned = self.drift_detector.warning_detected

    @property
    def _multiclass(self) -> bool:
        return len(self.drift_detector.detector.parameters["labels"]) > 2

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river import linear_model, preprocessing

        yield {"model": preprocessing.StandardScaler() | linear_model.LogisticRegression()}

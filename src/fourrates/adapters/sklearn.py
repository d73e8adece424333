"""For scikit-learn, a meta-estimator that retrains a classifier when one of its rates moves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from fourrates.detectors.base import Detector
from fourrates.detectors.lfr import LFR
from fourrates.findings import Drift
from fourrates.retrain import Retrainer


def _gives_probabilities(own: RetrainingClassifier) -> bool:
    return hasattr(own.estimator, "predict_proba")


class RetrainingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that is watched, and retrained on examples of the new concept when it drifts.

    `fit` trains a model. With later examples, `partial_fit` compares predictions and labels, and when a rate moves it
    trains the next model on the examples of the warning. It does not train between drifts. It is the scikit-learn form
    of :class:`~fourrates.retrain.Retrainer`.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The model to train; it is cloned.
    detector : Detector, optional
        The detector; ``LFR()`` if not given. Its labels are replaced by the classes of the data.
    min_examples : int
        Least examples for a new model.
    max_examples : int
        Most examples held; older ones are dropped.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    estimator_ : classifier
        The model that serves.
    drifts_ : list of Drift
        All drifts so far. Their positions count the examples given to `partial_fit` after the first model, from 0.
    retrainer_ : Retrainer
        The full record, such as the life of every model.
    n_features_in_, feature_names_in_
        As the model has them.

    Examples
    --------
    The two features swap their roles at 3,000:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fourrates.adapters.sklearn import RetrainingClassifier
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0)
    >>> model = RetrainingClassifier(LogisticRegression()).fit(X[:500], y[:500])
    >>> for start in range(500, 5_000, 250):  # labels arrive in batches
    ...     model = model.partial_fit(X[start : start + 250], y[start : start + 250])
    >>> len(model.drifts_), model.retrainer_.models[-1].window  # counted from 500 on
    (1, range(2500, 2600))
    >>> round(model.score(X[5_000:], y[5_000:]), 2)
    0.98
    """

    def __init__(
        self,
        estimator: Any,
        detector: Detector | None = None,
        *,
        min_examples: int = 100,
        max_examples: int = 10_000,
    ) -> None:
        self.estimator = estimator
        self.detector = detector
        self.min_examples = min_examples
        self.max_examples = max_examples

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Train a model, and forget everything before.

        Parameters
        ----------
        X : table of examples
            In the estimator's own format.
        y : array of labels
            Two classes or more.
        """
        return self._first(X, y, None)

    def partial_fit(self, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Predict, compare, and retrain after a drift. The first call is like `fit`.

        Parameters
        ----------
        X : table of examples
            In the estimator's own format.
        y : array of labels
            The true labels.
        classes : array of labels, optional
            In the first call, all classes that may ever occur; by default those of y.
        """
        if not hasattr(self, "retrainer_"):
            return self._first(X, y, classes)
        labels = self._checked(X, y, first=False)
        self.retrainer_.run(X, labels)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict with the serving model."""
        self._ready(X)
        found: npt.NDArray[Any] = self.estimator_.predict(X)
        return found

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Predict probabilities with the serving model; 0 for a class it was not trained on."""
        self._ready(X)
        found = np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), len(self.classes_)))
        found[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = self.estimator_.predict_proba(X)
        return found

    @property
    def estimator_(self) -> Any:
        """The model that serves."""
        return self._fitted("estimator_").model

    @property
    def drifts_(self) -> list[Drift]:
        """All drifts so far."""
        return self._fitted("drifts_").drifts

    def _fitted(self, name: str) -> Retrainer:
        if not hasattr(self, "retrainer_"):
            raise AttributeError(f"{name} is there once the classifier is fitted")
        return self.retrainer_

    def _first(self, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None) -> Self:
        labels = self._checked(X, y, first=True)
        found = np.unique(labels if classes is None else np.asarray(classes))
        if found.size < 2:
            raise ValueError(f"y has {found.size} class; a classifier is watched from two classes on")
        watched = LFR() if self.detector is None else self.detector
        own = type(watched)(**{**watched.parameters, "labels": found.tolist()})
        retrainer = Retrainer(self.estimator, own, min_examples=self.min_examples, max_examples=self.max_examples)
        retrainer.fit(X, labels)
        self.classes_ = found
        self.retrainer_ = retrainer
        return self

    def _checked(self, X: Any, y: npt.ArrayLike, *, first: bool) -> npt.NDArray[Any]:
        """The labels as an array, after checking them and the columns of X; the model checks the values of X."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        self._check_columns(X, first=first)
        return labels

    def _ready(self, X: Any) -> None:
        check_is_fitted(self)
        self._check_columns(X, first=False)

    def _check_columns(self, X: Any, *, first: bool) -> None:
        if getattr(X, "ndim", 2) == 2:  # the model rejects other shapes
            validate_data(self, X, reset=first, skip_check_array=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

"""The classifier of the paper's public experiments: a support vector machine with an RBF kernel.

It is scikit-learn's SVC, which also does the fitting. A run predicts up to 90,000 examples again and again, so that
the decisions are computed here, a block of examples at a time as a product of matrices: the same decisions as those of
``SVC.predict``, several times as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

BLOCK = 1024  # examples; with some hundred support vectors their kernel stays in the processor's cache


class RBF(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """SVC with an RBF kernel, predicting quickly.

    Parameters
    ----------
    minority : label, optional
        The class whose errors cost more.
    dearer : float
        How many times more: 100 in the paper.
    cost : float
        The C of SVC.
    gamma : "scale", "auto" or float
        The width of the kernel, as for SVC.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.svm import RBF
    >>> x = np.random.default_rng(1).random((200, 3))
    >>> y = (x[:, 1] + x[:, 2] > 1).astype(int)
    >>> model = RBF().fit(x, y)
    >>> bool((model.predict(x) == model.machine_.predict(x)).all())
    True
    """

    def __init__(
        self, minority: Any = None, dearer: float = 1.0, cost: float = 1.0, gamma: float | str = "scale"
    ) -> None:
        self.minority = minority
        self.dearer = dearer
        self.cost = cost
        self.gamma = gamma

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> RBF:
        """Learn from examples; from those of one class only, to say that class."""
        features, labels = np.asarray(X, np.float64), np.asarray(y)
        self.classes_ = np.unique(labels)
        self.machine_ = None
        if self.classes_.size == 1:
            return self
        weights = {self.minority: self.dearer} if self.minority in self.classes_ else None
        machine = SVC(C=self.cost, gamma=self.gamma, class_weight=weights).fit(features, labels)
        self.machine_ = machine
        self._support = np.ascontiguousarray(machine.support_vectors_.T)
        self._square = (machine.support_vectors_**2).sum(axis=1)
        self._dual = machine.dual_coef_[0]
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The classes of examples."""
        features = np.asarray(X, np.float64)
        if self.machine_ is None:
            return np.full(len(features), self.classes_[0])
        return self.classes_[(self.decide(features) > 0).astype(np.intp)]

    def decide(self, features: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The decision function: above 0 is the second class."""
        machine: Any = self.machine_
        width = machine._gamma
        decisions = np.empty(len(features))
        for start in range(0, len(features), BLOCK):
            block = features[start : start + BLOCK]
            # -gamma |x - s|^2, written as one product
            kernel = block @ (2 * width * self._support)
            kernel -= width * (block**2).sum(axis=1)[:, None]
            kernel -= width * self._square
            decisions[start : start + BLOCK] = np.exp(kernel, out=kernel) @ self._dual
        decisions += machine.intercept_[0]
        return decisions

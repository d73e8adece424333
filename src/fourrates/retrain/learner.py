"""Training and predicting with scikit-learn's and river's models alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.labels import Codes, Labels
from fourrates.retrain.rows import count, table


class Learner:
    """Makes models like a template, which stays as it is, and translates their labels to codes."""

    def __init__(self, template: Any, labels: Labels) -> None:
        self.river = hasattr(template, "learn_one")
        if not self.river and not (hasattr(template, "fit") and hasattr(template, "predict")):
            raise TypeError(f"model must be a scikit-learn or river classifier, not {template!r}")
        self.template, self.labels = template, labels

    def trained(self, rows: Any, truths: Codes) -> Any:
        """A clone of the template, trained on these examples."""
        if self.river:
            model = self.template.clone()
            for example, label in zip(rows, self.labels.decode(truths).tolist(), strict=True):
                model.learn_one(example, label)
            return model
        from sklearn.base import clone

        return clone(self.template).fit(rows, self.labels.decode(truths))

    def ask(self, model: Any, rows: Any) -> npt.NDArray[np.int32]:
        """The codes of a model's predictions."""
        if count(rows) == 0:
            return np.empty(0, np.int32)
        said = [model.predict_one(row) for row in rows] if self.river else model.predict(rows)
        return self.codes(said, "prediction").astype(np.int32)

    def forecast(self, model: Any, rows: Any) -> npt.NDArray[np.float64]:
        """The probability of each class by example; 1 for the predicted class if the model gives none."""
        classes = len(self.labels.values)
        if count(rows) == 0:
            return np.empty((0, classes))
        if self.river or not hasattr(model, "predict_proba"):
            return np.eye(classes)[self.ask(model, rows)]
        found = np.zeros((count(rows), classes))
        found[:, self.codes(model.classes_, "class")] = model.predict_proba(rows)
        return found

    def codes(self, labels: npt.ArrayLike, name: str) -> Codes:
        """The codes of labels, or an error that names the first unknown one."""
        try:
            return self.labels.encode(labels, name)
        except ValueError as error:
            error.add_note("the labels are those of the detector: make it with labels=... for others")
            raise

    def table(self, X: Any) -> Any:
        """X as rows that can be indexed."""
        if not self.river:
            return table(X)
        rows = [X] if isinstance(X, Mapping) else list(X)
        for position, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise TypeError(f"river's models take dicts, not {type(row).__name__}, as at position {position} of X")
        return rows

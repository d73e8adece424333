"""A model whose predictions are logged."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

from fourrates.client.batch import as_list

logger = logging.getLogger("fourrates.client")


class WatchedModel:
    """A model whose `predict` is logged for a monitor; made by :meth:`fourrates.Client.wrap`.

    Attributes
    ----------
    model : object
        The model itself.
    last_ids : list
        The ids of the last logged predictions, under which later labels are logged too.
    """

    def __init__(
        self,
        log: Callable[..., int],
        count_dropped: Callable[[int, str], None],
        model: Any,
        monitor: str,
        id: str | Callable[[Any], Any] | None,
        by: tuple[str, ...],
    ) -> None:
        self._log, self._count_dropped = log, count_dropped
        self.model, self.monitor, self._id, self._by = model, monitor, id, by
        self.last_ids: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # not there yet while it is unpickled
            raise AttributeError(name)
        return getattr(self.model, name)

    def predict(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Predict as the model does, and log it. Whatever is wrong with the logging, the prediction is returned."""
        predicted = self.model.predict(self._features(X), *args, **kwargs)
        try:
            self.last_ids = self._ids(X, len(predicted))
            by = {name: X[name] for name in self._by}
            self._log(self.monitor, y_pred=predicted, id=self.last_ids, by=by)
        except Exception as error:
            logger.error("%s: the predictions are not logged (%s)", self.monitor, error)
            self._count_dropped(len(as_list("y_pred", predicted)), "predictions that cannot be logged")
        return predicted

    def _features(self, X: Any) -> Any:
        """Without the columns that the model was not fitted on and that are only there to be logged."""
        known = getattr(self.model, "feature_names_in_", None)
        if known is None or not hasattr(X, "columns"):
            return X
        ours = [self._id, *self._by] if isinstance(self._id, str) else list(self._by)
        extra = [name for name in ours if name in X.columns and name not in known]
        return X[[name for name in X.columns if name not in extra]] if extra else X

    def _ids(self, X: Any, number: int) -> list[Any]:
        if callable(self._id):
            return as_list("id", self._id(X))
        if self._id is not None:
            return as_list("id", X[self._id])
        if hasattr(X, "index") and hasattr(X, "columns"):
            return as_list("id", X.index)
        return [uuid.uuid4().hex for _ in range(number)]

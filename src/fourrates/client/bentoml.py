"""A monitor of BentoML's that sends predictions, and targets, to one of fourrates.

BentoML makes it by its name: ``bentoml.monitor("fraud", "fourrates.client.bentoml.Monitor", {"url": ...})``, or for all
of a service in its configuration, under ``monitoring``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from bentoml._internal.configuration.containers import BentoMLContainer  # these two have no public place
from bentoml._internal.context import trace_context
from bentoml.monitoring import MonitorBase

from fourrates.client.client import Client
from fourrates.events.payloads import row_ids


class Monitor(MonitorBase[Any]):
    """Columns logged as ``prediction`` are predictions, as ``target`` labels.

    Parameters
    ----------
    name : str
        Of the monitor, here and there.
    url : str
        Of the service; `client` has more for :class:`fourrates.Client`.
    id : str, optional
        The column with ids of one's own. Without it that is the answer's header X-BentoML-Request-ID; several rows have
        ``ID/0``, ``ID/1`` and so on.
    by : sequence of str
        Columns that make segments.
    """

    def __init__(self, name: str, url: str, id: str | None = None, by: Sequence[str] = (), **client: Any) -> None:
        super().__init__(name)
        self.client, self._id, self._by = Client(url, **client), id, by
        self._roles: dict[str, str] = {}

    def export_schema(self, columns_schema: Mapping[str, Mapping[str, str]]) -> None:
        self._roles = {schema["role"]: name for name, schema in columns_schema.items() if schema["role"] != "feature"}

    def export_data(self, datas: Mapping[str, deque[Any]]) -> None:
        given = {role: [*datas[name]] for role, name in self._roles.items() if name in datas}
        values = {"y_pred": given.get("prediction"), "y_true": given.get("target")}
        rows = max(len(column) for column in datas.values())
        request = format(trace_context.request_id or 0, BentoMLContainer.logging_formatting.get()["span_id"])
        ids = [*datas[self._id]] if self._id else row_ids(request, rows)
        self.client.log(self.name, **values, id=ids, by={name: [*datas[name]] for name in self._by})

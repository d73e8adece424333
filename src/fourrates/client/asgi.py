"""Middleware that logs the predictions of a web application (FastAPI, Starlette, or anything else with ASGI)."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from fourrates.client.client import Client
from fourrates.events.payloads import ROWS, columns_of, row_ids, scalars

logger = logging.getLogger("fourrates.client")
Message = MutableMapping[str, Any]
ID = b"x-request-id"


class LogPredictions:
    """Logs the answers of one path: ``app.add_middleware(LogPredictions, client=client, monitor="fraud")``.

    Bodies are JSON: an object, a list of them, or one of the protocols V1 and V2. The application answers as it does
    without; whatever is wrong with the logging is in the log, and counted in ``client.dropped``.

    Parameters
    ----------
    app, client, monitor : ASGI application, Client, str
        The application, given by the framework; the sender, closed by its owner; the monitor's name.
    path : str
        The path of predictions, requested by POST.
    pred, score : str
        The field of the answer that is the prediction, or a score instead.
    id : str, optional
        The field of the answer, or else of the request, that is the id. Without it the id is the header X-Request-ID,
        added to the answer if the request has none; several rows have ``ID/0``, ``ID/1`` and so on.
    by : sequence of str
        Fields of the request that make segments.
    limit : int
        Bytes of a body; larger ones are passed on and not logged.
    """

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        client: Client,
        monitor: str,
        *,
        path: str = "/predict",
        pred: str = "prediction",
        score: str | None = None,
        id: str | None = None,
        by: Sequence[str] = (),
        limit: int = 1 << 20,
    ) -> None:
        self.app, self.client, self.monitor, self.path, self.limit = app, client, monitor, path, limit
        self._name, self._kind = (score, "score") if score else (pred, "y_pred")
        self._id, self._by = id, tuple(by)

    async def __call__(self, scope: Message, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        """Pass a request on, and log its answer."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self.path:
            await self.app(scope, receive, send)
            return
        asked, answered, status = bytearray(), bytearray(), 0
        given = dict(scope["headers"]).get(ID)
        id = given.decode("latin-1") if given else uuid.uuid4().hex

        async def heard() -> Message:
            message: Message = await receive()
            _keep(asked, message, self.limit)
            return message

        async def said(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if not given:
                    message["headers"] = [*message.get("headers", ()), (ID, id.encode())]
            _keep(answered, message, self.limit)
            await send(message)

        await self.app(scope, heard, said)
        if status == 200:
            try:
                self._log(id, bytes(asked), bytes(answered))
            except Exception as error:
                logger.error("%s: a prediction is not logged (%s)", self.monitor, error)
                self.client._count_dropped(1, "predictions that cannot be logged")

    def _log(self, id: str, asked: bytes, answered: bytes) -> None:
        asked = asked if self._by or self._id else b"[]"
        if max(len(asked), len(answered)) > self.limit:
            raise ValueError(f"a body of more than {self.limit:,} bytes")
        answer, request = _columns(answered), _columns(asked)
        values = scalars(answer[self._name])
        ids = (request | answer)[self._id] if self._id else row_ids(id, len(values))
        self.client.log(self.monitor, **{self._kind: values}, id=ids, by={name: request[name] for name in self._by})


def _keep(body: bytearray, message: Message, limit: int) -> None:
    if len(body) <= limit:
        body += message.get("body", b"")


def _columns(body: bytes) -> dict[str, list[Any]]:
    """The columns of a body, which is a payload, an object, or a list of objects."""
    payload = json.loads(body)
    if isinstance(payload, list):
        return columns_of({"instances": payload})
    return columns_of(payload if {*ROWS, "data"} & {*payload} else {"instances": [payload]})

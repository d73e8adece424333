"""The service as an ASGI application, with its calls, who may make them, and what every answer has in common."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

from fourrates.disk_queue import QueueError
from fourrates.serve.access import Access, Need
from fourrates.serve.errors import ApiError, defect, unavailable
from fourrates.serve.ingest import Disconnected
from fourrates.serve.metrics import Metrics
from fourrates.serve.store.base import StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("fourrates.serve")
ENDLESS = "/api/stream"  # an answer that takes as long as somebody listens
OTHER = "other"
SECURITY = [  # headers of every answer
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Call:
    """A call of the API with what answers it, whose keyword-only arguments make the query.

    `body` is the struct, or the JSON schema, of the body that it takes. Its token needs the scope "read" to look, and
    "admin" for the rest, unless another `scope` is given, or "open" for none.
    """

    def __init__(
        self,
        method: str,
        path: str,
        answer: Callable[..., Awaitable[Response]],
        body: type | dict[str, Any] | None = None,
        scope: Need | None = None,
    ) -> None:
        self.method, self.path, self.answer, self.body = method, path, answer, body
        self.scope = scope or default_scope(method)
        given = inspect.signature(answer, eval_str=True).parameters.values()
        fields = [(each.name, each.annotation, each.default) for each in given if each.kind is each.KEYWORD_ONLY]
        self.query = msgspec.defstruct("Query", fields)

    def asked(self, request: Request) -> dict[str, Any]:
        """The query of a request, checked."""
        if not request.scope["query_string"]:
            return {}
        try:
            return msgspec.structs.asdict(msgspec.convert(dict(request.query_params), self.query, strict=False))
        except msgspec.ValidationError as error:
            raise ApiError(422, "bad_query", str(error)[:500]) from None


def default_scope(method: str) -> Need:
    return "read" if method in ("GET", "HEAD", "OPTIONS") else "admin"


def place(path: str) -> tuple[str, dict[str, str]]:
    """The path of a call, as in its description, and the names in it.

    Examples
    --------
    >>> place("/api/monitors/fraud/drifts/7/accept")
    ('/api/monitors/{name}/drifts/{id}/accept', {'name': 'fraud', 'id': '7'})
    """
    parts, names = path.split("/"), {}
    for at, folder, name in ((3, "monitors", "name"), (5, "drifts", "id")):
        if len(parts) > at and parts[at - 1] == folder and parts[at]:
            names[name], parts[at] = parts[at], f"{{{name}}}"
    return "/".join(parts), names


class Front:
    """The application. `origins` are those of pages that may call it, besides its own."""

    def __init__(
        self, calls: Sequence[Call], access: Access, metrics: Metrics, lifespan: Any = None, origins: Iterable[str] = ()
    ) -> None:
        self.calls, self.access, self.metrics = calls, access, metrics
        self._calls = {(call.path, call.method): call for call in calls}
        self._lifespan = Router(lifespan=lifespan)
        self._app: ASGIApp = self._answer
        if origins:
            self._app = CORSMiddleware(self._answer, allow_origins=[*origins], allow_methods=["*"], allow_headers=["*"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":  # nobody talks over a websocket here
                await self._lifespan(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SECURITY]
            await send(message)

        method = scope["method"]
        path, scope["path_params"] = place(scope["path"])
        scope["call"] = call = self._calls.get((path, "GET" if method == "HEAD" else method))
        try:
            await self._app(scope, receive, note)
        finally:
            if path != ENDLESS:
                method, path = (OTHER, OTHER) if call is None else (method, path)
                self.metrics.observe(method, path, status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call: Call | None = scope["call"]
            wanted = default_scope(scope["method"]) if call is None else call.scope
            self.access.check(scope, wanted, scope["path_params"].get("name"))
            call = call or self._no_call(scope["path"])
            request = Request(scope, receive)
            response = await call.answer(request, **call.asked(request))
        except Exception as error:
            response = _answer_to(error)
        await response(scope, receive, send)

    def _no_call(self, path: str) -> Call:
        methods = [method for own, method in self._calls if own == place(path)[0]]
        where = {"path": path[:200]}
        if not methods:
            raise ApiError(404, "not_found", "Not Found", where)
        allowed = ", ".join([*methods, *["HEAD"] * ("GET" in methods)])
        raise ApiError(405, "bad_method", "Method Not Allowed", where, {"Allow": allowed})


def _answer_to(error: Exception) -> Response:
    if isinstance(error, Disconnected):
        return Response(status_code=499)
    if isinstance(error, StoreError | QueueError):
        error = unavailable(str(error))
    elif not isinstance(error, ApiError):
        log.error("a request failed", exc_info=error)
        error = defect()
    return error.response()

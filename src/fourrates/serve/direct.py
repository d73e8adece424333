"""Batches of events on the shortest way: from the connection to the writer and back, without a task in between.

What other requests pass, a task of their own, messages and layers, takes longer than a small batch itself. So the
protocol hands a request that brings events to its endpoint as soon as the body is there, and writes the answer in one
piece when the writer calls. What takes a while to read (large or packed bodies), comes in chunks or waits for leave to
be sent goes the way of all others, and is answered the same. So does everything with a uvicorn before 0.45, which has
no place to step in.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fourrates.serve.access import Access
from fourrates.serve.errors import ApiError
from fourrates.serve.headers import SECURITY, raw_headers
from fourrates.serve.ingest import LARGE, Ingest
from fourrates.serve.limits import GuardedProtocol
from fourrates.serve.metrics import Metrics

log = logging.getLogger("fourrates.serve")
Reply = Callable[[int, bytes, bytes], None]  # the status, the lines of further headers, the body
OTHERWISE = frozenset({b"expect", b"content-encoding", b"transfer-encoding"})  # headers of what goes another way
HEADS = {
    int(status): b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\n" % (status, status.phrase.encode())
    + b"".join(b"%b: %b\r\n" % one for one in SECURITY)
    for status in HTTPStatus
}


class Direct:
    """The endpoints that take events, for the protocol.

    Parameters
    ----------
    endpoints : mapping
        Endpoints by the last part of their path.
    access : Access
        Who may do what.
    metrics : Metrics
        Where requests are noted.
    """

    def __init__(self, endpoints: Mapping[str, Ingest], access: Access, metrics: Metrics) -> None:
        self.endpoints, self.access, self.metrics = endpoints, access, metrics

    def endpoint(self, scope: Any) -> Ingest | None:
        """The endpoint that a request is for, if it can be answered this way."""
        if scope["method"] != "POST":
            return None
        parts = scope["path"].split("/")
        if len(parts) != 5 or parts[4] not in self.endpoints or parts[:3] != ["", "api", "monitors"] or not parts[3]:
            return None
        length = b""
        for name, value in scope["headers"]:
            if name in OTHERWISE:
                return None
            if name == b"content-length":
                length = value
        if not length.isdigit() or int(length) > LARGE:
            return None
        scope["path_params"] = {"name": parts[3]}
        return self.endpoints[parts[4]]

    def take(self, endpoint: Ingest, scope: Any, body: bytes, reply: Reply) -> None:
        """Take the body of a request; `reply` is called when it is on disk, or with what is wrong with it."""
        began = time.perf_counter()

        def answer(result: bytes | BaseException) -> None:
            if isinstance(result, bytes):
                status = 200
                reply(status, b"", result)
            else:
                error = result if isinstance(result, ApiError) else _defect(result)
                status = error.status
                reply(status, b"".join(b"%b: %b\r\n" % one for one in raw_headers(error)), error.body())
            self.metrics.observe("POST", endpoint.route, status, time.perf_counter() - began)

        try:
            self.access.check(scope)
            endpoint.submit(scope, body, answer)
        except Exception as error:  # the parser that called would make a bad request of it
            answer(error)


def _defect(error: BaseException) -> ApiError:
    log.error("a request failed", exc_info=error)
    return ApiError(500, "defect", "a defect of fourrates, not of your request; the log has more")


class DirectProtocol(GuardedProtocol):
    """HTTP/1.1 with a clock, and a short way for batches of events."""

    direct: Direct | None = None
    _taking: tuple[RequestResponseCycle, Ingest] | None = None  # a request whose body is on its way

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start with a request: in a task of its own, unless it can be taken directly."""
        endpoint = None
        if self.direct is not None and app is self.app and not self.flow.write_paused:
            endpoint = self.direct.endpoint(cycle.scope)
        if endpoint is None:
            super()._start_asgi_task(cycle, app)
        elif cycle.more_body:
            self._taking = cycle, endpoint
            self.flow.resume_reading()
        else:  # it came along with the request before it, as many may: each in a turn of its own
            self.loop.call_soon(self._take, cycle, endpoint)

    def on_message_complete(self) -> None:
        """Take a request whose body is there."""
        super().on_message_complete()
        if self._taking is not None and self._taking[0] is self.cycle:
            cycle, endpoint = self._taking
            self._taking = None
            self._take(cycle, endpoint)

    def on_body(self, body: bytes) -> None:
        """Go on reading a body that is waited for as a whole."""
        super().on_body(body)
        if self._taking is not None:
            self.flow.resume_reading()

    def _take(self, cycle: RequestResponseCycle, endpoint: Ingest) -> None:
        assert self.direct is not None

        def reply(status: int, headers: bytes, body: bytes) -> None:
            if cycle.disconnected or self.transport.is_closing():
                return
            lines = b"".join([b"%b: %b\r\n" % one for one in cycle.default_headers])
            closing = b"" if cycle.keep_alive else b"connection: close\r\n"
            rest = b"content-length: %d\r\n\r\n%b" % (len(body), body)
            self.transport.write(b"".join((HEADS[status], lines, closing, headers, rest)))
            cycle.response_started = cycle.response_complete = True
            if not cycle.keep_alive:
                self.transport.close()
            cycle.on_response()

        self.direct.take(endpoint, cycle.scope, bytes(cycle.body), reply)

"""Time limits on connections, for slow headers, slow bodies, unread answers and silence.

uvicorn ends only connections idle between two requests. This is its protocol with a clock. The head of a request must
arrive within `head_seconds` of its first byte, a body within `body_seconds` plus a second for each `body_rate` bytes; a
client that does not read its answer is dropped after `write_seconds`. The clock costs a request next to nothing, since
times are stored as numbers and checked once a second. :mod:`fourrates.serve.ingest` limits the size and rows of a body.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fourrates.serve.errors import error_body

NEVER = float("inf")
MAX_HEAD = 1 << 16  # bytes
MAX_HEADERS = 100
LINGER = 1 << 24  # bytes of a body that are read and thrown away after an answer, so that the client gets to read it
TOO_SLOW = (HTTPStatus.REQUEST_TIMEOUT, "too_slow", "the request took too long to arrive")
TOO_LARGE = (
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head_too_large",
    f"the head of a request is at most {MAX_HEAD:,} bytes",
)


class GuardedProtocol(HttpToolsProtocol):
    head_seconds = 10.0
    body_seconds = 20.0
    body_rate = 10_000.0  # bytes a second
    write_seconds = 30.0
    max_body = 64 << 20
    look = 1.0  # seconds between looks at the clock

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._in_head = True
        self._head = self._body = 0  # bytes of them
        self._body_began = self._write_until = NEVER
        self._until = self.loop.time() + self.head_seconds
        super().connection_made(transport)
        self._clock = self.loop.call_later(self.look, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clock.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._until == NEVER:  # the first of a request
            self._in_head, self._head = True, 0
            self._until = self.loop.time() + self.head_seconds
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > MAX_HEAD:
            self._refuse(*TOO_LARGE)

    def on_message_begin(self) -> None:
        """Note the start of a request pipelined with the one before it."""
        if self._until == NEVER:
            self._in_head, self._until = True, self.loop.time() + self.head_seconds
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.headers) > MAX_HEADERS:
            raise ValueError("too many headers")  # the parser makes an answer of 400 of it
        self._in_head, self._body = False, 0
        self._body_began = self.loop.time()
        self._until = self._body_began + self.body_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._until = self._body_began + self.body_seconds + self._body / self.body_rate
        super().on_body(body)
        if self._body > self.max_body + LINGER:
            self.transport.abort()

    def on_message_complete(self) -> None:
        """Note that the request is there; from now on it is for the server to be quick."""
        self._until, self._in_head, self._head = NEVER, False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request, unless this one's body will never arrive."""
        if self._until != NEVER and not self._in_head and self.expect_100_continue:
            self.transport.close()  # the client waits for permission to send it, and got an answer instead
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._write_until = self.loop.time() + self.write_seconds
        super().pause_writing()

    def resume_writing(self) -> None:
        self._write_until = NEVER
        super().resume_writing()

    def _look(self) -> None:
        now = self.loop.time()
        if now > self._write_until:
            self.transport.abort()
            return
        if self.transport.is_closing():
            self._write_until = min(self._write_until, now + self.write_seconds)
        elif self.flow.read_paused:  # it is the server that does not read
            self._until += self.look
        elif now > self._until:
            self._refuse(*TOO_SLOW)
        self._clock = self.loop.call_later(self.look, self._look)

    def _refuse(self, status: HTTPStatus, code: str, message: str) -> None:
        """Answer, if this request was not answered yet, and close."""
        silent = self._head == 0
        last = self.cycle  # of this request, or of the one before while its head is not there
        if not silent and (last is None or (last.response_complete if self._in_head else not last.response_started)):
            body = error_body(code, message)
            first = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
            rest = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(first.encode() + rest.encode() + body)
        self.transport.close()


def uvicorn_options(max_body: int, connections: int = 2_000, **attributes: Any) -> dict[str, Any]:
    """Options of uvicorn, with this protocol, no websockets, and no trust in a proxy's headers."""
    return {
        "http": type("GuardedProtocol", (GuardedProtocol,), {"max_body": max_body, **attributes}),
        "ws": "none",
        "timeout_keep_alive": 75,
        "limit_concurrency": connections,
        "proxy_headers": False,
        "server_header": False,
    }

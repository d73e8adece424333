"""Bodies that are too large are refused, and every answer tells a browser to trust nothing it was not sent.

What a body holds (rows, depth, gzip that unpacks to more) is limited where it is decoded, in
:mod:`fourrates.serve.bodies`; how slowly it may come in :mod:`fourrates.serve.protocol`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from fourrates.serve.access import answer
from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Limits:
    """The middleware that refuses bodies of more than `max_body` bytes.

    A body that says its length is refused before any of it is read; one that comes in chunks, as soon as it is too
    long.
    """

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self.app, self.max_body = app, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer that it is too large."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        length: int | None = None
        expects = False
        for name, value in scope["headers"]:
            if name == b"content-length":
                length = int(value) if value.isdigit() and len(value) < 20 else self.max_body + 1
            elif name == b"expect":
                expects = True
        if length is not None and length > self.max_body:
            # Who waits for leave to send the body does not send it: the connection cannot go on with the next request.
            await answer(self._too_large({"Connection": "close"} if expects else {}), send)
            return
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if length is not None:
                await self.app(scope, receive, send)
            else:
                await self.app(scope, self._counted(receive), note)
        except ClientDisconnect:
            return  # nobody is there to be answered
        except _TooLarge:
            if not started:
                await answer(self._too_large({}), send)

    def _counted(self, receive: Receive) -> Receive:
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self.max_body:
                raise _TooLarge
            return message

        return counted

    def _too_large(self, headers: dict[str, str]) -> ApiError:
        return ApiError(
            413, "too_large", f"a body is at most {self.max_body:,} bytes", {"limit": self.max_body}, headers
        )


class SecurityHeaders:
    """The middleware that adds headers for browsers; what an answer has set itself stays."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the headers to its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"] = list(message.get("headers", ()))
                there = {name for name, _ in headers}
                headers += [header for header in HEADERS.items() if header[0] not in there]
            await send(message)

        await self.app(scope, receive, guarded)


class _TooLarge(Exception):
    pass

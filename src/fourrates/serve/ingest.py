"""The endpoints that take events, as plain ASGI with as little as possible between the body and the writer."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from fourrates.events.rows import BAD
from fourrates.serve.batch import KINDS, Batch
from fourrates.serve.bodies import Body, Limits, Rejections, make_batch, read_table, unpack
from fourrates.serve.errors import ApiError, defect
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.writer import Writer

Request = tuple[Live, Batch, Rejections, bytes | None, bytes]  # as Writer.submit takes it

log = logging.getLogger("fourrates.serve")
LARGE = 1 << 17  # bytes from which a body is read in another thread, so that others need not wait
AT_ONCE = 1  # such bodies read at a time; the largest take ten times their size in memory
IN_FLIGHT = 2  # times the limit of a body, for all unread bodies together
SMALL = 1 << 15  # a body this small is always taken, so nobody can shut out the rest
LONGEST_KEY = 200  # characters of an idempotency key

_readers = ThreadPoolExecutor(AT_ONCE, "fourrates reader")


class Disconnected(Exception):
    """The client has gone before its body was whole."""


class InFlight:
    """Bytes of unread bodies over all requests; beyond `most`, others have to wait.

    Small bodies do not count.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0

    def grow(self, size: int, now: int) -> None:
        more = (now if now > SMALL else 0) - (size if size > SMALL else 0)
        if self.held + more > self.most:
            raise ApiError(503, "busy", "too many bodies at once; try again", headers={"Retry-After": "1"})
        self.held += more

    def end(self, size: int) -> None:
        self.held -= size if size > SMALL else 0


async def read_body(headers: Headers, receive: Receive, limit: int, in_flight: InFlight | None = None) -> bytes:
    """The whole body, if it is not too large, and not one too many."""
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    try:
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part: bytes = message.get("body", b"")
            if size + len(part) > limit:
                raise too_large(limit)
            if in_flight is not None:
                in_flight.grow(size, size + len(part))
            parts.append(part)
            size += len(part)
            more = message.get("more_body", False)
    except BaseException:
        if in_flight is not None:
            in_flight.end(size)
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(limit: int) -> ApiError:
    return ApiError(413, "too_large", f"the body is larger than {limit:,} bytes", {"limit": limit})


class Ingest:
    """``POST /api/monitors/{name}/events``, ``/predictions`` or ``/labels``."""

    def __init__(self, kind: str, registry: Registry, writer: Writer, settings: Settings, in_flight: InFlight) -> None:
        self.kind, self.registry, self.writer, self.settings = KINDS[kind], registry, writer, settings
        self.in_flight = in_flight
        self.limits = Limits(settings.max_rows, settings.max_body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._take(scope, receive)
        except (ApiError, Disconnected):  # answered like those of every other call
            raise
        except Exception:  # answered here, or the connection would be closed
            log.exception("a request failed")
            raise defect() from None
        headers = [(b"content-length", b"%d" % len(answer))]
        headers += [(b"content-type", b"application/json")] if answer else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _take(self, scope: Scope, receive: Receive) -> bytes:
        self.registry.get(scope["path_params"]["name"])
        headers = Headers(scope=scope)
        body = await read_body(headers, receive, self.settings.max_body, self.in_flight)
        size = len(body)
        try:
            if size > LARGE or "content-encoding" in headers:
                loop = asyncio.get_running_loop()
                request = await loop.run_in_executor(_readers, self._read, scope, headers, body)
            else:
                request = self._read(scope, headers, body)
        finally:
            self.in_flight.end(size)
            del body
        return await self.writer.submit(*request) if request is not None else b""

    def _read(self, scope: Scope, headers: Headers, body: bytes) -> Request | None:
        """A request for the writer, with monitor, batch, rejected rows, key, and digest of the body."""
        live = self.registry.get(scope["path_params"]["name"])
        bad = bad_rows(scope["query_string"])
        key = headers.get("idempotency-key", "")
        if len(key) > LONGEST_KEY:
            raise ApiError(422, "bad_key", f"an Idempotency-Key has at most {LONGEST_KEY} characters")
        hashed, digest = None, b""
        if key:
            hashed = hashlib.blake2b(f"{live.row.uid}\0{key}".encode(), digest_size=16).digest()
            digest = hashlib.blake2b(body, digest_size=16, person=b"%d%s" % (self.kind, bad.encode())).digest()
        body = unpack(body, headers.get("content-encoding", "").lower(), self.settings.max_body)
        table = read_table(body, headers.get("content-type", ""), live.plan.by, self.limits)
        return *self._made(live, self.kind, table, bad), hashed, digest

    def _made(self, live: Live, kind: int, table: Body, bad: str) -> tuple[Live, Batch, Rejections]:
        received = self.writer.clock.now()
        batch, rejected = make_batch(kind, table, live.plan, received, limits=self.limits, skip=bad != "reject")
        return live, batch, Rejections(rejected if bad == "keep" else (), rejected.total)


def bad_rows(query: bytes, default: str = "reject") -> str:
    """How a bad row is treated, that is reject the request, skip and count it, or also keep it with its reason."""
    given = parse_qs(query.decode("latin-1")).get("bad", [default])[-1] if query else default
    if given not in BAD:
        raise ApiError(422, "bad_query", f"bad={given[:40]} is not one of {', '.join(BAD)}", {"query": "bad"})
    return given

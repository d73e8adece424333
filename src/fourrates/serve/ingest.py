"""The endpoints that events come in by, as plain ASGI: nothing between the body and the writer that can be left out."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from fourrates.serve.batch import KINDS, Batch
from fourrates.serve.bodies import Rejected, make_batch, read_table, unpack
from fourrates.serve.errors import ApiError
from fourrates.serve.headers import header, raw_headers
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.writer import Writer

LARGE = 1 << 17  # bytes from which on a body is read in another thread, so that others are not kept waiting
AT_ONCE = 2  # such bodies that are read at a time: the largest take memory, and keep others from running
LONGEST_KEY = 200  # characters of an idempotency key

_readers = ThreadPoolExecutor(AT_ONCE, "fourrates reader")


class Disconnected(Exception):
    """The client has gone before its body was whole."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, if it is not too large."""
    length = header(scope, b"content-length")
    if length.isdigit() and int(length) > limit:
        raise too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > limit:
            raise too_large(limit)
        return body
    parts, size = [body], len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise too_large(limit)
    return b"".join(parts)


def too_large(limit: int) -> ApiError:
    """The body is larger than we take."""
    return ApiError(413, "too_large", f"the body is larger than {limit:,} bytes", {"limit": limit})


class Ingest:
    """``POST /api/monitors/{name}/events``, ``/predictions`` or ``/labels``."""

    def __init__(self, kind: str, registry: Registry, writer: Writer, settings: Settings) -> None:
        self.kind, self.registry, self.writer, self.settings = KINDS[kind], registry, writer, settings
        self.route = f"/api/monitors/{{name}}/{kind}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers: list[tuple[bytes, bytes]] = []
        try:
            status, body = 200, await self._taken(scope, receive)
        except ApiError as error:
            status, body, headers = error.status, error.body(), raw_headers(error)
        except Disconnected:
            return
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _taken(self, scope: Scope, receive: Receive) -> bytes:
        self.registry.get(scope["path_params"]["name"])
        body = await read_body(scope, receive, self.settings.max_body)
        if len(body) > LARGE or header(scope, b"content-encoding"):
            request = await asyncio.get_running_loop().run_in_executor(_readers, self._read, scope, body)
        else:
            request = self._read(scope, body)
        return await self.writer.submit(*request)

    def submit(self, scope: Scope, body: bytes, answer: Callable[[bytes | BaseException], None]) -> None:
        """Take a small body at once; `answer` is called when it is on disk."""
        self.writer.add(*self._read(scope, body), answer=answer)

    def _read(self, scope: Scope, body: bytes) -> tuple[Live, Batch, list[Rejected], bytes | None, bytes]:
        """What the writer takes of a request: its monitor, its batch, rows set aside, its key, a digest of its body."""
        live = self.registry.get(scope["path_params"]["name"])
        settings, skip = self.settings, _skips(scope["query_string"])
        key = header(scope, b"idempotency-key")
        if len(key) > LONGEST_KEY:
            raise ApiError(422, "bad_key", f"an Idempotency-Key has at most {LONGEST_KEY} characters")
        hashed, digest = None, b""
        if key:
            hashed = hashlib.blake2b(f"{live.row.uid}\0{key}".encode(), digest_size=16).digest()
            digest = hashlib.blake2b(body, digest_size=16, person=b"%d%d" % (self.kind, skip)).digest()
        body = unpack(body, header(scope, b"content-encoding").lower(), settings.max_body)
        table = read_table(body, header(scope, b"content-type"), live.plan.by, settings.max_rows)
        batch, rejected = make_batch(self.kind, table, live.plan, time.time(), max_rows=settings.max_rows, skip=skip)
        return live, batch, rejected, hashed, digest


def _skips(query: bytes) -> bool:
    if not query:
        return False
    given = parse_qs(query.decode("latin-1")).get("bad", ["refuse"])[-1]
    if given not in ("refuse", "skip"):
        raise ApiError(422, "bad_query", f"bad={given[:40]} is neither refuse nor skip", {"query": "bad"})
    return given == "skip"

"""The endpoints that events come in by, as plain ASGI: nothing between the body and the writer that can be left out."""

from __future__ import annotations

import asyncio
import hashlib
import time
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from fourrates.serve.batch import KINDS, Batch
from fourrates.serve.bodies import Rejected, make_batch, read_table, unpack
from fourrates.serve.errors import ApiError
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.writer import Writer

LARGE = 1 << 20  # bytes from which on a body is read in another thread, so that others are not kept waiting
LONGEST_KEY = 200  # characters of an idempotency key


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


def header(scope: Scope, name: bytes) -> str:
    """A header of a request; empty if it is not there."""
    for one, value in scope["headers"]:
        if one == name:
            return str(value, "latin-1").strip()
    return ""


class Ingest:
    """``POST /api/monitors/{name}/events``, ``/predictions`` or ``/labels``."""

    def __init__(self, kind: str, registry: Registry, writer: Writer, settings: Settings) -> None:
        self.kind, self.registry, self.writer, self.settings = KINDS[kind], registry, writer, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            status, body, headers = 200, await self._taken(scope, receive), []
        except ApiError as error:
            status, body = error.status, error.body()
            headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        except Disconnected:
            return
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _taken(self, scope: Scope, receive: Receive) -> bytes:
        live = self.registry.get(scope["path_params"]["name"])
        body = await read_body(scope, receive, self.settings.max_body)
        skip = _skips(scope["query_string"])
        key = header(scope, b"idempotency-key")
        if len(key) > LONGEST_KEY:
            raise ApiError(422, "bad_key", f"an Idempotency-Key has at most {LONGEST_KEY} characters")
        hashed = digest = b""
        if key:
            hashed = hashlib.blake2b(f"{live.row.uid}\0{key}".encode(), digest_size=16).digest()
            digest = hashlib.blake2b(body, digest_size=16, person=b"%d%d" % (self.kind, skip)).digest()
        if len(body) > LARGE:
            batch, rejected = await asyncio.to_thread(self._read, scope, body, live, skip)
        else:
            batch, rejected = self._read(scope, body, live, skip)
        return await self.writer.submit(live, batch, rejected, hashed or None, digest)

    def _read(self, scope: Scope, body: bytes, live: Live, skip: bool) -> tuple[Batch, list[Rejected]]:
        settings = self.settings
        body = unpack(body, header(scope, b"content-encoding").lower(), settings.max_body)
        table = read_table(body, header(scope, b"content-type"), live.plan.by, settings.max_rows)
        return make_batch(self.kind, table, live.plan, time.time(), max_rows=settings.max_rows, skip=skip)


def _skips(query: bytes) -> bool:
    if not query:
        return False
    given = parse_qs(query.decode("latin-1")).get("bad", ["refuse"])[-1]
    if given not in ("refuse", "skip"):
        raise ApiError(422, "bad_query", f"bad={given[:40]} is neither refuse nor skip", {"query": "bad"})
    return given == "skip"

"""The calls that take events."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from fourrates.events.rows import Bad
from fourrates.serve.batch import KINDS
from fourrates.serve.bodies import Body, Limits, Rejections, make_batch, read_table, unpack
from fourrates.serve.errors import ApiError
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.writer import Job, Writer

Policy = Annotated[
    Bad,
    msgspec.Meta(
        description="A bad row rejects the request, is left out and counted, or left out and kept with its reason."
    ),
]
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
    """What takes events, predictions and labels."""

    def __init__(self, registry: Registry, writer: Writer, settings: Settings) -> None:
        self.registry, self.writer, self.settings = registry, writer, settings
        self.in_flight = InFlight(IN_FLIGHT * settings.max_body)
        self.limits = Limits(settings.max_rows, settings.max_body)

    async def events(self, request: Request, *, bad: Policy = "reject") -> Response:
        """Take events; the answer means that they are on disk."""
        return await self._taken(request, KINDS["events"], bad)

    async def predictions(self, request: Request, *, bad: Policy = "reject") -> Response:
        """Take predictions; the answer means that they are on disk."""
        return await self._taken(request, KINDS["predictions"], bad)

    async def labels(self, request: Request, *, bad: Policy = "reject") -> Response:
        """Take labels; the answer means that they are on disk."""
        return await self._taken(request, KINDS["labels"], bad)

    async def _taken(self, request: Request, kind: int, bad: Bad) -> Response:
        answer = await self.take(request, lambda body: self._read(request, body, kind, bad))
        return Response(answer, media_type="application/json")

    async def take(self, request: Request, read: Callable[[bytes], Job | None]) -> bytes:
        """Submit what `read` makes of the body of a request; the answer once it is on disk."""
        self.registry.get(request.path_params["name"])
        body = await read_body(request.headers, request.receive, self.settings.max_body, self.in_flight)
        size = len(body)
        try:
            if size > LARGE or "content-encoding" in request.headers:
                job = await asyncio.get_running_loop().run_in_executor(_readers, read, body)
            else:
                job = read(body)
        finally:
            self.in_flight.end(size)
            del body
        return await self.writer.submit(job) if job is not None else b""

    def unpacked(self, request: Request, body: bytes) -> bytes:
        return unpack(body, request.headers.get("content-encoding", "").lower(), self.settings.max_body)

    def _read(self, request: Request, body: bytes, kind: int, bad: Bad) -> Job:
        live = self.registry.get(request.path_params["name"])
        headers = request.headers
        key = headers.get("idempotency-key", "")
        if len(key) > LONGEST_KEY:
            raise ApiError(422, "bad_key", f"an Idempotency-Key has at most {LONGEST_KEY} characters")
        table = read_table(self.unpacked(request, body), headers.get("content-type", ""), live.plan.by, self.limits)
        job = self.job(live, kind, table, bad)
        if key:
            job.key = hashlib.blake2b(f"{live.row.uid}\0{key}".encode(), digest_size=16).digest()
            job.digest = hashlib.blake2b(body, digest_size=16, person=b"%d%s" % (kind, bad.encode())).digest()
        return job

    def job(self, live: Live, kind: int, table: Body, bad: Bad) -> Job:
        received = self.writer.clock.now()
        batch, rejected = make_batch(kind, table, live.plan, received, limits=self.limits, skip=bad != "reject")
        return Job(live, batch, Rejections(rejected if bad == "keep" else (), rejected.total))

"""The application, assembled from store, monitors, writer, routes and the page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fourrates.serve.access import Access
from fourrates.serve.alert_state import Watched, watched
from fourrates.serve.alerting import Alerting, Channels
from fourrates.serve.api import Api, json
from fourrates.serve.assets import page_calls
from fourrates.serve.clock import Clock
from fourrates.serve.errors import ApiError
from fourrates.serve.front import Call, Front
from fourrates.serve.live import Hub
from fourrates.serve.metrics import CONTENT_TYPE, Metrics, Sample, samples_of
from fourrates.serve.notification import Links
from fourrates.serve.openapi import openapi
from fourrates.serve.registry import Registry
from fourrates.serve.settings import Settings
from fourrates.serve.store import open_store
from fourrates.serve.store.base import StoreError
from fourrates.serve.tokens import Tokens
from fourrates.serve.writer import Writer

if TYPE_CHECKING:
    from fourrates.serve.feed import Topic

log = logging.getLogger("fourrates.serve")
CHUNK = 50  # monitors that metrics are taken of in one go, between which others are served
PROBED = 1.0  # seconds to cache whether the store can be written to
REFUSED = 5.0  # seconds that a server is not ready after a failed write


class Service(Front):
    """The application with its parts, its background work, and how it can be watched."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        topics: list[Topic] = []
        if settings.topics:  # the code for Kafka is loaded only now
            from fourrates.serve.feed import Feed, parse_topics

            topics = parse_topics(settings.topics)
        self.store = open_store(settings)
        self.registry = Registry(settings, self.store)
        self.hub = Hub()
        clock = Clock()
        self.writer = Writer(self.registry, self._publish, clock)
        self.feeds = [Feed(topic, self.registry, self.writer) for topic in topics]
        self.tokens = Tokens(settings.data)
        self.channels = Channels(settings.data)
        links = Links(settings.public_url, settings.runbook_url)
        interval = settings.alert_interval
        self.alerting = Alerting(self.store, self.channels, group_interval=interval, links=links, clock=clock)
        self.metrics = Metrics(self._samples, self._numbers)
        self.otlp = None
        if settings.otlp:
            from fourrates.serve.otlp import Otlp

            self.otlp = Otlp(settings.otlp, self.metrics.families)
        self.ready = False
        self.failure: BaseException | None = None  # why the monitors could not be loaded
        self._probed, self._problem = -PROBED, ""
        self._described = [
            *Api(settings, self.registry, self.writer, self.hub, self.alerting).calls(),
            Call("GET", "/healthz", self.healthz, scope="open"),
            Call("GET", "/readyz", self.readyz, scope="open"),
            Call("GET", "/metrics", self.metrics_text),
            Call("GET", "/openapi.json", self.describe, scope="open"),
        ]
        access = Access(
            self.tokens, required=settings.needs_token, loopback=settings.is_loopback, origins=settings.origins
        )
        super().__init__([*self._described, *page_calls()], access, self.metrics, self.lifespan, settings.origins)

    def _publish(self, names: set[str], found: bool) -> None:
        self.hub.publish(names)
        if found:
            self.alerting.wake()

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Bring the monitors back, run, and end in order."""
        try:
            await asyncio.to_thread(self.registry.refresh)
        except BaseException as error:
            self.failure = error
            raise
        loop = asyncio.get_running_loop()
        self.writer.start(loop)
        jobs = [self.alerting.run(self.watched), *([self.otlp.run()] if self.otlp is not None else [])]
        tasks = [asyncio.create_task(job) for job in jobs]
        for feed in self.feeds:
            feed.start(loop)
        self.ready = True
        try:
            yield
        finally:
            self.ready = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(asyncio.to_thread(feed.stop) for feed in self.feeds))  # they use the writer
            await self.writer.stop()
            await asyncio.to_thread(self.channels.close)
            self.store.close()

    # Views of the monitors, taken in the writer thread, which they do not change during --------------------

    async def watched(self) -> Sequence[Watched]:

        def look() -> list[Watched]:
            damaged = [Watched(row.id, row.uid, row.name, damaged=True) for row, _ in self.registry.damaged.values()]
            return [*map(watched, self.registry.lives.values()), *damaged]

        try:
            return await self.writer.ask(look)
        except ApiError as error:
            raise StoreError(error.message) from None

    async def _samples(self) -> AsyncIterator[Sequence[Sample]]:
        names = sorted(self.registry.lives)
        for start in range(0, len(names), CHUNK):
            yield await self.writer.ask(partial(self._samples_of, names[start : start + CHUNK]))

    def _samples_of(self, names: Sequence[str]) -> list[Sample]:
        lives = [self.registry.lives[name] for name in names if name in self.registry.lives]  # one may be gone by now
        return [sample for live in lives for sample in samples_of(live)]

    def _numbers(self) -> dict[str, float]:
        return {
            "monitors": len(self.registry.lives),
            "commits_total": self.writer.commits,
            "batches_total": self.writer.batches,
            "requests_waiting": self.writer.backlog,
            "stream_readers": len(self.hub.readers),
        }

    async def healthz(self, request: Request) -> Response:
        """Whether the process does its work."""
        return PlainTextResponse("ok\n") if self.writer.alive else PlainTextResponse("the writer has ended\n", 500)

    async def readyz(self, request: Request) -> Response:
        """Whether requests are taken, as the monitors are loaded, the store can be written to."""
        if not self.ready:
            return PlainTextResponse("loading\n", 503)
        if time.monotonic() - self._probed >= PROBED:  # anybody may ask, so not every request may cause a write
            self._probed = time.monotonic()
            try:
                await self.writer.ask(self.store.probe)
                self._problem = self.writer.problem(REFUSED) or ""  # a batch needs more room than a probe
            except ApiError as error:
                self._problem = error.message
        return PlainTextResponse(f"{self._problem}\n", 503) if self._problem else PlainTextResponse("ready\n")

    async def metrics_text(self, request: Request) -> Response:
        """Numbers for Prometheus."""
        return Response(await self.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def describe(self, request: Request) -> Response:
        """The API, as OpenAPI describes it."""
        return json(openapi(self._described))

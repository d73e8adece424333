"""The application: store, monitors, writer, routes and the page, put together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fourrates.disk_queue import QueueError
from fourrates.serve.access import Access
from fourrates.serve.alerting import Alerting
from fourrates.serve.api import Api
from fourrates.serve.assets import page_routes
from fourrates.serve.channels import Channels
from fourrates.serve.clock import Clock
from fourrates.serve.errors import ApiError, error_body, unavailable
from fourrates.serve.headers import SECURITY
from fourrates.serve.ingest import Disconnected
from fourrates.serve.live import Hub
from fourrates.serve.metrics import CONTENT_TYPE, Metrics, Observed
from fourrates.serve.notification import Links
from fourrates.serve.observer import Observer
from fourrates.serve.openapi import openapi
from fourrates.serve.registry import Registry
from fourrates.serve.settings import Settings
from fourrates.serve.store import StoreError, open_store
from fourrates.serve.tokens import Tokens
from fourrates.serve.writer import Writer

if TYPE_CHECKING:
    from fourrates.serve.feed import Feed

log = logging.getLogger("fourrates.serve")
PROBED = 1.0  # seconds for which the answer to whether the store can be written to holds
REFUSED = 5.0  # seconds for which a server is not ready after a batch that could not be written
OFTEN = 0.5  # seconds between two summaries of a monitor on the stream


class SecurityHeaders:
    """Headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY]
            await send(message)

        await self.app(scope, receive, with_headers)


def _feed_maker(urls: Sequence[str]) -> Callable[[Registry, Writer], list[Feed]]:
    """What makes the sources of a server; the code for Kafka is loaded where there are any."""
    if not urls:
        return lambda _, __: []
    from fourrates.serve.feed import Feed, parse_topics

    topics = parse_topics(urls)
    return lambda registry, writer: [Feed(topic, registry, writer) for topic in topics]


class Service:
    """A server's parts, and what runs next to the requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        make_feeds = _feed_maker(settings.topics)
        self.store = open_store(settings)
        self.registry = Registry(settings, self.store)
        self.hub = Hub()
        clock = Clock()
        self.writer = Writer(self.registry, self._changed, clock)
        self.feeds = make_feeds(self.registry, self.writer)
        self.tokens = Tokens(settings.data)
        self.channels = Channels(settings.data)
        links = Links(settings.public_url, settings.runbook_url)
        interval = settings.alert_interval
        self.alerting = Alerting(self.store, self.channels, group_interval=interval, links=links, clock=clock)
        self.writer.on_findings = self.alerting.on_findings
        self.observer = Observer(self.registry, self.writer, self.hub)
        self.metrics = Metrics(self.observer.samples, self.observer.server)
        self.ready = False
        self.failure: BaseException | None = None  # why the monitors could not be loaded
        self._dirty: set[str] = set()

    def _changed(self, names: list[str], told: list[dict[str, Any]]) -> None:
        """After a commit, in the event loop."""
        self._dirty.update(names)
        for finding in told:
            self.hub.publish("finding", finding["monitor"], finding)

    async def tell(self) -> None:
        """Summaries and points of monitors that changed, now and then, while somebody listens."""
        while True:
            await asyncio.sleep(OFTEN)
            names, self._dirty = self._dirty, set()
            if not names or not self.hub.readers:
                continue
            try:
                looked = await self.writer.ask(lambda names=names: self._look(names))  # type: ignore[misc]
            except Exception as error:  # the next look may go well; the writer has logged a defect
                log.warning("the page is late: %s", error)
                self._dirty |= names
                continue
            for name, summary, point in looked:
                self.hub.publish("summary", name, summary)
                self.hub.publish("point", name, {"monitor": name, **point})

    def _look(self, names: set[str]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        found = []
        for name in sorted(names & self.registry.lives.keys()):
            live = self.registry.lives[name]
            found.append((name, live.summary(), live.monitor.last_point()))
        return found

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Bring the monitors back, run, and end in order."""
        try:
            await asyncio.to_thread(self.registry.refresh)
        except BaseException as error:
            self.failure = error
            raise
        self.writer.start(asyncio.get_running_loop())
        going = (self.tell(), self.hub.beat(), self.alerting.run(self.observer.watched))
        tasks = [asyncio.create_task(one) for one in going]
        for feed in self.feeds:
            feed.start(asyncio.get_running_loop())
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


def create_app(settings: Settings) -> Starlette:
    """Make the application of a server.

    Parameters
    ----------
    settings : Settings
        What it is started with.
    """
    service = Service(settings)
    routes: list[BaseRoute] = Api(settings, service.registry, service.writer, service.hub, service.alerting).routes()
    routes += [
        Route("/healthz", _health(service)),
        Route("/readyz", _readiness(service)),
        Route("/metrics", _metrics(service)),
    ]
    routes.append(Route("/openapi.json", _description(routes)))
    routes += page_routes()
    app = Starlette(
        routes=routes,
        lifespan=service.lifespan,
        exception_handlers={
            ApiError: _api_error,
            HTTPException: _http_error,
            StoreError: _unavailable,
            QueueError: _unavailable,
            Disconnected: _gone,
            Exception: _defect,
        },
    )
    rules: dict[str, Any] = {
        "tokens": service.tokens,
        "required": settings.needs_token,
        "loopback": settings.is_loopback,
        "origins": settings.origins,
    }
    app.add_middleware(Access, **rules)
    if settings.origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.origins, allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Observed, metrics=service.metrics, routes=routes)
    app.state.service = service
    return app


def _health(service: Service) -> Any:
    async def healthz(request: Request) -> Response:
        """Whether the process does its work."""
        sound = service.writer.alive
        return Response(b"ok\n" if sound else b"the writer has ended\n", 200 if sound else 500, media_type="text/plain")

    return healthz


def _readiness(service: Service) -> Any:
    checked, problem = -PROBED, ""

    async def readyz(request: Request) -> Response:
        """Whether requests are taken: the monitors are loaded, the store can be written to."""
        nonlocal checked, problem
        if not service.ready:
            return Response(b"loading\n", 503, media_type="text/plain")
        if time.monotonic() - checked >= PROBED:  # anybody may ask: a write to the disk is not for each of them
            checked = time.monotonic()
            try:
                await service.writer.ask(service.store.probe)
                problem = service.writer.problem(REFUSED) or ""  # a batch needs more room than a probe
            except ApiError as error:
                problem = error.message
        if problem:
            return Response(f"{problem}\n", 503, media_type="text/plain")
        return Response(b"ready\n", media_type="text/plain")

    return readyz


def _metrics(service: Service) -> Any:
    async def metrics(request: Request) -> Response:
        """Numbers for Prometheus."""
        return Response(await service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    return metrics


def _description(routes: list[BaseRoute]) -> Any:
    described = [*routes]

    async def describe(request: Request) -> Response:
        """The API, as OpenAPI describes it."""
        return Response(msgspec.json.encode(openapi(described)), media_type="application/json")

    described.append(Route("/openapi.json", describe))

    return describe


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return Response(error.body(), error.status, headers=error.headers, media_type="application/json")


async def _unavailable(request: Request, error: Exception) -> Response:
    return await _api_error(request, unavailable(str(error)))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "bad_method"}
    body = error_body(codes.get(error.status_code, "refused"), str(error.detail), {"path": request.url.path[:200]})
    return Response(body, error.status_code, headers=error.headers, media_type="application/json")


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


async def _defect(request: Request, error: Exception) -> Response:
    body = error_body("defect", "a defect of fourrates, not of your request; the log has more")
    return Response(body, 500, media_type="application/json")

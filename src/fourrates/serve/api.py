"""The routes of the API for monitors, findings and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from fourrates.serve import views
from fourrates.serve.alerting import Alerting, check_channels
from fourrates.serve.batch import ACCEPTED, CONFIG, KINDS, AcceptedDrift, Batch
from fourrates.serve.bodies import Rejections, segment_name
from fourrates.serve.cloudevents import CloudEvents
from fourrates.serve.config import MonitorConfig, check_change, check_name, merged, parse_config
from fourrates.serve.errors import ApiError, no_monitor
from fourrates.serve.ingest import IN_FLIGHT, InFlight, Ingest, read_body
from fourrates.serve.live import Hub
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.store.base import StoredFinding
from fourrates.serve.writer import Writer

SMALL = 1 << 20  # bytes of a body that is no batch
LATELY = 200  # findings among which segments that closed lately are looked for
Query = TypeVar("Query", bound=msgspec.Struct)


class Acknowledgement(msgspec.Struct, forbid_unknown_fields=True):
    """Who has seen a drift, and why that is all."""

    by: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None


class Silence(msgspec.Struct, forbid_unknown_fields=True):
    """Until when there are no alerts, of a segment or of all."""

    until: datetime
    segment: dict[str, Any] | None = None


Segment = Annotated[str, msgspec.Meta(description='The values of a segment in the order of `by`, as JSON: ["FR"].')]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


# What queries are read into.


class OfSegment(msgspec.Struct):
    segment: Segment | None = None

    @property
    def name(self) -> str | None:
        """The name of the segment; None if none was asked for."""
        if self.segment is None:
            return None
        try:
            return segment_name(msgspec.json.decode(self.segment, type=list[Any]))
        except (ValueError, RecursionError):
            raise ApiError(422, "bad_query", f"segment={self.segment[:80]} is not a JSON list") from None


class OfFindings(OfSegment):
    limit: Limit = 100
    before: str | None = None
    of: Literal["all", "overall"] = "all"


class OfSegments(OfSegment):
    limit: Limit = 100
    offset: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0


class OfSeries(msgspec.Struct):
    points: Annotated[int, msgspec.Meta(ge=2, le=2_000)] = 600
    seconds: Annotated[int, msgspec.Meta(ge=1, le=1 << 31)] = 1 << 31


class OfRejected(msgspec.Struct):
    limit: Limit = 100


class OfLabels(OfRejected):
    after: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] = 0


class OfStream(msgspec.Struct):
    monitor: str | None = None


def json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def takes(query: type[Query]) -> Callable[[Any], Any]:
    """Decorate a call with the struct that its query is read into, which /openapi.json shows."""

    def decorate(call: Callable[..., Any]) -> Any:
        @wraps(call)
        async def with_query(self: Api, request: Request) -> Response:
            try:
                asked = msgspec.convert(dict(request.query_params), query, strict=False)
            except msgspec.ValidationError as error:
                raise ApiError(422, "bad_query", str(error)[:500]) from None
            answer: Response = await call(self, request, asked)
            return answer

        with_query.query = query  # type: ignore[attr-defined]
        return with_query

    return decorate


class Api:
    def __init__(self, settings: Settings, registry: Registry, writer: Writer, hub: Hub, alerting: Alerting) -> None:
        self.settings, self.registry, self.writer, self.hub = settings, registry, writer, hub
        self.alerting = alerting
        self._changing = asyncio.Lock()  # one at a time reads, merges and writes settings

    def routes(self) -> list[BaseRoute]:
        monitor = "/api/monitors/{name}"
        in_flight = InFlight(IN_FLIGHT * self.settings.max_body)
        shared = self.registry, self.writer, self.settings, in_flight
        doors = {**{kind: Ingest(kind, *shared) for kind in KINDS}, "cloudevents": CloudEvents(*shared)}
        ingest = [Route(f"{monitor}/{kind}", door, methods=["POST"], name=kind) for kind, door in doors.items()]
        others = (
            ("GET", "/api/monitors", self.monitors),
            ("GET", monitor, self.monitor),
            ("PUT", monitor, self.put),
            ("PATCH", monitor, self.patch),
            ("DELETE", monitor, self.delete),
            ("GET", f"{monitor}/drifts", self.drifts),
            ("GET", f"{monitor}/drifts/{{id}}", self.drift),
            ("GET", f"{monitor}/drifts/{{id}}/examples", self.examples),
            ("POST", f"{monitor}/drifts/{{id}}/acknowledge", self.acknowledge),
            ("POST", f"{monitor}/drifts/{{id}}/accept", self.accept),
            ("GET", f"{monitor}/segments", self.segments),
            ("GET", f"{monitor}/segments/series", self.segment_series),
            ("GET", f"{monitor}/series", self.series),
            ("GET", f"{monitor}/rejected", self.rejected),
            ("GET", f"{monitor}/to-label", self.to_label),
            ("PUT", f"{monitor}/silence", self.silence),
            ("DELETE", f"{monitor}/silence", self.unsilence),
            ("POST", f"{monitor}/test-alert", self.test_alert),
            ("GET", "/api/stream", self.stream),
        )
        return [*ingest, *(Route(path, endpoint, methods=[method]) for method, path, endpoint in others)]

    async def _ask(self, request: Request, function: Callable[[Live], Any]) -> Any:
        name = request.path_params["name"]
        return await self.writer.ask(lambda: function(self.registry.get(name)))

    async def _small(self, request: Request) -> bytes:
        return await read_body(request.headers, request.receive, SMALL)

    # Monitors -------------------------------------------------------------------------------------------------

    async def monitors(self, request: Request) -> Response:
        """All monitors, by name."""

        def look() -> dict[str, list[dict[str, Any]]]:
            damaged = sorted(self.registry.damaged.items())
            return {
                "monitors": [
                    {**live.summary(), "spark": views.spark(live.monitor, self.writer.clock.now())}
                    for _, live in sorted(self.registry.lives.items())
                ],
                "damaged": [{"name": name, "problem": problem} for name, (_, problem) in damaged],
            }

        return json(await self.writer.ask(look))

    async def monitor(self, request: Request) -> Response:
        """One monitor."""
        return json(await self._ask(request, Live.detail))

    async def put(self, request: Request) -> Response:
        """Make a monitor, or give one new settings."""
        name = check_name(request.path_params["name"])
        config = parse_config(await self._small(request))
        await _check_channels(config)
        async with self._changing:
            live = await self.writer.ask(lambda: self.registry.lives.get(name))
            if live is None:
                made = await self.writer.ask(lambda: self.registry.create(name, config).detail())
                self.hub.publish([name])
                return json(made, 201)
            check_change(live.monitor.config, config)
            await self._change(live, config)
        return json(await self._ask(request, Live.detail))

    async def patch(self, request: Request) -> Response:
        """Change settings of a monitor."""
        body = await self._small(request)
        async with self._changing:
            live = await self._ask(request, lambda live: live)
            config = merged(live.monitor.config, body)
            await _check_channels(config)
            await self._change(live, config)
        return json(await self._ask(request, Live.detail))

    async def _change(self, live: Live, config: MonitorConfig) -> None:
        """New settings go through the journal, like everything that affects findings."""
        if config != live.monitor.config:
            batch = Batch(CONFIG, self.writer.clock.now(), 0, config=msgspec.json.encode(config))
            await self.writer.submit(live, batch, Rejections())

    async def delete(self, request: Request) -> Response:
        """Forget a monitor."""
        name = request.path_params["name"]
        async with self._changing:
            await self.writer.ask(lambda: self.registry.remove(name))
        self.hub.publish([name])
        return Response(status_code=204)

    # Findings -------------------------------------------------------------------------------------------------

    @takes(OfFindings)
    async def drifts(self, request: Request, asked: OfFindings) -> Response:
        """Findings of every kind, the newest first; of all, or overall without the segments."""
        overall, segment = asked.of == "overall", asked.name

        def look(live: Live) -> list[StoredFinding]:
            store = self.registry.store
            return store.findings(live.row.id, asked.limit, asked.before, overall=overall, segment=segment)

        return json({"drifts": [msgspec.Raw(finding.body) for finding in await self._ask(request, look)]})

    async def drift(self, request: Request) -> Response:
        """One of them."""
        return Response((await self._finding(request)).body, media_type="application/json")

    async def examples(self, request: Request) -> Response:
        """The ids of the events from the start of a drift on."""
        finding = await self._finding(request)
        return Response(finding.examples or b'{"ids":[],"complete":false}', media_type="application/json")

    async def acknowledge(self, request: Request) -> Response:
        """Somebody has seen it, so it is not repeated."""
        given = await self._given(request)
        return json(await self._acknowledge(request, await self._finding(request), given))

    async def accept(self, request: Request) -> Response:
        """The level since a drift is normal from now on."""
        given, finding = await self._given(request), await self._finding(request)
        if finding.kind != "drift":
            raise ApiError(409, "not_a_drift", "only a drift can be accepted as normal")
        at = AcceptedDrift(finding.segment, msgspec.json.decode(finding.body)["at"])
        batch = Batch(ACCEPTED, self.writer.clock.now(), 0, config=msgspec.json.encode(at))  # through the journal
        await self.writer.submit(self.registry.get(request.path_params["name"]), batch, Rejections())
        return json(await self._acknowledge(request, finding, given))

    async def _given(self, request: Request) -> Acknowledgement:
        try:
            return msgspec.json.decode(await self._small(request) or b"{}", type=Acknowledgement)
        except (ValueError, RecursionError) as error:
            raise ApiError(422, "bad_acknowledgement", str(error)[:500]) from None

    async def _acknowledge(self, request: Request, finding: StoredFinding, given: Acknowledgement) -> dict[str, Any]:
        seen = {"acknowledged": views.iso(self.writer.clock.now()), "acknowledged_by": given.by, "note": given.note}
        body: dict[str, Any] = msgspec.json.decode(finding.body) | seen

        def note(live: Live) -> None:
            self.registry.store.change_finding(finding.id, msgspec.json.encode(body))
            for shown in (live.last_finding, live.drift):
                if shown is not None and shown["id"] == finding.id:
                    shown |= seen

        await self._ask(request, note)
        self.hub.publish([request.path_params["name"]])
        return body

    async def _finding(self, request: Request) -> StoredFinding:
        wanted = request.path_params["id"]
        finding: StoredFinding | None = await self._ask(
            request, lambda live: self.registry.store.finding(live.row.id, wanted)
        )
        if finding is None:
            raise ApiError(404, "no_finding", f"there is no drift {wanted[:80]!r} in this monitor")
        return finding

    @takes(OfSegments)
    async def segments(self, request: Request, asked: OfSegments) -> Response:
        """Segments, those with an open drift or one that closed lately first, then by alarm level."""
        page, only = (asked.limit, asked.offset), asked.name

        def look(live: Live) -> dict[str, Any]:
            lately = self._lately_closed(live)
            return views.segments(live.monitor, *page, lately=lately, silences=live.silences, only=only)

        return json(await self._ask(request, look))

    def _lately_closed(self, live: Live) -> set[str]:
        """Segments in which something was found within a day."""
        since = views.iso(self.writer.clock.now() - views.DAY) or ""
        latest = self.registry.store.findings(live.row.id, LATELY)
        times = [(finding.segment, msgspec.json.decode(finding.body)["time"] or "") for finding in latest]
        return {segment for segment, time in times if segment is not None and time > since}

    @takes(OfSegment)
    async def segment_series(self, request: Request, asked: OfSegment) -> Response:
        """How the recalls of a segment went."""
        name = asked.name

        def look(live: Live) -> dict[str, Any]:
            if name is None or name not in live.monitor.segments:
                raise ApiError(404, "no_segment", "there is no such segment in this monitor", {"query": "segment"})
            return {"segment": views.segment_json(live.monitor, name), **live.monitor.drawn_segment(name)}

        return json(await self._ask(request, look))

    @takes(OfSeries)
    async def series(self, request: Request, asked: OfSeries) -> Response:
        """How the rates went."""
        return json(await self._ask(request, lambda live: live.monitor.drawn(asked.points, asked.seconds)))

    @takes(OfRejected)
    async def rejected(self, request: Request, asked: OfRejected) -> Response:
        """Rejected rows that were kept."""
        rows = await self._ask(request, lambda live: self.registry.store.rejected(live.row.id, asked.limit))
        return json({"rejected": [{"time": views.iso(row.made), **_object(row.body)} for row in rows]})

    @takes(OfLabels)
    async def to_label(self, request: Request, asked: OfLabels) -> Response:
        """Predictions drawn for labelling that have no label yet, after a number, in order."""
        return json(await self._ask(request, lambda live: views.to_label(live.monitor, asked.after, asked.limit)))

    # Silence --------------------------------------------------------------------------------------------------

    async def silence(self, request: Request) -> Response:
        """No alerts until then, of a monitor or of a segment."""
        try:
            given = msgspec.json.decode(await self._small(request), type=Silence)
            until = given.until if given.until.tzinfo else given.until.replace(tzinfo=UTC)
            moment = until.timestamp()
        except (ValueError, OverflowError, RecursionError):
            raise ApiError(422, "bad_silence", 'give {"until": a time in ISO 8601}', {"field": "until"}) from None
        segment = None if given.segment is None else segment_name([*given.segment.values()])
        return await self._set_silence(request, moment, segment)

    @takes(OfSegment)
    async def unsilence(self, request: Request, asked: OfSegment) -> Response:
        """Alerts again."""
        return await self._set_silence(request, None, asked.name)

    async def _set_silence(self, request: Request, until: float | None, segment: str | None) -> Response:
        def change(live: Live) -> dict[str, Any]:
            if segment is not None and segment not in live.monitor.segments:
                raise ApiError(404, "no_segment", "there is no such segment in this monitor")
            self.registry.silence(live, until, segment)
            return live.summary()

        summary = await self._ask(request, change)
        self.hub.publish([summary["name"]])  # for the pages of others
        return json(summary)

    async def test_alert(self, request: Request) -> Response:
        """Send a test to the channels of a monitor, and answer with the outcome."""
        name, addresses = await self._ask(request, lambda live: (live.name, live.monitor.config.alerts.channels))
        return json(await asyncio.to_thread(self.alerting.test, name, addresses))

    # The stream -----------------------------------------------------------------------------------------------

    @takes(OfStream)
    async def stream(self, request: Request, asked: OfStream) -> Response:
        """Server-sent events with the names of monitors that changed."""
        monitor = asked.monitor
        if monitor is not None and monitor not in self.registry.lives:
            raise no_monitor(monitor)
        return StreamingResponse(
            self.hub.stream(monitor, request.scope.get("still_allowed", lambda: True)),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )


async def _check_channels(config: MonitorConfig) -> None:
    """Refuse addresses that no alert could be sent to; in a thread, for Apprise takes a while to be imported."""
    try:
        await asyncio.to_thread(check_channels, config.alerts.channels)
    except ValueError as error:
        raise ApiError(422, "bad_channel", str(error), {"field": "alerts.channels"}) from None


def _object(body: bytes) -> dict[str, Any]:
    row = msgspec.json.decode(body)
    return row if isinstance(row, dict) else {"problem": str(row)}

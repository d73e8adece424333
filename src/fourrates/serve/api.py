"""The routes of the API for monitors, findings and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

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
from fourrates.serve.registry import Live, Registry, finding_json
from fourrates.serve.settings import Settings
from fourrates.serve.store import StoredFinding
from fourrates.serve.writer import Writer

SMALL = 1 << 20  # bytes of a body that is no batch
LATELY = 200  # findings among which segments that closed lately are looked for


class Acknowledgement(msgspec.Struct, forbid_unknown_fields=True):
    """Who has seen a drift, and why that is all."""

    by: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None


class Silence(msgspec.Struct, forbid_unknown_fields=True):
    """Until when there are no alerts, of a segment or of all."""

    until: datetime
    segment: dict[str, Any] | None = None


def json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def number(request: Request, name: str, default: int, least: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= most):
        raise ApiError(
            422, "bad_query", f"{name}={text[:40]} is not a number from {least} to {most:,}", {"query": name}
        )
    return int(text)


def queried_segment(request: Request) -> str | None:
    """The name of the segment in the query, its values as a JSON list; None without one."""
    text = request.query_params.get("segment")
    if text is None:
        return None
    try:
        return segment_name(msgspec.json.decode(text, type=list[Any]))
    except (ValueError, RecursionError):
        raise ApiError(422, "bad_query", f"segment={text[:80]} is not a JSON list", {"query": "segment"}) from None


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
        return await read_body(request.scope, request.receive, SMALL)

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
            return await self._put(request, name, config)

    async def _put(self, request: Request, name: str, config: MonitorConfig) -> Response:
        def make() -> tuple[dict[str, Any] | None, MonitorConfig | None]:
            live = self.registry.lives.get(name)
            if live is None:
                return self.registry.create(name, config).detail(), None
            return None, live.monitor.config

        made, old = await self.writer.ask(make)
        if made is not None:
            self.hub.publish("summary", name, await self._ask(request, Live.summary))
            return json(made, 201)
        assert old is not None
        check_change(old, config)
        if old != config:
            await self._change(name, config)
        return json(await self._ask(request, Live.detail))

    async def patch(self, request: Request) -> Response:
        """Change settings of a monitor."""
        body = await self._small(request)
        async with self._changing:
            old = await self._ask(request, lambda live: live.monitor.config)
            config = merged(old, body)
            if config != old:
                await _check_channels(config)
                await self._change(request.path_params["name"], config)
        return json(await self._ask(request, Live.detail))

    async def _change(self, name: str, config: MonitorConfig) -> None:
        """New settings go through the journal, like everything that affects findings."""
        live = self.registry.get(name)
        batch = Batch(CONFIG, self.writer.clock.now(), 0, config=msgspec.json.encode(config))
        await self.writer.submit(live, batch, Rejections())

    async def delete(self, request: Request) -> Response:
        """Forget a monitor."""
        name = request.path_params["name"]
        async with self._changing:
            await self.writer.ask(lambda: self.registry.remove(name))
        self.hub.publish("removed", name, {"name": name})
        return Response(status_code=204)

    # What was found -------------------------------------------------------------------------------------------

    async def drifts(self, request: Request) -> Response:
        """Findings of every kind, the newest first; of all, or overall without the segments."""
        limit = number(request, "limit", 100, 1, 1_000)
        before = request.query_params.get("before")
        of = request.query_params.get("of", "all")
        if of not in ("all", "overall"):
            raise ApiError(422, "bad_query", f"of={of[:40]} is neither all nor overall", {"query": "of"})

        segment = queried_segment(request)

        def look(live: Live) -> list[StoredFinding]:
            overall = of == "overall"
            return self.registry.store.findings(live.row.id, limit, before, overall=overall, segment=segment)

        return json({"drifts": [finding_json(finding) for finding in await self._ask(request, look)]})

    async def drift(self, request: Request) -> Response:
        """One of them."""
        return json(finding_json(await self._finding(request)))

    async def examples(self, request: Request) -> Response:
        """The ids of the events from the start of a drift on."""
        finding = await self._finding(request)
        return Response(finding.examples or b'{"ids":[],"complete":false}', media_type="application/json")

    async def acknowledge(self, request: Request) -> Response:
        """Somebody has seen it: it is not repeated."""
        return json(await self._acknowledge(request, await self._finding(request)))

    async def accept(self, request: Request) -> Response:
        """The level since a drift is normal from now on."""
        finding = await self._finding(request)
        if finding.kind != "drift":
            raise ApiError(409, "not_a_drift", "only a drift can be accepted as normal")
        at = AcceptedDrift(finding.segment, msgspec.json.decode(finding.body)["at"])
        batch = Batch(ACCEPTED, self.writer.clock.now(), 0, config=msgspec.json.encode(at))  # through the journal
        await self.writer.submit(self.registry.get(request.path_params["name"]), batch, Rejections())
        return json(await self._acknowledge(request, finding))

    async def _acknowledge(self, request: Request, finding: StoredFinding) -> dict[str, Any]:
        try:
            given = msgspec.json.decode(await self._small(request) or b"{}", type=Acknowledgement)
        except (ValueError, RecursionError) as error:
            raise ApiError(422, "bad_acknowledgement", str(error)[:500]) from None
        now = self.writer.clock.now()
        body = finding_json(finding) | {"acknowledged_by": given.by, "note": given.note}

        def note(live: Live) -> str:
            self.registry.store.acknowledge(finding.id, now, msgspec.json.encode(body))
            body["acknowledged"] = views.iso(now)
            if live.last_finding is not None and live.last_finding["id"] == finding.id:
                live.last_finding = body
            if live.drift is not None and live.drift["id"] == finding.id:
                live.drift = body
            return live.row.uid

        uid = await self._ask(request, note)
        await asyncio.to_thread(self.alerting.acknowledge, uid, finding.id, now)
        self.hub.publish("finding", request.path_params["name"], body)
        return body

    async def _finding(self, request: Request) -> Any:
        wanted = request.path_params["id"]
        finding = await self._ask(request, lambda live: self.registry.store.finding(live.row.id, wanted))
        if finding is None:
            raise ApiError(404, "no_finding", f"there is no drift {wanted[:80]!r} in this monitor")
        return finding

    async def segments(self, request: Request) -> Response:
        """Segments: those with an open drift or one that closed lately first, then by alarm level."""
        limit = number(request, "limit", 100, 1, 1_000)
        offset = number(request, "offset", 0, 0, 1 << 31)
        only = queried_segment(request)

        def look(live: Live) -> dict[str, Any]:
            lately = self._lately_closed(live)
            return views.segments(live.monitor, limit, offset, lately=lately, silences=live.silences, only=only)

        return json(await self._ask(request, look))

    def _lately_closed(self, live: Live) -> set[str]:
        """Segments in which something was found within a day."""
        since = views.iso(self.writer.clock.now() - views.DAY) or ""
        latest = [finding for finding in self.registry.store.findings(live.row.id, LATELY) if finding.segment]
        return {finding.segment or "" for finding in latest if (finding_json(finding)["time"] or "") > since}

    async def segment_series(self, request: Request) -> Response:
        """How the recalls of a segment went."""
        name = queried_segment(request)

        def look(live: Live) -> dict[str, Any]:
            if name is None or name not in live.monitor.segments:
                raise ApiError(404, "no_segment", "there is no such segment in this monitor", {"query": "segment"})
            return {"segment": views.segment_json(live.monitor, name), **live.monitor.drawn_segment(name)}

        return json(await self._ask(request, look))

    async def series(self, request: Request) -> Response:
        """How the rates went."""
        points = number(request, "points", 600, 2, 2_000)
        seconds = number(request, "seconds", 1 << 31, 1, 1 << 31)
        return json(await self._ask(request, lambda live: live.monitor.drawn(points, seconds)))

    async def rejected(self, request: Request) -> Response:
        """Rejected rows that were kept."""
        limit = number(request, "limit", 100, 1, 1_000)
        rows = await self._ask(request, lambda live: self.registry.store.rejected(live.row.id, limit))
        return json({"rejected": [{"time": views.iso(row.made), **_object(row.body)} for row in rows]})

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

    async def unsilence(self, request: Request) -> Response:
        """Alerts again."""
        return await self._set_silence(request, None, queried_segment(request))

    async def _set_silence(self, request: Request, until: float | None, segment: str | None) -> Response:
        def change(live: Live) -> dict[str, Any]:
            if segment is not None and segment not in live.monitor.segments:
                raise ApiError(404, "no_segment", "there is no such segment in this monitor")
            self.registry.silence(live, until, segment)
            return live.summary()

        summary = await self._ask(request, change)
        self.hub.publish("summary", summary["name"], summary)  # for the pages of others
        return json(summary)

    async def test_alert(self, request: Request) -> Response:
        """Send a test to the channels of a monitor, and say what became of it."""
        name, addresses = await self._ask(request, lambda live: (live.name, live.monitor.config.alerts.channels))
        return json(await asyncio.to_thread(self.alerting.test, name, addresses))

    # The stream -----------------------------------------------------------------------------------------------

    async def stream(self, request: Request) -> Response:
        """What happens, as server-sent events."""
        monitor = request.query_params.get("monitor")
        if monitor is not None and monitor not in self.registry.lives:
            raise no_monitor(monitor)
        last = request.headers.get("last-event-id")
        return StreamingResponse(
            self.hub.stream(monitor, last, request.scope.get("still_allowed")),
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

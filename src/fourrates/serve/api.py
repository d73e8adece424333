"""The calls of the API for monitors, findings and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fourrates.serve import views
from fourrates.serve.alerting import Alerting, check_channels
from fourrates.serve.batch import ACCEPTED, CONFIG, AcceptedDrift, Batch
from fourrates.serve.bodies import segment_name
from fourrates.serve.cloudevents import CloudEvents
from fourrates.serve.config import MonitorConfig, check_change, check_name, merged, parse_config
from fourrates.serve.errors import ApiError, no_monitor
from fourrates.serve.front import Call
from fourrates.serve.ingest import read_body
from fourrates.serve.live import Hub
from fourrates.serve.openapi import CONFIG_CHANGE, OBJECT, batch_schema
from fourrates.serve.registry import Live, Registry
from fourrates.serve.settings import Settings
from fourrates.serve.store.base import StoredFinding
from fourrates.serve.writer import Job, Writer

SMALL = 1 << 20  # bytes of a body that is no batch
LATELY = 200  # findings among which segments that closed lately are looked for
MOST = 1 << 31  # of rows to skip, and of seconds


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
Offset = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Points = Annotated[int, msgspec.Meta(ge=2, le=2_000)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=MOST)]


def json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _named(segment: str | None) -> str | None:
    """The name of the segment that a query asks for, if it asks for one."""
    if segment is None:
        return None
    try:
        return segment_name(msgspec.json.decode(segment, type=list[Any]))
    except (ValueError, RecursionError):
        raise ApiError(422, "bad_query", f"segment={segment[:80]} is not a JSON list") from None


class Api:
    def __init__(self, settings: Settings, registry: Registry, writer: Writer, hub: Hub, alerting: Alerting) -> None:
        self.settings, self.registry, self.writer, self.hub = settings, registry, writer, hub
        self.alerting = alerting
        self._changing = asyncio.Lock()  # one at a time reads, merges and writes settings

    def calls(self) -> list[Call]:
        monitors, monitor, drift = "/api/monitors", "/api/monitors/{name}", "/api/monitors/{name}/drifts/{id}"
        take, look = CloudEvents(self.registry, self.writer, self.settings), self._looking
        return [
            Call("POST", f"{monitor}/events", take.events, batch_schema("y_true", "y_pred"), "ingest"),
            Call("POST", f"{monitor}/predictions", take.predictions, batch_schema("id", "y_pred"), "ingest"),
            Call("POST", f"{monitor}/labels", take.labels, batch_schema("id", "y_true"), "ingest"),
            Call("POST", f"{monitor}/cloudevents", take.cloudevents, OBJECT, "ingest"),
            Call("GET", monitors, self.monitors),
            Call("GET", monitor, look(self.monitor)),
            Call("PUT", monitor, self.put, MonitorConfig),
            Call("PATCH", monitor, self.patch, CONFIG_CHANGE),
            Call("DELETE", monitor, self.delete),
            Call("GET", f"{monitor}/drifts", look(self.drifts)),
            Call("GET", drift, look(self.drift)),
            Call("GET", f"{drift}/examples", look(self.examples)),
            Call("POST", f"{drift}/acknowledge", self.acknowledge, Acknowledgement),
            Call("POST", f"{drift}/accept", self.accept, Acknowledgement),
            Call("GET", f"{monitor}/segments", look(self.segments)),
            Call("GET", f"{monitor}/segments/series", look(self.segment_series)),
            Call("GET", f"{monitor}/series", look(self.series)),
            Call("GET", f"{monitor}/rejected", look(self.rejected)),
            Call("GET", f"{monitor}/to-label", look(self.to_label)),
            Call("PUT", f"{monitor}/silence", self.silence, Silence),
            Call("DELETE", f"{monitor}/silence", self.unsilence),
            Call("POST", f"{monitor}/test-alert", self.test_alert),
            Call("GET", "/api/stream", self.stream),
        ]

    async def _ask(self, request: Request, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
        name = request.path_params["name"]
        return await self.writer.ask(lambda: function(self.registry.get(name), *args, **more))

    def _looking(self, look: Callable[..., Any]) -> Callable[..., Awaitable[Response]]:
        """An answer with what `look` returns for a monitor, in the writer thread, where nothing changes meanwhile."""

        @wraps(look)
        async def answer(request: Request, **asked: Any) -> Response:
            _, *ids = request.path_params.values()
            return json(await self._ask(request, look, *ids, **asked))

        return answer

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

    def monitor(self, live: Live) -> dict[str, Any]:
        """One monitor."""
        return live.detail()

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
            await self.writer.submit(Job(live, batch))

    async def delete(self, request: Request) -> Response:
        """Forget a monitor."""
        name = request.path_params["name"]
        async with self._changing:
            await self.writer.ask(lambda: self.registry.remove(name))
        self.hub.publish([name])
        return Response(status_code=204)

    # Findings -------------------------------------------------------------------------------------------------

    def drifts(
        self,
        live: Live,
        *,
        segment: Segment | None = None,
        limit: Limit = 100,
        before: str | None = None,
        of: Literal["all", "overall"] = "all",
    ) -> dict[str, Any]:
        """Findings of every kind, the newest first; of all, or overall without the segments."""
        overall, name = of == "overall", _named(segment)
        found = self.registry.store.findings(live.row.id, limit, before, overall=overall, segment=name)
        return {"drifts": [msgspec.Raw(finding.body) for finding in found]}

    def drift(self, live: Live, id: str) -> msgspec.Raw:
        """One of them."""
        return msgspec.Raw(self._finding(live, id).body)

    def examples(self, live: Live, id: str) -> msgspec.Raw:
        """The ids of the events from the start of a drift on."""
        return msgspec.Raw(self._finding(live, id).examples or b'{"ids":[],"complete":false}')

    def _finding(self, live: Live, id: str) -> StoredFinding:
        finding = self.registry.store.finding(live.row.id, id)
        if finding is None:
            raise ApiError(404, "no_finding", f"there is no drift {id[:80]!r} in this monitor")
        return finding

    async def acknowledge(self, request: Request) -> Response:
        """Somebody has seen it, so it is not repeated."""
        given, finding = await self._given(request)
        return json(await self._acknowledge(request, finding, given))

    async def accept(self, request: Request) -> Response:
        """The level since a drift is normal from now on."""
        given, finding = await self._given(request)
        if finding.kind != "drift":
            raise ApiError(409, "not_a_drift", "only a drift can be accepted as normal")
        at = AcceptedDrift(finding.segment, msgspec.json.decode(finding.body)["at"])
        batch = Batch(ACCEPTED, self.writer.clock.now(), 0, config=msgspec.json.encode(at))  # through the journal
        await self.writer.submit(Job(self.registry.get(request.path_params["name"]), batch))
        return json(await self._acknowledge(request, finding, given))

    async def _given(self, request: Request) -> tuple[Acknowledgement, StoredFinding]:
        try:
            given = msgspec.json.decode(await self._small(request) or b"{}", type=Acknowledgement)
        except (ValueError, RecursionError) as error:
            raise ApiError(422, "bad_acknowledgement", str(error)[:500]) from None
        return given, await self._ask(request, self._finding, request.path_params["id"])

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

    def segments(
        self, live: Live, *, segment: Segment | None = None, limit: Limit = 100, offset: Offset = 0
    ) -> dict[str, Any]:
        """Segments, those with an open drift or one that closed lately first, then by alarm level."""
        only, lately = _named(segment), self._lately_closed(live)
        return views.segments(live.monitor, limit, offset, lately=lately, silences=live.silences, only=only)

    def _lately_closed(self, live: Live) -> set[str]:
        """Segments in which something was found within a day."""
        since = views.iso(self.writer.clock.now() - views.DAY) or ""
        latest = self.registry.store.findings(live.row.id, LATELY)
        times = [(finding.segment, msgspec.json.decode(finding.body)["time"] or "") for finding in latest]
        return {segment for segment, time in times if segment is not None and time > since}

    def segment_series(self, live: Live, *, segment: Segment | None = None) -> dict[str, Any]:
        """How the recalls of a segment went."""
        name = _named(segment)
        if name is None or name not in live.monitor.segments:
            raise ApiError(404, "no_segment", "there is no such segment in this monitor", {"query": "segment"})
        return {"segment": views.segment_json(live.monitor, name), **live.monitor.drawn_segment(name)}

    def series(self, live: Live, *, points: Points = 600, seconds: Seconds = MOST) -> dict[str, Any]:
        """How the rates went."""
        return live.monitor.drawn(points, seconds)

    def rejected(self, live: Live, *, limit: Limit = 100) -> dict[str, Any]:
        """Rejected rows that were kept."""
        rows = self.registry.store.rejected(live.row.id, limit)
        return {"rejected": [{"time": views.iso(row.made), **_object(row.body)} for row in rows]}

    def to_label(self, live: Live, *, limit: Limit = 100, after: Number = 0) -> dict[str, Any]:
        """Predictions drawn for labelling that have no label yet, after a number, in order."""
        return views.to_label(live.monitor, after, limit)

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

    async def unsilence(self, request: Request, *, segment: Segment | None = None) -> Response:
        """Alerts again."""
        return await self._set_silence(request, None, _named(segment))

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

    async def stream(self, request: Request, *, monitor: str | None = None) -> Response:
        """Server-sent events with the names of monitors that changed."""
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

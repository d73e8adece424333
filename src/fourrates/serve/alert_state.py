"""The alerts of one monitor, which fire, which are resolved, and which notifications are due. Nothing here is written.

An alert is about one thing, such as an overall drift, a drift of a segment, a class-mix shift, a warning, missing
events or overdue labels. It fires once and is resolved once; a drift's by the withdrawal, recovery or acceptance that
closes it. Segments that drifted with the overall stream share its alert, which ends with the last of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from fourrates.alerts.payload import stable_id
from fourrates.alerts.text import rates_now
from fourrates.plain import moment, state_record
from fourrates.serve.bodies import segment_name
from fourrates.serve.config import AlertsConfig, seconds
from fourrates.serve.notification import AlertItem
from fourrates.serve.registry import Live
from fourrates.serve.store.base import StoredFinding
from fourrates.serve.views import segment_json
from fourrates.watch.now import OpenDrift

SHIFT_LASTS = 86_400.0  # seconds after which a shift of the classes is the new normal
MOST = 1_000  # alerts kept of one monitor
IN_WORDS = 20  # open drifts of a monitor whose rates are put into words


class OpenNow(NamedTuple):
    """An open drift of a segment, None for the overall stream: its rates now in words, when it started and was found.

    All empty if too many are open.
    """

    segment: dict[str, Any] | None
    text: str = ""
    started: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """A monitor as the alerts see it; times are in seconds since 1970."""

    id: int
    uid: str
    name: str
    alerts: AlertsConfig = field(default_factory=AlertsConfig)
    mix: str = "report"  # the label of a class-mix shift
    silenced_until: float | None = None
    silences: Mapping[str, float] = field(default_factory=dict)  # of segments, by name
    position: int = 0  # changes whenever events, predictions or labels arrive, and only then
    warning: bool = False
    waiting_since: float | None = None  # since when the oldest prediction waits for its label
    open: Sequence[OpenNow] | None = None  # the worst first; None if too many
    damaged: bool = False  # it cannot be loaded; its alerts stay as they are until it can


def watched(live: Live) -> Watched:
    """The parts of a monitor that alerts need, read in the writer thread."""
    monitor, config = live.monitor, live.monitor.config
    since = monitor.join.waiting_since if config.alerts.labels_overdue is not None else None
    opened = None
    if len(segments := monitor.watch.open_since) <= MOST:
        known = {drift.segment: _facts(drift) for drift in monitor.watch.now().open[:IN_WORDS]}
        worst_first = [*known, *(segments.keys() - known.keys())]
        opened = [OpenNow(segment_json(monitor, name), *known.get(name, ())) for name in worst_first]
    return Watched(
        id=live.row.id,
        uid=live.row.uid,
        name=live.name,
        alerts=config.alerts,
        mix=config.mix,
        silenced_until=live.silences.get(""),
        silences=live.silences,
        position=monitor.events + sum(monitor.join.counts.values()),  # each row that arrives adds one or two
        warning=config.alerts.warnings and bool(monitor.events) and monitor.detector.warning_detected,
        waiting_since=float(since) if isinstance(since, int | float) and math.isfinite(since) else None,
        open=opened,
    )


def _facts(drift: OpenDrift) -> tuple[str, str, str]:
    """Its rates and cost in words, when the rate named first moved, and when that was found."""
    rates = rates_now({rate: state_record(state) for rate, state in drift.worst_first.items()}, drift.directions)
    cost = str(drift.cost or "")
    text = f"{rates}\n{cost[0].upper()}{cost[1:]}" if cost else rates
    return text, moment(drift.leading.started_time, True) or "", moment(drift.leading.time, True) or ""


class Active(msgspec.Struct, kw_only=True):
    """An alert that fires, or that was resolved and is not sent yet."""

    kind: str
    segment: dict[str, Any] | None = None
    starts: float
    ends: float | None = None
    changed: float  # when it last began to fire, or was resolved
    notified: float | None = None  # last notification that it fires
    pending: bool = True  # whether the last change is still to be sent
    finding: str | None = None
    findings: list[str] = []  # that are still to be sent, the latest among them
    text: str
    acknowledged: bool = False
    repeats: int = 0
    time: str = ""  # of the drift: found, started
    started: str = ""
    part: bool = False  # whether the overall stream's alert covers it
    over: bool = False  # whether it is over but for its parts

    def add(self, finding: str) -> None:
        self.finding = finding
        self.findings = [*self.findings, finding][-MOST:]


class State(msgspec.Struct, kw_only=True):
    """All alerts of a monitor by fingerprint, its latest findings, the last notification, and those due."""

    active: dict[str, Active] = {}
    seen: list[str] = []
    notified: float = 0.0
    outbox: list[dict[str, Any]] = []


class MonitorAlerts:
    """The alerts of a monitor as it is now; its methods change the state."""

    def __init__(self, monitor: Watched, state: State, now: float) -> None:
        self.monitor, self.state, self.active, self.now = monitor, state, state.active, now
        self._follow_clock()

    def _follow_clock(self) -> None:
        """If the clock was ahead and left future times, a notification counts as never sent."""
        if self.state.notified > self.now:
            self.state.notified = 0.0
        for active in self.active.values():
            active.starts, active.changed = min(active.starts, self.now), min(active.changed, self.now)
            active.notified = None if active.notified is None else min(active.notified, self.now)

    def fingerprint(self, kind: str, segment: dict[str, Any] | None = None) -> str:
        """The identity of an alert, the same each time it fires."""
        return stable_id(self.monitor.uid, kind, segment)[:16]

    def firing(self, kind: str) -> Active | None:
        active = self.active.get(self.fingerprint(kind))
        return active if active is not None and active.ends is None else None

    # Findings -------------------------------------------------------------------------------------------

    def take(self, finding: StoredFinding) -> None:
        body = msgspec.json.decode(finding.body)
        segment, text = body.get("segment"), str(body.get("text", ""))
        fingerprint = self.fingerprint("drift", segment)
        active = self.active.get(fingerprint)
        if body["closes"] and active is not None and active.ends is None:
            self._close(fingerprint, finding.id, text)
            self._end_incident()
        if finding.kind == "drift" or (finding.kind == "shift" and self.monitor.mix == "alarm"):
            fired = self._fire(finding.kind, text, segment, finding.id)
            fired.acknowledged = body.get("acknowledged") is not None  # before it arrived here
            fired.time, fired.started = body.get("time") or "", body.get("started_time") or ""
            if finding.kind == "drift":
                self._join_incident(fired)

    def _fire(self, kind: str, text: str, segment: dict[str, Any] | None = None, finding: str | None = None) -> Active:
        fingerprint = self.fingerprint(kind, segment)
        old = self.active.get(fingerprint)
        fired = Active(kind=kind, segment=segment, starts=self.now, changed=self.now, text=text)
        if old is not None:
            fired.notified, fired.findings = old.notified, old.findings
            if old.ends is None:
                fired.starts, fired.part = old.starts, old.part
        if finding is not None:
            fired.add(finding)
        self.active[fingerprint] = fired
        return fired

    def _join_incident(self, fired: Active) -> None:
        """Have the alert of the overall stream speak for the segments that drifted when it did.

        A segment belongs to it if its own drift had started when that of the overall stream was found; and the other
        way round if nobody was notified of the segment yet.
        """
        overall = self.firing("drift")
        if overall is None or overall.over:
            return
        if fired is not overall:
            fired.part |= "" < fired.started <= overall.time and fired.notified is None
            return
        for active in self.active.values():
            together = active.kind == "drift" and active.ends is None and "" < overall.started <= active.time
            active.part |= active is not overall and together and active.notified is None

    def _close(self, fingerprint: str, finding: str | None = None, text: str = "") -> None:
        """End an alert, by a finding if one closed its drift; that of the overall stream with the last of its parts."""
        active = self.active[fingerprint]
        if active.part:  # the alert it is part of names its findings
            del self.active[fingerprint]
            overall = self.active.get(self.fingerprint("drift"))
            if overall is not None:
                closing = [] if finding is None else [finding]
                overall.findings = [*overall.findings, *active.findings, *closing][-MOST:]
            return
        if active.segment is None and self._parts():
            active.over = True
            if finding is not None:
                active.pending, active.changed, active.text = True, self.now, text
        else:
            self._end(active, text)
        if finding is not None:
            active.add(finding)

    def _end(self, active: Active, text: str = "") -> None:
        active.ends = active.changed = self.now
        active.pending = True
        active.text = text or active.text

    def _parts(self) -> list[Active]:
        return [active for active in self.active.values() if active.part]

    def _end_incident(self) -> None:
        """End the alert of the overall stream if it was over but for its parts, and they are over too."""
        overall = self.firing("drift")
        if overall is not None and overall.over and not self._parts():
            self._end(overall)

    # How things are now ---------------------------------------------------------------------------------------

    def end_closed(self) -> None:
        """Resolve drifts that are not open though no finding closed them.

        A reset by new settings leaves such drifts, and so does a drift from before normal was known. One added just now
        may be newer than our view of the monitor.
        """
        if self.monitor.open is None:
            return
        opened = {self.fingerprint("drift", one.segment) for one in self.monitor.open}
        closed = [
            fingerprint
            for fingerprint, active in self.active.items()
            if active.kind == "drift" and active.ends is None and active.changed < self.now and not active.over
            if fingerprint not in opened
        ]
        for fingerprint in sorted(closed, key=lambda key: not self.active[key].part):
            self._close(fingerprint)
        if closed:
            self._end_incident()

    def check_rules(self, arrived: float) -> None:
        """Update the alerts that depend on the monitor's state instead of a finding; events last `arrived` then."""
        rules, waits = self.monitor.alerts, self.monitor.waiting_since
        is_silent = _is_over(rules.silent_after, self.now - arrived)
        is_overdue = waits is not None and _is_over(rules.labels_overdue, self.now - waits)
        overdue = f"labels are overdue, predictions have waited for more than {rules.labels_overdue}"
        for kind, fires, text in (
            ("silent", is_silent, f"no events for more than {rules.silent_after}"),
            ("labels_overdue", is_overdue, overdue),
            ("warning", rules.warnings and self.monitor.warning, "warning, a rate may be moving; no drift yet"),
        ):
            active = self.firing(kind)
            if fires and active is None:
                self._fire(kind, text)
            elif not fires and active is not None:
                self._end(active)

    def expire(self, repeat: float) -> None:
        """End shifts that are now normal, and repeat those that still fire after `repeat` seconds."""
        for active in self.active.values():
            if active.ends is None and active.kind == "shift" and self.now - active.changed > SHIFT_LASTS:
                self._end(active)
            if active.ends is None and not active.acknowledged and not active.pending:
                last = active.notified if active.notified is not None else active.changed
                if self.now - last > repeat:
                    active.pending = True
                    active.repeats += 1
        for fingerprint in sorted(self.active, key=lambda key: self.active[key].changed)[:-MOST]:
            del self.active[fingerprint]

    def end_all(self, text: str) -> None:
        for active in self.active.values():
            self._end(active, text)
            active.finding = None

    def forget_unnotified(self) -> None:
        """Drop alerts that ended before anybody was notified of them, during a silence, or in a backfill."""
        for fingerprint, active in list(self.active.items()):
            if active.ends is not None and active.notified is None:
                del self.active[fingerprint]

    def _is_silenced(self, active: Active) -> bool:
        segment = active.segment
        until = None if segment is None else self.monitor.silences.get(segment_name([*segment.values()]))
        return self.now < max(until or 0.0, self.monitor.silenced_until or 0.0)

    # Notifications ---------------------------------------------------------------------------------------------

    def items(self, body_of: Callable[[str], dict[str, Any] | None]) -> list[AlertItem]:
        """The alerts to send, with the findings they are about; from now on they count as sent."""
        items = []
        opened = {self.fingerprint("drift", drift.segment): drift for drift in self.monitor.open or ()}

        def now(segment: dict[str, Any] | None) -> OpenNow:
            return opened.get(self.fingerprint("drift", segment), OpenNow(segment))

        order = {fingerprint: place for place, fingerprint in enumerate(opened)}
        for fingerprint, active in list(self.active.items()):
            if not active.pending or active.part or self._is_silenced(active):
                continue
            parts = self._parts() if active.kind == "drift" and active.segment is None else []
            parts.sort(key=lambda part: order.get(self.fingerprint("drift", part.segment), len(order)))
            for part in parts:
                active.findings += part.findings
                part.findings = []
            named = now((parts or [active])[0].segment)
            items.append(
                AlertItem(
                    fingerprint=fingerprint,
                    kind=active.kind,
                    segment=active.segment,
                    starts=active.starts,
                    ends=active.ends,
                    text=active.text,
                    now=now(active.segment).text if active.kind == "drift" and active.ends is None else "",
                    parts=tuple(part.segment for part in parts),
                    parts_now=tuple(now(part.segment).text for part in parts),
                    dates=(named.started, named.found),
                    over=active.over,
                    finding=None if active.finding is None else body_of(active.finding),
                    findings=tuple(active.findings),
                    repeats=active.repeats,
                )
            )
            active.pending, active.findings = False, []
            if active.ends is None:
                active.notified = self.now
            else:
                del self.active[fingerprint]
        return items


def _is_over(limit: str | None, lasted: float) -> bool:
    return limit is not None and lasted > seconds(limit, "limit")

"""The alerts of one monitor, which fire, which are resolved, and which notifications are due. Nothing here is written.

An alert is about one thing, such as an overall drift, a drift of a segment, a class-mix shift, a warning, missing
events or overdue labels. It fires once and is resolved once. That of a drift is about the drift itself and, of the
overall stream, about the segments that drifted with it; it ends when none of them is open any more.
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
from fourrates.serve.registry import Live
from fourrates.serve.store.base import StoredFinding
from fourrates.serve.views import segment_json
from fourrates.watch.now import OpenDrift

SHIFT_LASTS = 86_400.0  # seconds after which a shift of the classes is the new normal
MOST = 1_000  # alerts kept of one monitor
IN_WORDS = 20  # open drifts of a monitor whose rates are put into words

Segment = dict[str, Any] | None  # the values that make it, by column; None for the overall stream


class OpenNow(NamedTuple):
    """An open drift: its segment, its rates now in words, when it started and was found.

    All but the segment are empty if too many are open.
    """

    segment: Segment
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
    silences: Mapping[str, float] = field(default_factory=dict)  # their ends, of segments by name; of all by ""
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


class Alert(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An alert that fires, or that was resolved and is not sent yet."""

    fingerprint: str  # the same each time it fires
    kind: str
    segment: Segment = None
    text: str = ""  # the event in words, if there is no finding about it
    starts: float
    ends: float | None = None
    changed: float  # when it last began to fire, or was resolved
    notified: float | None = None  # last notification that it fires
    pending: bool = True  # whether the last change is still to be sent
    repeats: int = 0
    open: dict[str, Segment] = {}  # the open drifts it is about, by fingerprint
    fired_by: str | None = None  # the drift or shift; whoever acknowledges it stops reminders
    finding: str | None = None  # the latest about the drift itself
    findings: list[str] = []  # that are still to be sent
    time: str = ""  # of the drift: found, started
    started: str = ""

    def add(self, *findings: str) -> None:
        self.findings = [*self.findings, *findings][-MOST:]


class AlertItem(NamedTuple):
    """An alert in a notification, with its latest finding and the open drifts it is about, the worst first."""

    alert: Alert
    finding: dict[str, Any] | None = None
    open: Sequence[OpenNow] = ()

    @property
    def now(self) -> str:
        """The current rates of its own stream in words."""
        return next((drift.text for drift in self.open if drift.segment == self.alert.segment), "")

    @property
    def parts(self) -> list[OpenNow]:
        """The segments that drifted with the overall stream."""
        return [drift for drift in self.open if drift.segment != self.alert.segment]


class State(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All alerts of a monitor by fingerprint, the time of the last notification, and those due."""

    alerts: dict[str, Alert] = {}
    notified: float = 0.0
    outbox: list[dict[str, Any]] = []


class MonitorAlerts:
    """The alerts of a monitor as it is now; its methods change the state. `finding_of` reads a finding by its id."""

    def __init__(
        self, monitor: Watched, state: State, now: float, finding_of: Callable[[str], dict[str, Any] | None]
    ) -> None:
        self.monitor, self.state, self.alerts, self.now = monitor, state, state.alerts, now
        self._finding_of = finding_of
        self._opened = {self._fingerprint("drift", drift.segment): drift for drift in monitor.open or ()}
        self._fresh: set[str] = set()  # drifts found since, which may be newer than our view of the monitor
        self._follow_clock()

    def _follow_clock(self) -> None:
        """If the clock was ahead and left future times, a notification counts as never sent."""
        if self.state.notified > self.now:
            self.state.notified = 0.0
        for alert in self.alerts.values():
            alert.starts, alert.changed = min(alert.starts, self.now), min(alert.changed, self.now)
            alert.notified = None if alert.notified is None else min(alert.notified, self.now)

    def _fingerprint(self, kind: str, segment: Segment = None) -> str:
        return stable_id(self.monitor.uid, kind, segment)[:16]

    def firing(self, kind: str) -> Alert | None:
        """The alert of this kind about the overall stream, if it fires."""
        alert = self.alerts.get(self._fingerprint(kind))
        return alert if alert is not None and alert.ends is None else None

    # Findings -------------------------------------------------------------------------------------------

    def note(self, finding: StoredFinding) -> None:
        body = msgspec.json.decode(finding.body)
        segment = body.get("segment")
        drift = self._fingerprint("drift", segment)
        if body["closes"]:
            self._close(drift, finding.id)
        elif finding.kind == "drift" and (alert := self._about(drift)) is not None and alert.fingerprint != drift:
            alert.add(finding.id)
        elif finding.kind == "drift" or (finding.kind == "shift" and self.monitor.mix == "alarm"):
            alert = self._fire(finding.kind, segment)
            alert.fired_by = alert.finding = finding.id
            alert.add(finding.id)
            alert.time, alert.started = body.get("time") or "", body.get("started_time") or ""
            if finding.kind == "drift":
                alert.open[drift] = segment
                self._fresh.add(drift)
                self._join(alert)

    def _about(self, drift: str) -> Alert | None:
        """The alert about an open drift, which is its own or that of the overall stream."""
        alerts = (self.alerts.get(drift), self.firing("drift"))
        return next((alert for alert in alerts if alert is not None and drift in alert.open), None)

    def _fire(self, kind: str, segment: Segment = None) -> Alert:
        fingerprint = self._fingerprint(kind, segment)
        new = Alert(fingerprint=fingerprint, kind=kind, segment=segment, starts=self.now, changed=self.now)
        alert = self.alerts.setdefault(fingerprint, new)
        if alert.ends is not None:  # nobody was notified of that
            alert.starts, alert.ends = self.now, None
        alert.changed, alert.pending, alert.repeats = self.now, True, 0
        return alert

    def _join(self, drifted: Alert) -> None:
        """Make segments that drifted with the overall stream part of its alert, unless somebody was notified of them.

        Two drifts belong together if the one found last had started when the other was found.
        """
        overall = self.firing("drift")
        if overall is None or overall.fingerprint not in overall.open:
            return
        for part in [*self.alerts.values()] if drifted is overall else [drifted]:
            found = part.time if drifted is overall else overall.time
            together = part is not overall and part.open and "" < drifted.started <= found
            if together and part.notified is None and len(overall.open) < MOST:
                overall.open |= part.open
                overall.add(*part.findings)
                del self.alerts[part.fingerprint]

    def _close(self, drift: str, finding: str | None = None) -> None:
        """Close a drift, by a finding if there is one; its alert ends with the last drift it is about."""
        alert = self._about(drift)
        if alert is None:
            return
        del alert.open[drift]
        if finding is not None:
            alert.add(finding)
        is_news = finding is not None and drift == alert.fingerprint
        if is_news:
            alert.finding = finding
        if not alert.open:
            self._end(alert)
        elif is_news:
            alert.pending, alert.changed = True, self.now

    def _end(self, alert: Alert) -> None:
        alert.ends = alert.changed = self.now
        alert.pending = True

    # How things are now ---------------------------------------------------------------------------------------

    def end_closed(self) -> None:
        """Close drifts that are not open though no finding closed them.

        A reset by new settings leaves such drifts, and so does a drift from before normal was known.
        """
        if self.monitor.open is not None:
            for drift in [drift for alert in self.alerts.values() for drift in alert.open]:
                if drift not in self._opened and drift not in self._fresh:
                    self._close(drift)

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
            alert = self.firing(kind)
            if fires and alert is None:
                self._fire(kind).text = text
            elif not fires and alert is not None:
                self._end(alert)

    def expire(self, repeat: float) -> None:
        """End shifts that are now normal, and after `repeat` seconds repeat those that fire and nobody acknowledged.

        Alerts that ended before anybody was notified of them, during a silence or in a backfill, are forgotten.
        """
        for alert in self.alerts.values():
            if alert.ends is None and alert.kind == "shift" and self.now - alert.changed > SHIFT_LASTS:
                self._end(alert)
            if not alert.pending and self.now - (alert.notified or alert.changed) > repeat:
                alert.notified = self.now
                alert.pending = not (self._read(alert.fired_by) or {}).get("acknowledged")
                alert.repeats += alert.pending
        self._forget_unnotified()
        for fingerprint in sorted(self.alerts, key=lambda key: self.alerts[key].changed)[:-MOST]:
            del self.alerts[fingerprint]

    def end_all(self, text: str) -> None:
        for alert in self.alerts.values():
            self._end(alert)
            alert.text, alert.finding, alert.open = text, None, {}
        self._forget_unnotified()

    def _forget_unnotified(self) -> None:
        for fingerprint, alert in [*self.alerts.items()]:
            if alert.ends is not None and alert.notified is None:
                del self.alerts[fingerprint]

    # Notifications ---------------------------------------------------------------------------------------------

    def due(self) -> list[AlertItem]:
        """The alerts to send."""
        items = []
        for alert in self.alerts.values():
            if alert.pending and not self._is_silenced(alert):
                worst_first = dict.fromkeys(drift for drift in (*self._opened, *alert.open) if drift in alert.open)
                drifts = [self._opened.get(drift, OpenNow(alert.open[drift])) for drift in worst_first]
                items.append(AlertItem(alert, self._read(alert.finding), drifts))
        return items

    def _read(self, finding: str | None) -> dict[str, Any] | None:
        return None if finding is None else self._finding_of(finding)

    def _is_silenced(self, alert: Alert) -> bool:
        names = [""] if alert.segment is None else ["", segment_name([*alert.segment.values()])]
        return any(self.now < self.monitor.silences.get(name, 0.0) for name in names)

    def mark_sent(self, items: Sequence[AlertItem]) -> None:
        self.state.notified = self.now
        for alert, *_ in items:
            alert.pending, alert.findings, alert.notified = False, [], self.now
            if alert.ends is not None:
                del self.alerts[alert.fingerprint]


def _is_over(limit: str | None, lasted: float) -> bool:
    return limit is not None and lasted > seconds(limit, "limit")

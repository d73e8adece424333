"""Notifications about a monitor, as one plain dict for every channel.

The list of alerts in it has the shape of Alertmanager's webhooks (status, labels, annotations, startsAt, endsAt,
fingerprint), so that their receivers understand these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from fourrates.alerts.payload import CLOSED, stable_id
from fourrates.alerts.text import defused, minute, plain, rates_now, rates_then, segment_in_words, since
from fourrates.serve.views import iso

MOST = 100  # alerts in one notification
LINES = 10  # of them in the text
NAMED = 3  # segments in a sentence
NO_DRIFT = "The classifier itself has not drifted."
ENDED = {
    "shift": "the class mix is the new normal",
    "warning": "the warning is over",
    "silent": "events arrive again",
    "labels_overdue": "labels arrive again",
}
NAMES = {
    "drift": "ClassifierDrift",
    "shift": "ClassMixShift",
    "warning": "ClassifierWarning",
    "silent": "NoEvents",
    "labels_overdue": "LabelsOverdue",
}


@dataclass(frozen=True, slots=True)
class AlertItem:
    """An alert in a notification.

    Attributes
    ----------
    text, now
        The event in words if there is no finding about it, and the current rates in words.
    parts : tuple
        Segments that drifted with the overall stream, the worst first.
    parts_now : tuple of str
        Their current rates in words.
    dates : tuple of str
        When the open drift of the segment named first started, and when it was found; empty if unknown.
    over : bool
        Whether the overall stream has recovered and only these are still open.
    finding, findings
        The latest finding, and the ids of all that led to it.
    """

    fingerprint: str
    kind: str
    segment: dict[str, Any] | None
    starts: float
    ends: float | None
    text: str
    now: str = ""
    parts: tuple[dict[str, Any] | None, ...] = ()
    parts_now: tuple[str, ...] = ()
    dates: tuple[str, str] = ("", "")
    over: bool = False
    finding: dict[str, Any] | None = None
    findings: tuple[str, ...] = ()
    repeats: int = 0

    @property
    def status(self) -> str:
        return "firing" if self.ends is None else "resolved"


@dataclass(frozen=True, slots=True)
class Links:
    """Links in a notification, to the page and to a runbook; ``{monitor}`` becomes the monitor's name."""

    public: str | None = None
    runbook: str | None = None

    def of(self, monitor: str, segment: Mapping[str, Any] | None, firing: bool, acknowledge: bool) -> dict[str, str]:
        found = {}
        if self.public is not None:
            found["look"] = f"{self.public.rstrip('/')}/#/monitor/{quote(monitor, safe='')}"
            if segment is not None:
                values = msgspec.json.encode([*segment.values()], enc_hook=str).decode()
                found["look"] += f"/segment/{quote(values, safe='')}"
            if acknowledge:
                found["acknowledge"] = f"{found['look']}/acknowledge"
        if self.runbook is not None and firing:
            found["runbook"] = self.runbook.replace("{monitor}", quote(monitor, safe=""))
        return found


NO_LINKS = Links()


def notification(monitor: str, uid: str, items: Sequence[AlertItem], links: Links = NO_LINKS) -> dict[str, Any]:
    """One notification about a monitor. Its id depends on nothing but its alerts."""
    firing = [item for item in items if item.ends is None]
    first = (firing or list(items))[0]
    facts = [(item.fingerprint, item.status, item.starts, item.ends, item.findings, item.repeats) for item in items]
    kind = first.kind
    if not firing and kind == "drift":
        kind = _closing(first)
    segment = first.segment or (first.parts[0] if len(first.parts) == 1 else None)
    segment = segment if len(items) == 1 else None
    where = links.of(monitor, segment, bool(firing), bool(firing) and kind == "drift")
    body: dict[str, Any] = {
        "id": stable_id(uid, facts),
        "kind": kind,
        "event": kind,
        "stream": monitor,
        "monitor": monitor,
        "status": "firing" if firing else "resolved",
        "text": _text(monitor, items),
        "links": where,
        "thread": first.fingerprint,
        "externalURL": links.public or "",
        "groupKey": f"{{}}:{{monitor={monitor!r}}}",
        "groupLabels": {"monitor": monitor},
        "alerts": [_alert(monitor, item, links) for item in items[:MOST]],
        "truncatedAlerts": max(0, len(items) - MOST),
    }
    if first.finding is not None:  # for channels that know nothing of groups
        body |= {name: first.finding.get(name) for name in ("at", "since", "started", "time")}
        body["changes"] = first.finding.get("changes") or []
    return body


def trial_notification(monitor: str, id: str, links: Links = NO_LINKS) -> dict[str, Any]:
    return {
        "id": id,
        "kind": "test",
        "event": "test",
        "stream": monitor,
        "monitor": monitor,
        "status": "firing",
        "text": f"{plain(monitor)}: test alert. Nothing has drifted.",
        "links": links.of(monitor, None, True, False),
        "thread": id,
        "alerts": [],
    }


def _text(monitor: str, items: Sequence[AlertItem]) -> str:
    if len(items) == 1:
        return _summary(monitor, items[0])
    # The worst first and in full, for a person reading a locked phone.
    lines = [_summary(monitor, item).partition("\n")[0] for item in items[1:LINES]]
    more = [f"and {len(items) - LINES:,} more"] if len(items) > LINES else []
    return "\n".join([_summary(monitor, items[0]), *lines, *more])


def _closing(item: AlertItem) -> str:
    """The end of a drift, either its closing finding or new settings, which set normal again without one."""
    return item.finding["kind"] if item.finding is not None and item.finding.get("closes") else "acceptance"


def _summary(monitor: str, item: AlertItem) -> str:
    """Event, current state, place, start and detection, a line each."""
    finding, name = item.finding or {}, plain(monitor)
    prefix = "Resolved: " if item.ends is not None else "Still open: " if item.repeats else ""
    found, changes = minute(finding.get("time")), finding.get("changes") or []
    where = f" in {segment_in_words(item.segment)}" if item.segment else ""
    if item.ends is not None and (item.kind != "drift" or not finding):
        lines = [f"{name}{where}: {ENDED.get(item.kind, item.text)}"]
    elif item.ends is not None:
        kind, closed = finding.get("kind", ""), bool(finding.get("closes"))
        reported = rates_then(changes, kind) if closed else ""
        ended = CLOSED[kind] if closed else "has new settings, the drift is closed"
        lines = [_said(f"{name} {ended}{where}", reported)]
        lines += ["Probably a false alarm."] if kind == "withdrawal" else []
        lines += [f"Closed {found}"] if closed and found else []
    elif item.kind == "drift" and finding:
        unknown = {change["rate"]: {"now": None, "normal": change.get("before"), "enough": 1} for change in changes}
        reported = rates_now(unknown, {change["rate"]: change["direction"] for change in changes})
        lines = [_said(f"{name} drifted{where}", item.now or reported)]
        if item.parts:
            worst = f"{', most of all' if len(item.parts) > 1 else ''} in {segment_in_words(item.parts[0])}"
            overall = (item.now or reported).partition("\n")[0]
            lines = [_said(f"{name} drifted{worst}", item.parts_now[0]), _said("Overall", overall) if overall else ""]
            others = [segment_in_words(part) for part in item.parts[1 : 1 + NAMED]]
            more = f" and {len(item.parts) - 1 - NAMED:,} more" if len(item.parts) > 1 + NAMED else ""
            lines += [f"Also in {'; '.join(others)}{more}"] if others else []
        if item.over:
            names = "; ".join(segment_in_words(part) for part in item.parts[:NAMED])
            lines = [f"{name}: overall back at normal, still open in {names}"]
        started, at = item.dates if item.dates[1] else (finding.get("started_time"), finding.get("time"))
        lines += [since(minute(started), minute(at))]
    elif item.kind == "shift" and finding:
        shares = " to ".join(f"{finding[side]['value']:.1%}" for side in ("before", "after"))
        lines = [f"{name}{where}: class-mix shift: positives {shares}", NO_DRIFT]
        lines += [f"Found {found}"] if found else []
    else:
        lines = [f"{name}: {plain(item.text)}"]
    return defused(prefix + "\n".join(line for line in lines if line))


def _said(head: str, rates: str) -> str:
    return f"{head}: {rates}" if rates else head


def _alert(monitor: str, item: AlertItem, links: Links) -> dict[str, Any]:
    segment = {str(name): str(value) for name, value in (item.segment or {}).items()}
    where = links.of(monitor, item.segment, item.ends is None, False)
    runbook = {"runbook_url": where["runbook"]} if "runbook" in where else {}
    return {
        "status": item.status,
        "labels": {**segment, "alertname": NAMES.get(item.kind, item.kind), "monitor": monitor},
        "annotations": {"summary": _summary(monitor, item), **runbook},
        "startsAt": iso(item.starts),
        "endsAt": "0001-01-01T00:00:00Z" if item.ends is None else iso(item.ends),  # as Go writes a time that is none
        "generatorURL": where.get("look", ""),
        "fingerprint": item.fingerprint,
        "segment": item.segment,
        "segments": list(item.parts),
        "findings": list(item.findings),
        "changes": (item.finding or {}).get("changes") or [],
    }

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

from fourrates.alerts.payload import later_in_words, stable_id
from fourrates.alerts.text import defused, minute, plain, rates_now, segment_in_words, since
from fourrates.serve.alert_state import Alert, AlertItem
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
class Links:
    """Links in a notification, to the page and to a runbook; ``{monitor}`` becomes the monitor's name."""

    public: str | None = None
    runbook: str | None = None

    def of(self, monitor: str, segment: Mapping[str, Any] | None, firing: bool, acknowledge: bool) -> dict[str, str]:
        links = {}
        if self.public is not None:
            links["look"] = f"{self.public.rstrip('/')}/#/monitor/{quote(monitor, safe='')}"
            if segment is not None:
                values = msgspec.json.encode([*segment.values()], enc_hook=str).decode()
                links["look"] += f"/segment/{quote(values, safe='')}"
            if acknowledge:
                links["acknowledge"] = f"{links['look']}/acknowledge"
        if self.runbook is not None and firing:
            links["runbook"] = self.runbook.replace("{monitor}", quote(monitor, safe=""))
        return links


NO_LINKS = Links()


def notification(monitor: str, uid: str, items: Sequence[AlertItem], links: Links = NO_LINKS) -> dict[str, Any]:
    """One notification about a monitor. Its id depends on nothing but its alerts."""
    firing = [item for item in items if item.alert.ends is None]
    first = (firing or items)[0]
    kind = first.alert.kind if firing or first.alert.kind != "drift" else _closing(first)
    segment = None
    if len(items) == 1:
        segment = first.alert.segment or (first.parts[0].segment if len(first.parts) == 1 else None)
    where = links.of(monitor, segment, bool(firing), bool(firing) and kind == "drift")
    facts = [
        (alert.fingerprint, _status(alert), alert.starts, alert.ends, alert.findings, alert.repeats)
        for alert, *_ in items
    ]
    body = _payload(monitor, stable_id(uid, facts), kind, _text(monitor, items), first.alert.fingerprint, where) | {
        "status": _status(first.alert),
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
    text = f"{plain(monitor)}: test alert. Nothing has drifted."
    return _payload(monitor, id, "test", text, id, links.of(monitor, None, True, False))


def _payload(monitor: str, id: str, kind: str, text: str, thread: str, links: Mapping[str, str]) -> dict[str, Any]:
    names = {"kind": kind, "event": kind, "stream": monitor, "monitor": monitor}
    return {"id": id, **names, "status": "firing", "text": text, "links": links, "thread": thread, "alerts": []}


def _status(alert: Alert) -> str:
    return "firing" if alert.ends is None else "resolved"


def _text(monitor: str, items: Sequence[AlertItem]) -> str:
    """The worst first and in full, for a person reading a locked phone."""
    first, *others = (_summary(monitor, item) for item in items[:LINES])
    more = [f"and {len(items) - LINES:,} more"] if len(items) > LINES else []
    return "\n".join([first, *(text.partition("\n")[0] for text in others), *more])


def _closing(item: AlertItem) -> str:
    """The end of a drift, either its closing finding or new settings, which set normal again without one."""
    return item.finding["kind"] if item.finding is not None and item.finding.get("closes") else "acceptance"


def _summary(monitor: str, item: AlertItem) -> str:
    """Event, current state, place, start and detection, a line each."""
    alert, finding, name = item.alert, item.finding, plain(monitor)
    where = f" in {segment_in_words(alert.segment)}" if alert.segment else ""
    found = minute((finding or {}).get("time"))
    if alert.kind == "drift" and finding is not None:
        if alert.ends is None:
            lines = _of_drift(name, where, item, finding)
        elif finding.get("closes"):
            lines = [later_in_words(name, finding, where)]
        else:
            lines = [f"{name} has new settings, the drift is closed{where}"]
    elif alert.ends is not None:
        lines = [f"{name}{where}: {ENDED.get(alert.kind, alert.text)}"]
    elif alert.kind == "shift" and finding is not None:
        shares = " to ".join(f"{finding[side]['value']:.1%}" for side in ("before", "after"))
        lines = [f"{name}{where}: class-mix shift: positives {shares}", NO_DRIFT, f"Found {found}" if found else ""]
    else:
        lines = [f"{name}: {plain(alert.text)}"]
    prefix = "Resolved: " if alert.ends is not None else "Still open: " if alert.repeats else ""
    return defused(prefix + "\n".join(line for line in lines if line))


def _of_drift(name: str, where: str, item: AlertItem, finding: Mapping[str, Any]) -> list[str]:
    """An open drift, or the segments in which it is still open."""
    changes = finding.get("changes") or []
    unknown = {change["rate"]: {"now": None, "normal": change.get("before"), "enough": 1} for change in changes}
    rates = item.now or rates_now(unknown, {change["rate"]: change["direction"] for change in changes})
    parts, places = item.parts, [segment_in_words(part.segment) for part in item.parts]
    if not parts:
        lines = [_with_rates(f"{name} drifted{where}", rates)]
    elif len(parts) == len(item.open):
        lines = [f"{name}: overall back at normal, still open in {'; '.join(places[:NAMED])}"]
    else:
        worst = f"{', most of all' if len(parts) > 1 else ''} in {places[0]}"
        lines = [_with_rates(f"{name} drifted{worst}", parts[0].text)]
        lines += [_with_rates("Overall", rates.partition("\n")[0])] if rates else []
        more = f" and {len(parts) - 1 - NAMED:,} more" if len(parts) > 1 + NAMED else ""
        lines += [f"Also in {'; '.join(places[1 : 1 + NAMED])}{more}"] if len(parts) > 1 else []
    named = (parts or item.open)[0]
    started, found = named.started, named.found
    if not found:
        started, found = finding.get("started_time") or "", finding.get("time") or ""
    return [*lines, since(minute(started), minute(found))]


def _with_rates(head: str, rates: str) -> str:
    return f"{head}: {rates}" if rates else head


def _alert(monitor: str, item: AlertItem, links: Links) -> dict[str, Any]:
    alert = item.alert
    segment = {str(name): str(value) for name, value in (alert.segment or {}).items()}
    where = links.of(monitor, alert.segment, alert.ends is None, False)
    runbook = {"runbook_url": where["runbook"]} if "runbook" in where else {}
    return {
        "status": _status(alert),
        "labels": {**segment, "alertname": NAMES.get(alert.kind, alert.kind), "monitor": monitor},
        "annotations": {"summary": _summary(monitor, item), **runbook},
        "startsAt": iso(alert.starts),
        "endsAt": "0001-01-01T00:00:00Z" if alert.ends is None else iso(alert.ends),  # as Go writes a time that is none
        "generatorURL": where.get("look", ""),
        "fingerprint": alert.fingerprint,
        "segment": alert.segment,
        "segments": [part.segment for part in item.parts],
        "findings": alert.findings,
        "changes": (item.finding or {}).get("changes") or [],
    }

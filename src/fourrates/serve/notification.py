"""Notifications: what is sent about a monitor, as one plain dict for every channel.

The list of alerts in it has the shape of Alertmanager's webhooks (status, labels, annotations, startsAt, endsAt,
fingerprint), so that what understands those understands these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fourrates.alerts.payload import stable_id
from fourrates.alerts.text import defused, plain

MOST = 100  # alerts in one notification
LINES = 10  # of them in the text
NAMED = 3  # segments in a sentence
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
        What happened, and how the rates are now, in words.
    parts : tuple
        Segments that drifted with the overall stream.
    over : bool
        Whether the overall stream is back, and only these are still open.
    finding, findings
        What was found last, and the ids of all that led to it.
    """

    fingerprint: str
    kind: str
    segment: dict[str, Any] | None
    starts: float
    ends: float | None
    text: str
    now: str = ""
    parts: tuple[dict[str, Any] | None, ...] = ()
    over: bool = False
    finding: dict[str, Any] | None = None
    findings: tuple[str, ...] = ()
    repeats: int = 0

    @property
    def status(self) -> str:
        """As Alertmanager has it."""
        return "firing" if self.ends is None else "resolved"


def notification(monitor: str, uid: str, items: Sequence[AlertItem]) -> dict[str, Any]:
    """One notification about a monitor. Its id depends on nothing but its alerts.

    Examples
    --------
    >>> one = AlertItem("f1", "drift", None, 0.0, None, "fraud: drift at event 5,080")
    >>> found = notification("fraud", "u1", [one])
    >>> found["status"], found["text"], found["alerts"][0]["startsAt"]
    ('firing', 'fraud: drift at event 5,080', '1970-01-01T00:00:00Z')
    """
    firing = [one for one in items if one.ends is None]
    first = (firing or list(items))[0]
    facts = [(one.fingerprint, one.status, one.starts, one.ends, one.findings, one.repeats) for one in items]
    kind = first.kind
    if not firing and kind == "drift":  # new settings make normal anew without a finding
        kind = first.finding["kind"] if first.finding is not None and first.finding["closes"] else "acceptance"
    body: dict[str, Any] = {
        "id": stable_id(uid, facts),
        "kind": kind,
        "event": kind,
        "stream": monitor,
        "monitor": monitor,
        "status": "firing" if firing else "resolved",
        "text": _text(monitor, items),
        "groupKey": f"{{}}:{{monitor={monitor!r}}}",
        "groupLabels": {"monitor": monitor},
        "alerts": [_alert(monitor, one) for one in items[:MOST]],
        "truncatedAlerts": max(0, len(items) - MOST),
    }
    if first.finding is not None:  # what channels that know nothing of groups look at
        body |= {name: first.finding.get(name) for name in ("at", "since", "started", "time")}
        body["changes"] = first.finding.get("changes") or []
    return body


def test_notification(monitor: str, id: str) -> dict[str, Any]:
    """A notification that says that it is a test."""
    return {
        "id": id,
        "kind": "test",
        "event": "test",
        "stream": monitor,
        "monitor": monitor,
        "status": "firing",
        "text": f"{plain(monitor)}: this is a test; nothing has drifted",
        "alerts": [],
    }


def _text(monitor: str, items: Sequence[AlertItem]) -> str:
    lines = [_line(one) for one in items[:LINES]]
    if len(items) == 1:
        return lines[0]
    more = [f"and {len(items) - LINES:,} more"] if len(items) > LINES else []
    return "\n".join([f"{plain(monitor)}: {len(items):,} alerts", *lines, *more])


def _line(one: AlertItem) -> str:
    again = "still " if one.repeats and one.ends is None else ""
    return ("resolved: " if one.ends is not None else again) + _summary(one).replace("\n", " ")


def _summary(one: AlertItem) -> str:
    """What happened, how it is now, and in which segments too."""
    now = f". Now: {one.now}" if one.now else ""
    names = [", ".join(f"{name}={value}" for name, value in (part or {}).items()) for part in one.parts[:NAMED]]
    more = f" and {len(one.parts) - NAMED:,} more" if len(one.parts) > NAMED else ""
    also = f". {'Still open' if one.over else 'Also'} in {'; '.join(names)}{more}" if names else ""
    return defused(one.text + now + also)


def _alert(monitor: str, one: AlertItem) -> dict[str, Any]:
    segment = {str(name): str(value) for name, value in (one.segment or {}).items()}
    return {
        "status": one.status,
        "labels": {**segment, "alertname": NAMES.get(one.kind, one.kind), "monitor": monitor},
        "annotations": {"summary": _summary(one)},
        "startsAt": _iso(one.starts),
        "endsAt": "0001-01-01T00:00:00Z" if one.ends is None else _iso(one.ends),  # as Go writes a time that is none
        "fingerprint": one.fingerprint,
        "segment": one.segment,
        "segments": list(one.parts),
        "findings": list(one.findings),
        "changes": (one.finding or {}).get("changes") or [],
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="auto").replace("+00:00", "Z")

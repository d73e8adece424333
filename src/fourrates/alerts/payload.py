"""A drift, or a later finding about it, as an alert; one plain dict, the same for every channel."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from fourrates.alerts.text import minute, plain, rates_now, rates_then, since
from fourrates.findings import Drift, Finding, RateChange, RateState
from fourrates.plain import changes, of_drift, precisions, start, state_record, with_shift

LARGEST = 64  # classes whose confusion matrix is sent; more would make a message of megabytes
CLOSED = {
    "confirmation": "has drifted, now confirmed",
    "recovery": "recovered",
    "withdrawal": "has not drifted after all",
    "improvement": "has improved, but is not back at normal",
    "acceptance": "was accepted at its new level",
}


def finding_alert(
    finding: Finding,
    *,
    stream: str,
    origin: str,
    time: str | None = None,
    started_time: str | None = None,
    rates: Mapping[str, RateState] | None = None,
) -> dict[str, Any]:
    """The payload of a finding about a drift; `kind` says which.

    Parameters
    ----------
    finding : Finding
        Any finding but a Shift.
    stream : str
        The name of its stream.
    origin : str
        Identifies this detector, such as a random name saved with its state. With the stream and the event it makes
        the id, so the same drift found again after a restart has the same id.
    time, started_time : str, optional
        The time of the event that showed it, and of the start of the new level.
    rates : mapping, optional
        The rates of the stream now; those the finding is about are sent.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.alerts import finding_alert
    >>> change = fr.RateChange("tpr", "down", 0.25, 0.4, 0.75, 900)
    >>> drift = fr.Drift(at=5080, since=5062, changes=(change,), confusion=((1, 0), (0, 1)))
    >>> alert = finding_alert(drift, stream="fraud", origin="x")
    >>> print(alert["text"])
    fraud drifted: tpr (positives caught) fell from 0.750 to about 0.250
    Since about event 5,062, found at event 5,080
    >>> alert["id"] == stable_id("x", "drift", "fraud", 5080)
    True
    """
    drift = finding if isinstance(finding, Drift) else None
    states = {} if rates is None else {c.rate: state_record(rates[c.rate]) for c in finding.changes}
    return {
        "id": stable_id(origin, finding.kind, stream, finding.at),
        "kind": finding.kind,  # as in every line that watch and detect write
        "event": finding.kind,
        "stream": stream,
        "status": "resolved" if finding.closes else "firing",
        "thread": stable_id(origin, stream)[:16],
        "text": _text(finding, stream, time, started_time, states),
        "at": finding.at,
        **of_drift(finding),
        **({} if time is None else {"time": time}),
        **({} if finding.source is None else {"source": finding.source}),
        **({} if finding.row is None else {"row": finding.row}),
        **start(finding),
        **({} if started_time is None else {"started_time": started_time}),
        "changes": changes(finding),
        **({} if rates is None else {"now": states}),
        **precisions(finding),
        **with_shift(finding),
        **({"confusion": drift.confusion} if drift is not None and len(drift.confusion) <= LARGEST else {}),
    }


def stable_id(*facts: object) -> str:
    """An id that is the same for the same facts, on every machine.

    Examples
    --------
    >>> from fourrates.alerts import stable_id
    >>> stable_id("drift", 17)
    '48a0ac263299e43a9a4f71b0d87309f3'
    """
    text = json.dumps(facts, default=str, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def encode(payload: Mapping[str, Any]) -> bytes:
    """The payload as the bytes that are sent and signed."""
    return json.dumps(payload, ensure_ascii=False, default=str, allow_nan=False).encode("utf-8", "replace")


def _text(finding: Finding, stream: str, time: str | None, started: str | None, states: Mapping[str, Any]) -> str:
    """The event and its start, by the clock, or by event numbers if no times are known."""
    kind, name = finding.kind, plain(stream)
    moves = {change.rate: change.direction for change in finding.changes}
    reported = rates_then(_plain_changes(finding), kind)
    if isinstance(finding, Drift):
        shift = "" if finding.shift is None else f"\nClass mix: {plain(finding.shift.shares.replace('->', 'to'))}"
        began = minute(started) or f"event {finding.started if finding.started is not None else finding.since:,}"
        when = since(began, minute(time) or f"at event {finding.at:,}")
        rates = rates_now(states, moves) if any(state["now"] for state in states.values()) else reported
        return f"{name} drifted{' further' if finding.further else ''}: {rates}\n{when}{shift}"
    when = f"Found {minute(time) or f'at event {finding.at:,}'}"
    return f"{name} {CLOSED.get(kind, kind)}: {reported}\n{when}"


def _plain_changes(finding: Finding) -> list[dict[str, Any]]:
    """The changes with a level before and after; a detector that knows none has its statistic and the expected one."""

    def of(change: RateChange) -> dict[str, Any]:
        before, after = change.expected, change.statistic
        if change.before is not None and change.after is not None:
            before, after = change.before.value, change.after.value
        levels = [None if level is None or math.isnan(level) else {"value": level} for level in (before, after)]
        return {"rate": change.rate, "direction": change.direction, "before": levels[0], "after": levels[1]}

    return [of(change) for change in finding.changes]

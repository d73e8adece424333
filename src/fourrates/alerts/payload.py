"""A drift, or a later finding about it, as an alert; one plain dict, the same for every channel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from fourrates.alerts.text import minute, plain, rates_now, rates_then, since
from fourrates.findings import Drift, Finding, RateState
from fourrates.plain import finding_record, state_record

LATER = {
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
    utc: bool = False,
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
    utc : bool
        Whether its times are in UTC.
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
    record = finding_record(finding, utc)
    states = {} if rates is None else {c.rate: state_record(rates[c.rate]) for c in finding.changes}
    version = () if finding.version is None else (finding.version,)
    return {
        "id": stable_id(origin, finding.kind, stream, finding.at, *version),
        "event": finding.kind,
        "stream": stream,
        "status": "resolved" if finding.closes else "firing",
        "thread": stable_id(origin, stream, *version)[:16],
        "text": _text(finding, stream, record, states),
        **record,
        **({} if rates is None else {"now": states}),
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


def later_in_words(name: str, record: Mapping[str, Any], where: str = "") -> str:
    """A finding about an earlier drift, with its time, or its event number if no times are known."""
    kind, when = record["kind"], minute(record.get("time")) or f"at event {record['at']:,}"
    rates = rates_then(record.get("changes") or [], kind)
    lines = [f"{name} {LATER.get(kind, kind)}{where}{f': {rates}' if rates else ''}"]
    lines += ["Probably a false alarm."] if kind == "withdrawal" else []
    return "\n".join([*lines, f"{'Closed' if record.get('closes') else 'Found'} {when}"])


def _text(finding: Finding, stream: str, record: Mapping[str, Any], states: Mapping[str, Any]) -> str:
    if not isinstance(finding, Drift):
        return later_in_words(plain(stream), record)
    moves = {change.rate: change.direction for change in finding.changes}
    is_known = any(state["now"] for state in states.values())
    rates = rates_now(states, moves) if is_known else rates_then(record["changes"], finding.kind)
    shift = "" if finding.shift is None else f"\nClass mix: {plain(finding.shift.shares.replace('->', 'to'))}"
    started = finding.since if finding.started is None else finding.started
    began = minute(record.get("started_time")) or f"event {started:,}"
    when = since(began, minute(record.get("time")) or f"at event {finding.at:,}")
    return f"{plain(stream)} drifted{' further' if finding.further else ''}: {rates}\n{when}{shift}"

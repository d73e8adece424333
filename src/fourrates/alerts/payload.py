"""A drift, or what became of one, as an alert: one plain dict, the same for every channel."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from fourrates.alerts.text import plain
from fourrates.findings import Drift, Finding, RateChange, RateState
from fourrates.plain import changes, of_drift, precisions, start, state_record, with_shift

LARGEST = 64  # classes whose confusion matrix is sent; more would make a message of megabytes
NAMED = 8  # rates in the sentence


def finding_alert(
    finding: Finding,
    *,
    stream: str,
    origin: str,
    time: str | None = None,
    started_time: str | None = None,
    rates: Mapping[str, RateState] | None = None,
) -> dict[str, Any]:
    """The payload of a drift, or of what became of one; `kind` says which.

    Parameters
    ----------
    finding : Finding
        What the detector reported; any but a Shift.
    stream : str
        The name of the stream it was found in.
    origin : str
        What tells this detector from any other, such as a random name kept with its state: with the stream and the
        event it makes the id, so that the same drift found again after a restart has the same id.
    time, started_time : str, optional
        When the event that showed it happened, and when the new level started.
    rates : mapping, optional
        The rates of the stream now; those the finding is about are sent.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.alerts import finding_alert
    >>> change = fr.RateChange("tpr", "down", 0.25, 0.4, 0.75, 900)
    >>> drift = fr.Drift(at=5080, since=5062, changes=(change,), confusion=((1, 0), (0, 1)))
    >>> alert = finding_alert(drift, stream="fraud", origin="x")
    >>> alert["text"]
    'fraud: drift at event 5,080, since event 5,062: tpr down from 0.750 to 0.250'
    >>> alert["id"] == stable_id("x", "drift", "fraud", 5080)
    True
    """
    drift = finding if isinstance(finding, Drift) else None
    return {
        "id": stable_id(origin, finding.kind, stream, finding.at),
        "kind": finding.kind,  # as in every line that watch and detect write
        "event": finding.kind,
        "stream": stream,
        "text": _sentence(finding, stream, time),
        "at": finding.at,
        **of_drift(finding),
        **({} if time is None else {"time": time}),
        **({} if finding.source is None else {"source": finding.source}),
        **({} if finding.row is None else {"row": finding.row}),
        **start(finding),
        **({} if started_time is None else {"started_time": started_time}),
        "changes": changes(finding),
        **({} if rates is None else {"now": {c.rate: state_record(rates[c.rate]) for c in finding.changes}}),
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


def _sentence(finding: Finding, stream: str, time: str | None) -> str:
    undone = finding.kind in ("withdrawal", "acceptance")  # which way the alarm had it moved may not be so by now
    moved = "; ".join(
        f"{plain(change.rate)} {'' if undone else f'{change.direction} '}{_from_to(change)}"
        for change in finding.changes[:NAMED]
    )
    more = f"; and {len(finding.changes) - NAMED} more" if len(finding.changes) > NAMED else ""
    when = "" if time is None else f" ({time})"
    if isinstance(finding, Drift):
        further = "further " if finding.further else ""
        known = finding.started is not None
        began = f", started about event {finding.started:,}" if known else f", since event {finding.since:,}"
        end = "" if finding.shift is None else f"; {finding.shift.shares}"
    else:
        further = began = ""
        end = "" if finding.drift is None else f" (drift of event {finding.drift.at:,})"
    return f"{plain(stream)}: {further}{finding.kind} at event {finding.at:,}{when}{began}: {moved}{more}{end}"


def _from_to(change: RateChange) -> str:
    """What the rate was and is; for a detector that does not know, the statistic against what was expected of it."""
    before, after = change.expected, change.statistic
    if change.before is not None and change.after is not None:
        before, after = change.before.value, change.after.value
    if math.isnan(after):  # accepted before anything was observed
        return f"from {before:.3f}"
    return f"to {after:.3f}" if before is None or math.isnan(before) else f"from {before:.3f} to {after:.3f}"

"""A drift, or the recovery from one, as an alert: one plain dict, the same for every channel."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from fourrates.alerts.text import plain
from fourrates.drift import Drift, RateChange, Recovery
from fourrates.plain import changes, precisions, start, with_shift

LARGEST = 64  # classes whose confusion matrix is sent; more would make a message of megabytes
NAMED = 8  # rates in the sentence


def drift_alert(
    drift: Drift,
    *,
    stream: str,
    origin: str,
    source: str | None = None,
    row: int | None = None,
    time: str | None = None,
) -> dict[str, Any]:
    """The payload of a drift, or of a recovery from one; `event` says which.

    Parameters
    ----------
    drift : Drift
        What the detector reported.
    stream : str
        The name of the stream it was found in.
    origin : str
        What tells this detector from any other, such as a random name kept with its state: with the stream and the
        event it makes the id, so that the same drift found again after a restart has the same id.
    source, row, time
        Where the event stands that gave the alarm, and when it happened.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.alerts import drift_alert
    >>> change = fr.RateChange("tpr", "down", 0.25, 0.4, 0.75, 900)
    >>> alert = drift_alert(fr.Drift(5080, 5062, (change,), ((1, 0), (0, 1))), stream="fraud", origin="x")
    >>> alert["text"]
    'fraud: drift at event 5,080, since event 5,062: tpr down from 0.750 to 0.250'
    >>> alert["id"] == stable_id("x", "drift", "fraud", 5080)
    True
    """
    event = "recovery" if isinstance(drift, Recovery) else "drift"
    return {
        "id": stable_id(origin, event, stream, drift.at),
        "kind": event,  # as in every line that watch and detect write
        "event": event,
        "stream": stream,
        "text": _sentence(drift, event, stream, time),
        "at": drift.at,
        "since": drift.since,
        **({} if time is None else {"time": time}),
        **({} if source is None else {"source": source}),
        **({} if row is None else {"row": row}),
        **start(drift),
        "changes": changes(drift),
        **precisions(drift),
        **with_shift(drift),
        **({"confusion": drift.confusion} if len(drift.confusion) <= LARGEST else {}),
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


def _sentence(drift: Drift, event: str, stream: str, time: str | None) -> str:
    moved = "; ".join(f"{plain(change.rate)} {change.direction} {_from_to(change)}" for change in drift.changes[:NAMED])
    more = f"; and {len(drift.changes) - NAMED} more" if len(drift.changes) > NAMED else ""
    when = "" if time is None else f" ({time})"
    began = f"since event {drift.since:,}" if drift.started is None else f"started about event {drift.started:,}"
    shift = "" if drift.shift is None else f"; {drift.shift.shares}"
    return f"{plain(stream)}: {event} at event {drift.at:,}{when}, {began}: {moved}{more}{shift}"


def _from_to(change: RateChange) -> str:
    """What the rate was and is; for a detector that does not know, the statistic against what was expected of it."""
    before, after = change.expected, change.statistic
    if change.before is not None and change.after is not None:
        before, after = change.before.value, change.after.value
    return f"to {after:.3f}" if before is None or math.isnan(before) else f"from {before:.3f} to {after:.3f}"

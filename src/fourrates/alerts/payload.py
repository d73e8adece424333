"""A drift as an alert: one plain dict, the same for every channel."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from fourrates.alerts.text import plain
from fourrates.drift import Drift

LARGEST = 64  # classes whose confusion matrix is sent; more would make a message of megabytes


def drift_alert(
    drift: Drift,
    *,
    stream: str,
    origin: str,
    source: str | None = None,
    row: int | None = None,
    time: str | None = None,
) -> dict[str, Any]:
    """The payload of a drift.

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
    return {
        "id": stable_id(origin, "drift", stream, drift.at),
        "kind": "drift",
        "stream": stream,
        "text": _sentence(drift, stream, time),
        "at": drift.at,
        "since": drift.since,
        **({} if time is None else {"time": time}),
        **({} if source is None else {"source": source}),
        **({} if row is None else {"row": row}),
        **start(drift),
        "changes": changes(drift),
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


def start(drift: Drift) -> dict[str, Any]:
    """When the drift started; nothing where the detector does not know."""
    if drift.started_between is None:
        return {}
    first, last = drift.started_between
    return {"started": drift.started, "started_first": first, "started_last": last}


def changes(drift: Drift) -> list[dict[str, Any]]:
    """The rates that moved."""
    return [
        {
            "rate": change.rate,
            "direction": change.direction,
            "expected": finite(change.expected),
            "statistic": finite(change.statistic),
            "bound": finite(change.bound),
            "n": change.n,
            "decay": finite(change.decay),
            **({"window": change.window} if change.window is not None else {}),
            **({"together": True} if change.together else {}),
            **{
                name: {key: finite(value) for key, value in share._asdict().items()}
                for name, share in (("before", change.before), ("after", change.after))
                if share is not None
            },
        }
        for change in drift.changes
    ]


def finite(value: float | None) -> float | None:
    """A number as JSON can have it."""
    return None if value is None or not math.isfinite(value) else round(value, 9)


def encode(payload: Mapping[str, Any]) -> bytes:
    """The payload as the bytes that are sent and signed."""
    return json.dumps(payload, ensure_ascii=False, default=str, allow_nan=False).encode("utf-8", "replace")


def _sentence(drift: Drift, stream: str, time: str | None) -> str:
    moved = "; ".join(
        f"{plain(change.rate)} {change.direction} "
        + (f"to {change.statistic:.3f}" if change.expected is None else _from_to(change.expected, change.statistic))
        for change in drift.changes[:8]
    )
    more = f"; and {len(drift.changes) - 8} more" if len(drift.changes) > 8 else ""
    when = "" if time is None else f" ({time})"
    return f"{plain(stream)}: drift at event {drift.at:,}{when}, since event {drift.since:,}: {moved}{more}"


def _from_to(expected: float, statistic: float) -> str:
    return f"from {expected:.3f} to {statistic:.3f}"

"""A monitor as JSON: its summary, its detail, its segments and what was found."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from fourrates.alerts.payload import stable_id
from fourrates.alerts.text import plain
from fourrates.drift import Drift, Share, Shift
from fourrates.plain import finite
from fourrates.serve.monitor import WHOLE, Found, Monitor

HOUR = 3600.0
Q = 0.05  # the share of segments named in error


def iso(time: float | None) -> str | None:
    """A moment in seconds since 1970 as ISO 8601 has it."""
    if time is None or not math.isfinite(time):
        return None
    try:
        text = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
    return text.replace("+00:00", "Z")


def status_of(monitor: Monitor) -> tuple[str, float | None]:
    """How a monitor stands, and since when."""
    if not monitor.events:
        return "waiting", None
    if monitor.standing:
        return "drifted", min(one.time for one in monitor.standing.values())
    if monitor.detector.warning_detected:
        since = monitor.detector.warning_since
        return "warning", None if since is None else time_of_event(monitor, monitor.begun + since)
    return "stable", None


def time_of_event(monitor: Monitor, event: float) -> float | None:
    """About when an event came."""
    points = monitor.series.points(1 << 30)
    if not len(points):
        return None
    return float(np.interp(event, points[:, 0], points[:, 1]))


def events_per_hour(monitor: Monitor, now: float) -> float:
    """Events of the last hour, or at the rate of a shorter life."""
    recent = monitor.series.recent
    first = next((point for point in recent if 0 <= now - point[1] <= HOUR), None)
    if first is None:
        return 0.0
    is_start = first[0] == monitor.series.long[0][0]  # its own events came in this hour, too
    before = 0.0 if is_start else float(first[0])
    span = max(now - float(first[1]), 60.0)
    return round((monitor.events - before) * HOUR / span, 1)


def summary(monitor: Monitor, name: str, about: dict[str, Any], now: float) -> dict[str, Any]:
    """What the list of monitors shows; `about` is what the store knows besides."""
    status, since = status_of(monitor)
    counts = monitor.join.counts
    return {
        "name": name,
        "status": status,
        "since": iso(since),
        "evidence": finite(min(monitor.detector.evidence, 1.0)) or 0.0,
        "events": monitor.events,
        "events_per_hour": events_per_hour(monitor, now),
        "waiting": counts["waiting"],
        "waiting_labels": counts["waiting_labels"],
        "segments": len(monitor.segments),
        "drifted_segments": len(monitor.standing.keys() - {WHOLE}),
        "last_event": iso(monitor.last_time),
        **about,
    }


def detail(monitor: Monitor, counts: dict[str, int]) -> dict[str, Any]:
    """What the page of a monitor shows besides its summary."""
    total = int(monitor.confusion.sum())
    mix = monitor.confusion.sum(1) / max(total, 1)
    shift = monitor.detector.shift
    return {
        "config": public_config(monitor),
        "arl": monitor.arl,
        "labels": list(monitor.labels.values),
        "rates": rates(monitor),
        "mix": {str(label): finite(float(mix[code])) for code, label in enumerate(monitor.labels.values)},
        "confusion": monitor.confusion.tolist(),
        "shift": None if shift is None else shift_json(shift, monitor.begun),
        "counts": {**monitor.join.counts, **counts},
    }


def public_config(monitor: Monitor) -> dict[str, Any]:
    """The settings, without what is secret in the addresses of alerts."""
    config: dict[str, Any] = msgspec.to_builtins(monitor.config)
    config["alerts"]["channels"] = [shown_address(one) for one in monitor.config.alerts.channels]
    return config


def shown_address(address: str) -> str:
    """An address with its secrets left out: its kind, and for a web address its host."""
    kind, _, rest = address.partition("://")
    if kind in ("http", "https"):
        return f"{kind}://{rest.partition('/')[0].rpartition('@')[2]}/..."
    return f"{kind}://..."


def rates(monitor: Monitor) -> dict[str, Any]:
    """Where the rates stand."""
    found = {}
    for name, state in monitor.detector.rates.items():
        interval = state.interval
        found[monitor.rate_name[name]] = {
            "estimate": finite(state.estimate),
            "lower": finite(interval.lower) if interval else None,
            "upper": finite(interval.upper) if interval else None,
            "n": state.n,
            "baseline": None if state.baseline is None else share_json(state.baseline),
            "evidence": finite(state.evidence),
            "dispersion": finite(state.dispersion),
        }
    return found


def share_json(share: Share) -> dict[str, Any]:
    """A share with its interval."""
    return {name: finite(value) for name, value in share._asdict().items()}


def shift_json(shift: Shift, begun: int) -> dict[str, Any]:
    """A shift of the classes, found by a detector that began after this number of events."""
    return {
        "at": begun + shift.at,
        "started": begun + shift.started,
        "before": share_json(shift.before),
        "after": share_json(shift.after),
    }


def segment_json(monitor: Monitor, number: int) -> dict[str, Any] | None:
    """The values that make a segment, by column; None for the whole."""
    if number == WHOLE:
        return None
    values = msgspec.json.decode(monitor.segments.name(number))
    return dict(zip(monitor.config.by, values, strict=True))


def segments(monitor: Monitor, limit: int, offset: int) -> dict[str, Any]:
    """Segments by evidence, the strongest first; drifted ones before all others."""
    if monitor.bank is None:
        return {"segments": [], "total": 0}
    keys, evidence, events = monitor.bank.standings()
    numbers = np.array(keys, np.int64)
    drifted = np.isin(numbers, [*monitor.standing])
    order = np.lexsort((numbers, -evidence, ~drifted))
    named = {*monitor.bank.discoveries(Q)} if len(order) else set()
    shown = []
    for slot in order[offset : offset + limit].tolist():
        number = int(numbers[slot])
        detector = monitor.bank[number].detector()
        status = "drifted" if drifted[slot] else "warning" if detector.warning_detected else "stable"
        shown.append(
            {
                "segment": segment_json(monitor, number),
                "status": status,
                "evidence": finite(min(float(evidence[slot]), 1.0)),
                "events": int(events[slot]),
                "rates": {
                    monitor.rate_name[name]: {"estimate": finite(state.estimate), "n": state.n}
                    for name, state in detector.rates.items()
                },
                "discovery": number in named,
            }
        )
    return {"segments": shown, "total": len(order)}


def finding(monitor: Monitor, name: str, uid: str, one: Found) -> dict[str, Any]:
    """What was found, as JSON has it; `confusion_before` and `confusion_after` are for the caller to fill in."""
    segment = segment_json(monitor, one.segment)
    where = "" if segment is None else " (" + ", ".join(f"{k}={v}" for k, v in segment.items()) + ")"
    stream = plain(f"{name}{where}")
    kind, what = one.kind, one.what
    if isinstance(what, Shift):
        text = f"{stream}: the classes shifted at event {what.at:,}: share of positives {what.before} to {what.after}"
        changes: list[dict[str, Any]] = []
        since, between, confusion = what.started, None, None
    else:
        back = "back at the reference" if monitor.holds(one.segment) else "back where it was"
        text = f"{stream}: {sentence(what, back if kind == 'recovery' else 'drift', monitor.rate_name)}"
        changes = [
            {
                "rate": monitor.rate_name[change.rate],
                "direction": change.direction,
                "before": None if change.before is None else share_json(change.before),
                "after": None if change.after is None else share_json(change.after),
                "evidence": finite(change.statistic),
            }
            for change in what.changes
        ]
        since, between = what.since, what.started_between
        confusion = what.confusion if len(what.confusion) <= 64 else None
    return {
        # Of the event of the monitor: those of a segment are counted from 0 again after a reset.
        "id": stable_id(uid, kind, msgspec.json.encode(segment).decode(), one.event)[:24],
        "kind": kind,
        "monitor": name,
        "segment": segment,
        "at": what.at,
        "since": since,
        "started": what.started,
        "started_between": None if between is None else list(between),
        "time": iso(one.time),
        "started_time": None,
        "changes": changes,
        "confusion": confusion,
        "confusion_before": None,
        "confusion_after": None,
        "text": text,
        "acknowledged": None,
    }


def sentence(drift: Drift, title: str, names: dict[str, str]) -> str:
    """What happened, for people."""
    moved = "; ".join(
        f"{plain(names[change.rate])} {'fell' if change.direction == 'down' else 'rose'}"
        + (f" from {change.before} to {change.after}" if change.before and change.after else "")
        for change in drift.changes[:8]
    )
    started = "" if drift.started is None else f", started about event {drift.started:,}"
    shift = "" if drift.shift is None else f"; {drift.shift.shares}"
    return f"{title} at event {drift.at:,}{started}: {moved}{shift}"

"""A monitor as JSON, with its summary, detail, segments and findings."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from fourrates.alerts.payload import stable_id
from fourrates.alerts.text import defused, segment_in_words
from fourrates.findings import Finding, RateState
from fourrates.plain import finding_record, finite, state_record, to_json
from fourrates.serve.bodies import segment_name
from fourrates.serve.errors import ApiError
from fourrates.serve.monitor import Monitor, row_of, seconds_of
from fourrates.watch.now import OpenDrift, harm

HOUR, DAY = 3_600.0, 86_400.0
Q = 0.05  # the share of segments named in error
CARRIED = 0.6  # of the harm, and of the events; segments with this much of the harm and no more of the events
OPEN = 20  # open drifts in a summary


def iso(time: float | None) -> str | None:
    if time is None or not math.isfinite(time):
        return None
    try:
        text = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
    return text.replace("+00:00", "Z")


def status_of(monitor: Monitor) -> tuple[str, float | None]:
    if not monitor.events:
        return "waiting", None
    if since := monitor.watch.open_since:
        return "drifted", min(map(seconds_of, since.values()))
    if monitor.detector.warning_detected:
        first = monitor.detector.warning_since
        return "warning", None if first is None else time_of_event(monitor, monitor.begun + first)
    return "stable", None


def time_of_event(monitor: Monitor, event: float) -> float | None:
    points = monitor.series.points()
    if not len(points):
        return None
    return float(np.interp(event, points[:, 0], points[:, 1]))


def summary(monitor: Monitor, name: str, uid: str, now: float) -> dict[str, Any]:
    status, since = status_of(monitor)
    counts = monitor.join.counts
    return {
        "name": name,
        "status": status,
        "since": iso(since),
        "evidence": finite(min(monitor.detector.evidence, 1.0)) or 0.0,
        "events": monitor.events,
        "events_last_hour": monitor.events - monitor.series.events_before(now - HOUR),
        "waiting": counts["waiting"],
        "waiting_labels": counts["waiting_labels"],
        "segments": len(monitor.segments),
        "drifted_segments": drifted_segments(monitor),
        "open": open_json(monitor, uid),
        "worst": worst(monitor),
        "label_delay": monitor.label_delay,
        "last_event": iso(monitor.last_time),
        "deployments": [
            {"version": new.version, "time": iso(seconds_of(new.time)), "event": new.event, "serves": new.serves}
            for new in monitor.watch.deployments
        ],
    }


def drifted_segments(monitor: Monitor) -> int:
    return len(monitor.watch.open_since.keys() - {None})


def open_json(monitor: Monitor, uid: str) -> list[dict[str, Any]]:
    """The open drifts, overall first, then the worst, each with its current rates."""
    shown = []
    for opened in monitor.watch.now().open[:OPEN]:
        drift = monitor.of_monitor(opened.leading)
        shown.append(
            {
                "id": finding_id(monitor, uid, drift),
                "segment": segment_json(monitor, drift.segment),
                "version": drift.version,
                "at": drift.at,
                "started": drift.started,
                "time": iso(seconds_of(drift.time)),
                "started_time": iso(seconds_of(drift.started_time)),
                "confirmed": opened.confirmed,
                "harm": round(opened.harm, 1),
                "directions": opened.directions,
                "cost": None if opened.cost is None else {**opened.cost.to_dict(), "text": str(opened.cost)},
                "now": {rate: state_record(state) for rate, state in opened.rates.items()},
            }
        )
    return shown


def culprit(monitor: Monitor) -> OpenDrift | None:
    """The open drift to name first, overall or the worst segment if a few segments carry most of the harm."""
    drifts = monitor.watch.now().open
    inside = sorted((drift for drift in drifts if drift.segment is not None), key=_fallen, reverse=True)
    if not drifts or drifts[0].segment is not None:
        return inside[0] if inside else None
    harm_inside = sum(map(_fallen, inside))
    if not inside or harm_inside < _fallen(drifts[0]) / 2:
        return drifts[0]
    covered = events = 0.0
    for drift in inside:
        covered += _fallen(drift)
        events += monitor.segment_series.counts[monitor.segments[drift.segment or ""], 0].sum()
        if covered >= CARRIED * harm_inside:
            break
    return inside[0] if events <= CARRIED * monitor.events else drifts[0]


def _fallen(drift: OpenDrift) -> float:
    """The harm of the rates that fell, ignoring rates that rose in the same segment."""
    return sum(max(harm(state), 0.0) for state in drift.rates.values())


def worst(monitor: Monitor) -> dict[str, Any] | None:
    """The rate to show of a monitor, its culprit's or else the recall furthest below normal."""
    drift = culprit(monitor)
    if drift is None:
        rates = dict(islice(monitor.detector.rates.items(), monitor.classes))
        known = [rate for rate, state in rates.items() if state.now is not None and state.now.n >= state.enough]
        rate = min(known or rates, key=lambda rate: _distance(rates[rate]))
        return {"segment": None, "rate": rate, **state_record(rates[rate])}
    if not drift.rates:
        return None
    rate = max(drift.rates, key=lambda rate: harm(drift.rates[rate]))
    return {"segment": segment_json(monitor, drift.segment), "rate": rate, **state_record(drift.rates[rate])}


def _distance(state: RateState) -> float:
    """How far a rate is above normal, in widths of its interval."""
    if state.now is None or not state.now.n or state.normal is None or not state.normal.n:
        return 0.0
    return (state.now.value - state.normal.value) / max(state.now.upper - state.now.lower, 1e-9)


def spark(monitor: Monitor, now: float) -> dict[str, Any] | None:
    found = worst(monitor)
    if found is None:
        return None
    segment = None if found["segment"] is None else segment_name([*found["segment"].values()])
    return monitor.spark(found["rate"], segment, now - DAY)


def detail(monitor: Monitor, counts: dict[str, int]) -> dict[str, Any]:
    total = int(monitor.confusion.sum())
    mix = monitor.confusion.sum(1) / max(total, 1)
    return {
        "config": public_config(monitor),
        "arl": monitor.arl,
        "labels": list(monitor.labels.values),
        "rates": rates(monitor),
        "mix": {str(label): finite(float(mix[code])) for code, label in enumerate(monitor.labels.values)},
        "confusion": monitor.confusion.tolist(),
        "shift": monitor.shift,
        "label_warning": monitor.join.delays.sentence(monitor.labels.values, 1.0),
        "counts": {**monitor.join.counts, **counts, "to_label": len(monitor.to_label.waiting)},
    }


def public_config(monitor: Monitor) -> dict[str, Any]:
    """The settings, without secrets in the addresses of alerts."""
    config: dict[str, Any] = msgspec.to_builtins(monitor.config)
    config["alerts"]["channels"] = [shown_address(address) for address in monitor.config.alerts.channels]
    return config


def shown_address(address: str) -> str:
    """An address without its secrets, reduced to its kind and, on the web, its host."""
    kind, _, rest = address.partition("://")
    if kind in ("http", "https"):
        return f"{kind}://{rest.partition('/')[0].rpartition('@')[2]}/..."
    return f"{kind}://..."


def rates(monitor: Monitor) -> dict[str, Any]:
    """The rates over all events, normal, and now."""
    return {
        name: {
            "estimate": finite(state.estimate),
            "lower": finite(state.interval and state.interval.lower),
            "upper": finite(state.interval and state.interval.upper),
            "n": state.n,
            "baseline": to_json(state.baseline),
            "evidence": finite(state.evidence),
            "dispersion": finite(state.dispersion),
            **state_record(state),
        }
        for name, state in monitor.detector.rates.items()
    }


def segment_json(monitor: Monitor, name: str | None) -> dict[str, Any] | None:
    """The values that make a segment, by column; None for the overall stream."""
    return None if name is None else dict(zip(monitor.config.by, msgspec.json.decode(name), strict=True))


def segments(
    monitor: Monitor,
    limit: int,
    offset: int,
    *,
    lately: Container[str] = (),
    silences: Mapping[str, float],
    only: str | None = None,
) -> dict[str, Any]:
    """Segments with open drifts by harm, those `lately` closed, then by alarm level; or `only` one of them."""
    streams = monitor.watch.segments
    if streams.bank is None:
        return {"segments": [], "total": 0}
    keys, evidence, events = streams.bank.alarm_levels()
    numbers = np.array(keys, np.int64)
    open_since = monitor.watch.open_since
    harms = {drift.segment: drift.harm for drift in monitor.watch.now().open}
    names = [streams.names[number] for number in numbers.tolist()]
    rank = np.array([0 if name in open_since else 1 if name in lately else 2 for name in names], np.int64)
    harmed = np.array([harms.get(name, 0.0) for name in names])
    order = np.lexsort((numbers, -evidence, -harmed, rank))
    if only is not None:
        order = order[[names[slot] == only for slot in order.tolist()]]
    named = {*streams.bank.discoveries(Q)} if len(order) else set()
    shown = []
    for slot in order[offset : offset + limit].tolist():
        number = int(numbers[slot])
        detector = streams.bank[number]
        status = "drifted" if not rank[slot] else "warning" if detector.warning_detected else "stable"
        shown.append(
            {
                "segment": segment_json(monitor, names[slot]),
                "status": status,
                "pinned": bool(rank[slot] < 2),
                "evidence": finite(min(float(evidence[slot]), 1.0)),
                "events": int(events[slot]),
                "rates": {name: state_record(state) for name, state in detector.rates.items()},
                "discovery": number in named,
                "silenced_until": iso(silences.get(names[slot] or "")),
            }
        )
    return {"segments": shown, "total": len(order)}


def to_label(monitor: Monitor, after: int, limit: int) -> dict[str, Any]:
    if monitor.drawing is None:
        raise ApiError(409, "no_label_plan", "this monitor has no `label_plan`, so it draws nothing to label")
    waiting = monitor.labels_to_ask()
    drawn = waiting.after(after, limit)
    names = [*monitor.segments]
    return {
        "to_label": [
            {
                "number": prediction.number,
                "id": prediction.id,
                "pred": monitor.labels.values[prediction.pred],
                "segment": None if prediction.segment is None else segment_json(monitor, names[prediction.segment]),
                "time": iso(prediction.time),
            }
            for prediction in drawn
        ],
        "next": drawn[-1].number if drawn else after,
        "drawn": waiting.drawn,
        "labelled": waiting.labelled,
        "waiting": len(waiting.waiting),
    }


def finding(monitor: Monitor, name: str, uid: str, finding: Finding) -> dict[str, Any]:
    """A finding as the command line and alerts have it, with its segment by column and where to find it again."""
    segment = segment_json(monitor, finding.segment)
    where = [
        *([segment_in_words(segment)] if segment else []),
        *([f"version {finding.version}"] * bool(finding.version)),
    ]
    return {
        **finding_record(finding, utc=True),
        "id": finding_id(monitor, uid, finding),
        "monitor": name,
        "segment": segment,
        "closes": finding.closes,
        "text": defused(f"{', '.join([name, *where])}: {finding}".replace("->", "→")),
        "acknowledged": None,
        "acknowledged_by": None,
        "note": None,
    }


def finding_id(monitor: Monitor, uid: str, finding: Finding) -> str:
    """The same whenever it is made; by the monitor's event, as those of a segment restart at 0 after a reset."""
    stream = msgspec.json.encode([segment_json(monitor, finding.segment), finding.version]).decode()
    return stable_id(uid, finding.kind, stream, row_of(finding))[:24]

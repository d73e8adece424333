"""What was found as plain values: dicts for JSON, rows for tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from fourrates.drift import Drift, Shift
    from fourrates.io import Events, Joined
    from fourrates.run import Found, FoundShift, Run

COLUMNS = [
    "stream",
    "kind",
    "at",
    "since",
    "time",
    "since_time",
    "file",
    "row",
    "since_file",
    "since_row",
    "started",
    "started_time",
    "started_first",
    "started_last",
    "rate",
    "direction",
    "expected",
    "statistic",
    "bound",
    "n",
    "decay",
    "before",
    "before_n",
    "after",
    "after_n",
]


def moment(time: np.datetime64 | None, utc: bool, precise: bool = True) -> str | None:
    """A time as ISO 8601 has it, without what is zero at its end."""
    if time is None:
        return None
    text = str(time.astype("M8[us]"))
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (text if precise else text[:16].replace("T", " ")) + ("Z" if utc and precise else "")


def as_record(one: Found, utc: bool, labels: Sequence[Any]) -> dict[str, Any]:
    """A drift as JSON has it."""
    return {
        **({"stream": one.stream} if one.stream is not None else {}),
        "kind": "recovery" if one.is_recovery else "drift",
        "at": one.drift.at,
        "since": one.drift.since,
        **({} if one.at.time is None else {"time": moment(one.at.time, utc)}),
        **({} if one.since.time is None else {"since_time": moment(one.since.time, utc)}),
        "file": one.at.source,
        "row": one.at.row,
        "since_file": one.since.source,
        "since_row": one.since.row,
        **start(one.drift),
        **({"started_time": moment(one.started.time, utc)} if one.started is not None and one.started.time else {}),
        "changes": changes(one.drift),
        **precisions(one.drift),
        **with_shift(one.drift),
        "confusion": {"labels": list(labels), "before": one.before, "after": one.after},
    }


def start(drift: Drift) -> dict[str, Any]:
    """When the drift started, as JSON has it; nothing where the detector does not know."""
    if drift.started_between is None:
        return {}
    first, last = drift.started_between
    return {"started": drift.started, "started_first": first, "started_last": last}


def changes(drift: Drift) -> list[dict[str, Any]]:
    """The rates that moved, as JSON has them."""
    return [
        {
            "rate": change.rate,
            "direction": change.direction,
            "expected": finite(change.expected),
            "statistic": finite(change.statistic),
            "bound": finite(change.bound),
            "n": change.n,
            "decay": finite(change.decay),
            **{
                name: {key: finite(value) for key, value in share._asdict().items()}
                for name, share in (("before", change.before), ("after", change.after))
                if share is not None
            },
        }
        for change in drift.changes
    ]


def precisions(found: Drift | Shift) -> dict[str, Any]:
    """The precisions that moved and with what, as JSON has them; nothing where the detector does not tell."""
    listed = [
        {**{name: finite(value) for name, value in one._asdict().items() if name != "rate"}, "rate": one.rate}
        | {"because": one.because}
        for one in found.precisions
    ]
    return {"precisions": listed} if listed else {}


def finite(value: float | None) -> float | None:
    """A number as JSON can have it."""
    return None if value is None or not math.isfinite(value) else round(value, 9)


def shift_record(one: FoundShift, utc: bool) -> dict[str, Any]:
    """A shift of the classes as JSON has it."""
    return {
        **({"stream": one.stream} if one.stream is not None else {}),
        "kind": "shift",
        "at": one.shift.at,
        **({} if one.at.time is None else {"time": moment(one.at.time, utc)}),
        "file": one.at.source,
        "row": one.at.row,
        "started": one.shift.started,
        **precisions(one.shift),
        **_shares(one.shift),
    }


def with_shift(drift: Drift) -> dict[str, Any]:
    """The share of positives before and after, as JSON has it, if the classes shifted with the drift."""
    return {} if drift.shift is None else {"positives": _shares(drift.shift)}


def _shares(shift: Shift) -> dict[str, Any]:
    return {
        name: {key: finite(value) for key, value in share._asdict().items()}
        for name, share in (("before", shift.before), ("after", shift.after))
    }


def rows(found: Sequence[Found], utc: bool) -> list[dict[str, Any]]:
    """One row for each rate that moved, with all of `COLUMNS`; None where there is nothing to say."""
    found_rows = []
    for one in found:
        record = as_record(one, utc, ())
        for change in record.pop("changes"):
            for name in ("before", "after"):
                share = change.pop(name, None) or {}
                change |= {name: share.get("value"), f"{name}_n": share.get("n")}
            row = {**record, **change}
            found_rows.append({name: row.get(name) for name in COLUMNS})
    return found_rows


def about(run: Run, events: Events | Joined, found: Sequence[Found]) -> dict[str, Any]:
    """What was read and with which detector, as JSON has it."""
    names = (("truth", "truth"), ("pred", "guess"), ("score", "score"), ("time", "time"), ("by", "by"), ("id", "id"))
    columns = {kind: name for kind, own in names if (name := getattr(events.columns, own)) is not None}
    return {
        "drifted": any(not one.is_recovery for one in found),
        "events": run.events,
        "rows": events.rows,
        "skipped": events.skipped,
        **({"streams": len(run.streams)} if events.columns.by is not None else {}),
        **({} if run.first_time is None else {"first_time": moment(run.first_time, events.utc)}),
        **({} if run.last_time is None else {"last_time": moment(run.last_time, events.utc)}),
        "columns": columns,
        "detector": type(run.detector).__name__,
        "parameters": run.detector.parameters,
    }


def counted(found: Sequence[Found]) -> str:
    """How many drifts and recoveries there are, in words.

    Examples
    --------
    >>> from fourrates.plain import counted
    >>> counted([])
    'no drift'
    """
    recoveries = sum(one.is_recovery for one in found)
    drifts = len(found) - recoveries
    text = f"{drifts:,} drift{'' if drifts == 1 else 's'}" if drifts else "no drift"
    return text + (f" and {recoveries:,} recover{'y' if recoveries == 1 else 'ies'}" if recoveries else "")


def shortage(drift: Drift, events: int) -> str | None:
    """`Drift.shortage`, and how many examples there are by the end of a stream of `events`, if it went on."""
    window = drift.window
    if drift.shortage is None or events == window.stop:
        return drift.shortage
    return f"{drift.shortage}; by the end of the data there are {events - window.start:,}"


def last_shortage(run: Run, found: Sequence[Found]) -> str | None:
    """A line about the last drift that is not over, if its window is too small to learn from."""
    latest = {one.stream: one for one in found}  # of each stream
    last = next((one for one in reversed(found) if one is latest[one.stream] and not one.is_recovery), None)
    sentence = None if last is None else shortage(last.drift, run.streams[last.stream].events)
    return None if sentence is None else f"to learn from the last drift: {sentence}"

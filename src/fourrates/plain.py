"""What was found as plain values: dicts for JSON, rows for tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fourrates.findings import Drift, Finding, Shift

if TYPE_CHECKING:
    import numpy as np

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
    """A drift, or what became of it, as JSON has it."""
    return {
        **({"stream": one.stream} if one.stream is not None else {}),
        "kind": one.kind,
        "at": one.finding.at,
        **of_drift(one.finding),
        **({} if one.at.time is None else {"time": moment(one.at.time, utc)}),
        "file": one.at.source,
        "row": one.at.row,
        **(_warned(one, utc) if one.is_drift else {}),
        **start(one.finding),
        **({"started_time": moment(one.started.time, utc)} if one.started is not None and one.started.time else {}),
        "changes": changes(one.finding),
        **precisions(one.finding),
        **with_shift(one.finding),
        **({"confusion": {"labels": list(labels), "before": one.before, "after": one.after}} if one.is_drift else {}),
    }


def of_drift(finding: Finding) -> dict[str, Any]:
    """Which drift a finding is about, by its event, and whether that is over; for a drift, its warning."""
    if isinstance(finding, Drift):
        known = {} if finding.normal_known else {"normal_known": False}
        of = {} if finding.about is None else {"drift": finding.about.at, "further": finding.further}
        return {"since": finding.since, **of, **known}
    return {} if finding.drift is None else {"drift": finding.drift.at, "closes": finding.closes}


def _warned(one: Found, utc: bool) -> dict[str, Any]:
    time = {} if one.since.time is None else {"since_time": moment(one.since.time, utc)}
    return {**time, "since_file": one.since.source, "since_row": one.since.row}


def start(finding: Finding) -> dict[str, Any]:
    """When the new level started, as JSON has it; nothing where the detector does not know."""
    if finding.started is None:
        return {}
    if finding.started_between is None:
        return {"started": finding.started}
    first, last = finding.started_between
    return {"started": finding.started, "started_first": first, "started_last": last}


def changes(finding: Finding) -> list[dict[str, Any]]:
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
        for change in finding.changes
    ]


def precisions(finding: Finding) -> dict[str, Any]:
    """The precisions that moved and with what, as JSON has them; nothing where the detector does not tell."""
    listed = [
        {**{name: finite(value) for name, value in one._asdict().items() if name != "rate"}, "rate": one.rate}
        | {"because": one.because}
        for one in (finding.precisions if isinstance(finding, Drift | Shift) else ())
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


def with_shift(finding: Finding) -> dict[str, Any]:
    """The share of positives before and after, as JSON has it, if the classes shifted with a drift."""
    shift = finding.shift if isinstance(finding, Drift) else None
    return {} if shift is None else {"positives": _shares(shift)}


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
        "drifted": any(one.is_drift for one in found),
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


def counted(kinds: Iterable[str]) -> str:
    """How many drifts there are among findings of these kinds, and how many ends of one, in words.

    Examples
    --------
    >>> from fourrates.plain import counted
    >>> counted([])
    'no drift'
    >>> counted(["drift", "confirmation", "drift", "recovery", "withdrawal"])
    '2 drifts, 1 withdrawal and 1 recovery'
    """
    kinds = Counter(kinds)
    drifts = kinds["drift"]
    listed = [f"{drifts:,} drift{'' if drifts == 1 else 's'}" if drifts else "no drift"]
    for kind, several in (("withdrawal", "withdrawals"), ("recovery", "recoveries"), ("acceptance", "acceptances")):
        if kinds[kind]:
            listed.append(f"{kinds[kind]:,} {kind if kinds[kind] == 1 else several}")
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def shortage(drift: Drift, events: int) -> str | None:
    """`Drift.shortage`, and how many examples there are by the end of a stream of `events`, if it went on."""
    window = drift.window
    if drift.shortage is None or events == window.stop:
        return drift.shortage
    return f"{drift.shortage}; by the end of the data there are {events - window.start:,}"


def last_shortage(run: Run, found: Sequence[Found]) -> str | None:
    """A line about the last drift, if it is not over and its window is too small to train on."""
    for one in reversed(found):
        stream = run.streams[one.stream]
        if isinstance(one.finding, Drift) and (stream.status == "drifted" or not run.holds):
            sentence = shortage(one.finding, stream.events)
            return None if sentence is None else f"to train on the last drift: {sentence}"
    return None

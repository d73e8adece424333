"""Findings as plain values, dicts for JSON, rows for tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from fourrates.escaping import shortened
from fourrates.findings import (
    CLASSES,
    ENOUGH,
    ENOUGH_OF_A_CLASS,
    Drift,
    Finding,
    PredictionShift,
    RateChange,
    RateState,
    Shift,
)

if TYPE_CHECKING:
    import numpy as np

    from fourrates.io import Events
    from fourrates.watch import Watch

ARROWS = {"down": "↓", "up": "↑"}
LARGEST = 64  # classes whose confusion counts are written; more would make megabytes
COLUMNS = [
    "segment",
    "version",
    "kind",
    "at",
    "since",
    "time",
    "source",
    "row",
    "started",
    "started_time",
    "started_row",
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
KINDS = {
    "drift": "drift",
    "confirmation": "confirmed",
    "withdrawal": "withdrawn",
    "recovery": "recovered",
    "improvement": "improved",
    "acceptance": "accepted",
    "shift": "shift",
    "prediction_shift": "shift",
}
"""Findings in a table, in a word."""


def moment(time: np.datetime64 | None, utc: bool, precise: bool = True) -> str | None:
    """A time in ISO 8601, without trailing zeros."""
    if time is None:
        return None
    text = str(time.astype("M8[us]"))
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (text if precise else text[:16].replace("T", " ")) + ("Z" if utc and precise else "")


def to_json(value: Any) -> Any:
    """Data classes and named tuples as dicts, all the way down, with numbers that JSON has."""
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: to_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    return finite(value) if isinstance(value, float) else value


def finite(value: float | None) -> float | None:
    """A number valid in JSON."""
    return None if value is None or not math.isfinite(value) else round(value, 9)


def finding_record(finding: Finding, utc: bool) -> dict[str, Any]:
    """A finding for JSON, without what is not known."""
    first, last = finding.started_between or (None, None)
    record = {
        "segment": finding.segment,
        "version": finding.version,
        "kind": finding.kind,
        "at": finding.at,
        "drift": None if finding.about is None else finding.about.at,
        **_of_drift(finding),
        "time": moment(finding.time, utc),
        "source": finding.source,
        "row": finding.row,
        "started": finding.started,
        "started_first": first,
        "started_last": last,
        "started_time": moment(finding.started_time, utc),
        "started_row": finding.started_row,
        "changes": to_json(finding.changes),
    }
    return {name: value for name, value in record.items() if value is not None}


def _of_drift(finding: Finding) -> dict[str, Any]:
    """The facts that only a drift has, or a shift, or a later finding."""
    if not isinstance(finding, Drift | Shift):
        return {"closes": finding.closes}
    listed = [to_json(change) | {"because": change.because} for change in finding.precisions]
    moved = {"precisions": listed or None}
    if isinstance(finding, Shift):
        wait = finding.wait if isinstance(finding, PredictionShift) else None
        return {**moved, "before": to_json(finding.before), "after": to_json(finding.after), "wait": wait}
    shift = finding.shift
    return {
        **moved,
        "since": finding.since,
        "further": None if finding.about is None else finding.further,
        "normal_known": None if finding.normal_known else False,
        "confusions": to_json(finding.confusions) or None,
        "positives": None if shift is None else {"before": to_json(shift.before), "after": to_json(shift.after)},
        "confusion": finding.confusion if len(finding.confusion) <= LARGEST else None,
    }


def kind_in_words(finding: Finding) -> str:
    """What a finding is."""
    return "further drift" if isinstance(finding, Drift) and finding.further else KINDS[finding.kind]


def moves(finding: Finding) -> list[tuple[str, str]]:
    """What moved in a finding, and from where to where, for a table."""
    if isinstance(finding, Shift):
        what = "predictions" if isinstance(finding, PredictionShift) else "class mix"
        return [(what, f"{finding.before.value:.3f} → {finding.after.value:.3f}")]
    return [(f"{change.rate} {ARROWS[change.direction]}", _move(change)) for change in finding.changes]


def _move(change: RateChange) -> str:
    """From the old value to the new one, or from the expected value; not every detector has one."""
    if change.before is not None and change.after is not None:
        return f"{change.before.value:.3f} → {change.after.value:.3f}"
    return f"{change.statistic:.3f}" if change.expected is None else f"{change.expected:.3f} → {change.statistic:.3f}"


def state_record(state: RateState) -> dict[str, Any]:
    """A rate for JSON: its state, normal, and now."""
    return {name: to_json(getattr(state, name)) for name in ("state", "normal", "now", "enough")}


def rows(findings: Sequence[Finding], utc: bool) -> list[dict[str, Any]]:
    """One row for each rate that moved, with all of `COLUMNS`; None for empty cells."""
    found_rows = []
    for finding in findings:
        record = finding_record(finding, utc)
        for change in record.pop("changes"):
            for name in ("before", "after"):
                share = change.pop(name, None) or {}
                change |= {name: share.get("value"), f"{name}_n": share.get("n")}
            row = {**record, **change}
            found_rows.append({name: row.get(name) for name in COLUMNS})
    return found_rows


def about(watch: Watch, events: Events, findings: Sequence[Finding]) -> dict[str, Any]:
    """The current status, the input and the detector, for JSON."""
    kinds = ("truth", "pred", "score", "time", "by", "id")
    columns = {kind: name for kind in kinds if (name := getattr(events.columns, kind)) is not None}
    return {
        **watch.now().to_json(events.utc),
        "drifted": any(finding.kind == "drift" for finding in findings),
        "events": watch.events,
        "rows": events.rows,
        "skipped": events.skipped,
        **({"segments": len(watch.segments)} if events.columns.by is not None else {}),
        **({} if watch.first_time is None else {"first_time": moment(watch.first_time, events.utc)}),
        **({} if watch.last_time is None else {"last_time": moment(watch.last_time, events.utc)}),
        "columns": columns,
        "detector": type(watch.detector).__name__,
        "parameters": watch.detector.parameters,
    }


def counted(kinds: Iterable[str]) -> str:
    """The numbers of drifts among these kinds of findings, and of their ends, in words."""
    kinds = Counter(kinds)
    drifts = kinds["drift"]
    listed = [f"{drifts:,} drift{'' if drifts == 1 else 's'}" if drifts else "no drift"]
    for kind, several in (("withdrawal", "withdrawals"), ("recovery", "recoveries"), ("acceptance", "acceptances")):
        if kinds[kind]:
            listed.append(f"{kinds[kind]:,} {kind if kinds[kind] == 1 else several}")
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def rows_since(
    counts: Sequence[float], labels: Sequence[Any], about: str = "", size: int | None = None
) -> tuple[str, bool]:
    """The rows since a drift started, by class, and whether they are enough to retrain on; `size` of all classes."""
    least = min(range(len(counts)), key=counts.__getitem__)
    size, fewest = round(sum(counts)) if size is None else size, round(counts[least])
    name = [*CLASSES.values()][::-1][least] if len(counts) == 2 else shortened(str(labels[least]), 30)
    text = f"{size:,} row{'' if size == 1 else 's'} since it started, {about}{fewest:,} of them {name}"
    if size < ENOUGH or fewest < ENOUGH_OF_A_CLASS:
        short = f"{ENOUGH_OF_A_CLASS:,} {name}" if size >= ENOUGH else f"{ENOUGH:,} rows"
        return f"{text}: too few, wait for {short}", False
    return f"{text}: enough to retrain on", True


def too_few_examples(watch: Watch, findings: Sequence[Finding]) -> str | None:
    """A line about the drift that the status names first if too few rows have come since to train on.

    Of a detector without a normal, about its last one.
    """
    opened = watch.now().open
    drifts = [finding for finding in findings if isinstance(finding, Drift)] if not watch.holds else []
    drift = opened[0].leading if opened else drifts[-1] if drifts else None
    if drift is None:
        return None
    stream = watch.stream_of(drift)
    trace = watch.traces.get(drift.segment) if drift.version == watch.version else None
    start = drift.window.start
    if trace is not None:
        text, enough = rows_since(trace.between(start, stream.events).sum(1).tolist(), stream.labels.values)
    else:  # as the classes were since the last alarm, or before it if that is too short
        mix = getattr(stream, "volumes", ())
        mix = mix if sum(mix) >= ENOUGH else [sum(row) for row in drift.confusion]
        scale = (stream.events - start) / max(sum(mix), 1)
        text, enough = rows_since([n * scale for n in mix], stream.labels.values, "about ")
    where = "" if drift.where is None else f" in {shortened(drift.where)}"
    return None if enough else f"to retrain on the drift{where}: {text}"

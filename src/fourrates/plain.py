"""Findings as plain values: dicts for JSON, rows for tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fourrates.findings import Drift, Finding, Matrix, RateState, Share, Shift

if TYPE_CHECKING:
    import numpy as np

    from fourrates.io import Events
    from fourrates.watch import Watch

COLUMNS = [
    "segment",
    "version",
    "kind",
    "at",
    "since",
    "time",
    "file",
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


def moment(time: np.datetime64 | None, utc: bool, precise: bool = True) -> str | None:
    """A time in ISO 8601, without trailing zeros."""
    if time is None:
        return None
    text = str(time.astype("M8[us]"))
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (text if precise else text[:16].replace("T", " ")) + ("Z" if utc and precise else "")


def finding_record(finding: Finding, utc: bool, labels: Sequence[Any] = ()) -> dict[str, Any]:
    """A finding for JSON; with labels, the counts of a drift before and after its warning."""
    before, after = counts_split(finding)
    place = {
        "time": moment(finding.time, utc),
        "file": finding.source,
        "row": finding.row,
        **start(finding),
        "started_time": moment(finding.started_time, utc),
        "started_row": finding.started_row,
    }
    return {
        **({"segment": finding.segment} if finding.segment is not None else {}),
        **({"version": finding.version} if finding.version is not None else {}),
        "kind": finding.kind,
        "at": finding.at,
        **of_drift(finding),
        **{name: value for name, value in place.items() if value is not None},
        "changes": changes(finding),
        **precisions(finding),
        **confusions(finding),
        **(_shares(finding) if isinstance(finding, Shift) else with_shift(finding)),
        **({"confusion": {"labels": [*labels], "before": before, "after": after}} if before and labels else {}),
    }


def counts_split(finding: Finding) -> tuple[Matrix, Matrix]:
    """The counts of a drift before and since its warning; empty if not counted."""
    if not isinstance(finding, Drift) or (after := finding.confusion_since) is None:
        return (), ()
    pairs = zip(finding.confusion, after, strict=True)
    return tuple(tuple(max(all_ - late, 0) for all_, late in zip(*rows, strict=True)) for rows in pairs), after


def state_record(state: RateState) -> dict[str, Any]:
    """A rate for JSON: its state, normal, and now."""
    return {
        "state": state.state,
        "normal": share_record(state.normal),
        "now": share_record(state.now),
        "enough": state.enough,
    }


def share_record(share: Share | None) -> dict[str, Any] | None:
    """A rate with its interval for JSON."""
    return None if share is None else {name: finite(value) for name, value in share._asdict().items()}


def of_drift(finding: Finding) -> dict[str, Any]:
    """The event of the drift a finding is about, and whether that is over; for a drift, its warning."""
    if isinstance(finding, Drift):
        known = {} if finding.normal_known else {"normal_known": False}
        of = {} if finding.about is None else {"drift": finding.about.at, "further": finding.further}
        return {"since": finding.since, **of, **known}
    return {} if finding.drift is None else {"drift": finding.drift.at, "closes": finding.closes}


def start(finding: Finding) -> dict[str, Any]:
    """When the new level started, for JSON; empty if the detector does not know."""
    if finding.started is None:
        return {}
    if finding.started_between is None:
        return {"started": finding.started}
    first, last = finding.started_between
    return {"started": finding.started, "started_first": first, "started_last": last}


def changes(finding: Finding) -> list[dict[str, Any]]:
    """The rates that moved, for JSON."""
    return [
        {
            "rate": change.rate,
            "direction": change.direction,
            "expected": finite(change.expected),
            "statistic": finite(change.statistic),
            "bound": finite(change.bound),
            "n": change.n,
            "decay": finite(change.decay),
            **({} if change.before is None else {"before": share_record(change.before)}),
            **({} if change.after is None else {"after": share_record(change.after)}),
        }
        for change in finding.changes
    ]


def precisions(finding: Finding) -> dict[str, Any]:
    """The precisions that moved and why, for JSON; empty if the detector does not report them."""
    listed = [
        {name: part if isinstance(part, str) else finite(part) for name, part in precision._asdict().items()}
        | {"because": precision.because}
        for precision in (finding.precisions if isinstance(finding, Drift | Shift) else ())
    ]
    return {"precisions": listed} if listed else {}


def confusions(finding: Finding) -> dict[str, Any]:
    """The class mistaken for another more often, for JSON; empty if there is none."""
    listed = [
        {name: part if isinstance(part, str) else share_record(part) for name, part in confusion._asdict().items()}
        for confusion in (finding.confusions if isinstance(finding, Drift) else ())
    ]
    return {"confusions": listed} if listed else {}


def finite(value: float | None) -> float | None:
    """A number valid in JSON."""
    return None if value is None or not math.isfinite(value) else round(value, 9)


def with_shift(finding: Finding) -> dict[str, Any]:
    """The share of positives before and after, for JSON, if the class mix shifted with a drift."""
    shift = finding.shift if isinstance(finding, Drift) else None
    return {} if shift is None else {"positives": _shares(shift)}


def _shares(shift: Shift) -> dict[str, Any]:
    return {"before": share_record(shift.before), "after": share_record(shift.after)}


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
    """The numbers of drifts among these kinds of findings, and of their ends, in words.

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


def last_too_few_examples(watch: Watch, findings: Sequence[Finding]) -> str | None:
    """A line about the last drift, if it is still open and its window is too small to train on."""
    for finding in reversed(findings):
        segment = watch.stream_of(finding)
        if isinstance(finding, Drift) and (segment.status == "drifted" or not watch.holds):
            if (sentence := finding.too_few_examples) is None:
                return None
            by_now = f"; by the end of the data there are {segment.events - finding.window.start:,}"
            return f"to train on the last drift: {sentence}{by_now if segment.events > finding.window.stop else ''}"
    return None

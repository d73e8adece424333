"""The curves of a stream as page.js draws them: whole numbers, few enough for one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.escaping import shortened
from fourrates.report.facts import Stream
from fourrates.report.words import title
from fourrates.watch.trace import ordered

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.findings import Finding
    from fourrates.watch.trace import Trace

STREAMS = 24  # drawn
MOST = 32_000  # points drawn in all, where there are several streams
SHOWN = 40  # curves drawn before "show all", at most


def chosen(streams: Sequence[Stream]) -> list[Stream]:
    """The streams that are drawn: the first ones, as many as the page has room for."""
    drawn: list[Stream] = []
    points = 0
    for stream in streams:
        if stream.trace is None:
            continue
        points += sum(curve.events.size for curve in stream.trace.curves())
        if len(drawn) == STREAMS or (drawn and points > MOST):
            break
        drawn.append(stream)
    return drawn


def drawing(stream: Stream, findings: Sequence[Finding]) -> dict[str, Any]:
    """What page.js draws: events as steps from one to the next, rates in units of 1/10,000."""
    trace = stream.trace
    assert trace is not None
    curves, enough = ordered(trace.curves(), findings)
    several = len({curve.kind for curve in curves}) > 1
    breaks = np.array([finding.at.event for finding in stream.findings if finding.kind == "drift"], np.int64)
    listed = []
    for curve in curves:
        record: dict[str, Any] = {"rate": shortened(curve.rate), "title": title(curve.rate)}
        if several:
            record["title"] += f", {curve.kind}"
        at, gaps = _broken(curve.events, breaks)
        record["x"] = np.diff(at, prepend=0).tolist()
        record["v"] = _tenthousandths(curve.value, gaps)
        if not np.isnan(curve.warn_low).all():
            for key, values in (
                ("wl", curve.warn_low),
                ("wh", curve.warn_high),
                ("dl", curve.detect_low),
                ("dh", curve.detect_high),
            ):
                record[key] = _tenthousandths(values, gaps)
        listed.append(record)
    return {
        "first": trace.first,
        "last": max(trace.events - 1, trace.first + 1),
        "drifts": [
            {
                "at": finding.at.event,
                "since": finding.since.event,
                "calm": finding.calm,
                **({} if finding.started is None or not finding.moved else {"started": finding.started.event}),
                **({} if finding.between is None else {"between": [moment.event for moment in finding.between]}),
            }
            for finding in stream.findings
        ],
        "curves": listed,
        "shown": min(enough, SHOWN),
        "clock": _clock(trace),
    }


def has_bounds(record: dict[str, Any]) -> bool:
    """Whether the curves of a stream are drawn within bounds."""
    return any("wl" in curve for curve in record["curves"])


def _broken(events: npt.NDArray[np.int64], breaks: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Any]:
    """The events with a gap put after each drift, and where the gaps are: a new concept is a new line."""
    places = np.searchsorted(events, breaks, side="right")
    return np.insert(events, places, breaks), places


def _tenthousandths(values: npt.NDArray[np.float64], gaps: Any) -> list[int | None]:
    scaled = np.insert(np.round(values * 1e4), gaps, np.nan)
    return [None if value != value else int(value) for value in scaled.tolist()]


def _clock(trace: Trace) -> dict[str, list[float]] | None:
    events, times = trace.clock()
    if not events:
        return None
    return {"e": list(events), "t": [round(time / 1e6, 3) for time in times]}

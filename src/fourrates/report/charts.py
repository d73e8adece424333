"""The drawings, which are rates over time for page.js, and the heat map, matrix difference and timeline as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.escaping import shortened
from fourrates.findings import Drift, Finding, Share
from fourrates.labels import rate_names
from fourrates.plain import kind_in_words
from fourrates.report.facts import ended, microseconds
from fourrates.report.words import Words, title
from fourrates.watch.now import rate_in_words
from fourrates.watch.trace import POINTS, normal_levels

if TYPE_CHECKING:
    from fourrates.report.facts import Facts, Stream
    from fourrates.watch import Deployment

STREAMS = 24  # drawn
FEWEST = 40  # events, below which there is nothing to draw
MOST = 200_000  # numbers in the page
FINER = 1, 3, 10  # times as many points as a curve has, for when it is zoomed
COLUMNS = 10  # classes in a table
LANES = 12  # of the timeline, before the others are folded
SIGNIFICANT = 3.0  # standard errors between two shares of a row, from which on a cell has a colour
GLYPHS = {"confirmation": "◆", "withdrawal": "○", "recovery": "✓", "improvement": "△", "acceptance": "□"}
GOOD = ("withdrawal", "recovery", "acceptance")


def sort_of(kind: str) -> str:
    """The colour of a finding, which is a drift, good news, or neither."""
    return "bad" if kind == "drift" else "good" if kind in GOOD else "soft"


def glyph(finding: Finding) -> str:
    """The sign of a finding, an arrow for a drift and another shape for everything else."""
    fell = not isinstance(finding, Drift) or finding.worse
    return GLYPHS.get(finding.kind, "▼" if fell else "▲")


def chosen(streams: Sequence[Stream]) -> list[Stream]:
    """The streams that are drawn, namely the first ones that drifted."""
    return [one for one in streams if one.trace is not None and one.trace.events - one.trace.first >= FEWEST][:STREAMS]


def drawing(stream: Stream, among: int, facts: Facts) -> dict[str, Any]:
    """The data that page.js draws: each rate with its curve, and finer ones for when it is zoomed."""
    trace = stream.trace
    assert trace is not None
    events, times = trace.clock()

    def x(event: float) -> float:
        return round(float(np.interp(event, *clock)) / 1e6, 3) if clock is not None else round(event, 1)

    clock = (events, times) if events.size else None
    names = rate_names(stream.labels)
    moved = [rate for rate in stream.moved if trace.observed(rate) is not None]
    rates = [*dict.fromkeys((*moved, *names))]
    most = MOST // (3 * among * len(rates))
    points = [max(POINTS, min(POINTS * finer, most)) for finer in FINER]
    return {
        "ends": [x(float(edge)) for edge in (trace.first, trace.events)],
        "timed": clock is not None,
        "accuracy": [_curve(stream, "accuracy", number, x) for number in points],
        "rates": [
            {
                "rate": rate_in_words(rate),
                "title": title(rate),
                "curves": [_curve(stream, rate, number, x) for number in points],
            }
            for rate in rates
        ],
        "deployments": [
            {"x": at, "version": shortened(deployment.version, 20)}
            for deployment in facts.deployments
            if deployment.event and (at := _moment(deployment, clock is not None, stream)) is not None
        ],
        "marks": [
            {
                "found": x(finding.at),
                "first": x(_start(finding)[0]),
                "last": x(_start(finding)[1]),
                "started": None if finding.started is None or not isinstance(finding, Drift) else x(finding.started),
                "recovery": finding.kind in GOOD,
                "sign": glyph(finding),
                "drawn": sort_of(finding.kind) != "soft",
                "rates": [rate_in_words(change.rate) for change in finding.changes],
            }
            for finding in stream.findings
        ],
    }


def _curve(stream: Stream, rate: str, points: int, x: Callable[[float], float]) -> dict[str, Any]:
    """A rate in points of equally many observations, and the band around normal that holds 90 % of them."""
    trace, state = stream.trace, stream.rates.get(rate)
    assert trace is not None
    curve = trace.curve(rate, points)
    levels = [] if rate == "accuracy" else normal_levels(trace, rate, stream.findings, state)
    shares = [Share.of(level * curve.n, curve.n, getattr(state, "dispersion", None) or 1.0) for _, level in levels]
    starts = [x(start) for start, _ in levels]
    return {
        "x": [x(event) for event in curve.event.tolist()],
        "y": curve.value.round(4).tolist(),
        "event": curve.event.round().astype(int).tolist(),
        "n": curve.n,
        "band": [
            {"start": start, "end": end, "level": share.value, "low": share.lower, "high": share.upper}
            for start, end, share in zip(starts, [*starts[1:], x(trace.events)], shares, strict=False)
        ],
    }


def _moment(deployment: Deployment, timed: bool, stream: Stream) -> float | None:
    """The place of a deployment along the axis; the events of a segment have their own numbers."""
    if timed:
        return None if deployment.time is None else microseconds(deployment.time) / 1e6
    return deployment.event if stream.name is None else None


def _start(finding: Finding) -> tuple[int, int]:
    """Between which events it started; without that, the warning before the alarm."""
    if isinstance(finding, Drift):
        return finding.started_between or (finding.since, finding.at)
    return finding.at, finding.at


def heat(facts: Facts, words: Words) -> dict[str, Any]:
    """Segment by class, as the recall now minus normal, with the most harm first."""
    names = rate_names(facts.labels)[: len(facts.labels)]
    moved = dict.fromkeys(rate for stream in facts.streams for rate in names if stream.is_away(rate))
    shown = names if len(names) <= COLUMNS else tuple(dict.fromkeys((*moved, *names)))[:COLUMNS]
    rows = []
    for stream in facts.streams:
        cells = [_cell(*stream.levels(rate), stream.is_away(rate)) for rate in shown]
        since = "" if stream.episode is None else words.when(stream, stream.episode.since)
        rows.append(
            {
                "name": shortened(str(stream.name)),
                "standing": stream.standing,
                "cells": cells,
                "harm": max(0, round(stream.harm)),
                "since": since if stream.standing in ("drifted", "recovered") else "",
                "events": stream.events,
            }
        )
    return {
        "classes": [rate_in_words(rate).removeprefix("recall of ") for rate in shown],
        "left_out": len(names) - len(shown),
        "rows": rows,
    }


def _cell(before: Share, now: Share, significant: bool) -> dict[str, Any]:
    if not (before.n and now.n):
        return {"text": "", "title": "no observations", "shade": "none"}
    difference = now.value - before.value
    shade = "none" if not significant else f"{'down' if difference < 0 else 'up'}{_step(difference)}"
    return {
        "text": signed(difference, 3),
        "title": f"{before.value:.3f} → {now.value:.3f}, of {now.n:,}",
        "shade": shade,
    }


def signed(value: float, digits: int) -> str:
    """A difference, with a minus sign of the width of the plus."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _step(difference: float) -> int:
    """How strong a colour is, from 1 to 4."""
    return 1 + sum(abs(difference) >= edge for edge in (0.05, 0.15, 0.3))


def difference(stream: Stream) -> dict[str, Any] | None:
    """The shares of each true class's predictions in the last episode minus those before it, in points."""
    if stream.episode is None or stream.trace is None or stream.standing not in ("drifted", "recovered"):
        return None
    counts = np.stack([stream.trace.between(*span) for span in stream.spans()])
    totals = counts.sum(2)
    known = totals.all(0)
    if not known.any():
        return None
    shares = counts / np.maximum(totals, 1)[:, :, None]
    pooled = counts.sum(0) / np.maximum(totals.sum(0), 1)[:, None]
    error = np.sqrt(pooled * (1 - pooled) * (1 / np.maximum(totals, 1)).sum(0)[:, None])
    moved = shares[1] - shares[0]
    kept = sorted(np.argsort(-(known * np.abs(moved).max(1)), kind="stable")[:COLUMNS].tolist())
    labels = [shortened(str(label), 40) for label in stream.labels]

    def cell(i: int, j: int) -> dict[str, str]:
        by = float(moved[i, j])
        # More correct predictions are good, more errors are not.
        shade = f"{'up' if (by > 0) == (i == j) else 'down'}{_step(by)}"
        return {
            "text": signed(100 * by, 1) if known[i] else "",
            "title": f"{shares[0, i, j]:.1%} → {shares[1, i, j]:.1%}",
            "shade": shade if abs(by) > SIGNIFICANT * error[i, j] else "none",
        }

    return {
        "labels": [labels[j] for j in kept],
        "rows": [{"label": labels[i], "n": totals[:, i].tolist(), "cells": [cell(i, j) for j in kept]} for i in kept],
        "left_out": len(labels) - len(kept),
        "over": stream.episode.end is not None,
    }


def timeline(facts: Facts, words: Words, numbers: dict[int, int]) -> dict[str, Any]:
    """A lane for each rate that moved, by stream, with bars while it was away, and a mark for each finding.

    `numbers` has the findings that are listed, by their identity.
    """
    timed = facts.first_time is not None and facts.last_time is not None and facts.last_time > facts.first_time
    lanes = []
    for stream in facts.streams:
        clock = stream.clock()

        def place(event: int, clock: Any = clock, stream: Stream = stream) -> float:
            if timed and clock[0]:
                at = np.interp(event, *clock)
                share = (at - facts.first_time) / (facts.last_time - facts.first_time)  # type: ignore[operator]
            else:
                share = event / max(stream.events - 1, 1)
            return round(100 * min(max(float(share), 0.0), 1.0), 2)

        for rate in dict.fromkeys(change.rate for finding in stream.findings for change in finding.changes):
            own = [one for one in stream.findings if one.closes or any(change.rate == rate for change in one.changes)]
            lanes.append(
                {
                    "name": f"{shortened(str(stream.name), 40)}, {rate_in_words(rate)}" if words.many else title(rate),
                    "bars": [] if not facts.holds else _bars(own, rate, stream, place),
                    "marks": [
                        {
                            "x": place(finding.at),
                            "glyph": glyph(finding),
                            "sort": sort_of(finding.kind),
                            "number": numbers[id(finding)],
                            "title": f"{kind_in_words(finding).capitalize()}, {words.when(stream, finding.at)}",
                        }
                        for finding in sorted(own, key=lambda finding: sort_of(finding.kind) != "soft")
                        if id(finding) in numbers and any(change.rate == rate for change in finding.changes)
                    ],
                }
            )
    ends = (facts.first_time, facts.last_time) if timed else (0, max((one.events for one in facts.streams), default=1))
    return {"lanes": lanes, "shown": LANES, "ticks": _ticks(ends[0], ends[1], timed)}  # type: ignore[arg-type]


def _bars(findings: Sequence[Finding], rate: str, stream: Stream, place: Any) -> list[dict[str, float]]:
    """From the event at which a rate moved away to its return, or to the end."""
    bars, start = [], None
    for finding in findings:
        about_it = any(change.rate == rate for change in finding.changes)
        if finding.kind == "drift" and start is None:
            start = finding.window.start
        elif start is not None and (finding.closes or (about_it and finding.kind in GOOD)):
            bars.append((start, ended(finding)))
            start = None
    if start is not None:
        bars.append((start, stream.events))
    return [{"x": place(first), "width": round(max(place(last) - place(first), 0.3), 2)} for first, last in bars]


def _ticks(first: int, last: int, timed: bool) -> list[dict[str, Any]]:
    """Some round places along the axis of the timeline, at real times."""
    if timed:
        day = 86_400_000_000
        steps = [3_600_000_000 * hours for hours in (1, 3, 6, 12)] + [day * days for days in (1, 2, 7, 14, 30, 91, 365)]
        step = next((length for length in steps if (last - first) / length <= 6), (last - first) // 4)
    else:
        step = int(10 ** np.floor(np.log10(max(last, 10))))
        step = step if last / step >= 3 else step // 2 or 1
    marks = range(-(-first // step) * step, last + 1, step)
    text = [str(np.datetime64(at, "us").astype("M8[m]")).replace("T", " ") if timed else f"{at:,}" for at in marks]
    if timed and step >= 86_400_000_000:
        text = [time[:10] for time in text]
    return [
        {"x": round(100 * (at - first) / max(last - first, 1), 2), "text": label}
        for at, label in zip(marks, text, strict=True)
    ]

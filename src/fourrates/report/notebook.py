"""Findings as a notebook shows them: a headline, a strip for each rate that moved, a table, and what was guessed.

Plain HTML and SVG with their styles in place: a notebook keeps no style sheet and runs no script of ours. Text takes
the colour of the notebook, light or dark; red, green and blue are readable on both.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fourrates import plain
from fourrates.escaping import printable, shortened
from fourrates.findings import Drift, Shift

if TYPE_CHECKING:
    from fourrates.findings import Finding, RateChange
    from fourrates.watch.trace import Curve, Trace

SHOWN = 20  # findings in the table
STRIPS = 3  # rates that are drawn
WIDTH, HEIGHT, BINS = 640, 64, 160
LINE, DRIFT, END = "#4a8fe0", "#d1493f", "#2f9e5b"
CELL = "text-align:left;vertical-align:top;padding:.3em 1.2em .3em 0"


def fragment(
    headline: str,
    findings: Sequence[Finding],
    utc: bool,
    notes: Sequence[str],
    traces: dict[str | None, Trace],
) -> str:
    """A fragment of HTML; no name in the data can be more than text in it."""
    parts = [f'<p style="margin:.3em 0"><b>{_text(headline)}</b></p>']
    name = next((finding.segment for finding in findings if finding.segment in traces), None)
    if findings and name in traces:
        parts += _strips(traces[name], name, [finding for finding in findings if finding.segment == name])
    if findings:
        parts.append(_table(findings[:SHOWN], utc))
    more = [f"... and {len(findings) - SHOWN:,} more"] if len(findings) > SHOWN else []
    lines = "".join(f"<div>{_text(note)}</div>" for note in (*more, *notes))
    return f'<div>{"".join(parts)}<div style="opacity:.7;font-size:90%;margin-top:.4em">{lines}</div></div>'


def _text(words: object) -> str:
    return html.escape(printable(str(words)))


def _colour(finding: Finding) -> str:
    return DRIFT if finding.kind == "drift" else END if finding.closes else LINE


# The table --------------------------------------------------------------------------------------------------


def _table(findings: Sequence[Finding], utc: bool) -> str:
    many = any(finding.segment is not None for finding in findings)
    head = ["", *(["segment"] if many else []), "found", "started about", "rate", "from → to"]
    rows = [_row(finding, utc, many) for finding in findings]
    cells = "".join(f'<th style="{CELL}">{name}</th>' for name in head)
    return (
        '<table style="border-collapse:collapse;margin:.3em 0">'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _row(finding: Finding, utc: bool, many: bool) -> str:
    arrows = {"down": "↓", "up": "↑"}
    moves = [(f"{change.rate} {arrows[change.direction]}", _moved(change)) for change in finding.changes]
    if isinstance(finding, Shift):
        moves = [("positives", f"{finding.before.value:.3f} → {finding.after.value:.3f}")]
    cells = [
        f'<span style="color:{_colour(finding)}">●</span> {finding.kind}',
        *([_text(shortened(str(finding.segment), 40))] if many else []),
        _place(finding.time, f"event {finding.at:,}", utc),
        _started(finding, utc),
        "<br>".join(_text(rate) for rate, _ in moves),
        "<br>".join(moved for _, moved in moves),
    ]
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _started(finding: Finding, utc: bool) -> str:
    """When the new level started; of a look at a drift, which one."""
    if finding.drift is not None and finding.kind in ("confirmation", "withdrawal", "acceptance"):
        return f"drift of event {finding.drift.at:,}"
    return _place(finding.started_time, f"event {finding.window.start:,}", utc)


def _place(time: np.datetime64 | None, event: str, utc: bool) -> str:
    when = plain.moment(time, utc, precise=False)
    return event if when is None else f'{when}<br><span style="opacity:.7">{event}</span>'


def _moved(change: RateChange) -> str:
    if change.before is not None and change.after is not None:
        return f"{change.before.value:.3f} → {change.after.value:.3f}"
    return f"{change.statistic:.3f}"


# The strips -------------------------------------------------------------------------------------------------


def _strips(trace: Trace, name: str | None, findings: Sequence[Finding]) -> list[str]:
    """The rates that moved, over time."""
    moved = dict.fromkeys(change.rate for finding in findings for change in finding.changes)
    curves = {curve.rate: curve for curve in reversed(trace.curves()) if curve.rate in moved}
    stream = "" if name is None else f"{shortened(name, 40)}: "
    return [_strip(curves[rate], trace, findings, stream) for rate in [*moved][:STRIPS] if rate in curves]


def _strip(curve: Curve, trace: Trace, findings: Sequence[Finding], stream: str) -> str:
    length = max(trace.events - trace.first, 1)
    bins = ((curve.events - trace.first) * BINS // length).clip(0, BINS - 1)
    known = ~np.isnan(curve.value)
    count = np.bincount(bins[known], minlength=BINS)
    there = np.flatnonzero(count)
    if not there.size:
        return ""
    mean = (np.bincount(bins[known], curve.value[known], BINS)[there] / count[there]).clip(0, 1)
    low, high = float(mean.min()), float(mean.max())
    scale = HEIGHT / max(high - low, 0.02)
    points = " ".join(
        f"{(at + 0.5) * WIDTH / BINS:.1f},{HEIGHT - (value - low) * scale:.1f}"
        for at, value in zip(there.tolist(), mean.tolist(), strict=True)
    )
    marks = "".join(_mark(finding, _colour(finding), trace.first, length) for finding in findings)
    name = _text(stream + curve.rate)
    return (
        f'<svg viewBox="-44 -16 {WIDTH + 48} {HEIGHT + 22}" width="{WIDTH + 48}" style="display:block;max-width:100%" '
        f'role="img" aria-label="{name} over time">{marks}'
        f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.6"/>'
        f'<g font-size="11" fill="currentColor"><text x="0" y="-5" font-weight="bold">{name}</text>'
        f'<text x="-6" y="8" text-anchor="end">{high:.2f}</text>'
        f'<text x="-6" y="{HEIGHT}" text-anchor="end">{low:.2f}</text></g></svg>'
    )


def _mark(finding: Finding, colour: str, first: int, length: int) -> str:
    """The interval of the start as a band, and what was found as a line."""

    def place(event: int) -> float:
        return (event - first) * WIDTH / length

    since = finding.since if isinstance(finding, Drift) else finding.at
    begin, end = finding.started_between or (since, finding.at)
    width = max(place(end) - place(begin), 1.0)
    return (
        f'<rect x="{place(begin):.1f}" y="0" width="{width:.1f}" height="{HEIGHT}" fill="{colour}" opacity=".2"/>'
        f'<path d="M{place(finding.at):.1f} 0V{HEIGHT}" stroke="{colour}" stroke-width="1.4"/>'
    )

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
from fourrates.names import printable, shortened

if TYPE_CHECKING:
    from fourrates.findings import RateChange
    from fourrates.run import Found
    from fourrates.run.trace import Curve, Trace

SHOWN = 20  # findings in the table
STRIPS = 3  # rates that are drawn
WIDTH, HEIGHT, BINS = 640, 64, 160
LINE, DRIFT, END = "#4a8fe0", "#d1493f", "#2f9e5b"
CELL = "text-align:left;vertical-align:top;padding:.3em 1.2em .3em 0"


def fragment(
    headline: str,
    found: Sequence[Found],
    utc: bool,
    notes: Sequence[str],
    traces: dict[str | None, Trace],
) -> str:
    """A fragment of HTML; no name in the data can be more than text in it."""
    parts = [f'<p style="margin:.3em 0"><b>{_text(headline)}</b></p>']
    name = next((one.stream for one in found if one.stream in traces), None)
    if found and name in traces:
        parts += _strips(traces[name], name, [one for one in found if one.stream == name])
    if found:
        parts.append(_table(found[:SHOWN], utc))
    more = [f"... and {len(found) - SHOWN:,} more"] if len(found) > SHOWN else []
    lines = "".join(f"<div>{_text(note)}</div>" for note in (*more, *notes))
    return f'<div>{"".join(parts)}<div style="opacity:.7;font-size:90%;margin-top:.4em">{lines}</div></div>'


def _text(words: object) -> str:
    return html.escape(printable(str(words)))


def _colour(one: Found) -> str:
    return DRIFT if one.is_drift else END if one.finding.closes else LINE


# The table --------------------------------------------------------------------------------------------------


def _table(found: Sequence[Found], utc: bool) -> str:
    many = any(one.stream is not None for one in found)
    head = ["", *(["stream"] if many else []), "found", "started about", "rate", "from → to"]
    rows = [_row(one, utc, many) for one in found]
    cells = "".join(f'<th style="{CELL}">{name}</th>' for name in head)
    return (
        '<table style="border-collapse:collapse;margin:.3em 0">'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _row(one: Found, utc: bool, many: bool) -> str:
    cells = [
        f'<span style="color:{_colour(one)}">●</span> {one.kind}',
        *([_text(shortened(str(one.stream), 40))] if many else []),
        _place(one.at.time, f"event {one.finding.at:,}", utc),
        _started(one, utc),
        "<br>".join(
            f"{_text(change.rate)} {'↓' if change.direction == 'down' else '↑'}" for change in one.finding.changes
        ),
        "<br>".join(map(_moved, one.finding.changes)),
    ]
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _started(one: Found, utc: bool) -> str:
    """When the new level started; of a look at a drift, which one."""
    finding = one.finding
    if finding.drift is not None and finding.kind in ("confirmation", "withdrawal", "acceptance"):
        return f"drift of event {finding.drift.at:,}"
    return _place(None if one.started is None else one.started.time, f"event {finding.window.start:,}", utc)


def _place(time: np.datetime64 | None, event: str, utc: bool) -> str:
    when = plain.moment(time, utc, precise=False)
    return event if when is None else f'{when}<br><span style="opacity:.7">{event}</span>'


def _moved(change: RateChange) -> str:
    if change.before is not None and change.after is not None:
        return f"{change.before.value:.3f} → {change.after.value:.3f}"
    return f"{change.statistic:.3f}"


# The strips -------------------------------------------------------------------------------------------------


def _strips(trace: Trace, name: str | None, found: Sequence[Found]) -> list[str]:
    """The rates that moved, over time."""
    moved = dict.fromkeys(change.rate for one in found for change in one.finding.changes)
    curves = {curve.rate: curve for curve in reversed(trace.curves()) if curve.rate in moved}
    stream = "" if name is None else f"{shortened(name, 40)}: "
    return [_strip(curves[rate], trace, found, stream) for rate in [*moved][:STRIPS] if rate in curves]


def _strip(curve: Curve, trace: Trace, found: Sequence[Found], stream: str) -> str:
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
    marks = "".join(_mark(one, _colour(one), trace.first, length) for one in found)
    name = _text(stream + curve.rate)
    return (
        f'<svg viewBox="-44 -16 {WIDTH + 48} {HEIGHT + 22}" width="{WIDTH + 48}" style="display:block;max-width:100%" '
        f'role="img" aria-label="{name} over time">{marks}'
        f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.6"/>'
        f'<g font-size="11" fill="currentColor"><text x="0" y="-5" font-weight="bold">{name}</text>'
        f'<text x="-6" y="8" text-anchor="end">{high:.2f}</text>'
        f'<text x="-6" y="{HEIGHT}" text-anchor="end">{low:.2f}</text></g></svg>'
    )


def _mark(one: Found, colour: str, first: int, length: int) -> str:
    """The interval of the start as a band, and what was found as a line."""

    def place(event: int) -> float:
        return (event - first) * WIDTH / length

    begin, end = one.finding.started_between or (one.since.event, one.finding.at)
    width = max(place(end) - place(begin), 1.0)
    return (
        f'<rect x="{place(begin):.1f}" y="0" width="{width:.1f}" height="{HEIGHT}" fill="{colour}" opacity=".2"/>'
        f'<path d="M{place(one.finding.at):.1f} 0V{HEIGHT}" stroke="{colour}" stroke-width="1.4"/>'
    )

"""Findings and diagnoses for a notebook, with a headline, a strip for each rate that moved, a table, and notes.

Plain HTML and SVG with inline styles, since a notebook keeps no style sheet and runs no script of ours. Text takes the
colour of the notebook, light or dark; orange and blue are readable on both.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fourrates import plain
from fourrates.escaping import printable, shortened
from fourrates.findings import Drift, Shift
from fourrates.watch.now import rate_in_words
from fourrates.watch.trace import normal_levels

if TYPE_CHECKING:
    from fourrates.findings import Finding, RateChange
    from fourrates.watch import Watch
    from fourrates.watch.trace import Trace

SHOWN = 20  # findings in the table
STRIPS = 3  # rates that are drawn
WIDTH, HEIGHT = 640, 64
DRIFT, END = "#c96a1b", "#4a7fe8"  # at least 3 to 1 on white and on the dark of notebooks
CELL = "text-align:left;vertical-align:top;padding:.3em 1.2em .3em 0"


def fragment(headline: str, findings: Sequence[Finding], utc: bool, notes: Sequence[str], watch: Watch) -> str:
    """Findings as HTML; no name in the data can be more than text in it."""
    opened = [drift.segment for drift in watch.now().open]
    moved = [*opened, *([] if opened else [finding.segment for finding in findings if finding.kind != "shift"])]
    names = [name for name in dict.fromkeys(moved) if name in watch.traces]
    drawn = [finding for finding in findings if finding.version == watch.version]
    parts = [strip for name in names[:STRIPS] for strip in _strips(watch, name, drawn)][:STRIPS]
    if findings:
        parts.append(_findings(findings[:SHOWN], utc))
    more = [f"... and {len(findings) - SHOWN:,} more"] if len(findings) > SHOWN else []
    return page_part(headline, parts, [*more, *notes])


def page_part(headline: str, parts: Iterable[str], notes: Iterable[str]) -> str:
    """A headline, parts that are HTML already, and notes."""
    lines = "".join(f"<div>{text(note)}</div>" for note in notes)
    head = f'<p style="margin:.3em 0"><b>{text(headline)}</b></p>'
    return f'<div>{head}{"".join(parts)}<div style="opacity:.75;font-size:90%;margin-top:.4em">{lines}</div></div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are HTML already."""
    titles = "".join(f'<th style="{CELL}">{name}</th>' for name in head)
    body = "".join("<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in row) + "</tr>" for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:.3em 0">'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    )


def text(words: object) -> str:
    """Words as HTML."""
    return html.escape(printable(str(words)))


# The table --------------------------------------------------------------------------------------------------


def _findings(findings: Sequence[Finding], utc: bool) -> str:
    many = any(finding.where is not None for finding in findings)
    head = ["", *(["segment"] if many else []), "found", "started about", "rate", "from → to"]
    return table(head, (_row(finding, utc, many) for finding in findings))


def _row(finding: Finding, utc: bool, many: bool) -> list[str]:
    arrows = {"down": "↓", "up": "↑"}
    moves = [(f"{change.rate} {arrows[change.direction]}", _moved(change)) for change in finding.changes]
    if isinstance(finding, Shift):
        moves = [("positives", f"{finding.before.value:.3f} → {finding.after.value:.3f}")]
    sign = ""
    if isinstance(finding, Drift):
        sign = f'<span style="color:{DRIFT}">{"▼" if finding.worse else "▲"}</span> '
    elif finding.kind in ("recovery", "withdrawal", "acceptance"):
        sign = f'<span style="color:{END}">✓</span> '
    return [
        f"{sign}{finding.kind}",
        *([text(shortened(str(finding.where), 40))] if many else []),
        _place(finding.time, f"event {finding.at:,}", utc),
        _started(finding, utc),
        "<br>".join(text(rate) for rate, _ in moves),
        "<br>".join(moved for _, moved in moves),
    ]


def _started(finding: Finding, utc: bool) -> str:
    """When the new level started; of a look at a drift, which one."""
    if finding.drift is not None and finding.kind in ("confirmation", "withdrawal", "acceptance"):
        return f"drift of event {finding.drift.at:,}"
    return _place(finding.started_time, f"event {finding.window.start:,}", utc)


def _place(time: np.datetime64 | None, event: str, utc: bool) -> str:
    when = plain.moment(time, utc, precise=False)
    return event if when is None else f'{when}<br><span style="opacity:.75">{event}</span>'


def _moved(change: RateChange) -> str:
    if change.before is not None and change.after is not None:
        return f"{change.before.value:.3f} → {change.after.value:.3f}"
    return f"{change.statistic:.3f}"


# The strips -------------------------------------------------------------------------------------------------


def _strips(watch: Watch, name: str | None, findings: Sequence[Finding]) -> list[str]:
    """The rates that moved, over time."""
    trace, states = watch.traces[name], watch.segments[name].rates
    findings = [finding for finding in findings if finding.segment == name]
    away = [rate for rate, state in states.items() if state.state != "normal"]
    rates = away or [*dict.fromkeys(change.rate for finding in findings for change in finding.changes)]
    segment = "" if name is None else f"{shortened(name, 40)}: "
    drawn = [rate for rate in rates if trace.observed(rate) is not None][:STRIPS]
    return [
        _strip(trace, rate, findings, normal_levels(trace, rate, findings, states.get(rate)), segment) for rate in drawn
    ]


def _strip(
    trace: Trace, rate: str, findings: Sequence[Finding], normal: Sequence[tuple[int, float]], segment: str
) -> str:
    curve, (events, times) = trace.curve(rate), trace.clock()
    if not curve.value.size:
        return ""
    ends = times if events.size else trace.edges

    def x(event: float) -> float:
        at = float(np.interp(event, events, times)) if events.size else event
        return (at - float(ends[0])) / max(float(ends[-1] - ends[0]), 1.0) * WIDTH

    values = [*curve.value, *(level for _, level in normal)]
    low, high = float(min(values)), float(max(values))
    scale = HEIGHT / max(high - low, 0.02)

    def y(value: float) -> float:
        return HEIGHT - (value - low) * scale

    points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in zip(curve.event, curve.value, strict=True))
    levels = "".join(
        f'<path d="M{x(start):.1f} {y(level):.1f}H{x(end):.1f}" stroke="currentColor" opacity=".5"/>'
        for (start, level), end in zip(normal, [*(one for one, _ in normal[1:]), trace.events], strict=True)
    )
    about = [finding for finding in findings if any(change.rate == rate for change in finding.changes)]
    marks = "".join(_mark(finding, x) for finding in about)
    first, last = (
        plain.moment(np.datetime64(int(at), "us"), False, precise=False) if events.size else f"event {at:,}"
        for at in (ends[0], ends[-1])
    )
    name = text(segment + rate_in_words(rate))
    return (
        f'<svg viewBox="-44 -16 {WIDTH + 48} {HEIGHT + 36}" width="{WIDTH + 48}" style="display:block;max-width:100%" '
        f'role="img" aria-label="{name} over time">{marks}{levels}'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<path d="M0 {HEIGHT + 3}H{WIDTH}" stroke="currentColor" opacity=".4"/>'
        f'<g font-size="11" fill="currentColor"><text x="0" y="-5" font-weight="bold">{name}</text>'
        f'<text x="-6" y="8" text-anchor="end">{high:.2f}</text>'
        f'<text x="-6" y="{HEIGHT}" text-anchor="end">{low:.2f}</text>'
        f'<text x="0" y="{HEIGHT + 15}">{first}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 15}" text-anchor="end">{last}</text></g></svg>'
    )


def _mark(finding: Finding, x: Callable[[float], float]) -> str:
    """A drift as the interval of its start and a line; what ended one as a dashed line."""
    if isinstance(finding, Drift):
        begin, end = finding.started_between or (finding.since, finding.at)
        width = max(x(end) - x(begin), 1.0)
        return (
            f'<rect x="{x(begin):.1f}" y="0" width="{width:.1f}" height="{HEIGHT}" fill="{DRIFT}" opacity=".25"/>'
            f'<path d="M{x(finding.at):.1f} 0V{HEIGHT}" stroke="{DRIFT}" stroke-width="1.6"/>'
        )
    if finding.kind not in ("withdrawal", "recovery", "acceptance"):
        return ""
    return f'<path d="M{x(finding.at):.1f} 0V{HEIGHT}" stroke="{END}" stroke-width="1.6" stroke-dasharray="5 3"/>'

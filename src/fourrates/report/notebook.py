"""Findings and diagnoses for a notebook: a headline, the picture of `plot` if matplotlib is there, a table, and notes.

Plain HTML with inline styles, since a notebook keeps no style sheet and runs no script of ours. Text takes the colour
of the notebook, light or dark; orange and blue are readable on both.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fourrates import plain, plot
from fourrates.escaping import printable, shortened
from fourrates.findings import Drift, Shift

if TYPE_CHECKING:
    import numpy as np

    from fourrates.findings import Finding
    from fourrates.watch import Watch

SHOWN = 20  # findings in the table
DRIFT, END = "#c96a1b", "#4a7fe8"  # at least 3 to 1 on white and on the dark of notebooks
CELL = "text-align:left;vertical-align:top;padding:.3em 1.2em .3em 0"


def fragment(headline: str, findings: Sequence[Finding], utc: bool, notes: Sequence[str], watch: Watch) -> str:
    """Findings as HTML; no name in the data can be more than text in it."""
    parts = []
    moved = any(not isinstance(finding, Shift) for finding in findings)
    if find_spec("matplotlib") and (watch.now().open or moved):
        picture = base64.b64encode(plot.rendered(plot.drawn(watch, findings), "png", 72)).decode()
        parts.append(f'<img style="max-width:100%" alt="The rates over time" src="data:image/png;base64,{picture}">')
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


def _findings(findings: Sequence[Finding], utc: bool) -> str:
    many = any(finding.where is not None for finding in findings)
    head = ["", *(["segment"] if many else []), "found", "started about", "rate", "from → to"]
    return table(head, (_row(finding, utc, many) for finding in findings))


def _row(finding: Finding, utc: bool, many: bool) -> list[str]:
    rates, levels = zip(*plain.moves(finding), strict=True)
    sign = ""
    if isinstance(finding, Drift):
        sign = f'<span style="color:{DRIFT}">{"▼" if finding.worse else "▲"}</span> '
    elif finding.kind in ("recovery", "withdrawal", "acceptance"):
        sign = f'<span style="color:{END}">✓</span> '
    return [
        f"{sign}{finding.kind.replace('_', ' ')}",
        *([text(shortened(str(finding.where), 40))] if many else []),
        _place(finding.time, f"event {finding.at:,}", utc),
        _started(finding, utc),
        "<br>".join(map(text, rates)),
        "<br>".join(levels),
    ]


def _started(finding: Finding, utc: bool) -> str:
    """When the new level started; of a look at a drift, which one."""
    if finding.drift is not None and finding.kind in ("confirmation", "withdrawal", "acceptance"):
        return f"drift of event {finding.drift.at:,}"
    return _place(finding.started_time, f"event {finding.window.start:,}", utc)


def _place(time: np.datetime64 | None, event: str, utc: bool) -> str:
    when = plain.moment(time, utc, precise=False)
    return event if when is None else f'{when}<br><span style="opacity:.75">{event}</span>'

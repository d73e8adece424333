"""The report: one HTML file that shows what a run found, with nothing to fetch.

The words (headline, drifts, confusion matrices, settings) are in the page as such and need no script; the rates over
time are drawn by uPlot, which is vendored beside this file with its licence. `facts` looks at
the run, `words` and `charts` say and draw it, and
`template` puts it into the page so that no name in the data can be more than text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.escaping import printable, shortened
from fourrates.report import charts
from fourrates.report.facts import Facts, FindingFacts, gather
from fourrates.report.template import render
from fourrates.report.words import TITLES, WHY, Words, settings
from fourrates.watch.now import rate_in_words

if TYPE_CHECKING:
    from fourrates.findings import Finding, Matrix
    from fourrates.io import Events
    from fourrates.watch import Watch

__all__ = ["page"]

OPEN = 4  # findings shown at once, the others on demand: the charts should not be far
LISTED = 100  # findings told in full
STREAMS = 20  # streams listed at once
SHIFTS = 20  # shifts of the classes told
SIDE_BY_SIDE = 10  # classes that a confusion matrix is shown for


def page(watch: Watch, events: Events, findings: Sequence[Finding]) -> str:
    """Write the page.

    Parameters
    ----------
    watch : Watch
        What watched, with traces.
    events : Events
        What was read.
    findings : sequence of Finding
        What was found.
    """
    own = files(__name__)
    licence, uplot = (own / "vendor" / "uPlot-LICENSE").read_text(), (own / "vendor" / "uPlot.iife.min.js").read_text()
    facts = gather(watch, events, findings)
    words = Words(facts)
    drawn = charts.chosen(facts.streams)
    moves = [finding for finding in findings if finding.kind != "shift"]
    data = [charts.drawing(stream, [one for one in moves if one.segment == stream.name]) for stream in drawn]
    state, rest = words.headline()
    latest = list(reversed(facts.findings))[:LISTED]
    many = any(stream.name is not None for stream in facts.streams)
    return render(
        __name__,
        "page.html",
        style=(own / "vendor" / "uPlot.min.css").read_text() + (own / "page.css").read_text(),
        scripts=[f"/*\n{licence}*/\n{uplot}", (own / "chart.js").read_text() + (own / "page.js").read_text()],
        state=state,
        rest=rest,
        standing=_standing(facts),
        lead=words.lead(),
        findings=[_finding(one, facts, words, [stream.name for stream in drawn]) for one in latest],
        open=OPEN,
        found=len(facts.findings),
        shifts=[words.shift(shift) for shift in facts.shifts[:SHIFTS]],
        more_shifts=max(0, len(facts.shifts) - SHIFTS),
        many=many,
        streams=[
            {
                "name": shortened(str(stream.name)),
                "events": stream.events,
                "drifts": sum(finding.kind == "drift" for finding in stream.findings),
                "standing": stream.standing,
                "told": words.standing(stream),
            }
            for stream in facts.streams
            if many and stream.standing != "stable"
        ],
        listed=STREAMS,
        stable=sum(stream.standing == "stable" for stream in facts.streams),
        number=len(facts.streams),
        drawn=[shortened(str(stream.name)) for stream in drawn],
        bounds=any(map(charts.has_bounds, data)),
        started=any(finding.between is not None for stream in drawn for finding in stream.findings),
        calm=any(finding.calm for stream in drawn for finding in stream.findings),
        settings=settings(watch.detector, events),
        data={"streams": data},
    )


def _standing(facts: Facts) -> str:
    """The colour of the headline: that of the worst stream."""
    met = {stream.standing for stream in facts.streams}
    return next((one for one in ("drifted", "recovered", "warning") if one in met), "stable")


def _sentence(text: str) -> str:
    return printable(f"{text[0].upper()}{text[1:]}.")


def _finding(finding: FindingFacts, facts: Facts, words: Words, drawn: list[str | None]) -> dict[str, Any]:
    """What the template shows of a finding."""
    window, is_drift = finding.window, finding.kind == "drift"
    title = "Further drift" if finding.further else TITLES[finding.kind]
    return {
        "title": f"{finding.number}. {title}, {words.time(finding.at)}",
        "why": None if is_drift else _sentence(WHY[finding.kind]),
        "stream": None if finding.stream is None else shortened(finding.stream),
        "is_drift": is_drift,
        "calm": finding.calm,
        "drift": None if is_drift else finding.drift,
        "moved": finding.moved,
        "moves": [
            {
                "rate": rate_in_words(move.rate),
                "direction": move.direction,
                "worse": move.worse and not finding.calm,
                "shares": move.shares,
                "statistic": f"{move.statistic:.3g}",
                "bound": f"{move.bound:.3g}",
            }
            for move in finding.moves
        ],
        "precisions": [(one.rate, one.before, one.after, one.reason) for one in finding.precisions],
        "at": (finding.at, words.time(finding.at)),
        "since": (finding.since, words.time(finding.since)),
        "started": (finding.started, words.time(finding.started)) if finding.started and finding.moved else None,
        "between": None if finding.between is None else [(one, words.time(one)) for one in finding.between],
        "window": (len(window), window.start, window.stop - 1),
        "rows": printable(finding.rows),
        "too_few_examples": None if finding.too_few_examples is None else _sentence(finding.too_few_examples),
        "matrices": [
            _matrix("Until the warning", finding.before, facts.labels),
            _matrix("Since the warning", finding.after, facts.labels),
        ]
        if is_drift
        else [],
        "zoom": None
        if finding.stream not in drawn
        else f"{drawn.index(finding.stream)} {_first(finding)} {finding.at.event}",
    }


def _first(finding: FindingFacts) -> int:
    """Where the picture of a finding should begin."""
    return min(finding.since.event, *([one.event for one in finding.between or ()] or [finding.since.event]))


def _matrix(caption: str, counts: Matrix, labels: Sequence[Any]) -> dict[str, Any]:
    """A confusion matrix for the template, each cell with its share of its row in steps of a tenth."""
    matrix = np.array(counts)
    total, right = int(matrix.sum()), int(np.trace(matrix))
    rates = {"accuracy": (right, total)}
    if len(labels) == 2:
        (tn, fp), (fn, tp) = counts
        rates = {"tpr": (tp, tp + fn), "tnr": (tn, tn + fp), "ppv": (tp, tp + fp), "npv": (tn, tn + fn)} | rates
    rows = [
        {
            "label": shortened(str(label)),
            "cells": [
                {"count": count, "right": i == j, "shade": round(10 * count / max(1, sum(row)))}
                for j, count in enumerate(row)
            ],
        }
        for i, (label, row) in enumerate(zip(labels, counts, strict=True))
    ]
    return {
        "caption": caption,
        "labels": [shortened(str(label)) for label in labels],
        "rows": rows if len(labels) <= SIDE_BY_SIDE else [],
        "total": total,
        "right": right,
        "rates": [(name, part / of) for name, (part, of) in rates.items() if of],
    }

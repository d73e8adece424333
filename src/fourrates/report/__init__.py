"""The report of a run, one HTML file with nothing to fetch.

It covers, in order, the current state, the rates, the place, the cause, the advice, the history and the trust. The
words and tables are in the page and need no script. The rates over time are drawn by uPlot, which is vendored beside
this file with its licence. `facts` looks at the run, `words` and `charts` describe and draw it, and `template` builds
the page so that no name in the data can be more than text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fourrates.escaping import printable, shortened
from fourrates.findings import Drift, Shift
from fourrates.labels import rate_names
from fourrates.plain import kind_in_words
from fourrates.report import charts
from fourrates.report.facts import Stream, gather
from fourrates.report.template import render
from fourrates.report.words import WHY, Words, based_on, settings, title

if TYPE_CHECKING:
    from fourrates.findings import Finding
    from fourrates.result import Findings
    from fourrates.slices import Slice

__all__ = ["page"]

OPEN = 8  # findings listed at once, the others on demand
LISTED = 100  # findings listed at all
ROWS = 15  # segments in the heat map at once
MOST_ROWS = 200  # and at all
RATES = 20  # in the table of rates


def page(found: Findings, slices: Sequence[Slice] | None = None, new: int | None = None) -> str:
    """The page of what was found, in a watch with traces; `new` events of this run, if earlier runs had some too."""
    watch, events, findings = found.watch, found.source, [*found]
    own = files(__name__)
    licence, uplot = (own / "vendor" / "uPlot-LICENSE").read_text(), (own / "vendor" / "uPlot.iife.min.js").read_text()
    facts = gather(watch, events, findings, new)
    words = Words(facts, events)
    streams = {stream.name: stream for stream in facts.streams}
    earlier = replace(facts.streams[0], trace=None, findings=(), open=None)  # other versions count their own events
    drawn = charts.chosen(facts.streams)

    def of_stream(finding: Finding) -> Stream:
        return streams[finding.segment] if finding.version == watch.version else earlier

    moves = [finding for finding in findings if not isinstance(finding, Shift)]
    latest = [*enumerate(moves, 1)][::-1][:LISTED]
    worst = words.worst
    return render(
        __name__,
        "page.html",
        style="".join((own / name).read_text() for name in ("vendor/uPlot.min.css", "theme.css", "page.css")),
        scripts=[f"/*\n{licence}*/\n{uplot}", "".join((own / name).read_text() for name in ("drawing.js", "page.js"))],
        words=words,
        history=found.history(),
        standing="recovered" if worst.improved else worst.standing,
        worst=shortened(str(worst.name)),
        timed=facts.last_time is not None,
        drawn=[shortened(str(stream.name)) for stream in drawn],
        heat=charts.heat(facts, words) if words.many else None,
        slices=slices,
        rows=ROWS,
        most_rows=MOST_ROWS,
        difference=charts.difference(worst),
        rates=_rates(worst),
        timeline=charts.timeline(facts, words, {id(finding): number for number, finding in latest}),
        findings=[_finding(number, finding, of_stream(finding), words, drawn) for number, finding in latest],
        open=OPEN,
        found=len(moves),
        trust=words.trust([*events.data_warnings().values()]),
        settings=settings(watch.detector, events),
        data={"streams": [charts.drawing(stream, len(drawn), facts) for stream in drawn]},
    )


def _rates(stream: Stream) -> list[tuple[str, str, str, str]]:
    """Every rate of a stream before and in the last episode or now, with its counts."""
    if stream.episode is None or stream.trace is None:
        return []
    rows = []
    for rate in ("accuracy", *rate_names(stream.labels))[:RATES]:
        before, after = (stream.share(rate, *span) for span in stream.spans())
        if before.n and after.n:
            values = (f"{before.value:.3f}", f"{after.value:.3f}")
            rows.append((title(rate).partition(",")[0], *values, based_on(after, rate)))
    return rows


def _finding(number: int, finding: Finding, stream: Stream, words: Words, drawn: Sequence[Stream]) -> dict[str, Any]:
    """The fields of a finding in the template."""
    drift = finding if isinstance(finding, Drift) else None
    facts = []
    if finding.started is not None and finding.kind in ("drift", "recovery", "improvement"):
        facts.append(("Started about", f"{words.when(stream, finding.started)} (event {finding.started:,})"))
    if finding.started_between is not None:
        first, last = finding.started_between
        times = f"{words.when(stream, first)} to {words.when(stream, last)}"
        events = f"events {first:,} to {last:,}"
        facts.append(("Started between (90 %)", events if times.startswith("event") else f"{times} ({events})"))
    facts.append(("Found", f"{words.when(stream, finding.at)} (event {finding.at:,})"))
    if drift is None and finding.drift is not None:
        facts.append(("Drift of", f"{words.when(stream, finding.drift.at)} (event {finding.drift.at:,})"))
    if drift is not None:
        window = drift.window
        facts.append(("Retrain on", f"{len(window):,} events by then{_place(drift)}"))
        facts += [("Precision", str(change).replace("->", "→")) for change in drift.precisions]
    changes = [words.change(change, finding) for change in finding.changes]
    return {
        "number": number,
        "glyph": charts.glyph(finding),
        "sort": charts.sort_of(finding.kind),
        "title": kind_in_words(finding).capitalize(),
        "segment": None if finding.where is None else shortened(finding.where, 60),
        "when": words.when(stream, finding.at),
        "brief": "; ".join(text for text, _ in changes[:3]) + (f" and {len(changes) - 3} more" if changes[3:] else ""),
        "why": WHY.get(finding.kind),
        "changes": changes,
        "zoom": f"{drawn.index(stream)} {stream.findings.index(finding)}" if stream in drawn else None,
        "facts": [(name, printable(text)) for name, text in facts],
    }


def _place(drift: Drift) -> str:
    """The rows of the window in its file; nothing if they begin in an earlier one."""
    if drift.started_row is None or drift.row is None:
        return ""
    return f": rows {drift.started_row:,} to {drift.row:,} of {drift.source}"

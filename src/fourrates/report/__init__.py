"""The report: one HTML file that shows what a run found, with nothing to fetch.

The words (headline, drifts, confusion matrices, settings) are in the page as such and need no script; the rates over
time are drawn by uPlot, which is vendored beside this file with its licence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

import fourrates
from fourrates.io import Events
from fourrates.run import Found, Matrix, Place, Run
from fourrates.trace import ordered

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.trace import Trace

STREAMS = 24  # shown with charts, those with drifts first
MOST = 32_000  # points drawn in all, where there are several streams
OPEN = 4  # of these shown at once, the others on demand: the charts should not be far
LISTED = 100  # drifts told in full
SHOWN = 40  # curves drawn before "show all", at most


def page(run: Run, events: Events, found: Sequence[Found]) -> str:
    """Write the page.

    Parameters
    ----------
    run : Run
        What ran, with traces.
    events : Events
        What was read.
    found : sequence of Found
        What was found.
    """
    own = files(__name__)
    report = _Report(run, events, found, _chosen(run, found))
    data = json.dumps({"streams": [report.stream(name) for name in report.shown]}, separators=(",", ":"))
    parts = {
        "title": escape(report.headline()),
        "style": (own / "vendor" / "uPlot.min.css").read_text() + (own / "page.css").read_text(),
        "state": "drifted" if found else "calm",
        "body": report.body(),
        "licence": (own / "vendor" / "uPlot-LICENSE").read_text().strip().replace("--", "- -"),
        "data": data.replace("</", "<\\/"),
        "uplot": (own / "vendor" / "uPlot.iife.min.js").read_text(),
        "script": (own / "page.js").read_text(),
        "version": fourrates.__version__,
    }
    text = (own / "page.html").read_text()
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return text


def _chosen(run: Run, found: Sequence[Found]) -> list[str | None]:
    """The streams that are drawn: those with drifts first, as many as the page has room for."""
    traces = run.traces
    drifted = dict.fromkeys(one.stream for one in found if one.stream in traces)
    chosen: list[str | None] = []
    points = 0
    for name in islice({**drifted, **dict.fromkeys(traces)}, STREAMS):
        points += sum(curve.events.size for curve in traces[name].curves())
        if chosen and points > MOST:
            break
        chosen.append(name)
    return chosen


@dataclass(frozen=True, slots=True)
class _Report:
    run: Run
    events: Events
    found: Sequence[Found]
    shown: list[str | None]

    @property
    def labels(self) -> Sequence[Any]:
        return self.run.detector._labels.values

    # Words ------------------------------------------------------------------------------------------------------

    def headline(self) -> str:
        """What happened, in a line."""
        if not self.found:
            return "No drift"
        first = self.found[0]
        moves = " and ".join(
            f"{change.rate} {'fell' if change.direction == 'down' else 'rose'}" for change in first.drift.changes
        )
        where = f" in {first.stream}" if first.stream is not None else ""
        return f"Drifted{where}: {moves or 'an alarm'}, {self.when(first.at)}"

    def when(self, place: Place) -> str:
        if place.time is None:
            return f"event {place.event:,}"
        return str(place.time.astype("M8[s]")).replace("T", " ") + (" UTC" if self.events.utc else "")

    def body(self) -> str:
        title = self.headline()
        first, colon, rest = title.partition(":")
        heading = f"<em>{escape(first)}</em>{escape(colon + rest)}"
        parts = [
            f'<header class="{"drifted" if self.found else "calm"}"><p class="kicker">fourrates report</p>',
            f"<h1>{heading}</h1>",
            f'<p class="lead">{escape(self.lead())}</p></header><main>',
            self.drifts(),
            self.streams(),
            self.charts(),
            self.settings(),
            "</main>",
        ]
        return "\n".join(parts)

    def lead(self) -> str:
        number = len(self.found)
        text = f"{number} drift{'s' if number != 1 else ''} in " if number else ""
        text += f"{self.run.events:,} events"
        if len(self.run.streams) > 1:
            text += f" of {len(self.run.streams):,} streams"
        if self.run.first_time is not None and self.run.last_time is not None:
            ends = (str(time.astype("M8[m]")).replace("T", " ") for time in (self.run.first_time, self.run.last_time))
            text += f", {' to '.join(ends)}{' UTC' if self.events.utc else ''}"
        if not number:
            text += ": every rate stayed within its bounds"
        return text + "."

    def drifts(self) -> str:
        if not self.found:
            return ""
        items = [self.drift(i, one) for i, one in enumerate(self.found[:LISTED], 1)]
        text = f'<ol class="drifts">{"".join(items[:OPEN])}</ol>'
        if len(items) > OPEN:
            left = len(self.found) - len(items)
            more = f"<p>{left:,} more are not listed; --csv and --json tell them all.</p>" if left else ""
            text += f"<details><summary>{len(self.found) - OPEN:,} more</summary>"
            text += f'<ol class="drifts">{"".join(items[OPEN:])}</ol>{more}</details>'
        return f'<section aria-labelledby="h-drifts"><h2 id="h-drifts">What was found</h2>{text}</section>'

    def drift(self, number: int, one: Found) -> str:
        if one.stream is not None:
            number = [other for other in self.found if other.stream == one.stream].index(one) + 1
        moves = "".join(
            f'<li><strong class="{change.direction}">{escape(change.rate)} '
            f"{'↓ fell' if change.direction == 'down' else '↑ rose'}</strong> to "
            f'<span class="num">{change.statistic:.3f}</span>; <span class="num">{change.expected:.3f}</span> was '
            f'expected after {change.n:,} observations, <span class="num">{change.bound:.3f}</span> was the bound</li>'
            for change in one.drift.changes
        )
        window = one.drift.window
        stream = f"{escape(one.stream)}, " if one.stream is not None else ""
        rows = f"{escape(one.since.source)}, rows {one.since.row:,} to {one.at.row:,}"
        if one.at.source != one.since.source:
            rows = f"{escape(one.since.source)}, row {one.since.row:,}, to {escape(one.at.source)}, row {one.at.row:,}"
        zoom = ""
        if one.stream in self.shown:
            place = self.shown.index(one.stream)
            zoom = f'<button data-zoom="{place} {one.drift.since} {one.drift.at}">Show in the charts</button>'
        since = f", {escape(self.when(one.since))}" if one.since.time is not None else ""
        started = ""
        if one.drift.started_between is not None:
            first, last = one.drift.started_between
            started = (
                f'<dt>Started</dt><dd class="num">event {one.drift.started:,}'
                f'<br><span class="soft">in 9 of 10 cases between {first:,} and {last:,}</span></dd>'
            )
        matrices = self.matrix("Before", one.before) + self.matrix("After, in the window", one.after)
        return f"""<li class="drift"><header><h3>{stream}{number}. {escape(self.when(one.at))}</h3>{zoom}</header>
<ul class="moves">{moves}</ul>
<div class="facts"><dl>
<dt>Found at</dt><dd class="num">event {one.drift.at:,}</dd>
<dt>Since</dt><dd class="num">event {one.drift.since:,}{since}</dd>{started}
<dt>Learn from</dt><dd class="num">{len(window):,} event{"s" if len(window) > 1 else ""} of the new concept,
{window.start:,} to {window.stop - 1:,}<br><span class="soft">{rows}</span></dd>
</dl><div class="matrices">{matrices}</div></div></li>"""

    def matrix(self, caption: str, counts: Matrix) -> str:
        names = [escape(str(label)) for label in self.labels]
        if len(names) > 8:
            right, total = sum(counts[i][i] for i in range(len(names))), sum(map(sum, counts))
            return f"<p>{caption}: {right:,} of {total:,} right</p>"
        head = "".join(f'<th scope="col">said {name}</th>' for name in names)
        rows = "".join(
            f'<tr><th scope="row">was {name}</th>'
            + "".join(f"<td{' class=hit' if i == j else ''}>{count:,}</td>" for j, count in enumerate(row))
            + "</tr>"
            for i, (name, row) in enumerate(zip(names, counts, strict=True))
        )
        foot = f'<tfoot><tr><td colspan="{len(names) + 1}">{self.rates(counts)}</td></tr></tfoot>'
        return (
            f'<div class="scroll"><table class="matrix"><caption>{caption}</caption>'
            f"<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody>{foot}</table></div>"
        )

    def rates(self, counts: Matrix) -> str:
        matrix = np.array(counts)
        total, right = int(matrix.sum()), int(np.trace(matrix))
        told = [f"accuracy {right / total:.3f}"] if total else []
        if len(counts) == 2:
            (tn, fp), (fn, tp) = counts
            shares = {"tpr": (tp, tp + fn), "tnr": (tn, tn + fp), "ppv": (tp, tp + fp), "npv": (tn, tn + fn)}
            told = [f"{name} {part / of:.3f}" for name, (part, of) in shares.items() if of] + told
        return "<br>".join(", ".join(told[i : i + 2]) for i in range(0, len(told), 2))

    def streams(self) -> str:
        if set(self.run.streams) <= {None}:
            return ""
        drifted = {name: sum(one.stream == name for one in self.found) for name in self.run.streams}
        quiet = sum(not number for number in drifted.values())
        rows = "".join(
            f"<tr><td>{escape(str(name))}</td><td>{self.run.streams[name].events:,}</td><td>{number}</td></tr>"
            for name, number in drifted.items()
            if number
        )
        table = (
            '<div class="scroll"><table class="streams"><thead><tr><th>stream</th><th>events</th><th>drifts</th></tr>'
            f"</thead><tbody>{rows}</tbody></table></div>"
            if rows
            else ""
        )
        told = f'<p class="soft">{quiet:,} of {len(drifted):,} streams without a drift.</p>'
        return f"<section><h2>Streams</h2>{told}{table}</section>"

    def charts(self) -> str:
        if not self.shown:
            return ""
        chooser = ""
        if self.shown != [None]:
            options = "".join(f'<option value="{i}">{escape(str(name))}</option>' for i, name in enumerate(self.shown))
            chooser = f'<label>Stream <select id="stream">{options}</select></label>'
        bounds = any(not np.isnan(curve.warn_low).all() for curve in self.run.traces[self.shown[0]].curves())
        key = '<span><i class="k-curve"></i>the rate of late</span>'
        if bounds:
            key += '<span><i class="k-band"></i>within its warning bounds</span>'
            key += '<span><i class="k-wide"></i>within its detection bounds</span>'
            key += '<span><i class="k-warn"></i>outside: a warning</span>'
        key += '<span><i class="k-drift"></i>drift, and the window before it</span>'
        return f"""<section aria-labelledby="h-charts"><h2 id="h-charts">The rates over time</h2>
<div class="tools">{chooser}<button id="all">Show all</button>
<span class="soft hint">Drag to zoom, double-click for all.
Keys: ← → read, + and - zoom, shift with ← → moves, 0 all.</span></div>
<div class="key">{key}</div>
<div id="charts"></div>
<noscript><p>The charts need JavaScript; everything else on this page does not.</p></noscript></section>"""

    def settings(self) -> str:
        detector = self.run.detector
        columns = self.events.columns
        used = {
            "Detector": type(detector).__name__,
            **{name.capitalize(): _setting(value) for name, value in detector.parameters.items()},
            "Files": ", ".join(dict.fromkeys(map(str, self.events.sources))),
            "Column of labels": columns.truth,
            "Column of predictions": columns.guess,
            "Column of scores": None
            if columns.score is None
            else f"{columns.score}, positive from {self.events.threshold:g} on",
            "Column of times": columns.time,
            "Column of streams": columns.by,
            "Rows": f"{self.events.rows:,}, {self.events.skipped:,} of them skipped because something was missing",
            "fourrates": fourrates.__version__,
        }
        rows = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
            for name, value in used.items()
            if value is not None
        )
        return f'<section><h2>Settings</h2><table class="settings"><tbody>{rows}</tbody></table></section>'

    # Data for the charts ----------------------------------------------------------------------------------------

    def stream(self, name: str | None) -> dict[str, Any]:
        """What page.js draws: curves as whole numbers, events as steps from one to the next, 1 as 10,000."""
        trace = self.run.traces[name]
        drifts = [one.drift for one in self.found if one.stream == name]
        curves, enough = ordered(trace.curves(), drifts)
        several = len({curve.kind for curve in curves}) > 1
        breaks = np.array([drift.at for drift in drifts], np.int64)
        listed = []
        for curve in curves:
            record: dict[str, Any] = {"rate": curve.rate, "title": _title(curve.rate)}
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
            "name": name,
            "first": trace.first,
            "last": max(trace.events - 1, trace.first + 1),
            "drifts": [{"at": drift.at, "since": drift.since} for drift in drifts],
            "curves": listed,
            "shown": min(enough, SHOWN),
            "clock": _clock(trace),
        }


def _setting(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:50])) + (f" and {len(value) - 50} more" if len(value) > 50 else "")
    return str(value)


WORDS = {
    "tpr": "tpr, the share of positives that were found (recall)",
    "tnr": "tnr, the share of negatives that were left alone",
    "ppv": "ppv, the share of alarms that were right (precision)",
    "npv": "npv, the share of all-clears that were right",
}


def _title(rate: str) -> str:
    if rate in WORDS:
        return WORDS[rate]
    kind, _, label = rate.partition(":")
    return f"{kind} of {label}" if label else rate


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

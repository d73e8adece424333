"""The rates over time within their bounds, as a matplotlib figure."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.escaping import shortened
from fourrates.findings import Drift, Finding
from fourrates.io import InputError
from fourrates.plain import counted
from fourrates.watch.trace import Curve, Trace, ordered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fourrates.watch import Watch

MOST = 12  # panels
NAME = 40  # characters of a name that a picture has room for

CURVE, BAND, DRIFT, WARN, END = "#1f5fbf", "#5a697d", "#b42318", "#a86400", "#1a7f5a"


def figure(trace: Trace, findings: Sequence[Finding] = (), title: str | None = None) -> Figure:
    """Draw the statistics of a trace, one panel each, those that moved first.

    Parameters
    ----------
    trace : Trace
        What was followed.
    findings : sequence of Finding
        Those of this segment.
    title : str, optional
        Above it all.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("drawing needs matplotlib: pip install 'fourrates[plot]'") from None

    class Drawing(Figure):
        """A figure that a notebook shows, whether or not pyplot, which would see to that, is imported."""

        def _repr_png_(self) -> bytes:
            return rendered(self, "png", 90)

    every, enough = ordered(trace.curves(), findings)
    curves = every[: min(enough, MOST)]
    several = len({curve.kind for curve in every}) > 1
    drawing = Drawing(figsize=(10, 1.1 + 1.7 * len(curves)), layout="constrained")
    panels: Any = drawing.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
    breaks = np.array([finding.at for finding in findings if isinstance(finding, Drift)], np.int64)
    for panel, curve in zip(panels, curves, strict=True):
        # A new concept is a new line.
        places = np.searchsorted(curve.events, breaks, side="right")
        x = np.insert(curve.events, places, breaks).astype(float)

        def broken(values: Any, places: Any = places) -> Any:
            return np.insert(values, places, np.nan)

        panel.fill_between(x, broken(curve.detect_low), broken(curve.detect_high), color=BAND, alpha=0.12, lw=0)
        panel.fill_between(x, broken(curve.warn_low), broken(curve.warn_high), color=BAND, alpha=0.18, lw=0)
        panel.plot(x, broken(curve.value), color=CURVE, lw=0.8)
        with np.errstate(invalid="ignore"):
            out = (curve.value < curve.warn_low) | (curve.value > curve.warn_high)
        panel.plot(curve.events[out], curve.value[out], ".", color=WARN, ms=2.5)
        for number, finding in enumerate(findings, 1):
            colour = DRIFT if isinstance(finding, Drift) else END if finding.closes else BAND
            if isinstance(finding, Drift):
                # Where it started, as far as that is known; else the warning that led to it.
                started = finding.started_between or (finding.since, finding.at)
                panel.axvspan(*started, color=DRIFT, alpha=0.15, lw=0)
            panel.axvline(finding.at, color=colour, lw=1.2, ls="-" if isinstance(finding, Drift) else "--")
            if panel is panels[0]:
                place = {"xy": (finding.at, 1.0), "xycoords": ("data", "axes fraction")}
                panel.annotate(f" {number}", **place, color=colour, va="top", fontweight="bold")
        # A label may look like a formula: names are shown as they are.
        panel.set_ylabel(shortened(curve.rate, NAME) + (f"\n{curve.kind}" if several else ""), parse_math=False)
        panel.set_ylim(*_extent(curve, breaks))
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlim(trace.first, max(trace.events - 1, trace.first + 1))
    _time_axis(panels[-1], trace)
    if title is not None:
        drawing.suptitle(shortened(title, 110), x=0.01, ha="left", parse_math=False)
    return drawing


def _extent(curve: Curve, breaks: Any) -> tuple[float, float]:
    """From the lowest to the highest value and bound, without the time after a start, when a rate has not settled."""
    if np.isnan(curve.value).all():  # a class that never came
        return -0.02, 1.02
    width = curve.detect_high - curve.detect_low
    if np.isnan(width).all():
        low, high = np.nanquantile(curve.value, (0.01, 0.99))
    else:
        kept = np.zeros(width.size, np.bool_)
        for part in np.split(np.arange(width.size), np.searchsorted(curve.events, breaks, side="right")):
            if part.size:
                usual = np.median(width[part])
                first = int(np.argmax(width[part] >= usual / 2))
                kept[part[first:]] = width[part[first:]] <= 1.5 * usual
        low = np.fmin(curve.value, curve.detect_low)[kept].min()
        high = np.fmax(curve.value, curve.detect_high)[kept].max()
    room = max(0.06 * (high - low), 0.01)
    return max(low - room, -0.02), min(high + room, 1.02)


def _time_axis(panel: Any, trace: Trace) -> None:
    """Label the axis with times where these are known, with events elsewhere."""
    events, times = trace.clock()

    def label(event: float, _: object = None) -> str:
        if not events:
            return f"{event:,.0f}"
        time = np.int64(np.interp(event, events, times)).astype("M8[us]")
        return str(time.astype("M8[D]" if times[-1] - times[0] > 3 * 86_400e6 else "M8[s]")).replace("T", "\n")

    panel.xaxis.set_major_formatter(label)
    panel.set_xlabel("event" if not events else "")


def drawn(watch: Watch, findings: Sequence[Finding], segment: str | None = None) -> Figure:
    """Draw a segment of a watch; the first that drifted, or the first of all, if none is named."""
    traces = watch.traces
    findings = [finding for finding in findings if finding.kind != "shift"]
    if segment is not None and segment not in watch.segments:
        raise KeyError(f"no segment {segment!r}")
    if segment is not None and segment not in traces:
        raise InputError(f"segment {segment!r} was not followed: only the first ones are")
    name = segment if segment is not None else next((one.segment for one in findings if one.segment in traces), None)
    name = name if name in traces else next(iter(traces))
    own = [finding for finding in findings if finding.segment == name]
    title = f"{shortened(name, NAME)}: " if name is not None else ""
    title += f"{counted(finding.kind for finding in own)} in {watch.segments[name].events:,} events"
    return figure(traces[name], own, title)


def save_figure(watch: Watch, findings: Sequence[Finding], path: str | os.PathLike[str]) -> None:
    """Draw the first segment that drifted, or the first of all, into a PNG, SVG or PDF file."""
    from fourrates import files

    suffix = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    drawing = drawn(watch, findings)
    if suffix not in ("png", "svg", "pdf"):
        raise InputError(f"--plot {path}: a picture ends in .png, .svg or .pdf")
    files.write(path, rendered(drawing, suffix, 150))


def rendered(drawing: Figure, kind: str, dpi: int) -> bytes:
    """A figure as the bytes of a file."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in letters that the font lacks: boxes will do
        drawing.savefig(content, format=kind, dpi=dpi)
    return content.getvalue()

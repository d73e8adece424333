"""The rates that moved over time, as a matplotlib figure, each with accuracy, the band of normal and the findings."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.escaping import shortened
from fourrates.findings import Drift, Finding, RateState, Share, Shift
from fourrates.io import InputError
from fourrates.labels import rate_names
from fourrates.lazy import install
from fourrates.plain import counted
from fourrates.watch.now import harm, rate_in_words
from fourrates.watch.trace import Trace, normal_levels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fourrates.watch import Deployment, Watch

MOST = 8  # panels
NAME = 40  # characters of a name that a picture has room for
LEGEND = (
    *("rate", "accuracy", "normal, 90 % of points", "started between (90 %)"),
    *("alarm", "recovery", "withdrawal", "acceptance", "deployed"),
)
CURVE, SOFT, BAND, DRIFT, END = "#27364d", "#565f6b", "#5a697d", "#b45309", "#1d5fbf"


class Panel(NamedTuple):
    """A rate of a segment, with the findings of the segment and how the rate is now."""

    trace: Trace
    segment: str | None
    rate: str
    findings: Sequence[Finding]
    state: RateState | None


def drawn(watch: Watch, findings: Sequence[Finding], segment: str | None = None) -> Figure:
    """Draw a segment of a watch; the segments that moved, those with most harm first, if none is named."""
    traces = watch.traces
    findings = [finding for finding in findings if not isinstance(finding, Shift) and finding.version == watch.version]
    if segment is not None and segment not in watch.segments:
        raise KeyError(f"no segment {segment!r}")
    if segment is not None and segment not in traces:
        raise InputError(f"segment {segment!r} was not followed, only the first ones are")
    opened = [drift.segment for drift in watch.now().open]
    names = [segment] if segment is not None else [*opened, *(finding.segment for finding in findings)]
    panels = []
    for name in dict.fromkeys(name for name in names if name in traces) or [*traces][:1]:
        own = [finding for finding in findings if finding.segment == name]
        states = watch.segments[name].rates
        away = [rate for rate, state in states.items() if state.state != "normal"]
        moved = dict.fromkeys([*away, *(change.rate for finding in own for change in finding.changes)])
        known = [rate for rate in moved if traces[name].observed(rate) is not None]
        classes = len(watch.detector.labels.values)
        rates = known or rate_names(watch.detector.labels.values)[:classes][::-1]
        panels += [Panel(traces[name], name, rate, own, states.get(rate)) for rate in rates[:MOST]]
    own = [finding for finding in findings if segment is None or finding.segment == segment]
    events = watch.events if segment is None else watch.segments[segment].events
    counts = f"{counted(finding.kind for finding in own)} in {events:,} events"
    return figure(panels[:MOST], _headline(watch, segment), counts, watch.deployments)


def _headline(watch: Watch, segment: str | None) -> str:
    """The worst open drift in a few words, with its rate now and normally, segment and start."""
    now = watch.now()
    opened = [drift for drift in now.open if segment in (None, drift.segment)]
    if not opened:
        return "No drift is open" if now.holds and not now.unknown else now.headline()[0]
    rate, state = max(opened[0].rates.items(), key=lambda item: harm(item[1]))
    value = f" {state.now.value:.3f}" if state.now is not None and state.now.n >= state.enough else " moved"
    normal = f", normally {state.normal.value:.3f}" if state.normal is not None and state.normal.n else ""
    where = "" if opened[0].segment is None else f" in {shortened(opened[0].segment, NAME)}"
    return f"Drifted{where}: {shortened(rate_in_words(rate), NAME)}{value}{normal}, {opened[0].since}"


def figure(panels: Sequence[Panel], headline: str, found: str, deployments: Sequence[Deployment] = ()) -> Figure:
    """Draw panels below each other, along one axis."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(f"drawing needs matplotlib: {install('plot')}") from None

    class Drawing(Figure):
        """A figure that a notebook shows, whether or not pyplot, which would see to that, is imported."""

        def _repr_png_(self) -> bytes:
            return rendered(self, "png", 90)

    drawing = Drawing(figsize=(10, 1.3 + 1.9 * len(panels)), layout="constrained")
    axes: Any = drawing.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    timed = all(panel.trace.clock()[0].size for panel in panels)
    for panel, ax in zip(panels, axes, strict=True):
        _draw(panel, ax, timed)
        for deployment in deployments:
            at = deployment.time if timed else deployment.event if panel.segment is None else None
            if deployment.event and at is not None:
                ax.axvline(at, color=SOFT, lw=1.2, ls=(0, (1, 2)), label="deployed")
                ax.text(
                    at, 0.03, f" {shortened(deployment.version, 20)}", transform=ax.get_xaxis_transform(), fontsize=8
                )
    if timed:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()
        axes[-1].xaxis.set_major_locator(locator)
        axes[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        axes[-1].locator_params(axis="x", integer=True)
        axes[-1].xaxis.set_major_formatter(lambda event, _: f"{event:,.0f}")
        axes[-1].set_xlabel("event")
    title = "\n".join(shortened(line, 110) for line in (headline, found) if line)
    drawing.suptitle(title, x=0.01, ha="left", parse_math=False)
    shown = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    named = [name for name in LEGEND if name in shown]
    drawing.legend([shown[name] for name in named], named, loc="outside lower left", ncols=7, frameon=False, fontsize=9)
    return drawing


def _draw(panel: Panel, ax: Any, timed: bool) -> None:
    """Draw one rate."""
    trace = panel.trace
    clock = trace.clock()

    def x(events: Any) -> Any:
        if not timed:
            return np.asarray(events, float)
        return np.interp(events, *clock).astype(np.int64).astype("M8[us]")

    curve, whole = trace.curve(panel.rate), trace.curve("accuracy")
    levels = normal_levels(trace, panel.rate, panel.findings, panel.state)
    dispersion = panel.state.dispersion if panel.state is not None and panel.state.dispersion else 1.0
    for (start, level), end in zip(levels, [*(start for start, _ in levels[1:]), trace.events], strict=True):
        share = Share.of(level * curve.n, curve.n, dispersion)
        span = x([start, end])
        ax.fill_between(span, share.lower, share.upper, color=BAND, alpha=0.17, lw=0, label="normal, 90 % of points")
        ax.plot(span, [level, level], color=BAND, lw=0.8, alpha=0.7)
    if panel.rate != "error":
        ax.plot(x(whole.event), whole.value, ":", color=SOFT, lw=1.1, label="accuracy")
    ax.plot(x(curve.event), curve.value, color=CURVE, lw=1.4, label="rate")
    for finding in panel.findings:
        if not any(change.rate == panel.rate for change in finding.changes):
            continue
        if isinstance(finding, Drift):
            # When it started, as far as that is known; else the warning that led to it.
            started = x(finding.started_between or (finding.since, finding.at))
            ax.axvspan(*started, color=DRIFT, alpha=0.15, lw=0, label="started between (90 %)")
            ax.axvline(x(finding.at), color=DRIFT, lw=1.6, label="alarm")
        elif finding.kind in ("recovery", "withdrawal", "acceptance"):
            style = ":" if finding.kind == "withdrawal" else "--"
            ax.axvline(x(finding.at), color=END, lw=1.6, ls=style, label=finding.kind)
    segment = "" if panel.segment is None else f"{shortened(panel.segment, NAME)}: "
    # A label may look like a formula, so names are shown as they are.
    ax.set_title(segment + shortened(rate_in_words(panel.rate), NAME), loc="left", fontsize=10, parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.set_xlim(*x([trace.first, max(trace.events - 1, trace.first + 1)]))


def save_figure(watch: Watch, findings: Sequence[Finding], path: str | os.PathLike[str]) -> None:
    """Draw the segments that moved into a PNG, SVG or PDF file."""
    from fourrates import files

    suffix = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    drawing = drawn(watch, findings)
    if suffix not in ("png", "svg", "pdf"):
        raise InputError(f"{path}: a picture ends in .png, .svg or .pdf")
    files.write(path, rendered(drawing, suffix, 150))


def rendered(drawing: Figure, kind: str, dpi: int) -> bytes:
    """A figure as the bytes of a file."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in letters that the font lacks; boxes will do
        drawing.savefig(content, format=kind, dpi=dpi)
    return content.getvalue()

"""The paper's figures, drawn with matplotlib: each function takes numbers and gives a figure.

Colours are those of Okabe and Ito, which people with any common kind of colour blindness can tell apart; lines differ
in their strokes as well.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paper.power import Power
from paper.settings import PLUGIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paper.single import SingleRun

COLOURS = {"LFR": "#0072B2", PLUGIN: "#56B4E9", "NFR": "#D55E00", "DDM": "#009E73", "DDM-OCI": "#CC79A7"}
STROKES = {"LFR": "-", PLUGIN: (0, (1, 1)), "NFR": "-", "DDM": (0, (4, 1.5)), "DDM-OCI": (0, (3, 1, 1, 1))}
INK, SOFT = "#1d2127", "#5c6570"


def saved(drawing: Figure, form: str) -> bytes:
    """A figure as "svg" or "png", the same bytes for the same numbers."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "fourrates", "svg.fonttype": "path"}):
        drawing.savefig(
            content, format=form, dpi=150, facecolor="white", metadata={"Date": None} if form == "svg" else None
        )
    drawing.set_layout_engine("none")  # its parts stay where they are: placing them takes as long as drawing them
    return content.getvalue()


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _tidy(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)


# Figure 1 ----------------------------------------------------------------------------------------------------


def single_run(run: SingleRun) -> Figure:
    """R and P-hat of the four rates over one stream, and where each detector reports the change."""
    drawing = _figure(10, 8)
    panels = drawing.subplots(len(run.rates), 1, sharex=True)
    for panel, rate in zip(panels, run.rates, strict=True):
        panel.plot(run.events, run.linear[rate], ".", ms=1.6, color=COLOURS["LFR"], label="R (LFR)", rasterized=True)
        panel.plot(run.events, run.naive[rate], "-", lw=1.8, color=COLOURS["NFR"], label="P-hat (NFR)")
        panel.axvline(run.change, color="black", lw=1.4, ls="--", label=f"true change, {run.change:,}")
        for name, found in (("LFR", run.found["LFR"]), ("NFR", run.found["NFR"])):
            for i, at in enumerate(found):
                label = f"{name} reports, {', '.join(f'{one:,}' for one in found)}" if i == 0 else None
                panel.axvline(at, color=COLOURS[name], lw=1.6, ls=(0, (5, 2)) if name == "NFR" else "-", label=label)
        panel.set_ylabel(rate)
        panel.set_ylim(0, 1.02)
        _tidy(panel)
    panels[-1].set_xlabel("event")
    panels[-1].set_xlim(0, run.events[-1] + 1)
    panels[-1].xaxis.set_major_formatter("{x:,.0f}")
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=9, frameon=False, markerscale=6)
    return drawing


# Figures 2 to 4 ----------------------------------------------------------------------------------------------


def power_surfaces(power: Power) -> Figure:
    """The power of R and of P-hat over lag and new rate, as surfaces and cut at some rates."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawing = _figure(12, 5.4)
    solid = drawing.add_subplot(1, 2, 1, projection="3d")
    lags = np.arange(1, len(power.linear) + 1)
    lag, rate = np.meshgrid(lags, power.q, indexing="ij")
    for values, name in ((power.linear, "LFR"), (power.naive, "NFR")):
        solid.plot_surface(
            lag, rate, values, color=COLOURS[name], alpha=0.75, rcount=40, ccount=20, lw=0.2, edgecolor="white"
        )
    solid.set_xlabel("lag k")
    solid.set_ylabel("new rate q")
    solid.set_zlabel("power")
    solid.set_zlim(0, 1)
    solid.set_xticks(range(0, len(lags) + 1, 50))
    solid.set_yticks((0.2, 0.4, 0.6, 0.8))
    solid.view_init(elev=24, azim=-128)
    solid.set_box_aspect(None, zoom=0.86)  # or the name of the upright axis is cut off
    names = {"LFR": "R (LFR)", "NFR": "P-hat (NFR)"}
    solid.legend(
        handles=[Patch(color=COLOURS[key], alpha=0.75, label=text) for key, text in names.items()],
        loc="upper left",
        frameon=False,
    )
    flat = drawing.add_subplot(1, 2, 2)
    for share, stroke in zip((0.5, 0.7, 0.8), ("-", (0, (5, 2)), (0, (1, 1.2))), strict=True):
        column = int(np.argmin(np.abs(np.array(power.q) - share)))
        for values, name in ((power.linear, "LFR"), (power.naive, "NFR")):
            flat.plot(lags, values[:, column], color=COLOURS[name], ls=stroke, lw=1.8)
    flat.set_xlabel("lag k (observations after the change)")
    flat.set_ylabel("power")
    flat.set_ylim(0, 1.02)
    flat.set_title("the same, cut at three new rates", fontsize=10)
    keys = [Line2D([], [], color=COLOURS[key], lw=1.8, label=text) for key, text in names.items()]
    keys += [
        Line2D([], [], color=SOFT, ls=stroke, label=f"{power.p:g} to {share:g}")
        for share, stroke in zip((0.5, 0.7, 0.8), ("-", (0, (5, 2)), (0, (1, 1.2))), strict=True)
    ]
    flat.legend(handles=keys, frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 0.8))
    _tidy(flat)
    return drawing


def power_differences(powers: Sequence[Power]) -> Figure:
    """What R is ahead of P-hat along the lag, a panel for each old rate and a curve for each new one."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = colormaps["viridis"]
    drawing = _figure(12, 3.6)
    panels = drawing.subplots(1, len(powers), sharex=True, sharey=True)
    for panel, power in zip(panels, powers, strict=True):
        lags = np.arange(1, len(power.linear) + 1)
        for column, q in enumerate(power.q):
            same = abs(q - power.p) < 1e-9
            panel.plot(
                lags,
                power.difference[:, column],
                color="black" if same else colours(q),
                lw=1.6 if same else 1.2,
                ls=(0, (2, 1.5)) if same else "-",
            )
        panel.axhline(0, color=SOFT, lw=0.8)
        panel.set_title(f"from p = {power.p:g}", fontsize=10)
        panel.set_xlabel("lag k")
        _tidy(panel)
    panels[0].set_ylabel("power of R less that of P-hat")
    drawing.colorbar(ScalarMappable(Normalize(0, 1), colours), ax=list(panels), label="to q (dashed: q = p)", pad=0.01)
    return drawing


def power_heatmap(rates: Sequence[float], values: npt.NDArray[np.float64], lags: int) -> Figure:
    """The power of R after so many observations, old rates by new rates."""
    half = (rates[1] - rates[0]) / 2
    drawing = _figure(6.6, 5.4)
    panel = drawing.subplots()
    ends = (rates[0] - half, rates[-1] + half)
    image = panel.imshow(values, origin="lower", extent=(*ends, *ends), vmin=0, vmax=1, cmap="cividis", aspect="equal")
    lines = panel.contour(rates, rates, values, levels=(0.1, 0.5, 0.9), colors=("white", "white", INK), linewidths=1.1)
    panel.clabel(lines, fmt="%g", fontsize=8)
    panel.set_xlabel("new rate q")
    panel.set_ylabel("old rate p")
    drawing.colorbar(image, ax=panel, label=f"power of R, {lags} observations after the change")
    return drawing


# Histograms --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detections:
    """When each detector reported, in all runs together: one panel of a histogram."""

    title: str
    drifts: Mapping[str, Sequence[int]]
    runs: int


def histogram(panels: Sequence[Detections], length: int, changes: Sequence[int], width: int) -> Figure:
    """Overlapping histograms of detection times, LFR's counts above its bars, the true changes as dashed lines."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    edges = np.arange(0, length + width, width)
    drawing = _figure(11, 0.8 + 3.2 * len(panels))
    axes = np.atleast_1d(drawing.subplots(len(panels), 1, sharex=True))
    for panel, own in zip(axes, panels, strict=True):
        tops = {name: np.histogram(times, edges)[0] for name, times in own.drifts.items()}
        panel.stairs(tops["LFR"], edges, fill=True, color=COLOURS["LFR"], alpha=0.55, lw=0)
        for name in reversed(list(tops)):
            panel.stairs(tops[name], edges, color=COLOURS[name], lw=1.3, ls=STROKES[name])
        for change in changes:
            panel.axvline(change, color="black", lw=1.1, ls="--", zorder=0)
        _label_bars(panel, tops["LFR"], edges)
        panel.set_ylabel(f"detections in {own.runs} run{'s' if own.runs != 1 else ''}")
        panel.set_title(own.title, fontsize=10, loc="left")
        panel.set_ylim(0, 1.12 * max(1, max(top.max() for top in tops.values())))
        panel.yaxis.get_major_locator().set_params(integer=True)
        _tidy(panel)
    axes[-1].set_xlim(0, length)
    axes[-1].set_xlabel(f"event (bins of {width:,})")
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    keys: list[Any] = []
    for name in panels[0].drifts:
        if name == "LFR":
            keys.append(Patch(facecolor=COLOURS[name] + "8c", edgecolor=COLOURS[name], label="LFR (count above bar)"))
        else:
            keys.append(Line2D([], [], color=COLOURS[name], ls=STROKES[name], lw=1.6, label=name))
    keys.append(Line2D([], [], color="black", ls="--", lw=1.1, label="true change"))
    drawing.legend(handles=keys, loc="outside upper center", ncols=len(keys), frameon=False, fontsize=9)
    return drawing


def _label_bars(panel: Any, tops: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2, foreground="white")]  # readable across the lines of the others
    for top, left, right in zip(tops, edges, edges[1:], strict=False):
        if top:
            panel.annotate(
                str(top),
                ((left + right) / 2, top),
                (0, 1.5),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=6.5,
                color=COLOURS["LFR"],
                fontweight="bold",
                path_effects=halo,
                zorder=5,
            )


# Beyond the paper --------------------------------------------------------------------------------------------

METHODS = ("#0072B2", "#56B4E9", "#000000", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#999933")
MARKS = "osD^vPX*"


@dataclass(frozen=True, slots=True)
class Powers:
    """One panel: the power of each method along one quantity."""

    title: str
    along: str
    places: Sequence[float]
    powers: Mapping[str, Sequence[float]]


def power_panels(panels: Sequence[Powers], false_alarms: float) -> Figure:
    """The power of several methods, a panel for each quantity it depends on; the false alarms as a dotted line."""
    drawing = _figure(12, 4.4)
    axes = np.atleast_1d(drawing.subplots(1, len(panels), sharey=True))
    for panel, own in zip(axes, panels, strict=True):
        # At even distances: dimensions grow by factors, and degrees need no scale.
        places = np.arange(len(own.places))
        for number, (name, powers) in enumerate(own.powers.items()):
            panel.plot(
                places, powers, color=METHODS[number % 8], marker=MARKS[number % 8], ms=5, lw=1.5, label=name, alpha=0.9
            )
        panel.axhline(false_alarms, color=SOFT, lw=1, ls=(0, (1, 1.5)))
        panel.set_xticks(places, [f"{place:g}" for place in own.places])
        panel.set_xlabel(own.along)
        panel.set_title(own.title, fontsize=10, loc="left")
        panel.set_ylim(0, 1.02)
        _tidy(panel)
    axes[0].set_ylabel(f"power at {false_alarms:.0%} false alarms")
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=9)
    return drawing

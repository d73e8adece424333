"""``fourrates expect``: how soon a fall of a rate would be found."""

from __future__ import annotations

import math
from typing import Any

import click
import numpy as np

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.cli.errors import checked
from fourrates.detectors.base import rate_names
from fourrates.detectors.four_rates import confusion_counts
from fourrates.io import InputError
from fourrates.labels import Labels

FALLS = (2, 5, 10, 20)  # points
EVENTS = 2_000_000  # drawn for each fall, at most about so many


@command
@argument("counts", metavar="COUNTS", help="Confusion counts, true class by true class, as in 900,100,200,800.")
@opt.detector
@opt.arl
@option("--fall", multiple=True, metavar="POINTS", type=float, help="May be repeated.  [default: 2, 5, 10, 20]")
@option("--horizon", metavar="N", type=click.IntRange(min=1), default=20_000, help="Events to look ahead.")
@option("--history", metavar="N", type=click.IntRange(min=0), default=10_000, help="Events before the fall.")
@opt.json
def expect(
    counts: str,
    detector: str | None,
    arl: str | None,
    fall: tuple[float, ...],
    horizon: int,
    history: int,
    json: bool,
) -> None:
    """Say how soon a fall of each recall would be found, by running the detector on streams that have one.

    Examples
    --------
      fourrates expect 900,100,200,800
      fourrates expect 9800,100,20,80 --budget 1000000 --fall 30
    """
    from fourrates.budget.simulation import simulated_delay

    matrix = _matrix(counts)
    labels = Labels(range(len(matrix)))
    made = opt.make_detector(opt.spec(detector or opt.DEFAULT), labels, arl)
    streams = max(50, EVENTS // (horizon + history))
    found: list[dict[str, Any]] = []
    for i, rate in enumerate(rate_names(labels.values)[: len(matrix)]):
        for points in fall or FALLS:
            after = _fallen(matrix, i, points / 100)
            if after is None:
                continue
            with checked():
                delay = simulated_delay(made, matrix, after, streams=streams, history=history, horizon=horizon)
            found.append(
                {
                    "rate": rate,
                    "from": matrix[i, i] / matrix[i].sum(),
                    "to": after[i, i] / after[i].sum(),
                    "median": delay.median if math.isfinite(delay.median) else None,
                    "found": delay.within(horizon),
                    "standard_error": delay.standard_error(horizon),
                }
            )
    if json:
        about = {"detector": type(made).__name__, "parameters": made.parameters}
        print(output.as_json({**about, "horizon": horizon, "streams": streams, "falls": found}))
        return
    table = output.grid()
    for name in ("rate", "from → to", "found after, median", f"found within {horizon:,} events"):
        table.add_column(name, justify="left" if name == "rate" else "right")
    for one in found:
        median = f"more than {horizon:,} events" if one["median"] is None else f"{one['median']:,.0f} events"
        share = f"{one['found']:.0%} ± {one['standard_error']:.0%}"
        table.add_row(one["rate"], f"{one['from']:.3f} → {one['to']:.3f}", median, share)
    output.console().print(table)


def _matrix(text: str) -> Any:
    counts = opt.counts_of(text, "COUNTS")
    with checked():
        return confusion_counts(counts, Labels(range(len(counts)))).astype(np.float64)


def _fallen(matrix: Any, i: int, by: float) -> Any:
    """The counts after a recall fell; None where it is not that high. Errors go where they went before."""
    total, right = matrix[i].sum(), matrix[i, i]
    if not by > 0:
        raise InputError(f"--fall {100 * by:g}: a fall is a positive number of points")
    if right / total < by:
        return None
    after = matrix.copy()
    others = np.arange(len(matrix)) != i
    wrong = matrix[i, others]
    share = wrong / wrong.sum() if wrong.any() else np.full(wrong.size, 1 / wrong.size)
    after[i, i] = right - by * total
    after[i, others] = wrong + by * total * share
    return after

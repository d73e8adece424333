"""``fourrates bounds``: how far a rate may stray by chance."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from fourrates import null as law
from fourrates.cli import options as opt
from fourrates.cli import output


def bounds(
    n: Annotated[int, typer.Argument(metavar="N", help="Observations of the rate.", show_default=False)],
    k: Annotated[int, typer.Argument(metavar="K", help="How many of them were right.", show_default=False)],
    level: Annotated[
        list[float] | None,
        typer.Option("--level", metavar="P", help="Chance left outside, on each side; as often as you like."),
    ] = None,
    decay: Annotated[float, typer.Option(metavar="ETA", help="Weight of the past.")] = 0.9,
    null: Annotated[Literal["exact", "plugin", "monte-carlo"], typer.Option(help="Which law.")] = "exact",
    json: opt.Json = False,
) -> None:
    """Say between which bounds the statistic of a rate stays, given its counts, as long as nothing changes.

    [bold]Examples[/bold]

      fourrates bounds 50 45

      fourrates bounds 100000 90000 --level 1e-5 --decay 0.98
    """
    levels = sorted(level or (0.01, 1e-5), reverse=True)
    found = [(one, law.bounds(n, k, one, decay, null)) for one in levels]
    if json:
        rows = [{"level": one, "lower": b.lower, "upper": b.upper} for one, b in found]
        print(output.as_json({"n": n, "k": k, "decay": decay, "null": null, "bounds": rows}))
        return
    table = output.grid()
    for name in ("level", "lower", "upper"):
        table.add_column(name, justify="right")
    for one, b in found:
        table.add_row(f"{one:g}", f"{b.lower:.4f}", f"{b.upper:.4f}")
    output.console().print(table)

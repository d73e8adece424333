"""``fourrates design``: from a budget of false alarms to a level."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import typer

from fourrates.cli import options as opt
from fourrates.cli import output


def design(
    arl: Annotated[
        float, typer.Argument(metavar="EVENTS", help="Events between two false alarms.", show_default=False)
    ],
    decay: Annotated[
        list[float] | None, typer.Option(metavar="ETA", help="Weight of the past; as often as you like. [default: 0.9]")
    ] = None,
    sides: Annotated[Literal["both", "down", "up"], typer.Option(help="The moves that raise an alarm.")] = "both",
    json: opt.Json = False,
) -> None:
    """Say which detection level keeps a budget of false alarms, and what it means for rates of different height.

    It is the level of one decay, or of several that share it, for all rates.

    [bold]Examples[/bold]

      fourrates design 100000

      fourrates design 1200000 --decay 0.98 --sides down
    """
    from fourrates.budget.levels import design as find

    decays = tuple(decay or (0.9,))
    found = find(arl, decays, sides)
    if json:
        lengths = [
            {"rate": rate, "run_length": length if math.isfinite(length) else None}
            for rate, length in found.run_lengths.items()
        ]
        print(output.as_json({"arl": arl, "decay": decays, "sides": sides, "detect": found.detect, "rates": lengths}))
        return
    print(f"detect {found.detect:.3g} gives one false alarm in {arl:,.0f} events, or fewer")
    table = output.grid()
    table.add_column("if all rates are", justify="right")
    table.add_column("events between false alarms, at least", justify="right")
    for rate, length in found.run_lengths.items():
        table.add_row(f"{rate:g}", f"{length:,.0f}" if math.isfinite(length) else "no alarms")
    output.console().print(table)

"""``fourrates design``: from a budget of false alarms to a level."""

from __future__ import annotations

import math
from typing import Literal

import click

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.cli.errors import checked


@command
@argument("arl", metavar="EVENTS", type=float, help="Events between two false alarms.")
@option(
    "--decay", multiple=True, metavar="ETA", type=float, help="Weight of the past; may be repeated.  [default: 0.9]"
)
@option("--sides", type=click.Choice(["both", "down", "up"]), default="both", help="The moves that raise an alarm.")
@opt.json
def design(arl: float, decay: tuple[float, ...], sides: Literal["both", "down", "up"], json: bool) -> None:
    """Say which detection level keeps a budget of false alarms.

    It is the level of one decay, or of several that share it, for all rates; what it means for a high rate and a low
    one is shown.

    Examples
    --------
      fourrates design 100000
      fourrates design 1200000 --decay 0.98 --sides down
    """
    from fourrates.budget.levels import design as find

    decays = decay or (0.9,)
    with checked():
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

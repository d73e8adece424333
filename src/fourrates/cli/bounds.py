"""``fourrates bounds``: how far a rate may stray by chance."""

from __future__ import annotations

import click

from fourrates import null as law
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.cli.errors import checked
from fourrates.null import Null


@command
@argument("n", metavar="N", type=int, help="Observations of the rate.")
@argument("k", metavar="K", type=int, help="How many of them were right.")
@option(
    "--level",
    multiple=True,
    metavar="P",
    type=float,
    help="Significance level: the probability left outside, on each side; may be repeated.  [default: 0.01, 1e-5]",
)
@option("--decay", metavar="ETA", type=float, default=0.9, help="Weight of the past.")
@option("--null", type=click.Choice(["exact", "plugin", "monte-carlo"]), default="exact", help="Which law.")
@opt.json
def bounds(n: int, k: int, level: tuple[float, ...], decay: float, null: Null, json: bool) -> None:
    """Give the bounds of a rate's statistic while nothing changes.

    Examples
    --------
      fourrates bounds 50 45
      fourrates bounds 100000 90000 --level 1e-5 --decay 0.98
    """
    levels = sorted(level or (0.01, 1e-5), reverse=True)
    with checked():
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

"""``fourrates expect``, the time to find a fall of a rate, for your volume and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.budget.words import DEFAULT_WORDS, UNITS, duration, is_duration, run_length
from fourrates.budget.words import volume as events_per_second
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.cli.errors import checked
from fourrates.detectors.four_rates import confusion_counts
from fourrates.io import InputError
from fourrates.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from fourrates.budget.falls import Fall

USUAL = "720,80,40,160"
HISTORY, LONGEST = 10_000, 100_000  # events before the fall: 10,000, or a month of them if the volume is known


@command
@argument(
    "counts",
    metavar="[COUNTS]",
    required=False,
    help="Confusion counts, true class by true class, as in 900,100,200,800. If not given, a classifier with 20 % "
    "positives, tnr 0.9 and tpr 0.8.",
)
@opt.detector
@opt.arl
@option("--volume", metavar="RATE", help="Events there are, as in 40000/day. Delays are then in time as well.")
@option("--fall", multiple=True, metavar="POINTS", type=float, help="May be repeated.  [default: 2, 5, 10, 20]")
@opt.json
def expect(
    counts: str | None,
    detector: str | None,
    arl: str | None,
    volume: str | None,
    fall: tuple[float, ...],
    json: bool,
) -> None:
    """Simulate how soon a fall of each recall would be found.

    The detector is run on streams that have such a fall.

    Examples
    --------
      fourrates expect 900,100,200,800
      fourrates expect --volume 40000/day --budget 'one a quarter'
      fourrates expect 9800,100,20,80 --budget 1000000 --fall 30
    """
    from fourrates.budget.falls import POINTS, falls

    matrix = _matrix(counts or USUAL)
    if counts is None and not json:
        opt.say("for a classifier with 20 % positives, tnr 0.9 and tpr 0.8; give COUNTS for yours")
    rate = None if volume is None else _volume(volume)
    chosen = opt.spec(detector or opt.DEFAULT)
    made = opt.make_detector(chosen, Labels(range(len(matrix))), _budget(arl, chosen, rate))
    history = HISTORY if rate is None else int(min(max(rate * UNITS["month"], HISTORY), LONGEST))
    with checked():
        found = falls(made, matrix, fall or POINTS, history=history)
    budget = made.parameters.get("arl")
    if json:
        about = {"detector": type(made).__name__, "parameters": made.parameters, "history": history}
        per_day = None if rate is None else rate * UNITS["day"]
        print(output.as_json({**about, "per_day": per_day, "falls": [one.to_dict(per_day) for one in found]}))
        return
    if rate is not None and budget is not None:
        every = f"{rate * UNITS['day']:,.0f} events a day: one false alarm in {budget:,.0f} events is one in "
        opt.say(every + duration(budget / rate))
    output.console().print(fall_table(found, rate))


def fall_table(found: Sequence[Fall], rate: float | None) -> Table:
    """One row per fall, with from, to, and the delay in events and, if `rate` is known, in time."""
    table = output.grid()
    for name in ("rate", "from → to", "found after, median", *([] if rate is None else ["that is"]), "found within"):
        table.add_column(name, justify="left" if name == "rate" else "right")
    for one in found:
        beyond = one.median is None
        median = f"more than {one.horizon:,} events" if one.median is None else f"{one.median:,.0f} events"
        events = one.horizon if one.median is None else one.median
        time = [] if rate is None else [("more than " if beyond else "") + duration(events / rate)]
        share = f"{one.found:.0%} ± {one.standard_error:.0%} in {one.horizon:,}" if one.streams else "not simulated"
        share = "no sooner than a false alarm" if one.lost else share
        table.add_row(output.literal(one.rate), f"{one.before:.3f} → {one.after:.3f}", median, *time, share)
    return table


def _volume(text: str) -> float:
    with checked():
        return events_per_second(text, "--volume")


def _budget(arl: str | None, chosen: opt.Spec, rate: float | None) -> str | None:
    """The budget in events. A budget of time needs the volume; without one the default applies."""
    if "arl" in chosen.parameters or "detect" in chosen.parameters:
        return arl
    with checked():
        if rate is None:
            if arl is not None and is_duration(arl, "--budget"):
                raise InputError(f"--budget {arl!r}: add --volume, such as 40000/day")
            return arl
        return str(run_length(arl or DEFAULT_WORDS, rate, "--budget"))


def _matrix(text: str) -> Any:
    counts = opt.counts_of(text, "COUNTS")
    with checked():
        return confusion_counts(counts, Labels(range(len(counts)))).astype(np.float64)

"""``fourrates expect``, the time to find a fall of a rate, for your volume and budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fourrates.budget.falls import POINTS, Fall, fallen, falls
from fourrates.budget.words import DEFAULT_WORDS, UNITS, duration, is_duration, run_length
from fourrates.budget.words import volume as events_per_second
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.cli.errors import checked
from fourrates.detectors.four_rates import confusion_counts
from fourrates.diagnosis.result import fall_table
from fourrates.frames import make
from fourrates.io import InputError
from fourrates.labels import Labels, rate_names

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
    with checked():
        given = opt.counts_of(counts or USUAL, "COUNTS")
        labels = Labels(range(len(given)))
        matrix = confusion_counts(given, labels).astype(np.float64)
        per_second = None if volume is None else events_per_second(volume, "--volume")
    if counts is None and not json:
        opt.say("for a classifier with 20 % positives, tnr 0.9 and tpr 0.8; give COUNTS for yours")
    chosen = opt.spec(detector or opt.DEFAULT)
    with checked():
        budget = _budget(arl, chosen, per_second)
        made = make(chosen.kind, labels, chosen.parameters, budget=budget, on_message=opt.say, name="--budget")
    history = HISTORY if per_second is None else int(min(max(per_second * UNITS["month"], HISTORY), LONGEST))
    with checked():
        simulated = falls(made, matrix, fall or POINTS, history=history)
    for sentence in _impossible(matrix, labels, fall or POINTS):
        opt.say(sentence)
    if not simulated:
        raise InputError("no recall can fall by that many points")
    if json:
        about = {"detector": type(made).__name__, "parameters": made.parameters, "history": history}
        per_day = None if per_second is None else per_second * UNITS["day"]
        print(output.as_json({**about, "per_day": per_day, "falls": [fall.to_dict(per_day) for fall in simulated]}))
        return
    if per_second is not None and (length := made.parameters.get("arl")) is not None:
        every = f"{per_second * UNITS['day']:,.0f} events a day: one false alarm in {length:,.0f} events is one in "
        opt.say(every + duration(length / per_second))
    print_falls(simulated, per_second)


def _impossible(matrix: npt.NDArray[np.float64], labels: Labels, points: Sequence[float]) -> Iterator[str]:
    """Sentences about falls that are larger than a recall, which therefore have no row."""
    for place, rate in enumerate(rate_names(labels.values)[: len(matrix)]):
        larger = [f"{by:g}" for by in points if fallen(matrix, place, by) is None]
        if larger:
            recall = matrix[place, place] / matrix[place].sum()
            yield f"{rate} is {recall:.3f} and cannot fall by {' or '.join(larger)} points"


def print_falls(falls: Sequence[Fall], per_second: float | None) -> None:
    table = output.grid()
    titles, rows = fall_table(falls, per_second)
    for title in titles:
        table.add_column(title, justify="left" if title == "rate" else "right")
    for row in rows:
        table.add_row(*map(output.literal, row))
    output.console().print(table)


def _budget(arl: str | None, chosen: opt.Spec, per_second: float | None) -> str | None:
    """The budget in events. A budget of time needs the volume; without one the default applies."""
    if "arl" in chosen.parameters or "detect" in chosen.parameters:
        return arl
    if per_second is not None:
        return str(run_length(arl or DEFAULT_WORDS, per_second, "--budget"))
    if arl is not None and is_duration(arl, "--budget"):
        raise InputError(f"--budget {arl!r}: add --volume, such as 40000/day")
    return arl

"""``fourrates check``: profile a stream before watching it."""

from __future__ import annotations

import sys

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import Stopped, checked
from fourrates.cli.expect import fall_table
from fourrates.escaping import printable

identity = option("--id", section=opt.DATA, metavar="COLUMN", help="Column of ids, to find duplicates; guessed.")
data = gathered(opt.Data, "data", opt.columns, opt.by, identity, opt.class_names)


@command
@opt.files
@data
@opt.arl
@opt.json
def check(files: tuple[str, ...], data: opt.Data, arl: str | None, json: bool) -> None:
    """Profile a stream before monitoring it.

    How many events a day and of which classes; duplicates, correlation, cycles of the day and the week, and whatever
    else breaks a budget; what a budget means here in alarms a month, and what size of fall would be found how soon.

    Examples
    --------
      fourrates check predictions.csv
      fourrates check scored.parquet --score proba --threshold 0.7
      fourrates check all-models.csv --by model --budget '1 per quarter' --json
    """
    from fourrates.diagnosis import diagnose

    classes = opt.labels_of(data.labels)
    try:
        with checked():
            found = diagnose(
                list(files),
                data.truth,
                data.pred,
                data.score,
                data.threshold,
                data.by,
                data.time,
                data.id,
                positive=opt.label_of(data.positive, classes),
                labels=classes,
                budget=arl,
            )
    except KeyboardInterrupt:
        raise Stopped("stopped before all was read; nothing was found out") from None
    if json:
        print(output.as_json(found.to_dict()))
        return
    for sentence in found.said:
        opt.say(sentence)
    for line in found.lines():
        print(output.wrapped(printable(line), sys.stdout))
    if found.falls:
        output.console().print(fall_table(found.falls, found.per_second))

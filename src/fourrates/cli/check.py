"""``fourrates check``, to profile a stream before watching it."""

from __future__ import annotations

import sys

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, gathered
from fourrates.cli.errors import Stopped, checked
from fourrates.cli.expect import print_falls
from fourrates.escaping import printable

data = gathered(opt.Data, "data", opt.columns, opt.by, opt.late, opt.class_names)


@command
@opt.files
@data
@opt.arl
@opt.json
def check(files: tuple[str, ...], data: opt.Data, arl: str | None, json: bool) -> None:
    """Profile a stream before monitoring it.

    Prints events a day, class mix, and whatever breaks a budget, such as duplicates, clustering and seasons of the day
    and the week. Then the alarms a month under the budget, and how soon falls would be found.

    Examples
    --------
      fourrates check predictions.csv
      fourrates check scored.parquet --score proba --threshold 0.7
      fourrates check all-models.csv --by model --budget '1 per quarter' --json
      fourrates check predictions.csv --labels-from labels.csv --id order_id
    """
    from fourrates.diagnosis import diagnose

    classes, positive = data.classes
    try:
        with checked():
            diagnosis = diagnose(
                list(files),
                data.truth,
                data.pred,
                data.score,
                data.threshold,
                data.by,
                data.time,
                data.id,
                positive=positive,
                labels=classes,
                budget=arl,
                labels_from=data.labels_from,
                order=data.order,  # type: ignore[arg-type]
            )
    except KeyboardInterrupt:
        raise Stopped("stopped before all was read; nothing was found out") from None
    if json:
        print(output.as_json(diagnosis.to_dict()))
        return
    for sentence in diagnosis.messages:
        opt.say(sentence)
    for line in diagnosis.lines():
        print(output.wrapped(printable(line), sys.stdout))
    if diagnosis.falls:
        print_falls(diagnosis.falls, diagnosis.segment_per_second)

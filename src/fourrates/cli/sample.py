"""``fourrates sample``: choose predictions to label, if you cannot label all."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from fourrates import files as disk
from fourrates.budget.words import event_rate
from fourrates.cli import options as opt
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import checked
from fourrates.events.columns import checked_column, listed_values, pick
from fourrates.events.door import Columns
from fourrates.io import Events, InputError
from fourrates.labelplan import LabelPlan
from fourrates.labels import Labels

NAMES = "label_probability", "other_probability"
data = gathered(
    opt.Data,
    "data",
    opt.columns,
    opt.by,
    option("--id", section=opt.DATA, metavar="COLUMN", help="Ids; guessed."),
    opt.classes,
)


class Part(NamedTuple):
    """Some predictions: raw columns and encoded predictions."""

    values: dict[str, Any]
    preds: Any
    times: Any
    segments: list[str] | None


class Predictions(Events):
    """Predictions without their labels."""

    def _guess(self, names: Sequence[str], where: str) -> Columns:
        columns = self._guess_pred(self._guess_kind(self.columns, "id", names), names)
        if columns.id is None:
            raise self._not_found("ids (--id)", names, where)
        return self._check_pred(columns, names, where)

    def parts(self) -> Iterator[Part]:
        """The valid predictions, table by table."""
        for table in self.tables():
            if not self.settled:
                self.resolve(list(table.data), table.times, table.source)
            self.door.columns = self.columns
            reading = self.door.reading(table)
            if self.bad == "reject" and (first := reading.bad.first) is not None:
                raise InputError(f"{table.place(first.row)}: {first.problem}")
            kept = np.arange(table.size) if reading.bad.kept is None else np.flatnonzero(reading.bad.kept)
            values = {name: pick(checked_column(table.data[name], name), kept) for name in self.columns.used()}
            assert reading.preds is not None
            keys = self.door.named_keys(reading)
            segments = None if keys is None else [self.keys[key] for key in keys.tolist()]
            yield Part(values, reading.preds[kept], None if reading.times is None else reading.times[kept], segments)


@command
@opt.files
@data
@opt.reference
@option("--labels", "asked", required=True, metavar="N/day|X%", help="How many can be labelled: 200/day, or 5%.")
@option("--guard", metavar="RATE=X,...", help="The falls to find: tnr=0.02 is two points; one that doubles the errors.")
@option("--key", default="", metavar="TEXT", help="Goes into every draw: the same key and id are drawn the same.")
@option("--output", "-o", section=opt.OUTPUT, metavar="FILE", type=click.Path(path_type=Path), help="Where to; here.")
def sample(
    files: tuple[str, ...],
    data: opt.Data,
    reference: str | None,
    asked: str,
    guard: str | None,
    key: str,
    output: Path | None,
) -> None:
    """Say which predictions to label, so that a fall is found soonest.

    Writes the ids to label as CSV, with the probabilities they were drawn with. Add the true labels as a column, and
    give the file to detect or watch.

    Examples
    --------
      fourrates sample predictions.csv --reference validation.csv --labels 200/day -o to-label.csv
      fourrates sample today.parquet --reference 8820,180,300,700 --labels 5% --guard tnr=0.02
    """
    classes = opt.labels_of(data.labels) or [0, 1]
    if reference is None:
        raise InputError("--reference says what the classifier is like: its validation set, or its confusion counts")
    with checked():
        labels = Labels(classes, opt.label_of(data.positive, classes))

        def read() -> Predictions:
            return Predictions(list(files), data.columns, labels, data.threshold, data.bad, opt.say)

        share = _share(asked, read)
        counts = opt.reference_of(
            reference, read(), Columns(data.truth, data.pred, data.score, by=data.by), data.threshold
        )
        falls = opt.tolerance_of(guard) if guard is not None else None
        if isinstance(falls, float):
            raise InputError(f"--guard {guard!r} is not written like tnr=0.02")
        plan = LabelPlan(counts, share=share, guard=falls, labels=labels.given, positive=labels.values[1], key=key)
        opt.say(str(plan))
        text = io.StringIO()
        total, drawn = _write(csv.writer(text, lineterminator="\n"), read(), plan)
    opt.say(f"{drawn:,} of {total:,} predictions to label")
    if output is None:
        sys.stdout.write(text.getvalue())
    else:
        disk.write(output, text.getvalue().encode())


def _share(asked: str, read: Any) -> float:
    """The share of events in `--labels`; a number a day needs the daily volume."""
    words = asked.replace(" ", "")
    try:
        if words.endswith("%"):
            return float(words[:-1]) / 100
        if not words.endswith("/day"):
            return float(words)
        a_day = float(words.removesuffix("/day"))
    except ValueError:
        raise InputError(f"--labels {asked!r} is not written like 200/day or 5%") from None
    found = [part.times for part in read().parts()]
    rate = event_rate(np.concatenate(found)) if found and found[0] is not None else None
    if rate is None:
        raise InputError(f"--labels {asked!r} needs times (--time); or give a share, 5%")
    return min(a_day / (86_400 * rate), 1.0)


def _write(out: Any, events: Predictions, plan: LabelPlan) -> tuple[int, int]:
    """Write the drawn predictions; returns how many there were and how many were drawn."""
    total = drawn = 0
    values = events.labels.values
    order = [events.labels.given.index(label) for label in values]
    for part in events.parts():
        columns = events.columns
        assert columns.id is not None
        ids = [str(one) for one in listed_values(part.values[columns.id])]  # as text: alike in every format
        draw = plan.draw(ids, [values[code] for code in part.preds.tolist()], part.segments)
        rows = np.flatnonzero(draw.drawn)
        if not total:
            out.writerow([*part.values, *NAMES])
        pair = draw.probability[rows][:, order]
        own, other = (
            pair[np.arange(rows.size), side].tolist() for side in (part.preds[rows], 1 - part.preds[rows].astype(int))
        )
        listed = [listed_values(pick(column, rows)) for column in part.values.values()]
        out.writerows(zip(*listed, own, other, strict=True))
        total, drawn = total + len(ids), drawn + rows.size
    return total, drawn

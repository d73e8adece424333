"""``fourrates sample``, to choose predictions to label, if you cannot label all."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fourrates.budget.words import event_rate
from fourrates.cli import options as opt
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import checked
from fourrates.events.columns import checked_column, listed_values, pick
from fourrates.events.door import Columns
from fourrates.frames import reference_counts
from fourrates.io import Events, InputError, Predictions
from fourrates.labelplan import LabelPlan
from fourrates.labels import Labels

NAMES = "label_probability", "other_probability"
data = gathered(
    opt.Data,
    "data",
    opt.columns,
    opt.by,
    option("--id", metavar="COLUMN", help="Column of ids; inferred."),
    opt.classes,
)


Say = Callable[[str], None]


class Part(NamedTuple):
    values: dict[str, Any]
    preds: Any
    times: Any
    segments: list[str] | None


class Identified(Predictions):
    needs = ("id", "pred")

    def parts(self) -> Iterator[Part]:
        for table in self.tables():
            for batch in self.batch(table):
                rows = np.searchsorted(table.rows, batch.rows)
                values = {name: pick(checked_column(table.data[name], name), rows) for name in self.columns.used()}
                segments = None if batch.keys is None else [self.keys[key] for key in batch.keys.tolist()]
                yield Part(values, batch.preds, batch.times, segments)


@command
@opt.files
@data
@opt.reference
@option("--labels", "asked", required=True, metavar="N/day|X%", help="How many can be labelled: 200/day, or 5%.")
def sample(
    files: tuple[str, ...],
    data: opt.Data,
    reference: str | None,
    asked: str,
) -> None:
    """Choose predictions to label so that a fall is found soonest.

    Writes the ids to label as CSV, with the probabilities they were drawn with. Add the true labels as a column, and
    give the file to detect or watch.

    Examples
    --------
      fourrates sample predictions.csv --reference validation.csv --labels 200/day > to-label.csv
      fourrates sample today.parquet --reference 8820,180,300,700 --labels 5%
    """
    if reference is None:
        raise InputError("--reference is needed: the validation set, or its confusion counts")
    with checked():
        said: set[str] = set()

        def say(text: str) -> None:
            """Once, as the files are read several times."""
            if text not in said:
                said.add(text)
                opt.say(text)

        labels = _labels(files, data, reference, say)

        def read() -> Identified:
            return Identified(list(files), data.columns, labels, data.threshold, data.bad, say)

        share = _share(asked, read)
        own = Columns(data.truth, data.pred, data.score, by=data.by)
        counts = reference_counts(opt.reference_of(reference), read(), own, data.threshold)
        plan = LabelPlan(counts, share=share, labels=labels.given, positive=labels.values[1])
        opt.say(str(plan))
        text = io.StringIO()
        total, drawn = _write(csv.writer(text, lineterminator="\n"), read(), plan)
    opt.say(f"{drawn:,} of {total:,} predictions to label")
    sys.stdout.write(text.getvalue())


def _labels(files: tuple[str, ...], data: opt.Data, reference: str, on_message: Say) -> Labels:
    """The classes: as given, of the reference if it is a file, or of the predictions."""
    classes, positive = data.classes
    if classes is not None:
        return Labels(classes, positive)
    if os.path.exists(reference):
        own = Columns(data.truth, data.pred, data.score)
        events = Events(reference, own, None, data.threshold, data.bad, on_message, positive)
        events.names_source = True
        next(iter(events), None)
        return events.labels
    predictions = Identified(list(files), data.columns, None, data.threshold, data.bad, on_message, positive)
    next(predictions.parts(), None)
    return predictions.labels


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
    times = [part.times for part in read().parts()]
    rate = event_rate(np.concatenate(times)) if times and times[0] is not None else None
    if rate is None:
        raise InputError(f"--labels {asked!r} needs times (--time); or give a share, 5%")
    return min(a_day / (86_400 * rate), 1.0)


def _write(out: Any, events: Identified, plan: LabelPlan) -> tuple[int, int]:
    """Write the drawn predictions; returns how many there were and how many were drawn."""
    total = drawn = 0
    values = events.labels.values
    order = [events.labels.given.index(label) for label in values]
    for part in events.parts():
        columns = events.columns
        assert columns.id is not None
        ids = [str(value) for value in listed_values(part.values[columns.id])]  # as text, alike in every format
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

"""``fourrates watch``: a pipe or a growing file, event by event as it arrives."""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli.commands import argument, command, gathered, option
from fourrates.cli.delivery import BadRows, Delivery, channels, open_spool, view_of
from fourrates.cli.errors import checked
from fourrates.cli.session import begun_watch, resumed
from fourrates.cli.states import Checkpoint, check_columns, source_of
from fourrates.cli.watching import Watching, feed, until_asked
from fourrates.frames import RATED
from fourrates.io import Columns, Events, History, InputError, Tail, read
from fourrates.watch import Watch

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.dates import Order

FILE = click.Path(path_type=Path)

data = gathered(opt.Data, "data", opt.columns, opt.by, opt.stratum, opt.version, opt.classes)


@command
@argument(
    "file",
    metavar="[FILE]",
    type=click.Path(),
    default="-",
    help="A file that grows, CSV or JSON lines; - is the standard input, and the default; or kafka://broker/topic.",
)
@data
@option("--bad-rows", metavar="FILE", type=FILE, help="Write rejected lines here and continue.")
@opt.chosen
@opt.json
@option(
    "--warnings/--no-warnings",
    default=True,
    help="Report warnings and class-mix shifts too, or only drifts and recoveries.",
)
@option(
    "--alert",
    metavar="ADDRESS",
    multiple=True,
    help="Send each drift, and its end, there: https://... (a webhook), mailto://... or slack://... (Apprise), "
    "exec:COMMAND; may be repeated.",
)
@option("--state", metavar="FILE", type=FILE, help="Resume from this file, or create it; a folder for a topic.")
def watch(
    file: str,
    data: opt.Data,
    bad_rows: Path | None,
    chosen: opt.Chosen,
    json: bool,
    warnings: bool,
    alert: tuple[str, ...],
    state: Path | None,
) -> int:
    """Watch a stream and report each warning and drift at once.

    On a terminal the rates are shown; elsewhere, or with --json, each line is a JSON object. Ctrl-C ends it with a
    summary. The exit status is 4 when alerts are left undelivered.

    Examples
    --------
      tail -f predictions.jsonl | fourrates watch -
      fourrates watch log.csv --alert 'exec:mail -s drift me@example.org'
      fourrates watch log.csv --no-warnings --alert https://example.org/hook --state log.state
      fourrates watch 'kafka://broker:9092/predictions?drifts=drifts' --by model --state folder
    """
    with checked():
        alerted = channels(alert)
    if file.startswith("kafka://"):
        from fourrates.cli.watch_kafka import watch_topic

        return watch_topic(file, data, chosen, alerted, json=json, shifts=warnings, bad_rows=bad_rows, state=state)
    saved = _saved(state, file)
    watched, events = _opened(file, data, chosen, saved, state)
    name = "standard input" if file == "-" else file
    with ExitStack() as stack:
        rejected = None
        if bad_rows is not None:
            rejected = BadRows(bad_rows, 0 if saved is None else saved.bad, None if saved is None else saved.bad_size)
            stack.callback(rejected.close)
        tail = Tail(events, name, refuse=None if rejected is None else rejected.refuse)
        if saved is not None:
            _restore(tail, saved)
        view = view_of(watched, data.by is None, name, json)
        delivery = Delivery(view, open_spool(alerted, state, file))
        asked = chosen.asked(data) if saved is None else saved.merged(chosen.asked(data))
        watching = Watching(watched, tail, delivery, rejected, warnings, state, saved, file, asked)
        status = 0
        try:
            with view, until_asked() as is_asked:
                feed(file, watching, None if saved is None else saved.position, is_asked)
        finally:
            status = delivery.finish()
    if watched.events == 0 and not is_asked() and file == "-":
        raise InputError("standard input: empty")
    watching.summary()
    return status


def _opened(
    file: str, data: opt.Data, chosen: opt.Chosen, saved: Checkpoint | None, state: Path | None
) -> tuple[Watch, Events]:
    (classes, positive), begun = data.classes, None
    watched = None if saved is None else resumed(saved, data, chosen, state)
    if watched is not None:
        classes, positive = watched.detector.parameters["labels"], watched.detector.parameters["positive"]
        if (names := watched.segments.names) and (names[0] is None) != (data.by is None):
            raise InputError(f"{state} was saved {'without' if names[0] is None else 'with'} --by")
    else:
        begun = beginning(file, data.columns, positive, data.threshold, classes)
        if begun is not None and begun.dates is not None:
            opt.say(f"dates have the {begun.dates} first")
        classes = _learned(begun) if classes is None else classes
    events = opt.events_of(
        [file],
        replace(data.columns, dates=None if begun is None else begun.dates),
        threshold=data.threshold,
        labels=classes,
        positive=positive,
        bad=data.bad,
    )
    if watched is None:
        watched = begun_watch(events, data, chosen, data.threshold, None if begun is None else begun.times)
    return watched, events


def _learned(begun: Beginning | None) -> list[Hashable]:
    """The classes in the existing rows; 0 and 1 if there are none yet."""
    if begun is None:
        return [0, 1]
    if begun.labels != [0, 1]:
        opt.say(str(begun))
    return begun.labels


# The saved state --------------------------------------------------------------------------------------------


def _saved(state: Path | None, file: str) -> Checkpoint | None:
    if state is None:
        return None
    disk.check_writable(state)
    saved = Checkpoint.load(state)
    if saved is not None and saved.source != source_of(file):
        raise InputError(f"{state} is the state of watching {saved.source}, not {source_of(file)}")
    return saved


def _restore(tail: Tail, saved: Checkpoint) -> None:
    if saved.format.columns is not None:
        check_columns(saved.format.columns, tail.events.columns)
    tail.restore(saved.format)
    tail.events.rows, tail.events.skipped = saved.rows, saved.skipped


# The rows that are there already ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beginning:
    labels: list[Hashable]  # the positive one of two last
    rows: int  # number examined
    times: npt.NDArray[np.datetime64] | None
    dates: Order | None  # order of dates that are not ISO 8601

    def __str__(self) -> str:
        names = ", ".join(map(str, self.labels[:12])) + (" ..." if len(self.labels) > 12 else "")
        positive = f"; {self.labels[1]} is the positive one" if len(self.labels) == 2 else ""
        return f"classes from the first {self.rows:,} rows: {names}{positive}"


def beginning(
    file: str,
    columns: Columns,
    positive: Hashable,
    threshold: float | None,
    labels: list[Hashable] | None = None,
) -> Beginning | None:
    """Examine the whole lines there are, except invalid ones, which the watch meets again; None if there are none."""
    if file == "-" or not os.path.isfile(file):
        return None
    found, size = [], 0
    with checked():
        rows = read(
            file,
            columns=columns,
            labels=labels,
            positive=positive,
            threshold=threshold,
            bad="skip",
            history=History(),  # which leaves a last line without an end
        )
        with suppress(InputError):
            for table in rows.tables():
                found.append(table)
                size += table.size
                if size >= RATED:
                    break
        if not found:
            return None
        if labels is None:
            rows.learn_labels(found)
        times = None
        if (name := rows.columns.time) is not None:
            times = np.concatenate([rows.times_in(table, name)[0] for table in found])[:RATED]
    return Beginning(labels or list(rows.labels.values), size, times, rows.columns.dates)

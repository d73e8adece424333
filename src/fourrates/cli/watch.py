"""``fourrates watch``: a pipe or a growing file, event by event as it arrives."""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from msgspec import structs

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli.commands import argument, command, gathered, option
from fourrates.cli.delivery import BadRows, Delivery, channels, open_spool, view_of
from fourrates.cli.errors import checked
from fourrates.cli.states import Checkpoint, check_columns, resumed, source_of
from fourrates.cli.watching import Watching, feed, until_asked
from fourrates.frames import RATED, new_watch
from fourrates.io import Events, History, InputError, Tail
from fourrates.watch import Watch

if TYPE_CHECKING:
    import numpy.typing as npt

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
            rejected = BadRows(bad_rows, saved.bad, saved.bad_size if saved.watch else None)
            stack.callback(rejected.close)
        tail = Tail(events, name, refuse=None if rejected is None else rejected.refuse)
        _restore(tail, saved)
        view = view_of(watched, data.by is None, name, json)
        delivery = Delivery(view, open_spool(alerted, state, file))
        saved = structs.replace(saved, asked=saved.merged(chosen.asked(data)))
        watching = Watching(watched, tail, delivery, rejected, warnings, state, saved)
        status = 0
        try:
            with view, until_asked() as is_asked:
                feed(file, watching, is_asked)
        finally:
            status = delivery.finish()
    if watched.events == 0 and not is_asked() and file == "-":
        raise InputError("standard input: empty")
    watching.summary()
    return status


def _opened(
    file: str, data: opt.Data, chosen: opt.Chosen, saved: Checkpoint, state: Path | None
) -> tuple[Watch, Events]:
    (classes, positive), columns, watched = data.classes, data.columns, None
    if saved.watch:
        watched = resumed(saved, data, chosen, state)
        classes, positive = watched.detector.parameters["labels"], watched.detector.parameters["positive"]
        if (names := watched.segments.names) and (names[0] is None) != (data.by is None):
            raise InputError(f"{state} was saved {'without' if names[0] is None else 'with'} --by")
    elif (begun := beginning(file, data)) is not None:
        columns, classes = begun.events.columns, [*begun.events.labels.values]
    elif classes is None:
        classes = [0, 1]
    say = opt.say if columns == data.columns else None  # else the choices were reported
    choices: dict[str, Any] = {"threshold": data.threshold, "bad": data.bad, "on_message": say}
    events = opt.events_of([file], columns, labels=classes, positive=positive, **choices)
    if watched is None:
        with checked():
            times = None if begun is None else begun.times
            options = chosen.detector_options(data)
            watched = new_watch(events=events, begun=None, trace=None, threshold=data.threshold, times=times, **options)
    return watched, events


def _saved(state: Path | None, file: str) -> Checkpoint:
    new = Checkpoint(watch=b"", asked={}, origin=uuid.uuid4().hex, source=source_of(file))
    if state is None:
        return new
    disk.check_writable(state)
    saved = Checkpoint.load(state) or new
    if saved.source != new.source:
        raise InputError(f"{state} is the state of watching {saved.source}, not {new.source}")
    return saved


def _restore(tail: Tail, saved: Checkpoint) -> None:
    if saved.format.columns is not None:
        check_columns(saved.format.columns, tail.events.columns)
    tail.restore(saved.format)
    tail.events.rows, tail.events.skipped = saved.rows, saved.skipped


class Beginning(NamedTuple):
    events: Events  # whose columns and labels are known
    times: npt.NDArray[np.datetime64] | None


def beginning(file: str, data: opt.Data) -> Beginning | None:
    """Examine the whole lines there are, except invalid ones, which the watch meets again; None if there are none."""
    if file == "-" or not os.path.isfile(file):
        return None
    classes, positive = data.classes
    choices: dict[str, Any] = {"labels": classes, "positive": positive, "threshold": data.threshold, "bad": "skip"}
    events = opt.events_of([file], data.columns, history=History(), **choices)  # a last line without an end is left
    tables, size = [], 0
    with checked():
        with suppress(InputError):
            for table in events.tables():
                tables.append(table)
                size += table.size
                if size >= RATED:
                    break
        if not tables:
            return None
        if classes is None:
            events.learn_labels(tables)
        times = None
        if (name := events.columns.time) is not None:
            times = np.concatenate([events.times_in(table, name)[0] for table in tables])[:RATED]
    return Beginning(events, times)

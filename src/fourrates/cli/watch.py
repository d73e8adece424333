"""``fourrates watch``: a pipe or a growing file, event by event as it arrives."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli.bad_rows import BadRows
from fourrates.cli.beginning import Beginning, beginning
from fourrates.cli.commands import argument, command, gathered, option
from fourrates.cli.delivery import channels, deliver_rest, open_spool
from fourrates.cli.errors import checked
from fourrates.cli.picture import Lines, Picture
from fourrates.cli.session import open_watch, resumed
from fourrates.cli.states import Checkpoint, check_columns, source_of
from fourrates.cli.watching import Watching, feed, until_asked
from fourrates.events.door import By
from fourrates.io import Events, InputError, Tail
from fourrates.watch import Watch

ALERTS = "Alerts"
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
@option("--bad-rows", section=opt.DATA, metavar="FILE", type=FILE, help="Set bad lines aside here instead of ending.")
@opt.chosen
@opt.limits
@opt.json
@option(
    "--warnings/--no-warnings",
    section=opt.OUTPUT,
    default=True,
    help="Tell warnings and shifts of the classes too, or only drifts and what becomes of them.",
)
@option(
    "--alert",
    section=ALERTS,
    metavar="ADDRESS",
    multiple=True,
    help="Send each drift, and its end, there: https://... (a webhook), mailto://... or slack://... (Apprise), "
    "exec:COMMAND; may be repeated.",
)
@option(
    "--state",
    section=opt.RESUME,
    metavar="FILE",
    type=FILE,
    help="Go on from this state if it is there, and keep it up to date; a folder for a topic.",
)
def watch(
    file: str,
    data: opt.Data,
    bad_rows: Path | None,
    chosen: opt.Chosen,
    limits: opt.Limits,
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

        return watch_topic(
            file, data, chosen, limits, alerted, json=json, shifts=warnings, bad_rows=bad_rows, state=state
        )
    saved = _saved(state, file, limits.max_state)
    watched, events = _opened(file, data, chosen, limits, saved, state)
    name = "standard input" if file == "-" else file
    with ExitStack() as stack:
        rejected = None
        if bad_rows is not None:
            rejected = BadRows(bad_rows, 0 if saved is None else saved.bad, None if saved is None else saved.bad_size)
            stack.callback(rejected.close)
        tail = Tail(events, name, max_line=limits.max_line, refuse=None if rejected is None else rejected.refuse)
        if saved is not None:
            _go_on(tail, saved)
        view = Picture(watched, data.by is None, name) if sys.stdout.isatty() and not json else Lines()
        spool = open_spool(alerted, state, file)
        watching = Watching(watched, tail, view, spool, rejected, warnings, state, saved, file, chosen.arl)
        status = 0
        try:
            with view, until_asked() as asked:
                feed(file, watching, None if saved is None else saved.resumes_at, asked)
        finally:
            if spool is not None:
                status = deliver_rest(spool)
    if watched.events == 0 and not asked() and file == "-":
        raise InputError("standard input: empty")
    watching.summary()
    return status


def _opened(
    file: str, data: opt.Data, chosen: opt.Chosen, limits: opt.Limits, saved: Checkpoint | None, state: Path | None
) -> tuple[Watch, Events]:
    """The watch, new or from the state, and the reader of its events."""
    watched = None if saved is None else resumed(saved.watch, state)
    classes, begun = opt.labels_of(data.labels), None
    if watched is None:
        positive = opt.label_of(data.positive, classes)
        begun = beginning(file, data.columns, positive, data.threshold, classes, limits.max_line)
        if begun is not None and begun.dates is not None:
            opt.say(f"dates have the {begun.dates} first")
        classes = _learned(begun) if classes is None else classes
    elif classes is None:
        classes = watched.detector.parameters["labels"]
    positive = opt.label_of(data.positive, classes)
    if watched is not None and data.positive is None and data.labels is None:
        positive = watched.detector.parameters["positive"]
    events = opt.events_of(
        [file],
        replace(data.columns, dates=None if begun is None else begun.dates),
        threshold=data.threshold,
        labels=classes,
        positive=positive,
        bad=data.bad,
    )
    if watched is not None:
        _check_by(watched, data.by, state)
    times = None if begun is None else begun.times
    before = {} if saved is None else {"arl": saved.budget}
    watched = open_watch(watched, events, data, chosen, state, threshold=data.threshold, times=times, before=before)
    watched.max_segments = limits.max_segments
    return watched, events


def _learned(begun: Beginning | None) -> list[Hashable]:
    """The classes in the existing rows; 0 and 1 if there are none yet."""
    if begun is None:
        return [0, 1]
    if begun.labels != [0, 1]:
        opt.say(str(begun))
    return begun.labels


# The saved state --------------------------------------------------------------------------------------------


def _saved(state: Path | None, file: str, max_state: int) -> Checkpoint | None:
    if state is None:
        return None
    disk.check_writable(state)
    saved = Checkpoint.load(state, max_state)
    if saved is None:
        return None
    if saved.source != source_of(file):
        raise InputError(f"{state} is the state of watching {saved.source}, not {source_of(file)}")
    return saved


def _check_by(watched: Watch, by: By, state: Path | None) -> None:
    names = watched.segments.names
    if names and (names[0] is None) != (by is None):
        raise InputError(f"{state} was saved {'without' if names[0] is None else 'with'} --by")


def _go_on(tail: Tail, saved: Checkpoint) -> None:
    asked = tail.events.columns
    tail.restore(saved.format)
    tail.events.rows, tail.events.skipped = saved.rows, saved.skipped
    check_columns(tail.events.columns, asked)

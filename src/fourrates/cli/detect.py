"""``fourrates detect``: the drifts in files or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, option
from fourrates.cli.errors import Stopped
from fourrates.cli.ticker import Ticker
from fourrates.detectors import Detector
from fourrates.frames import Findings, tracer, without_reference
from fourrates.io import Columns, Events, InputError, Missing
from fourrates.names import printable
from fourrates.plain import counted, last_shortage
from fourrates.run import Found, Run
from fourrates.run.dispersion import dispersions, in_words

if TYPE_CHECKING:
    from fourrates.cli.progress import Progress
    from fourrates.io import History, Joined

SHOWN = 40  # drifts in the table
SHIFTS = 5  # shifts of the classes below it

FILE = click.Path(path_type=Path)


@command
@opt.files
@opt.columns
@opt.by
@opt.late
@opt.classes
@opt.detector
@opt.arl
@opt.reference
@opt.limits
@opt.json
@option("--csv", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Write the drifts as CSV.")
@option(
    "--report", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Write a page that shows it all: one HTML file."
)
@option("--plot", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Draw the rates: PNG, SVG or PDF.")
@option(
    "--fail-on",
    section=opt.OUTPUT,
    type=click.Choice(["never", "drift"]),
    default="never",
    help="Exit status 1 if there was a drift, for use in pipelines.",
)
@option(
    "--progress/--no-progress",
    section=opt.OUTPUT,
    default=None,
    show_default="if stderr is a terminal",
    help="Show on stderr how far it is, where it takes more than a second.",
)
@option(
    "--state",
    section=opt.LATER,
    metavar="FILE",
    type=FILE,
    help="Go on from this state if it is there, read what is new, and save it again.",
)
def detect(
    files: tuple[str, ...],
    truth: str | None,
    pred: str | None,
    score: str | None,
    threshold: float | None,
    time: str | None,
    by: str | None,
    labels_from: str | None,
    id: str | None,
    labels: str | None,
    positive: str | None,
    missing: Missing,
    detector: str | None,
    arl: str | None,
    reference: str | None,
    max_line: int,
    max_streams: int,
    max_state: int,
    json: bool,
    csv: Path | None,
    report: Path | None,
    plot: Path | None,
    fail_on: Literal["never", "drift"],
    progress: bool | None,
    state: Path | None,
) -> int:
    """Find the drifts in files of labels and predictions.

    Examples
    --------
      fourrates detect predictions.csv
      fourrates detect scored.parquet --score proba --threshold 0.7 --report page.html
      fourrates detect all-models.csv --by model --budget '1 per quarter' --json
      fourrates detect predictions.csv --labels-from outcomes.csv --id order
      fourrates detect mails.csv --labels ham,spam --detector 'LFR(sides="down")'
      fourrates detect all-models.csv --by model --reference validation.csv
      fourrates detect today.csv --state today.state --fail-on drift
    """
    for path in (csv, report, plot, state):
        if path is not None:
            disk.check_writable(path)
    if labels_from is not None and state is not None:
        raise InputError("--labels-from: what still waits for its label is not saved; leave out --state")
    chosen = opt.spec(detector or opt.DEFAULT)
    classes = opt.labels_of(labels)
    positive_label = opt.label_of(positive, classes)
    columns = Columns(truth, pred, score, time, by, id)
    saved = None if state is None else _saved(state, max_state)
    if saved is not None:
        columns, threshold = saved.chosen(columns), _same_threshold(saved.threshold, threshold)
    trace = None if report is None and plot is None else tracer(many=columns.by is not None)
    run = None if saved is None else _resumed(saved.run, state, trace)
    if run is not None and labels is None:
        classes, positive_label = run.detector.parameters["labels"], run.detector.parameters["positive"]
    history = None if state is None else _history(saved)
    events = opt.events_of(
        files,
        columns,
        threshold=threshold,
        labels=classes,
        positive=positive_label,
        missing=missing,
        labels_from=labels_from,
        history=history,
        max_line=max_line,
    )
    if saved is not None and isinstance(events, Events):
        events.settle(columns)
    batches = opt.started(events, files) if history is None else opt.begun(events)
    asked = {"detector": detector, "arl": arl, "labels": labels, "positive": positive, "reference": reference}
    counts = None
    if reference is not None and (saved is None or saved.asked.get("reference") != reference):
        counts = opt.reference_of(reference, events, Columns(truth, pred, score, by=by), threshold)
    if run is None:
        if batches.is_empty:
            opt.say("nothing to read yet")
            return 0
        run = opt.make_run(chosen, events.labels, arl, batches.times, counts, trace)
    elif saved is not None and any(now not in (None, saved.asked.get(name)) for name, now in asked.items()):
        _check_same(run, chosen, events, arl, batches.times, counts, state)
    run.streams.most = max_streams
    found: list[Found] = []
    try:
        with Ticker(progress) as ticker:
            for batch in batches:
                found += run.take(batch, events.keys)
                ticker.tick(run.events, _counted(found))
    except KeyboardInterrupt:
        seen, drifts = opt.several(run.events, "event"), _counted(found)
        raise Stopped(f"stopped after {seen}, {drifts} found so far; nothing was written") from None
    for sentence in [*([without_reference(run)] if run.unreferred else []), *events.odd().values()]:
        opt.say(sentence)
    if csv is not None:
        disk.write(csv, output.as_csv(found, events.utc))
    if report is not None:
        from fourrates.report import page

        disk.write(report, page(run, events, found).encode())
        opt.say(f"report: {report}")
    if plot is not None:
        from fourrates.plot import save_figure

        save_figure(run, found, plot)
        opt.say(f"picture: {plot}")
    if json:
        print(output.as_json(Findings(run, events, found, []).to_dict()))
    else:
        _print(run, events, found)
    if state is not None and history is not None:
        sys.stdout.flush()  # first what was found, then the state that goes on from there
        from fourrates.cli.progress import Progress

        Progress(
            run=run.to_bytes(),
            columns=events.columns,
            threshold=threshold,
            asked=asked if saved is None else saved.asked,
            files=history.to_list(),
        ).save(state)
    return 1 if fail_on == "drift" and any(one.is_drift for one in found) else 0


def _saved(state: Path, max_state: int) -> Progress | None:
    """What an earlier run left; none did where there is no such file."""
    from fourrates.cli.progress import Progress

    return Progress.load(state, max_state)


def _resumed(saved: bytes, path: Path | None, trace: Callable[[Detector], Any] | None) -> Run:
    try:
        return Run.from_bytes(saved, trace)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _history(saved: Progress | None) -> History:
    """What earlier runs have read."""
    from fourrates.io import History

    return History.from_list([] if saved is None else saved.files, opt.say)


def _same_threshold(saved: float | None, asked: float | None) -> float | None:
    if asked is not None and asked != saved:
        raise InputError(f"the state was saved with the threshold {saved}; {asked} is asked for now")
    return saved


def _check_same(
    saved: Run,
    chosen: opt.Spec,
    events: Events | Joined,
    arl: str | None,
    times: Any,
    counts: Any,
    path: Path | None,
) -> None:
    """Raise if the options, which are not written as they were, ask for another detector."""
    detector = saved.detector
    if "arl" not in chosen.parameters and type(detector) is chosen.kind:
        arl = opt.budget_of(arl, detector)
    if counts is None and (reference := detector.parameters.get("reference")) is not None:
        counts = np.array(reference)
    asked = opt.make_run(chosen, events.labels, arl, times, counts)
    same = type(detector) is type(asked.detector) and detector.parameters == asked.detector.parameters
    if not same or (asked.references is not None and not asked.has_references_of(saved)):
        raise InputError(f"{path} goes on with {detector!r}; leave out the options that ask for another detector")


def _counted(found: list[Found]) -> str:
    return counted(one.kind for one in found)


def _print(run: Run, events: Events | Joined, found: list[Found]) -> None:
    seen = opt.several(run.events, "event")
    if events.columns.by is not None:
        seen += f" of {opt.several(len(run.streams), 'stream')}"
    if run.first_time is not None and run.last_time is not None:
        first, last = (output.moment(at, events.utc, precise=False) for at in (run.first_time, run.last_time))
        seen += f", {first} to {last}{' UTC' if events.utc else ''}"
    if (correlated := in_words(dispersions(run))) is not None:
        opt.say(correlated)
    if not found and not run.shifts:  # nothing to draw, so rich need not be imported
        colour = False if "NO_COLOR" in os.environ else None
        click.echo(f"{click.style('no drift', fg='green')} in {seen}", color=colour)
        return
    out = output.console()
    if not found:
        out.print(f"[green]no drift[/green] in {seen}", soft_wrap=True)
    else:
        out.print(f"[bold red]{_counted(found)}[/bold red] in {seen}", soft_wrap=True)
        out.print(output.drift_table(found[:SHOWN], events.utc, run.detector.labels.values))
    if (shortage := last_shortage(run, found)) is not None:
        out.print(output.literal(shortage), soft_wrap=True)
    if len(found) > SHOWN:
        out.print(f"... and {len(found) - SHOWN:,} more: --csv and --json tell them all")
    for one in run.shifts[:SHIFTS]:
        out.print(output.literal(printable(("" if one.stream is None else f"{one.stream}: ") + str(one.shift))))
    if len(run.shifts) > SHIFTS:
        out.print(f"... and {len(run.shifts) - SHIFTS:,} more shifts of the classes: --json tells them all")

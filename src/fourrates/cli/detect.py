"""``fourrates detect``: the drifts in files or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import Stopped
from fourrates.cli.session import change_budget, check_same, resumed
from fourrates.cli.ticker import Ticker
from fourrates.findings import Finding
from fourrates.frames import Findings, tracer, without_reference
from fourrates.io import Columns, Events, InputError
from fourrates.names import printable
from fourrates.plain import counted, last_too_few_examples
from fourrates.watch import Watch
from fourrates.watch.dispersion import dispersions, in_words

if TYPE_CHECKING:
    from fourrates.cli.progress import Progress
    from fourrates.io import Batch, History, Joined

SHOWN = 40  # findings in the table
LISTED = 10  # open drifts above it
ALL = "every segment"
DAY = np.timedelta64(86_400_000_000, "us")

FILE = click.Path(path_type=Path)


@dataclass(frozen=True)
class Outputs:
    """What is written besides the findings."""

    csv: Path | None
    report: Path | None
    plot: Path | None


@dataclass(frozen=True)
class Resume:
    """What to resume from, and what to accept."""

    state: Path | None
    accept: str | None
    accept_after: float | None


data = gathered(opt.Data, "data", opt.columns, opt.by, opt.stratum, opt.late, opt.classes)
outputs = gathered(
    Outputs,
    "outputs",
    option("--csv", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Write the drifts as CSV."),
    option("--report", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Write a report: one HTML file."),
    option("--plot", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Draw the rates: PNG, SVG or PDF."),
)
resume = gathered(
    Resume,
    "resume",
    option(
        "--state",
        section=opt.RESUME,
        metavar="FILE",
        type=FILE,
        help="Resume from this file, or create it: only new rows are read, and open drifts stay open.",
    ),
    option(
        "--accept",
        section=opt.RESUME,
        metavar="[SEGMENT]",
        is_flag=False,
        flag_value=ALL,
        help="Make the level since an open drift the new normal, before anything is read; needs --state.",
    ),
    option(
        "--accept-after",
        section=opt.RESUME,
        metavar="DAYS",
        type=click.FloatRange(0, min_open=True),
        help="Accept a drift that has been open for this long; off unless given.",
    ),
)


@command
@opt.files
@data
@opt.chosen
@opt.limits
@opt.json
@outputs
@option(
    "--fail-on",
    section=opt.OUTPUT,
    type=click.Choice(["never", "drift", "open", "confirmed", "no-events"]),
    multiple=True,
    help="Exit status 1 if a drift was found by this run, if one is open or confirmed now, or if there were no new "
    "events; may be repeated.",
)
@option(
    "--progress/--no-progress",
    section=opt.OUTPUT,
    default=None,
    show_default="if stderr is a terminal",
    help="Show on stderr how far it is, where it takes more than a second.",
)
@resume
def detect(
    files: tuple[str, ...],
    data: opt.Data,
    chosen: opt.Chosen,
    limits: opt.Limits,
    json: bool,
    outputs: Outputs,
    fail_on: tuple[str, ...],
    progress: bool | None,
    resume: Resume,
) -> int:
    """Find the drifts in files of labels and predictions.

    Examples
    --------
      fourrates detect predictions.csv
      fourrates detect scored.parquet --score proba --threshold 0.7 --report page.html
      fourrates detect all-models.csv --by model --budget '1 per quarter' --json
      fourrates detect predictions.csv --labels-from outcomes.csv --id order
      fourrates detect mails.csv --classes ham,spam --detector 'LFR(sides="down")'
      fourrates detect all-models.csv --by model --reference validation.csv
      fourrates detect folder --state model.state --fail-on open --fail-on no-events
      fourrates detect folder --state model.state --accept
    """
    for path in (outputs.csv, outputs.report, outputs.plot, resume.state):
        if path is not None:
            disk.check_writable(path)
    if data.labels_from is not None and resume.state is not None:
        raise InputError("--labels-from: what still waits for its label is not saved; leave out --state")
    job = _opened(files, data, chosen, limits, outputs, resume.state)
    if job is None:
        opt.say("nothing to read yet")
        return int("no-events" in fail_on)
    watch, events = job.watch, job.events
    findings = [] if resume.accept is None else _accept(watch, resume.accept, resume.state)
    watch.max_segments = limits.max_segments
    before = watch.events
    findings += _read(job, progress)
    if resume.accept_after is not None:
        findings += _accept_old(watch, resume.accept_after)
    _remark(job, new=watch.events - before)
    _write(watch, events, findings, outputs)
    if json:
        print(output.as_json(Findings(watch, events, findings, []).to_dict() | {"new_events": watch.events - before}))
    else:
        _print(watch, events, findings)
    if resume.state is not None:
        sys.stdout.flush()  # first what was found, then the state that resumes from there
        _save(job, resume.state)
    return _status(watch, findings, watch.events - before, fail_on)


@dataclass(frozen=True)
class _Job:
    """What is read, what watches it, and what there was before."""

    watch: Watch
    events: Events | Joined
    batches: Iterable[Batch]
    history: History | None
    threshold: float | None
    asked: dict[str, str | None]
    resumed: bool


def _opened(
    files: tuple[str, ...],
    data: opt.Data,
    chosen: opt.Chosen,
    limits: opt.Limits,
    outputs: Outputs,
    state: Path | None,
) -> _Job | None:
    """The files and the watch, new or as the state has it; None if there is nothing to begin with."""
    classes, columns, threshold = opt.labels_of(data.labels), data.columns, data.threshold
    positive = opt.label_of(data.positive, classes)
    saved = None if state is None else _saved(state, limits.max_state)
    if saved is not None:
        columns, threshold = saved.chosen(columns), _same_threshold(saved.threshold, threshold)
    trace = None if outputs.report is None and outputs.plot is None else tracer(many=columns.by is not None)
    watch = None if saved is None else resumed(saved.watch, state, trace)
    if watch is not None and data.labels is None:
        classes, positive = watch.detector.parameters["labels"], watch.detector.parameters["positive"]
    history = None if state is None else _history(saved)
    events = opt.events_of(
        files,
        columns,
        threshold=threshold,
        labels=classes,
        positive=positive,
        bad=data.bad,
        labels_from=data.labels_from,
        history=history,
        max_line=limits.max_line,
    )
    if saved is not None and isinstance(events, Events):
        events.settle(columns)
    batches = opt.started(events, files) if history is None else opt.begun(events)
    asked = {**chosen.asked(), "labels": data.labels, "positive": data.positive}
    reference, counts = chosen.reference, None
    if reference is not None and (saved is None or saved.asked.get("reference") != reference):
        named = Columns(data.truth, data.pred, data.score, by=data.by)
        counts = opt.reference_of(reference, events, named, threshold)
    if watch is None:
        if batches.is_empty:
            return None
        watch = opt.make_watch(
            chosen.spec(data.stratum, batches), events.labels, chosen.arl, batches.times, counts, trace
        )
    elif saved is not None:
        other = any(asked[name] not in (None, saved.asked.get(name)) for name in opt.NAMING)
        check_same(watch, chosen.spec(data.stratum) if other else None, events.labels, counts, state)
        if chosen.arl is not None:
            change_budget(watch, chosen.arl, saved.asked.get("arl"))
        asked = saved.asked | {name: value for name, value in asked.items() if value is not None}
    return _Job(watch, events, batches, history, threshold, asked, saved is not None)


def _read(job: _Job, progress: bool | None) -> list[Finding]:
    """Watch all batches."""
    findings: list[Finding] = []
    try:
        with Ticker(progress) as ticker:
            for batch in job.batches:
                findings += job.watch.update(batch, job.events.keys)
                ticker.tick(job.watch.events, _counted(findings))
    except KeyboardInterrupt:
        seen, drifts = opt.several(job.watch.events, "event"), _counted(findings)
        raise Stopped(f"stopped after {seen}, {drifts} found so far; nothing was written") from None
    return findings


def _remark(job: _Job, new: int) -> None:
    """Say what is odd about the data, and what was not read."""
    watch = job.watch
    for sentence in [*([without_reference(watch)] if watch.without_reference else []), *job.events.odd().values()]:
        opt.say(sentence)
    if job.history is not None and (unchanged := job.history.unchanged()) is not None:
        opt.say(unchanged)
    if not new and job.resumed:
        opt.say(_no_events(watch, job.events.rows))


def _save(job: _Job, state: Path) -> None:
    from fourrates.cli.progress import Progress

    assert job.history is not None
    Progress(
        watch=job.watch.to_bytes(),
        columns=job.events.columns,
        threshold=job.threshold,
        asked=job.asked,
        files=job.history.to_list(),
    ).save(state)


def _status(watch: Watch, findings: list[Finding], new: int, fail_on: tuple[str, ...]) -> int:
    """The exit status: 1 if something that was asked about is so."""
    now = watch.now()
    so = {
        "never": False,
        "drift": any(finding.kind == "drift" for finding in findings),
        "open": bool(now.open),
        "confirmed": now.confirmed,
        "no-events": not new,
    }
    return int(any(so[name] for name in fail_on))


def _no_events(watch: Watch, rows: int) -> str:
    """That nothing new came, or nothing with a label."""
    last = "" if watch.last_time is None else f" since {output.moment(watch.last_time, False, precise=False)}"
    unlabelled = f": {opt.several(rows, 'new row')}, none with a label" if rows else ""
    return f"no new events{last}{unlabelled}; what follows is how things were then"


def _accept(watch: Watch, segment: str, state: Path | None) -> list[Finding]:
    """Accept what is open in a segment, or everywhere."""
    if state is None:
        raise InputError("--accept needs --state: what is open is known from there")
    names = [drift.segment for drift in watch.now().open]
    if segment != ALL:
        if segment not in watch.segments:
            raise InputError(f"--accept: no segment {segment!r}")
        names = [segment]
    found = [finding for name in names if (finding := watch.accept(name)) is not None]
    opt.say(f"accepted as normal: {opt.several(len(found), 'drift')}" if found else "--accept: no drift is open there")
    return found


def _accept_old(watch: Watch, days: float) -> list[Finding]:
    """Accept the drifts that have been open for so many days."""
    if watch.last_time is None:
        raise InputError("--accept-after needs times (--time)")
    latest = watch.last_time - days * DAY
    old = [one for one in watch.now().open if one.drift.time is not None and one.drift.time <= latest]
    return [finding for one in old if (finding := watch.accept(one.segment)) is not None]


def _write(watch: Watch, events: Events | Joined, findings: list[Finding], outputs: Outputs) -> None:
    """Write the files that are asked for."""
    if outputs.csv is not None:
        disk.write(outputs.csv, output.as_csv(findings, events.utc))
    if outputs.report is not None:
        from fourrates.report import page

        disk.write(outputs.report, page(watch, events, findings).encode())
        opt.say(f"report: {outputs.report}")
    if outputs.plot is not None:
        from fourrates.plot import save_figure

        save_figure(watch, findings, outputs.plot)
        opt.say(f"picture: {outputs.plot}")


def _saved(state: Path, max_state: int) -> Progress | None:
    """What an earlier run left; none did where there is no such file."""
    from fourrates.cli.progress import Progress

    return Progress.load(state, max_state)


def _history(saved: Progress | None) -> History:
    """What earlier runs have read."""
    from fourrates.io import History

    return History.from_list([] if saved is None else saved.files, opt.say)


def _same_threshold(saved: float | None, asked: float | None) -> float | None:
    if asked is not None and asked != saved:
        raise InputError(f"the state was saved with the threshold {saved}; {asked} is asked for now")
    return saved


def _counted(findings: list[Finding]) -> str:
    return counted(finding.kind for finding in findings)


def _print(watch: Watch, events: Events | Joined, findings: list[Finding]) -> None:
    """How things are now, then what was found on the way."""
    seen = opt.several(watch.events, "event")
    if events.columns.by is not None:
        seen += f" of {opt.several(len(watch.segments), 'segment')}"
    if watch.first_time is not None and watch.last_time is not None:
        first, last = (output.moment(at, events.utc, precise=False) for at in (watch.first_time, watch.last_time))
        seen += f", {first} to {last}{' UTC' if events.utc else ''}"
    if (correlated := in_words(dispersions(watch))) is not None:
        opt.say(correlated)
    now = watch.now()
    colour = {"drifted": "red", "warning": "yellow", "stable": "green"}[now.status]
    state, rest = now.headline()
    plain = False if "NO_COLOR" in os.environ else None
    if state:
        click.echo(f"{click.style(state, fg=colour, bold=True)}{printable(f': {rest}' if rest else '')}", color=plain)
    for drift in now.open[1:LISTED]:
        click.echo(f"  {printable(str(drift))}")
    click.echo(f"{_counted(findings)} in {seen}")
    if findings:  # else there is nothing to draw, so rich need not be imported
        out = output.console()
        out.print(output.finding_table(findings[:SHOWN], events.utc, watch.detector.labels.values))
        if (too_few_examples := last_too_few_examples(watch, findings)) is not None:
            out.print(output.literal(too_few_examples), soft_wrap=True)
        if len(findings) > SHOWN:
            out.print(f"... and {len(findings) - SHOWN:,} more: --csv and --json have them all")

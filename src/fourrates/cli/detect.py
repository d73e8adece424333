"""``fourrates detect``, the drifts in files or a pipe."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import Stopped, checked
from fourrates.escaping import printable
from fourrates.events.rows import TooFewClasses
from fourrates.findings import Finding
from fourrates.frames import new_watch, tracer, watched, without_reference
from fourrates.io import Events, InputError
from fourrates.io.data_warnings import explain_all_missing
from fourrates.plain import counted, too_few_examples
from fourrates.result import Findings
from fourrates.watch import Watch
from fourrates.watch.dispersion import in_words
from fourrates.watch.nightly import new_findings

if TYPE_CHECKING:
    from fourrates.cli.states import Progress
    from fourrates.io import Batch, History
    from fourrates.io.cohorts import Cohorts
    from fourrates.slices import Slice

SHOWN = 40  # findings in the table
LISTED = 10  # open drifts above it
ALL = "every segment"
DAY = np.timedelta64(86_400_000_000, "us")

FILE = click.Path(path_type=Path)


@dataclass(frozen=True)
class Outputs:
    csv: Path | None
    report: Path | None
    plot: Path | None
    cost: str | None
    slices: str | None


@dataclass(frozen=True)
class Resume:
    """The state to resume from, and drifts to accept."""

    state: Path | None
    accept: str | None
    accept_after: float | None


data = gathered(opt.Data, "data", opt.columns, opt.by, opt.stratum, opt.version, opt.late, opt.classes)
outputs = gathered(
    Outputs,
    "outputs",
    option("--csv", metavar="FILE", type=FILE, help="Write the drifts as CSV."),
    option("--report", metavar="FILE", type=FILE, help="Write a report, one HTML file."),
    option("--plot", metavar="FILE", type=FILE, help="Draw the rates: PNG, SVG or PDF."),
    option(
        "--cost",
        metavar="PRICES",
        help="The price of an error, as in 'miss=120, false alarm=3' or by true class; gives an open drift its cost.",
    ),
    option("--slices", metavar="COLUMN,...", help="Columns to search for the values that carry the drift."),
)
resume = gathered(
    Resume,
    "resume",
    option(
        "--state",
        metavar="FILE",
        type=FILE,
        help="Resume from this file, or create it. Only new rows are read, and open drifts stay open.",
    ),
    option(
        "--accept",
        metavar="[SEGMENT]",
        is_flag=False,
        flag_value=ALL,
        help="Make the level since an open drift the new normal, before anything is read; needs --state.",
    ),
    option(
        "--accept-after",
        metavar="DAYS",
        type=click.FloatRange(0, min_open=True),
        help="Accept a drift that has been open for this long; off unless given.",
    ),
)


@command
@opt.files
@data
@opt.chosen
@opt.json
@outputs
@option(
    "--fail-on",
    type=click.Choice(["never", "drift", "open", "confirmed", "no-events"]),
    multiple=True,
    help="Exit status 1 if a drift was found by this run, if one is open or confirmed now, or if there were no new "
    "events; may be repeated.",
)
@resume
def detect(
    files: tuple[str, ...],
    data: opt.Data,
    chosen: opt.Chosen,
    json: bool,
    outputs: Outputs,
    fail_on: tuple[str, ...],
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
    state, accept = resume.state, resume.accept
    for path in (outputs.csv, outputs.report, outputs.plot, state):
        if path is not None:
            disk.check_writable(path)
    if data.labels_from is not None and state is not None and outputs.slices is not None:
        raise InputError("--slices reads all predictions and labels again, not those of one night; leave out --state")
    job = _opened(files, data, chosen, outputs.report is not None or outputs.plot is not None, state)
    if job is None:
        opt.say("nothing to read yet")
        return int("no-events" in fail_on)
    watch, cohorts = job.watch, job.cohorts
    if outputs.cost is not None:
        with checked():
            watch.set_cost(opt.named_numbers(outputs.cost, "--cost", "'miss=120, false alarm=3'"))
    findings = [] if accept is None or cohorts is not None else _accept(watch, accept, state)
    before = watch.events
    read, ripe = _read(job)
    reported = {} if job.saved is None else dict(job.saved.reported)
    findings += read if cohorts is None else new_findings(watch, read, reported)
    if cohorts is not None and accept is not None:  # open drifts may not be ripe, so treat everything as ripe
        findings, ripe = findings + _accept(watch, accept, state), None
        cohorts.drop()
    if resume.accept_after is not None:
        findings += _accept_old(watch, resume.accept_after)
    new = watch.events - before if cohorts is None else cohorts.new
    _remark(job, new)
    found = Findings(watch, job.events, findings, [])
    slices = None if outputs.slices is None else found.slices(*outputs.slices.split(","))
    _write(found, slices, outputs, None if job.saved is None else new)
    _show(found, slices, new, json)
    if state is not None:
        sys.stdout.flush()  # findings first, then the state that resumes from there
        _save(job, state, ripe, reported)
    return _status(watch, findings, new, fail_on)


def _show(found: Findings, slices: Sequence[Slice] | None, new: int, json: bool) -> None:
    if json:
        more = {} if slices is None else {"slices": [part.to_dict() for part in slices]}
        print(output.as_json(found.to_dict() | {"new_events": new} | more))
        return
    _print(found)
    for part in slices or []:
        print(f"{'where ' if part.significant else ''}{printable(str(part))}")


@dataclass(frozen=True)
class _Job:
    watch: Watch
    events: Events
    batches: Iterable[Batch]
    history: History | None
    threshold: float | None
    asked: dict[str, str | None]
    saved: Progress | None

    @property
    def cohorts(self) -> Cohorts | None:
        """With --state and --labels-from, the predictions that may still get labels."""
        return self.events.cohorts if self.history is not None else None


def _opened(
    files: tuple[str, ...], data: opt.Data, chosen: opt.Chosen, traced: bool, state: Path | None
) -> _Job | None:
    """The input and the watch, new or from the state; None if there is nothing to begin with."""
    saved = history = watch = None
    if state is not None:
        from fourrates.cli.states import Progress, resumed  # slow to import
        from fourrates.io import History

        saved = Progress.load(state)
        history = History([] if saved is None else saved.files, opt.say)
    by = data.by if saved is None else saved.columns.by
    trace = tracer(many=by is not None) if traced else None
    if saved is not None:
        watch = resumed(saved, data, chosen, state, trace)
    events, threshold = _events(files, data, saved, watch, history, state)
    try:
        batches = opt.peeked(events)
    except TooFewClasses as error:
        if watch is not None or history is None:
            raise
        opt.say(str(error))
        return None
    if batches.is_empty and history is None:
        raise InputError(explain_all_missing(files, events.rows, events.warnings.unlabelled))
    if watch is None:
        if batches.is_empty:
            return None
        with checked():
            options = chosen.detector_options(data, peeked=True)
            watch = new_watch(events=events, begun=batches, trace=trace, threshold=threshold, **options)
    asked = chosen.asked(data) if saved is None else saved.merged(chosen.asked(data))
    return _Job(watch, events, batches, history, threshold, asked, saved)


def _events(
    files: tuple[str, ...],
    data: opt.Data,
    saved: Progress | None,
    watch: Watch | None,
    history: History | None,
    state: Path | None,
) -> tuple[Events, float | None]:
    """The events to read, and the threshold of their scores; columns and classes as before if there is a state."""
    (classes, positive), columns, threshold = data.classes, data.columns, data.threshold
    if watch is not None:
        classes, positive = watch.detector.parameters["labels"], watch.detector.parameters["positive"]
    late = data.labels_from is not None
    if late and state is not None and data.order == "arrival":
        raise InputError("--order arrival: predictions without a label are not saved; leave out --state")
    if saved is not None:
        from fourrates.cli.states import check_columns

        check_columns(saved.columns, replace(columns, truth=None) if late else columns)  # inferred from the labels
        if threshold not in (None, saved.threshold):
            raise InputError(f"the state was saved with the threshold {saved.threshold}; now it is {threshold}")
        columns, threshold = saved.columns, saved.threshold
    events = opt.events_of(
        files,
        replace(columns, truth=data.truth) if late else columns,
        data.labels_from,
        threshold=threshold,
        labels=classes,
        positive=positive,
        bad=data.bad,
        history=history,
        **({"cohorts": _cohorts(saved, state), "order": data.order} if late else {}),
    )
    events.unwatched = deque()
    if saved is not None:
        events.settle(columns)
        events.utc = saved.utc
    return events, threshold


def _read(job: _Job) -> tuple[list[Finding], bytes | None]:
    """Watch all batches; the findings, and for late labels the state after the last ripe batch."""
    watch, saved = job.watch, None
    findings: list[Finding] = []

    def before(number: int, so_far: list[Finding]) -> None:
        nonlocal saved, findings
        if job.cohorts is not None and number == job.events.ripe:
            saved = watch.to_bytes()
        findings = so_far
        report(f"{watch.events:,} events read, {counted(finding.kind for finding in so_far)} so far")

    try:
        with output.progress() as report:
            return watched(watch, job.events, job.batches, before), saved
    except KeyboardInterrupt:
        seen, drifts = opt.several(watch.events, "event"), counted(finding.kind for finding in findings)
        raise Stopped(f"stopped after {seen}, {drifts} found so far; nothing was written") from None


def _remark(job: _Job, new: int) -> None:
    watch = job.watch
    for sentence in [
        *([without_reference(watch)] if watch.without_reference else []),
        *job.events.data_warnings().values(),
    ]:
        opt.say(sentence)
    if job.history is not None and (unchanged := job.history.unchanged()) is not None:
        opt.say(unchanged)
    if not new and job.saved is not None:
        opt.say(_no_events(watch, job.events.rows))


def _save(job: _Job, state: Path, ripe: bytes | None, reported: dict[str, int]) -> None:
    from fourrates.cli.states import Progress

    assert job.history is not None
    Progress(
        watch=job.watch.to_bytes() if ripe is None else ripe,
        columns=job.events.columns,
        threshold=job.threshold,
        utc=job.events.utc,
        asked=job.asked,
        files=job.history.records(),
        reported=reported,
        cohorts=b"" if job.cohorts is None else job.cohorts.to_bytes(),
    ).save(state)


def _status(watch: Watch, findings: list[Finding], new: int, fail_on: tuple[str, ...]) -> int:
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
    """Explain that there are no new events, or none with a label."""
    last = "" if watch.last_time is None else f" since {output.moment(watch.last_time, False, precise=False)}"
    unlabelled = f": {opt.several(rows, 'new row')}, none with a label" if rows else ""
    return f"no new events{last}{unlabelled}; the state below is that of then"


def _accept(watch: Watch, segment: str, state: Path | None) -> list[Finding]:
    if state is None:
        raise InputError("--accept needs --state, which has the open drifts")
    names = [drift.segment for drift in watch.now().open]
    if segment != ALL:
        if segment not in watch.segments:
            raise InputError(f"--accept: no segment {segment!r}")
        names = [segment]
    found = _accepted(watch, names)
    opt.say(f"accepted as normal: {opt.several(len(found), 'drift')}" if found else "--accept: no drift is open there")
    return found


def _accept_old(watch: Watch, days: float) -> list[Finding]:
    if watch.last_time is None:
        raise InputError("--accept-after needs times (--time)")
    latest = watch.last_time - days * DAY
    drifts = [opened.drift for opened in watch.now().open]
    return _accepted(watch, [drift.segment for drift in drifts if drift.time is not None and drift.time <= latest])


def _accepted(watch: Watch, segments: Iterable[str | None]) -> list[Finding]:
    return [finding for segment in segments if (finding := watch.accept(segment)) is not None]


def _write(found: Findings, slices: Sequence[Slice] | None, outputs: Outputs, new: int | None) -> None:
    if outputs.csv is not None:
        disk.write(outputs.csv, output.as_csv([*found], found.source.utc))
    if outputs.report is not None:
        from fourrates.report import page

        disk.write(outputs.report, page(found, slices, new).encode())
        opt.say(f"report: {outputs.report}")
    if outputs.plot is not None:
        from fourrates.plot import save_figure

        save_figure(found.watch, [*found], outputs.plot)
        opt.say(f"picture: {outputs.plot}")


def _cohorts(saved: Progress | None, state: Path | None) -> Cohorts | None:
    """Predictions of earlier runs that may still get labels."""
    if saved is None:
        return None
    from fourrates.io.cohorts import Cohorts

    if not saved.cohorts:
        raise InputError(f"{state}: saved without --labels-from")
    try:
        return Cohorts.from_bytes(saved.cohorts)
    except ValueError as error:
        raise InputError(f"{state}: {error}") from None


def _print(found: Findings) -> None:
    watch, utc, findings = found.watch, found.source.utc, [*found]
    now = watch.now()
    if (correlated := in_words(found.dispersion, bool(found.drifts or now.open))) is not None:
        opt.say(correlated)
    state, rest = now.headline()
    history = found.history()
    if not state:  # this detector has no current status
        state, rest, history = history, "", ""
    colour = {"drifted": 208, "warning": 3, "stable": None}[now.status]  # orange, yellow
    plain = False if "NO_COLOR" in os.environ else None
    line = output.wrapped(printable(f"{state}{f': {rest}' if rest else ''}"), sys.stdout)
    click.echo(click.style(line[: len(state)], fg=colour, bold=True) + line[len(state) :], color=plain)
    for drift in now.open[1:LISTED]:
        click.echo(output.wrapped(f"  {printable(str(drift))}", sys.stdout))
    if history:
        click.echo(output.wrapped(history, sys.stdout))
    if findings:  # else nothing to draw, and rich is not needed
        out = output.console()
        out.print(output.finding_table(findings[:SHOWN], utc, out.width))
        if (too_few := too_few_examples(watch, findings)) is not None:
            out.print(output.literal(too_few), soft_wrap=not out.is_terminal)
        if len(findings) > SHOWN:
            out.print(f"... and {len(findings) - SHOWN:,} more: --csv and --json have them all")

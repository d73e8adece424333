"""``fourrates detect``: the drifts in files or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, gathered, option
from fourrates.cli.errors import Stopped, checked
from fourrates.cli.session import open_watch, resumed
from fourrates.cli.states import Progress
from fourrates.cli.ticker import Ticker
from fourrates.escaping import printable
from fourrates.findings import Finding
from fourrates.frames import Findings, times_of, tracer, without_reference
from fourrates.io import Events, InputError
from fourrates.io.data_warnings import explain_all_missing
from fourrates.plain import counted, last_too_few_examples
from fourrates.watch import Watch
from fourrates.watch.dispersion import dispersions, in_words
from fourrates.watch.streams import microseconds

if TYPE_CHECKING:
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
    option("--csv", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Write the drifts as CSV."),
    option("--report", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Write a report: one HTML file."),
    option("--plot", section=opt.OUTPUT, metavar="FILE", type=FILE, help="Draw the rates: PNG, SVG or PDF."),
    option(
        "--cost",
        section=opt.OUTPUT,
        metavar="PRICES",
        help="What an error costs, as in 'miss=120, false alarm=3' or by true class: says what an open drift costs.",
    ),
    option(
        "--slices",
        section=opt.OUTPUT,
        metavar="COLUMN,...",
        help="Columns to search for the values that carry the drift.",
    ),
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
@resume
def detect(
    files: tuple[str, ...],
    data: opt.Data,
    chosen: opt.Chosen,
    limits: opt.Limits,
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
    for path in (outputs.csv, outputs.report, outputs.plot, resume.state):
        if path is not None:
            disk.check_writable(path)
    if data.labels_from is not None and resume.state is not None and data.order == "arrival":
        raise InputError("--order arrival: what still waits for its label is not saved; leave out --state")
    job = _opened(files, data, chosen, limits, outputs, resume.state)
    if job is None:
        opt.say("nothing to read yet")
        return int("no-events" in fail_on)
    watch, cohorts = job.watch, job.cohorts
    watch.max_segments = limits.max_segments
    with checked():
        watch.set_cost(_prices(outputs.cost))
    findings = [] if resume.accept is None or cohorts is not None else _accept(watch, resume.accept, resume.state)
    before = watch.events
    read, ripe = _read(job)
    reported = {} if job.saved is None else dict(job.saved.reported)
    findings += read if cohorts is None else _not_reported(read, reported)
    if cohorts is not None and resume.accept is not None:  # open drifts may not be ripe: treat everything as ripe
        findings, ripe = findings + _accept(watch, resume.accept, resume.state), None
        cohorts.drop()
    if resume.accept_after is not None:
        findings += _accept_old(watch, resume.accept_after)
    new = watch.events - before if cohorts is None else cohorts.new
    _remark(job, new)
    found = Findings(watch, job.events, findings, [])
    slices = None if outputs.slices is None else found.slices(*outputs.slices.split(","))
    _write(watch, job.events, findings, slices, outputs)
    _show(found, slices, new, json)
    if resume.state is not None:
        sys.stdout.flush()  # findings first, then the state that resumes from there
        _save(job, resume.state, ripe, reported)
    return _status(watch, findings, new, fail_on)


def _show(found: Findings, slices: Sequence[Slice] | None, new: int, json: bool) -> None:
    if json:
        more = {} if slices is None else {"slices": [part.to_dict() for part in slices]}
        print(output.as_json(found.to_dict() | {"new_events": new} | more))
        return
    _print(found.watch, found.source, [*found])
    for part in slices or []:
        print(f"where {printable(str(part))}")


@dataclass(frozen=True)
class _Job:
    """The input, the watch, and the state before."""

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
    files: tuple[str, ...],
    data: opt.Data,
    chosen: opt.Chosen,
    limits: opt.Limits,
    outputs: Outputs,
    state: Path | None,
) -> _Job | None:
    """The input and the watch, new or from the state; None if there is nothing to begin with."""
    classes, columns, threshold = opt.labels_of(data.labels), data.columns, data.threshold
    positive = opt.label_of(data.positive, classes)
    saved = None if state is None else Progress.load(state, limits.max_state)
    if saved is not None:
        own = columns if data.labels_from is None else replace(columns, truth=None)  # inferred from the labels
        columns, threshold = saved.chosen(own), _same_threshold(saved.threshold, threshold)
    trace = None if outputs.report is None and outputs.plot is None else tracer(many=columns.by is not None)
    watch = None if saved is None else resumed(saved.watch, state, trace)
    if watch is not None and data.labels is None:
        classes, positive = watch.detector.parameters["labels"], watch.detector.parameters["positive"]
    history = None
    if state is not None:
        from fourrates.io import History  # slow to import

        history = History.from_list([] if saved is None else saved.files, opt.say)
    late: dict[str, Any] = {}
    if data.labels_from is not None:
        late = {"labels_from": data.labels_from, "order": data.order, "cohorts": _cohorts(saved, state)}
    events = opt.events_of(
        files,
        replace(columns, truth=data.truth) if late else columns,
        threshold=threshold,
        labels=classes,
        positive=positive,
        bad=data.bad,
        max_line=limits.max_line,
        history=history,
        **late,
    )
    if saved is not None:
        events.settle(columns)
    batches = opt.peeked(events)
    if batches.is_empty and history is None:
        raise InputError(explain_all_missing(files, events.rows, events.warnings.unlabelled))
    if batches.is_empty and watch is None:
        return None
    before = {} if saved is None else saved.asked
    watch = open_watch(
        watch,
        events,
        data,
        chosen,
        state,
        threshold=threshold,
        times=times_of(events, batches),
        before=before,
        trace=trace,
        begun=batches,
    )
    asked = {**chosen.asked(), "labels": data.labels, "positive": data.positive}
    asked = {**asked, **before, **{name: text for name, text in asked.items() if text is not None}}
    return _Job(watch, events, batches, history, threshold, asked, saved)


def _read(job: _Job) -> tuple[list[Finding], bytes | None]:
    """Watch all batches; the findings, and for late labels the state after the last ripe batch."""
    findings: list[Finding] = []
    ripe = None if job.cohorts is None else job.events.ripe
    saved = None
    try:
        with Ticker() as ticker:
            for number, batch in enumerate(job.batches):
                if number == ripe:
                    saved = job.watch.to_bytes()
                findings += job.watch.update(batch, job.events.keys)
                ticker.tick(job.watch.events, _counted(findings))
    except KeyboardInterrupt:
        seen, drifts = opt.several(job.watch.events, "event"), _counted(findings)
        raise Stopped(f"stopped after {seen}, {drifts} found so far; nothing was written") from None
    return findings, saved


def _not_reported(findings: list[Finding], reported: dict[str, int]) -> list[Finding]:
    """Findings not reported by an earlier run: they began after all it reported of the same rates, segment and version.

    With more labels than before, an alarm may be a little sooner or later.
    """
    new = []
    for finding in findings:
        kinds = (
            [f"{one.rate} {one.direction}" for one in finding.changes] if finding.kind == "drift" else [finding.kind]
        )
        about = [f"{finding.where or ''}\n{kind}" for kind in kinds]
        at, began = (microseconds(time) for time in (finding.time, finding.started_time))
        since = began if finding.kind == "drift" and began is not None else at
        if at is None or since is None or all(since > reported.get(one, since - 1) for one in about):
            new.append(finding)
        if at is not None:
            reported |= {one: max(at, reported.get(one, at)) for one in about}
    return new


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
    assert job.history is not None
    Progress(
        watch=job.watch.to_bytes() if ripe is None else ripe,
        columns=job.events.columns.to_dict(),
        threshold=job.threshold,
        asked=job.asked,
        files=job.history.to_list(),
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
    return f"no new events{last}{unlabelled}; what follows is how things were then"


def _accept(watch: Watch, segment: str, state: Path | None) -> list[Finding]:
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
    if watch.last_time is None:
        raise InputError("--accept-after needs times (--time)")
    latest = watch.last_time - days * DAY
    old = [one for one in watch.now().open if one.drift.time is not None and one.drift.time <= latest]
    return [finding for one in old if (finding := watch.accept(one.segment)) is not None]


def _write(
    watch: Watch, events: Events, findings: list[Finding], slices: Sequence[Slice] | None, outputs: Outputs
) -> None:
    if outputs.csv is not None:
        disk.write(outputs.csv, output.as_csv(findings, events.utc))
    if outputs.report is not None:
        from fourrates.report import page

        disk.write(outputs.report, page(watch, events, findings, slices).encode())
        opt.say(f"report: {outputs.report}")
    if outputs.plot is not None:
        from fourrates.plot import save_figure

        save_figure(watch, findings, outputs.plot)
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


def _prices(text: str | None) -> dict[str, float]:
    prices = {}
    for part in [] if text is None else text.split(","):
        name, _, price = part.partition("=")
        try:
            prices[name.strip()] = float(price)
        except ValueError:
            raise InputError(f"--cost {text!r}: write it as in 'miss=120, false alarm=3'") from None
    return prices


def _same_threshold(saved: float | None, asked: float | None) -> float | None:
    if asked is not None and asked != saved:
        raise InputError(f"the state was saved with the threshold {saved}; {asked} is asked for now")
    return saved


def _counted(findings: list[Finding]) -> str:
    return counted(finding.kind for finding in findings)


def _print(watch: Watch, events: Events, findings: list[Finding]) -> None:
    seen = opt.several(watch.events, "event")
    if events.columns.by is not None:
        seen += f" of {opt.several(len(watch.segments), 'segment')}"
    if watch.first_time is not None and watch.last_time is not None:
        first, last = (output.moment(at, events.utc, precise=False) for at in (watch.first_time, watch.last_time))
        seen += f", {first} to {last}{' UTC' if events.utc else ''}"
    if (correlated := in_words(dispersions(watch))) is not None:
        opt.say(correlated)
    now = watch.now()
    state, rest = now.headline()
    found = f"{_counted(findings)} in {seen}"
    if not state:  # this detector has no current status
        state, rest, found = found, "", ""
    elif now.unknown:
        found = seen
    colour = {"drifted": 208, "warning": 3, "stable": None}[now.status]  # orange, yellow
    plain = False if "NO_COLOR" in os.environ else None
    line = output.wrapped(printable(f"{state}{f': {rest}' if rest else ''}"), sys.stdout)
    click.echo(click.style(line[: len(state)], fg=colour, bold=True) + line[len(state) :], color=plain)
    for drift in now.open[1:LISTED]:
        click.echo(output.wrapped(f"  {printable(str(drift))}", sys.stdout))
    if found:
        click.echo(output.wrapped(found, sys.stdout))
    if findings:  # else nothing to draw, and rich is not needed
        out = output.console()
        out.print(output.finding_table(findings[:SHOWN], events.utc, watch.detector.labels.values, out.width))
        if (too_few_examples := last_too_few_examples(watch, findings)) is not None:
            out.print(output.literal(too_few_examples), soft_wrap=not out.is_terminal)
        if len(findings) > SHOWN:
            out.print(f"... and {len(findings) - SHOWN:,} more: --csv and --json have them all")

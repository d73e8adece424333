"""``fourrates watch``: a pipe or a growing file, event by event as it arrives."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time as clock
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli.bad_rows import BadRows
from fourrates.cli.beginning import Beginning, beginning
from fourrates.cli.checkpoint import Checkpoint
from fourrates.cli.commands import argument, command, option
from fourrates.cli.delivery import channels, deliver_rest, open_spool
from fourrates.cli.errors import checked
from fourrates.cli.picture import FRAME, Lines, Picture, View, warned_rates
from fourrates.detectors import Detector
from fourrates.io import MAX_LINE, Batch, Columns, Events, Follower, InputError, Missing, Position, Tail
from fourrates.names import shortened
from fourrates.plain import moment, shift_record
from fourrates.run import Found, Run

if TYPE_CHECKING:
    from fourrates.alerts import Spool

READ = 1 << 18  # bytes taken from a pipe at a time
POLL = 0.02  # seconds between looks at a file that has not grown
SAVE = 1.0  # seconds between two savings of the state; after a drift it is saved at once
GRACE = 10.0  # seconds at the end to deliver what is left
ALERTS = "Who is told"
FILE = click.Path(path_type=Path)


def _address(ctx: click.Context, _: click.Parameter, url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r} does not begin with http:// or https://", ctx)
    return url


@command
@argument(
    "file",
    metavar="[FILE]",
    type=click.Path(),
    default="-",
    help="A file that grows, CSV or JSON lines; - is the standard input, and the default.",
)
@opt.columns
@opt.by
@opt.classes
@option(
    "--max-line",
    section=opt.DATA,
    metavar="BYTES",
    type=click.IntRange(1),
    default=MAX_LINE,
    help="The longest line that is read.",
)
@option("--bad-rows", section=opt.DATA, metavar="FILE", type=FILE, help="Set bad lines aside here instead of ending.")
@opt.detector
@opt.arl
@opt.reference
@opt.json
@option(
    "--warnings/--no-warnings",
    section=opt.OUTPUT,
    default=True,
    help="Tell warnings and shifts of the classes too, or drifts alone.",
)
@option(
    "--exec",
    "exec_",
    section=ALERTS,
    metavar="CMD",
    help="Run this on each drift, with the drift as JSON on its standard input.",
)
@option("--webhook", section=ALERTS, metavar="URL", callback=_address, help="Post each drift to this address, as JSON.")
@option(
    "--header", section=ALERTS, metavar="'NAME: VALUE'", multiple=True, help="A header for --webhook; may be repeated."
)
@option(
    "--secret-file",
    section=ALERTS,
    metavar="FILE",
    type=FILE,
    help="Sign what --webhook posts with the secret in this file.",
)
@option(
    "--notify",
    section=ALERTS,
    metavar="URL",
    multiple=True,
    help="An Apprise address (slack://, mailto://); may be repeated.",
)
@option("--spool", section=ALERTS, metavar="FILE", type=FILE, help="Where alerts are kept until they have arrived.")
@option(
    "--grace",
    section=ALERTS,
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=GRACE,
    help="Time at the end to deliver alerts that are left.",
)
@option(
    "--state",
    section=opt.LATER,
    metavar="FILE",
    type=FILE,
    help="Go on from this state if it is there, and keep it up to date.",
)
def watch(
    file: str,
    truth: str | None,
    pred: str | None,
    score: str | None,
    threshold: float | None,
    time: str | None,
    by: str | None,
    labels: str | None,
    positive: str | None,
    missing: Missing,
    max_line: int,
    bad_rows: Path | None,
    detector: str | None,
    arl: str | None,
    reference: str | None,
    json: bool,
    warnings: bool,
    exec_: str | None,
    webhook: str | None,
    header: tuple[str, ...],
    secret_file: Path | None,
    notify: tuple[str, ...],
    spool: Path | None,
    grace: float,
    state: Path | None,
) -> int:
    """Watch a stream and tell each warning and drift the moment its event arrives.

    On a terminal the rates are shown; elsewhere, or with --json, each line is a JSON object. Ctrl-C ends it with a
    summary. The exit status is 4 when alerts are left undelivered.

    Examples
    --------
      tail -f predictions.jsonl | fourrates watch -
      fourrates watch log.csv --exec 'mail -s drift me@example.org'
      fourrates watch log.csv --no-warnings --webhook https://example.org/hook --state log.state
    """
    saved = _saved(state, file, by)
    run = None if saved is None else _restored(saved, state)
    classes = opt.labels_of(labels)
    begun = None
    if run is None:
        begun = beginning(
            file, Columns(truth, pred, score, time, by), opt.label_of(positive, classes), threshold, classes
        )
        if classes is None:
            classes = _learned(begun)
    elif classes is None:
        classes = run.detector.parameters["labels"]
    positive_label = opt.label_of(positive, classes)
    if run is not None and positive is None and labels is None:
        positive_label = run.detector.parameters["positive"]
    events = opt.events_of(
        [file],
        Columns(truth, pred, score, time, by),
        threshold=threshold,
        labels=classes,
        positive=positive_label,
        missing=missing,
    )
    assert isinstance(events, Events)  # labels in a place of their own are for detect
    if run is None or any(given is not None for given in (detector, arl, labels, positive, reference)):
        counts = None
        if reference is not None:
            counts = opt.reference_of(reference, events, Columns(truth, pred, score), threshold)
        wanted = opt.spec(detector or opt.DEFAULT)
        if run is not None and "arl" not in wanted.parameters and type(run.detector) is wanted.kind:
            arl = opt.budget_of(arl, run.detector)
        times = None if begun is None else begun.times
        made = opt.make_detector(wanted, events.labels, arl, times, counts)
        if run is None:
            run = Run(made)
        _check_same(made, run.detector, state)
    name = "standard input" if file == "-" else file
    shown = None if by is not None else _shown(run, saved)
    with checked():
        chosen = channels(exec_, webhook, header, secret_file, notify)
    with ExitStack() as stack:
        refused = None
        if bad_rows is not None:
            refused = BadRows(bad_rows, 0 if saved is None else saved.bad, None if saved is None else saved.bad_size)
            stack.callback(refused.close)
        tail = Tail(events, name, max_line=max_line, refuse=None if refused is None else refused.refuse)
        if saved is not None:
            _go_on(tail, saved)
        view = Picture(run, shown, name) if sys.stdout.isatty() and not json else Lines()
        posted = open_spool(chosen, spool, state, file)
        watching = Watching(run, shown, tail, view, posted, refused, warnings, state, saved, file)
        status = 0
        try:
            with view, _until_asked() as asked:
                _feed(file, watching, None if saved is None else saved.position, asked)
        finally:
            if posted is not None:
                status = deliver_rest(posted, grace)
    if run.events == 0 and not asked() and file == "-":
        raise InputError("standard input: empty")
    watching.summary()
    return status


def _learned(begun: Beginning | None) -> list[Hashable]:
    """The classes, from the rows that are there; 0 and 1 where there are none yet."""
    if begun is None:
        return [0, 1]
    if begun.labels != [0, 1]:
        opt.say(str(begun))
    return begun.labels


# What was saved ---------------------------------------------------------------------------------------------


def _saved(state: Path | None, file: str, by: str | None) -> Checkpoint | None:
    if state is None:
        return None
    disk.check_writable(state)
    saved = Checkpoint.load(state)
    if saved is None:
        return None
    if saved.source != _source(file):
        raise InputError(f"{state} is the state of watching {saved.source}, not {_source(file)}")
    if (saved.shown is None) != (by is not None):
        raise InputError(f"{state} was saved {'with' if saved.shown is None else 'without'} --by")
    return saved


def _source(file: str) -> str:
    return file if file == "-" else os.path.abspath(file)


def _restored(saved: Checkpoint, state: Path | None) -> Run:
    try:
        return Run.from_bytes(saved.run)
    except InputError as error:
        raise InputError(f"{state}: {error}") from None


def _check_same(asked: Detector, saved: Detector, state: Path | None) -> None:
    if type(asked) is not type(saved) or asked.parameters != saved.parameters:
        raise InputError(f"{state} goes on with {saved!r}; leave out the options that ask for another detector")


def _shown(run: Run, saved: Checkpoint | None) -> Detector:
    """The detector whose warnings and rates are shown. It sees every event, where a run takes whole batches."""
    if saved is None or saved.shown is None:
        return run.detector.clone()
    try:
        return type(run.detector).from_bytes(saved.shown)
    except (ValueError, TypeError) as error:
        raise InputError(f"a damaged state ({error})") from None


def _go_on(tail: Tail, saved: Checkpoint) -> None:
    asked = tail.events.columns
    tail.restore(saved.format)
    tail.events.rows, tail.events.skipped = saved.rows, saved.skipped
    for kind in asked.__slots__:
        now, then = getattr(asked, kind), getattr(tail.events.columns, kind)
        if now is not None and now != then:
            raise InputError(f"the state was saved with column {then!r} where {now!r} is asked for now")


# Watching ---------------------------------------------------------------------------------------------------


class Watching:
    """Detectors fed with lines as they arrive; what they find goes to a view and to the spool of alerts."""

    def __init__(
        self,
        run: Run,
        shown: Detector | None,
        tail: Tail,
        view: View,
        spool: Spool | None,
        bad_rows: BadRows | None,
        warnings: bool,
        state: Path | None,
        saved: Checkpoint | None,
        file: str,
    ) -> None:
        self.run, self.shown, self.tail, self.view, self.spool = run, shown, tail, view, spool
        self.events: Events = tail.events
        self.bad_rows, self.warnings, self.state, self.file = bad_rows, warnings, state, file
        self.origin = uuid.uuid4().hex if saved is None else saved.origin
        self.position: Callable[[], Position | None] = lambda: None if saved is None else saved.position
        self.drifts: list[str] = []  # the last ones, for the summary
        self.drifted = self.recovered = self.warned = 0
        self._warning = False if saved is None else saved.warning
        self._before = run.events
        self._bad_before = 0 if saved is None else saved.bad
        self._started = self._kept = clock.monotonic()
        self._dirty = self._urgent = False

    def feed(self, lines: bytes) -> None:
        """Take what arrived."""
        self._dirty = True
        for batch in self.tail.feed(lines):
            self.take(batch)
            self.view.tick()

    def finish(self) -> None:
        """Take the last line of a pipe, if it has no end."""
        self._dirty = True
        for batch in self.tail.finish():
            self.take(batch)

    def take(self, batch: Batch) -> None:
        """Take a batch; tell warnings and drifts in the order of their events."""
        warnings = self._look_for_warnings(batch)
        for one in self.run.take(batch, self.events.keys):
            while warnings and warnings[0]["at"] < one.drift.at:
                self.view.warning(warnings.pop(0))
            self._drifted(one, batch)
        for record in warnings:
            self.view.warning(record)
        for shift in self.run.shifts if self.warnings else ():
            self.view.shift(shift_record(shift, self.events.utc))
        self.run.shifts.clear()

    def _look_for_warnings(self, batch: Batch) -> list[dict[str, Any]]:
        """The warnings that open in a batch, where there is one stream; those of many streams would say little."""
        found: list[dict[str, Any]] = []
        if (detector := self.shown) is None:
            return found
        update, warning, values = detector.update, self._warning, self.events.labels.values
        pairs = zip(batch.truths.tolist(), batch.guesses.tolist(), strict=True)
        for i, (truth, guess) in enumerate(pairs):
            if update(values[truth], values[guess]) is not None:
                warning = False
            elif detector.warning_detected != warning:
                warning = not warning
                if warning:
                    self.warned += 1
                    if self.warnings:
                        found.append(self._warning_record(detector, batch, i))
        self._warning = warning
        return found

    def _warning_record(self, detector: Detector, batch: Batch, i: int) -> dict[str, Any]:
        time = None if batch.times is None or np.isnat(batch.times[i]) else batch.times[i]
        when = moment(time, self.events.utc)
        record = {"kind": "warning", "at": detector.events - 1, **({} if when is None else {"time": when})}
        return {**record, "row": int(batch.rows[i]), "rates": warned_rates(detector)}

    def _drifted(self, one: Found, batch: Batch) -> None:
        from fourrates.alerts.payload import drift_alert

        record = drift_alert(
            one.drift,
            stream=self.tail.source if one.stream is None else one.stream,
            origin=self.origin,
            source=batch.source,
            row=one.at.row,
            time=moment(one.at.time, self.events.utc),
        )
        if self.spool is not None:
            self.spool.put(record)
        self.view.drift(record)
        self.drifted += not one.is_recovery
        self.recovered += one.is_recovery
        stream = "" if one.stream is None else f"{shortened(one.stream)}: "
        self.drifts = [*self.drifts[-9:], f"{stream}{one.drift}"]
        self._urgent = True

    # Keeping what was done ----------------------------------------------------------------------------------

    def keep(self) -> None:
        """Save the state if it is time to; to be called between two pieces of the stream, when all fits together."""
        if self._dirty and (self._urgent or clock.monotonic() - self._kept >= SAVE):
            self.save()

    def save(self) -> None:
        """Save the state, if one is kept."""
        self._dirty = self._urgent = False
        self._kept = clock.monotonic()
        if self.state is None:
            return
        Checkpoint(
            origin=self.origin,
            source=_source(self.file),
            run=self.run.to_bytes(),
            shown=None if self.shown is None else self.shown.to_bytes(),
            warning=self._warning,
            position=self.position(),
            format=self.tail.to_dict(),
            rows=self.events.rows,
            skipped=self.events.skipped,
            bad=0 if self.bad_rows is None else self.bad_rows.count,
            bad_size=0 if self.bad_rows is None else self.bad_rows.flush(),
        ).save(self.state)

    def summary(self) -> None:
        """Tell what was seen."""
        seconds = max(clock.monotonic() - self._started, 1e-9)
        skipped = f", {self.events.skipped:,} rows skipped" if self.events.skipped else ""
        bad = "" if self.bad_rows is None else f", {opt.several(self.bad_rows.count - self._bad_before, 'bad row')}"
        recovered = f", {opt.several(self.recovered, 'recovery')}" if self.recovered else ""
        whole = f" ({self.run.events:,} in all)" if self._before else ""
        opt.say(
            f"{opt.several(self.run.events - self._before, 'event')} in {seconds:,.1f} s{whole}{skipped}{bad}: "
            f"{opt.several(self.drifted, 'drift')}{recovered}, {opt.several(self.warned, 'warning')}"
        )
        for drift in self.drifts:
            opt.say(f"  {drift}")


# Bytes ------------------------------------------------------------------------------------------------------


@contextmanager
def _until_asked() -> Iterator[Callable[[], bool]]:
    """Whether the process was asked to end, by Ctrl-C or SIGTERM. Asked twice, it is interrupted where it stands."""
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, ask) for number in numbers]
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, signal.default_int_handler if number == signal.SIGTERM and asked else handler)


def _feed(file: str, watching: Watching, position: Position | None, asked: Callable[[], bool]) -> None:
    """Feed what arrives until the pipe closes, or for ever where it is a file."""
    if file == "-":
        _feed_pipe(sys.stdin.fileno(), watching, asked)
        return
    if position is None or os.path.exists(file):
        with open(file, "rb", buffering=0) as opened:  # or the error that says why not
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                _feed_pipe(opened.fileno(), watching, asked)
                return
    with Follower(file, position, max_line=watching.tail.max_line, tell=opt.say) as follower:
        watching.position = lambda: follower.position
        follower.open()
        watching.save()  # before the first event: whatever comes, the next run finds this file again
        while not asked():
            piece = follower.read()
            if piece is None:
                watching.keep()
                watching.view.tick()
                clock.sleep(POLL)
                continue
            if piece.begins:
                watching.tail.begin()
            watching.feed(piece.lines)
            watching.keep()
        watching.save()  # while the follower is open and can say where it stands


def _feed_pipe(descriptor: int, watching: Watching, asked: Callable[[], bool]) -> None:
    watching.save()
    while not asked():
        ready, _, _ = select.select([descriptor], [], [], FRAME)
        if ready:
            data = os.read(descriptor, READ)
            if not data:
                watching.finish()
                break
            watching.feed(data)
        else:
            watching.view.tick()
        watching.keep()
    watching.save()

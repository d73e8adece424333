"""``fourrates watch``: a pipe or a growing file, event by event as it arrives."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time as clock
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fourrates import files as disk
from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.bad_rows import BadRows
from fourrates.cli.checkpoint import Checkpoint
from fourrates.cli.picture import FRAME, Lines, Picture, View, outside, rates_of, several
from fourrates.detectors import Detector
from fourrates.io import MAX_LINE, Batch, Events, Follower, InputError, Position, Tail
from fourrates.run import Found, Run

if TYPE_CHECKING:
    from fourrates.alerts import Channel, Spool

READ = 1 << 18  # bytes taken from a pipe at a time
POLL = 0.02  # seconds between looks at a file that has not grown
SAVE = 1.0  # seconds between two savings of the state; after a drift it is saved at once
GRACE = 10.0  # seconds at the end to deliver what is left
UNDELIVERED = 4  # the exit status when alerts are left

Source = Annotated[
    str, typer.Argument(metavar="FILE", help="A file that grows, CSV or JSON lines; - is the standard input.")
]
Exec = Annotated[
    str | None,
    typer.Option("--exec", metavar="CMD", help="Run this on each drift, with the drift as JSON on its standard input."),
]
Webhook = Annotated[str | None, typer.Option(metavar="URL", help="Post each drift to this address, as JSON.")]
Header = Annotated[
    list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="A header for --webhook; may be repeated.")
]
SecretFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Sign what --webhook posts with the secret in this file.")
]
Notify = Annotated[
    list[str] | None, typer.Option(metavar="URL", help="An Apprise address (slack://, mailto://); may be repeated.")
]
SpoolFile = Annotated[
    Path | None, typer.Option("--spool", metavar="FILE", help="Where alerts are kept until they have arrived.")
]
Grace = Annotated[float, typer.Option(metavar="SECONDS", help="Time at the end to deliver alerts that are left.")]
State = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Go on from this state if it is there, and keep it up to date.")
]
BadRowsFile = Annotated[
    Path | None, typer.Option("--bad-rows", metavar="FILE", help="Set bad lines aside here instead of ending.")
]
MaxLine = Annotated[int, typer.Option(metavar="BYTES", help="The longest line that is read.")]
Warnings = Annotated[bool, typer.Option("--warnings/--no-warnings", help="Tell warnings too, or drifts alone.")]


def watch(
    file: Source = "-",
    truth: opt.Truth = None,
    pred: opt.Pred = None,
    score: opt.Score = None,
    threshold: opt.Threshold = None,
    time: opt.Time = None,
    by: opt.By = None,
    labels: opt.LabelList = None,
    positive: opt.Positive = None,
    missing: opt.MissingRows = "skip",
    max_line: MaxLine = MAX_LINE,
    bad_rows: BadRowsFile = None,
    detector: opt.DetectorSpec = None,
    arl: opt.Arl = None,
    json: opt.Json = False,
    warnings: Warnings = True,
    exec_: Exec = None,
    webhook: Webhook = None,
    header: Header = None,
    secret_file: SecretFile = None,
    notify: Notify = None,
    spool: SpoolFile = None,
    grace: Grace = GRACE,
    state: State = None,
) -> int:
    """Watch a stream and tell each warning and drift the moment its event arrives.

    On a terminal the rates are shown within their bounds; elsewhere, or with --json, each line is a JSON object. Ctrl-C
    ends it with a summary.

    [bold]Examples[/bold]

      tail -f predictions.jsonl | fourrates watch -

      fourrates watch log.csv --exec 'mail -s drift me@example.org'

      fourrates watch log.csv --no-warnings --webhook https://example.org/hook --state log.state
    """
    saved = _saved(state, file, by)
    classes = opt.labels_of(labels)
    positive_label = opt.label_of(positive, classes)
    if saved is None or any(given is not None for given in (detector, arl, labels, positive)):
        made = opt.make_detector(opt.spec(detector or opt.DEFAULT), classes, positive_label, arl)
        run = Run(made) if saved is None else _restored(saved, state, made)
    else:
        run = _restored(saved, state, None)
        classes, positive_label = run.detector.parameters["labels"], run.detector.parameters["positive"]
    events = opt.events_of(
        [file],
        truth=truth,
        pred=pred,
        score=score,
        threshold=threshold,
        time=time,
        by=by,
        labels=classes,
        positive=positive_label,
        missing=missing,
    )
    name = "standard input" if file == "-" else file
    shown = None if by is not None else _shown(run, saved)
    channels = _channels(exec_, webhook, header, secret_file, notify)
    with ExitStack() as stack:
        refused = None
        if bad_rows is not None:
            refused = BadRows(bad_rows, 0 if saved is None else saved.bad, None if saved is None else saved.bad_size)
            stack.callback(refused.close)
        tail = Tail(events, name, max_line=max_line, refuse=None if refused is None else refused.refuse)
        if saved is not None:
            _go_on(tail, saved)
        view = Picture(run, shown, name) if sys.stdout.isatty() and not json else Lines()
        posted = _open_spool(channels, spool, state, file)
        watching = Watching(run, shown, tail, view, posted, refused, warnings, state, saved, file)
        status = 0
        try:
            with view, _until_asked() as asked:
                _feed(file, watching, None if saved is None else saved.position, asked)
        finally:
            if posted is not None:
                status = _deliver_rest(posted, grace)
    if run.events == 0 and not asked() and file == "-":
        raise InputError("standard input: empty")
    watching.summary()
    return status


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


def _restored(saved: Checkpoint, state: Path | None, asked: Detector | None) -> Run:
    try:
        run = Run.from_bytes(saved.run)
    except InputError as error:
        raise InputError(f"{state}: {error}") from None
    if asked is not None and (type(asked) is not type(run.detector) or asked.parameters != run.detector.parameters):
        raise InputError(f"{state} goes on with {run.detector!r}; leave out the options that ask for another detector")
    return run


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


# Where alerts go --------------------------------------------------------------------------------------------


def _channels(
    command: str | None, url: str | None, header: list[str] | None, secret_file: Path | None, notify: list[str] | None
) -> list[Channel]:
    channels: list[Channel] = []
    if command is None and url is None and not notify:
        return channels
    from fourrates import alerts  # only where there is somebody to tell

    if command is not None:
        channels.append(alerts.Command(command))
    if url is not None:
        pairs = [one.partition(":") for one in header or []]
        if wrong := next((name for name, colon, _ in pairs if not colon), None):
            raise InputError(f"--header {wrong!r} is not written like 'Name: value'")
        secret = os.environ.get("FOURRATES_WEBHOOK_SECRET")
        if secret_file is not None:
            secret = secret_file.read_text().strip()
        headers = {name.strip(): value.strip() for name, _, value in pairs}
        channels.append(alerts.Webhook(url, secret=secret, headers=headers))
    if notify:
        channels.append(alerts.Apprise(notify))
    return channels


def _open_spool(channels: list[Channel], path: Path | None, state: Path | None, file: str) -> Spool | None:
    if not channels:
        return None
    from fourrates.alerts import Spool
    from fourrates.alerts.folder import default_path

    if path is None:
        path = Path(f"{state}.alerts") if state is not None else Path(default_path("watch", os.getcwd(), file))
    spool = Spool(path, channels, tell=opt.say)
    if others := spool.stranded():
        names = ", ".join(dict.fromkeys(entry.channel for entry in others))
        opt.say(f"{path}: {several(len(others), 'alert')} wait for channels that are not given now: {names}")
    return spool


def _deliver_rest(spool: Spool, grace: float) -> int:
    """Deliver what is left, as long as the grace lasts, and name what cannot be; the exit status."""
    dropped = spool.dropped
    with suppress(KeyboardInterrupt):  # asked a second time: what is left is named all the same
        spool.close(grace)
    if dropped:
        opt.say(f"{several(dropped, 'alert')} dropped because the spool was full")
    if not spool.left:
        return 0
    named = "; ".join(f"{entry.id} by {entry.channel} ({entry.problem or 'not tried'})" for entry in spool.left[:10])
    more = f"; and {len(spool.left) - 10:,} more" if len(spool.left) > 10 else ""
    opt.say(f"{several(len(spool.left), 'alert')} undelivered, kept in {spool.path} for the next run: {named}{more}")
    return UNDELIVERED


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
        self.drifted = self.warned = 0
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
        when = output.moment(time, self.events.utc)
        rates = [
            {"rate": name, "statistic": output.finite(one.value), "expected": output.finite(state.estimate)}
            for name, state in rates_of(detector).items()
            for one in outside(state)[:1]
        ]
        record = {"kind": "warning", "at": detector.events - 1, **({} if when is None else {"time": when})}
        return {**record, "row": int(batch.rows[i]), "rates": rates}

    def _drifted(self, one: Found, batch: Batch) -> None:
        from fourrates.alerts.payload import drift_alert
        from fourrates.alerts.text import plain

        record = drift_alert(
            one.drift,
            stream=self.tail.source if one.stream is None else one.stream,
            origin=self.origin,
            source=batch.source,
            row=one.at.row,
            time=output.moment(one.at.time, self.events.utc),
        )
        if self.spool is not None:
            self.spool.put(record)
        self.view.drift(record)
        self.drifted += 1
        self.drifts = [*self.drifts[-9:], str(one.drift) if one.stream is None else f"{plain(one.stream)}: {one.drift}"]
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
        bad = "" if self.bad_rows is None else f", {several(self.bad_rows.count - self._bad_before, 'bad row')}"
        whole = f" ({self.run.events:,} in all)" if self._before else ""
        opt.say(
            f"{self.run.events - self._before:,} events in {seconds:,.1f} s{whole}{skipped}{bad}: "
            f"{several(self.drifted, 'drift')}, {several(self.warned, 'warning')}"
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

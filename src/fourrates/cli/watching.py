"""The stream of ``fourrates watch``, with lines as they arrive, their findings, and the saved state."""

from __future__ import annotations

import math
import os
import select
import signal
import stat
import sys
import time as clock
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from msgspec import structs

from fourrates.cli import options as opt
from fourrates.cli.delivery import BadRows, Delivery
from fourrates.cli.lines import FRAME, warned_rates
from fourrates.cli.states import Checkpoint
from fourrates.findings import Finding
from fourrates.io import Batch, Events, Follower, InputError, Tail
from fourrates.plain import finding_record, moment
from fourrates.watch import Watch

READ = 1 << 18  # bytes taken from a pipe at a time
POLL = 0.02  # seconds between looks at a file that has not grown
ENOUGH = 1_000  # rows before data problems are reported; then each time the number doubles
SAVE = 1.0  # seconds after an event in which the state is saved; a finding is saved at once


class Watching:
    def __init__(
        self,
        watch: Watch,
        tail: Tail,
        delivery: Delivery,
        bad_rows: BadRows | None,
        warnings: bool,
        state: Path | None,
        saved: Checkpoint,
    ) -> None:
        self.watch, self.tail, self.delivery, self.view = watch, tail, delivery, delivery.view
        self.events: Events = tail.events
        self.bad_rows, self.warnings, self.state, self.saved = bad_rows, warnings, state, saved
        self.follower: Follower | None = None  # of a file
        self._warning = saved.warning  # the event that opened the last one reported
        self._before = watch.events
        self._save_at = math.inf  # when the state is due to be saved
        self._remarks: dict[str, str] = {}  # reported so far
        self._next_look = self.events.rows + ENOUGH

    def feed(self, lines: bytes) -> None:
        self._save_at = min(self._save_at, clock.monotonic() + SAVE)
        for batch in self.tail.feed(lines):
            self.update(batch)
            self.view.tick()
        if self.events.rows >= self._next_look:
            self._next_look = 2 * self.events.rows
            for topic, sentence in self._data_warnings().items():
                if topic not in self._remarks:
                    self._remarks[topic] = sentence
                    self.view.remark(sentence)

    def _data_warnings(self) -> dict[str, str]:
        """Data problems; those before a resumption were in an earlier summary."""
        problems = self.events.data_warnings()
        if self._before:
            problems.pop("skipped", None)
        return problems

    def finish(self) -> None:
        for batch in self.tail.finish():
            self.update(batch)

    def update(self, batch: Batch) -> None:
        """Update with a batch; report its findings and the warning open after it."""
        for finding in self.watch.update(batch, self.events.keys):
            if finding.kind != "shift":
                self._report(finding)
            elif self.warnings:
                self.delivery.report(finding_record(finding, self.events.utc))
        self._look_for_warning(batch)

    def _look_for_warning(self, batch: Batch) -> None:
        """Report a new warning of a single stream; with many segments it would mean little."""
        if self.events.columns.by is not None:
            return
        (detector,) = self.watch.segments.detectors
        since = detector.warning_since
        if since is not None and since != self._warning:
            self.delivery.warned += 1
            if self.warnings:
                at = max(since - (detector.events - batch.rows.size), 0)
                time = None if batch.times is None or np.isnat(batch.times[at]) else batch.times[at]
                when = moment(time, self.events.utc)
                record = {"kind": "warning", "at": since, **({} if when is None else {"time": when})}
                self.view.show({**record, "row": int(batch.rows[at]), "rates": warned_rates(detector)})
        self._warning = since

    def _report(self, finding: Finding) -> None:
        from fourrates.alerts.payload import finding_alert

        record = finding_alert(
            finding,
            stream=finding.where or self.tail.source,
            origin=self.saved.origin,
            utc=self.events.utc,
            rates=self.watch.stream_of(finding).rates,
        )
        self.delivery.report(record)
        self._save_at = 0.0

    def save_if_due(self) -> None:
        """Save the state if it is time; call this between two pieces of the stream, when all parts agree."""
        if clock.monotonic() >= self._save_at:
            self.save()

    def save(self) -> None:
        self._save_at = math.inf
        if self.state is None:
            return
        rejected = {} if self.bad_rows is None else {"bad": self.bad_rows.count, "bad_size": self.bad_rows.flush()}
        structs.replace(
            self.saved,
            watch=self.watch.to_bytes(),
            warning=self._warning,
            position=self.saved.position if self.follower is None else self.follower.position,
            format=self.tail.format,
            rows=self.events.rows,
            skipped=self.events.skipped,
            **rejected,
        ).save(self.state)

    def summary(self) -> None:
        problems = self._data_warnings()
        whole = f" ({self.watch.events:,} in all)" if self._before else ""
        skipped = f", {self.events.skipped:,} rows skipped" if self.events.skipped and "skipped" not in problems else ""
        bad = "" if self.bad_rows is None else f", {opt.several(self.bad_rows.count - self.saved.bad, 'bad row')}"
        self.delivery.summary(self.watch.events - self._before, self.watch.now(), whole + skipped + bad)
        for topic, sentence in problems.items():
            if self._remarks.get(topic) != sentence:  # its count may have grown
                opt.say(sentence)


@contextmanager
def until_asked() -> Iterator[Callable[[], bool]]:
    """Whether the process was asked to end, by Ctrl-C or SIGTERM. A second request interrupts it at once."""
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


def feed(file: str, watching: Watching, asked: Callable[[], bool]) -> None:
    """Feed arriving bytes until the pipe closes, or forever for a file."""
    with closing(_arriving(file, watching)) as pieces:
        for data in pieces:
            if data is None:
                watching.view.tick()
            else:
                watching.feed(data)
            watching.save_if_due()
            if asked():
                break
        else:
            watching.finish()
    watching.save()


def _arriving(file: str, watching: Watching) -> Generator[bytes | None, None, None]:
    """Bytes as they arrive, None if there are none for a moment. Each is fed before the next is read."""
    if file == "-":
        if sys.stdin is None:
            raise InputError("standard input: closed")
        yield from _from_pipe(sys.stdin.fileno())
        return
    if watching.saved.position is None or os.path.exists(file):
        with open(file, "rb", buffering=0, opener=_at_once) as opened:  # raises if it cannot be opened
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                yield from _from_pipe(opened.fileno())
                return
    with Follower(file, watching.saved.position, on_message=opt.say) as watching.follower:
        follower = watching.follower
        follower.open()
        watching.save()  # before the first event, so that the next run finds this file again
        while True:
            switches = follower.switches
            piece = follower.read()
            if piece is not None and piece.begins:
                watching.tail.begin()
            yield None if piece is None else piece.lines
            if follower.switches > switches:  # the next run cannot see the current target of the link
                watching.save()
            if piece is None:
                clock.sleep(POLL)


def _at_once(path: str, flags: int) -> int:
    """Open a pipe without waiting for its writer, so that a request to end is heard."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _from_pipe(descriptor: int) -> Iterator[bytes | None]:
    while True:
        ready, _, _ = select.select([descriptor], [], [], FRAME)
        data = os.read(descriptor, READ) if ready else None
        if data == b"":
            return
        yield data

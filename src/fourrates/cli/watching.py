"""The stream that ``fourrates watch`` follows: lines as they arrive, what is found in them, the state that is kept."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time as clock
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.cli import options as opt
from fourrates.cli.bad_rows import BadRows
from fourrates.cli.checkpoint import Checkpoint, source_of
from fourrates.cli.picture import FRAME, View, warned_rates
from fourrates.detectors import Detector
from fourrates.io import Batch, Events, Follower, InputError, Position, Tail
from fourrates.names import shortened
from fourrates.plain import moment, shift_record
from fourrates.run import Found, Run

if TYPE_CHECKING:
    from fourrates.alerts import Spool

READ = 1 << 18  # bytes taken from a pipe at a time
POLL = 0.02  # seconds between looks at a file that has not grown
ENOUGH = 1_000  # rows after which what is odd about them is told; then whenever there are twice as many
SAVE = 1.0  # seconds between two savings of the state; after a finding it is saved at once


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
        self.findings: list[str] = []  # the last ones, for the summary
        self.kinds: Counter[str] = Counter()
        self.warned = 0
        self._warning = False if saved is None else saved.warning
        self._before = run.events
        self._bad_before = 0 if saved is None else saved.bad
        self._started = self._kept = clock.monotonic()
        self._dirty = self._urgent = False
        self._remarks: dict[str, str] = {}  # told so far
        self._next_look = self.events.rows + ENOUGH

    def feed(self, lines: bytes) -> None:
        """Take what arrived."""
        self._dirty = True
        for batch in self.tail.feed(lines):
            self.take(batch)
            self.view.tick()
        if self.events.rows >= self._next_look:
            self._next_look = 2 * self.events.rows
            for about, sentence in self._odd().items():
                if about not in self._remarks:
                    self._remarks[about] = sentence
                    self.view.remark(sentence)

    def _odd(self) -> dict[str, str]:
        """What is odd about the rows; what became of those before a resumption is in their own summary."""
        odd = self.events.odd()
        if self._before:
            odd.pop("skipped", None)
        return odd

    def finish(self) -> None:
        """Take the last line of a pipe, if it has no end."""
        self._dirty = True
        for batch in self.tail.finish():
            self.take(batch)

    def take(self, batch: Batch) -> None:
        """Take a batch; tell warnings and findings in the order of their events."""
        warnings = self._look_for_warnings(batch)
        for one in self.run.take(batch, self.events.keys):
            while warnings and warnings[0]["at"] < one.finding.at:
                self.view.warning(warnings.pop(0))
            self._found(one, batch)
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

    def _found(self, one: Found, batch: Batch) -> None:
        from fourrates.alerts.payload import finding_alert

        record = finding_alert(
            one.finding,
            stream=self.tail.source if one.stream is None else one.stream,
            origin=self.origin,
            source=batch.source,
            row=one.at.row,
            time=moment(one.at.time, self.events.utc),
        )
        if self.spool is not None and (one.is_drift or one.finding.closes):
            self.spool.put(record)
        self.view.drift(record)
        self.kinds[one.kind] += 1
        stream = "" if one.stream is None else f"{shortened(one.stream)}: "
        self.findings = [*self.findings[-9:], f"{stream}{one.finding}"]
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
            source=source_of(self.file),
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
        odd = self._odd()
        skipped = f", {self.events.skipped:,} rows skipped" if self.events.skipped and "skipped" not in odd else ""
        bad = "" if self.bad_rows is None else f", {opt.several(self.bad_rows.count - self._bad_before, 'bad row')}"
        ends = [opt.several(self.kinds[kind], kind) for kind in ("withdrawal", "recovery") if self.kinds[kind]]
        found = ", ".join([opt.several(self.kinds["drift"], "drift"), *ends, opt.several(self.warned, "warning")])
        whole = f" ({self.run.events:,} in all)" if self._before else ""
        opt.say(
            f"{opt.several(self.run.events - self._before, 'event')} in {seconds:,.1f} s{whole}{skipped}{bad}: {found}"
        )
        for finding in self.findings:
            opt.say(f"  {finding}")
        for about, sentence in odd.items():
            if self._remarks.get(about) != sentence:  # it may count more by now
                opt.say(sentence)


@contextmanager
def until_asked() -> Iterator[Callable[[], bool]]:
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


def feed(file: str, watching: Watching, position: Position | None, asked: Callable[[], bool]) -> None:
    """Feed what arrives until the pipe closes, or for ever where it is a file."""
    if file == "-":
        if sys.stdin is None:
            raise InputError("standard input: closed")
        _feed_pipe(sys.stdin.fileno(), watching, asked)
        return
    if position is None or os.path.exists(file):
        with open(file, "rb", buffering=0, opener=_at_once) as opened:  # or the error that says why not
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


def _at_once(path: str, flags: int) -> int:
    """Open a pipe without waiting for its writer, so that a request to end is heard."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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

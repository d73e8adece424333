"""``fourrates watch``: a pipe or a growing file, event by event as it arrives."""

from __future__ import annotations

import json as js
import os
import select
import signal
import sys
import time as clock
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import argument, command, option
from fourrates.cli.notify import Notifier
from fourrates.detectors import Detector
from fourrates.drift import Drift, RateState, Recovery
from fourrates.io import Batch, Events, InputError, Missing, Tail

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

READ = 1 << 18  # bytes taken at a time
POLL = 0.02  # seconds between looks at a file that has not grown
FRAME = 0.1  # seconds between pictures
WIDTH = 56  # of a rate's bar
EVIDENT = 0.05  # of the evidence that an alarm takes, from which on a rate is named in a warning


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
@opt.classes
@opt.detector
@opt.arl
@opt.json
@option("--warnings/--no-warnings", default=True, help="Tell warnings too, or drifts alone.")
@option("--exec", "exec_", metavar="CMD", help="Run this on each drift, with the drift as JSON on its standard input.")
@option("--webhook", metavar="URL", callback=_address, help="Post each drift to this address, as JSON.")
def watch(
    file: str,
    truth: str | None,
    pred: str | None,
    score: str | None,
    threshold: float | None,
    time: str | None,
    labels: str | None,
    positive: str | None,
    missing: Missing,
    detector: str | None,
    arl: str | None,
    json: bool,
    warnings: bool,
    exec_: str | None,
    webhook: str | None,
) -> None:
    """Watch a stream and tell each warning and drift the moment its event arrives.

    On a terminal the rates are shown within their bounds; elsewhere, or with --json, each line is a JSON object. Ctrl-C
    ends it with a summary.

    Examples
    --------
      tail -f predictions.jsonl | fourrates watch -
      fourrates watch log.csv --exec 'mail -s drift me@example.org'
      fourrates watch log.csv --no-warnings --webhook https://example.org/hook
    """
    classes = opt.labels_of(labels) or [0, 1]
    positive_label = opt.label_of(positive, classes)
    events = opt.events_of(
        [file],
        truth=truth,
        pred=pred,
        score=score,
        threshold=threshold,
        time=time,
        by=None,
        labels=classes,
        positive=positive_label,
        missing=missing,
    )
    made = opt.make_detector(opt.spec(detector or opt.DEFAULT), events.labels, arl)
    live = sys.stdout.isatty() and not json
    notifier = Notifier(exec_, webhook, opt.say)
    view = _View(made, file) if live else _Lines()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    assert isinstance(events, Events)
    watching = Watching(made, events, view, notifier, warnings)
    try:
        with view:
            _follow(file, watching)
    except KeyboardInterrupt:
        pass
    finally:
        notifier.close()
    if watching.detector.events == 0 and not watching.interrupted and file == "-":
        raise InputError("standard input: empty")
    watching.summary()


class Watching:
    """A detector fed with bytes as they arrive; what it finds goes to a view and to the notifier."""

    def __init__(self, detector: Detector, events: Events, view: Any, notifier: Notifier, warnings: bool) -> None:
        self.detector, self.events, self.view, self.notifier = detector, events, view, notifier
        self.warnings = warnings
        self.drifts: list[Drift] = []
        self.warned = 0
        self.interrupted = False
        self._warning = False
        self._started = clock.monotonic()

    def take(self, batch: Batch) -> None:
        """Take a batch, event by event."""
        detector, values = self.detector, self.detector.labels.values
        update, warning = detector.update, self._warning
        pairs = zip(batch.truths.tolist(), batch.guesses.tolist(), strict=True)
        for i, (truth, guess) in enumerate(pairs):
            drift = update(values[truth], values[guess])
            if drift is not None:
                warning = False
                self._drifted(drift, batch, i)
            elif detector.warning_detected != warning:
                warning = not warning
                if warning:
                    self._warned(batch, i)
        self._warning = warning

    def _drifted(self, drift: Drift, batch: Batch, i: int) -> None:
        time = output.moment(_time(batch, i), self.events.utc)
        self.drifts.append(drift)
        record = {
            "kind": "recovery" if isinstance(drift, Recovery) else "drift",
            "at": drift.at,
            "since": drift.since,
            **({} if time is None else {"time": time}),
            "row": int(batch.rows[i]),
            **output.start(drift),
            "changes": output.changes(drift),
            "confusion": drift.confusion,
        }
        self.view.drift(record)
        self.notifier.send(record)

    def _warned(self, batch: Batch, i: int) -> None:
        self.warned += 1
        if not self.warnings:
            return
        time = output.moment(_time(batch, i), self.events.utc)
        rates = [
            {"rate": name, "statistic": output.finite(position(state)), "expected": output.finite(expected(state))}
            for name, state in rates_of(self.detector).items()
            if warns(state)
        ]
        at = self.detector.events - 1
        record = {"kind": "warning", "at": at, **({} if time is None else {"time": time}), "row": int(batch.rows[i])}
        self.view.warning({**record, "rates": rates})

    def summary(self) -> None:
        """Tell what was seen."""
        seconds = max(clock.monotonic() - self._started, 1e-9)
        skipped = f", {self.events.skipped:,} rows skipped" if self.events.skipped else ""
        opt.say(
            f"{self.detector.events:,} events in {seconds:,.1f} s{skipped}: "
            f"{_several(len(self.drifts), 'drift')}, {_several(self.warned, 'warning')}"
        )
        for drift in self.drifts[-10:]:
            opt.say(f"  {drift}")


def rates_of(detector: Detector) -> Mapping[str, RateState]:
    """Where the rates of a detector stand, if it tells."""
    rates: Mapping[str, RateState] = getattr(detector, "rates", {})
    return rates


def warns(state: RateState) -> bool:
    """Whether a rate is part of a warning: a statistic outside its bounds, or much of an alarm's evidence."""
    if state.evidence is not None:
        return state.evidence >= EVIDENT
    return any(not one.warn.lower <= one.value <= one.warn.upper for one in state.statistics)


def position(state: RateState) -> float:
    """Where a rate stands: the statistic that is outside its bounds, or the first; the estimate where there is none."""
    outside = [one for one in state.statistics if not one.warn.lower <= one.value <= one.warn.upper]
    return next((one.value for one in [*outside, *state.statistics]), state.estimate)


def expected(state: RateState) -> float:
    """What a rate is compared with."""
    return state.estimate if state.baseline is None else state.baseline.value


def _time(batch: Batch, i: int) -> np.datetime64 | None:
    return None if batch.times is None or np.isnat(batch.times[i]) else batch.times[i]


# Bytes ------------------------------------------------------------------------------------------------------


def _follow(file: str, watching: Watching) -> None:
    """Feed what arrives until the pipe closes, or for ever where it is a file."""
    tail = Tail(watching.events, "standard input" if file == "-" else file)
    view = watching.view
    try:
        for data in _pipe(view) if file == "-" else _growing(file, view):
            for batch in tail.feed(data):
                watching.take(batch)
                view.tick()
        for batch in tail.finish():
            watching.take(batch)
    except KeyboardInterrupt:
        watching.interrupted = True
        raise


def _pipe(view: Any) -> Iterator[bytes]:
    descriptor = sys.stdin.fileno()
    while True:
        ready, _, _ = select.select([descriptor], [], [], FRAME)
        if not ready:
            view.tick()
            continue
        data = os.read(descriptor, READ)
        if not data:
            return
        yield data


def _growing(path: str, view: Any) -> Iterator[bytes]:
    file = open(path, "rb", buffering=0)  # noqa: SIM115 (opened again when the file is replaced)
    try:
        while True:
            data = file.read(READ)
            if data:
                yield data
                continue
            view.tick()
            clock.sleep(POLL)
            try:
                there = os.stat(path)
            except FileNotFoundError:
                continue  # moved away; a new one will come
            here = os.fstat(file.fileno())
            if (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev) or there.st_size < file.tell():
                opt.say(f"{path} was replaced; going on with the new one")
                file.close()
                file = open(path, "rb", buffering=0)  # noqa: SIM115
    finally:
        file.close()


# Views ------------------------------------------------------------------------------------------------------


class _Lines:
    """One JSON object a line, written at once."""

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def drift(self, record: dict[str, Any]) -> None:
        sys.stdout.write(js.dumps(record) + "\n")
        sys.stdout.flush()

    warning = drift

    def tick(self) -> None:
        pass


class _View:
    """The rates within their bounds, live, and what happened last."""

    def __init__(self, detector: Detector, name: str) -> None:
        self.detector, self.name = detector, "standard input" if name == "-" else name
        from rich.console import Console  # of use on a terminal only
        from rich.live import Live

        self.console = Console(highlight=False)
        self.told: deque[Text] = deque(maxlen=5)  # drifts
        self.heard: deque[Text] = deque(maxlen=5)  # warnings, which would push the drifts off the screen
        self.drifts = self.warnings = 0
        self.next = 0.0
        self.seen = (clock.monotonic(), 0)
        self.speed = 0.0
        self.live = Live(console=self.console, auto_refresh=False, transient=False)

    def __enter__(self) -> _View:
        self.live.__enter__()
        self.tick()
        return self

    def __exit__(self, *details: Any) -> None:
        self.live.update(self.picture(), refresh=True)
        self.live.__exit__(*details)

    def drift(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        self.drifts += 1
        moved = "; ".join(f"{c['rate']} {output.ARROWS[c['direction']]} {_moved(c)}" for c in record["changes"])
        since = record.get("started", record["since"])
        colour = "bold green" if record["kind"] == "recovery" else "bold red"
        self.told.append(Text(f"{record['kind']:<8} {_when(record)}, since event {since:,}: {moved}", colour))

    def warning(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        self.warnings += 1
        rates = ", ".join(f"{r['rate']} {r['statistic'] or 0:.3f}" for r in record["rates"])
        self.heard.append(Text(f"warning  {_when(record)}: {rates}", "yellow"))

    def tick(self) -> None:
        now = clock.monotonic()
        if now >= self.next:
            self.next = now + FRAME
            at, events = self.seen
            if now - at >= 1:
                self.speed = (self.detector.events - events) / (now - at)
                self.seen = (now, self.detector.events)
            self.live.update(self.picture(), refresh=True)

    def picture(self) -> Group:
        from rich.console import Group
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for justify in ("left", "left", "right", "right", "right"):
            grid.add_column(justify=justify, no_wrap=True)
        grid.add_row(
            "",
            Text("0" + " " * (WIDTH // 2 - 2) + "0.5" + " " * (WIDTH // 2 - 3) + "1", "dim"),
            *(Text(word, "dim") for word in ("now", "since reset", "n")),
        )
        rates = rates_of(self.detector)
        room = max(4, self.console.height - 16)
        for name, state in islice(rates.items(), room):
            colour = "yellow" if warns(state) else "green"
            grid.add_row(
                Text(name, "bold"),
                bar(state, colour),
                Text(f"{position(state):.3f}" if position(state) == position(state) else "", colour),
                "" if state.n == 0 else f"{state.estimate:.3f}",
                f"{state.n:,}",
            )
        if len(rates) > room:
            grid.add_row(Text(f"... and {len(rates) - room} more", "dim"))
        head = f"{self.detector.events:,} events" + (f", {self.speed:,.0f} a second" if self.speed else "")
        head += f", {_several(self.drifts, 'drift')}, {_several(self.warnings, 'warning')}"
        key = Text.assemble(
            ("● ", "green"), ("now   ", "dim"), "┃ ", ("detect   ", "dim"), "│ ", ("warn   Ctrl-C ends", "dim")
        )
        panel = Panel(grid, title=f"[bold]{self.name}[/bold]", subtitle=head, padding=(1, 2), expand=False)
        return Group(panel, key, *(self.told or [Text("no drift yet", "dim")]), *self.heard)


def bar(state: RateState, colour: str) -> Text:
    """A rate between 0 and 1: its statistic within the bounds of warning and detection, or within its interval."""
    from rich.text import Text

    def column(value: float) -> int:
        return round(min(max(value, 0.0), 1.0) * (WIDTH - 1))

    cells = [" "] * WIDTH
    if state.statistics:
        low, high = column(state.detect.lower), column(state.detect.upper)
        cells[low : high + 1] = "·" * (high + 1 - low)
        start, end = column(state.warn.lower), column(state.warn.upper)
        cells[start : end + 1] = "─" * (end + 1 - start)
        cells[start] = cells[end] = "│"
        cells[low] = cells[high] = "┃"
    else:  # no bounds: where the rate was, and its interval
        interval = state.interval if state.baseline is None else state.baseline
        start, end = (0, -1) if interval is None else (column(interval.lower), column(interval.upper))
        cells[start : end + 1] = "─" * (end + 1 - start)
    text = Text("".join(cells), "dim")
    value = position(state)
    if value != value:
        return text
    at = column(value)
    text = text[:at] + Text("●", f"bold {colour}") + text[at + 1 :]
    return text


def _moved(change: Mapping[str, Any]) -> str:
    """From what to what a rate moved, as far as the detector tells."""
    if "before" in change:
        return f"{change['before']['value'] or 0:.3f} → {change['after']['value'] or 0:.3f}"
    before = "" if change["expected"] is None else f"{change['expected']:.3f} → "
    return before + ("" if change["statistic"] is None else f"{change['statistic']:.3f}")


def _several(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _when(record: dict[str, Any]) -> str:
    return f"{record['time']} (event {record['at']:,})" if "time" in record else f"event {record['at']:,}"

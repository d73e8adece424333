"""What `watch` shows: lines of JSON for programs, the rates within their bounds for people."""

from __future__ import annotations

import json as js
import sys
import time as clock
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from fourrates.alerts.text import plain
from fourrates.cli import output
from fourrates.detectors import Detector
from fourrates.drift import RateState, Statistic
from fourrates.run import Run

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

FRAME = 0.1  # seconds between pictures
WIDTH = 56  # of a rate's bar


class View(Protocol):
    """What is told of warnings and drifts, as they are found."""

    def __enter__(self) -> View:
        """Begin."""

    def __exit__(self, *details: Any) -> None:
        """End, with everything shown."""

    def drift(self, record: dict[str, Any]) -> None:
        """Show a drift."""

    def warning(self, record: dict[str, Any]) -> None:
        """Show a warning."""

    def tick(self) -> None:
        """Bring the picture up to date."""


def rates_of(detector: Detector) -> Mapping[str, RateState]:
    """Where the rates of a detector stand, if it tells."""
    rates: Mapping[str, RateState] = getattr(detector, "rates", {})
    return rates


def outside(state: RateState) -> list[Statistic]:
    """The statistics of a rate that stand outside their warning bounds."""
    return [one for one in state.statistics if not one.warn.lower <= one.value <= one.warn.upper]


class Lines:
    """One JSON object a line, written at once."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def drift(self, record: dict[str, Any]) -> None:
        """Tell a drift."""
        sys.stdout.write(js.dumps(record) + "\n")
        sys.stdout.flush()

    warning = drift

    def tick(self) -> None:
        """There is no picture."""


class Picture:
    """The rates within their bounds, live, and what happened last."""

    def __init__(self, run: Run, detector: Detector | None, name: str) -> None:
        self.run, self.detector, self.name = run, detector, name
        from rich.console import Console  # of use on a terminal only
        from rich.live import Live

        self.console = Console(highlight=False)
        self.told: deque[Text] = deque(maxlen=5)  # drifts
        self.heard: deque[Text] = deque(maxlen=5)  # warnings, which would push the drifts off the screen
        self.drifts = self.warnings = 0
        self.next = 0.0
        self.seen = (clock.monotonic(), run.events)
        self.speed = 0.0
        self.live = Live(console=self.console, auto_refresh=False, transient=False)

    def __enter__(self) -> Picture:
        self.live.__enter__()
        self.tick()
        return self

    def __exit__(self, *details: Any) -> None:
        self.live.update(self.picture(), refresh=True)
        self.live.__exit__(*details)

    def drift(self, record: dict[str, Any]) -> None:
        """Tell a drift."""
        from rich.text import Text

        self.drifts += 1
        moved = "; ".join(
            f"{plain(c['rate'])} {output.ARROWS[c['direction']]} {_number(c['expected'])}{_number(c['statistic'], '')}"
            for c in record["changes"]
        )
        stream = "" if self.detector is not None else f"{plain(record['stream'])}: "
        what = f"drift    {stream}{_when(record)}, since event {record['since']:,}: {moved}"
        self.told.append(Text(what, "bold red"))

    def warning(self, record: dict[str, Any]) -> None:
        """Tell a warning."""
        from rich.text import Text

        self.warnings += 1
        rates = ", ".join(f"{plain(r['rate'])} {_number(r['statistic'], '')}" for r in record["rates"])
        self.heard.append(Text(f"warning  {_when(record)}: {rates}", "yellow"))

    def tick(self) -> None:
        """Bring the picture up to date, if it is time to."""
        now = clock.monotonic()
        if now >= self.next:
            self.next = now + FRAME
            at, events = self.seen
            if now - at >= 1:
                self.speed = (self.run.events - events) / (now - at)
                self.seen = (now, self.run.events)
            self.live.update(self.picture(), refresh=True)

    def picture(self) -> Group:
        """All of it."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        head = f"{self.run.events:,} events" + (f", {self.speed:,.0f} a second" if self.speed else "")
        head += f", {several(self.drifts, 'drift')}, {several(self.warnings, 'warning')}"
        parts: list[RenderableType] = []
        if self.detector is None:
            inside: RenderableType = Text(several(len(self.run.streams), "stream").ljust(WIDTH))
        else:
            inside = self.rates(self.detector)
            key = (("● ", "green"), ("now   ", "dim"), "┃ ", ("detect   ", "dim"), "│ ", ("warn   Ctrl-C ends", "dim"))
            parts.append(Text.assemble(*key))
        # As text: a name in brackets would be taken for markup.
        panel = Panel(inside, title=Text(plain(self.name), "bold"), subtitle=Text(head), padding=(1, 2), expand=False)
        return Group(panel, *parts, *(self.told or [Text("no drift yet", "dim")]), *self.heard)

    def rates(self, detector: Detector) -> RenderableType:
        """The rates of the one stream."""
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
        rates = rates_of(detector)
        room = max(4, self.console.height - 16)
        for name, state in islice(rates.items(), room):
            colour = "yellow" if outside(state) else "green"
            grid.add_row(
                Text(plain(name), "bold"),
                bar(state, colour),
                Text(f"{state.statistic:.3f}", colour),
                "" if state.n == 0 else f"{state.estimate:.3f}",
                f"{state.n:,}",
            )
        if len(rates) > room:
            grid.add_row(Text(f"... and {len(rates) - room} more", "dim"))
        return grid


def bar(state: RateState, colour: str) -> Text:
    """A rate between 0 and 1: its statistic within the bounds of warning and detection."""
    from rich.text import Text

    def column(value: float) -> int:
        return round(min(max(value, 0.0), 1.0) * (WIDTH - 1))

    low, high = column(state.detect.lower), column(state.detect.upper)
    cells = [" "] * WIDTH
    cells[low : high + 1] = "·" * (high + 1 - low)
    start, end = column(state.warn.lower), column(state.warn.upper)
    cells[start : end + 1] = "─" * (end + 1 - start)
    cells[start] = cells[end] = "│"
    cells[low] = cells[high] = "┃"
    text = Text("".join(cells), "dim")
    at = column(state.statistic)
    text = text[:at] + Text("●", f"bold {colour}") + text[at + 1 :]
    return text


def several(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _when(record: dict[str, Any]) -> str:
    return f"{record['time']} (event {record['at']:,})" if "time" in record else f"event {record['at']:,}"


def _number(value: float | None, behind: str = " → ") -> str:
    return "" if value is None else f"{value:.3f}{behind}"

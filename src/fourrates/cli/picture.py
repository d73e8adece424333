"""The display of `watch` on a terminal: the rates within their bounds, live, and the latest findings."""

from __future__ import annotations

import math
import time as clock
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fourrates.cli.lines import FRAME, SHIFTS, in_a_line, now_and_normal, warned_rates
from fourrates.cli.options import several
from fourrates.cli.output import DRIFT, END
from fourrates.detectors import Detector
from fourrates.escaping import shortened
from fourrates.findings import Bounds, RateState, Share

NORMAL = "dodger_blue1"  # easy to distinguish from orange for anyone
WIDTH = 56  # of a rate's bar
NARROW = 15  # the shortest bar
OPEN = 5  # open drifts shown


class Picture:
    """The rates within their bounds, live, and the latest findings; `watch` is a Watch, or a Monitor of a topic."""

    def __init__(self, watch: Any, single: bool, name: str) -> None:
        self.watch, self.single, self.name = watch, single, name
        self.console = Console(highlight=False)
        self.latest: deque[Text] = deque(maxlen=5)  # drifts and their later findings
        self.notes: deque[Text] = deque(maxlen=5)  # warnings, separately so that they do not push drifts off the screen
        self.drifts = self.warnings = 0
        self.next = 0.0
        self.seen = (clock.monotonic(), watch.events)
        self.speed = 0.0
        self.live = Live(console=self.console, auto_refresh=False, transient=False)

    def __enter__(self) -> Picture:
        self.live.__enter__()
        self.tick()
        return self

    def __exit__(self, *details: Any) -> None:
        self.live.update(self.picture(), refresh=True)
        self.live.__exit__(*details)

    def show(self, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "warning":
            self.warnings += 1
            self.notes.append(Text(f"{_when(record)}  warning: {', '.join(map(_worry, record['rates']))}", "yellow"))
        elif kind in SHIFTS:
            segment = "" if self.single else f"{shortened(str(record.get('segment', '')))}: "
            shares = f"{_number(record['before']['value'])} → {_number(record['after']['value'])}"
            self.notes.append(Text(f"{_when(record)}  {segment}the class mix shifted, share of positives {shares}"))
        else:
            self.drifts += kind == "drift"
            self.latest.append(
                Text(in_a_line(record), DRIFT if kind == "drift" else END if record["closes"] else "bold")
            )

    def remark(self, sentence: str) -> None:
        self.notes.append(Text(f"note: {sentence}", "dim"))

    def tick(self) -> None:
        now = clock.monotonic()
        if now >= self.next:
            self.next = now + FRAME
            at, events = self.seen
            if now - at >= 1:
                self.speed = (self.watch.events - events) / (now - at)
                self.seen = (now, self.watch.events)
            self.live.update(self.picture(), refresh=True)

    def picture(self) -> Group:
        head = f"{self.watch.events:,} events" + (f", {self.speed:,.0f} a second" if self.speed else "")
        head += f", {several(self.drifts, 'drift')}, {several(self.warnings, 'warning')}"
        now, name = self.watch.now(), shortened(self.name)
        verdict = Table.grid(padding=(0, 1))
        for drift in now.open[:OPEN]:
            verdict.add_row(Text("▼", DRIFT), Text(str(drift), DRIFT))
        if len(now.open) > OPEN:
            verdict.add_row("", Text(f"and {several(len(now.open) - OPEN, 'drift')} more", DRIFT))
        if not now.open and now.holds and not now.unknown:
            close = ", but a rate is close to an alarm" if now.warned else ""
            verdict.add_row(Text("●", END), f"no drift is open{close}")
        parts: list[RenderableType] = [verdict] if verdict.row_count else []
        if self.single:
            detector = self.watch.segments.get(None, self.watch.detector)
            # As text, since brackets in a name would be parsed as markup.
            inside = self.rates(detector)
            frame = Panel(inside, title=Text(name, "bold"), subtitle=Text(head), padding=(1, 2), expand=False)
            parts += [frame, _key(detector)]
        else:
            parts.append(Text(f"{name}: {several(now.segments or 0, 'segment')}, {head}   Ctrl-C ends", "dim"))
        quiet = [] if verdict.row_count else [Text("no drift yet", "dim")]
        return Group(*parts, *(self.latest or quiet), *self.notes)

    def rates(self, detector: Detector) -> RenderableType:
        rates, worrying = detector.rates, {rate["rate"] for rate in warned_rates(detector)}
        weighs = _weighs(detector)
        grid = Table.grid(padding=(0, 2))
        for justify in ("left", "left", "right", "right", "right", "right"):
            grid.add_column(justify=justify, no_wrap=True)
        words = ("now", "normal", "n", "alarm level") if weighs else ("now", "since reset", "n")
        shown = dict(islice(rates.items(), max(4, self.console.height - 16)))
        width = self._bar_width([shortened(name) for name in shown], weighs)
        scale = "0" + "0.5".center(width - 2) + "1"
        grid.add_row("", Text(scale, "dim"), *(Text(word, "dim") for word in words))
        for name, state in shown.items():
            judged = NORMAL if state.statistics or state.normal is not None else "default"
            colour = "dark_orange" if state.state != "normal" else "yellow" if name in worrying else judged
            now, usual = now_and_normal(state)
            grid.add_row(
                Text(shortened(name), "bold"),
                bar(state, colour, width),
                Text(_number(now), colour),
                Text(_number(usual)),
                f"{state.n if state.statistics or state.now is None else state.now.n:,}",
                *(["" if state.evidence is None else f"{min(max(state.evidence, 0.0), 1.0):.0%}"] if weighs else []),
            )
        if len(rates) > len(shown):
            grid.add_row(Text(f"... and {len(rates) - len(shown)} more", "dim"))
        return grid

    def _bar_width(self, names: Sequence[str], weighs: bool) -> int:
        """The width left for bars beside names and numbers; bars may shrink, numbers may not."""
        numbers = 5 + 11 + 11 + (11 if weighs else 0)
        left = self.console.width - max(map(len, names), default=0) - numbers - 10 - 6  # gaps, and the frame
        return min(max(left, NARROW), WIDTH)


def bar(state: RateState, colour: str, width: int = WIDTH) -> Text:
    """A rate between 0 and 1: its statistic within its bounds, or the rate now against the interval of normal."""
    cells = [" "] * width

    def column(value: float) -> int:
        return round(min(max(value, 0.0), 1.0) * (width - 1))

    def span(bounds: Bounds | Share, line: str, end: str) -> None:
        first, last = column(bounds.lower), column(bounds.upper)
        cells[first : last + 1] = line * (last + 1 - first)
        cells[first] = cells[last] = end

    if state.statistics:
        span(state.detect, "·", "┃")
        span(state.warn, "─", "│")
        for edge in (state.detect.lower, state.detect.upper):  # which a warning edge may cover
            cells[column(edge)] = "┃"
    elif state.normal is not None and state.normal.n:
        span(state.normal, "─", "│")
    line = "".join(cells)
    now, _ = now_and_normal(state)
    if now is None or math.isnan(now):
        return Text(line, "dim")
    at = column(now)
    return Text.assemble((line[:at], "dim"), ("●", f"bold {colour}"), (line[at + 1 :], "dim"))


def _weighs(detector: Detector) -> bool:
    return any(state.evidence is not None for state in detector.rates.values())


def _key(detector: Detector) -> Text:
    text = Text.assemble(("● ", NORMAL), ("now   ", "dim"))
    if _weighs(detector):
        text += Text.assemble("│ ", ("normal, 90 %   ", "dim"), ("an alarm at level 100%   ", "dim"))
    else:
        text += Text.assemble("┃ ", ("detect   ", "dim"), "│ ", ("warn   ", "dim"))
    return text + Text("Ctrl-C ends", "dim")


def _when(record: Mapping[str, Any]) -> str:
    return record["time"][:16].replace("T", " ") if "time" in record else f"event {record['at']:,}"


def _worry(rate: Mapping[str, Any]) -> str:
    evidence = f" (alarm level {rate['evidence']:.0%})" if rate.get("evidence") is not None else ""
    return f"{shortened(rate['rate'])} {_number(rate['statistic'])}{evidence}"


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"

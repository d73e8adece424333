"""The display of `watch`: JSON lines for programs, rates within their bounds for people."""

from __future__ import annotations

import json as js
import math
import sys
import time as clock
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from fourrates.cli.options import say, several
from fourrates.cli.output import ARROWS, DRIFT, END, WORDS
from fourrates.detectors import Detector
from fourrates.escaping import shortened
from fourrates.findings import Bounds, RateState, Share, Statistic
from fourrates.plain import finite
from fourrates.watch import Now, Watch

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text


FRAME = 0.1  # seconds between pictures
NORMAL = "dodger_blue1"  # easily told from orange by anyone
WIDTH = 56  # of a rate's bar
NARROW = 15  # the shortest bar
OPEN = 5  # open drifts shown


class Watched(Protocol):
    """The interface of a watch for pictures."""

    @property
    def events(self) -> int:
        """Events so far."""

    @property
    def detector(self) -> Any:
        """The detector that each segment begins with."""

    def now(self) -> Now:
        """The current status."""


def rates_of(detector: Detector) -> Mapping[str, RateState]:
    """The rates of a detector, if it reports them."""
    rates: Mapping[str, RateState] = getattr(detector, "rates", {})
    return rates


def outside(state: RateState) -> list[Statistic]:
    """The statistics of a rate that are outside their warning bounds."""
    return [one for one in state.statistics if one.value < one.warn.lower or one.value > one.warn.upper]


def warned_rates(detector: Detector) -> list[dict[str, Any]]:
    """The rates behind a warning: those outside their bounds, or with most of the evidence."""
    rates = rates_of(detector)
    found = [
        {"rate": name, "statistic": finite(one.value), "expected": finite(state.estimate)}
        for name, state in rates.items()
        for one in outside(state)[:1]
    ]
    if detector.warning_detected:
        most = max((state.evidence or 0.0 for state in rates.values()), default=0.0)
        for name, state in rates.items():
            if state.evidence is not None and state.evidence >= most / 2:
                now, usual = map(finite, standing(state))
                found.append({"rate": name, "statistic": now, "expected": usual, "evidence": finite(state.evidence)})
    return found


class Lines:
    """One JSON object per line, flushed at once."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def drift(self, record: dict[str, Any]) -> None:
        sys.stdout.write(js.dumps(record) + "\n")
        sys.stdout.flush()

    warning = shift = drift

    def remark(self, sentence: str) -> None:
        """Report a data problem to people; programs read the standard output."""
        say(sentence)

    def tick(self) -> None:
        """Nothing to draw."""


class Picture:
    """The rates within their bounds, live, and the latest findings."""

    def __init__(self, watch: Watched, single: bool, name: str) -> None:
        self.watch, self.single, self.name = watch, single, name
        from rich.console import Console  # only needed on a terminal
        from rich.live import Live

        self.console = Console(highlight=False)
        self.told: deque[Text] = deque(maxlen=5)  # drifts and their later findings
        self.heard: deque[Text] = deque(maxlen=5)  # warnings, separately so that they do not push drifts off the screen
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

    def drift(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        is_drift = record["kind"] == "drift"
        self.drifts += is_drift
        stream = "" if self.single else f"{shortened(record['stream'])}: "
        moved = "; ".join(map(_moved, record["changes"]))
        since = ""
        if is_drift and record.get("started") is not None:
            started = {"at": record["started"]} | ({"time": record["started_time"]} if "started_time" in record else {})
            since = f", since about {_when(started)}"
        line = f"{_when(record)}  {WORDS[record['kind']]:<9}  {stream}{moved}{since}"
        self.told.append(Text(line, DRIFT if is_drift else END if record["closes"] else "bold"))

    def warning(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        self.warnings += 1
        rates = ", ".join(map(_worry, record["rates"]))
        self.heard.append(Text(f"{_when(record)}  warning    {rates}", "yellow"))

    def shift(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        stream = "" if self.single else f"{shortened(str(record.get('segment', '')))}: "
        shares = _from_to(record["before"]["value"], record["after"]["value"])
        self.heard.append(Text(f"{_when(record)}  shift      {stream}share of positives {shares}"))

    def remark(self, sentence: str) -> None:
        from rich.text import Text

        self.heard.append(Text(f"note: {sentence}", "dim"))

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
        from rich.console import Group
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        head = f"{self.watch.events:,} events" + (f", {self.speed:,.0f} a second" if self.speed else "")
        head += f", {several(self.drifts, 'drift')}, {several(self.warnings, 'warning')}"
        now, name = self.watch.now(), shortened(self.name)
        verdict = Table.grid(padding=(0, 1))
        for drift in now.open[:OPEN]:
            verdict.add_row(Text("▼", DRIFT), Text(str(drift), DRIFT))
        if len(now.open) > OPEN:
            verdict.add_row("", Text(f"and {several(len(now.open) - OPEN, 'drift')} more", DRIFT))
        if not now.open and now.holds and not now.unknown:
            verdict.add_row(Text("●", END), "no drift is open" + (", but a rate is close to one" if now.warned else ""))
        parts: list[RenderableType] = [verdict] if verdict.row_count else []
        if self.single:
            assert isinstance(self.watch, Watch)
            detector: Any = self.watch.segments.get(None, self.watch.detector)
            # As text: brackets in a name would be parsed as markup.
            inside = self.rates(detector)
            frame = Panel(inside, title=Text(name, "bold"), subtitle=Text(head), padding=(1, 2), expand=False)
            parts += [frame, _key(detector)]
        else:
            parts.append(Text(f"{name}: {several(now.segments or 0, 'segment')}, {head}   Ctrl-C ends", "dim"))
        quiet = [] if verdict.row_count else [Text("no drift yet", "dim")]
        return Group(*parts, *(self.told or quiet), *self.heard)

    def rates(self, detector: Detector) -> RenderableType:
        """The rates of the one stream."""
        from rich.table import Table
        from rich.text import Text

        rates, worrying = rates_of(detector), {one["rate"] for one in warned_rates(detector)}
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
            now, usual = standing(state)
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


View = Lines | Picture


def standing(state: RateState) -> tuple[float | None, float | None]:
    """The current value of a rate and its normal, if known."""
    if state.statistics:
        return state.statistic, state.estimate
    now = state.estimate if state.now is None else state.now.value
    return now, None if state.normal is None else state.normal.value


def bar(state: RateState, colour: str, width: int = WIDTH) -> Text:
    """A rate between 0 and 1: its statistic within its bounds, or the rate now against the interval of normal."""
    from rich.text import Text

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
    now, _ = standing(state)
    if now is None or math.isnan(now):
        return Text(line, "dim")
    at = column(now)
    return Text.assemble((line[:at], "dim"), ("●", f"bold {colour}"), (line[at + 1 :], "dim"))


def _weighs(detector: Detector) -> bool:
    return any(state.evidence is not None for state in rates_of(detector).values())


def _key(detector: Detector) -> Text:
    from rich.text import Text

    text = Text.assemble(("● ", NORMAL), ("now   ", "dim"))
    if _weighs(detector):
        text += Text.assemble("│ ", ("normal, 90 %   ", "dim"), ("an alarm at level 100%   ", "dim"))
    else:
        text += Text.assemble("┃ ", ("detect   ", "dim"), "│ ", ("warn   ", "dim"))
    return text + Text("Ctrl-C ends", "dim")


def _when(record: Mapping[str, Any]) -> str:
    return record["time"][:16].replace("T", " ") if "time" in record else f"event {record['at']:,}"


def _moved(change: Mapping[str, Any]) -> str:
    """A rate that moved: from old to new value, or from expected value to statistic."""
    before, after = change["expected"], change["statistic"]
    if "before" in change and "after" in change:
        before, after = change["before"]["value"], change["after"]["value"]
    return f"{shortened(change['rate'])} {ARROWS[change['direction']]} {_from_to(before, after)}"


def _worry(rate: Mapping[str, Any]) -> str:
    evidence = f" (alarm level {rate['evidence']:.0%})" if rate.get("evidence") is not None else ""
    return f"{shortened(rate['rate'])} {_number(rate['statistic'])}{evidence}"


def _from_to(before: float | None, after: float | None) -> str:
    return _number(after) if before is None else f"{_number(before)} → {_number(after)}"


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"

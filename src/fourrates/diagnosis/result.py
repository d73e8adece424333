"""The result of :func:`~fourrates.diagnose`, as fields, sentences, a dict and a fragment of HTML."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fourrates import plain
from fourrates.budget.falls import Fall
from fourrates.budget.words import UNITS, duration
from fourrates.detectors.seasons import Season
from fourrates.escaping import printable, shortened
from fourrates.watch.dispersion import in_words
from fourrates.watch.now import several

Matrix = tuple[tuple[int, ...], ...]
FEW = 30  # events of a class, below which its recall is unknown
SHOWN = 12  # classes listed one by one
PLAIN = (
    *("events", "rows", "threshold", "arl", "alarms_a_month", "drifts", "labels", "problems", "messages", "lacking"),
    *("confusion", "dispersion", "season", "scores"),
)
"""What JSON has as it is."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Duplicate events."""

    ids: int | None  #: events with a repeated id; None without a column of ids
    estimated: bool  #: whether there were too many different ids to count them one by one
    rows: int | None  #: rows equal to the row before in every column that is read; None if these do not identify a row
    twice_each: bool  #: whether every event is there twice in a row


@dataclass(frozen=True, slots=True)
class Clocked:
    """The times of the events."""

    first: np.datetime64
    last: np.datetime64
    utc: bool  #: whether they are in UTC
    per_day: float | None  #: events a day; None if all have the same time
    #: events of a quiet day, a middling and a busy one; None with fewer than three whole days
    days: tuple[int, int, int] | None
    unknown: int  #: events without a time
    backwards: int  #: events with an earlier time than the one before, in their stream
    largest_step: np.timedelta64  #: how far back the largest of these steps goes

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            "first_time": plain.moment(self.first, self.utc),
            "last_time": plain.moment(self.last, self.utc),
            "per_day": self.per_day,
            "days": plain.to_json(self.days),
            "without_time": self.unknown,
            "backwards": self.backwards,
            "largest_step_back": float(self.largest_step / np.timedelta64(1, "s")),
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The character of a stream, threats to the assumptions behind a budget, and the expectations of one."""

    events: int  #: rows that have both a label and a prediction
    rows: int  #: all of them
    lacking: Mapping[str, int]  #: by column, rows without a value
    streams: int | None  #: the number of segments, if a column defines them
    labels: tuple[Hashable, ...]  #: the classes, the positive one of two last
    confusion: Matrix  #: counts by true class and then by predicted class
    clock: Clocked | None  #: times, events a day, and times that run backwards; None without times
    #: by recall, its dispersion as FourRates finds it at the end, 1 for independent events
    dispersion: Mapping[str, float]
    season: Season | None  #: the season that errors follow, as `season="auto"` chooses it from the first events
    repeats: Repeats
    scores: tuple[float, float] | None  #: the lowest and the highest
    threshold: float | None  #: the score from which on the prediction is positive
    arl: float  #: the budget, in events between two false alarms
    #: drifts that FourRates finds here with this budget; rates and mix are then those of several concepts together
    drifts: int
    falls: tuple[Fall, ...]  #: how soon falls of each size would be found
    messages: tuple[str, ...]  #: the automatic choices, in sentences
    warnings: Mapping[str, str]  #: problems of the data by topic, in sentences, as `detect` reports them
    middling: int | None = None  #: events of a segment of middling size, if a column defines segments

    @property
    def per_second(self) -> float | None:
        """Events per second, if known."""
        return None if self.clock is None or self.clock.per_day is None else self.clock.per_day / UNITS["day"]

    @property
    def segment_per_second(self) -> float | None:
        """Events per second in a segment of middling size, or in the whole stream; delays of falls count these."""
        if self.per_second is None or self.middling is None:
            return self.per_second
        return self.per_second * self.middling / max(self.events, 1)

    @property
    def alarms_a_month(self) -> float | None:
        """False alarms a month under this budget, at this volume."""
        return None if self.per_second is None else self.per_second * UNITS["month"] / self.arl

    def headline(self) -> str:
        """The number of events, their span, and events a day."""
        text = f"{self.events:,} events"
        if self.streams is not None:
            text += f" of {several(self.streams, 'segment')}"
        clock = self.clock
        if clock is None:
            return text + ", without times"
        first, last = (plain.moment(at, False, precise=False) for at in (clock.first, clock.last))
        text += f", {first} to {last}{' UTC' if clock.utc else ''}"
        if clock.per_day is not None:
            text += f": {_number(clock.per_day)} a day"
        if clock.days is not None:
            text += f" ({clock.days[0]:,} on a quiet day, {clock.days[2]:,} on a busy one)"
        return text

    def classes(self) -> str:
        """The mix of classes and their recalls, in a line."""
        counts, total = np.array(self.confusion), max(self.events, 1)
        described = []
        for place, label in enumerate(self.labels[:SHOWN]):
            n = int(counts[place].sum())
            recall = f", {counts[place, place] / n:.1%} of them right" if n else ""
            described.append(f"{shortened(str(label), 40)} {n / total:.1%}{recall}")
        left = len(self.labels) - SHOWN
        return "classes: " + "; ".join(described) + (f"; and {left} more" if left > 0 else "")

    def budget(self) -> str:
        """The budget in alarms a month."""
        text = f"budget: one false alarm in {self.arl:,.0f} events"
        if self.alarms_a_month is None or self.per_second is None:
            return text
        every = duration(self.arl / self.per_second)
        return f"{text}, which here is {_number(self.alarms_a_month)} a month: one in {every}"

    @property
    def problems(self) -> tuple[str, ...]:
        """Threats to the assumptions behind a budget, a sentence each, the most important first."""
        warnings = dict(self.warnings)
        drawn = warnings.pop("labelled", None)
        part = "hour" if self.season == "day" else "weekday"
        found = (
            drawn,
            *warnings.values(),
            self._scarce(),
            *self._repeated(),
            f"{self.clock.unknown:,} events have no time" if self.clock is not None and self.clock.unknown else None,
            in_words(self.dispersion, self.drifts > 0),
            self.season and f"errors follow the {self.season}: keep a normal by {part} (season)",
        )
        return tuple(problem for problem in found if problem is not None)

    def _scarce(self) -> str | None:
        counts = np.array(self.confusion).sum(1)
        if "truth" in self.warnings or not (counts < FEW).any():
            return None
        scarce = [f"{shortened(str(self.labels[i]), 40)} ({counts[i]})" for i in np.flatnonzero(counts < FEW)]
        return f"hardly any events of {', '.join(scarce)}: their recalls are not yet known"

    def _repeated(self) -> Iterator[str]:
        repeats = self.repeats
        if repeats.ids:
            about = "about " if repeats.estimated else ""
            yield f"{about}{repeats.ids:,} events have an id that was there before: leave duplicates out"
        if repeats.twice_each:
            yield "every event is there twice in a row: leave one of each out"
        elif repeats.rows and not repeats.ids:
            share = repeats.rows / max(self.events, 1)
            yield f"{repeats.rows:,} rows ({share:.1%}) are like the row before: duplicates?"

    def lines(self) -> list[str]:
        """All but the table of falls, in lines of text."""
        problems = [f"  - {problem}" for problem in self.problems]
        drifts = f"{several(self.drifts, 'drift')} in this data: the figures here average over them, run `detect`"
        return [
            self.headline(),
            self.classes(),
            *(["to look at:", *problems] if problems else ["nothing here breaks what a budget assumes"]),
            *([drifts] if self.drifts else []),
            self.budget(),
            *([] if self.middling is None or not self.falls else [self._whose_events()]),
        ]

    def _whose_events(self) -> str:
        volume = "" if self.segment_per_second is None else f", {_number(self.segment_per_second * UNITS['day'])} a day"
        return (
            f"each segment is watched alone: delays count events of the segment that falls, of which one of middling "
            f"size has {self.middling:,}{volume}"
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The falls, a row each, under their titles."""
        return fall_table(self.falls, self.segment_per_second)

    def __str__(self) -> str:
        titles, rows = self.table()
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        table = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in (titles, *rows) if rows]
        text = "\n".join(map(printable, (*self.lines(), *table, *self.messages)))
        return text.replace("→", "->").replace("±", "+-")  # what any terminal can show

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.headline()}; {len(self.problems)} to look at>"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        per_day = None if self.segment_per_second is None else self.segment_per_second * UNITS["day"]
        return {
            **{name: plain.to_json(getattr(self, name)) for name in PLAIN},
            **({} if self.streams is None else {"streams": self.streams, "events_of_middling": self.middling}),
            **({} if self.clock is None else self.clock.to_dict()),
            "repeated_ids": self.repeats.ids,
            "repeated_rows": self.repeats.rows,
            "every_event_twice": self.repeats.twice_each,
            "falls": [fall.to_dict(per_day) for fall in self.falls],
        }

    def _repr_html_(self) -> str:
        """The sentences and the table of falls, for notebooks."""
        from fourrates.report.notebook import page_part, table, text

        head, *lines = self.lines()
        titles, rows = self.table()
        falls = [table(titles, [[*map(text, row)] for row in rows])] if rows else []
        return page_part(head, [*(f"<div>{text(line)}</div>" for line in lines), *falls], self.messages)


def fall_table(falls: Sequence[Fall], per_second: float | None) -> tuple[list[str], list[list[str]]]:
    """Titles and rows, with the delay of each fall in events and, if the volume is known, in time."""
    titles = ["rate", "from → to", "found after, median", *([] if per_second is None else ["that is"]), "found within"]
    rows = []
    for fall in falls:
        beyond, events = ("more than ", fall.horizon) if fall.median is None else ("", fall.median)
        share = f"{fall.found:.0%} ± {fall.standard_error:.0%} in {fall.horizon:,}" if fall.streams else "not simulated"
        rows.append(
            [
                fall.rate,
                f"{fall.before:.3f} → {fall.after:.3f}",
                f"{beyond}{events:,.0f} events",
                *([] if per_second is None else [beyond + duration(events / per_second)]),
                "no sooner than a false alarm" if fall.lost else share,
            ]
        )
    return titles, rows


def _number(value: float) -> str:
    """A number for reading: 40,000; 3.2; 0.05."""
    if value >= 10:
        return f"{value:,.0f}"
    digits = 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{max(digits, 0)}f}".rstrip("0").rstrip(".") if value > 0 else "0"

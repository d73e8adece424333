"""The result of :func:`~fourrates.diagnose`, as fields, sentences, a dict and a fragment of HTML."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fourrates import plain
from fourrates.budget.falls import Fall
from fourrates.budget.words import UNITS, duration
from fourrates.detectors.seasons import Season
from fourrates.escaping import printable, shortened
from fourrates.watch.dispersion import in_words

Matrix = tuple[tuple[int, ...], ...]
FEW = 30  # events of a class, below which its recall is unknown
SHOWN = 12  # classes listed one by one


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
    said: tuple[str, ...]  #: the automatic choices, in sentences
    #: a sentence, if the labels disagree with the probabilities they were drawn with
    labelled_otherwise: str | None = None

    # The stream ----------------------------------------------------------------------------------------------

    @property
    def per_second(self) -> float | None:
        """Events per second, if known."""
        return None if self.clock is None or self.clock.per_day is None else self.clock.per_day / UNITS["day"]

    @property
    def alarms_a_month(self) -> float | None:
        """False alarms a month under this budget, at this volume."""
        return None if self.per_second is None else self.per_second * UNITS["month"] / self.arl

    def headline(self) -> str:
        """The number of events, their span, and events a day."""
        text = f"{self.events:,} events"
        if self.streams is not None:
            text += f" of {self.streams:,} stream{'' if self.streams == 1 else 's'}"
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
        told = []
        for place, label in enumerate(self.labels[:SHOWN]):
            n = int(counts[place].sum())
            recall = f", {counts[place, place] / n:.1%} of them right" if n else ""
            told.append(f"{shortened(str(label), 40)} {n / total:.1%}{recall}")
        left = len(self.labels) - SHOWN
        return "classes: " + "; ".join(told) + (f"; and {left} more" if left > 0 else "")

    def budget(self) -> str:
        """The budget in alarms a month."""
        text = f"budget: one false alarm in {self.arl:,.0f} events"
        if self.alarms_a_month is None or self.per_second is None:
            return text
        every = duration(self.arl / self.per_second)
        return f"{text}, which here is {_number(self.alarms_a_month)} a month: one in {every}"

    # Warnings ------------------------------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[str, ...]:
        """Threats to the assumptions behind a budget, a sentence each, the most important first."""
        part = "hour" if self.season == "day" else "weekday"
        season = self.season and f"errors follow the {self.season}: keep a normal by {part} (season)"
        asides = (self.labelled_otherwise, in_words(self.dispersion, self.drifts > 0), season)
        drawn, clustered, seasonal = ([] if aside is None else [aside] for aside in asides)
        return (*drawn, *self._of_labels(), *self._of_repeats(), *self._of_order(), *clustered, *seasonal)

    def _of_labels(self) -> list[str]:
        found = []
        counts = np.array(self.confusion)
        names = [shortened(str(label), 40) for label in self.labels]
        for column, missing in self.lacking.items():
            found.append(
                f"{missing:,} of {self.rows:,} rows have nothing in column {shortened(column, 40)!r}: left out"
            )
        there = counts.sum(1) > 0
        if there.sum() == 1:
            only = names[int(there.argmax())]
            found.append(f"one class only, every true label is {only}, so the others are unknown")
        elif scarce := [f"{names[i]} ({int(counts[i].sum())})" for i in np.flatnonzero(counts.sum(1) < FEW)]:
            found.append(f"hardly any events of {', '.join(scarce)}: their recalls are not yet known")
        guessed = counts.sum(0) > 0
        if guessed.sum() == 1:
            found.append(self._one_prediction(int(guessed.argmax()), names))
        return found

    def _one_prediction(self, place: int, names: list[str]) -> str:
        if self.scores is not None and self.threshold is not None:
            side, which = ("no score reaches", "highest") if place == 0 else ("every score reaches", "lowest")
            end = self.scores[1 if place == 0 else 0]
            return (
                f"{side} the threshold {self.threshold:g}: the {which} is {end:g}, so the prediction is always the same"
            )
        return f"the prediction is always {names[place]}"

    def _of_repeats(self) -> list[str]:
        found, repeats = [], self.repeats
        if repeats.ids:
            about = "about " if repeats.estimated else ""
            found.append(f"{about}{repeats.ids:,} events have an id that was there before: leave duplicates out")
        if repeats.twice_each:
            found.append("every event is there twice in a row: leave one of each out")
        elif repeats.rows and not repeats.ids:
            share = repeats.rows / max(self.events, 1)
            found.append(f"{repeats.rows:,} rows ({share:.1%}) are like the row before: duplicates?")
        return found

    def _of_order(self) -> list[str]:
        if self.clock is None:
            return []
        found = []
        if self.clock.backwards:
            step = duration(float(self.clock.largest_step / np.timedelta64(1, "s")))
            found.append(
                f"times run backwards: {self.clock.backwards:,} events are earlier than the one before, by up to {step}"
                "; sort them by time"
            )
        if self.clock.unknown:
            found.append(f"{self.clock.unknown:,} events have no time")
        return found

    # In full --------------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """All but the table of falls, in lines of text."""
        problems = [f"  - {problem}" for problem in self.problems]
        found = f"{self.drifts:,} drift{'' if self.drifts == 1 else 's'}"
        drifts = f"{found} in this data: the figures here average over them, run `detect`"
        return [
            self.headline(),
            self.classes(),
            *(["to look at:", *problems] if problems else ["nothing here breaks what a budget assumes"]),
            *([drifts] if self.drifts else []),
            self.budget(),
        ]

    def __str__(self) -> str:
        rows = [["a fall of", "", "is found after", *([] if self.per_second is None else ["that is"])]]
        rows += [[fall.rate, f"{fall.before:.3f} -> {fall.after:.3f}", *self.delay(fall)] for fall in self.falls]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(map(printable, (*self.lines(), *(map(str.rstrip, table) if self.falls else []), *self.said)))

    def delay(self, fall: Fall) -> list[str]:
        """How soon a fall would be found, in events, and in time if known."""
        beyond, events = ("more than ", fall.horizon) if fall.median is None else ("", fall.median)
        told = [f"{beyond}{events:,.0f} events"]
        if self.per_second is not None:
            told.append(beyond + duration(events / self.per_second))
        return [*told[:-1], f"{told[-1]}, no sooner than a false alarm"] if fall.lost else told

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.headline()}; {len(self.problems)} to look at>"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        clock = self.clock
        times = (
            {}
            if clock is None
            else {
                "first_time": plain.moment(clock.first, clock.utc),
                "last_time": plain.moment(clock.last, clock.utc),
                "per_day": clock.per_day,
                "days": None if clock.days is None else list(clock.days),
                "without_time": clock.unknown,
                "backwards": clock.backwards,
                "largest_step_back": float(clock.largest_step / np.timedelta64(1, "s")),
            }
        )
        return {
            **{
                name: getattr(self, name) for name in ("events", "rows", "threshold", "arl", "alarms_a_month", "drifts")
            },
            **({} if self.streams is None else {"streams": self.streams}),
            **{name: list(getattr(self, name)) for name in ("labels", "problems", "said")},
            **times,
            "lacking": dict(self.lacking),
            "confusion": [list(row) for row in self.confusion],
            "dispersion": {rate: plain.finite(value) for rate, value in self.dispersion.items()},
            "season": self.season,
            "repeated_ids": self.repeats.ids,
            "repeated_rows": self.repeats.rows,
            "every_event_twice": self.repeats.twice_each,
            "scores": None if self.scores is None else [plain.finite(score) for score in self.scores],
            "falls": [fall.to_dict(None if clock is None else clock.per_day) for fall in self.falls],
        }

    def _repr_html_(self) -> str:
        """The sentences and the table of falls, for notebooks."""
        from fourrates.report.notebook import page_part, table, text

        head, *lines = self.lines()
        titles = ["rate", "a fall", "is found after, median", *([] if self.per_second is None else ["that is"])]
        rows = [
            [text(fall.rate), f"{fall.before:.3f} → {fall.after:.3f}", *map(text, self.delay(fall))]
            for fall in self.falls
        ]
        parts = [f"<div>{text(line)}</div>" for line in lines]
        return page_part(head, [*parts, *([table(titles, rows)] if rows else [])], self.said)


def _number(value: float) -> str:
    """A number for reading: 40,000; 3.2; 0.05."""
    if value >= 10:
        return f"{value:,.0f}"
    digits = 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{max(digits, 0)}f}".rstrip("0").rstrip(".") if value > 0 else "0"

"""``fourrates compare``: several detectors on the same events, side by side."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.cli import options as opt
from fourrates.cli import output
from fourrates.cli.commands import command, option
from fourrates.cli.errors import Stopped
from fourrates.io import Batch, Columns, Missing
from fourrates.names import printable
from fourrates.run import Place, Run

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

SHOWN = 6  # alarms listed for each detector


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of any detector, and the rates it blames, if it tells them."""

    at: Place
    rates: tuple[tuple[str, str], ...]  # name and direction


@dataclass(slots=True)
class Entrant:
    """A detector that is compared, its alarms so far and the time it took."""

    name: str
    detector: Any
    run: Run | None
    alarms: list[Alarm] = field(default_factory=list)
    seconds: float = 0.0
    events: int = 0

    def take(self, batch: Batch) -> None:
        """Take a batch."""
        start = clock.perf_counter()
        if self.run is not None:
            for found in self.run.take(batch):
                if found.is_drift:
                    rates = tuple((change.rate, change.direction) for change in found.finding.changes)
                    self.alarms.append(Alarm(found.at, rates))
        else:
            update, detector = self.detector.update, self.detector
            for i, wrong in enumerate((batch.truths != batch.guesses).tolist()):
                update(wrong)
                if detector.drift_detected:
                    time = None if batch.times is None or np.isnat(batch.times[i]) else batch.times[i]
                    self.alarms.append(Alarm(Place(self.events + i, batch.source, int(batch.rows[i]), time), ()))
        self.events += batch.truths.size
        self.seconds += clock.perf_counter() - start


@command
@opt.files
@opt.columns
@opt.classes
@option(
    "--detector",
    "-d",
    section=opt.DETECTOR,
    multiple=True,
    metavar="DETECTOR",
    help="May be repeated; all of fourrates' own if not given. river.NAME runs one of river's.",
)
@opt.json
def compare(
    files: tuple[str, ...],
    truth: str | None,
    pred: str | None,
    score: str | None,
    threshold: float | None,
    time: str | None,
    labels: str | None,
    positive: str | None,
    missing: Missing,
    detector: tuple[str, ...],
    json: bool,
) -> None:
    """Run several detectors on the same file, side by side.

    Examples
    --------
      fourrates compare predictions.csv
      fourrates compare predictions.csv -d LFR -d 'LFR(decay=0.98)' -d river.ADWIN -d 'river.DDM(drift_threshold=4)'
    """
    chosen = [opt.spec(text) for text in detector or opt.known()]
    classes = opt.labels_of(labels)
    positive_label = opt.label_of(positive, classes)
    events = opt.events_of(
        files,
        Columns(truth, pred, score, time),
        threshold=threshold,
        labels=classes,
        positive=positive_label,
        missing=missing,
    )
    batches = opt.started(events, files)
    entrants = []
    for one in chosen:
        made = one.make(events.labels, batches.times)
        entrants.append(Entrant(one.text, made, None if one.foreign else Run(made)))
    try:
        for batch in batches:
            for entrant in entrants:
                entrant.take(batch)
    except KeyboardInterrupt:
        seen = opt.several(min(entrant.events for entrant in entrants), "event")
        raise Stopped(f"stopped after {seen}; nothing is compared yet") from None
    if json:
        print(
            output.as_json({"events": entrants[0].events, "detectors": [_record(one, events.utc) for one in entrants]})
        )
    else:
        out = output.console()
        out.print(opt.several(entrants[0].events, "event"))
        out.print(_table(entrants, events.utc))


def _record(entrant: Entrant, utc: bool) -> dict[str, Any]:
    return {
        "detector": entrant.name,
        "seconds": round(entrant.seconds, 6),
        "drifts": [
            {
                "at": alarm.at.event,
                **({} if alarm.at.time is None else {"time": output.moment(alarm.at.time, utc)}),
                "rates": [{"rate": rate, "direction": direction} for rate, direction in alarm.rates],
            }
            for alarm in entrant.alarms
        ],
    }


def _table(entrants: list[Entrant], utc: bool) -> Table:
    from rich.text import Text

    table = output.grid()
    table.add_column("detector", style="bold", no_wrap=True)
    table.add_column("alarms", justify="right")
    table.add_column("when, and which rates")
    table.add_column("ns an event", justify="right")
    for entrant in entrants:
        told = [_told(alarm, utc) for alarm in entrant.alarms[:SHOWN]]
        if len(entrant.alarms) > SHOWN:
            told.append(Text(f"... and {len(entrant.alarms) - SHOWN} more", "dim"))
        table.add_row(
            output.literal(entrant.name),
            str(len(entrant.alarms)),
            Text("\n").join(told) if told else Text("nothing", "dim"),
            f"{1e9 * entrant.seconds / entrant.events:,.0f}",
        )
    return table


def _told(alarm: Alarm, utc: bool) -> Text:
    from rich.text import Text

    when = output.moment(alarm.at.time, utc, precise=False)
    text = Text(f"event {alarm.at.event:,}" if when is None else f"{when} (event {alarm.at.event:,})")
    for rate, direction in alarm.rates:
        text.append(f"  {printable(rate)} {output.ARROWS[direction]}", output.COLOURS[direction])
    return text

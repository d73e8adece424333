"""The sentences of the report, for the verdict, the advice, the trust and the settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.budget.words import duration
from fourrates.detectors import FourRates
from fourrates.escaping import printable, shortened
from fourrates.findings import CLASSES, Drift, Finding, PredictionShift, Share, Shift
from fourrates.labels import rate_names
from fourrates.plain import ARROWS, rows_since
from fourrates.report.facts import Facts, Stream, microseconds, within
from fourrates.watch.dispersion import in_words
from fourrates.watch.now import QUOTED, minute, rate_in_words, several

if TYPE_CHECKING:
    from fourrates.detectors import Detector
    from fourrates.findings import RateChange
    from fourrates.io import Events, Joined

SHIFTS = 3  # of the class mix, listed
LISTED = 12  # classes and files named one by one
READERS = {
    ".parquet": "read_parquet({})",
    ".jsonl": "read_json({}, lines=True)",
    ".ndjson": "read_json({}, lines=True)",
}

RATES = {
    "tpr": "tpr, the share of positives that were found (recall)",
    "tnr": "tnr, the share of negatives correctly passed",
    "ppv": "ppv, the share of positive predictions that were right (precision)",
    "npv": "npv, the share of negative predictions that were right",
}
WHY = {
    "confirmation": "The events since the alarm support it.",
    "withdrawal": "The events since the alarm do not support it.",
    "recovery": "Back at normal.",
    "improvement": "Moved towards normal and stopped short of it.",
    "acceptance": "The new level was accepted as normal.",
}


class Tile(NamedTuple):
    """A figure of the verdict, with its name and its basis."""

    name: str
    figure: str
    basis: str


def title(rate: str) -> str:
    """A rate as the heading of its chart."""
    return RATES.get(rate) or rate_in_words(rate)


def based_on(share: Share, rate: str) -> str:
    """The interval and the observations of a rate."""
    if not share.n:
        return "no observations"
    return f"{share.lower:.3f} to {share.upper:.3f}, of {share.n:,} {CLASSES.get(rate, 'observations')}"


class Words:
    """The sentences about some facts."""

    def __init__(self, facts: Facts, events: Events | Joined) -> None:
        self.facts, self.events = facts, events
        self.worst = facts.streams[0]
        self.many = self.worst.name is not None

    # Is it broken now? ----------------------------------------------------------------------------------------

    def verdict(self) -> tuple[str, str]:
        """The current state, in a word or two, with the detail."""
        worst, standing = self.worst, self.worst.standing
        alike = sum(stream.standing == standing for stream in self.facts.streams)
        among = f" in {alike:,} of {several(len(self.facts.streams), 'segment')}" if self.many else ""
        where = f"{'most in ' if alike > 1 else ''}{shortened(str(worst.name))}: " if self.many else ""
        match standing:
            case "drifted":
                return ("Improved" if worst.improved else "Drifted") + among, where + self.moved(worst)
            case "recovered":
                return "Recovered" + among, where + self.back(worst)
            case "warning":
                return "Warning" + among, "no drift yet, but a rate is close to an alarm"
            case "withdrawn":
                return "No drift", f"{where}an alarm was withdrawn, the events since do not support it"
            case "stable":
                return "No drift", self.findable() or self.missing(worst)
        return "Too few rows to say anything", self.missing(worst)

    def moved(self, stream: Stream) -> str:
        """The rate that moved most, before and after."""
        if not stream.moved:
            return "an alarm"
        rate = stream.moved[0]
        normal, now = stream.levels(rate)
        known = {} if stream.open is None else stream.open.directions
        known = known or {change.rate: change.direction for finding in stream.findings for change in finding.changes}
        fell = known[rate] == "down" if rate in known else now.value < normal.value
        state = stream.rates.get(rate)
        if not (normal.n and now.n) or (state is not None and now.n < state.enough):
            unknown = ", by how much is not yet known" if now.n else ""
            if normal.n and now.n >= QUOTED:
                unknown = f" from {normal.value:.3f} to between {now.lower:.3f} and {now.upper:.3f}"
            return f"{rate_in_words(rate)} {'fell' if fell else 'rose'}{unknown}"
        verb = "fell" if now.value < normal.value else "rose"
        return f"{rate_in_words(rate)} {verb} from {normal.value:.3f} to {now.value:.3f}"

    def back(self, stream: Stream) -> str:
        """The rate that recovered."""
        rate = stream.moved[0]
        normal, now = stream.levels(rate)
        return f"{rate_in_words(rate)} is back at {now.value:.3f} (normal {normal.value:.3f})"

    def missing(self, stream: Stream) -> str:
        """How many more observations are needed before there is a verdict."""
        needs = [
            f"{state.enough - state.now.n:,} more {CLASSES.get(rate) or shortened('of ' + rate.partition(':')[2], 30)}"
            for rate, state in stream.rates.items()
            if state.normal is not None and state.now is not None and state.now.n < state.enough
        ]
        early = "" if stream.standing == "unknown" else "some rates are not known yet, "
        return f"{early}needs about {_list(needs[:3])}" if needs else ""

    def findable(self) -> str:
        """The drifts that would have been found."""
        for fall, rate in self.facts.smallest:
            points = several(round(100 * (fall.before - fall.after)), "point")
            soon = within(fall.median or fall.horizon, rate)
            return f"a fall of {points} in {rate_in_words(fall.rate)} would have been found within {soon}"
        return ""

    def tiles(self) -> list[Tile]:
        """The figures of the verdict."""
        worst = self.worst
        if worst.standing not in ("drifted", "recovered") or worst.episode is None:
            rates = [rate for rate, state in worst.rates.items() if state.normal is not None][:3] or ["accuracy"]
            names = [f"{shortened(str(worst.name), 30)}, " if self.many else "", "accuracy"]
            own = [Tile(f"{names[0]}{rate_in_words(rate)} now", *self._figure(worst, rate, 1)) for rate in rates]
            return own if worst.standing != "unknown" else []
        rate, episode = worst.moved[0], worst.episode
        tiles = [Tile("Normal" if self.facts.holds else "Before", *self._figure(worst, rate, 0))]
        if worst.standing == "recovered" and not worst.untraced:
            during = worst.share(rate, *worst.spans()[1])
            tiles.append(Tile("While it was open", f"{during.value:.3f}", based_on(during, rate)))
        tiles.append(Tile("Now", *self._figure(worst, rate, 1)))
        drift = episode.drift
        started, found = self.when(worst, episode.since), self.when(worst, drift.at)
        lag = self.lag(worst, episode.since, drift.at)
        if worst.standing == "recovered":
            tiles.append(Tile("Was open from", started, f"to {self.when(worst, episode.end or drift.at)}; found {lag}"))
        else:
            tiles.append(Tile("Since about", started, f"found {found}, {lag}"))
        if self.many:
            others = [stream for stream in self.facts.streams[1:4] if stream.standing == worst.standing]
            alike = [shortened(str(stream.name), 30) for stream in others]
            tiles.append(
                Tile("Where", shortened(str(worst.name), 40), f"then {', '.join(alike)}" if alike else "alone")
            )
        if worst.open is not None and worst.open.cost is not None:
            cost = str(worst.open.cost).removeprefix("costs about ")
            tiles.append(Tile("Costs about", cost.partition(" (")[0], cost.partition("(")[2].rstrip(")")))
        tiles.append(self._status())
        return tiles

    def _figure(self, stream: Stream, rate: str, which: int) -> tuple[str, str]:
        share, state = stream.levels(rate)[which], stream.rates.get(rate)
        if which and state is not None and share.n < state.enough:
            so_far = f"{share.lower:.2f} to {share.upper:.2f}" if share.n >= QUOTED else "not yet known"
            return so_far, f"{share.n:,} of about {state.enough:,} {CLASSES.get(rate, 'observations')} needed"
        return (f"{share.value:.3f}" if share.n else "not known"), based_on(share, rate)

    def _status(self) -> Tile:
        worst = self.worst
        if worst.standing == "recovered":
            return Tile("Status", "Recovered", "every rate is back at normal")
        if worst.open is None:
            return Tile("Status", "Improved" if worst.improved else "Drifted", "the new level is the baseline now")
        if worst.open.confirmed:
            return Tile("Status", "Open, confirmed", "the events since the alarm support it")
        return Tile("Status", "Open, unconfirmed", "too few events since the alarm to tell")

    def part(self) -> str:
        """What the charts have of all events, after a state; they are drawn from this run."""
        facts = self.facts
        return f"this run: {several(facts.new, 'event')}; the state has {facts.events:,}" if facts.resumed else ""

    # Advice --------------------------------------------------------------------------------------------

    def advice(self) -> list[tuple[str, str, str | None]]:
        """Roll back, repair or retrain, each with when to, and a command to copy."""
        worst = self.worst
        if worst.standing == "recovered" and worst.episode is not None:
            return [("Nothing now", f"It is over. Leave {self.place(worst)} out of training data.", None)]
        if worst.standing != "drifted" or worst.episode is None or worst.improved:
            return []
        since = self.when(worst, worst.episode.since)
        enough, command = self.rows(worst)
        actions: list[tuple[str, str, str | None]] = [
            ("Roll back", f"if a model, threshold or feature was released around {since}.{self.serving()}", None),
            ("Repair", f"if an input changed then, compare {self.place(worst)} with those before.", None),
            ("Retrain", f"if the world changed. {enough}", command),
        ]
        if worst.open is not None:
            accept = "fourrates detect … --state STATE --accept" + (f" {_quoted(worst.name)}" if self.many else "")
            actions.append(("Accept", "if it was meant. The level since the alarm becomes normal.", accept))
        if worst.open is not None and not worst.open.confirmed:
            actions.insert(0, ("Wait", "It is not confirmed yet; most false alarms are withdrawn soon.", None))
        return actions

    def serving(self) -> str:
        """Which version of the model predicts, and since when."""
        if len(self.facts.deployments) < 2:
            return ""
        last = self.facts.deployments[-1]
        since = f"event {last.event:,}" if last.time is None else _time(microseconds(last.time))
        return f" Version {shortened(last.version, 40)} serves since {since}."

    def place(self, stream: Stream) -> str:
        """The rows of the last episode, by number if they are in the one file that was read."""
        assert stream.episode is not None
        end = stream.episode.end
        if (span := self._rows(stream)) is None:
            until = "" if end is None else f" to {self.when(stream, end)}"
            return f"the events since {self.when(stream, stream.episode.since)}{until}"
        last = "the last" if span[1] is None else f"{span[1]:,}"
        return f"rows {span[0]:,} to {last} of {shortened(str(stream.episode.drift.source), 60)}"

    def _rows(self, stream: Stream) -> tuple[int, int | None] | None:
        """The first and the last row of the last episode in the one file of this run; None if it is not all there.

        The last is None, to the end, after a state: the file may have grown.
        """
        assert stream.episode is not None
        drift = stream.episode.drift
        if stream.untraced or drift.started_row is None or {*map(str, self.events.sources)} != {str(drift.source)}:
            return None
        ends = [finding.row or 0 for finding in stream.findings if finding.closes and stream.episode.end]
        return drift.started_row, max(ends, default=0) or (None if self.facts.resumed else self.events.rows)

    def rows(self, stream: Stream) -> tuple[str, str | None]:
        """How many rows there are since it started, whether they are enough to train on, and how to get them."""
        size, seen = self._since(stream)
        text, enough = rows_since(seen, stream.labels, "at least " if stream.untraced else "", size)
        return f"{text}.", self._command(stream) if enough else None

    def _since(self, stream: Stream) -> tuple[int, list[int]]:
        """The events since the start, and by class; after a state, of each class those that are surely since then."""
        counts = np.zeros(len(stream.labels), np.int64)
        assert stream.episode is not None
        if stream.trace is not None:
            counts = stream.trace.between(*stream.spans()[1]).sum(1)
        if not stream.untraced:
            return int(counts.sum()), counts.tolist()
        states = [stream.rates.get(rate) for rate in rate_names(stream.labels)[: len(stream.labels)]]
        since_alarm = [0 if state is None else state.n for state in states]
        return stream.events - stream.episode.start, np.maximum(counts, since_alarm).tolist()

    def _command(self, stream: Stream) -> str | None:
        """A line for a shell that writes the rows to retrain on."""
        assert stream.episode is not None
        source = stream.episode.drift.source
        if source is None or (span := self._rows(stream)) is None:
            return None
        suffix = next((end for end in READERS if end in source.lower()), "")
        read = "pandas." + READERS.get(suffix, "read_csv({})").format(repr(source)) if "." in source else "frame"
        code = f"rows = {read}.iloc[{span[0] - 1}:{'' if span[1] is None else span[1]}]"
        if self.many:
            by = self.events.columns.by_names
            names = (
                f"rows[{by[0]!r}].astype(str)" if len(by) == 1 else f"rows[{[*by]}].astype(str).agg(', '.join, axis=1)"
            )
            code += f"; rows = rows[{names} == {str(stream.name)!r}]"
        code = f"{code}; rows.to_csv('retrain.csv', index=False)"
        return printable(f"python -c {shlex.quote(f'import pandas; {code}')}" if read != "frame" else code)

    # Can I trust this? ----------------------------------------------------------------------------------------

    def trust(self, said: Sequence[str]) -> list[tuple[str, list[str]]]:
        """The budget, the alarms against those expected, drifts that would be found, and problems of the data."""
        facts, entries = self.facts, []
        span = None if facts.first_time is None or facts.last_time is None else facts.last_time - facts.first_time
        if facts.arl is not None:
            every = duration(facts.arl * span / 1e6 / facts.events) if span and facts.events else None
            each = " of each segment" if self.many else ""
            text = f"One false alarm in {facts.arl:,.0f} events{each} while nothing changes"
            if every:
                text += f": one in {every}{' over all segments' if self.many else ''}"
            entries.append(("False-alarm budget", [text + "."]))
            if facts.new:
                alarms = sum(finding.kind == "drift" for finding in facts.findings)
                withdrawn = sum(finding.kind == "withdrawal" and finding.closes for finding in facts.findings)
                text = f"{several(alarms, 'alarm')} in {several(facts.new, 'event')}{' of this run' * facts.resumed}"
                text += f"; {max(facts.new / facts.arl, 0.01):.2g} false ones expected"
                entries.append(("Alarms", [text + (f"; {withdrawn:,} withdrawn." if withdrawn else ".")]))
        if facts.smallest:
            lines = [
                f"{rate_in_words(fall.rate)} from {fall.before:.3f} to {fall.after:.3f}, within "
                f"{within(fall.median or fall.horizon, rate)}"
                for fall, rate in facts.smallest
            ]
            streams = f"in half of {facts.smallest[0][0].streams} simulated streams"
            streams += " of a middling segment" * self.many
            entries.append(("Smallest fall found", [f"{_list(lines)}, {streams}."]))
        drifted = any(one.open for one in facts.streams) or any(isinstance(one, Drift) for one in facts.findings)
        correlated = in_words(facts.dispersion, drifted)
        sentences = [*said, *([correlated] if correlated else [])]
        problems = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences]
        entries.append(("Data", problems or ["No problems found."]))
        moved = [shift for shift in facts.findings if isinstance(shift, Shift)]
        ahead = [self.prediction_shift(shift) for shift in moved if isinstance(shift, PredictionShift)]
        mixed = [self.shift(shift) for shift in moved if not isinstance(shift, PredictionShift)]
        for name, lines in (("Class-mix shifts", mixed), ("Prediction shifts", ahead)):
            if lines:
                more = [f"{len(lines) - SHIFTS:,} earlier: --json has them all."] if len(lines) > SHIFTS else []
                entries.append((name, ["Not drifts of the classifier.", *lines[-SHIFTS:], *more]))
        return [(name, [printable(line) for line in lines]) for name, lines in entries]

    def shift(self, shift: Shift) -> str:
        """A shift of the class mix, in a line."""
        stream = next(one for one in self.facts.streams if one.name == shift.segment)
        where = "" if shift.segment is None else f"{shortened(shift.segment)}: "
        moves = "".join(f"; {one.rate} moves with it, {one.before:.3f} → {one.after:.3f}" for one in shift.precisions)
        return (
            f"{where}share of positives {shift.before.value:.3f} → {shift.after.value:.3f} since about "
            f"{self.when(stream, shift.window.start)}{moves}."
        )

    def prediction_shift(self, shift: PredictionShift) -> str:
        """A change of the share of predicted positives, in a line."""
        where = "" if shift.segment is None else f"{shortened(shift.segment)}: "
        started = shift.started_time
        since = f"prediction {shift.started:,}" if started is None else _time(microseconds(started))
        return f"{where}since about {since}, {shift.in_words.replace('->', '→')}."

    # Findings -------------------------------------------------------------------------------------------------

    def change(self, change: RateChange, finding: Finding) -> tuple[str, str]:
        """A rate of a finding before and after, with its basis."""
        rate = rate_in_words(change.rate)
        arrow = ARROWS[change.direction] if finding.kind in ("drift", "recovery", "improvement") else ""
        before, after = change.before, change.after
        if before is None or after is None or not before.n or not after.n:
            expected = "" if change.expected is None else f"{change.expected:.3f} → "
            return f"{rate} {arrow} {expected}{change.statistic:.3g}", f"its bound was {change.bound:.3g}"
        basis = f"before {based_on(before, change.rate)}; after {based_on(after, change.rate)}"
        return f"{rate} {arrow} {before.value:.3f} → {after.value:.3f}".replace("  ", " "), basis

    def when(self, stream: Stream, event: int) -> str:
        """The time of an event, or its number if no time is known."""
        events, times = stream.clock()
        if not events or event < events[0]:
            return f"event {event:,}"
        return _time(int(np.interp(event, events, times)))

    def lag(self, stream: Stream, start: int, at: int) -> str:
        """How long it took to find."""
        events, times = stream.clock()
        if not events or start < events[0]:
            return f"after {several(at - start, 'event')}"
        return f"after {duration(float(np.diff(np.interp([start, at], events, times))[0]) / 1e6)}"


def _quoted(name: str | None) -> str:
    return printable(shlex.quote(str(name)))


def _time(microseconds: int) -> str:
    return minute(np.datetime64(microseconds, "us"))


# Settings ---------------------------------------------------------------------------------------------------


def settings(detector: Detector, events: Events | Joined) -> list[tuple[str, str]]:
    """The detector's parameters as they are written, and the inputs."""
    parameters = dict(detector.parameters)
    labels, positive = list(parameters.pop("labels")), parameters.pop("positive", None)
    columns = events.columns
    classes = _list([shortened(str(label)) for label in labels])
    skipped = f", {events.skipped:,} of them skipped because a value was missing" if events.skipped else ""
    rows: list[tuple[str, Any]] = [
        ("Detector", type(detector).__name__),
        *((name, _reference(value) if name == "reference" else _plain(value)) for name, value in parameters.items()),
        ("Tolerance", detector.tolerance_in_words() if isinstance(detector, FourRates) else None),
        ("Classes", classes + (f"; {labels[-1] if positive is None else positive} is positive" * (len(labels) == 2))),
        ("Files", _list(list(dict.fromkeys(map(str, events.sources)))) or None),
        ("True labels in", columns.truth),
        ("Predictions in", columns.pred),
        ("Scores in", None if columns.score is None else f"{columns.score}; positive from {events.threshold:g} on"),
        ("Times in", columns.time),
        ("Segments by", ", ".join(columns.by_names) or None),
        ("Rows", f"{events.rows:,}{skipped}"),
    ]
    return [(name, printable(str(value))) for name, value in rows if value is not None]


def _reference(counts: Sequence[Sequence[int]] | None) -> str | None:
    if counts is None:
        return None
    total, right = sum(map(sum, counts)), sum(row[i] for i, row in enumerate(counts))
    return f"{total:,} events, {right / max(total, 1):.1%} of them right"


def _plain(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return _list([str(_plain(part)) for part in value])
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _list(names: Sequence[str]) -> str:
    """Several names, the last after an "and"."""
    if len(names) > LISTED:
        return f"{', '.join(names[:LISTED])} and {len(names) - LISTED:,} more"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)

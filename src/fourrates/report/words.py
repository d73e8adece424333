"""The sentences of the report: how things are, what was found, and with which settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.detectors import FourRates
from fourrates.names import printable, shortened
from fourrates.plain import counted
from fourrates.report.facts import Facts, Moment, Move, Stream
from fourrates.watch.dispersion import in_words
from fourrates.watch.now import rate_in_words, several, share

if TYPE_CHECKING:
    from fourrates.detectors import Detector
    from fourrates.findings import Shift
    from fourrates.io import Events, Joined

TOLD = 2  # moves in the headline
LISTED = 12  # classes and files told by name

RATES = {
    "tpr": "tpr, the share of positives that were found (recall)",
    "tnr": "tnr, the share of negatives that were left alone",
    "ppv": "ppv, the share of positive predictions that were right (precision)",
    "npv": "npv, the share of negative predictions that were right",
}


TITLES = {
    "drift": "Drift",
    "confirmation": "Confirmed",
    "withdrawal": "Withdrawn",
    "recovery": "Recovered",
    "improvement": "Improved",
    "acceptance": "Accepted",
}
WHY = {
    "confirmation": "the events since the alarm bear it out",
    "withdrawal": "the events since the alarm do not bear it out",
    "recovery": "back at normal",
    "improvement": "moved towards normal and stopped short of it",
    "acceptance": "the new level was accepted as normal",
}


def title(rate: str) -> str:
    """A rate as the heading of its chart.

    Examples
    --------
    >>> from fourrates.report.words import title
    >>> title("recall:spam")
    'recall of spam'
    """
    if rate in RATES:
        return RATES[rate]
    kind, _, label = rate.partition(":")
    return shortened(f"{kind} of {label}" if label else rate)


# How things are --------------------------------------------------------------------------------------------


class Words:
    """The sentences about some facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def headline(self) -> tuple[str, str]:
        """How things are now: a word or two, and what there is to say about it."""
        streams = self.facts.streams
        drifted = [stream for stream in streams if stream.standing == "drifted"]
        recovered = [stream for stream in streams if stream.standing == "recovered"]
        if self.facts.now.open:
            return self.facts.now.headline()
        if len(streams) > 1 and drifted:
            where = ("most of all " if len(drifted) > 1 else "") + shortened(str(drifted[0].name))
            return (
                f"{len(drifted):,} of {several(len(streams), 'segment')} drifted",
                f"{where}, where {self.standing(drifted[0])}",
            )
        if drifted:
            return "Drifted", self.standing(drifted[0])
        if len(streams) > 1 and recovered:
            verb = "is" if len(recovered) == 1 else "are"
            return "Recovered", f"{several(len(recovered), 'segment')} that drifted {verb} back at normal"
        if recovered:
            return "Recovered", self.standing(recovered[0])
        drifts = sum(finding.kind == "drift" for finding in self.facts.findings)
        withdrawn = sum(finding.kind == "withdrawal" and finding.closes for finding in self.facts.findings)
        if withdrawn:
            which = "a drift was" if withdrawn == 1 else f"{several(withdrawn, 'drift')} were"
            return "Stable", f"{which} withdrawn, {WHY['withdrawal']}"
        if drifts:
            return "Stable", "what moved is the new normal"
        return self.facts.now.headline() if self.facts.now.holds else ("No drift", "")

    def lead(self) -> str:
        """What the headline is based on."""
        facts = self.facts
        text = f"{counted(finding.kind for finding in facts.findings)} in " if facts.findings else ""
        text += several(facts.events, "event")
        if len(facts.streams) > 1:
            text += f" of {several(len(facts.streams), 'segment')}"
        if facts.first_time is not None and facts.last_time is not None:
            text += f", {_time(facts.first_time, 'm')} to {_time(facts.last_time, 'm')}{' UTC' if facts.utc else ''}"
        if not facts.findings and all(stream.standing != "drifted" for stream in facts.streams):
            text += ": every rate stayed within its bounds"
        warned = sum(stream.standing == "warning" for stream in facts.streams)
        if warned:
            text += ". A warning is open at the end" + (f" in {warned:,} of them" if len(facts.streams) > 1 else "")
        if correlated := in_words(facts.dispersion):
            text += f". {correlated[0].upper()}{correlated[1:]}"
        return text + "."

    def standing(self, stream: Stream) -> str:
        """How a stream is, in a line."""
        if stream.since is None:
            return "a warning is open" if stream.standing == "warning" else "stable"
        if stream.open is not None:
            verdict = "confirmed" if stream.open.confirmed else "not yet confirmed"
            return f"{stream.open.rates_in_words()}, {stream.open.since} ({verdict})"
        if stream.standing == "recovered":
            return f"{self.levels(stream)} since {self.time(stream.since)}"
        return f"{self.moves(stream.moves)} {self.when(stream.since)}"

    def shift(self, shift: Shift) -> str:
        """A shift of the class mix, in a line."""
        time = None if shift.time is None else int(shift.time.astype("M8[us]").astype(np.int64))
        where = "" if shift.segment is None else f"{shortened(shift.segment)}: "
        return (
            f"{where}the share of positives went from {shift.before.value:.3f} to {shift.after.value:.3f} around event "
            f"{shift.started:,}, found {self.when(Moment(shift.at, time))}"
            + "".join(
                f"; {change.rate} moves with it, {change.before:.3f} → {change.after:.3f}"
                for change in shift.precisions
            )
        )

    # What moved ---------------------------------------------------------------------------------------------

    def moves(self, moves: Sequence[Move]) -> str:
        """Which rates moved, from what to what."""
        told = [self.move(move) for move in moves[:TOLD]]
        left = len(moves) - len(told)
        return " and ".join(told) + (f" and {several(left, 'rate')} more" if left else "") if told else "an alarm"

    def move(self, move: Move) -> str:
        """One rate, from what to what."""
        verb = "fell" if move.direction == "down" else "rose"
        if move.shares is None:
            return f"{rate_in_words(move.rate)} {verb} to {move.statistic:.3g}"
        before, after = move.shares
        return f"{rate_in_words(move.rate)} {verb} from {before.value:.3f} to {after.value:.3f}"

    def levels(self, stream: Stream) -> str:
        """What the rates that came back are now."""
        now = {move.rate: state.now for move in stream.moves if (state := stream.rates.get(move.rate)) is not None}
        told = [(rate_in_words(rate), one) for rate, one in now.items() if one is not None and one.n]
        left = len(told) - TOLD
        said = " and ".join(f"{rate} is back at {share(one)}" for rate, one in told[:TOLD])
        return said + (f" and {several(left, 'rate')} more" if left > 0 else "")

    # When ---------------------------------------------------------------------------------------------------

    def when(self, moment: Moment) -> str:
        """When, as part of a sentence."""
        if moment.time is None:
            return f"{'around' if moment.about else 'at'} event {moment.event:,}"
        return f"{'around' if moment.about else 'at'} {self.time(moment)}"

    def time(self, moment: Moment) -> str:
        """The time of a moment, or its event where no time is known."""
        if moment.time is None:
            return f"event {moment.event:,}"
        return _time(moment.time, "m" if moment.about else "s") + (" UTC" if self.facts.utc else "")


def _time(microseconds: int, unit: str) -> str:
    return str(np.datetime64(microseconds, "us").astype(f"M8[{unit}]")).replace("T", " ")


# Settings ---------------------------------------------------------------------------------------------------

FULL_NAMES = {
    "FourRates": "FourRates, evidence for a change of any recall",
    "LFR": "LFR, Linear Four Rates",
    "NFR": "NFR, the four rates as they are",
    "DDM": "DDM, the Drift Detection Method",
    "EDDM": "EDDM, the distance between errors",
    "DDMOCI": "DDM-OCI, the recall of the rare class",
    "PerfSim": "PerfSim, similarity of confusion matrices",
    "ThreeMeasures": "accuracy, recall and precision, batch by batch",
}
SIDES = {"both": "falls and rises", "down": "falls only", "up": "rises only"}
AFTER = {
    "restart": "the new level is normal",
    "hold": "normal stays what it was, until the drift is withdrawn, recovered or accepted",
}
STRATA = {"day": "by hour of the day", "week": "by weekday"}
MIX = {"report": "reported, but no alarm", "alarm": "an alarm", "ignore": "not looked at"}
LAWS = {"exact": "exact", "plugin": "with the estimated rate plugged in", "monte-carlo": "simulated"}


def settings(detector: Detector, events: Events | Joined) -> list[tuple[str, str]]:
    """What was used, as a person would say it."""
    parameters = dict(detector.parameters)
    labels, positive = list(parameters.pop("labels")), parameters.pop("positive", None)
    columns = events.columns
    files = list(dict.fromkeys(map(str, events.sources)))
    scores = None if columns.score is None else f"{columns.score}; positive from {events.threshold:g} on"
    told: list[tuple[str, Any]] = [
        ("Detector", FULL_NAMES.get(type(detector).__name__, type(detector).__name__)),
        *_detector(type(detector).__name__, parameters),
        ("Tolerance", detector.tolerance_in_words() if isinstance(detector, FourRates) else None),
        ("Classes", _classes(labels, positive)),
        ("Files" if len(files) > 1 else "File", _list(files)),
        ("True labels in", columns.truth),
        ("Predictions in", columns.pred),
        ("Scores in", scores),
        ("Times in", columns.time),
        ("Segments by", columns.by),
        ("Rows", _rows(events)),
    ]
    return [(name, printable(str(value))) for name, value in told if value is not None]


def _detector(kind: str, parameters: dict[str, Any]) -> list[tuple[str, Any]]:
    """The parameters of a detector; those that nothing is known about as they are written."""
    told: list[tuple[str, Any]] = []
    warn, detect = parameters.pop("warn", None), parameters.pop("detect", None)
    parameters = {name: value for name, value in parameters.items() if name not in ("tolerance", "learning")}
    arl = parameters.pop("arl", None)
    if arl is not None:
        told.append(("False alarms", f"at most one in {arl:,.0f} events while nothing changes, on average"))
    if kind == "LFR" and detect is None and arl is None:
        detect = 1e-5
    if kind in ("LFR", "NFR"):
        level = "at significance level {}, on each side of each rate"
        told += [("Warns", _by_rate(warn, level)), ("Alarms", _by_rate(detect, level))]
    elif kind == "FourRates":
        if warn is not None:
            told.append(("Warnings", f"at most one false one in {warn:,.0f} events, on average"))
    elif kind in ("DDM", "DDMOCI", "ThreeMeasures"):
        away = "standard errors below the mean" if kind == "ThreeMeasures" else "deviations from the best value so far"
        told += [("Warns", f"{warn:g} {away}"), ("Alarms", f"{detect:g} {away}")]
    elif kind == "EDDM":
        told += [("Warns", f"below {warn:.0%} of the greatest distance"), ("Alarms", f"below {detect:.0%} of it")]
    elif kind == "PerfSim":
        told += [("Warns", f"below a similarity of {warn:g}"), ("Alarms", f"below {detect:g}")]
    else:
        told += [("Warns at", _plain(warn)), ("Alarms at", _plain(detect))]
    known: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "decay": ("The past weighs", lambda value: _by_rate(value, "{} from one observation to the next (decay)")),
        "sides": ("Looks for", lambda value: _by_rate(value, "{}", SIDES)),
        "null": ("Bounds", lambda value: LAWS.get(value, value)),
        "correction": ("Level", lambda value: "shared among the rates (Bonferroni)" if value else None),
        "minimum": ("Waits for", lambda value: f"{value:,} observations after each drift"),
        "rates": ("Rates watched", lambda value: _list([rate_in_words(rate) for rate in value])),
        "reference": ("Compared with", _reference),
        "after": ("After a drift", lambda value: AFTER.get(value, value)),
        "mix": ("Shifts of the classes", lambda value: MIX.get(value, value)),
        "strata": ("Normal is kept", lambda value: STRATA.get(value, f"by stratum, of which there are {value}")),
        "dispersion": ("Errors scatter", lambda value: f"{value:g} times as much as independent ones"),
        "batch": ("Looks", lambda value: f"every {value:,} events"),
        "history": ("Compares with", lambda value: f"the last {value:,} looks"),
    }
    for name, value in parameters.items():
        if name in known and value is not None:
            told.append((known[name][0], known[name][1](value)))
        else:
            told.append((name.replace("_", " ").capitalize(), _plain(value)))
    return told


def _reference(counts: Sequence[Sequence[int]]) -> str:
    total, right = sum(map(sum, counts)), sum(row[i] for i, row in enumerate(counts))
    return f"a reference of {total:,} events, {right / max(total, 1):.1%} of them right"


def _by_rate(value: Any, sentence: str, words: Mapping[str, str] | None = None) -> str | None:
    """One value for all rates, or one for each."""
    if isinstance(value, Mapping):
        return "; ".join(f"{rate_in_words(rate)}: {_by_rate(own, sentence, words)}" for rate, own in value.items())
    text = _plain(value)
    return None if text is None else sentence.format((words or {}).get(text, text))


def _plain(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return _list([str(_plain(one)) for one in value])
    return str(value)


def _list(names: Sequence[str]) -> str:
    """Several names, the last after an "and"."""
    if len(names) > LISTED:
        return f"{', '.join(names[:LISTED])} and {len(names) - LISTED:,} more"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _classes(labels: Sequence[Any], positive: Any) -> str:
    names = _list([shortened(str(label)) for label in labels])
    return names if len(labels) > 2 else f"{names}; {labels[-1] if positive is None else positive} is the positive one"


def _rows(events: Events | Joined) -> str:
    skipped = f", {events.skipped:,} of them skipped because something was missing" if events.skipped else ""
    return f"{events.rows:,}{skipped}"

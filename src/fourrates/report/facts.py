"""What a watch found, as the page shows it: the one place where the report looks at watches, drifts and traces.

:func:`gather` turns them into plain facts, stream by stream; the words and the charts are made of these alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fourrates.findings import (
    Direction,
    Drift,
    Finding,
    Kind,
    Matrix,
    PrecisionChange,
    RateChange,
    RateState,
    Share,
    Shift,
)
from fourrates.plain import counts_split, too_few_examples
from fourrates.watch import Now, OpenDrift
from fourrates.watch.dispersion import dispersions

if TYPE_CHECKING:
    from fourrates.bank.stream import Stream as BankStream
    from fourrates.detectors import Detector
    from fourrates.io import Events
    from fourrates.watch import Watch
    from fourrates.watch.trace import Trace

Standing = Literal["stable", "warning", "recovered", "drifted"]


@dataclass(frozen=True, slots=True)
class Moment:
    """An event, and its time in microseconds since 1970 if that is known."""

    event: int
    time: int | None
    about: bool = False  # estimated


@dataclass(frozen=True, slots=True)
class Move:
    """One rate, or other quantity, that moved.

    Attributes
    ----------
    rate : str
        Its name.
    direction : {"down", "up"}
        Which way.
    before, after : Share or None
        The rate before and after the change; None where the quantity is no rate.
    statistic, bound : float
        What crossed which bound.
    """

    rate: str
    direction: Direction
    before: Share | None
    after: Share | None
    statistic: float
    bound: float

    @property
    def worse(self) -> bool:
        """Whether the classifier does worse by it."""
        return (self.direction == "up") == (self.rate == "error")

    @property
    def shares(self) -> tuple[Share, Share] | None:
        """The rate before and after, where both were observed."""
        if self.before is None or self.after is None or not (self.before.n and self.after.n):
            return None
        return self.before, self.after


@dataclass(frozen=True, slots=True)
class FindingFacts:
    """A drift, or what became of one."""

    stream: str | None
    number: int  # in its stream
    kind: Kind
    further: bool
    drift: int  # the event of the drift that opened the episode
    closes: bool
    moves: tuple[Move, ...]
    precisions: tuple[PrecisionChange, ...]
    at: Moment
    since: Moment
    started: Moment | None
    between: tuple[Moment, Moment] | None
    window: range
    too_few_examples: str | None  # what to say if the window of a drift is too small
    rows: str  # where the window is in the files
    before: Matrix
    after: Matrix

    @property
    def moved(self) -> bool:
        """Whether a rate moved to a level that started then; else it is a look at one that had moved."""
        return self.kind in ("drift", "recovery", "improvement")

    @property
    def calm(self) -> bool:
        """Whether it is good news: a rate is at normal again."""
        return self.kind in ("withdrawal", "recovery", "acceptance")


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, what was found in it, and how it is at its end.

    Attributes
    ----------
    standing : str
        "drifted" while a drift is open, "recovered" if the last one ended with a recovery. A detector that holds no
        normal never says that a drift is over: it has drifted if there was one.
    moves : tuple of Move
        The rates that are away, or those that recovered.
    since : Moment or None
        Since when.
    open : OpenDrift or None
        The drift that is open, with the rates now.
    rates : mapping from names to RateState
        The rates now, where they recovered.
    """

    name: str | None
    events: int
    findings: tuple[FindingFacts, ...]
    standing: Standing
    moves: tuple[Move, ...]
    since: Moment | None
    trace: Trace | None
    open: OpenDrift | None
    rates: Mapping[str, RateState]

    @property
    def rank(self) -> tuple[float, ...]:
        """Where it comes in the list: open drifts as they are ranked, then what moved furthest."""
        if self.open is not None:
            return (0, not self.open.confirmed, -self.open.harm)
        return (1, -strength(self.moves))


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page tells.

    Attributes
    ----------
    streams : tuple of Stream
        Those that moved furthest first.
    findings : tuple of FindingFacts
        Of all streams, in the order they were found.
    dispersion : dict
        By recall, how much its errors cluster, where the detector knows.
    shifts : tuple of Shift
        Shifts of the class mix.
    now : Now
        How things are now.
    """

    streams: tuple[Stream, ...]
    findings: tuple[FindingFacts, ...]
    labels: tuple[Any, ...]
    events: int
    first_time: int | None
    last_time: int | None
    utc: bool
    dispersion: dict[str, float]
    shifts: tuple[Shift, ...]
    now: Now


def gather(watch: Watch, events: Events, findings: Sequence[Finding]) -> Facts:
    """Turn a watch and its findings into facts."""
    labels = tuple(watch.detector.parameters["labels"])
    if watch.detector.parameters.get("positive") not in (None, labels[-1]) and len(labels) == 2:
        labels = labels[::-1]  # matrices have the positive class last
    shifts = tuple(finding for finding in findings if isinstance(finding, Shift))
    moves = [finding for finding in findings if not isinstance(finding, Shift)]
    traces, now = watch.traces, watch.now()
    opened = {drift.segment: drift for drift in now.open}
    by_segment: dict[str | None, list[Finding]] = {name: [] for name in watch.segments}
    for finding in moves:
        by_segment[finding.segment].append(finding)
    told: dict[int, FindingFacts] = {}
    streams = []
    for name, detector in watch.segments.items():
        own = _findings(by_segment[name], labels, traces.get(name), detector.events)
        told |= {id(finding): one for finding, one in zip(by_segment[name], own, strict=True)}
        standing, changed, since = _standing(detector, own, watch.holds, opened.get(name))
        rates = detector.rates if standing == "recovered" else {}
        streams.append(
            Stream(name, detector.events, own, standing, changed, since, traces.get(name), opened.get(name), rates)
        )
    streams.sort(key=lambda stream: stream.rank)
    return Facts(
        tuple(streams),
        tuple(told[id(finding)] for finding in moves),
        labels,
        watch.events,
        _microseconds(watch.first_time),
        _microseconds(watch.last_time),
        events.utc,
        dispersions(watch),
        shifts,
        now,
    )


def _standing(
    detector: Detector | BankStream, findings: Sequence[FindingFacts], holds: bool, opened: OpenDrift | None
) -> tuple[Standing, tuple[Move, ...], Moment | None]:
    """How a stream is at its end, by its own status; which rates are away or back, and since when."""
    if opened is not None:
        started = opened.drift.at if opened.drift.started is None else opened.drift.started
        moves = tuple(
            Move(rate, _direction(state), state.normal, state.now, math.nan, math.nan)
            for rate, state in opened.rates.items()
        )
        return "drifted", moves, Moment(started, _microseconds(opened.drift.started_time), about=True)
    last = findings[-1] if findings else None
    if last is not None and not holds:
        return "drifted", last.moves, last.started or last.at
    ended = next((finding for finding in reversed(findings) if finding.closes), None)
    if ended is not None and ended.kind == "recovery":
        back = [one for one in findings if one.kind == "recovery" and one.drift == ended.drift]
        recovered = {move.rate: move for one in back for move in one.moves}
        return "recovered", tuple(recovered.values()), ended.started or ended.at
    return "warning" if detector.warning_detected else "stable", (), None


def _direction(state: RateState) -> Direction:
    fell = state.normal is None or state.now is None or state.now.value <= state.normal.value
    return "down" if fell else "up"


def _findings(
    findings: Sequence[Finding], labels: Sequence[Any], trace: Trace | None, events: int
) -> tuple[FindingFacts, ...]:
    """What was found in one segment, in order."""
    told = []
    last = next((one for one in reversed(findings) if isinstance(one, Drift)), None)
    for number, finding in enumerate(findings, 1):
        drift = finding if isinstance(finding, Drift) else None
        between, clock = finding.started_between, _clock(finding, trace)
        before, after = counts_split(finding)
        since = finding.at if drift is None else drift.since
        told.append(
            FindingFacts(
                stream=finding.segment,
                number=number,
                kind=finding.kind,
                further=drift is not None and drift.further,
                drift=finding.at if finding.drift is None else finding.drift.at,
                closes=finding.closes,
                moves=tuple(_move(change, before, after, labels) for change in finding.changes),
                precisions=() if drift is None else drift.precisions,
                at=Moment(finding.at, _microseconds(finding.time)),
                since=_moment(since, clock),
                started=None if finding.started is None else _moment(finding.started, clock),
                between=None if between is None else (_moment(between[0], clock), _moment(between[1], clock)),
                window=finding.window,
                too_few_examples=None
                if drift is None
                else too_few_examples(drift, events if drift is last else drift.window.stop),
                rows=_rows(finding),
                before=before,
                after=after,
            )
        )
    return tuple(told)


def _move(change: RateChange, counts_before: Matrix, counts_after: Matrix, labels: Sequence[Any]) -> Move:
    """A rate that moved; the counts say from what to what if the detector does not."""
    before, after = change.before, change.after
    if before is None or after is None:
        before, after = (share(change.rate, counts, labels) for counts in (counts_before, counts_after))
    return Move(change.rate, change.direction, before, after, change.statistic, change.bound)


def strength(moves: Sequence[Move]) -> float:
    """How far rates moved: how many standard errors lie between before and after, for the rate with the most."""
    found = [0.0]
    for move in moves:
        if move.shares is not None:
            before, after = move.shares
            pooled = (before.value * before.n + after.value * after.n + 1) / (before.n + after.n + 2)
            error = math.sqrt(pooled * (1 - pooled) * (1 / before.n + 1 / after.n))
            found.append(abs(before.value - after.value) / error)
    return max(found)


def share(rate: str, counts: Matrix, labels: Sequence[Any]) -> Share | None:
    """A rate from counts by true and predicted class; None for a quantity that is no rate.

    Examples
    --------
    >>> from fourrates.report.facts import share
    >>> share("tpr", ((90, 10), (5, 15)), (0, 1)).value
    0.75
    >>> share("precision:0", ((90, 10), (10, 15)), (0, 1)).value
    0.9
    >>> share("similarity", ((90, 10), (5, 15)), (0, 1))
    """
    matrix = np.array(counts)
    right = np.diagonal(matrix)
    cells: dict[str, tuple[int, int]] = {
        "error": (int(matrix.sum() - right.sum()), int(matrix.sum())),
        "accuracy": (int(right.sum()), int(matrix.sum())),
    }
    for place, label in enumerate(labels):
        recall = (int(right[place]), int(matrix[place].sum()))
        precision = (int(right[place]), int(matrix[:, place].sum()))
        cells |= {f"recall:{label}": recall, f"precision:{label}": precision}
        if len(labels) == 2:
            cells |= dict(zip((("tnr", "npv"), ("tpr", "ppv"))[place], (recall, precision), strict=True))
            cells |= {"recall": recall, "precision": precision}  # of the positive class, which is the last
    return Share.of(*cells[rate]) if rate in cells else None


def _rows(finding: Finding) -> str:
    """Where the window is in the files; its end alone where its beginning is in an earlier one."""
    if finding.started_row is None:
        return f"up to {finding.source}, row {finding.row:,}"
    return f"{finding.source}, rows {finding.started_row:,} to {finding.row:,}"


def _microseconds(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("M8[us]").astype(np.int64))


def _clock(finding: Finding, trace: Trace | None) -> tuple[list[int], list[int]]:
    """Events whose times are known, and these: some that were remembered, and those of the finding itself."""
    known = dict(zip(*trace.clock(), strict=True)) if trace is not None else {}
    for event, time in ((finding.at, finding.time), (finding.started, finding.started_time)):
        if event is not None and time is not None:
            known[event] = int(time.astype("M8[us]").astype(np.int64))
    return sorted(known), [known[event] for event in sorted(known)]


def _moment(event: int, clock: tuple[list[int], list[int]]) -> Moment:
    """An estimated event, with the time it had if that lies between those that are known."""
    known = bool(clock[0]) and clock[0][0] <= event
    return Moment(event, int(np.interp(event, *clock)) if known else None, about=True)

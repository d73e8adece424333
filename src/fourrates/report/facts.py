"""The facts of the page, stream by stream; the one place at which the report looks at watches, findings and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fourrates.budget.falls import Fall, smallest_fall
from fourrates.budget.words import UNITS, duration
from fourrates.detectors import FourRates
from fourrates.findings import Drift, Finding, PredictionShift, RateState, Share, Shift
from fourrates.labels import rate_names
from fourrates.watch import Deployment, OpenDrift
from fourrates.watch.dispersion import dispersion_of
from fourrates.watch.trace import Trace, observations

if TYPE_CHECKING:
    from fourrates.io import Events, Joined
    from fourrates.watch import Watch

Standing = Literal["drifted", "recovered", "warning", "withdrawn", "stable", "unknown"]
STANDINGS: tuple[Standing, ...] = ("drifted", "recovered", "warning", "withdrawn", "stable", "unknown")
SPANS = ("day", "week", "month")  # within which a fall should be found
WITHIN = (1_000, 10_000, 100_000)  # the same in events, if no time is known
LOADED = 200  # segments without a finding whose rates are looked at
FEW = 100  # observations of a class that its recall needs before we can quote a fall
LARGE = 20  # points of a fall that anyone would call large, if a smaller one within a longer time is worth more


@dataclass(frozen=True, slots=True)
class Episode:
    """The last time a stream drifted, with its drift, the beginning of the level before, its start and its end."""

    drift: Drift
    before: int
    start: int
    end: int | None  # None while open

    @property
    def since(self) -> int:
        """The event at which it began, according to its finding."""
        return self.start if self.drift.started is None else self.drift.started


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, its findings, and its state at the end.

    A detector without a normal never closes a drift, so the stream has drifted if there was one.
    """

    name: str | None
    events: int
    findings: tuple[Finding, ...]
    standing: Standing
    labels: tuple[Any, ...]
    trace: Trace | None
    open: OpenDrift | None
    rates: Mapping[str, RateState]
    episode: Episode | None

    @property
    def harm(self) -> float:
        """Events since the alarm that normal would have had right; for a detector without a normal, since the drift."""
        if self.open is not None:
            return self.open.harm
        if self.standing != "drifted" or self.episode is None or self.trace is None:
            return 0.0
        shares = [self.share("accuracy", *span) for span in self.spans()]
        return (shares[0].value - shares[1].value) * shares[1].n if all(share.n for share in shares) else 0.0

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key in a list of open drifts first, confirmed before unconfirmed, then by harm."""
        unconfirmed = self.open is not None and not self.open.confirmed
        return (STANDINGS.index(self.standing), unconfirmed, -self.harm, -self.events)

    @property
    def moved(self) -> list[str]:
        """The rates that moved, the one to look at first; in a stable stream, that of the rarest class."""
        names = rate_names(self.labels)
        if self.open is not None and self.open.rates:
            return [*self.open.worst_first]
        if self.episode is not None:
            rates = dict.fromkeys(change.rate for change in self.episode.drift.changes)
            return [rate for rate in rates if rate in names] or [*rates]
        if self.trace is None:
            return [names[len(self.labels) - 1]]
        seen = self.trace.counts.sum((0, 2))
        return [names[int(np.where(seen >= min(FEW, seen.max()), seen, np.inf).argmin())]]

    @property
    def untraced(self) -> bool:
        """Whether the last episode began before the first event of this run, where its trace begins."""
        assert self.episode is not None
        return self.trace is None or self.episode.start < self.trace.first

    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The events of the level before the last episode, and those of the episode."""
        assert self.episode is not None
        end = self.events if self.episode.end is None else self.episode.end
        return (self.episode.before, self.episode.start), (self.episode.start, end)

    def share(self, rate: str, start: int, end: int) -> Share:
        """A rate from one event to another, to the nearest bin of the trace."""
        seen = None if self.trace is None else observations(self.trace.between(start, end), rate, self.labels)
        return Share.of(0, 0) if seen is None else Share.of(float(seen[1]), float(seen[0]))

    def levels(self, rate: str) -> tuple[Share, Share]:
        """A rate at normal, and now; after a drift that is not held against a normal, before it and since."""
        state = self.rates.get(rate)
        if state is not None and state.normal is not None and state.now is not None:
            return state.normal, state.now
        if self.episode is None or self.standing != "drifted":
            return self.share(rate, 0, self.events), Share.of(0, 0)
        before, after = self.spans()
        return self.share(rate, *before), self.share(rate, *after)

    @property
    def improved(self) -> bool:
        """Whether a detector that starts afresh found a change for the better."""
        better = self.episode is not None and not self.episode.drift.worse
        return self.standing == "drifted" and self.open is None and better and self.harm < 0

    def is_away(self, rate: str) -> bool:
        """Whether the detector holds that a rate is not at normal."""
        if self.open is not None:
            return rate in self.open.rates
        return self.standing == "drifted" and self.episode is not None and rate in self.moved

    def clock(self) -> tuple[list[int], list[int]]:
        """Events with known times, and these in microseconds, from the trace and the findings."""
        known: dict[int, int] = {}
        if self.trace is not None:
            events, times = self.trace.clock()
            known = dict(zip(events.tolist(), times.tolist(), strict=True))
        opened = [] if self.open is None else [self.open.drift]
        earlier = [*opened, *(finding.drift for finding in self.findings if finding.drift is not None)]
        leading = () if self.open is None else (self.open.leading,)
        # A drift knows best when it started, later ones that are about it less.
        for finding in (*earlier, *reversed(self.findings), *leading):
            for event, time in ((finding.at, finding.time), (finding.started, finding.started_time)):
                if event is not None and time is not None:
                    known[event] = microseconds(time)
        return sorted(known), [known[event] for event in sorted(known)]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page is about; the streams with most harm first, the findings in their order."""

    streams: tuple[Stream, ...]
    findings: tuple[Finding, ...]
    labels: tuple[Any, ...]
    events: int
    first_time: int | None
    last_time: int | None
    utc: bool
    dispersion: dict[str, float]
    holds: bool
    arl: float | None
    smallest: tuple[tuple[Fall, float | None], ...]  # falls that would be found; events a second, if known
    deployments: tuple[Deployment, ...]
    new: int  # events of this run; fewer than all if it resumed from a state

    @property
    def resumed(self) -> bool:
        """Whether earlier runs had some of the events."""
        return self.new < self.events


def gather(watch: Watch, events: Events | Joined, findings: Sequence[Finding], new: int | None = None) -> Facts:
    """Turn a watch and its findings into facts."""
    labels, traces = watch.detector.labels.values, watch.traces
    opened = {drift.segment: drift for drift in watch.now().open if drift.drift.version == watch.version}
    own: dict[str | None, list[Finding]] = {name: [] for name in watch.segments}
    ahead = [finding for finding in findings if isinstance(finding, PredictionShift)]  # of no version
    findings = [finding for finding in findings if finding.version == watch.version and finding not in ahead]  # drawn
    for finding in findings:
        own[finding.segment].append(finding)
    streams = []
    events_of, since = watch.segments.progress(np.arange(len(watch.segments)))
    size = dict(zip(watch.segments, events_of.tolist(), strict=True))
    warns = {name for name, event in zip(watch.segments, since.tolist(), strict=True) if event >= 0}
    quiet = sorted((name for name in own if not own[name] and name not in opened), key=lambda name: -size[name])
    unread = {*quiet[LOADED:]}  # loading a segment of a bank takes milliseconds
    for name in watch.segments:
        rates = {} if name in unread else watch.segments[name].rates
        own_findings = tuple(finding for finding in own[name] if not isinstance(finding, Shift))
        episode = _episode(own_findings, opened.get(name), watch.holds)
        standing = _standing(own_findings, opened.get(name), watch.holds, name in warns, rates)
        seen = traces.get(name), opened.get(name)
        streams.append(Stream(name, size[name], own_findings, standing, labels, *seen, rates, episode))
    streams.sort(key=lambda stream: stream.rank)
    first, last = (None if at is None else microseconds(at) for at in (watch.first_time, watch.last_time))
    rate = watch.events / ((last - first) / 1e6) if first is not None and last is not None and last > first else None
    dispersion = dispersion_of([stream.rates for stream in streams])
    smallest = tuple(_smallest(watch, streams, rate, dispersion))
    arl = watch.detector.parameters.get("arl")
    times = first, last, events.utc
    known = labels, watch.events, *times, dispersion, watch.holds, arl, smallest, watch.deployments
    new = watch.events if new is None else new
    return Facts(tuple(streams), (*findings, *ahead), *known, new)


def _episode(findings: Sequence[Finding], opened: OpenDrift | None, holds: bool) -> Episode | None:
    """The last episode; while a drift is open, that of the rate with most harm, even if an earlier run found it."""
    worst = None if opened is None else next(iter(opened.worst_first), None)
    last, before, end = None if opened is None else opened.leading, 0, None
    away = False
    for finding in findings:
        about = worst is None or any(change.rate == worst for change in finding.changes)
        if isinstance(finding, Drift) and about and not (holds and away):
            before = before if end is None else end
            if not holds and last is not None:
                before = last.window.start
            last, end, away = finding, None, True
        elif last is None and finding.closes and finding.drift is not None:  # a drift of an earlier run
            last, end = finding.drift, ended(finding)
        elif away and (finding.closes or (about and finding.kind in ("withdrawal", "recovery", "acceptance"))):
            end, away = ended(finding), False
    if opened is not None:
        last, end = opened.leading, None
    if last is None:
        return None
    start = last.window.start
    return Episode(last, min(before, start), start, end)


def _standing(
    findings: Sequence[Finding],
    opened: OpenDrift | None,
    holds: bool,
    warns: bool,
    rates: Mapping[str, RateState],
) -> Standing:
    if opened is not None or (findings and not holds):
        return "drifted"
    ended = next((finding for finding in reversed(findings) if finding.closes), None)
    if ended is not None and ended.kind in ("recovery", "withdrawal"):
        return "recovered" if ended.kind == "recovery" else "withdrawn"
    if warns:
        return "warning"
    known = [state for state in rates.values() if state.normal is not None and state.now is not None]
    if holds and known and not any(state.now is not None and state.now.n >= state.enough for state in known):
        return "unknown"
    return "stable"


def _smallest(
    watch: Watch, streams: Sequence[Stream], rate: float | None, dispersion: Mapping[str, float]
) -> list[tuple[Fall, float | None]]:
    """The smallest falls soon found in a segment of middling size, of the rarest and commonest class."""
    followed = [stream for stream in streams if stream.trace is not None]
    if not followed or not isinstance(watch.detector, FourRates):
        return []
    followed.sort(key=lambda stream: stream.events)
    middling = followed[len(followed) // 2]
    assert middling.trace is not None
    counts = middling.trace.between(*(middling.spans()[0] if middling.episode else (0, middling.events)))
    of_class = counts.sum(1)
    if middling.standing == "unknown" or of_class.min() < FEW:
        return []
    own = None if rate is None else rate * middling.events / max(watch.events, 1)
    spans = WITHIN if own is None else [int(own * UNITS[span]) for span in SPANS]
    detector, smallest = watch.detector, []
    for which in dict.fromkeys((int(of_class.argmin()), int(of_class.argmax()))):
        order = [detector.labels.values.index(label) for label in detector.labels.given]
        disperse = max(dispersion.get(rate_names(detector.labels.values)[which], 1.0), 1.0)
        known = {"reference": counts[np.ix_(order, order)].tolist(), "after": "restart", "dispersion": disperse}
        known["strata"] = None  # on average over them
        detector = FourRates(**watch.detector.parameters | known)
        for span in spans:
            fall = smallest_fall(detector, counts, which, span, LARGE) if span >= WITHIN[0] / 10 else None
            if fall is not None and not fall.lost:
                smallest.append((fall, own))
                break
    return smallest


def ended(finding: Finding) -> int:
    """The event at which something ended; a recovery began before it was found."""
    return finding.started if finding.kind == "recovery" and finding.started is not None else finding.at + 1


def microseconds(time: np.datetime64) -> int:
    """A time as a number."""
    return int(time.astype("M8[us]").astype(np.int64))


def within(events: float, rate: float | None) -> str:
    """A number of events as a time, if the events per second are known."""
    return f"{events:,.0f} events" if rate is None else duration(events / rate)

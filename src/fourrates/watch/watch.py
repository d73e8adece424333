"""A detector over batches of events, overall or by segment: findings with their times, and how things are now.

:class:`Watch` is what every door holds: `detect`, `watch`, the library. It can be saved between two batches and resumed
in another process; a stream cut anywhere gives the same findings as in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.checks import check_whole
from fourrates.detectors import Detector
from fourrates.detectors.seasons import SEASONS, strata_of
from fourrates.findings import Drift, Finding, RateState
from fourrates.io import Batch, Columns, InputError, read
from fourrates.labels import rate_names
from fourrates.state import Saved, pack, unpack
from fourrates.watch.cost import ExtraCost, extra_cost, prices
from fourrates.watch.marks import Marks, is_marked
from fourrates.watch.now import Now, OpenDrift
from fourrates.watch.part import OpenWarning, Part
from fourrates.watch.segments import MAX_SEGMENTS, Groups, Segments

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.watch.part import Positions
    from fourrates.watch.trace import Trace

MOST = 2**31 - 2  # segments that a bank can number
TRACED = 2000  # segments that are followed for pictures: each takes some 100 kB
PLACE = ("time", "started_time", "source", "row", "started_row")  # what a watch adds to a finding, besides its segment


class Watch:
    """Detectors at work on batches of events.

    Many segments of FourRates or LFR are a :class:`~fourrates.Bank`; other detectors are objects, one a segment.

    Parameters
    ----------
    detector : Detector
        As it should begin; every segment gets a clone of it.
    by : str, optional
        The column that makes segments, for frames given to :meth:`update`.
    truth, pred, time : str, optional
        The other columns of these frames; known by common names if not given.
    overall : Detector, optional
        Beside those of the segments, one for all events together.
    references : mapping, optional
        From names of segments to their references, for FourRates; the others have none.
    trace : callable, optional
        Makes a :class:`~fourrates.watch.trace.Trace` for a segment, to follow its rates for a picture.
    cost : mapping, optional
        What an error costs: ``{"miss": 120, "false alarm": 3}``, or by true class. Open drifts then have a `cost`.
    max_segments : int
        The most segments there may be.

    Attributes
    ----------
    detector : Detector
        The one given.
    segments : mapping from names to detectors
        Each segment as a detector; None is the name of the only one.
    overall : Watch or None
        The watch of all events together, where there is one beside the segments.
    events : int
        Events so far, in all segments.
    first_time, last_time : datetime64 or None
        The earliest and the latest time met.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.streams import SCENARIOS
    >>> watch = fr.Watch(fr.FourRates(arl=100_000))
    >>> y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    >>> for start in range(0, 10_000, 2_000):
    ...     batch = {"y_true": y_true[start : start + 2_000], "y_pred": y_pred[start : start + 2_000]}
    ...     for finding in watch.update(batch):
    ...         print(finding)
    drift at 5,089, started about 5,005: tnr up: 0.816 -> 0.955; tpr down: 0.750 -> 0.350
    confirmation at 5,111 of the drift at 5,089: tnr up: 0.816 -> 1.000; tpr down: 0.751 -> 0.143
    >>> watch.now().status
    'drifted'
    """

    def __init__(
        self,
        detector: Detector,
        by: str | None = None,
        *,
        truth: str | None = None,
        pred: str | None = None,
        time: str | None = None,
        overall: Detector | None = None,
        references: Mapping[str, Any] | None = None,
        trace: Callable[[Detector], Trace] | None = None,
        cost: Mapping[Any, float] | None = None,
        max_segments: int = MAX_SEGMENTS,
    ) -> None:
        self._columns = Columns(truth, pred, None, time, by)
        beside = None if overall is None else Watch(overall, trace=trace)
        self._begin(Segments(detector, references), beside, trace)
        self.max_segments = max_segments
        self.set_cost(cost or {})

    def _begin(self, segments: Segments, overall: Watch | None, trace: Callable[[Detector], Trace] | None) -> None:
        self.segments, self.overall = segments, overall
        self.events = 0
        self.first_time: np.datetime64 | None = None
        self.last_time: np.datetime64 | None = None
        self._classes = len(segments.detector.labels.values)
        self._warnings: dict[int, OpenWarning] = {}
        self._opened: dict[int, dict[str, Any]] = {}  # when and where the open drifts were found, by segment
        self._marks = Marks()
        self._source: str | None = None
        self._trace = trace
        self._traces: dict[int, Trace] = {}
        self.prices: dict[str, float] = {}

    def set_cost(self, cost: Mapping[Any, float]) -> None:
        """Say what an error costs, as the parameter `cost` does; it is no part of the state."""
        self.prices = prices(cost, self.detector.labels.values)
        if self.overall is not None:
            self.overall.set_cost(cost)

    @property
    def detector(self) -> Detector:
        """As every segment begins."""
        return self.segments.detector

    @property
    def references(self) -> Mapping[str, Any] | None:
        """From names of segments to their references, where they have their own."""
        return self.segments.references

    @property
    def without_reference(self) -> list[str]:
        """Segments that have no reference of their own where others do: they are compared with their own past."""
        if self.references is None:
            return []
        return [name for name in self.segments.names if name is not None and name not in self.references]

    def has_references_of(self, other: Watch) -> bool:
        """Whether its segments have the same references."""
        ours, theirs = self.references or {}, other.references or {}
        return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)

    @property
    def max_segments(self) -> int:
        """The most segments there may be."""
        return self.segments.most

    @max_segments.setter
    def max_segments(self, most: int) -> None:
        if check_whole(most, "max_segments") > MOST:
            raise ValueError(f"max_segments {most!r} is not between 1 and {MOST:,}")
        if len(self.segments) > most:
            raise InputError(f"{len(self.segments):,} segments; at most {most:,} are possible (max_segments)")
        self.segments.most = most

    @property
    def holds(self) -> bool:
        """Whether a drift stays open until a finding closes it; with other detectors none ever does."""
        return self.detector.parameters.get("after") == "hold"

    @property
    def traces(self) -> dict[str | None, Trace]:
        """What was followed for pictures."""
        return {self.segments.names[number]: trace for number, trace in self._traces.items()}

    # Events ---------------------------------------------------------------------------------------------------

    def update(self, batch: Any, names: Sequence[str] = ()) -> list[Finding]:
        """Take events and return the findings, in the order of their events.

        Parameters
        ----------
        batch : Batch, frame or mapping from names to arrays
            The events.
        names : sequence of str
            For a Batch: the names of the segments that its keys count (`Events.keys`).
        """
        if isinstance(batch, Batch):
            return self._take(batch, names)
        parameters = self.detector.parameters
        events = read(batch, columns=self._columns, labels=parameters["labels"], positive=parameters["positive"])
        found = [finding for part in events for finding in self._take(part, events.keys)]
        # What its times have shown holds for those that come.
        self._columns = replace(self._columns, unit=events.columns.unit, dates=events.columns.dates)
        return found

    def _take(self, batch: Batch, names: Sequence[str]) -> list[Finding]:
        if self.overall is None:
            return self._take_segments(batch, names)
        found = self._take_segments(batch, names) if batch.keys is not None else []
        found += self.overall._take_segments(replace(batch, keys=None), ())
        return sorted(found, key=lambda finding: finding.row or 0)

    def _take_segments(self, batch: Batch, names: Sequence[str]) -> list[Finding]:
        many, segments, batch = batch.keys is not None, self.segments, self._stratified(batch)
        if segments.names and many != (segments.names[0] is not None):
            raise InputError("the events so far were " + ("of one stream" if many else "in segments"))
        if batch.keys is None:
            numbers, begun = None, segments.begin([None])
        else:
            numbers, begun = segments.numbers(batch.keys, names)  # or an error, before anything changes
        self._follow(begun)
        if batch.times is not None:
            self._note_times(batch.times)
        if batch.source != self._source:
            self._source = batch.source
            self._marks.forget_rows()
        self.events += batch.truths.size
        return self._advance(batch, Groups.of(numbers, batch.truths.size))

    def _stratified(self, batch: Batch) -> Batch:
        """A batch with the strata that the detector has: by the times, or by a column of its own."""
        asked = self.detector.parameters.get("strata")
        if asked is None:
            return replace(batch, strata=None)
        if asked in SEASONS:
            if batch.times is None:
                raise InputError(f"normal by {'hour' if asked == 'day' else 'weekday'} needs times (--time)")
            return replace(batch, strata=strata_of(batch.times, asked))
        if batch.strata is None:
            raise InputError(f"this detector has {asked} strata: say which column names them (--stratum)")
        return batch

    def _note_times(self, times: npt.NDArray[np.datetime64]) -> None:
        known = times[~np.isnat(times)]
        if known.size:
            low, high = known.min(), known.max()
            self.first_time = low if self.first_time is None else min(self.first_time, low)
            self.last_time = high if self.last_time is None else max(self.last_time, high)

    def _follow(self, begun: range) -> None:
        """Follow segments that begin for pictures, the first of them."""
        if self._trace is not None:
            for number in begun[: max(0, TRACED - begun.start)]:
                self._traces[number] = self._trace(self.segments.starting(number))

    def _advance(self, batch: Batch, groups: Groups) -> list[Finding]:
        """Give a batch to the segments; then see to those that drifted, warn, or are followed."""
        findings = self.segments.take(batch, groups)
        events, since = self.segments.progress(groups.present)
        busy = since >= 0
        if findings or self._warnings or self._traces:
            noted = np.fromiter({*findings, *self._warnings, *self._traces}, np.int64)
            busy |= np.isin(groups.present, noted)
        alone = groups.order is None
        if not alone:
            self._mark_all(batch, groups, events, [*findings])
        found: list[tuple[int, Finding]] = []
        for i in np.flatnonzero(busy | alone).tolist():
            number, positions, end = int(groups.present[i]), groups.positions(i), int(events[i])
            first = end - int(groups.ends[i] - groups.starts[i])
            part = Part(batch, positions, first, self._classes, self._warnings.pop(number, None))
            own = findings.get(number, [])
            if own or alone:
                found += [(part.position(one.at), one) for one in self._placed_in(number, part, own)]
            if number in self._traces:
                self._traces[number].take(*part.codes(), part.times())
            if since[i] >= 0:
                self._warnings[number] = part.warning_from(int(since[i]), end)
        return [finding for _, finding in sorted(found, key=lambda one: one[0])]

    def _mark_all(self, batch: Batch, groups: Groups, events: Positions, later: list[int]) -> None:
        """Remember when and where events were, but for segments with findings: those are marked up to each of them."""
        assert groups.order is not None
        sizes = groups.ends - groups.starts
        own = np.repeat(events - sizes - groups.starts, sizes) + np.arange(batch.truths.size)
        numbers = np.repeat(groups.present, sizes)
        marked = is_marked(numbers, own)
        if later:
            marked &= ~np.isin(numbers, later)
        at = groups.order[marked]
        times = None if batch.times is None else batch.times[at]
        self._marks.note(numbers[marked], own[marked], times, batch.rows[at])

    def _mark(self, number: int, part: Part, start: int, end: int) -> None:
        """Remember when and where events of a part were."""
        at = np.arange(start, end)
        at = at[is_marked(number, part.first + at)]
        times = part.times()
        self._marks.note(
            np.full(at.size, number), part.first + at, None if times is None else times[at], part.rows()[at]
        )

    def _placed(self, number: int, part: Part, finding: Finding) -> Finding:
        """A finding with its segment, its time and its row; all events up to it are marked."""
        marks, segment, end = self._marks, self.segments.names[number], finding.at + 1
        placed = replace(
            finding,
            segment=segment,
            time=part.time(finding.at),
            started_time=marks.time(number, finding.started, end),
            source=part.batch.source,
            row=int(part.batch.rows[part.position(finding.at)]),
            started_row=marks.row(number, finding.started, end),
        )
        if isinstance(placed, Drift):
            placed = replace(placed, confusion_since=part.counts_since_warning(placed))
        if placed.about is not None and number in self._opened:
            placed = replace(placed, about=replace(placed.about, segment=segment, **self._opened[number]))
        return placed

    def _placed_in(self, number: int, part: Part, own: list[Finding]) -> list[Finding]:
        """The findings in a segment with their places, and where the drift that is now open in it was found."""
        found, done = [], 0
        for finding in own:
            end = finding.at + 1 - part.first
            self._mark(number, part, done, end)
            done = end
            found.append(placed := self._placed(number, part, finding))
            if placed.closes:
                self._opened.pop(number, None)
            elif placed.kind == "drift" and number not in self._opened:
                self._opened[number] = {name: getattr(placed, name) for name in PLACE}
        self._mark(number, part, done, len(part.rows()))
        if own and getattr(self.segments.at(number), "open", None) is None:
            self._opened.pop(number, None)
        return found

    # Now ------------------------------------------------------------------------------------------------------

    @property
    def open_since(self) -> dict[str | None, np.datetime64 | None]:
        """The segments whose drift is open, None for the overall stream, and when it was found."""
        beside = {} if self.overall is None else self.overall.open_since
        return beside | {self.segments.names[number]: place["time"] for number, place in self._opened.items()}

    def open_drift(self, segment: str | None = None) -> OpenDrift | None:
        """The drift that is open in a segment, or overall."""
        if segment is None and self.overall is not None:
            return self.overall.open_drift()
        if segment not in self.segments or (number := self.segments.number(segment)) not in self._opened:
            return None
        stream = self.segments.at(number)
        drift = getattr(stream, "open", None)
        assert drift is not None
        placed = replace(drift, segment=segment, **self._opened[number])
        away = {rate: state for rate, state in stream.rates.items() if state.state != "normal"}
        return OpenDrift(placed, away, self._cost(stream, placed, away) if self.prices else None)

    def _cost(self, stream: Any, drift: Drift, away: Mapping[str, RateState]) -> ExtraCost | None:
        """What an open drift costs; of each class there have been as many events as in the mix since the last alarm."""
        mix = np.sum(stream.confusion, axis=1)
        since = stream.events - drift.at
        counts = (since * mix / max(1, mix.sum())).tolist()
        events = dict(zip(rate_names(self.detector.labels.values), counts, strict=False))
        days = None if drift.time is None or self.last_time is None else self.last_time - drift.time
        return extra_cost(away, self.prices, events, days)

    def now(self) -> Now:
        """How things are now: the open drifts, and the rates since."""
        names, overall = self.segments.names, self.overall or self
        opened = [drift for segment in self.open_since if (drift := self.open_drift(segment)) is not None]
        opened.sort(key=lambda drift: (drift.segment is not None, not drift.confirmed, -drift.harm))
        warned = len(self._warnings) + (0 if overall is self else len(overall._warnings))
        return Now(
            status="drifted" if opened else "warning" if warned else "stable",
            open=tuple(opened),
            rates=overall.segments[None].rates if None in overall.segments else {},
            warned=warned,
            events=overall.events,
            segments=None if None in self.segments or not names else len(names),
            last_time=overall.last_time,
            holds=self.holds,
        )

    def accept(self, segment: str | None = None) -> Finding | None:
        """Make the level since the alarm the new normal, in a segment or overall; None if no drift is open there."""
        if segment is None and self.overall is not None:
            return self.overall.accept()
        if segment not in self.segments:
            raise KeyError(f"no segment {segment!r}")
        number = self.segments.number(segment)
        finding = self.segments.accept(segment)
        if finding is None:
            return None
        if self.segments.at(number).status != "warning":
            self._warnings.pop(number, None)
        place = self._opened.pop(number, {})
        about = None if finding.about is None else replace(finding.about, segment=segment, **place)
        return replace(finding, segment=segment, time=self.last_time, about=about)

    def set_budget(self, arl: float) -> None:
        """Go on with another false-alarm budget, without forgetting anything."""
        self.segments.set_budget(arl)
        if self.overall is not None:
            self.overall.set_budget(arl)

    # State ----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything that is needed to resume."""
        about, sections = self.segments.to_state()
        shape, sections["marks"] = self._marks.to_state(len(self.segments))
        about |= {
            "events": self.events,
            "times": [_microseconds(self.first_time), _microseconds(self.last_time)],
            "source": self._source,
            "columns": self._columns.to_dict(),
            "marks": shape,
            "warnings": [[number, one.since, one.counts.tolist()] for number, one in self._warnings.items()],
            "opened": [[number, *map(_saved_value, place.values())] for number, place in self._opened.items()],
        }
        if self.overall is not None:
            sections["overall"] = self.overall.to_bytes()
        return pack("Watch", about, **sections)

    @classmethod
    def from_bytes(
        cls, saved: bytes, trace: Callable[[Detector], Trace] | None = None, *, max_segments: int | None = None
    ) -> Watch:
        """Bring back what :meth:`to_bytes` saved; bytes that it cannot have saved are an InputError."""
        try:
            found = unpack(saved)
            if found.kind != "Watch":
                raise ValueError(f"this is the state of {found.kind}, not of a watch")
            watch = cls._revived(found, trace)
            if max_segments is not None:
                watch.max_segments = max_segments
            return watch
        except ValueError as error:
            raise InputError(str(error)) from None
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise InputError(f"the saved watch does not fit itself ({error!r})") from None

    @classmethod
    def _revived(cls, found: Saved, trace: Callable[[Detector], Trace] | None) -> Watch:
        watch, about = cls.__new__(cls), found.about
        columns: dict[str, Any] = {name: _text(column) for name, column in about["columns"].items()}
        watch._columns = Columns(**columns)
        overall = cls.from_bytes(bytes(found.sections["overall"]), trace) if "overall" in found.sections else None
        if overall is not None and (overall.overall is not None or [*overall.segments] not in ([], [None])):
            raise ValueError("the overall stream of the saved watch has segments")
        watch._begin(Segments.from_state(found), overall, trace)
        watch.events = check_whole(about["events"], "events", 0)
        watch.first_time, watch.last_time = (None if one is None else _time(one) for one in about["times"])
        watch._source = _text(about["source"])
        watch._marks = Marks.from_state(about["marks"], found.sections["marks"], len(watch.segments))
        watch._load_warnings(about["warnings"])
        watch._load_opened(about["opened"])
        if trace is not None:
            for number in range(min(TRACED, len(watch.segments))):
                watch._traces[number] = trace(watch.segments.at(number))
        return watch

    def _load_warnings(self, warnings: list[list[Any]]) -> None:
        """Load open warnings; each must be one of a segment that warns, and every such segment must have one."""
        events, since = (one.tolist() for one in self.segments.progress(np.arange(len(self.segments))))
        if sum(events) != self.events:
            raise ValueError(f"segments of {sum(events)} events in a watch of {self.events}")
        for number, event, counts in warnings:
            number, event = check_whole(number, "a segment's number", 0), check_whole(event, "a warning's event", 0)
            tally = np.array(counts, np.int64)
            if tally.shape != (self._classes, self._classes) or (tally < 0).any() or number in self._warnings:
                raise ValueError(f"the warning of segment {number} has counts that cannot be")
            if not 0 <= since[number] <= event or int(tally.sum(dtype=object)) > events[number] - event:
                raise ValueError(f"a warning since event {event} in segment {number}, which has {events[number]}")
            self._warnings[number] = OpenWarning(event, tally)
        if len(self._warnings) != sum(one >= 0 for one in since):
            raise ValueError(f"{len(self._warnings)} warnings are saved, others are open")

    def _load_opened(self, opened: list[list[Any]]) -> None:
        """Load when and where the open drifts were found: one for each."""
        for number, time, started, source, row, started_row in opened:
            times = [None if one is None else _time(one) for one in (time, started)]
            rows = [None if one is None else check_whole(one, "a row", 0) for one in (row, started_row)]
            place = dict(zip(PLACE, (*times, _text(source), *rows), strict=True))
            self._opened[check_whole(number, "a segment's number", 0)] = place
        if {*self._opened} != {*self.segments.open()} or len(opened) != len(self._opened):
            raise ValueError(f"{len(opened)} open drifts are saved, others are open")


def _microseconds(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("M8[us]").astype(np.int64))


def _saved_value(value: Any) -> Any:
    return _microseconds(value) if isinstance(value, np.datetime64) else value


def _time(saved: Any) -> np.datetime64:
    return np.datetime64(check_whole(saved, "a time", -(1 << 62)), "us")


def _text(saved: Any) -> str | None:
    if saved is not None and not isinstance(saved, str):
        raise TypeError(f"{saved!r} is not a name")
    return saved

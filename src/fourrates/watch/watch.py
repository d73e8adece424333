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
from fourrates.findings import Drift, Finding
from fourrates.io import Batch, Columns, InputError, read
from fourrates.state import Saved, pack, unpack
from fourrates.watch.marks import Marks
from fourrates.watch.now import Now, OpenDrift
from fourrates.watch.part import OpenWarning, Part
from fourrates.watch.segments import MAX_SEGMENTS, Segments

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.bank import Bank
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
        max_segments: int = MAX_SEGMENTS,
    ) -> None:
        self._columns = Columns(truth, pred, None, time, by)
        beside = None if overall is None else Watch(overall, trace=trace)
        self._begin(Segments(detector, references), beside, trace)
        self.max_segments = max_segments

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
        return [finding for part in events for finding in self._take(part, events.keys)]

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
            begun = segments.begin([None])
        else:
            numbers, begun = segments.numbers(batch.keys, names)  # or an error, before anything changes
        self._follow(begun)
        if batch.times is not None:
            self._note_times(batch.times)
        if batch.source != self._source:
            self._source = batch.source
            self._marks.forget_rows()
        self.events += batch.truths.size
        if batch.keys is None:
            return self._advance(0, batch, None)
        # 16 bits are sorted by radix
        order = np.argsort(numbers.astype(np.uint16) if len(segments) <= 1 << 16 else numbers, kind="stable")
        by_segment = numbers[order]
        edges = np.flatnonzero(by_segment[1:] != by_segment[:-1]) + 1
        starts, ends = np.append(0, edges), np.append(edges, order.size)
        present = by_segment[starts]
        if segments.bank is not None:
            return self._advance_bank(segments.bank, batch, numbers, order, present, starts, ends)
        found: list[Finding] = []
        for number, start, end in zip(present.tolist(), starts.tolist(), ends.tolist(), strict=True):
            found += self._advance(number, batch, order[start:end])
        return sorted(found, key=lambda finding: finding.row or 0)

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

    def _advance(self, number: int, batch: Batch, positions: Positions | None) -> list[Finding]:
        """Give the events of a batch to the detector of their segment."""
        detector, trace = self.segments.detectors[number], self._traces.get(number)
        part = Part(batch, positions, detector.events, self._classes, self._warnings.pop(number, None))
        truths, preds = part.codes()
        if trace is not None and (times := part.times()) is not None:
            trace.mark(times)
        found: list[Finding] = []
        done = 0
        while done < truths.size:
            taken, findings = detector.update_coded(truths, preds, done, part.strata())
            if trace is not None:
                trace.take(truths[done : done + taken], preds[done : done + taken])
            self._mark(number, part, done, done + taken)
            done += taken
            for finding in findings:
                found.append(self._placed(number, part, finding))
                if trace is not None and isinstance(finding, Drift):
                    trace.drift(finding)
            if findings:
                self._note_open(number, found[-len(findings) :], getattr(detector, "open", None) is not None)
        if (since := detector.warning_since) is not None:
            self._warnings[number] = part.warning_from(since, detector.events)
        return found

    def _mark(self, number: int, part: Part, start: int, end: int) -> None:
        """Remember when and where events of a part were."""
        times, rows = part.times(), part.rows()
        events = np.arange(part.first + start, part.first + end)
        self._marks.note(number, events, None if times is None else times[start:end], rows[start:end])

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

    def _note_open(self, number: int, found: Sequence[Finding], is_open: bool) -> None:
        """Remember when and where the drift that is now open in a segment was found."""
        if not is_open:
            self._opened.pop(number, None)
            return
        for finding in found:
            if finding.closes:
                self._opened.pop(number, None)
            elif finding.kind == "drift" and number not in self._opened:
                self._opened[number] = {name: getattr(finding, name) for name in PLACE}

    def _advance_bank(
        self, bank: Bank, batch: Batch, numbers: Any, order: Positions, segments: Any, starts: Any, ends: Any
    ) -> list[Finding]:
        """Give a batch to the bank; then see to the segments that drifted, warn, or are followed."""
        findings: dict[int, list[tuple[int, Finding]]] = {}
        bank.update_coded(numbers, batch.truths, batch.preds, batch.strata)
        for keyed in bank.findings:
            findings.setdefault(int(keyed.key), []).append((keyed.event, keyed.finding))  # type: ignore[call-overload]
        events, since = bank.progress(segments)
        busy = since >= 0
        if findings or self._warnings or self._traces:
            noted = np.fromiter({*findings, *self._warnings, *self._traces}, np.int64)
            busy |= np.isin(segments, noted)
        self._mark_all(batch, order, segments, starts, ends, events, [*findings])
        found: list[tuple[int, Finding]] = []
        for i in np.flatnonzero(busy).tolist():
            number, positions = int(segments[i]), order[starts[i] : ends[i]]
            part = Part(
                batch, positions, int(events[i]) - positions.size, self._classes, self._warnings.pop(number, None)
            )
            if own := findings.get(number, []):
                found += self._placed_in(number, part, own, bank[number].open is not None)
            if number in self._traces:
                drifts = [finding for _, finding in own if isinstance(finding, Drift)]
                _trace_part(self._traces[number], part, drifts)
            if since[i] >= 0:
                self._warnings[number] = part.warning_from(int(since[i]), int(events[i]))
        found.sort(key=lambda one: one[0])
        return [finding for _, finding in found]

    def _mark_all(
        self, batch: Batch, order: Positions, segments: Any, starts: Any, ends: Any, events: Any, later: list[int]
    ) -> None:
        """Remember when and where events were, but for segments with findings: those are marked up to each of them."""
        sizes = ends - starts
        own = np.repeat(events - sizes - starts, sizes) + np.arange(order.size)
        numbers = np.repeat(segments, sizes)
        if later:
            others = ~np.isin(numbers, later)
            order, own, numbers = order[others], own[others], numbers[others]
        times = None if batch.times is None else batch.times[order]
        self._marks.note(numbers, own, times, batch.rows[order])

    def _placed_in(
        self, number: int, part: Part, own: list[tuple[int, Finding]], is_open: bool
    ) -> list[tuple[int, Finding]]:
        """The findings in a segment of the bank, in order."""
        found, done = [], 0
        for event, finding in own:
            end = finding.at + 1 - part.first
            self._mark(number, part, done, end)
            done = end
            found.append((event, self._placed(number, part, finding)))
            self._note_open(number, [found[-1][1]], True)
        self._mark(number, part, done, len(part.rows()))
        if not is_open:
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
        return OpenDrift(placed, {rate: state for rate, state in stream.rates.items() if state.state != "normal"})

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
        watch._columns = Columns()
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
                segment = watch.segments.at(number)
                watch._traces[number] = trace(segment if isinstance(segment, Detector) else segment.detector())
        return watch

    def _load_warnings(self, warnings: list[list[Any]]) -> None:
        """Load open warnings; each must be one of a segment that warns, and every such segment must have one."""
        events, since = self.segments.progress()
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
        raise TypeError(f"{saved!r} is not the name of a file")
    return saved


def _trace_part(trace: Trace, part: Part, drifts: Sequence[Drift]) -> None:
    """Give a part to a trace, drift by drift."""
    if (times := part.times()) is not None:
        trace.mark(times)
    truths, preds = part.codes()
    done = 0
    for drift in drifts:
        end = drift.at + 1 - part.first
        trace.take(truths[done:end], preds[done:end])
        trace.drift(drift)
        done = end
    trace.take(truths[done:], preds[done:])

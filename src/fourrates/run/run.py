"""A detector over batches of events, one stream or many: what was found, when and where, before and after.

:class:`Run` feeds the batches of :mod:`fourrates.io` to a detector, or with many streams to a bank of them, and gives a
:class:`Found` for every drift and for what becomes of it. It can be saved between two batches and resumed in another
process: a stream cut anywhere gives the same findings as in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.detectors import Detector
from fourrates.detectors.parameters import check_whole
from fourrates.findings import Drift, Finding, Shift
from fourrates.io import Batch, InputError
from fourrates.run.found import Found, FoundShift, Place
from fourrates.run.part import OpenWarning, Part
from fourrates.run.streams import MAX_STREAMS, Streams
from fourrates.state import Saved, pack, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.bank import Bank
    from fourrates.run.part import Positions
    from fourrates.run.trace import Trace

TRACED = 2000  # streams that are followed for pictures: each takes some 100 kB


class Run:
    """Detectors at work on batches of events.

    Many streams of FourRates or LFR are a :class:`~fourrates.Bank`; other detectors are objects, one a stream.

    Parameters
    ----------
    detector : Detector
        As it should begin; every stream gets a clone of it.
    trace : callable, optional
        Makes a :class:`~fourrates.run.trace.Trace` for a stream, to follow its rates for a picture.
    references : mapping, optional
        From names of streams to their references, for FourRates; the other streams have none.
    max_streams : int
        The most streams there may be.

    Attributes
    ----------
    detector : Detector
        The one given.
    streams : mapping from names to detectors
        Each stream as a detector; None is the name of the only one.
    events : int
        Events taken, in all streams.
    shifts : list of FoundShift
        Shifts of the true classes met so far, where the detector reports them.
    first_time, last_time : datetime64 or None
        The earliest and the latest time met.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates import io
    >>> from fourrates.run import Run
    >>> from fourrates.streams import SCENARIOS
    >>> run = Run(fr.LFR())
    >>> for batch in io.read(SCENARIOS["Imbalance2"].stream(seed=7)):
    ...     for found in run.take(batch):
    ...         change = found.finding.changes[0]
    ...         print(found.at.row, change.rate, change.direction, found.after)
    5081 tpr down ((37, 1), (15, 4))
    """

    def __init__(
        self,
        detector: Detector,
        trace: Callable[[Detector], Trace] | None = None,
        references: Mapping[str, Any] | None = None,
        max_streams: int = MAX_STREAMS,
    ) -> None:
        self._watch(Streams(detector, references, max_streams), trace)

    def _watch(self, streams: Streams, trace: Callable[[Detector], Trace] | None) -> None:
        self.detector, self.streams = streams.detector, streams
        self.events = 0
        self.shifts: list[FoundShift] = []
        self.first_time: np.datetime64 | None = None
        self.last_time: np.datetime64 | None = None
        self._classes = len(streams.detector.labels.values)
        self._warnings: dict[int, OpenWarning] = {}
        self._trace = trace
        self._traces: dict[int, Trace] = {}

    @property
    def references(self) -> Mapping[str, Any] | None:
        """From names of streams to their references, where streams have their own."""
        return self.streams.references

    @property
    def unreferred(self) -> list[str]:
        """Streams that have no reference of their own where others do: they are compared with their own past."""
        if self.references is None:
            return []
        return [name for name in self.streams.names if name is not None and name not in self.references]

    def has_references_of(self, other: Run) -> bool:
        """Whether its streams have the same references."""
        ours, theirs = self.references or {}, other.references or {}
        return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)

    @property
    def holds(self) -> bool:
        """Whether a drift stays open until something says that it is over; other detectors never say so."""
        return self.detector.parameters.get("after") == "hold"

    @property
    def traces(self) -> dict[str | None, Trace]:
        """What was followed for pictures."""
        return {self.streams.names[number]: trace for number, trace in self._traces.items()}

    # Events ---------------------------------------------------------------------------------------------------

    def take(self, batch: Batch, keys: Sequence[str] = ()) -> list[Found]:
        """Take a batch; `keys` are the names of the streams its keys count (`Events.keys`)."""
        if batch.times is not None:
            self._clock(batch.times)
        many, streams = batch.keys is not None, self.streams
        if streams.names and many != (streams.names[0] is not None):
            raise InputError("the streams so far were " + ("one alone" if many else "told apart by a column"))
        self.events += batch.truths.size
        if batch.keys is None:
            self._follow(streams.begin([None]))
            return self._advance(0, batch, None)
        numbers, begun = streams.numbers(batch.keys, keys)
        self._follow(begun)
        # 16 bits are sorted by radix
        order = np.argsort(numbers.astype(np.uint16) if len(streams) <= 1 << 16 else numbers, kind="stable")
        by_stream = numbers[order]
        edges = np.flatnonzero(by_stream[1:] != by_stream[:-1]) + 1
        starts, ends = np.append(0, edges), np.append(edges, order.size)
        present = by_stream[starts]
        if streams.bank is not None:
            return self._advance_bank(streams.bank, batch, numbers, order, present, starts, ends)
        found: list[Found] = []
        for number, start, end in zip(present.tolist(), starts.tolist(), ends.tolist(), strict=True):
            found += self._advance(number, batch, order[start:end])
        return sorted(found, key=lambda one: one.at.row)

    def _clock(self, times: npt.NDArray[np.datetime64]) -> None:
        known = times[~np.isnat(times)]
        if known.size:
            low, high = known.min(), known.max()
            self.first_time = low if self.first_time is None else min(self.first_time, low)
            self.last_time = high if self.last_time is None else max(self.last_time, high)

    def _follow(self, begun: range) -> None:
        """Follow streams that begin for pictures, the first of them."""
        if self._trace is not None:
            for number in begun[: max(0, TRACED - begun.start)]:
                self._traces[number] = self._trace(self.streams.starting(number))

    def _advance(self, number: int, batch: Batch, positions: Positions | None) -> list[Found]:
        """Give the events of a batch to the detector of their stream."""
        detector, name = self.streams.detectors[number], self.streams.names[number]
        trace = self._traces.get(number)
        part = Part(batch, positions, detector.events, self._classes, self._warnings.pop(number, None))
        truths, guesses = part.codes()
        if trace is not None and (times := part.times()) is not None:
            trace.mark(times)
        found: list[Found] = []
        done = 0
        while done < truths.size:
            taken, findings = detector.update_coded(truths, guesses, done)
            if trace is not None:
                trace.take(truths[done : done + taken], guesses[done : done + taken])
            done += taken
            for finding in findings:
                if isinstance(finding, Shift):
                    self.shifts.append(FoundShift(name, finding, part.place(finding.at)))
                    continue
                found.append(part.found(name, finding))
                if trace is not None and isinstance(finding, Drift):
                    trace.drift(finding)
        if (since := detector.warning_since) is not None:
            self._warnings[number] = part.warning_from(since, detector.events)
        return found

    def _advance_bank(
        self, bank: Bank, batch: Batch, numbers: Any, order: Positions, streams: Any, starts: Any, ends: Any
    ) -> list[Found]:
        """Give a batch to the bank; then see to the streams that drifted, warn, or are followed."""
        before, names = bank.events, self.streams.names
        findings: dict[int, list[tuple[int, Finding]]] = {}
        bank.update_coded(numbers, batch.truths, batch.guesses)
        for keyed in bank.findings:
            number, finding = int(keyed.key), keyed.finding  # type: ignore[call-overload]
            if isinstance(finding, Shift):
                place = Part(batch, np.array([keyed.event - before]), finding.at, self._classes, None).place(finding.at)
                self.shifts.append(FoundShift(names[number], finding, place))
            else:
                findings.setdefault(number, []).append((keyed.event, finding))
        events, since = bank.progress(streams)
        busy = since >= 0
        if findings or self._warnings or self._traces:
            noted = np.fromiter({*findings, *self._warnings, *self._traces}, np.int64)
            busy |= np.isin(streams, noted)
        found: list[tuple[int, Found]] = []
        for i in np.flatnonzero(busy).tolist():
            number, positions = int(streams[i]), order[starts[i] : ends[i]]
            first = int(events[i]) - positions.size
            part = Part(batch, positions, first, self._classes, self._warnings.pop(number, None))
            own = findings.get(number, [])
            found += [(event, part.found(names[number], finding)) for event, finding in own]
            if number in self._traces:
                drifts = [finding for _, finding in own if isinstance(finding, Drift)]
                _trace_part(self._traces[number], part, drifts)
            if since[i] >= 0:
                self._warnings[number] = part.warning_from(int(since[i]), int(events[i]))
        found.sort(key=lambda one: one[0])
        return [one for _, one in found]

    # State ----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything a later run needs to go on."""
        warnings = []
        for number, warning in self._warnings.items():
            since = warning.since
            time = None if since.time is None else int(since.time.astype("M8[us]").astype(np.int64))
            warnings.append([number, since.event, since.source, since.row, time, warning.counts.tolist()])
        about, sections = self.streams.to_state()
        return pack("Run", about | {"events": self.events, "warnings": warnings}, **sections)

    @classmethod
    def from_bytes(cls, saved: bytes, trace: Callable[[Detector], Trace] | None = None) -> Run:
        """Bring back what :meth:`to_bytes` saved; bytes that it cannot have saved are an InputError."""
        try:
            found = unpack(saved)
            if found.kind != "Run":
                raise ValueError(f"this is the state of {found.kind}, not of a run")
            return cls._revived(found, trace)
        except ValueError as error:
            raise InputError(str(error)) from None
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise InputError(f"the saved run does not fit itself ({error!r})") from None

    @classmethod
    def _revived(cls, found: Saved, trace: Callable[[Detector], Trace] | None) -> Run:
        run = cls.__new__(cls)
        run._watch(Streams.from_state(found), trace)
        run.events = check_whole(found.about["events"], "events", 0)
        run._adopt_warnings(found.about["warnings"])
        if trace is not None:
            for number in range(min(TRACED, len(run.streams))):
                stream = run.streams.at(number)
                run._traces[number] = trace(stream if isinstance(stream, Detector) else stream.detector())
        return run

    def _adopt_warnings(self, warnings: list[list[Any]]) -> None:
        """Take over open warnings; each must be one of a stream that warns, and every such stream must have one."""
        events, since = self.streams.progress()
        if sum(events) != self.events:
            raise ValueError(f"streams of {sum(events)} events in a run of {self.events}")
        for number, event, source, row, time, counts in warnings:
            number, event = check_whole(number, "a stream's number", 0), check_whole(event, "a warning's event", 0)
            tally = np.array(counts, np.int64)
            if tally.shape != (self._classes, self._classes) or (tally < 0).any() or number in self._warnings:
                raise ValueError(f"the warning of stream {number} has counts that cannot be")
            if not 0 <= since[number] <= event or int(tally.sum(dtype=object)) != events[number] - event:
                raise ValueError(f"a warning since event {event} in stream {number}, which has {events[number]}")
            if not isinstance(source, str):
                raise TypeError(f"{source!r} is not the name of a file")
            when = None if time is None else np.int64(check_whole(time, "a time", -(1 << 62))).astype("M8[us]")
            self._warnings[number] = OpenWarning(Place(event, source, check_whole(row, "a row", 0), when), tally)
        if len(self._warnings) != sum(one >= 0 for one in since):
            raise ValueError(f"{len(self._warnings)} warnings are told, others are open")


def _trace_part(trace: Trace, part: Part, drifts: Sequence[Drift]) -> None:
    """Give a part to a trace, drift by drift."""
    if (times := part.times()) is not None:
        trace.mark(times)
    truths, guesses = part.codes()
    done = 0
    for drift in drifts:
        end = drift.at + 1 - part.first
        trace.take(truths[done:end], guesses[done:end])
        trace.drift(drift)
        done = end
    trace.take(truths[done:], guesses[done:])

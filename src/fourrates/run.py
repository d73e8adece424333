"""A detector over batches of events, one stream or many: what was found, when and where, before and after.

:class:`Run` feeds the batches of :mod:`fourrates.io` to a detector, or with many streams to a bank of them, and gives a
:class:`Found` for every drift. It can be saved between two batches and resumed in another process: a stream cut
anywhere gives the same drifts as in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import fourrates.detectors
from fourrates.bank import Bank
from fourrates.detectors import Detector
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import After, check_after
from fourrates.detectors.parameters import check_whole
from fourrates.drift import Drift, Shift
from fourrates.found import Found as Found
from fourrates.found import FoundShift as FoundShift
from fourrates.found import Matrix as Matrix
from fourrates.found import Place as Place
from fourrates.io import Batch, InputError
from fourrates.references import References
from fourrates.state import Saved, pack, unpack
from fourrates.stream import Stream

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.trace import Trace

    Codes = npt.NDArray[np.uint16]
    Counts = npt.NDArray[np.int64]
    Positions = npt.NDArray[np.int64]

TRACED = 2000  # streams that are followed for pictures: each takes some 100 kB
NAT = np.datetime64("NaT", "us")

MAX_STREAMS = 1_000_000  # of files; each takes about a kilobyte


@dataclass(slots=True)
class _Warning:
    """A warning that was open when a batch ended, and the counts since it opened."""

    since: Place
    counts: Counts


@dataclass(slots=True)
class _Part:
    """The events of one stream in a batch.

    `positions` says where in the batch they stand, None that the batch is theirs alone; `first` is the number of the
    first of them in the stream, and `warning` the one that was open before it.
    """

    batch: Batch
    positions: Positions | None
    first: int
    classes: int
    warning: _Warning | None

    def codes(self) -> tuple[Codes, Codes]:
        if self.positions is None:
            return self.batch.truths, self.batch.guesses
        return self.batch.truths[self.positions], self.batch.guesses[self.positions]

    def times(self) -> npt.NDArray[np.datetime64] | None:
        times = self.batch.times
        return times if times is None or self.positions is None else times[self.positions]

    def place(self, event: int) -> Place:
        at = event - self.first if self.positions is None else int(self.positions[event - self.first])
        time = NAT if self.batch.times is None else self.batch.times[at]
        return Place(event, self.batch.source, int(self.batch.rows[at]), None if np.isnat(time) else time)

    def warning_from(self, since: int, end: int) -> _Warning:
        """The warning that opened at event `since`, with the counts up to event `end`, which is not in them."""
        known = self.warning
        if since < self.first and known is not None and known.since.event == since:
            return _Warning(known.since, known.counts + self._count(self.first, end))
        start = max(since, self.first)
        return _Warning(self.place(start), self._count(start, end))

    def found(self, name: str | None, drift: Drift) -> Found:
        """What to tell of a drift; the warning that led to it is over."""
        warning = self.warning_from(drift.since, drift.at + 1)
        before = np.maximum(np.array(drift.confusion) - warning.counts, 0)
        self.warning = None
        counts = _matrix(before), _matrix(warning.counts)
        started = None if drift.started is None or drift.started < self.first else self.place(drift.started)
        return Found(name, drift, self.place(drift.at), warning.since, *counts, started)

    def _count(self, start: int, end: int) -> Counts:
        part: Any = slice(start - self.first, end - self.first)
        if self.positions is not None:
            part = self.positions[part]
        cells = self.batch.truths[part].astype(np.int64) * self.classes + self.batch.guesses[part]
        return np.bincount(cells, minlength=self.classes**2).reshape(self.classes, self.classes)


class Run:
    """Detectors at work on batches of events.

    Many streams of FourRates or LFR are a :class:`~fourrates.Bank`; other detectors are objects, one a stream.

    Parameters
    ----------
    detector : Detector
        As it should begin; every stream gets a clone of it.
    trace : callable, optional
        Makes a :class:`~fourrates.trace.Trace` for a stream, to follow its rates for a picture.
    references : mapping, optional
        From names of streams to their references, for FourRates; the other streams have none.
    after : {"restart", "hold"}
        What follows the drift of a stream that has a reference of its own.
    max_streams : int
        The most streams there may be.

    Attributes
    ----------
    detector : Detector
        The one given.
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
    ...         change = found.drift.changes[0]
    ...         print(found.at.row, change.rate, change.direction, found.after)
    5081 tpr down ((37, 1), (15, 4))
    """

    def __init__(
        self,
        detector: Detector,
        trace: Callable[[Detector], Trace] | None = None,
        references: Mapping[str, Any] | None = None,
        after: After = "hold",
        max_streams: int = MAX_STREAMS,
    ) -> None:
        self.detector, self.max_streams = detector, max_streams
        self.references, self.after = None if references is None else dict(references), after
        self.events = 0
        self.shifts: list[FoundShift] = []
        self.first_time: np.datetime64 | None = None
        self.last_time: np.datetime64 | None = None
        self._classes = len(detector.labels.values)
        self._names: list[str | None] = []
        self._numbers: dict[str | None, int] = {}
        self._of_key = np.empty(0, np.int64)  # the number of the stream, by its key in the batches; -1 for none yet
        self._detectors: list[Detector] = []  # by number, where there is no bank
        self._bank: Bank | None = None
        self._warnings: dict[int, _Warning] = {}
        self._trace = trace
        self._traces: dict[int, Trace] = {}

    @property
    def streams(self) -> Mapping[str | None, Detector | Stream]:
        """Each stream as a detector, by its name; None is the name of the only one."""
        return _Streams(self._numbers, self._stream)

    def _stream(self, number: int) -> Detector | Stream:
        return self._detectors[number] if self._bank is None else self._bank[number]

    @property
    def unreferred(self) -> list[str]:
        """Streams that have no reference of their own where others do: they are compared with their own past."""
        if self.references is None:
            return []
        return [name for name in self._names if name is not None and name not in self.references]

    def has_references_of(self, other: Run) -> bool:
        """Whether its streams have the same references."""
        ours, theirs = self.references or {}, other.references or {}
        return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)

    @property
    def traces(self) -> dict[str | None, Trace]:
        """What was followed for pictures."""
        return {self._names[number]: trace for number, trace in self._traces.items()}

    # Events ---------------------------------------------------------------------------------------------------

    def take(self, batch: Batch, keys: Sequence[str] = ()) -> list[Found]:
        """Take a batch; `keys` are the names of the streams its keys count (`Events.keys`)."""
        if batch.times is not None:
            self._clock(batch.times)
        many = batch.keys is not None
        if self._names and many != (self._names[0] is not None):
            raise InputError("the streams so far were " + ("one alone" if many else "told apart by a column"))
        if many and self._bank is None and isinstance(self.detector, RecordDetector):
            self._bank = self._empty_bank()
        self.events += batch.truths.size
        if not many:
            self._begin([None])
            return self._advance(0, batch, None)
        numbers = self._number(batch, keys)
        # 16 bits are sorted by radix
        order = np.argsort(numbers.astype(np.uint16) if len(self._names) <= 1 << 16 else numbers, kind="stable")
        by_stream = numbers[order]
        edges = np.flatnonzero(by_stream[1:] != by_stream[:-1]) + 1
        starts, ends = np.append(0, edges), np.append(edges, order.size)
        streams = by_stream[starts]
        if self._bank is not None:
            return self._advance_bank(self._bank, batch, numbers, order, streams, starts, ends)
        found: list[Found] = []
        for number, start, end in zip(streams.tolist(), starts.tolist(), ends.tolist(), strict=True):
            found += self._advance(number, batch, order[start:end])
        return sorted(found, key=lambda one: one.at.row)

    def _empty_bank(self) -> Bank:
        assert isinstance(self.detector, RecordDetector)
        return Bank(self.detector) if self.references is None else Bank(self.detector, reference={}, after=self.after)

    def _clock(self, times: npt.NDArray[np.datetime64]) -> None:
        known = times[~np.isnat(times)]
        if known.size:
            low, high = known.min(), known.max()
            self.first_time = low if self.first_time is None else min(self.first_time, low)
            self.last_time = high if self.last_time is None else max(self.last_time, high)

    def _number(self, batch: Batch, keys: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of each event's stream; streams that are new begin."""
        if self._of_key.size < len(keys):
            self._of_key = np.append(self._of_key, np.full(len(keys) - self._of_key.size, -1))
        assert batch.keys is not None
        numbers = self._of_key[batch.keys]
        if (numbers < 0).any():
            new = np.unique(batch.keys[numbers < 0])
            self._begin([keys[key] for key in new.tolist()])
            self._of_key[new] = [self._numbers[keys[key]] for key in new.tolist()]
            numbers = self._of_key[batch.keys]
        return numbers

    def _begin(self, names: Sequence[str | None]) -> None:
        """Begin the streams of these names that are not there yet."""
        for name in names:
            if name in self._numbers:
                continue
            if len(self._names) >= self.max_streams:
                raise InputError(f"more than {self.max_streams:,} streams (--max-streams)")
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            reference = self.references.get(name) if self.references and name is not None else None
            if self._bank is None:
                self._detectors.append(self.detector.clone())
            elif reference is not None:
                self._bank.add_references({number: reference})
            if self._trace is not None and number < TRACED:
                self._traces[number] = self._trace(self._starting(reference))

    def _starting(self, reference: Any) -> Detector:
        """The detector of a stream that begins; with a reference of its own where it has one."""
        if reference is None:
            return self.detector.clone()
        return type(self.detector)(**self.detector.parameters | {"reference": reference, "after": self.after})

    def _advance(self, number: int, batch: Batch, positions: Positions | None) -> list[Found]:
        """Give the events of a batch to the detector of their stream."""
        detector, name, trace = self._detectors[number], self._names[number], self._traces.get(number)
        part = _Part(batch, positions, detector.events, self._classes, self._warnings.pop(number, None))
        truths, guesses = part.codes()
        if trace is not None and (times := part.times()) is not None:
            trace.mark(times)
        found: list[Found] = []
        done, shift = 0, getattr(detector, "shift", None)
        while done < truths.size:
            taken, drift = detector.update_coded(truths, guesses, done)
            if trace is not None:
                trace.take(truths[done : done + taken], guesses[done : done + taken])
            done += taken
            if drift is not None:
                found.append(part.found(name, drift))
                if trace is not None:
                    trace.drift(drift)
            latest: Shift | None = getattr(detector, "shift", None)
            if latest is not None and latest is not shift:
                shift = latest
                self.shifts.append(FoundShift(name, latest, part.place(latest.at)))
        if (since := detector.warning_since) is not None:
            self._warnings[number] = part.warning_from(since, detector.events)
        return found

    def _advance_bank(
        self, bank: Bank, batch: Batch, numbers: Any, order: Positions, streams: Any, starts: Any, ends: Any
    ) -> list[Found]:
        """Give a batch to the bank; then see to the streams that drifted, warn, or are followed."""
        before = bank.events
        drifts: dict[int, list[tuple[int, Drift]]] = {}
        for one in bank.update_coded(numbers, batch.truths, batch.guesses):
            drifts.setdefault(one.key, []).append((one.event, one.drift))  # type: ignore[arg-type]
        for keyed in bank.shifts:
            name, shift = self._names[keyed.key], keyed.shift  # type: ignore[call-overload]
            at = _Part(batch, np.array([keyed.event - before]), shift.at, self._classes, None).place(shift.at)
            self.shifts.append(FoundShift(name, shift, at))
        events, since = bank.progress(streams)
        busy = since >= 0
        if drifts or self._warnings or self._traces:
            noted = np.fromiter({*drifts, *self._warnings, *self._traces}, np.int64)
            busy |= np.isin(streams, noted)
        found: list[tuple[int, Found]] = []
        for i in np.flatnonzero(busy).tolist():
            number, positions = int(streams[i]), order[starts[i] : ends[i]]
            first = int(events[i]) - positions.size
            part = _Part(batch, positions, first, self._classes, self._warnings.pop(number, None))
            own = drifts.get(number, [])
            found += [(event, part.found(self._names[number], drift)) for event, drift in own]
            if number in self._traces:
                _follow(self._traces[number], part, [drift for _, drift in own])
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
        sections = {"start": self.detector.clone().to_bytes()}
        sizes: list[int] = []
        if self._bank is not None:
            sections["bank"] = self._bank.to_bytes()
        else:
            states = [detector.to_bytes() for detector in self._detectors]
            sizes, sections["states"] = [*map(len, states)], b"".join(states)
        about = {
            "detector": type(self.detector).__name__,
            "events": self.events,
            "streams": self._names,
            "warnings": warnings,
            "sizes": sizes,
        }
        if self.references is not None:
            about["after"] = self.after
            listed = References(self.detector.labels, self.references)
            about["references"], sections["references"] = listed.to_state()
        return pack("Run", about, **sections)

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
        about, sections = found.about, found.sections
        kind = getattr(fourrates.detectors, about["detector"], None)
        if not isinstance(kind, type) or not issubclass(kind, Detector) or kind is Detector:
            raise ValueError(f"a state of the detector {about['detector']!r}, which this release does not know")
        start = kind.from_bytes(bytes(sections["start"]))
        run = cls(start, trace)
        if "references" in sections:
            listed = References.from_state(start.labels, about["references"], sections["references"])
            run.references = {_checked_name(name): counts for name, counts in listed.items()}
            run.after = check_after(about["after"])
        if run.detector.events:
            raise ValueError("the saved run begins with a detector that has seen events")
        run._names = _checked_names(about["streams"])
        run._numbers = {name: number for number, name in enumerate(run._names)}
        run.events = check_whole(about["events"], "events", 0)
        if "bank" in sections:
            run._bank = Bank.from_bytes(bytes(sections["bank"]))
            if None in run._numbers or {*run._bank} != {*range(len(run._names))}:
                raise ValueError(f"a bank of {len(run._bank)} streams for {len(run._names)} names")
            _check_same(run._bank.detector, run.detector)
        else:
            run._detectors = _detectors(kind, about["sizes"], sections["states"], len(run._names))
            for one in run._detectors:
                _check_same(one, run.detector)
        run._adopt_warnings(about["warnings"])
        if trace is not None:
            for number in range(min(TRACED, len(run._names))):
                stream = run._stream(number)
                run._traces[number] = trace(stream.detector() if isinstance(stream, Stream) else stream)
        return run

    def _adopt_warnings(self, warnings: list[list[Any]]) -> None:
        """Take over open warnings; each must be one of a stream that warns, and every such stream must have one."""
        if self._bank is not None:
            events, since = (part.tolist() for part in self._bank.progress(np.arange(len(self._names))))
        else:
            events = [one.events for one in self._detectors]
            since = [-1 if one.warning_since is None else one.warning_since for one in self._detectors]
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
            self._warnings[number] = _Warning(Place(event, source, check_whole(row, "a row", 0), when), tally)
        if len(self._warnings) != sum(one >= 0 for one in since):
            raise ValueError(f"{len(self._warnings)} warnings are told, others are open")


class _Streams(Mapping[str | None, Detector | Stream]):
    """The streams of a run by name, made when they are asked for."""

    def __init__(self, numbers: Mapping[str | None, int], stream: Callable[[int], Detector | Stream]) -> None:
        self._numbers, self._stream = numbers, stream

    def __getitem__(self, name: str | None) -> Detector | Stream:
        return self._stream(self._numbers[name])

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _follow(trace: Trace, part: _Part, drifts: Sequence[Drift]) -> None:
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


def _checked_name(name: Hashable) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no name of a stream")
    return name


def _checked_names(names: Any) -> list[str | None]:
    if names == [None]:
        return [None]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise ValueError("the saved run has streams whose names are no names, or not different ones")
    return [*names]


def _detectors(kind: type[Detector], sizes: Any, states: memoryview, streams: int) -> list[Detector]:
    ends = np.cumsum([0, *(check_whole(size, "the size of a state", 0) for size in sizes)]).tolist()
    if len(sizes) != streams or ends[-1] != len(states):
        raise ValueError(f"{len(sizes)} states of {len(states)} bytes for {streams} streams")
    return [kind.from_bytes(bytes(states[start:end])) for start, end in pairwise(ends)]


def _check_same(one: Detector, start: Detector) -> None:
    if type(one) is not type(start) or one.parameters != start.parameters:
        raise ValueError(f"a stream of {one!r} in a run of {start!r}")


def _matrix(counts: Counts) -> Matrix:
    return tuple(tuple(int(count) for count in row) for row in counts)

"""A detector over batches of events, one stream or many: what was found, when and where, before and after.

:class:`Run` feeds the batches of :mod:`fourrates.io` to a detector for each stream and gives a :class:`Found` for every
drift. It can be saved between two batches and resumed in another process: a stream cut anywhere gives the same drifts
as in one piece.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import fourrates.detectors
from fourrates.detectors import Detector
from fourrates.drift import Drift
from fourrates.io import Batch, InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.trace import Trace

    Codes = npt.NDArray[np.uint16]
    Counts = npt.NDArray[np.int64]

Matrix = tuple[tuple[int, ...], ...]
FORMAT = 1  # of the saved state
TRACED = 2000  # streams that are followed for pictures: each takes some 100 kB
NAT = np.datetime64("NaT")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands: its number in its stream, its file and row, and its time if that is known."""

    event: int
    source: str
    row: int
    time: np.datetime64 | None


@dataclass(frozen=True, slots=True)
class Found:
    """A drift, and where it was found.

    Attributes
    ----------
    stream : str, optional
        Which stream, where there are many.
    drift : Drift
        What the detector reported.
    at, since : Place
        The event that gave the alarm, and the first one of the warning that led to it.
    before, after : tuples of tuples
        Counts by true and predicted class: from the last reset up to the warning, and from the warning to the alarm.
    """

    stream: str | None
    drift: Drift
    at: Place
    since: Place
    before: Matrix
    after: Matrix


@dataclass(slots=True)
class _Warning:
    """A warning that was open when a batch ended."""

    since: Place
    counts: Counts


class _Stream:
    __slots__ = ("detector", "name", "trace", "warning")

    def __init__(self, name: str | None, detector: Detector, trace: Trace | None) -> None:
        self.name, self.detector, self.trace = name, detector, trace
        self.warning: _Warning | None = None


class Run:
    """Detectors at work on batches of events.

    Parameters
    ----------
    detector : Detector
        As it should begin; every stream gets a clone of it.
    trace : callable, optional
        Makes a :class:`~fourrates.trace.Trace` for a stream, to follow its rates for a picture.

    Attributes
    ----------
    detector : Detector
        The one given.
    events : int
        Events taken, in all streams.
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

    def __init__(self, detector: Detector, trace: Callable[[Detector], Trace] | None = None) -> None:
        self.detector = detector
        self.events = 0
        self.first_time: np.datetime64 | None = None
        self.last_time: np.datetime64 | None = None
        self._streams: dict[str | None, _Stream] = {}
        self._by_key: list[_Stream] = []
        self._trace = trace

    @property
    def streams(self) -> dict[str | None, Detector]:
        """The detector of each stream, by its name; None is the name of the only one."""
        return {name: stream.detector for name, stream in self._streams.items()}

    @property
    def traces(self) -> dict[str | None, Trace]:
        """What was followed for pictures."""
        return {name: stream.trace for name, stream in self._streams.items() if stream.trace is not None}

    def take(self, batch: Batch, keys: Sequence[str] = ()) -> list[Found]:
        """Take a batch; `keys` are the names of the streams its keys count (`Events.keys`)."""
        self.events += batch.truths.size
        if batch.times is not None:
            self._clock(batch.times)
        if batch.keys is None:
            return self._advance(self._stream(None), batch, batch.truths, batch.guesses, None)
        for name in keys[len(self._by_key) :]:
            self._by_key.append(self._stream(name))
        narrow = batch.keys.astype(np.uint16) if len(keys) <= 1 << 16 else batch.keys  # 16 bits are sorted by radix
        order = np.argsort(narrow, kind="stable")
        truths, guesses = batch.truths[order], batch.guesses[order]
        counts = np.bincount(batch.keys, minlength=len(keys))
        ends = np.cumsum(counts)
        found: list[Found] = []
        for key in np.flatnonzero(counts).tolist():
            part = slice(ends[key] - counts[key], ends[key])
            found += self._advance(self._by_key[key], batch, truths[part], guesses[part], order[part])
        if len(found) > 1:
            found.sort(key=lambda one: one.at.row)
        return found

    def _stream(self, name: str | None) -> _Stream:
        if name not in self._streams:
            detector = self.detector.clone()
            trace = self._trace if len(self._streams) < TRACED else None
            self._streams[name] = _Stream(name, detector, trace(detector) if trace else None)
        return self._streams[name]

    def _clock(self, times: npt.NDArray[np.datetime64]) -> None:
        known = times[~np.isnat(times)]
        if known.size:
            low, high = known.min(), known.max()
            self.first_time = low if self.first_time is None else min(self.first_time, low)
            self.last_time = high if self.last_time is None else max(self.last_time, high)

    def _advance(
        self, stream: _Stream, batch: Batch, truths: Codes, guesses: Codes, order: npt.NDArray[np.int64] | None
    ) -> list[Found]:
        """Give events to one stream; `order` says where in the batch they stand."""
        detector = stream.detector
        first = detector.events
        done, size = 0, truths.size
        found: list[Found] = []

        def place(event: int) -> Place:
            position = event - first if order is None else int(order[event - first])
            time = NAT if batch.times is None else batch.times[position]
            return Place(event, batch.source, int(batch.rows[position]), None if np.isnat(time) else time)

        def since_there(since: int, end: int) -> _Warning:
            """The warning that opened at `since`, with the counts up to `end` of this batch."""
            if since < first and stream.warning is not None and stream.warning.since.event == since:
                return _Warning(stream.warning.since, stream.warning.counts + self._count(truths[:end], guesses[:end]))
            start = max(since - first, 0)
            return _Warning(place(first + start), self._count(truths[start:end], guesses[start:end]))

        if stream.trace is not None and batch.times is not None:
            stream.trace.mark(batch.times if order is None else batch.times[order])
        while done < size:
            taken, drift = detector._run(truths, guesses, done)
            if stream.trace is not None:
                stream.trace.take(truths[done : done + taken], guesses[done : done + taken])
            done += taken
            if drift is not None:
                warning = since_there(drift.since, done)
                before = np.array(drift.confusion) - warning.counts
                found.append(
                    Found(stream.name, drift, place(drift.at), warning.since, _matrix(before), _matrix(warning.counts))
                )
                stream.warning = None
                if stream.trace is not None:
                    stream.trace.drift(drift)
        if detector.warning_detected:
            stream.warning = since_there(detector._progress()[1], size)
        else:
            stream.warning = None
        return found

    def _count(self, truths: Codes, guesses: Codes) -> Counts:
        classes = len(self.detector._labels.values)
        cells = truths.astype(np.int64) * classes + guesses
        return np.bincount(cells, minlength=classes**2).reshape(classes, classes)

    # State --------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything a later run needs to go on."""
        streams = []
        for name, stream in self._streams.items():
            saved: dict[str, Any] = {"name": name, "state": base64.b64encode(stream.detector.to_bytes()).decode()}
            if (warning := stream.warning) is not None:
                since = warning.since
                time = None if since.time is None else int(since.time.astype(np.int64))
                saved["warning"] = [since.event, since.source, since.row, time, warning.counts.tolist()]
            streams.append(saved)
        state = {
            "fourrates": FORMAT,
            "detector": type(self.detector).__name__,
            "start": base64.b64encode(self.detector.clone().to_bytes()).decode(),
            "events": self.events,
            "streams": streams,
        }
        return json.dumps(state, indent=1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, saved: bytes, trace: Callable[[Detector], Trace] | None = None) -> Run:
        """Bring back what :meth:`to_bytes` saved."""
        try:
            state = json.loads(saved)
            version, name = state["fourrates"], state["detector"]
        except (ValueError, KeyError, TypeError):
            raise InputError("not a state saved by fourrates") from None
        if version != FORMAT:
            raise InputError(f"a state of version {version}; this release reads version {FORMAT}")
        kind = getattr(fourrates.detectors, name, None)
        if not isinstance(kind, type) or not issubclass(kind, Detector):
            raise InputError(f"a state of the detector {name}, which this release does not know")
        try:
            run = cls(kind.from_bytes(base64.b64decode(state["start"])), trace)
            run.events = state["events"]
            for one in state["streams"]:
                detector = kind.from_bytes(base64.b64decode(one["state"]))
                stream = _Stream(one["name"], detector, trace(detector) if trace else None)
                if "warning" in one:
                    event, source, row, time, counts = one["warning"]
                    when = None if time is None else np.int64(time).astype("M8[us]")
                    stream.warning = _Warning(Place(event, source, row, when), np.array(counts))
                run._streams[one["name"]] = stream
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"a damaged state ({error})") from None
        return run


def _matrix(counts: Counts) -> Matrix:
    return tuple(tuple(int(count) for count in row) for row in counts)

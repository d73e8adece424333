"""Detectors for batches of events, one for each segment, or one alone, with the places of their findings.

A :class:`~fourrates.Watch` holds one of these for the segments of each version of the model, and one for each overall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.checks import check_number, check_whole
from fourrates.detectors import Detector
from fourrates.detectors.seasons import SEASONS, strata_of
from fourrates.findings import Drift, Finding, RateState
from fourrates.io import Batch, InputError
from fourrates.labels import rate_names
from fourrates.state import Pieces, pieces, unpack
from fourrates.watch.cost import ExtraCost, extra_cost
from fourrates.watch.marks import Marks, is_marked
from fourrates.watch.now import Move, OpenDrift
from fourrates.watch.segments import Groups, Segments

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.watch.trace import Trace

    Follow = Callable[[Detector], Trace]
    Placed = tuple[int, Finding]

TRACED = 2000  # segments traced for pictures; each takes some 100 kB
PLACE = Move._fields[3:]  # added to a finding, besides its segment
OPENING = ""  # among the moves of an open drift, the alarm that opened it


class Streams:
    """Segments over batches, or one stream alone."""

    def __init__(self, segments: Segments, trace: Follow | None, version: str | None = None) -> None:
        self.segments, self.version, self._trace = segments, version, trace
        self.events, self.volume = 0, 0.0  # so far, and how many they represent if they were drawn for labelling
        self.traces: dict[int, Trace] = {}  # for pictures, by segment number
        self._opened: dict[int, dict[str, Move]] = {}  # the moves of open drifts, by segment and rate
        self._marks = Marks()
        self._source: str | None = None

    def take(self, batch: Batch, names: Sequence[str]) -> list[Placed]:
        """Update the detectors with a batch; their findings, each with its position in the batch."""
        many, segments, batch = batch.keys is not None, self.segments, self._stratified(batch)
        if segments.names and many != (segments.names[0] is not None):
            raise InputError("the events so far were " + ("of one stream" if many else "in segments"))
        if batch.keys is None:
            numbers, begun = None, segments.begin([None])
        else:
            numbers, begun = segments.numbers(batch.keys, names)  # or an error, before anything changes
        self._follow(begun)
        if batch.source != self._source:
            self._source = batch.source
            self._marks.forget_rows()
        self.events += batch.truths.size
        self.volume += batch.truths.size if batch.volumes is None else float(batch.volumes.sum())
        return self._advance(batch, Groups.of(numbers, batch.truths.size))

    def _stratified(self, batch: Batch) -> Batch:
        """A batch with the strata of the detector, from the times or from a column."""
        asked = self.segments.detector.parameters.get("strata")
        if self.segments.detector.parameters.get("sampled"):
            if batch.strata is None or batch.volumes is None:
                raise InputError("events that were drawn for labelling need label_probability and other_probability")
            return batch
        if asked is None:
            return replace(batch, strata=None)
        if asked in SEASONS:
            if batch.times is None:
                raise InputError(f"normal by {'hour' if asked == 'day' else 'weekday'} needs times (--time)")
            return replace(batch, strata=strata_of(batch.times, asked))
        if batch.strata is None:
            raise InputError(f"this detector has {asked} strata; name their column (--stratum)")
        return batch

    def _follow(self, begun: range) -> None:
        if self._trace is not None:
            for number in begun[: max(0, TRACED - begun.start)]:
                self.traces[number] = self._trace(self.segments.starting(number))

    def _advance(self, batch: Batch, groups: Groups) -> list[Placed]:
        """Update the segments with a batch, then handle those that have findings or are traced."""
        findings = self.segments.take(batch, groups)
        events, _ = self.segments.progress(groups.present)
        alone = groups.order is None
        if not alone:
            self._mark_all(batch, groups, events, [*findings])
        busy = np.isin(groups.present, np.fromiter({*findings, *self.traces}, np.int64)) if not alone else [True]
        found: list[Placed] = []
        for i in np.flatnonzero(busy).tolist():
            number, positions = int(groups.present[i]), groups.positions(i)
            part = batch if positions is None else batch.take(positions)
            first = int(events[i]) - part.rows.size
            own = findings.get(number, [])
            if own or alone:
                for finding in self._placed_in(number, part, first, own):
                    at = finding.at - first
                    found.append((at if positions is None else int(positions[at]), finding))
            if number in self.traces:
                self.traces[number].take(part.truths, part.preds, part.times, part.volumes)
        return found

    def _mark_all(self, batch: Batch, groups: Groups, events: npt.NDArray[np.int64], later: list[int]) -> None:
        """Mark events, except of segments with findings, which are marked up to each of them."""
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

    def _mark(self, number: int, part: Batch, first: int, start: int, end: int) -> None:
        at = np.arange(start, end)
        at = at[is_marked(number, first + at)]
        times = None if part.times is None else part.times[at]
        self._marks.note(np.full(at.size, number), first + at, times, part.rows[at])

    def _placed(self, number: int, part: Batch, first: int, finding: Finding) -> Finding:
        """A finding with its segment, time and row; all events up to it are marked."""
        marks, segment, at = self._marks, self.segments.names[number], finding.at - first
        time = None if part.times is None or np.isnat(part.times[at]) else part.times[at]
        placed = replace(
            finding,
            segment=segment,
            version=self.version,
            time=time,
            started_time=marks.time(number, finding.started, finding.at + 1),
            source=part.source,
            row=int(part.rows[at]),
            started_row=marks.row(number, finding.started, finding.at + 1),
        )
        about = None if placed.about is None else self._opening(number, placed.about)
        return replace(placed, about=about)

    def _opening(self, number: int, drift: Drift) -> Drift:
        """An open drift with its segment, time and row."""
        move = self._opened.get(number, {}).get(OPENING)
        place = {} if move is None else {name: getattr(move, name) for name in PLACE}
        return replace(drift, segment=self.segments.names[number], version=self.version, **place)

    def _placed_in(self, number: int, part: Batch, first: int, own: list[Finding]) -> list[Finding]:
        """The findings in a segment with their places; notes the moves of the open drift."""
        found, done = [], 0
        for finding in own:
            end = finding.at + 1 - first
            self._mark(number, part, first, done, end)
            done = end
            found.append(placed := self._placed(number, part, first, finding))
            if placed.closes:
                self._opened.pop(number, None)
            elif placed.kind == "drift":  # of a rate that moved further the first move counts, until it is back
                place, moves = [getattr(placed, name) for name in Move._fields[1:]], self._opened.setdefault(number, {})
                moves.setdefault(OPENING, Move(placed.changes[0].direction, *place))
                for change in placed.changes:
                    moves.setdefault(change.rate, Move(change.direction, *place))
            elif placed.kind in ("withdrawal", "recovery"):
                for change in placed.changes:
                    self._opened[number].pop(change.rate, None)
        self._mark(number, part, first, done, part.rows.size)
        if own and getattr(self.segments.at(number), "open", None) is None:
            self._opened.pop(number, None)
        return found

    # Now ------------------------------------------------------------------------------------------------------

    @property
    def warned(self) -> int:
        return int((self.segments.progress(np.arange(len(self.segments)))[1] >= 0).sum())

    @property
    def open_since(self) -> dict[str | None, np.datetime64 | None]:
        return {self.segments.names[number]: moves[OPENING].time for number, moves in self._opened.items()}

    def open_drift(
        self, segment: str | None, prices: Mapping[str, float], until: np.datetime64 | None
    ) -> OpenDrift | None:
        """The drift open in a segment, with its cost up to a time if errors have prices."""
        if segment not in self.segments or (number := self.segments.number(segment)) not in self._opened:
            return None
        stream = self.segments.at(number)
        drift = getattr(stream, "open", None)
        assert drift is not None
        placed = self._opening(number, drift)
        away = {rate: state for rate, state in stream.rates.items() if state.state != "normal"}
        cost = self._cost(stream, placed, away, prices, until) if prices else None
        return OpenDrift(placed, away, cost, {name: move for name, move in self._opened[number].items() if name})

    def _cost(
        self,
        stream: Any,
        drift: Drift,
        away: Mapping[str, RateState],
        prices: Mapping[str, float],
        until: np.datetime64 | None,
    ) -> ExtraCost | None:
        """The cost of an open drift, assuming the class mix since the last alarm."""
        mix = np.asarray(stream.volumes)
        since = (stream.events - drift.at) * self.volume / max(self.events, 1)
        counts = (since * mix / max(1, mix.sum())).tolist()
        events = dict(zip(rate_names(self.segments.detector.labels.values), counts, strict=False))
        return extra_cost(away, prices, events, None if drift.time is None or until is None else until - drift.time)

    def accept(self, segment: str | None, time: np.datetime64 | None) -> Finding | None:
        """Make the level since the alarm the new normal of a segment; None if no drift is open there."""
        number = self.segments.number(segment)
        finding = self.segments.accept(segment)
        if finding is None:
            return None
        about = None if finding.about is None else self._opening(number, finding.about)
        del self._opened[number]
        return replace(finding, time=time, about=about, segment=segment, version=self.version)

    # State ----------------------------------------------------------------------------------------------------

    def pieces(self) -> Pieces:
        about, sections = self.segments.to_state()
        shape, sections["marks"] = self._marks.to_state(len(self.segments))
        about |= {
            "events": self.events,
            "volume": self.volume,
            "source": self._source,
            "marks": shape,
            "opened": [
                [number, name, *map(_saved_value, move)]
                for number, moves in self._opened.items()
                for name, move in moves.items()
            ],
        }
        return pieces("Streams", about, **sections)

    @classmethod
    def from_bytes(cls, saved: memoryview | bytes, trace: Follow | None, version: str | None) -> Streams:
        """Load the streams of :meth:`pieces`; invalid ones raise a ValueError or the like."""
        found = unpack(saved, "Streams")
        about = found.about
        streams = cls(Segments.from_state(found), trace, version)
        streams.events = check_whole(about["events"], "events", 0)
        streams.volume = check_number(about["volume"], "volume")
        streams._source = text_or_none(about["source"])
        streams._marks = Marks.from_state(about["marks"], found.sections["marks"], len(streams.segments))
        if (counted := int(streams.segments.progress(np.arange(len(streams.segments)))[0].sum())) != streams.events:
            raise ValueError(f"segments of {counted} events in streams of {streams.events}")
        for number, name, *move in about["opened"]:
            streams._opened.setdefault(check_whole(number, "a segment's number", 0), {})[str(name)] = _move(*move)
        if {*streams._opened} != {*streams.segments.open()} or any(OPENING not in m for m in streams._opened.values()):
            raise ValueError(f"{len(streams._opened)} open drifts are saved, others are open")
        if trace is not None:
            for number in range(min(TRACED, len(streams.segments))):
                streams.traces[number] = trace(streams.segments.at(number))
        return streams


def _move(
    direction: Any, at: Any, started: Any, time: Any, started_time: Any, source: Any, row: Any, started_row: Any
) -> Move:
    """A move from a state."""
    if direction not in ("down", "up"):
        raise ValueError(f"a rate moved {direction!r}")
    started, row, started_row = (
        None if number is None else check_whole(number, "an event", 0) for number in (started, row, started_row)
    )
    time, started_time = (None if saved is None else moment(saved) for saved in (time, started_time))
    at = check_whole(at, "an event", 0)
    return Move(direction, at, started, time, started_time, text_or_none(source), row, started_row)


def microseconds(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("M8[us]").astype(np.int64))


def _saved_value(value: Any) -> Any:
    return microseconds(value) if isinstance(value, np.datetime64) else value


def moment(saved: Any) -> np.datetime64:
    return np.datetime64(check_whole(saved, "a time", -(1 << 62)), "us")


def text_or_none(saved: Any) -> str | None:
    if saved is not None and not isinstance(saved, str):
        raise TypeError(f"{saved!r} is not a name")
    return saved

"""The live state of one monitor: a deterministic machine over its journal.

:meth:`Monitor.apply` takes the batches in the order of the journal and gives what they led to. Two monitors with the
same settings, the same key and the same batches are the same, finding for finding: that is how a server that was killed
comes back, and why nothing here looks at a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.bank import Bank
from fourrates.detectors.four_rates import FourRates
from fourrates.findings import Finding, Shift
from fourrates.join import LabelJoin
from fourrates.labels import rate_names
from fourrates.serve.batch import CONFIG, EVENTS, PREDICTIONS, SEEN, Batch, Ids, Seen
from fourrates.serve.config import MonitorConfig, seconds
from fourrates.serve.segments import Segments
from fourrates.serve.series import Series
from fourrates.serve.settings import Settings

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint16]
    Numbers = npt.NDArray[np.int64]
    Point = npt.NDArray[np.float64]

WHOLE = -1  # the number of the whole among those of the segments
TUNED_FROM = 1_000  # events after which a budget in time is first translated into events
VERSION = 1


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, and where: the number of a segment, or WHOLE."""

    finding: Finding
    segment: int
    event: int  # of the monitor
    time: float

    @property
    def kind(self) -> str:
        """That of the finding."""
        return self.finding.kind


class Standing(msgspec.Struct, array_like=True, frozen=True):
    """An open drift.

    Attributes
    ----------
    event : int
        Of the monitor, at which the latest drift of the episode was found.
    time : float
        Since when the overall stream, or the segment, is drifted, in seconds since 1970.
    at : int
        The event of its stream at which that latest drift was found: names it.
    """

    event: int
    time: float
    at: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """The events that a batch led to, in order: which row completed each, and what it was."""

    truths: Codes
    guesses: Codes
    positions: Numbers | None  # None means every row, in order
    segments: Numbers | None

    def __len__(self) -> int:
        return int(self.truths.size)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch."""

    pairs: Pairs
    accepted: int
    repeated: int
    found: list[Found] = field(default_factory=list)


class _Saved(msgspec.Struct, array_like=True):
    version: int
    config: bytes
    events: int
    arl: float
    tune_at: int
    first_time: float
    last_time: float
    confusion: bytes
    detector: bytes
    bank: bytes
    join: bytes
    segments: list[str]
    series: tuple[int, bytes, bytes]
    standing: dict[int, Standing]
    begun: int
    shift: Shift | None


class Monitor:
    """One monitor.

    Parameters
    ----------
    config : MonitorConfig
        Its settings.
    key : bytes
        16 random bytes, kept with the monitor: the key of the fingerprints of ids and segments.
    settings : Settings
        The limits.

    Attributes
    ----------
    events : int
        Pairs watched.
    confusion : array
        Counts of all of them, by true and predicted class.
    begun : int
        Events before the detector of the whole began: new settings may have reset it.
    standing : dict
        Open drifts, by the number of a segment, or WHOLE.
    shift : Shift or None
        The latest shift of the class mix.
    """

    def __init__(self, config: MonitorConfig, key: bytes, settings: Settings) -> None:
        self.config, self.key, self.settings = config, key, settings
        self.labels = config.made_labels()
        self.classes = len(self.labels.values)
        self.names = rate_names(self.labels.values)
        # The detectors know codes alone; this is what the labels make of the names of their rates.
        self.rate_name = dict(zip(rate_names(range(self.classes)), self.names, strict=True))
        self.events = 0
        self.confusion = np.zeros((self.classes, self.classes), np.int64)
        self.arl, self.tune_at = config.run_length(None), TUNED_FROM
        self.first_time = self.last_time = float("nan")
        self.segments = Segments(settings.max_segments)
        self.series = Series(self.classes)
        self.standing: dict[int, Standing] = {}
        self.join = LabelJoin(
            range(self.classes),
            max_waiting=settings.max_waiting,
            max_wait=seconds(config.max_wait, "max_wait"),
            seed=int.from_bytes(key, "little"),
        )
        self._begin_watching()

    def _begin_watching(self) -> None:
        self.begun = self.events
        self.shift: Shift | None = None
        self.detector = self._whole()
        self.bank = Bank(self._each(), max_streams=self.settings.max_segments) if self.config.by else None

    def _whole(self) -> FourRates:
        """The detector of the whole. With segments each side has half of the false alarms, so twice the run length."""
        config = self.config
        return FourRates(
            2 * self.arl if config.by else self.arl,
            labels=range(self.classes),
            reference=None if config.reference is None else self._reference(config.reference),
            mix=config.mix if self.classes == 2 else "ignore",
        )

    def _each(self) -> FourRates:
        """The settings of a segment: held against its own past, for segments differ; the mix is the whole's."""
        return FourRates(2 * self.arl, labels=range(self.classes), mix="ignore")

    def _reference(self, counts: list[list[int]]) -> list[list[int]]:
        """Counts in the order of the codes."""
        order = [self.labels.given.index(label) for label in self.labels.values]
        return [[counts[i][j] for j in order] for i in order]

    # Batches --------------------------------------------------------------------------------------------------

    def apply(self, batch: Batch) -> Outcome:
        """Take the next batch of the journal. One that is refused (ValueError) has changed nothing."""
        if batch.kind in (CONFIG, SEEN):
            accepted: list[Found] = []
            if batch.kind == CONFIG:
                self._change(msgspec.json.decode(batch.config, type=MonitorConfig))
            else:
                accepted = self._accept(msgspec.json.decode(batch.config, type=Seen), batch.received)
            empty = np.empty(0, np.uint16)
            return Outcome(Pairs(empty, empty, None, None), 0, 0, accepted)
        ids = None if batch.ids is None else self._fingerprints(batch.ids)  # before anything changes
        numbers = None
        if self.config.by and batch.segment_codes:
            numbers = self.segments.take(batch.segments)[np.frombuffer(batch.segment_codes, "<u4")]
        if ids is None:
            pairs, repeated = Pairs(batch.codes("truths"), batch.codes("guesses"), None, numbers), 0
        else:
            pairs, repeated = self._join(ids, batch, numbers)
        found = self._watch(pairs, batch) if len(pairs) else []
        self._set_clock(batch)
        if self.first_time != self.first_time:
            self.first_time = batch.last_time()
        if self.config.follows_rate and self.events >= self.tune_at:
            self._tune()
        if self.series.wants(self.last_time):
            self.series.add(*self._present())
        return Outcome(pairs, batch.size - repeated, repeated, found)

    def _set_clock(self, batch: Batch) -> None:
        """Note when something last happened. It goes back only where the clock of the server was put back."""
        latest = batch.last_time()
        if self.last_time >= latest:
            latest = min(self.last_time, max(batch.received, latest))
        self.last_time = latest

    def _fingerprints(self, ids: Ids) -> npt.NDArray[np.void]:
        try:
            return self.join.fingerprints(ids.column())
        except TypeError as error:
            raise ValueError(str(error)) from None

    def _join(self, ids: npt.NDArray[np.void], batch: Batch, numbers: Numbers | None) -> tuple[Pairs, int]:
        """Predictions and labels by id to pairs; an event with an id is both at once."""
        times, before = batch.time_column(), self.join.counts
        if batch.kind == EVENTS:
            made = self.join.both(ids, batch.codes("truths"), batch.codes("guesses"), times, numbers)
        elif batch.kind == PREDICTIONS:
            made = self.join.predict(ids, batch.codes("guesses"), times, numbers)
        else:
            made = self.join.label(ids, batch.codes("truths"), times)
        after = self.join.counts
        which = "repeated_predictions" if batch.kind != PREDICTIONS + 1 else "repeated_labels"
        repeated = after[which] - before[which]
        if len(made) == batch.size and batch.kind == EVENTS:
            return Pairs(made.truths, made.guesses, None, made.tags if self.config.by else None), repeated
        return Pairs(made.truths, made.guesses, made.positions, made.tags if self.config.by else None), repeated

    def _watch(self, pairs: Pairs, batch: Batch) -> list[Found]:
        """Give the pairs to the detectors."""
        times = np.frombuffer(batch.times, "<f8") if batch.times else None

        def time_of(row: int) -> float:
            if times is None:
                return batch.received
            return float(times[row if pairs.positions is None else pairs.positions[row]])

        found: list[Found] = []
        if self.bank is not None and pairs.segments is not None:
            first = self.bank.events
            self.bank.update_coded(pairs.segments, pairs.truths, pairs.guesses)
            for keyed in self.bank.findings:
                row = keyed.event - first
                number = int(keyed.key)  # type: ignore[call-overload]
                found.append(Found(keyed.finding, number, self.events + row, time_of(row)))
        done, size = 0, len(pairs)
        while done < size:
            taken, findings = self.detector.update_coded(pairs.truths, pairs.guesses, done)
            done += taken
            for finding in findings:
                later = finding.shifted(self.begun)
                found.append(Found(later, WHOLE, self.events + done - 1, time_of(done - 1)))
                if isinstance(later, Shift):
                    self.shift = later
        found.sort(key=lambda one: one.event)
        cells = pairs.truths.astype(np.int64) * self.classes + pairs.guesses
        for drift_of_whole in (one for one in found if one.segment == WHOLE and one.kind == "drift"):
            self._draw_alarm(drift_of_whole, cells[: drift_of_whole.event - self.events + 1])
        self.confusion += np.bincount(cells, minlength=self.classes**2).reshape(self.confusion.shape)
        self.events += size
        self._note(found)
        return found

    def _draw_alarm(self, one: Found, cells: Numbers) -> None:
        """Have the series reach the alarm at its event, within a batch: after it the evidence is gone."""
        counts = self.confusion + np.bincount(cells, minlength=self.classes**2).reshape(self.confusion.shape)
        unknown = [float("nan")] * self.classes  # what is compared with may be another one now
        self.series.add(self.series.point(one.event + 1, one.time, 1.0, unknown, counts))

    def has_reference(self, segment: int) -> bool:
        """Whether a segment, or the overall stream, is compared with a reference."""
        return segment == WHOLE and self.config.reference is not None

    def _note(self, found: list[Found]) -> None:
        """Remember which drifts are open."""
        for one in found:
            if one.kind == "drift":
                old = self.standing.get(one.segment)
                since = one.time if old is None else old.time
                self.standing[one.segment] = Standing(one.event, since, one.finding.at)
            elif one.finding.closes:
                self.standing.pop(one.segment, None)
        for segment in {one.segment for one in found if one.kind == "drift"}:
            if not self._is_open(segment):  # normal was not known yet, so the new level is
                self.standing.pop(segment, None)

    def _is_open(self, segment: int) -> bool:
        if segment == WHOLE:
            return self.detector.open is not None
        return self.bank is not None and self.bank[segment].open is not None

    def _accept(self, seen: Seen, time: float) -> list[Found]:
        """Somebody has seen a drift: without a reference to come back to, the new level is normal from now on."""
        for segment, one in self.standing.items():
            name = None if segment == WHOLE else self.segments.name(segment)
            if one.at != seen.at or name != seen.segment or self.has_reference(segment):
                continue
            del self.standing[segment]
            if segment == WHOLE:
                finding = self.detector.accept(force=True)
                finding = None if finding is None else finding.shifted(self.begun)
            else:
                keyed = None if self.bank is None else self.bank.accept(segment, force=True)
                finding = None if keyed is None else keyed.finding
            return [] if finding is None else [Found(finding, segment, self.events - 1, time)]
        return []

    def _present(self) -> list[Point]:
        """How things stand, as a point of the series; none before anything came."""
        if self.last_time != self.last_time:
            return []
        baselines = [
            share.value if (share := state.baseline) is not None else float("nan")
            for state in list(self.detector.rates.values())[: self.classes]
        ]
        return [self.series.point(self.events, self.last_time, self.detector.evidence, baselines, self.confusion)]

    def drawn(self, most: int) -> dict[str, Any]:
        """How the rates went, up to now, in a limited number of points."""
        return self.series.as_json(self.names, most, self.classes - 1, self._present())

    def last_point(self) -> dict[str, Any]:
        """The last point of :meth:`drawn`."""
        return self.series.last_point(self.names, self.classes - 1, self._present())

    # Budgets in time, and new settings ------------------------------------------------------------------------

    def _tune(self) -> None:
        """Translate a budget in time into events, at the rate seen so far; when twice as many came, again.

        When it happens, and what it is then, depends on the times of the events alone, never on how they turned out: so
        the budget still holds.
        """
        self.tune_at = 2 * self.events
        span = self.last_time - self.first_time
        if not span > 0:
            return
        self._set_arl(self.config.run_length(self.events / span))

    def _set_arl(self, arl: float) -> None:
        self.arl = arl
        whole = self._whole()
        whole.restore(self.detector.record_bytes)
        self.detector = whole
        if self.bank is not None:
            self.bank = self.bank.with_budget(2 * arl)

    def _change(self, config: MonitorConfig) -> None:
        """New settings: another reference, or another view of the mix, resets the watch."""
        old, self.config = self.config, config
        rate = None
        if self.last_time > self.first_time:
            rate = self.events / (self.last_time - self.first_time)
        arl = config.run_length(rate)
        if (old.reference, old.mix) != (config.reference, config.mix):
            self.arl, self.standing = arl, {}
            self._begin_watching()
        elif arl != self.arl:
            self._set_arl(arl)

    # Snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything, as :meth:`restore` takes it."""
        return msgspec.msgpack.encode(
            _Saved(
                VERSION,
                msgspec.json.encode(self.config),
                self.events,
                self.arl,
                self.tune_at,
                self.first_time,
                self.last_time,
                self.confusion.astype("<i8").tobytes(),
                self.detector.to_bytes(),
                b"" if self.bank is None else self.bank.to_bytes(),
                self.join.to_bytes(),
                self.segments.names,
                self.series.to_state(),
                self.standing,
                self.begun,
                self.shift,
            )
        )

    @classmethod
    def restore(cls, saved: bytes | memoryview, key: bytes, settings: Settings) -> Monitor:
        """Bring back what :meth:`snapshot` gave; bytes that it cannot have given are a ValueError."""
        found = msgspec.msgpack.decode(saved, type=_Saved)
        if found.version != VERSION:
            raise ValueError(f"a snapshot of version {found.version}; this release reads version {VERSION}")
        monitor = cls(msgspec.json.decode(found.config, type=MonitorConfig), key, settings)
        monitor.events, monitor.arl, monitor.tune_at = found.events, found.arl, found.tune_at
        monitor.first_time, monitor.last_time = found.first_time, found.last_time
        shape = monitor.confusion.shape
        monitor.confusion = np.frombuffer(found.confusion, "<i8").reshape(shape).astype(np.int64)
        monitor.detector = FourRates.from_bytes(found.detector)
        if found.bank:
            monitor.bank = Bank.from_bytes(found.bank)
        monitor.join = LabelJoin.from_bytes(found.join)
        monitor.segments.restore(found.segments)
        monitor.series.restore(*found.series)
        monitor.standing, monitor.begun, monitor.shift = found.standing, found.begun, found.shift
        return monitor

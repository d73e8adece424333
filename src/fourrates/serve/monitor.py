"""The live state of one monitor, a deterministic machine over its journal.

:meth:`Monitor.apply` takes batches in journal order and returns their results. The same settings, key and batches give
the same monitor, finding for finding. That is how a killed server recovers, and why nothing here looks at a clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.budget.words import duration
from fourrates.checks import check_whole
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.sampling import OwnFirst
from fourrates.events.batch import Batch as Events
from fourrates.findings import Finding, PredictionShift, Shift
from fourrates.join import LabelJoin
from fourrates.labels import rate_names
from fourrates.plain import to_json
from fourrates.serve.batch import ACCEPTED, CONFIG, EVENTS, LABELS, PREDICTIONS, AcceptedDrift, Batch
from fourrates.serve.bodies import segment_name
from fourrates.serve.config import MonitorConfig, seconds
from fourrates.serve.series import SegmentSeries, Series
from fourrates.serve.settings import Settings
from fourrates.serve.to_label import ToLabel, is_drawn
from fourrates.state import pack, unpack
from fourrates.watch import Watch

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint16]
    Numbers = npt.NDArray[np.int64]
    Point = npt.NDArray[np.float64]

LATEST = 101  # delays of labels, of which the median is shown
TUNED_FROM = 1_000  # events after which a budget in time is first translated into events
# Numbers of a monitor in its snapshot.
COUNTS, NUMBERS = ("events", "predicted", "tune_at", "begun"), ("arl", "first_time", "last_time")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The events of a batch, in order, with the row that completed each."""

    truths: Codes
    preds: Codes
    positions: Numbers | None  # None means every row, in order
    segments: Numbers | None
    versions: Numbers | None = None
    probabilities: npt.NDArray[np.float32] | None = None  # by the code of the prediction, if drawn for labelling

    def __len__(self) -> int:
        return int(self.truths.size)

    def only(self, kept: npt.NDArray[np.bool_]) -> Pairs:
        columns = (getattr(self, column.name) for column in fields(self))
        return Pairs(*(None if column is None else column[kept] for column in columns))  # type: ignore[arg-type]


NO_PAIRS = Pairs(np.empty(0, np.uint16), np.empty(0, np.uint16), None, None)


@dataclass(frozen=True, slots=True)
class Outcome:
    pairs: Pairs
    repeated: int = 0
    findings: list[Finding] = field(default_factory=list)


RESETS = ("reference", "mix", "tolerance", "learning", "season")  # settings whose change resets the watch


class Monitor:
    """One monitor; `key`, 16 random bytes saved with it, keys the fingerprints of ids."""

    def __init__(self, config: MonitorConfig, key: bytes, settings: Settings) -> None:
        self.config, self.key, self.settings = config, key, settings
        self.labels = config.made_labels()
        self.classes = len(self.labels.values)
        self.drawing = config.drawing()  # by class, how likely a prediction is drawn for labelling
        self.names = rate_names(self.labels.values)
        self.events = 0  # pairs watched
        self.predicted = 0  # predictions whose labels were or are to come
        self.confusion = np.zeros((self.classes, self.classes), np.int64)
        self.arl, self.tune_at = config.run_length(None), TUNED_FROM
        self.first_time = self.last_time = float("nan")
        self.segments: dict[str, int] = {}  # their numbers, in the order of appearance
        self._names: list[str] = []
        self.versions: list[str | None] = [None]  # of the model, in order of appearance; None for events without one
        self.series = Series(self.classes)
        self.segment_series = SegmentSeries(self.classes)
        self.label_delays: deque[float] = deque(maxlen=LATEST)
        self.to_label = ToLabel()
        self.join = LabelJoin(
            range(self.classes),
            max_waiting=settings.max_waiting,
            max_wait=seconds(config.max_wait, "max_wait"),
            seed=int.from_bytes(key, "little"),
        )
        self._begin_watching()

    def _begin_watching(self) -> None:
        self.begun = self.events  # before the last reset, by new settings
        self.shift: dict[str, Any] | None = None  # the latest of the class mix, as JSON has it
        config, arl = self.config, self._arl_of_each()
        mix = config.mix if self.classes == 2 else "ignore"
        overall = config.made_detector(arl, reference=config.reference, mix=mix)
        # Segments differ, so each is held against its own past; the class mix is that of all of them.
        each = config.made_detector(arl, mix="ignore") if config.by else overall
        first, versions = _references(config)
        self.watch = Watch(
            each,
            overall=overall if config.by else None,
            references=first or None,
            version_references=versions,
            max_segments=self.settings.max_segments,
            cost=config.cost,
        )

    def _arl_of_each(self) -> float:
        """With segments, they and the overall stream each get half of the false alarms, so twice the run length."""
        return 2 * self.arl if self.config.by else self.arl

    @property
    def detector(self) -> FourRates:
        streams = self.watch.segments if self.watch.overall is None else self.watch.overall
        return streams.get(None, streams.detector)  # type: ignore[return-value]

    # Batches --------------------------------------------------------------------------------------------------

    def apply(self, batch: Batch) -> Outcome:
        """Apply the next batch of the journal; a refused one (ValueError) changes nothing."""
        if batch.kind == CONFIG:
            self._change(msgspec.json.decode(batch.config, type=MonitorConfig))
            return Outcome(NO_PAIRS)
        if batch.kind == ACCEPTED:
            accepted = msgspec.json.decode(batch.config, type=AcceptedDrift)
            return Outcome(NO_PAIRS, 0, self._accept(accepted, batch.received))
        ids = self._fingerprints(batch) if batch.ids else None  # before anything changes
        segments, versions = self.numbers(batch)
        findings: list[Finding] = []
        if ids is None:
            preds, drawn = batch.codes("preds"), batch.probabilities()
            own = None if drawn is None else drawn.by_class(preds)
            pairs, repeated = Pairs(batch.codes("truths"), preds, None, segments, versions, own), 0
        else:
            pairs, repeated, known = self._join(ids, batch, segments, versions)
            if batch.kind == PREDICTIONS:
                findings = self._predict(batch, segments, versions, ~known)
        findings += self._update(pairs, batch) if len(pairs) else []
        self._set_clock(batch)
        if self.first_time != self.first_time:
            self.first_time = batch.last_time()
        if self.config.follows_rate and self.events >= TUNED_FROM:
            self._tune()
        if self.series.wants(self.last_time):
            self.series.add(*self._present())
            if self.config.by:
                self.segment_series.note(self.last_time)
        return Outcome(pairs, repeated, findings)

    def _predict(
        self, batch: Batch, segments: Numbers | None, versions: Numbers | None, new: npt.NDArray[np.bool_]
    ) -> list[Finding]:
        """Give the new predictions to the watch; the row of a prediction shift is its prediction of the monitor."""
        preds, rows, times = batch.codes("preds"), self.predicted + np.cumsum(new) - 1, self._times(batch, None)
        own: dict[str, Any] = {"versions": versions, "version_names": self.versions}
        made = Events(preds, preds, "", rows, _moments(times), segments, **own).take(new)
        self.predicted += made.preds.size
        delay = self.label_delay
        found = self.watch.predict(
            made, self._names, wait=duration(delay) if delay is not None and delay >= 1 else None
        )
        row = max(self.events - 1, 0)
        return [finding if isinstance(finding, PredictionShift) else replace(finding, row=row) for finding in found]

    def numbers(self, batch: Batch) -> tuple[Numbers | None, Numbers | None]:
        """For each row, the numbers of its segment and of its version. Too many are a ValueError, nothing changes."""
        segments = versions = None
        if batch.kind in (EVENTS, PREDICTIONS):
            self.watch.check_versions(batch.versions)
            if self.config.by and batch.segment_codes:
                segments = self.segment_numbers(batch.segments)[np.frombuffer(batch.segment_codes, "<u4")]
            self.versions += [name for name in batch.versions if name not in self.versions]
            if batch.versions:
                known = np.array([self.versions.index(name) for name in batch.versions], np.int64)
                versions = known[np.frombuffer(batch.version_codes, "<u4")]
            elif len(self.versions) > 1:
                versions = np.zeros(batch.size, np.int64)
        return segments, versions

    def segment_numbers(self, names: Sequence[str]) -> Numbers:
        """The numbers of segments; new ones get the next. Too many are a ValueError, and nothing changes."""
        new = [name for name in dict.fromkeys(names) if name not in self.segments]
        if len(self.segments) + len(new) > self.settings.max_segments:
            raise ValueError(f"more than {self.settings.max_segments:,} segments")
        self.segments |= {name: number for number, name in enumerate(new, len(self.segments))}
        self._names += new
        return np.array([self.segments[name] for name in names], np.int64)

    def _set_clock(self, batch: Batch) -> None:
        """Note the latest time; it goes back only if the server's clock was put back."""
        latest = batch.last_time()
        if self.last_time >= latest:
            latest = min(self.last_time, max(batch.received, latest))
        self.last_time = latest

    def _fingerprints(self, batch: Batch) -> npt.NDArray[np.void]:
        try:
            return self.join.fingerprints(batch.listed_ids())
        except TypeError as error:
            raise ValueError(str(error)) from None

    def _join(
        self, ids: npt.NDArray[np.void], batch: Batch, segments: Numbers | None, versions: Numbers | None
    ) -> tuple[Pairs, int, npt.NDArray[np.bool_]]:
        """Predictions and labels by id to pairs; an event with an id is both at once.

        With the number of rows that were repeated, and which predictions are among them.
        """
        times, before = batch.time_column(), self.join.counts
        numbers = segments
        if versions is not None:  # behind the segment
            numbers = (0 if segments is None else segments) | versions << 32
        drawn, preds = batch.probabilities(), batch.codes("preds")
        if batch.kind == EVENTS:
            made = self.join.both(ids, batch.codes("truths"), preds, times, numbers, drawn)
        elif batch.kind == PREDICTIONS:
            if self.drawing is not None:
                drawn = OwnFirst(np.stack([self.drawing[preds], self.drawing[1 - preds]], 1))
            made = self.join.predict(ids, preds, times, numbers, drawn)
        else:
            made = self.join.label(ids, batch.codes("truths"), times)
            self.label_delays.extend(made.waits[-LATEST:].tolist())
        after = self.join.counts
        which = "repeated_labels" if batch.kind == LABELS else "repeated_predictions"
        is_every_row = len(made) == batch.size and batch.kind == EVENTS
        pairs = Pairs(
            made.truths,
            made.preds,
            None if is_every_row else made.positions,
            made.tags & 0xFFFFFFFF if self.config.by else None,
            made.tags >> 32 if len(self.versions) > 1 else None,
            made.probabilities if self.config.sampled else None,
        )
        if self.drawing is not None and batch.kind != EVENTS:
            pairs = pairs.only(is_drawn(ids[made.positions], made.probabilities[np.arange(len(made)), made.preds]))
            self.to_label.answer(ids[pairs.positions])
            if batch.kind == PREDICTIONS:
                assert drawn is not None
                new = np.flatnonzero(is_drawn(ids, drawn.pairs[:, 0]) & ~made.repeated)
                self._ask_for(new, pairs, ids, batch, segments)
        return pairs, after[which] - before[which], made.repeated

    def _ask_for(
        self, rows: Numbers, pairs: Pairs, ids: npt.NDArray[np.void], batch: Batch, segments: Numbers | None
    ) -> None:
        """Queue new predictions that were drawn, unless their label was here before them."""
        assert pairs.positions is not None
        rows = np.setdiff1d(rows, pairs.positions)
        of_rows = [None] * rows.size if segments is None else segments[rows].tolist()
        own = batch.listed_ids()
        facts = zip([own[row] for row in rows.tolist()], batch.codes("preds")[rows].tolist(), of_rows, strict=True)
        self.to_label.add(ids[rows], [*facts], float(np.fmax(self.last_time, batch.last_time())))

    def labels_to_ask(self) -> ToLabel:
        """The drawn predictions that still wait for a label."""
        since = self.join.waiting_since
        self.to_label.expire(since if isinstance(since, float) else math.inf)
        return self.to_label

    @property
    def label_delay(self) -> float | None:
        """The median of the latest delays of labels, in seconds."""
        return median(self.label_delays) if self.label_delays else None

    def _times(self, batch: Batch, positions: Numbers | None) -> npt.NDArray[np.float64]:
        times = np.broadcast_to(batch.time_column(), batch.size)
        return times if positions is None else times[positions]

    def _update(self, pairs: Pairs, batch: Batch) -> list[Finding]:
        """Give the pairs to the watch; the row of a finding is its event of the monitor."""
        size = len(pairs)
        rows = np.arange(self.events, self.events + size)
        times = _moments(self._times(batch, pairs.positions))
        own: dict[str, Any] = {"versions": pairs.versions, "version_names": self.versions}
        events = Events(pairs.truths, pairs.preds, "", rows, times, pairs.segments, **own)
        if pairs.probabilities is not None:
            events = events.sampled(pairs.probabilities)
        found = self.watch.update(events, self._names, predicted=batch.kind == EVENTS)
        findings = [self.of_monitor(finding) for finding in found]
        for finding in findings:
            if isinstance(finding, Shift):
                shares = {"before": to_json(finding.before), "after": to_json(finding.after)}
                self.shift = {"at": finding.at, "time": seconds_of(finding.time), "started": finding.started, **shares}
            elif finding.segment is None and finding.kind == "drift":
                self._draw_alarm(finding, self._counted(events, row_of(finding) - self.events + 1))
        self.confusion += self._counted(events, size)
        self.events += size
        if pairs.segments is not None:
            self.segment_series.count(pairs.segments, pairs.truths, pairs.preds, events.volumes)
        return findings

    def _counted(self, events: Events, size: int) -> npt.NDArray[np.int64]:
        """Confusion counts of the first of some events; one drawn for labelling counts for all it represents."""
        cells = events.truths[:size].astype(np.int64) * self.classes + events.preds[:size]
        volumes = None if events.volumes is None else events.volumes[:size]
        counts = np.bincount(cells, volumes, minlength=self.classes**2).reshape(self.confusion.shape)
        return np.rint(counts).astype(np.int64)

    def of_monitor(self, finding: Finding) -> Finding:
        """Events of the overall stream are those of the monitor, also if new settings began it again.

        Those of a version are counted apart.
        """
        return finding.shifted(self.begun) if finding.segment is None and finding.version is None else finding

    def _draw_alarm(self, drift: Finding, more: npt.NDArray[np.int64]) -> None:
        """Add a point at the alarm even within a batch, since the evidence is reset after it."""
        counts = self.confusion + more
        unknown = [float("nan")] * self.classes  # the normal may be another one now
        at = row_of(drift) + 1, seconds_of(drift.time)
        self.series.add(self.series.point(*at, 1.0, self.label_delay, unknown, counts))

    def _accept(self, seen: AcceptedDrift, time: float) -> list[Finding]:
        """Make the level since a drift the new normal."""
        drift = self.watch.open_drift(seen.segment)
        if drift is None or self.of_monitor(drift.drift).at > seen.at:
            return []
        finding = self.watch.accept(seen.segment)
        if finding is None:
            return []
        return [replace(self.of_monitor(finding), time=_moments(np.array([time]))[0], row=self.events - 1)]

    def _present(self) -> list[Point]:
        """The current state as a point of the series; None without events."""
        if self.last_time != self.last_time:
            return []
        baselines = [
            share.value if (share := state.normal) is not None else float("nan")
            for state in list(self.detector.rates.values())[: self.classes]
        ]
        state = self.detector.evidence, self.label_delay
        return [self.series.point(self.events, self.last_time, *state, baselines, self.confusion)]

    def drawn(self, most: int, seconds: float = math.inf) -> dict[str, Any]:
        """The rates over the last seconds of the stream, in a limited number of points."""
        return self.series.as_json(self.names, most, self.classes - 1, self._present(), self.last_time - seconds)

    def drawn_segment(self, name: str) -> dict[str, Any]:
        return self.segment_series.as_json(self.segments[name], self.names, self.last_time)

    def spark(self, rate: str, segment: str | None, start: float) -> dict[str, Any] | None:
        """A recall, overall or of a segment, from a time on, in a few points."""
        if segment is None:
            return self.series.spark(self.names.index(rate), start, self._present())
        drawn = self.drawn_segment(segment)
        if rate not in drawn["rates"]:
            return None
        points = [pair for pair in zip(drawn["time"], drawn["rates"][rate]["value"], strict=True) if pair[0] >= start]
        return {"time": [time for time, _ in points], "value": [value for _, value in points]}

    # Budgets in time, and new settings ------------------------------------------------------------------------

    def _tune(self) -> None:
        """Convert a budget in time to events at the rate seen so far, and again when the count has doubled.

        And when the rate has halved, as it does after many old events were sent at once. All this depends on the times
        of the events alone, never on their outcomes, so the budget still holds.
        """
        if (rate := self._rate()) is None:
            return
        arl = self.config.run_length(rate)
        if self.events >= self.tune_at or arl < self.arl / 2:
            self.tune_at = 2 * self.events
            self._set_arl(arl)

    def _rate(self) -> float | None:
        span = self.last_time - self.first_time
        return self.events / span if span > 0 else None

    def _set_arl(self, arl: float) -> None:
        self.arl = arl
        self.watch.set_budget(self._arl_of_each())

    def _change(self, config: MonitorConfig) -> None:
        """Apply new settings; another reference, tolerance or mix resets the watch."""
        old, self.config, self.drawing = self.config, config, config.drawing()
        arl = config.run_length(self._rate())
        if old.references != config.references:
            known = {version.version for version in self.watch.deployments}
            unmet = all(own in old.references or own.version not in {None, *known} for own in config.references)
            if unmet and all(own in config.references for own in old.references):
                self.watch.expect(_references(config)[1])  # of versions still to follow
            else:
                self._begin_watching()
        if any(getattr(old, name) != getattr(config, name) for name in RESETS):
            self.arl = arl
            self._begin_watching()
        elif arl != self.arl:
            self._set_arl(arl)
        self.watch.set_cost(config.cost)

    # Snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        about = {
            "config": msgspec.to_builtins(self.config),
            **{name: getattr(self, name) for name in COUNTS + NUMBERS},
            "segments": self._names,
            "versions": self.versions,
            "shift": self.shift,
        }
        return pack(
            "Monitor",
            about,
            confusion=self.confusion.astype("<i8").tobytes(),
            watch=self.watch.pieces(),
            join=self.join.to_bytes(),
            points=self.series.to_state(),
            segment_series=self.segment_series.to_state(),
            to_label=msgspec.msgpack.encode(self.labels_to_ask()),
            label_delays=np.array(self.label_delays, "<f8").tobytes(),
        )

    @classmethod
    def restore(cls, saved: bytes | memoryview, key: bytes, settings: Settings) -> Monitor:
        """Bring back a monitor from :meth:`snapshot`; bytes that it cannot have given are a ValueError."""
        state = unpack(saved)
        about, sections = state.about, state.sections
        if state.kind != "Monitor":
            raise ValueError(f"this is the state of {state.kind}, not of a monitor")
        try:
            monitor = cls(msgspec.convert(about["config"], MonitorConfig), key, settings)
            for name in COUNTS:
                setattr(monitor, name, check_whole(about[name], name, 0))
            for name in NUMBERS:
                setattr(monitor, name, msgspec.convert(about[name], float))
            shape = monitor.confusion.shape
            monitor.confusion = np.frombuffer(sections["confusion"], "<i8").reshape(shape).astype(np.int64)
            monitor.watch = Watch.from_bytes(bytes(sections["watch"]))
            monitor.watch.set_cost(monitor.config.cost)
            monitor.join = LabelJoin.from_bytes(bytes(sections["join"]))
            if len(monitor.segment_numbers(about["segments"])) != len(monitor.segments):
                raise ValueError("the saved names of segments do not fit")
            monitor.versions = msgspec.convert(about["versions"], list[str | None])
            if monitor.versions[:1] != [None] or len({*monitor.versions}) < len(monitor.versions):
                raise ValueError("the saved versions do not fit")
            monitor.series.restore(bytes(sections["points"]))
            monitor.segment_series.restore(bytes(sections["segment_series"]))
            monitor.label_delays.extend(np.frombuffer(sections["label_delays"], "<f8").tolist())
            monitor.to_label = msgspec.msgpack.decode(sections["to_label"], type=ToLabel)
            monitor.shift = msgspec.convert(about["shift"], dict[str, Any] | None)
        except (LookupError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"the saved monitor does not fit itself ({error!r})") from None
        if monitor.begun + monitor.watch.events != monitor.events:
            raise ValueError("the saved monitor and its watch have seen different events")
        return monitor


def _references(config: MonitorConfig) -> tuple[dict[str, Any], dict[str, dict[str | None, Any]]]:
    """The references of segments, and those of versions, by the names that the watch has for segments."""
    first: dict[str, Any] = {}
    versions: dict[str, dict[str | None, Any]] = {}
    for own in config.references:
        segment = segment_name([own.by[name] for name in config.by]) if own.by else None
        if own.version is not None:
            versions.setdefault(own.version, {})[segment] = own.counts
        elif segment is not None:
            first[segment] = own.counts
    return first, versions


def row_of(finding: Finding) -> int:
    assert finding.row is not None
    return finding.row


def seconds_of(time: np.datetime64 | None) -> float:
    return float("nan") if time is None else float(time.astype("M8[us]").astype(np.int64)) / 1e6


def _moments(times: npt.NDArray[np.float64]) -> npt.NDArray[np.datetime64]:
    return (times * 1e6).astype(np.int64).view("M8[us]")

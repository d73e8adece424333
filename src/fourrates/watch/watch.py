"""A detector over batches of events, overall or by segment, for findings with their times, and the rates now.

:class:`Watch` serves `detect`, `watch` and the library. It can be saved between two batches and resumed in another
process; findings do not depend on how a stream is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.checks import check_whole
from fourrates.detectors import Detector
from fourrates.findings import Finding
from fourrates.io import Batch, Columns, InputError, Predictions, read
from fourrates.state import Pieces, Saved, pieces, unpack
from fourrates.watch.cost import prices
from fourrates.watch.now import Deployment, Now, OpenDrift
from fourrates.watch.predictions import as_positives, as_shift, budget_of_predictions, share_detector
from fourrates.watch.segments import MAX_SEGMENTS
from fourrates.watch.streams import microseconds, moment, text_or_none
from fourrates.watch.versions import BLOCK, MOST_VERSIONS, Version, checked_references

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.door import By
    from fourrates.watch.segments import Segments
    from fourrates.watch.streams import Follow, Placed
    from fourrates.watch.trace import Trace
    from fourrates.watch.versions import VersionReferences


class Watch:
    """Detectors at work on batches of events.

    Many segments of FourRates or LFR are a :class:`~fourrates.Bank`; other detectors are objects, one a segment.

    A pair belongs to the version of the model that predicted it, however late its label arrives. Each version has its
    own normal and its own drifts. The newest one *serves*: `segments`, `references` and :meth:`now` are about it.
    A version that made none of 500 predictions is retired. Its open drifts are accepted, and findings from its late
    labels are reported and closed at once. If it predicts again, it serves again.

    Parameters
    ----------
    detector : Detector
        A new detector; every segment gets a clone of it.
    by : str or list of str, optional
        The column that makes segments, or several, for frames given to :meth:`update`.
    truth, pred, time, version : str, optional
        The other columns of these frames; the first three are inferred from common names.
    overall : Detector, optional
        A further detector for all events together.
    references : mapping, optional
        From names of segments to their references, for FourRates only.
    version_references : mapping, optional
        From versions to the reference of each, or to such a mapping. The references of `detector` and `references` are
        for the first version; a version without one learns its baseline.
    trace : callable, optional
        Makes a :class:`~fourrates.watch.trace.Trace` for a segment, for pictures.
    cost : mapping, optional
        The price of errors: ``{"miss": 120, "false alarm": 3}``, or by true class. Open drifts then have a `cost`.
    max_segments : int
        The most segments there may be.

    Attributes
    ----------
    detector : Detector
        The one given.
    version : str or None
        The version that serves.
    segments : mapping from names to detectors
        Each segment as a detector; None is the name of the only one.
    overall : mapping from None to a detector, or None
        All events together, if watched beside the segments.
    events : int
        Events so far, in all segments and versions.
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
        by: By = None,
        *,
        truth: str | None = None,
        pred: str | None = None,
        time: str | None = None,
        version: str | None = None,
        overall: Detector | None = None,
        references: Mapping[str, Any] | None = None,
        version_references: Mapping[str, Any] | None = None,
        trace: Follow | None = None,
        cost: Mapping[Any, float] | None = None,
        max_segments: int = MAX_SEGMENTS,
    ) -> None:
        own = checked_references(version_references or {}, detector.labels)
        self._begin(trace, Columns(truth, pred, None, time, by, version=version), own)
        self._versions[None] = Version.first(detector, overall, references, trace)
        self.segments.most = check_whole(max_segments, "max_segments")
        self.set_cost(cost or {})

    def _begin(self, trace: Follow | None, columns: Columns, references: VersionReferences) -> None:
        self._trace, self._columns, self.version_references = trace, columns, references
        self._versions: dict[str | None, Version] = {}  # oldest first
        self._unlabelled: Watch | None = None  # of the predictions given to `predict`, of all versions together
        self._predictions = self.events = 0
        self.first_time: np.datetime64 | None = None
        self.last_time: np.datetime64 | None = None
        self.prices: dict[str, float] = {}
        self.held: set[tuple[str | None, str | None]] = set()  # version and segment: open, and not to be reported yet

    def set_cost(self, cost: Mapping[Any, float]) -> None:
        """Set the price of errors, as the parameter `cost` does; it is not saved."""
        self.prices = prices(cost, self.detector.labels.values)

    # The serving version --------------------------------------------------------------------------------------

    @property
    def _serving(self) -> Version:
        return self._live[-1]

    @property
    def _live(self) -> list[Version]:
        """The versions that are not retired, oldest first."""
        return [version for version in self._versions.values() if not version.retired]

    @property
    def version(self) -> str | None:
        """The version that serves; None if unknown."""
        return self._serving.name

    @property
    def segments(self) -> Segments:
        """The segments of the version that serves."""
        return self._serving.parts.segments

    @property
    def overall(self) -> Segments | None:
        """All events of the serving version as one stream, if watched beside the segments."""
        overall = self._serving.overall
        return None if overall is None else overall.segments

    @property
    def detector(self) -> Detector:
        """The detector that every segment begins with."""
        return self.segments.detector

    @property
    def _settings(self) -> list[dict[str, Any] | None]:
        """The parameters of segments and of the overall stream."""
        return [self.detector.parameters, None if self.overall is None else self.overall.detector.parameters]

    def _watch_of_predictions(self) -> Watch | None:
        """A watch of the share of predicted positives; None if there can be none."""
        detector = share_detector(self.detector)
        overall = None if self.overall is None else share_detector(self.overall.detector)
        return None if detector is None else Watch(detector, overall=overall)

    @property
    def references(self) -> Mapping[str, Any] | None:
        """References by segment name, if segments have their own."""
        return self.segments.references

    @property
    def without_reference(self) -> list[str]:
        """Segments without a reference, while others have one; their baselines are their own past."""
        if self.references is None:
            return []
        return [name for name in self.segments.names if name is not None and name not in self.references]

    @property
    def holds(self) -> bool:
        """Whether a drift stays open until a finding closes it; only some detectors do so."""
        return self.detector.parameters.get("after") == "hold"

    @property
    def traces(self) -> dict[str | None, Trace]:
        """Traces for pictures, of the serving version."""
        parts = self._serving.parts
        return {parts.segments.names[number]: trace for number, trace in parts.traces.items()}

    # Events ---------------------------------------------------------------------------------------------------

    def update(self, batch: Any, names: Sequence[str] = (), *, predicted: bool = True) -> list[Finding]:
        """Add events and return the findings, in the order of their events.

        Parameters
        ----------
        batch : Batch, frame or mapping from names to arrays
            The events.
        names : sequence of str
            For a Batch, the segment names that its keys refer to (`Events.keys`).
        predicted : bool
            Whether the predictions were made in this order. If not, because :meth:`predict` had the predictions
            and labels arrived later, they do not settle which version serves.
        """
        if isinstance(batch, Batch):
            return in_order(self._take(batch, names, predicted))
        parameters = self.detector.parameters
        events = read(batch, columns=self._columns, labels=parameters["labels"], positive=parameters["positive"])
        found = [finding for part in events for finding in in_order(self._take(part, events.keys, predicted))]
        # The inferred formats hold for later batches.
        self._columns = replace(self._columns, unit=events.columns.unit, dates=events.columns.dates)
        return found

    def predict(self, batch: Any, names: Sequence[str] = (), *, wait: str | None = None) -> list[Finding]:
        """Watch predictions before their labels arrive, which :meth:`update` is given later.

        Returns each :class:`~fourrates.findings.PredictionShift`, a change of the share of predicted positives, overall
        or in a segment, under a tenth of the budget; for FourRates with two labels. If versions are known, they are
        noted here, and give :meth:`update` their pairs with ``predicted=False``.

        Parameters
        ----------
        batch : Batch, frame or mapping from names to arrays
            The predictions, once each. In a Batch the truths are ignored.
        names : sequence of str
            For a Batch, the segment names that its keys refer to.
        wait : str, optional
            How long labels have taken lately, such as "20 days", for the findings.

        Examples
        --------
        >>> import numpy as np
        >>> import fourrates as fr
        >>> random, watch = np.random.default_rng(1), fr.Watch(fr.FourRates(arl=10_000))
        >>> y_pred = random.random(20_000) < np.where(np.arange(20_000) < 15_000, 0.03, 0.09)
        >>> for finding in watch.predict({"prediction": y_pred}, wait="20 days"):
        ...     print(finding)
        prediction shift at 15,176, started about 15,002: 3.3 times as many predicted positive, 0.029 -> 0.096; labels
        take about 20 days
        """
        if not isinstance(batch, Batch):
            parameters = self.detector.parameters
            own = replace(self._columns, truth=None)
            events = Predictions(batch, own, self.detector.labels, positive=parameters["positive"])
            found = [finding for part in events for finding in self.predict(part, events.keys, wait=wait)]
            self._columns = replace(self._columns, unit=events.columns.unit, dates=events.columns.dates)
            return found
        of = batch.versions
        if of is not None:
            self.check_versions(batch.version_names[code] for code in np.unique(of).tolist())
        self._unlabelled = self._unlabelled or self._watch_of_predictions()
        placed: list[Placed] = []
        if self._unlabelled is not None:
            self._unlabelled.segments.most = self.segments.most
            alarms = self._unlabelled._take(as_positives(batch), names, True)
            placed = [(at, as_shift(alarm, wait)) for at, alarm in alarms]
        if of is not None:
            for part in self._blocks(of, batch.version_names):
                self._note_versions(of[part], batch.version_names, None if batch.times is None else batch.times[part])
                placed += [(part.stop, finding) for finding in self._predicted(part.stop - part.start)]
        return in_order(placed)

    def _take(self, batch: Batch, names: Sequence[str], predicted: bool) -> list[Placed]:
        if batch.versions is None and len(self._versions) == 1 and self._serving.name is None:
            found = self._serving.take(batch, names)  # may raise, so before anything changes
            self._count(batch)
            self._predictions += batch.truths.size
            self._serving.block = max(0, self._predictions - 1) // BLOCK
            return found
        of = np.zeros(batch.truths.size, np.int64) if batch.versions is None else batch.versions
        called: Sequence[str | None] = (None,) if batch.versions is None else batch.version_names
        found = []  # with positions
        for part in self._blocks(of, called) if predicted else [slice(0, of.size)]:
            some = batch.take(part)
            for version, rows in self._note_versions(of[part], called, some.times, predicted):
                taken = version.take(some if rows is None else some.take(rows), names)
                found += [(part.start + (at if rows is None else int(rows[at])), finding) for at, finding in taken]
                found += [(part.stop, finding) for finding in (self._close(version, some) if version.retired else ())]
            self._count(some)
            if predicted:
                found += [(part.stop, finding) for finding in self._predicted(part.stop - part.start, some)]
        return found

    def _blocks(self, of: npt.NDArray[np.int64], names: Sequence[str | None]) -> Iterator[slice]:
        """Stretches of predictions between which a version may retire; one stretch for a single version."""
        met = {names[code] for code in np.unique(of).tolist()}
        edges: Iterable[int] = ()
        if len(met | {version.name for version in self._live}) > 1:
            edges = range(BLOCK - self._predictions % BLOCK, of.size, BLOCK)
        start = 0
        for stop in (*edges, of.size):
            yield slice(start, stop)
            start = stop

    def _note_versions(
        self, of: npt.NDArray[np.int64], names: Sequence[str | None], times: Any, predicted: bool = True
    ) -> list[tuple[Version, npt.NDArray[np.int64] | None]]:
        """Each version met, in order, and its rows, None for all of them; creates new versions."""
        met = []
        codes, first = np.unique(of, return_index=True)
        self.check_versions(names[code] for code in codes.tolist())
        for code, at in sorted(zip(codes.tolist(), first.tolist(), strict=True), key=lambda item: item[1]):
            version = self._versions.get(names[code])
            if version is None:
                version = self._begin_version(names[code], None if times is None else times[at], self._predictions + at)
            if predicted:
                version.retired, version.block = False, (self._predictions + of.size - 1) // BLOCK
            met.append((version, None if codes.size == 1 else np.flatnonzero(of == code)))
        return met

    def _begin_version(self, name: str | None, time: np.datetime64 | None, event: int) -> Version:
        known = list(self._versions.values())
        first = self.version is None and not self.events
        references = None if name is None else self.version_references.get(name)
        new = known[-1].next(name, references, self._trace, first)
        new.time, new.event = None if time is None or np.isnat(time) else time, event
        if first:
            self._versions.clear()  # the version before any was known
        elif len(known) >= MOST_VERSIONS:
            del self._versions[
                min((version for version in known if version.retired), key=lambda version: version.block).name
            ]
        self._versions[name] = new
        return new

    def _predicted(self, size: int, batch: Batch | None = None) -> list[Finding]:
        """Count predictions; at the end of a block, retire versions that made none of them."""
        before, self._predictions = self._predictions // BLOCK, self._predictions + size
        if self._predictions // BLOCK == before:
            return []
        found = []
        for version in self._live:
            if version.block < self._predictions // BLOCK - 1:
                version.retired = True
                found += self._close(version, batch)
        return found

    def _close(self, version: Version, batch: Batch | None) -> list[Finding]:
        """Accept the open drifts of a retired version, at the end of these events."""
        source, row = (None, None) if batch is None else (batch.source, int(batch.rows[-1]))
        found = [version.accept(segment, self.last_time) for segment in version.open_since]
        return [replace(finding, source=source, row=row) for finding in found if finding is not None]

    def expect(self, references: Mapping[str, Any]) -> None:
        """Add references of versions not met yet, as `version_references` has them."""
        self.version_references = checked_references(references, self.detector.labels)

    def check_versions(self, names: Iterable[str | None]) -> None:
        """Raise an InputError if these versions would make too many at once."""
        live = {version.name for version in self._live if version.name is not None or version.parts.events}
        if len(live.union(names)) > MOST_VERSIONS:
            raise InputError(f"more than {MOST_VERSIONS} versions predict at once. Is that the version of a model?")

    def _count(self, batch: Batch) -> None:
        self.events += batch.truths.size
        times = np.empty(0, "M8[us]") if batch.times is None else batch.times
        known = times[~np.isnat(times)]
        if known.size:
            low, high = known.min(), known.max()
            self.first_time = low if self.first_time is None else min(self.first_time, low)
            self.last_time = high if self.last_time is None else max(self.last_time, high)

    # Now ------------------------------------------------------------------------------------------------------

    @property
    def open_since(self) -> dict[str | None, np.datetime64 | None]:
        """The segments with an open drift, None for the overall stream, and when it was found."""
        return {name: time for version in self._live for name, time in version.open_since.items()}

    def open_drift(self, segment: str | None = None) -> OpenDrift | None:
        """The open drift of a segment, or overall; of the serving version, if that has one."""
        opened = (
            version.of(segment).open_drift(segment, self.prices, self.last_time) for version in reversed(self._live)
        )
        return next((drift for drift in opened if drift is not None), None)

    def stream_of(self, finding: Finding) -> Detector:
        """The stream of a finding, in its current state."""
        version = self._versions.get(finding.version, self._serving)
        segments = version.of(finding.segment).segments
        return segments.get(finding.segment, segments.detector)

    @property
    def deployments(self) -> tuple[Deployment, ...]:
        """The versions met, oldest first."""
        named = [version for version in self._versions.values() if version.name is not None]
        return tuple(
            Deployment(version.name or "", version.time, version.event, not version.retired) for version in named
        )

    def now(self) -> Now:
        """The current status, with open drifts and the rates since their alarms."""
        found = [
            version.of(segment).open_drift(segment, self.prices, self.last_time)
            for version in self._live
            for segment in version.open_since
            if (version.name, segment) not in self.held
        ]
        opened = [drift for drift in found if drift is not None]
        opened.sort(key=lambda drift: (drift.segment is not None, not drift.confirmed, -drift.harm))
        names, overall = self.segments.names, self.segments if self.overall is None else self.overall
        warned = sum(streams.warned for version in self._live for streams in version.streams)
        return Now(
            status="drifted" if opened else "warning" if warned else "stable",
            open=tuple(opened),
            rates=overall[None].rates if None in overall else {},
            warned=warned,
            events=self.events,
            segments=None if None in self.segments or not names else len(names),
            last_time=self.last_time,
            holds=self.holds,
            deployments=self.deployments,
        )

    def accept(self, segment: str | None = None) -> Finding | None:
        """Make the level since the alarm the new normal, in a segment or overall; None if no drift is open there."""
        for version in reversed(self._live):
            if segment in version.open_since:
                return version.accept(segment, self.last_time)
        return self._serving.accept(segment, self.last_time)

    def set_budget(self, arl: float) -> None:
        """Change the false-alarm budget and keep everything else."""
        for version in self._versions.values():
            for streams in version.streams:
                streams.segments.set_budget(arl)
        if self._unlabelled is not None:
            self._unlabelled.set_budget(budget_of_predictions(arl))

    # State ----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The state to resume from."""
        return b"".join(self.pieces())

    def pieces(self) -> Pieces:
        """The parts of :meth:`to_bytes`, for a state that has this one in it."""
        about = {
            "events": self.events,
            "predictions": self._predictions,
            "times": [microseconds(self.first_time), microseconds(self.last_time)],
            "versions": [version.about() for version in self._versions.values()],
            "references": [
                [version, segment, counts.tolist()]
                for version, own in self.version_references.items()
                for segment, counts in own.items()
            ],
            "columns": self._columns.to_dict(),
        }
        versions = enumerate(self._versions.values())
        sections = {f"{i}{name}": part for i, version in versions for name, part in version.sections()}
        if self._unlabelled is not None:
            sections["unlabelled"] = self._unlabelled.pieces()
        return pieces("Watch", about, **sections)

    @classmethod
    def from_bytes(cls, saved: bytes | memoryview, trace: Follow | None = None) -> Watch:
        """Load the bytes of :meth:`to_bytes`; invalid ones raise an InputError."""
        try:
            return cls._revived(unpack(saved, "Watch"), trace)
        except ValueError as error:
            raise InputError(str(error)) from None
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise InputError(f"the saved watch does not fit itself ({error!r})") from None

    @classmethod
    def _revived(cls, found: Saved, trace: Follow | None) -> Watch:
        watch, about = cls.__new__(cls), found.about
        columns: dict[str, Any] = {
            name: column if name == "by" else text_or_none(column) for name, column in about["columns"].items()
        }
        watch._begin(trace, Columns(**columns), {})
        watch.events = check_whole(about["events"], "events", 0)
        watch._predictions = check_whole(about["predictions"], "predictions", 0)
        watch.first_time, watch.last_time = (None if time is None else moment(time) for time in about["times"])
        for i, one in enumerate(about["versions"]):
            version = Version.from_state(one, found.sections, str(i), trace)
            watch._versions[version.name] = version
        if len(watch._versions) != len(about["versions"]) or not watch._live:
            raise ValueError("the saved watch has no version that serves, or one of them twice")
        if "unlabelled" in found.sections:
            watch._unlabelled, expected = cls.from_bytes(found.sections["unlabelled"]), watch._watch_of_predictions()
            if expected is None or watch._unlabelled._settings != expected._settings:
                raise ValueError(f"predictions are watched by {watch._unlabelled.detector!r} beside {watch.detector!r}")
        counted = sum(version.streams[0].events for version in watch._versions.values())
        if not (counted == watch.events or (counted < watch.events and len(watch._versions) == MOST_VERSIONS)):
            raise ValueError(f"versions of {counted} events in a watch of {watch.events}")
        references: dict[str, dict[str | None, Any]] = {}
        for name, segment, counts in about["references"]:
            references.setdefault(name, {})[segment] = counts
        watch.version_references = checked_references(references, watch.detector.labels)
        return watch


def in_order(found: list[Placed]) -> list[Finding]:
    return [finding for _, finding in sorted(found, key=lambda placed: placed[0])]

"""A version of the model in a watch, with its segments, its overall stream, and when it predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fourrates.checks import check_whole
from fourrates.detectors.four_rates import confusion_counts
from fourrates.watch.segments import Segments
from fourrates.watch.streams import Streams, microseconds, moment

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.detectors import Detector
    from fourrates.findings import Finding
    from fourrates.io import Batch
    from fourrates.labels import Labels
    from fourrates.state import Pieces
    from fourrates.watch.streams import Follow, Placed

    Counts = npt.NDArray[np.int64]
    VersionReferences = dict[str, dict[str | None, Counts]]

BLOCK = 500  # a version that makes none of these predictions is retired
MOST_VERSIONS = 20  # most versions held; a new one displaces the one that predicted longest ago


@dataclass(slots=True)
class Version:
    """A version of the model."""

    name: str | None  # None if no version is known
    parts: Streams  # its segments, or its only stream
    overall: Streams | None  # if watched beside the segments
    time: np.datetime64 | None = None  # when it was first met
    event: int = 0  # predictions of all versions before that
    block: int = 0  # the last block of predictions with one of its own
    retired: bool = False  # whether a whole block has passed without it

    @classmethod
    def first(
        cls, detector: Detector, overall: Detector | None, references: Mapping[str, Any] | None, trace: Follow | None
    ) -> Self:
        """The version before any is known."""
        beside = None if overall is None else Streams(Segments(overall, None), None)
        return cls(None, Streams(Segments(detector, references), trace), beside)

    def next(
        self, name: str | None, references: Mapping[str | None, Counts] | None, trace: Follow | None, first: bool
    ) -> Version:
        """Another version with the same settings and its own references; the first one may have those given for all."""
        if references is None and first:
            kept = self.parts.segments.references, None if self.overall is None else self.overall.segments.detector
            made = Version.first(self.parts.segments.detector, kept[1], kept[0], trace)
        else:
            by_segment = {segment: counts for segment, counts in (references or {}).items() if segment is not None}
            whole = (references or {}).get(None)
            own, beside = (whole, None) if self.overall is None else (None, _with(self.overall, whole))
            made = Version.first(_with(self.parts, None if by_segment else own), beside, by_segment or None, trace)
        made.name = name
        made.parts.segments.most = self.parts.segments.most
        for streams in made.streams:
            streams.version = name
        return made

    @property
    def streams(self) -> tuple[Streams, ...]:
        """The overall stream, if watched beside the segments, and the segments."""
        return (self.parts,) if self.overall is None else (self.overall, self.parts)

    def take(self, batch: Batch, names: Sequence[str]) -> list[Placed]:
        if self.overall is None:
            return self.parts.take(batch, names)
        found = self.parts.take(batch, names) if batch.keys is not None else []
        return found + self.overall.take(replace(batch, keys=None), ())

    def of(self, segment: str | None) -> Streams:
        return self.parts if segment is not None or self.overall is None else self.overall

    @property
    def open_since(self) -> dict[str | None, np.datetime64 | None]:
        return {segment: time for streams in self.streams for segment, time in streams.open_since.items()}

    def accept(self, segment: str | None, time: np.datetime64 | None) -> Finding | None:
        """Make the level since the alarm the new normal; None if no drift is open there."""
        streams = self.of(segment)
        if segment not in streams.segments:
            raise KeyError(f"no segment {segment!r}")
        return streams.accept(segment, time)

    # State ----------------------------------------------------------------------------------------------------

    def about(self) -> list[Any]:
        return [self.name, microseconds(self.time), self.event, self.block, self.retired]

    def sections(self) -> Iterator[tuple[str, Pieces]]:
        yield "segments", self.parts.pieces()
        if self.overall is not None:
            yield "overall", self.overall.pieces()

    @classmethod
    def from_state(cls, about: Any, sections: Mapping[str, memoryview], prefix: str, trace: Follow | None) -> Self:
        name, time, event, block, retired = about
        if not isinstance(name, str | None) or not isinstance(retired, bool):
            raise TypeError(f"{about!r} is no version")
        overall = None
        if f"{prefix}overall" in sections:
            overall = Streams.from_bytes(sections[f"{prefix}overall"], None, name)
            if [*overall.segments] not in ([], [None]):
                raise ValueError("the overall stream of the saved watch has segments")
        parts = Streams.from_bytes(sections[f"{prefix}segments"], trace, name)
        event, block = (check_whole(number, "a prediction", 0) for number in (event, block))
        return cls(name, parts, overall, None if time is None else moment(time), event, block, retired)


def _with(streams: Streams, reference: Counts | None) -> Detector:
    detector = streams.segments.detector
    if "reference" not in detector.parameters:
        return detector
    return type(detector)(**detector.parameters | {"reference": reference})


def checked_references(given: Mapping[str, Any], labels: Labels) -> VersionReferences:
    """Counts by version and segment, None for the overall stream; a ValueError names an invalid reference."""
    found: VersionReferences = {}
    for version, reference in given.items():
        own = reference if isinstance(reference, Mapping) else {None: reference}
        try:
            found[version] = {segment: confusion_counts(counts, labels) for segment, counts in own.items()}
        except ValueError as error:
            raise ValueError(f"version {version!r}: {error}") from None
        if not all(isinstance(name, str | None) for name in (version, *own)):
            raise TypeError(f"{version!r} of {[*own]!r}: versions and segments are names")
    return found

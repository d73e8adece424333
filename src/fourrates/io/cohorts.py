"""Predictions in the order they were made, with the labels that have arrived for them.

A change is dated correctly only if events are watched in the order of their *predictions*. :class:`Cohorts` sorts pairs
that way and holds those whose neighbours may still get a label. They are watched again next time, with more labels. A
time is *ripe* when hardly any label is still missing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
import numpy as np

from fourrates.events.batch import Batch
from fourrates.join import LabelJoin
from fourrates.state import pack, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.join.paired import Pairs

PREDICTION = np.dtype([("time", "<i8"), ("row", "<i8"), ("key", "<i4"), ("version", "<i4"), ("file", "<i4")])
PAIR = np.dtype([("number", "<i8"), ("truth", "<u2"), ("pred", "<u2"), ("probabilities", "<f4", 2)])
KIND = "Cohorts"
HOUR = 3_600_000_000  # microseconds
HOURS = 24 * 366  # delays counted separately
ALMOST_ALL, SPARE = 0.99, 1.5  # a time is ripe after SPARE times the delay that ALMOST_ALL labels stay below


Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class About(msgspec.Struct):
    """What is saved beside the columns."""

    names: list[str]
    versions: list[str]
    files: list[str]
    first: Count
    dropped: int


class Cohorts:
    """Predictions waiting for a label, and pairs that are not ripe; the tag of a prediction is its number."""

    def __init__(self, join: LabelJoin) -> None:
        self.join = join
        self.names: list[str] = []
        self.versions: list[str] = []
        self.files: list[str] = []
        self.new = 0  # pairs completed since this object was made or loaded
        self._first = 0  # number of the first prediction that is held
        self._dropped = -(2**62)  # anything earlier has been dropped
        self._predictions = np.empty(0, PREDICTION)
        self._pairs = np.empty(0, PAIR)
        self._delays = np.zeros(HOURS, np.int64)  # of labels, in hours
        self._came: list[tuple[Any, npt.NDArray[np.float64] | None]] = []  # new pairs, and when they were completed

    def add(
        self, rows: Any, keys: Any, versions: Any, times: npt.NDArray[np.float64] | None, file: int
    ) -> npt.NDArray[np.int64]:
        made = np.zeros(rows.size, PREDICTION)
        made["row"], made["key"], made["file"] = rows, 0 if keys is None else keys, file
        made["version"] = -1 if versions is None else versions
        made["time"] = 0 if times is None else np.where(np.isfinite(times), times, 0)
        first = self._first + self._predictions.size
        self._predictions = np.concatenate([self._predictions, made])
        return np.arange(first, first + rows.size)

    def pair(self, pairs: Pairs, times: npt.NDArray[np.float64] | None) -> None:
        """Hold pairs; `times` are when they were completed, if known."""
        held = pairs.tags >= self._first
        held[held] = self._predictions["time"][pairs.tags[held] - self._first] >= self._dropped
        made = np.empty(int(held.sum()), PAIR)
        made["number"], made["truth"], made["pred"] = pairs.tags[held], pairs.truths[held], pairs.preds[held]
        made["probabilities"] = pairs.probabilities[held]
        self._pairs = np.concatenate([self._pairs, made])
        self.new += made.size
        self._came.append((made["number"], None if times is None else times[held]))

    @property
    def times(self) -> npt.NDArray[np.datetime64]:
        """When the held predictions were made."""
        return self._predictions["time"].astype(np.int64).view("M8[us]")

    def ripe_until(self) -> int | None:
        """The time, in microseconds, before which hardly any label is missing; None if unknown.

        A label without a time counts as arriving with the latest predictions.
        """
        for numbers, times in self._came:
            predicted = self._predictions["time"][numbers - self._first]
            latest = self._predictions["time"].max(initial=0)
            came = latest if times is None else np.where(np.isfinite(times), times, latest)
            hours = np.clip((came - predicted) // HOUR, 0, HOURS - 1).astype(np.int64)
            self._delays += np.bincount(hours, minlength=HOURS)
        self._came.clear()
        total = int(self._delays.sum())
        if not total or not self._predictions.size:
            return None
        wait = SPARE * HOUR * (1 + int(np.searchsorted(np.cumsum(self._delays), ALMOST_ALL * total)))
        times = self._predictions["time"]
        # Nothing is known yet of delays longer than the time observed so far.
        return int(times.max() - wait) if times.max() - times.min() > 2 * wait else None

    def ordered(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """All pairs in the order of their predictions, and these predictions."""
        by_number = np.argsort(self._pairs["number"], kind="stable")  # quick, as they are kept in order
        times = self._predictions["time"][self._pairs["number"][by_number] - self._first]
        self._pairs = self._pairs[by_number[np.argsort(times, kind="stable")]]
        return self._pairs, self._predictions[self._pairs["number"] - self._first]

    def completed(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """All pairs in the order in which they were completed, and their predictions as if made then."""
        made = self._predictions[self._pairs["number"] - self._first]
        known = [np.full(numbers.size, np.nan) if times is None else times for numbers, times in self._came]
        times = np.concatenate([np.empty(0), *known])
        made["time"] = np.where(np.isfinite(times), times, made["time"])
        return self._pairs, made

    def drop(self, until: int | None = None) -> None:
        if until is None:
            until = int(self._predictions["time"].max(initial=self._dropped)) + 1
        kept = self._predictions["time"] >= until
        self._pairs = self._pairs[kept[self._pairs["number"] - self._first]]
        first = int(np.argmax(kept)) if kept.any() else kept.size  # numbers do not change, as only the first ones leave
        self._predictions, self._first, self._dropped = self._predictions[first:], self._first + first, until

    def batches(
        self,
        timed: bool,
        keyed: bool,
        sampled: bool = False,
        completed: bool = False,
        cut: int | None = None,
    ) -> Iterator[Batch]:
        """All pairs as batches of one file each, in the order of the predictions or in that of completion.

        Those in the order of the predictions may be cut at a time too, which begins a batch.
        """
        pairs, predictions = self.completed() if completed else self.ordered()
        edges = {0, *(np.flatnonzero(np.diff(predictions["file"])) + 1).tolist(), pairs.size}
        if cut is not None:
            edges.add(int(np.searchsorted(predictions["time"], cut)))
        for start, stop in pairwise(sorted(edges)):
            part = slice(start, stop)
            versions = predictions["version"][part].astype(np.int64)
            batch = Batch(
                pairs["truth"][part].astype(np.uint16),
                pairs["pred"][part].astype(np.uint16),
                self.files[predictions["file"][start]],
                predictions["row"][part].astype(np.int64),
                predictions["time"][part].astype(np.int64).view("M8[us]") if timed else None,
                predictions["key"][part].astype(np.int64) if keyed else None,
                versions=versions if versions[0] >= 0 else None,
                version_names=self.versions,
            )
            yield batch.sampled(pairs["probabilities"][part].astype(np.float32)) if sampled else batch

    def to_bytes(self) -> bytes:
        about = About(self.names, self.versions, self.files, self._first, self._dropped)
        parts = {"predictions": self._predictions, "pairs": self._pairs, "delays": self._delays.astype("<i8")}
        return pack(
            KIND,
            msgspec.to_builtins(about),
            join=self.join.to_bytes(),
            **{name: part.tobytes() for name, part in parts.items()},
        )

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        state = unpack(saved)
        try:
            made = cls(LabelJoin.from_bytes(bytes(state.sections["join"])))
            about = msgspec.convert(state.about, About)
            made.names, made.versions, made.files = about.names, about.versions, about.files
            made._first, made._dropped = about.first, int(np.int64(about.dropped))
            made._predictions = np.frombuffer(state.sections["predictions"], PREDICTION)
            made._pairs = np.frombuffer(state.sections["pairs"], PAIR)
            made._delays = np.frombuffer(state.sections["delays"], "<i8").astype(np.int64)
            made._check(len(made.join.parameters["labels"]))
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the saved {KIND} are not sound: {error}") from None
        return made

    def _check(self, classes: int) -> None:
        predictions, numbers = self._predictions, self._pairs["number"] - self._first
        least = 0 if self.versions else -1
        for name, low, most in (
            ("key", 0, max(1, len(self.names))),
            ("version", least, len(self.versions)),
            ("file", 0, len(self.files)),
        ):
            if predictions.size and not low <= predictions[name].min() <= predictions[name].max() < most:
                raise ValueError(f"a prediction refers to a {name} that is not there")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < predictions.size:
            raise ValueError("a pair refers to a prediction that is not there")
        if self._pairs.size and max(self._pairs["truth"].max(), self._pairs["pred"].max()) >= classes:
            raise ValueError("a pair has a class that is not there")
        if not ((self._pairs["probabilities"] >= 0) & (self._pairs["probabilities"] <= 1)).all():
            raise ValueError("a pair has probabilities that are none")
        if self._delays.size != HOURS or self._delays.min() < 0:
            raise ValueError("the delays are none")

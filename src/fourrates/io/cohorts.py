"""Predictions in the order they were made, with the labels that have arrived for them.

A change is dated correctly only if events are watched in the order of their *predictions*. :class:`Cohorts` sorts pairs
that way and holds those whose neighbours may still get a label: they are watched again next time, with more labels. A
time is *ripe* when hardly any label is still missing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fourrates.events.batch import Batch
from fourrates.join import LabelJoin
from fourrates.state import pack, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.join.paired import Pairs

PREDICTION = np.dtype([("time", "<i8"), ("row", "<i8"), ("key", "<i4"), ("version", "<i4"), ("file", "<i4")])
PAIR = np.dtype([("number", "<i8"), ("truth", "<u2"), ("pred", "<u2")])
KIND = "Cohorts"
HOUR = 3_600_000_000  # microseconds
HOURS = 24 * 366  # delays counted separately
ALMOST_ALL, SPARE = 0.99, 1.5  # a time is ripe after SPARE times the delay that ALMOST_ALL labels stay below


class Cohorts:
    """Predictions waiting for a label, and pairs that are not ripe.

    Parameters
    ----------
    join : LabelJoin
        Joins the two; the tag of a prediction is its number.

    Attributes
    ----------
    names, versions, files : list of str
        Segments, versions and files of the predictions.
    late : int
        Labels that arrived after their prediction was ripe.
    new : int
        Pairs completed since this object was made or loaded.
    """

    def __init__(self, join: LabelJoin) -> None:
        self.join = join
        self.names: list[str] = []
        self.versions: list[str] = []
        self.files: list[str] = []
        self.late = self.new = 0
        self._first = 0  # number of the first prediction that is held
        self._dropped = -(2**62)  # anything earlier has been dropped
        self._predictions = np.empty(0, PREDICTION)
        self._pairs = np.empty(0, PAIR)
        self._delays = np.zeros(HOURS, np.int64)  # of labels, in hours
        self._came: list[tuple[Any, npt.NDArray[np.float64] | None]] = []  # pairs whose delay is not counted yet

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
        """Hold pairs; `times` are those of their labels, if known."""
        held = pairs.tags >= self._first
        held[held] = self._predictions["time"][pairs.tags[held] - self._first] >= self._dropped
        self.late += int((~held).sum())
        made = np.empty(int(held.sum()), PAIR)
        made["number"], made["truth"], made["pred"] = pairs.tags[held], pairs.truths[held], pairs.preds[held]
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
        predictions = self._predictions[self._pairs["number"] - self._first]
        order = np.lexsort([self._pairs["number"], predictions["time"]])
        return self._pairs[order], predictions[order]

    def drop(self, until: int | None = None) -> None:
        if until is None:
            until = int(self._predictions["time"].max(initial=self._dropped)) + 1
        kept = self._predictions["time"] >= until
        self._pairs = self._pairs[kept[self._pairs["number"] - self._first]]
        first = int(np.argmax(kept)) if kept.any() else kept.size  # numbers do not change: only the first ones leave
        self._predictions, self._first, self._dropped = self._predictions[first:], self._first + first, until

    def batches(self, timed: bool, keyed: bool, until: int | None = None, since: int | None = None) -> Iterator[Batch]:
        """Pairs whose predictions are from before or since a time, as batches of one file each."""
        pairs, predictions = self.ordered()
        if until is not None or since is not None:
            times = predictions["time"]
            chosen = times < until if until is not None else times >= since
            pairs, predictions = pairs[chosen], predictions[chosen]
        edges = [0, *(np.flatnonzero(np.diff(predictions["file"])) + 1).tolist(), pairs.size]
        for start, stop in pairwise(edges):
            part = slice(start, stop)
            if stop > start:
                versions = predictions["version"][part].astype(np.int64)
                yield Batch(
                    pairs["truth"][part].astype(np.uint16),
                    pairs["pred"][part].astype(np.uint16),
                    self.files[predictions["file"][start]],
                    predictions["row"][part].astype(np.int64),
                    predictions["time"][part].astype(np.int64).view("M8[us]") if timed else None,
                    predictions["key"][part].astype(np.int64) if keyed else None,
                    versions=versions if versions[0] >= 0 else None,
                    version_names=self.versions,
                )

    # State ----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        about = {
            "names": self.names,
            "versions": self.versions,
            "files": self.files,
            "first": self._first,
            "late": self.late,
            "dropped": self._dropped,
        }
        parts = {"predictions": self._predictions, "pairs": self._pairs, "delays": self._delays.astype("<i8")}
        return pack(KIND, about, join=self.join.to_bytes(), **{name: part.tobytes() for name, part in parts.items()})

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        state = unpack(saved)
        try:
            made = cls(LabelJoin.from_bytes(bytes(state.sections["join"])))
            match state.about:
                case {
                    "names": list(names),
                    "versions": list(versions),
                    "files": list(files),
                    "first": int(first),
                    "late": int(late),
                    "dropped": int(dropped),
                }:
                    made.names, made.versions, made.files = names, versions, files
                    made._first, made.late, made._dropped = first, late, int(np.int64(dropped))
                case _:
                    raise ValueError("it does not say what it holds")
            made._predictions = np.frombuffer(state.sections["predictions"], PREDICTION)
            made._pairs = np.frombuffer(state.sections["pairs"], PAIR)
            made._delays = np.frombuffer(state.sections["delays"], "<i8").astype(np.int64)
            made._check(len(made.join.parameters["labels"]))
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the saved {KIND} are not sound: {error}") from None
        return made

    def _check(self, classes: int) -> None:
        predictions, numbers = self._predictions, self._pairs["number"] - self._first
        if (
            not all(isinstance(text, str) for text in (*self.names, *self.versions, *self.files))
            or min(self._first, self.late) < 0
        ):
            raise ValueError("names or counts are none")
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
        if self._delays.size != HOURS or self._delays.min() < 0:
            raise ValueError("the delays are none")

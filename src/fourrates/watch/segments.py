"""The segments of a watch by name, a bank of them or a detector for each; and their state.

Many segments of FourRates or LFR are a :class:`~fourrates.Bank`, whose keys are their numbers; one stream alone, and
the segments of other detectors, are objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.baselines import DETECTORS
from fourrates.detectors import Detector, FourRates
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import confusion_counts
from fourrates.io import Batch, InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.bank import Bank
    from fourrates.findings import Finding
    from fourrates.state import Pieces, Saved

MAX_SEGMENTS = 1_000_000  # of files; each takes about a kilobyte


class Groups(NamedTuple):
    """The events of a batch by segment; those of segment `present[i]` are at `order[starts[i]:ends[i]]`."""

    numbers: npt.NDArray[np.int64] | None  # the segment of each event
    order: npt.NDArray[np.int64] | None  # None if all events are in one segment
    present: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, numbers: npt.NDArray[np.int64] | None, size: int) -> Groups:
        """Group events by the numbers of their segments; without numbers all are in segment 0."""
        if numbers is None:
            return cls(None, None, np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([size]))
        # 16 bits are sorted by radix
        order = np.argsort(numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers, kind="stable")
        by_segment = numbers[order]
        starts = np.flatnonzero(np.diff(by_segment, prepend=-1))
        return cls(numbers, order, by_segment[starts], starts, np.append(starts[1:], size))

    def positions(self, i: int) -> npt.NDArray[np.int64] | None:
        return None if self.order is None else self.order[self.starts[i] : self.ends[i]]


class Segments(Mapping[str | None, Detector]):
    """Each segment as a detector, by its name; a stream without segments has the name None."""

    def __init__(self, detector: Detector, references: Mapping[str, Any] | None) -> None:
        self.detector, self.most = detector, MAX_SEGMENTS
        self.references = None if references is None else dict(references)
        self.names: list[str | None] = []  # by number
        self.bank: Bank | None = None
        self.detectors: list[Detector] = []  # by number, if there is no bank
        self._numbers: dict[str | None, int] = {}
        self._keys: Sequence[str] = ()  # the names that the keys of the last batch refer to
        self._of_key = np.empty(0, np.int64)  # segment number by key there; -1 for none yet

    def __getitem__(self, name: str | None) -> Detector:
        return self.at(self._numbers[name])

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self.names)

    def at(self, number: int) -> Detector:
        return self.detectors[number] if self.bank is None else self.bank[number]

    def begin(self, names: Sequence[str | None]) -> range:
        """Create the new streams among these names; returns their numbers. Too many are an InputError."""
        first, new = len(self.names), [name for name in dict.fromkeys(names) if name not in self._numbers]
        if first + len(new) > self.most:
            raise InputError(f"more than {self.most:,} segments (max_segments)")
        if None not in names and self.bank is None and isinstance(self.detector, RecordDetector):
            from fourrates.bank import Bank  # not needed for one stream alone

            self.bank = Bank(self.detector, reference=None if self.references is None else {})
        for name in new:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
            if self.bank is None:
                self.detectors.append(self.detector.clone())
            elif (reference := self.reference_of(name)) is not None:
                self.bank.add_references({number: reference})
        return range(first, len(self.names))

    def reference_of(self, name: str | None) -> Any:
        return self.references.get(name) if self.references and name is not None else None

    def number(self, name: str | None) -> int:
        return self._numbers[name]

    def starting(self, number: int) -> Detector:
        """A new detector for a stream, with the stream's own reference if it has one."""
        reference = self.reference_of(self.names[number])
        if reference is None:
            return self.detector.clone()
        return type(self.detector)(**self.detector.parameters | {"reference": reference})

    def numbers(self, keys: npt.NDArray[Any], names: Sequence[str]) -> tuple[npt.NDArray[np.int64], range]:
        """The segment number of each event by its key, a position in the names; and the new segments."""
        if names is not self._keys:
            self._keys, self._of_key = names, np.empty(0, np.int64)
        if self._of_key.size < len(names):
            self._of_key = np.append(self._of_key, np.full(len(names) - self._of_key.size, -1))
        numbers, begun = self._of_key[keys], range(0)
        if (numbers < 0).any():
            new = np.unique(keys[numbers < 0])
            begun = self.begin([names[key] for key in new.tolist()])
            self._of_key[new] = [self._numbers[names[key]] for key in new.tolist()]
            numbers = self._of_key[keys]
        return numbers, begun

    def open(self) -> list[int]:
        if self.bank is not None:
            return [int(key) for key in self.bank.open_keys()]  # type: ignore[call-overload]
        return [number for number, detector in enumerate(self.detectors) if getattr(detector, "open", None) is not None]

    def accept(self, name: str | None) -> Finding | None:
        number = self._numbers[name]
        if self.bank is not None:
            keyed = self.bank.accept(number, force=True)
            return None if keyed is None else keyed.finding
        detector = self.detectors[number]
        if not isinstance(detector, FourRates):
            raise ValueError(f"{type(detector).__name__} holds no normal, so there is nothing to accept")
        return detector.accept(force=True)

    def set_budget(self, arl: float) -> None:
        if not isinstance(self.detector, FourRates):
            raise ValueError(f"the budget of {type(self.detector).__name__} cannot be changed later")
        self.detector = FourRates(**self.detector.parameters | {"arl": arl, "warn": None})
        if self.bank is not None:
            self.bank = self.bank.with_budget(arl)
        for number, old in enumerate(self.detectors):
            changed = FourRates(**old.parameters | {"arl": arl, "warn": None})
            changed.restore(old.record_bytes)
            self.detectors[number] = changed

    def take(self, batch: Batch, groups: Groups) -> dict[int, list[Finding]]:
        found: dict[int, list[Finding]] = {}
        if self.bank is not None:
            self.bank.update_coded(groups.numbers, batch.truths, batch.preds, batch.strata)
            for keyed in self.bank.findings:
                found.setdefault(int(keyed.key), []).append(keyed.finding)  # type: ignore[call-overload]
            return found
        for i, number in enumerate(groups.present.tolist()):
            part = groups.positions(i)
            truths, preds = (column if part is None else column[part] for column in (batch.truths, batch.preds))
            strata = batch.strata if part is None or batch.strata is None else batch.strata[part]
            done = 0
            while done < truths.size:
                taken, findings = self.detectors[number].update_coded(truths, preds, done, strata)
                done += taken
                if findings:
                    found.setdefault(number, []).extend(findings)
        return found

    def progress(self, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Events of these streams, and for each the event that opened its warning, or -1."""
        if self.bank is not None:
            return self.bank.progress(numbers)
        detectors = [self.detectors[number] for number in numbers.tolist()]
        since = [-1 if detector.warning_since is None else detector.warning_since for detector in detectors]
        return np.array([detector.events for detector in detectors], np.int64), np.array(since, np.int64)

    # State ----------------------------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, bytes | memoryview | Pieces]]:
        about: dict[str, Any] = {"detector": type(self.detector).__name__, "streams": self.names}
        sections: dict[str, bytes | memoryview | Pieces] = {"start": self.detector.clone().to_bytes()}
        if self.bank is not None:
            sections["bank"] = self.bank.pieces()
        else:
            sections |= {f"stream{i}": detector.to_bytes() for i, detector in enumerate(self.detectors)}
        if self.references is not None:
            labels = self.detector.labels
            about["references"] = {
                name: confusion_counts(counts, labels).tolist() for name, counts in self.references.items()
            }
        return about, sections

    @classmethod
    def from_state(cls, found: Saved) -> Segments:
        about, sections = found.about, found.sections
        kind = DETECTORS.get(about["detector"])
        if kind is None:
            raise ValueError(f"a state of the detector {about['detector']!r}, which this release does not know")
        start = kind.from_bytes(bytes(sections["start"]))
        if start.events:
            raise ValueError("the saved run begins with a detector that has seen events")
        references = None
        if "references" in about:
            references = {name: confusion_counts(counts, start.labels) for name, counts in about["references"].items()}
        streams = cls(start, references)
        streams.names = _checked_names(about["streams"])
        streams._numbers = {name: number for number, name in enumerate(streams.names)}
        if "bank" in sections:
            from fourrates.bank import Bank

            streams.bank = Bank.from_bytes(bytes(sections["bank"]))
            if None in streams._numbers or {*streams.bank} != {*range(len(streams))}:
                raise ValueError(f"a bank of {len(streams.bank)} streams for {len(streams)} names")
            _check_same(streams.bank.detector, start)
        else:
            streams.detectors = [kind.from_bytes(bytes(sections[f"stream{i}"])) for i in range(len(streams))]
            for detector in streams.detectors:
                _check_same(detector, start)
        return streams


def _checked_names(names: Any) -> list[str | None]:
    if names == [None]:
        return [None]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise ValueError("the saved run has streams whose names are no names, or not different ones")
    return [*names]


def _check_same(detector: Detector, start: Detector) -> None:
    if type(detector) is not type(start) or detector.parameters != start.parameters:
        raise ValueError(f"a stream of {detector!r} in a run of {start!r}")

"""Many keyed streams, one record each. A customer, a shop or a model, watched as by its own detector.

:class:`Bank` reads arrays of (key, y_true, y_pred) in order of arrival and gives the drifts with their keys, the same
as one detector for each key would. The budget is global, as `arl` counts the events of all streams together.
:meth:`Bank.discoveries` names streams so that few of them are named in error.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.bank.discoveries import discovered, e_values, evidence_shares
from fourrates.bank.keys import MOST, OTHER, Keys, Sorted, canonical, classify_keys, key_at, key_from_json, key_to_json
from fourrates.bank.references import References
from fourrates.bank.taking import Batch, by_stream, processors, take
from fourrates.checks import check_whole
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates, confusion_counts, normal_of_counts
from fourrates.detectors.lfr import LFR
from fourrates.exclusive import ExclusiveUse, exclusively
from fourrates.findings import KeyedFinding
from fourrates.kernel.record import Arena
from fourrates.labels import Labels
from fourrates.record import HEAD, KIND, head_of
from fourrates.state import MAX_STATE, Pieces, Saved, pieces, read_state, unpack

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.uint16]
KINDS: dict[str, type[RecordDetector]] = {"FourRates": FourRates, "LFR": LFR}


class Bank:
    """Many keyed streams, each watched as by its own detector.

    Parameters
    ----------
    detector : FourRates or LFR, optional
        The settings; its own events do not matter. ``FourRates()`` if not given.
    arl : float, optional
        Instead of a detector: ``FourRates(arl=arl)``. Each event belongs to one stream, so one false alarm in this
        number of events of each stream is one in this number of events of the whole bank.
    reference : K x K counts, pair of arrays, or mapping from keys to such, optional
        The classifier as you shipped it, for FourRates, one for all streams, or one for each key. A key that is not in
        the mapping is compared with its own past.
    max_streams : int
        The limit on streams; a batch that would exceed it is rejected as a whole.

    Attributes
    ----------
    events : int
        Events of all streams.
    findings : list of KeyedFinding
        All findings of the last call, in order, drifts and their ends.
    threads : int
        The most threads for a large batch; by default the processors of this process. Drifts do not depend on it. Set
        it to 1 if others need the processors.

    Examples
    --------
    Three shops; the classifier of one loses most of its true positives:

    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(8)
    >>> shop = random.choice(["Lyon", "Oslo", "Rome"], 30_000)
    >>> y_true = random.random(30_000) < 0.3
    >>> wrong = np.where((shop == "Oslo") & (np.arange(30_000) > 20_000) & y_true, 0.7, 0.1)
    >>> y_pred = y_true ^ (random.random(30_000) < wrong)

    >>> bank = fr.Bank(arl=1_000_000)
    >>> for found in bank.update(shop, y_true, y_pred):
    ...     print(found)
    Oslo: drift at 6,744, started about 6,714: tpr down: 0.897 -> 0.116
    >>> len(bank), bank["Rome"].events, round(bank["Rome"].rates["tpr"].estimate, 2)
    (3, 10162, 0.9)
    """

    def __init__(
        self,
        detector: RecordDetector | None = None,
        *,
        arl: float | None = None,
        reference: Any = None,
        max_streams: int = MOST,
    ) -> None:
        if detector is not None and arl is not None:
            raise ValueError(f"arl {arl!r} and a detector: give the detector its arl")
        detector = detector or FourRates(100_000 if arl is None else arl)
        if not isinstance(detector, RecordDetector):
            raise TypeError(f"the detector is neither a FourRates nor an LFR: {detector!r}")
        if reference is not None:
            _check_without_reference(detector)
        if isinstance(reference, Mapping):
            self._begin(detector.clone(), References(detector.labels, reference), max_streams)
        else:
            self._begin(detector.clone() if reference is None else _referred(detector, reference), None, max_streams)

    def _begin(self, detector: RecordDetector, references: References | None, max_streams: int) -> None:
        self._detector, self._references = detector, references
        self._arena = Arena(detector.rules)
        self._keys = Keys(max_streams)
        self._use = ExclusiveUse("this bank")
        self.events = 0
        self.findings: list[KeyedFinding] = []
        self._left = 0  # streams evicted since the present period began
        self.threads = processors()

    @exclusively
    def add_references(self, reference: Mapping[Any, Any]) -> None:
        """Give future keys their own references, in a bank that was made with a mapping of them."""
        if self._references is None:
            raise ValueError("this bank was not made with references by key")
        self._check_to_come(reference)
        self._references.add(reference)

    def _check_to_come(self, reference: Mapping[Any, Any]) -> None:
        """Raise a ValueError if a stream without a reference has one here."""
        own: Mapping[Hashable, Any] = self._references or {}
        for key in reference:
            if canonical(key) not in own and key in self:
                raise ValueError(f"key {key!r} is in the bank already, without a reference")

    # Events ---------------------------------------------------------------------------------------------------

    def update(
        self,
        keys: Any,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        strata: npt.ArrayLike | None = None,
        probability: Any = None,
    ) -> list[KeyedFinding]:
        """Process events of many streams, in order of arrival, and return the drifts; `findings` has everything.

        The whole batch is checked first, so an error changes nothing.

        Parameters
        ----------
        keys : array of keys
            The stream of each event, as integers, strings or any hashables, also of different types; Arrow arrays, best
            dictionary-encoded. A new key begins a stream. Keys that are equal are one key, so 1.0 and True are the key
            1.
        y_true, y_pred : array of labels
            True and predicted labels.
        strata : array of int, optional
            For FourRates with strata, the stratum of each event, from 0 up.
        probability : mapping or array, optional
            For FourRates with ``sampled=True``, as there.
        """
        truths, preds = self.labels.encode(y_true, "y_true"), self.labels.encode(y_pred, "y_pred")
        own = self._detector
        return self._update(keys, own._in_strata(truths, own.codes_of(probability, truths.size, strata)), preds)

    @property
    def labels(self) -> Labels:
        """The classes, in the order of their codes."""
        return self._detector.labels

    @property
    def detector(self) -> RecordDetector:
        """A detector with the settings of the streams, and no events."""
        return self._detector.clone()

    def _update(self, keys: Any, truths: Codes, preds: Codes) -> list[KeyedFinding]:
        asked = classify_keys(keys)  # which may ask keys that use this bank
        if not asked.size == truths.size == preds.size:
            raise ValueError(f"keys has {asked.size} events, y_true has {truths.size}, y_pred has {preds.size}")
        return self._take(asked, truths, preds)

    @exclusively
    def _take(self, asked: Sorted, truths: Codes, preds: Codes) -> list[KeyedFinding]:
        before = len(self)
        slots, numbers, kinds = self._keys.take(asked)
        try:
            if numbers.size:
                self._start(numbers, kinds)
        except BaseException:
            self._keys.truncate(before)
            raise
        batch = Batch(*by_stream(slots, truths, preds, len(self)), clock=self.events)
        try:
            found = take(self._arena, self._detector, batch, self.threads)
        finally:
            self.events += batch.slots.size
        self.findings = [
            KeyedFinding(self._keys.name(head.key, head.kind), event, finding)
            for event, head, findings in found
            for finding in findings
        ]
        return [keyed for keyed in self.findings if keyed.finding.kind == "drift"]

    def update_coded(self, keys: Any, truths: Codes, preds: Codes, strata: Any = None) -> list[KeyedFinding]:
        """As :meth:`update`, with events given as class codes in the order of :attr:`labels`."""
        own = self._detector._in_strata(self.labels.copy(truths, "truths"), strata)
        return self._update(keys, own, self.labels.copy(preds, "preds"))

    def _start(self, numbers: Array, kinds: Array) -> None:
        """Begin the streams of new keys."""
        first = self._arena.size
        if self._references is None:
            self._arena.begin(numbers, kinds)
            return
        references = self._references.numbers(list(map(self._keys.name, numbers.tolist(), kinds.tolist())))
        self._arena.begin(numbers, kinds)
        self._arena.set_reference(first, *references)

    @exclusively
    def accept(self, key: Hashable, reference: Any = None, *, force: bool = False) -> KeyedFinding | None:
        """Make the level of a stream since its alarm the new normal; as :meth:`fourrates.FourRates.accept`.

        Parameters
        ----------
        key : hashable
            Which stream.
        reference : K x K counts, or a pair of arrays, optional
            The new normal instead, in a bank that was made with references by key.
        force : bool
            Also if there are fewer than 30 observations of a class since the alarm.
        """
        slot = int(self._slots([key])[0])
        detector = self._detector
        if not isinstance(detector, FourRates):
            raise ValueError(f"{type(detector).__name__} holds no normal, so there is nothing to accept")
        if reference is not None and self._references is None:
            raise ValueError("this bank was not made with references by key")
        counts = None if reference is None else confusion_counts(reference, self.labels)
        finding = detector._life_of(self._arena.view(slot)).accept(normal_of_counts(counts, self.labels), force)
        if counts is not None and self._references is not None:
            self._references.replace(key, counts)
        self.findings = [] if finding is None else [KeyedFinding(canonical(key), self.events - 1, finding)]
        return self.findings[0] if self.findings else None

    def open_keys(self) -> list[Hashable]:
        """The keys of the streams with an open drift."""
        heads = self._arena.heads()
        numbers, kinds = (heads[name][heads["open"]].tolist() for name in ("key", "kind"))
        return list(map(self._keys.name, numbers, kinds))

    def progress(self, keys: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """How many events each of these streams has had, and which of them opened its present warning; -1 for none."""
        events, since = self._arena.progress(self._slots(keys))
        return events, since

    def _slots(self, keys: Any) -> Array:
        """The slots of these streams; an unknown key is a KeyError."""
        slots = self._keys.find(classify_keys(keys))
        if (slots < 0).any():
            missing = int((slots < 0).argmax())
            raise KeyError(f"{key_at(keys, missing)!r} at position {missing} of keys is not in the bank")
        return slots

    # Streams --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._keys.size

    def __iter__(self) -> Iterator[Hashable]:
        """The keys, in the order in which their streams began."""
        heads = self._arena.heads()
        for number, kind in zip(heads["key"].tolist(), heads["kind"].tolist(), strict=True):
            yield self._keys.name(number, kind)

    def __contains__(self, key: object) -> bool:
        try:
            canonical(key)
        except (TypeError, ValueError):
            return False
        return bool(self._keys.find(classify_keys([key]))[0] >= 0)

    def __getitem__(self, key: Hashable) -> RecordDetector:
        """A copy of the stream's detector; events given to it are not the bank's."""
        key = canonical(key)
        if (slot := int(self._keys.find(classify_keys([key]))[0])) < 0:
            raise KeyError(key)
        record = self._arena.record(slot)
        reference = None if self._references is None else self._references.get(key)
        detector = self._detector.clone() if reference is None else _referred(self._detector, reference)
        detector.restore(record)
        return detector

    @property
    def nbytes(self) -> int:
        """Memory of the streams, in bytes, for states and the index of integers; keys of other kinds are Python's."""
        return int(self._arena.nbytes + self._keys.nbytes)

    @exclusively
    def evict(self, keys: Any = None, *, idle: int | None = None) -> int:
        """Forget streams, and return how many.

        Each call moves all others together, so evict many at once rather than one at a time.

        Parameters
        ----------
        keys : array of keys, optional
            The streams to evict; an unknown key is a KeyError, and nothing is evicted. A drift open there ends without
            a verdict: `findings` has an acceptance.
        idle : int, optional
            Those whose last event is older than the bank's latest events of this number; not those with an open drift.
        """
        if (keys is None) == (idle is None):
            raise ValueError("evict needs keys or idle, one of them")
        heads = self._arena.heads()
        if idle is not None:
            if idle < 0:
                raise ValueError(f"idle {idle!r} is not a number of events")
            keep = (heads["last"] >= self.events - idle) | heads["open"]
        else:
            keep = np.ones(len(self), np.bool_)
            keep[self._slots(keys)] = False
        self.findings = self._closed(np.flatnonzero(heads["open"] & ~keep))
        kept = np.flatnonzero(keep)
        evicted = len(self) - kept.size
        self._left += evicted
        self._arena.keep(kept)
        self._keys.arrange(heads["key"][kept], heads["kind"][kept], self._keys.names)
        return evicted

    def _closed(self, slots: Array) -> list[KeyedFinding]:
        """End the open drifts of these streams without a verdict."""
        found = []
        for slot in slots.tolist():
            head, detector = head_of(self._arena.view(slot)), self._detector
            assert isinstance(detector, FourRates)
            if (finding := detector._life_of(self._arena.view(slot)).accept(force=True)) is not None:
                found.append(KeyedFinding(self._keys.name(head.key, head.kind), self.events - 1, finding))
        return found

    @exclusively
    def merge(self, other: Bank) -> None:
        """Merge the streams of another bank, as if its events had followed those of this one.

        Its keys must be others, its settings the same. The other bank stays as it is.
        """
        if other is self:
            raise ValueError("a bank cannot be merged with itself")
        with other._use:
            self._merge(other)

    def _merge(self, other: Bank) -> None:
        self._check_same(other)
        theirs = [*other]
        common = np.flatnonzero(self._keys.find(classify_keys(theirs)) >= 0)
        if common.size:
            raise ValueError(f"key {theirs[common[0]]!r} is in both banks")
        if len(self) + len(other) > self._keys.most:
            raise ValueError(f"{len(self) + len(other):,} streams; this bank holds at most {self._keys.most:,}")
        if self._references is not None and other._references is not None:
            self._check_to_come(other._references)
            other._check_to_come(self._references)
            self._references.add(other._references)
        records = other._arena.records()
        table = records[:, : HEAD.itemsize].view(HEAD)[:, 0]
        table["last"] += self.events
        names = dict(self._keys.names)
        others = np.flatnonzero(other._arena.heads()["kind"] == OTHER)
        fresh = self._keys.free + np.arange(others.size)
        names |= {number: theirs[slot] for number, slot in zip(fresh.tolist(), others.tolist(), strict=True)}
        table["key"][others] = fresh
        self._arena.extend(records)
        own = self._arena.heads()
        self._keys.arrange(own["key"], own["kind"], names)
        self.events += other.events
        self._left += other._left

    def _check_same(self, other: Bank) -> None:
        """Raise a ValueError that names a difference in the settings; the references themselves may differ."""
        kinds = [type(bank._detector).__name__ for bank in (self, other)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"the banks differ in their settings: {kinds[0]} here and {kinds[1]} there")
        for name, value in self._detector.parameters.items():
            if (their := other._detector.parameters[name]) != value:
                raise ValueError(f"the banks differ in their settings: {name} is {value!r} here and {their!r} there")
        if (other._references is None) != (self._references is None):
            raise ValueError("the banks differ in their settings: one has references by key")

    def with_budget(self, arl: float) -> Bank:
        """Make a bank of the same streams, as they are, under another budget. For FourRates."""
        if not isinstance(self._detector, FourRates):
            raise ValueError(f"{self!r}: only a bank of FourRates can change its budget")
        _, (_, *state) = self.__reduce__()
        return _revive(FourRates(**self._detector.parameters | {"arl": arl, "warn": None}), *state)

    def renamed(self, keys: Sequence[Hashable]) -> Bank:
        """Make a bank of the same streams under other keys, in the order in which they began; without references."""
        if self._references is not None:
            raise ValueError("a bank with references by key cannot be renamed")
        detector, given, _, (_, events, left) = self.__reduce__()[1]
        known, records = Keys(self._keys.most), self._arena.records()
        slots, numbers, kinds = known.take(classify_keys([*keys]))
        heads = records[:, : HEAD.itemsize].view(HEAD)[:, 0]
        heads["key"] = numbers[slots]
        heads["events"] += (kinds[slots] - self._arena.heads()["kind"].astype(np.int64)).astype(np.uint64) * KIND
        return _revive(detector, given, records.tobytes(), (known.names, events, left))

    def alarm_levels(self) -> tuple[list[Hashable], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """All streams at a glance, for FourRates, with keys, evidence as a share of an alarm, and events."""
        return list(self), evidence_shares(self._detector, self._arena.records()), self._arena.heads()["events"]

    def __repr__(self) -> str:
        return f"<Bank of {len(self):,} streams, {self.events:,} events, {self._detector!r}>"

    # False discoveries ----------------------------------------------------------------------------------------

    @exclusively
    def start_period(self) -> None:
        """Begin a new period: :meth:`discoveries` will cover the alarms from now on."""
        self._arena.start_period()
        self._left = 0

    @exclusively
    def discoveries(self, q: float = 0.05) -> list[Hashable]:
        """Name streams that drifted since the period began, wrongly in a share of at most q on average.

        For FourRates. It holds however the streams depend on each other, however often you ask and whenever you stop
        (docs/many-streams.md has the proof). Streams are named together, so it takes more of them the more streams and
        events there are and the smaller the budget. A stream may be named before its alarm, as its evidence counts too,
        and events after the alarm count for or against it.

        Parameters
        ----------
        q : float
            The share of streams named in error, in (0, 1).
        """
        if not 0 < q < 1:
            raise ValueError(f"q {q!r} is not in (0, 1)")
        heads = self._arena.heads()
        values = e_values(self._detector, self._arena.records(), heads)
        named = discovered(values, len(self) + self._left, q)
        return [self._keys.name(int(heads["key"][slot]), int(heads["kind"][slot])) for slot in named.tolist()]

    # Files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, whole or not at all; keys are numbers, strings, bytes or tuples of them."""
        from fourrates import files

        files.write(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_state: int = MAX_STATE) -> Bank:
        """Load a file of :meth:`save`; a damaged or foreign one is a ValueError.

        Parameters
        ----------
        path : path
            The file.
        max_state : int
            The longest file that is read, in bytes; a gigabyte holds about a million streams.
        """
        try:
            return cls.from_bytes(read_state(path, max_state))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    def to_bytes(self) -> bytes:
        """Everything, as :meth:`save` writes it."""
        return b"".join(self.pieces())

    @exclusively
    def pieces(self) -> Pieces:
        """The parts of :meth:`to_bytes`, for a state that has this one in it."""
        sections: dict[str, bytes] = {}
        about: dict[str, Any] = {
            "detector": type(self._detector).__name__,
            "parameters": self._detector.parameters,
            "events": self.events,
            "left": self._left,
            "max_streams": self._keys.most,
            "keys": [[number, key_to_json(name)] for number, name in self._keys.names.items()],
        }
        if self._references is not None:
            about["references"], sections["references"] = self._references.to_state()
        return pieces("Bank", about, **sections, records=self._arena.records().reshape(-1).data)

    @classmethod
    def from_bytes(cls, saved: bytes, *, max_streams: int | None = None) -> Bank:
        """Load the bytes of :meth:`to_bytes`, with this `max_streams` if given; anything else is a ValueError."""
        found = unpack(saved)
        if found.kind != "Bank":
            raise ValueError(f"this is the state of {found.kind}, not of a bank")
        try:
            return cls._revived(found, found.about["max_streams"] if max_streams is None else max_streams)
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(f"the saved bank does not fit itself ({error!r})") from None

    @classmethod
    def _revived(cls, found: Saved, max_streams: int) -> Bank:
        about, sections = found.about, found.sections
        kind, parameters = KINDS.get(about["detector"]), about["parameters"]
        if kind is None:
            raise ValueError(f"a bank of {about['detector']!r} detectors, which this release does not know")
        if 8 * len(parameters["labels"]) ** 2 > max(len(sections["records"]), 1 << 16):
            raise ValueError("the records are too short for their labels")
        detector, references, bank = kind(**parameters), None, cls.__new__(cls)
        if "references" in sections:
            _check_without_reference(detector)
            references = References.from_state(detector.labels, about["references"], sections["references"])
        bank._begin(detector, references, check_whole(max_streams, "max_streams"))
        bank._load(
            sections["records"],
            {check_whole(number, "a key's number", 0): key_from_json(name) for number, name in about["keys"]},
            check_whole(about["events"], "events", 0),
            check_whole(about["left"], "left", 0),
        )
        return bank

    def _load(self, records: bytes | memoryview, names: dict[int, Hashable], events: int, left: int) -> None:
        """Give a new bank the state of another."""
        size = self._detector.rules.size
        if len(records) % size:
            raise ValueError(f"{len(records)} bytes of records of {size}")
        self._arena.extend(np.frombuffer(records, np.uint8).reshape(-1, size))
        heads = self._arena.heads()
        stray = (heads["last"] >= events) | (heads["last"] < -1)
        if stray.any() or int(heads["events"].sum(dtype=object)) > events:
            raise ValueError(f"streams that do not fit the {events} events of the bank")
        self._keys.arrange(heads["key"], heads["kind"], names)
        if self._references is not None:
            dtype = _check_without_reference(self._detector).rules.layout
            self._references.check(list(self), self._arena.records().view(dtype)[:, 0]["look"])
        self.events, self._left = events, left

    @exclusively
    def __reduce__(self) -> tuple[Any, ...]:
        given = {
            "reference": None if self._references is None else dict(self._references),
            "max_streams": self._keys.most,
        }
        state = (self._keys.names, self.events, self._left)
        return _revive, (self._detector, given, self._arena.records().tobytes(), state)


def _revive(detector: RecordDetector, given: dict[str, Any], saved: bytes, state: Any) -> Bank:
    bank = Bank(detector, **given)
    bank._load(saved, *state)
    return bank


def _check_without_reference(detector: RecordDetector) -> FourRates:
    if not isinstance(detector, FourRates) or detector.parameters["reference"] is not None:
        raise ValueError(f"a reference, and {detector!r}: it must be a FourRates without one")
    return detector


def _referred(detector: RecordDetector, reference: Any) -> FourRates:
    """A detector of the same settings that has this reference."""
    return FourRates(**_check_without_reference(detector).parameters | {"reference": reference})

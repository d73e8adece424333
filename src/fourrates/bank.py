"""Many keyed streams, one record each: a customer, a shop, a model, each watched as by a detector of its own.

:class:`Bank` takes arrays of (key, y_true, y_pred) in the order of arrival and gives the drifts with their keys, the
same as one detector for each key would. The budget is global: `arl` counts the events of all streams together, and
:meth:`Bank.discoveries` names streams so that few of them are named in error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import After, FourRates, check_after
from fourrates.detectors.lfr import LFR
from fourrates.detectors.parameters import check_whole
from fourrates.drift import Drift, RateState, Shift, Status
from fourrates.kernel.codes import check_codes
from fourrates.kernel.record import Arena, Rules
from fourrates.keys import MOST, OTHER, Keys, canonical, classify_keys, key_from_json, key_to_json, parts
from fourrates.labels import Labels
from fourrates.record import DRIFT, HEAD, SHIFT, Head, head_of
from fourrates.references import References
from fourrates.state import Saved, pack, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Codes = npt.NDArray[np.uint16]

GroupOf = Mapping[Any, str] | Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class KeyedDrift:
    """A drift of one stream of a bank.

    Attributes
    ----------
    key : hashable
        Which stream.
    event : int
        The event that gave the alarm, counted from 0 over all events of the bank.
    drift : Drift
        What happened; its `at` and `since` count the events of this stream alone.
    """

    key: Hashable
    event: int
    drift: Drift

    def __str__(self) -> str:
        return f"{self.key}: {self.drift}"


@dataclass(frozen=True, slots=True)
class KeyedShift:
    """A shift of the true classes in one stream of a bank: which stream, at which event of the bank, and what."""

    key: Hashable
    event: int
    shift: Shift


class Bank:
    """Many keyed streams, each watched as by a detector of its own.

    Parameters
    ----------
    detector : FourRates or LFR, optional
        The settings; what it has seen does not matter. ``FourRates()`` if not given.
    arl : float, optional
        Instead of a detector: ``FourRates(arl=arl)``. Each event belongs to one stream, so what is one false alarm in
        this number of events of every stream is one in this number of events of the whole bank.
    reference : K x K counts, pair of arrays, or mapping from keys to such, optional
        The classifier as you shipped it, for FourRates: one for all streams, or one for each key. A key that is not in
        the mapping is compared with its own past.
    after : {"restart", "hold"}, optional
        With a reference: what follows a drift; "hold" if not given.
    groups : mapping from names to detectors, optional
        Settings for groups of streams, of the same kind and with the same labels; LFR with the same number of decays.
    group_of : mapping or callable, optional
        From a key to the name of its group. A key that is not there, or for which it returns None, has the settings
        of `detector`. Asked once, when a key appears.
    max_streams : int
        The most streams there may be: a batch that would make more is refused as a whole.

    Attributes
    ----------
    events : int
        Events taken, in all streams.
    shifts : list of KeyedShift
        Shifts of the true classes that the last update met, where the detector reports them.

    Examples
    --------
    Three shops; the classifier of one loses most of its true positives:

    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(7)
    >>> shop = random.choice(["Lyon", "Oslo", "Rome"], 30_000)
    >>> y_true = random.random(30_000) < 0.3
    >>> wrong = np.where((shop == "Oslo") & (np.arange(30_000) > 20_000) & y_true, 0.7, 0.1)
    >>> y_pred = y_true ^ (random.random(30_000) < wrong)

    >>> bank = fr.Bank(arl=1_000_000)
    >>> for found in bank.update(shop, y_true, y_pred):
    ...     print(found)
    Oslo: drift at 6,657, started about 6,578: tpr down: 0.899 -> 0.408
    >>> len(bank), bank["Rome"].events, round(bank["Rome"].rates["tpr"].estimate, 2)
    (3, 10140, 0.91)
    """

    def __init__(
        self,
        detector: RecordDetector | None = None,
        *,
        arl: float | None = None,
        reference: Any = None,
        after: After | None = None,
        groups: Mapping[str, RecordDetector] | None = None,
        group_of: GroupOf | None = None,
        max_streams: int = MOST,
    ) -> None:
        if detector is not None and arl is not None:
            raise ValueError(f"arl {arl!r} and a detector: give the detector its arl")
        first = FourRates(100_000 if arl is None else arl) if detector is None else detector
        if after is not None and reference is None:
            raise ValueError(f"after {after!r} and no reference: give it to the detector")
        if reference is not None and not isinstance(reference, Mapping):
            first = _referred(first, reference, after)
        self._names: list[str | None] = [None, *(groups or {})]
        self._detectors = [
            _blank(one, self._names[i], first) for i, one in enumerate([first, *(groups or {}).values()])
        ]
        if group_of is not None and not (isinstance(group_of, Mapping) or callable(group_of)):
            raise TypeError(f"group_of must be a mapping or a function from a key to a group, not {group_of!r}")
        if groups and group_of is None:
            raise ValueError(f"groups {tuple(groups)} without group_of, which says whose they are")
        self._group_of = group_of
        self._labels = first.labels
        self._references, self._after = None, check_after(after or "hold")
        if isinstance(reference, Mapping):
            self._references = References(self._labels, reference)
        self._arena = Arena([self._rules(one) for one in self._detectors])
        self._keys = Keys(max_streams)
        self.events = 0
        self.shifts: list[KeyedShift] = []
        self._period = np.empty(0, np.int64)  # events of the first streams when the present period began
        self._left = 0  # streams evicted since then that had events since then

    def _rules(self, detector: RecordDetector) -> Rules:
        """What all streams with the settings of a detector share."""
        if self._references is None:
            return detector.rules
        if not isinstance(detector, FourRates) or detector.parameters["reference"] is not None:
            raise ValueError(f"a reference for each key, and {detector!r}: it must be a FourRates without one")
        return detector.keyed_rules(self._after)

    def add_references(self, reference: Mapping[Any, Any]) -> None:
        """Give keys that are still to come references of their own, in a bank that was made with a mapping of them."""
        if self._references is None:
            raise ValueError("this bank was not made with references by key")
        for key in reference:
            if key in self and canonical(key) not in self._references:
                raise ValueError(f"key {key!r} is in the bank already, without a reference")
        self._references.add(reference)

    # Events ---------------------------------------------------------------------------------------------------

    def update(self, keys: Any, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> list[KeyedDrift]:
        """Take events of many streams, in the order of arrival, and give the drifts.

        The whole batch is checked before the first event is taken: after an error nothing has changed.

        Parameters
        ----------
        keys : array of keys
            Which stream each event belongs to: integers, strings or any hashables, also of different types; Arrow
            arrays, best dictionary-encoded. A key not seen before begins a stream. Keys that are equal are one key, so
            1.0 and True are the key 1.
        y_true, y_pred : array of labels
            What the events turned out to be, and what the classifier had said.
        """
        return self._update(keys, self._labels.encode(y_true, "y_true"), self._labels.encode(y_pred, "y_pred"))

    @property
    def labels(self) -> Labels:
        """The classes, in the order of their codes."""
        return self._labels

    @property
    def detector(self) -> RecordDetector:
        """A detector with the settings of streams without a group, that has seen nothing."""
        return self._detectors[0].clone()

    def _update(self, keys: Any, truths: Codes, guesses: Codes) -> list[KeyedDrift]:
        asked = classify_keys(keys)
        if not asked.size == truths.size == guesses.size:
            raise ValueError(f"keys has {asked.size} events, y_true has {truths.size}, y_pred has {guesses.size}")
        before = len(self)
        slots, numbers, kinds = self._keys.take(asked)
        try:
            if numbers.size:
                self._arena.begin(numbers, kinds, self._groups(numbers, kinds))
                if self._references is not None:
                    names = [self._keys.name(*one) for one in zip(numbers.tolist(), kinds.tolist(), strict=True)]
                    self._arena.refer(before, *self._references.numbers(names))
        except BaseException:
            self._keys.truncate(before)
            raise
        drifts: list[KeyedDrift] = []
        first, done = self.events, 0
        self.shifts = []
        try:
            while done < slots.size:
                done, state = self._arena.run(slots, truths, guesses, done, first)
                if state == DRIFT:
                    drifts.append(self._drifted(int(slots[done - 1]), first + done - 1))
                if state == SHIFT:
                    self.shifts.append(self._shifted(int(slots[done - 1]), first + done - 1))
                if state >= DRIFT:
                    self._arena.restart(int(slots[done - 1]), state)
        finally:
            self.events = first + done
        return drifts

    def update_coded(self, keys: Any, truths: Codes, guesses: Codes) -> list[KeyedDrift]:
        """As :meth:`update`, with events given as class codes in the order of :attr:`labels`."""
        for name, codes in (("truths", truths), ("guesses", guesses)):
            if (bad := check_codes(codes, len(self._labels.values))) >= 0:
                raise ValueError(f"{name}: code {codes[bad]} at position {bad} is not below {len(self._labels.values)}")
        return self._update(keys, truths, guesses)

    def _groups(self, numbers: Array, kinds: Array) -> Array:
        """The groups of new streams."""
        groups = np.zeros(numbers.size, np.uint16)
        if self._group_of is None:
            return groups
        ask = self._group_of.get if isinstance(self._group_of, Mapping) else self._group_of
        for i, (number, kind) in enumerate(zip(numbers.tolist(), kinds.tolist(), strict=True)):
            key = self._keys.name(number, kind)
            name = ask(key)
            if name not in self._names:
                raise ValueError(f"key {key!r}: group {name!r} is not one of {tuple(self._names[1:])}")
            groups[i] = self._names.index(name)
        return groups

    def _drifted(self, slot: int, event: int) -> KeyedDrift:
        head = self._head(slot)
        key = self._keys.name(head.key, head.kind)
        drift = self._settings_of(key, head.group).report(self._arena.record(slot), head.events - 1, head.since)
        return KeyedDrift(key, event, drift)

    def _settings_of(self, key: Hashable, group: int) -> RecordDetector:
        """A detector with the settings of a stream, its reference among them."""
        detector = self._detectors[group]
        if self._references is None or key not in self._references:
            return detector
        return _referred(detector, self._references[key], self._after)

    def _shifted(self, slot: int, event: int) -> KeyedShift:
        head = self._head(slot)
        detector = self._detectors[head.group]
        assert isinstance(detector, FourRates)
        shift = detector.report_shift(self._arena.record(slot), head.events - 1)
        return KeyedShift(self._keys.name(head.key, head.kind), event, shift)

    def progress(self, keys: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """How many events each of these streams has had, and which of them opened its present warning; -1 for none."""
        slots = self._keys.find(classify_keys(keys))
        if (slots < 0).any():
            missing = int((slots < 0).argmax())
            raise KeyError(f"{_at(keys, missing)!r} at position {missing} of keys is not in the bank")
        events, since = self._arena.progress(slots)
        return events, since

    def _head(self, slot: int) -> Head:
        return head_of(self._arena.record(slot))

    def _detector(self, slot: int) -> RecordDetector:
        """A detector with the record of a stream."""
        record = self._arena.record(slot)
        head = head_of(record)
        detector = self._settings_of(self._keys.name(head.key, head.kind), head.group).clone()
        detector.adopt(record)
        return detector

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

    def __getitem__(self, key: Hashable) -> Stream:
        stream = Stream(self, key)
        stream._slot()
        return stream

    @property
    def nbytes(self) -> int:
        """Memory of the streams, in bytes: states and the index of integers; keys of other kinds are Python's."""
        return int(self._arena.nbytes + self._keys.nbytes + self._period.nbytes)

    def evict(self, keys: Any = None, *, idle: int | None = None) -> int:
        """Forget streams, and say how many.

        All others are moved together, so it is cheaper to evict many at once than one at a time.

        Parameters
        ----------
        keys : array of keys, optional
            Which; a key that is not there is a KeyError, and nothing is evicted.
        idle : int, optional
            Those whose last event lies behind the latest so many events of the bank.
        """
        if (keys is None) == (idle is None):
            raise ValueError("evict needs keys or idle, one of them")
        heads = self._arena.heads()
        if idle is not None:
            if idle < 0:
                raise ValueError(f"idle {idle!r} is not a number of events")
            keep = heads["last"] >= self.events - idle
        else:
            slots = self._keys.find(classify_keys(keys))
            if (slots < 0).any():
                missing = int((slots < 0).argmax())
                raise KeyError(f"{_at(keys, missing)!r} at position {missing} of keys is not in the bank")
            keep = np.ones(len(self), np.bool_)
            keep[slots] = False
        kept = np.flatnonzero(keep)
        begun = self._begun()
        self._left += int(((heads["events"] > begun) & ~keep).sum())
        self._period = begun[kept] if self._period.size else self._period
        self._arena.keep(kept)
        evicted = len(self) - kept.size
        self._keys.arrange(heads["key"][kept], heads["kind"][kept], self._keys.names)
        return evicted

    def merge(self, other: Bank) -> None:
        """Take in the streams of another bank, as if its events had come after those of this one.

        Its keys must be others, its settings the same. The other bank stays as it is.
        """
        if other._settings() != self._settings():
            raise ValueError("the banks differ in their settings: " + _difference(self._settings(), other._settings()))
        if (other._references is None) != (self._references is None) or other._after != self._after:
            raise ValueError("the banks differ in their settings: one has references by key, or holds them")
        heads = other._arena.heads()
        numbers, kinds = heads["key"], heads["kind"]
        common = np.flatnonzero(self._keys.find(parts(numbers, kinds, other._keys.names)) >= 0)
        if common.size:
            key = other._keys.name(int(numbers[common[0]]), int(kinds[common[0]]))
            raise ValueError(f"key {key!r} is in both banks")
        if self._references is not None and other._references is not None:
            self._references.add(other._references)
        records = other._arena.records()
        table = records[:, : HEAD.itemsize].view(HEAD)[:, 0]
        table["last"] += self.events
        names = dict(self._keys.names)
        others = np.flatnonzero(kinds == OTHER)
        fresh = self._keys.free() + np.arange(others.size)
        names |= dict(zip(fresh.tolist(), map(other._keys.names.__getitem__, numbers[others].tolist()), strict=True))
        table["key"][others] = fresh
        begun = np.concatenate([self._begun(), other._begun()])
        self._arena.extend(records)
        own = self._arena.heads()
        self._keys.arrange(own["key"], own["kind"], names)
        self._period = begun if begun.any() else np.empty(0, np.int64)
        self.events += other.events
        self._left += other._left

    def _settings(self) -> dict[str | None, dict[str, Any]]:
        return {name: one.parameters for name, one in zip(self._names, self._detectors, strict=True)}

    def __repr__(self) -> str:
        return f"<Bank of {len(self):,} streams, {self.events:,} events, {self._detectors[0]!r}>"

    # False discoveries ----------------------------------------------------------------------------------------

    def start_period(self) -> None:
        """Begin a new period: :meth:`discoveries` will tell of the events from now on."""
        self._period = self._arena.heads()["events"]
        self._arena.start_period()
        self._left = 0

    def discoveries(self, q: float = 0.05) -> list[Hashable]:
        """Name streams that drifted since the period began, wrongly in a share of at most q on average.

        It holds whatever the streams have to do with each other (docs/many-streams.md has the proof), as long as
        neither the number of events of a stream nor the time you ask depends on how its predictions turn out. Streams
        are named together: the fewer events and the larger the budget, the fewer it takes. With FourRates a stream may
        be named before its alarm, for its evidence counts as well.

        Parameters
        ----------
        q : float
            The share of streams named in error, in (0, 1).
        """
        if not 0 < q < 1:
            raise ValueError(f"q {q!r} is not in (0, 1)")
        heads, begun = self._arena.heads(), self._begun()
        watched = heads["events"] > begun
        values = np.where(watched, self._e_values(heads, begun), 0.0)
        order = np.argsort(-values, kind="stable")
        streams = int(watched.sum()) + self._left
        enough = np.flatnonzero(values[order] * q * np.arange(1, order.size + 1) >= max(streams, 1))
        named = np.sort(order[: enough[-1] + 1]) if enough.size else order[:0]
        return [self._keys.name(int(heads["key"][slot]), int(heads["kind"][slot])) for slot in named.tolist()]

    def _e_values(self, heads: dict[str, Array], begun: Array) -> npt.NDArray[np.float64]:
        """For each stream a number whose mean is at most one while nothing changes."""
        if isinstance(self._detectors[0], LFR):
            level = np.array([_false_alarms(one) for one in self._detectors if isinstance(one, LFR)])[heads["group"]]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # alarms to expect of a stable stream
                false = np.exp(level * begun) * np.expm1(level * (heads["events"] - begun))
                return np.where(heads["alarmed"], 1 / false, 0.0)
        records = self._arena.records()
        found = np.empty(len(self))
        for group, detector in enumerate(self._detectors):
            assert isinstance(detector, FourRates)
            own = heads["group"] == group
            evidence = detector.evidence_rules.evidence(records[own].tobytes())
            found[own] = np.where(heads["alarmed"][own], detector.evidence_rules.alarm, evidence)
        return found / np.maximum(heads["events"], 1)

    def _begun(self) -> Array:
        """Events of each stream when the present period began."""
        at = np.zeros(len(self), np.int64)
        at[: self._period.size] = self._period
        return at

    # Files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, whole or not at all; :meth:`load` goes on bit for bit.

        Keys must be numbers, strings, bytes or tuples of such.
        """
        from fourrates import files

        files.write(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, group_of: GroupOf | None = None) -> Bank:
        """Bring back what :meth:`save` wrote; a file that is damaged or something else is a ValueError that says so.

        Parameters
        ----------
        path : path
            The file.
        group_of : mapping or callable
            As for :class:`Bank`, where there are groups: it is not in the file.
        """
        with open(path, "rb") as file:
            content = file.read()
        try:
            return cls.from_bytes(content, group_of=group_of)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    def to_bytes(self) -> bytes:
        """Everything, as :meth:`save` writes it."""
        about = {
            "detector": type(self._detectors[0]).__name__,
            "parameters": [one.parameters for one in self._detectors],
            "groups": self._names[1:],
            "events": self.events,
            "left": self._left,
            "max_streams": self._keys.most,
            "keys": [[number, key_to_json(name)] for number, name in self._keys.names.items()],
        }
        sections = {"period": self._begun().astype("<i8").tobytes(), "records": self._arena.records().tobytes()}
        if self._references is not None:
            about["after"] = self._after
            about["references"], sections["references"] = self._references.to_state()
        return pack("Bank", about, **sections)

    @classmethod
    def from_bytes(cls, saved: bytes, *, group_of: GroupOf | None = None) -> Bank:
        """Bring back what :meth:`to_bytes` gave; bytes that it cannot have given are a ValueError."""
        found = unpack(saved)
        if found.kind != "Bank":
            raise ValueError(f"this is the state of {found.kind}, not of a bank")
        try:
            return cls._revived(found, group_of)
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(f"the saved bank does not fit itself ({error!r})") from None

    @classmethod
    def _revived(cls, found: Saved, group_of: GroupOf | None) -> Bank:
        about = found.about
        kind = {"LFR": LFR, "FourRates": FourRates}.get(about["detector"])
        if kind is None:
            raise ValueError(f"a bank of {about['detector']!r} detectors, which this release does not know")
        records, period = found.sections["records"], found.sections["period"]
        parameters = about["parameters"]
        if any(8 * len(one["labels"]) ** 2 > max(len(records), 1 << 16) for one in parameters):
            raise ValueError("the records are too short for their labels")
        first, *others = [kind(**one) for one in parameters]
        groups = about["groups"]
        if others and group_of is None:
            raise ValueError(f"the bank has groups {tuple(groups)}: give group_of")
        keyed = "references" in found.sections
        bank = cls(
            first,
            reference={} if keyed else None,
            after=check_after(about["after"]) if keyed else None,
            groups=dict(zip(groups, others, strict=True)),
            group_of=group_of,
            max_streams=check_whole(about["max_streams"], "max_streams"),
        )
        if keyed:
            bank._references = References.from_state(first.labels, about["references"], found.sections["references"])
        size = first.rules.size
        if len(records) % size or len(records) // size * 8 != len(period):
            raise ValueError(f"{len(records)} bytes of records of {size}, and {len(period)} of their periods")
        bank._adopt(
            np.frombuffer(records, np.uint8).reshape(-1, size),
            {check_whole(number, "a key's number", 0): key_from_json(name) for number, name in about["keys"]},
            check_whole(about["events"], "events", 0),
            np.frombuffer(period, "<i8").astype(np.int64),
            check_whole(about["left"], "left", 0),
        )
        return bank

    def _adopt(
        self, records: Array, names: dict[int, Hashable], events: int, period: npt.NDArray[np.int64], left: int
    ) -> None:
        """Give a new bank the state of another."""
        self._arena.extend(np.ascontiguousarray(records))
        heads = self._arena.heads()
        if (heads["last"] >= events).any() or (heads["last"] < -1).any() or (period > heads["events"]).any():
            raise ValueError(f"streams that do not fit the {events} events of the bank")
        if (period < 0).any() or int(heads["events"].sum(dtype=object)) > events:
            raise ValueError(f"streams that do not fit the {events} events of the bank")
        self._keys.arrange(heads["key"], heads["kind"], names)
        self.events, self._period, self._left = events, period if period.any() else period[:0], left

    def __reduce__(self) -> tuple[Any, ...]:
        groups = dict(zip(self._names[1:], self._detectors[1:], strict=True))
        references = None if self._references is None else dict(self._references)
        settings = {
            "reference": references,
            "after": None if references is None else self._after,
            "groups": groups,
            "group_of": self._group_of,
            "max_streams": self._keys.most,
        }
        state = (self._arena.records(), self._keys.names, self.events, self._begun(), self._left)
        return _revive, (self._detectors[0], settings, state)


class Stream:
    """One stream of a bank, seen as a detector: always as it is now.

    Attributes
    ----------
    key : hashable
        Its key.
    """

    __slots__ = ("_bank", "key")

    def __init__(self, bank: Bank, key: Hashable) -> None:
        self._bank, self.key = bank, canonical(key)

    def _slot(self) -> int:
        slot = int(self._bank._keys.find(classify_keys([self.key]))[0])
        if slot < 0:
            raise KeyError(self.key)
        return slot

    @property
    def group(self) -> str | None:
        """The name of its group."""
        return self._bank._names[self._bank._head(self._slot()).group]

    @property
    def events(self) -> int:
        """Events of this stream."""
        return self._bank._head(self._slot()).events

    @property
    def drift_detected(self) -> bool:
        """Whether its last event was a drift."""
        return self.detector().drift_detected

    @property
    def warning_detected(self) -> bool:
        """Whether its last event left it in the warning zone, without a drift."""
        return self.detector().warning_detected

    @property
    def status(self) -> Status:
        """How things stand after its last event."""
        return self.detector().status

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Where each rate stands now."""
        return self.detector().rates

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """Counts since the last reset, by true class and then by predicted class."""
        return self.detector().confusion

    def detector(self) -> RecordDetector:
        """Make a detector of its own with this record: as if it had seen these events."""
        return self._bank._detector(self._slot())

    def __repr__(self) -> str:
        return f"<Stream {self.key!r} of a bank, {self.events:,} events>"


def _blank(detector: object, name: str | None, first: RecordDetector) -> RecordDetector:
    """A clone of a group's detector, if it goes with the first."""
    what = "the detector" if name is None else f"group {name!r}"
    if not isinstance(detector, RecordDetector):
        raise TypeError(f"{what} is neither a FourRates nor an LFR: {detector!r}")
    if type(detector) is not type(first):
        raise ValueError(f"{what} is {type(detector).__name__}, the bank has {type(first).__name__}")
    if detector.labels.values != first.labels.values:
        raise ValueError(f"{what} has the labels {detector.labels.values!r}, the bank has {first.labels.values!r}")
    if detector.rules.size != first.rules.size:
        raise ValueError(
            f"{what} needs records of {detector.rules.size} bytes, the bank has {first.rules.size}: it must have the "
            "same number of decays, and the same mix and after"
        )
    return detector.clone()


def _false_alarms(detector: LFR) -> float:
    """Alarms to expect at an event of a stable stream, at most: two rates, levels added."""
    if detector.parameters["null"] != "exact":
        raise ValueError(f"discoveries needs the exact null; {detector.parameters['null']!r} keeps no level")
    return detector.false_alarms


def _difference(ours: dict[str | None, Any], theirs: dict[str | None, Any]) -> str:
    if [*ours] != [*theirs]:
        return f"groups {[*ours][1:]} and {[*theirs][1:]}"
    name = next(name for name in ours if ours[name] != theirs[name])
    what = next(what for what in ours[name] if ours[name][what] != theirs[name][what])
    where = "" if name is None else f" of group {name!r}"
    return f"{what}{where} is {ours[name][what]!r} here and {theirs[name][what]!r} there"


def _at(keys: Any, position: int) -> object:
    return keys[position].as_py() if hasattr(keys[position], "as_py") else canonical(keys[position])


def _referred(detector: RecordDetector, reference: Any, after: After | None) -> FourRates:
    """A detector of the same settings that has this reference."""
    if not isinstance(detector, FourRates) or detector.parameters["reference"] is not None:
        raise ValueError(f"a reference, and {detector!r}: it must be a FourRates without one")
    return FourRates(**detector.parameters | {"reference": reference, "after": after})


def _revive(detector: RecordDetector, settings: dict[str, Any], state: tuple[Any, ...]) -> Bank:
    bank = Bank(detector, **settings)
    bank._adopt(*state)
    return bank

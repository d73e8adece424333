"""Many keyed streams in one compiled array of states: a customer, a shop, a model each, watched by LFR.

:class:`Bank` takes arrays of (key, y_true, y_pred) in the order of arrival and gives the drifts with their keys, the
same as one :class:`~fourrates.LFR` for each key would, in 128 bytes a stream for two classes at one decay. The budget
is global: `arl` counts the events of all streams together, and :meth:`Bank.discoveries` names streams so that few of
them are named in error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.detectors.lfr import DECAY, LFR
from fourrates.drift import Drift, RateState
from fourrates.kernel.bank import Streams
from fourrates.keys import OTHER, Keys, canonical, parts, sort_out

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

GroupOf = Mapping[Any, str] | Callable[[Any], str | None]

ALARMED, KIND = 2, 4  # in the flags of a stream, as the kernel has them


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


class Bank:
    """Many keyed streams, each watched as by an :class:`~fourrates.LFR` of its own.

    Parameters
    ----------
    detector : LFR, optional
        The settings; what it has seen does not matter. ``LFR()`` if not given.
    arl : float, optional
        Instead of a detector: ``LFR(decay=0.9, arl=arl)``. Each event belongs to one stream, so what is one false alarm
        in so many events of every stream is one in so many events of the whole bank.
    groups : mapping from names to LFR, optional
        Settings for groups of streams, with the same labels and equally many decays.
    group_of : mapping or callable, optional
        From a key to the name of its group. A key that is not there, or for which it returns None, has the settings
        of `detector`. Asked once, when a key appears.

    Attributes
    ----------
    events : int
        Events taken, in all streams.

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
    Oslo: drift at 6,654, since 6,603: tpr down: 0.398, below its bound 0.426 (0.895 expected after 1,934 observations)
    >>> len(bank), bank["Rome"].events, round(bank["Rome"].rates["tpr"].estimate, 2)
    (3, 10140, 0.91)
    """

    def __init__(
        self,
        detector: LFR | None = None,
        *,
        arl: float | None = None,
        groups: Mapping[str, LFR] | None = None,
        group_of: GroupOf | None = None,
    ) -> None:
        if detector is not None and arl is not None:
            raise ValueError(f"arl {arl!r} and a detector: give the detector its arl")
        first = LFR(DECAY, arl=arl) if detector is None else detector
        self._names: list[str | None] = [None, *(groups or {})]
        self._detectors = [
            _blank(one, self._names[i], first) for i, one in enumerate([first, *(groups or {}).values()])
        ]
        if group_of is not None and not (isinstance(group_of, Mapping) or callable(group_of)):
            raise TypeError(f"group_of must be a mapping or a function from a key to a group, not {group_of!r}")
        if groups and group_of is None:
            raise ValueError(f"groups {tuple(groups)} without group_of, which says whose they are")
        self._group_of = group_of
        self._labels = first._labels
        self._streams = Streams(len(self._labels.values), [_tests(one) for one in self._detectors])
        self._keys = Keys()
        self.events = 0
        self._marked = np.empty(0, np.int64)  # events of the first streams at the last mark
        self._left = 0  # streams evicted since then that had events since then

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
        truths = self._labels.encode(y_true, "y_true")
        guesses = self._labels.encode(y_pred, "y_pred")
        asked = sort_out(keys)
        if not asked.size == truths.size == guesses.size:
            raise ValueError(f"keys has {asked.size} events, y_true has {truths.size}, y_pred has {guesses.size}")
        before = len(self)
        slots, numbers, kinds = self._keys.take(asked)
        try:
            if numbers.size:
                self._streams.begin(numbers, kinds, self._groups(numbers, kinds))
        except BaseException:
            self._keys.truncate(before)
            raise
        drifts: list[KeyedDrift] = []
        first, done = self.events, 0
        try:
            while done < slots.size:
                done, drifted = self._streams.run(slots, truths, guesses, done, first)
                if drifted:
                    drifts.append(self._drifted(int(slots[done - 1]), first + done - 1))
        finally:
            self.events = first + done
        return drifts

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
        number, kind, group, events, since, _, _ = self._streams.head(slot)
        drift = self._fill(self._detectors[group], slot)._report(events - 1, since)
        self._streams.restart(slot)
        return KeyedDrift(self._keys.name(number, kind), event, drift)

    def _fill(self, detector: LFR, slot: int) -> LFR:
        """Give a detector the state of a stream."""
        counts, statistics, places, *_ = detector._arrays()
        self._streams.state(slot, counts, statistics, places)
        _, _, _, events, since, drift, warning = self._streams.head(slot)
        detector._set_state(counts, statistics, places)
        detector._set_progress(events, since, drift, warning)
        return detector

    # Streams --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._keys.size

    def __iter__(self) -> Iterator[Hashable]:
        """The keys, in the order in which their streams began."""
        for slot in range(len(self)):
            number, kind, *_ = self._streams.head(slot)
            yield self._keys.name(number, kind)

    def __contains__(self, key: object) -> bool:
        try:
            canonical(key)
        except (TypeError, ValueError):
            return False
        return bool(self._keys.find(sort_out([key]))[0] >= 0)

    def __getitem__(self, key: Hashable) -> Stream:
        stream = Stream(self, key)
        stream._slot()
        return stream

    @property
    def nbytes(self) -> int:
        """Memory of the streams, in bytes: states and the index of integers; keys of other kinds are Python's."""
        return int(self._streams.nbytes + self._keys.nbytes + self._marked.nbytes)

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
        events, _, _, last = self._streams.summary()
        if idle is not None:
            if idle < 0:
                raise ValueError(f"idle {idle!r} is not a number of events")
            keep = last >= self.events - idle
        else:
            slots = self._keys.find(sort_out(keys))
            if (slots < 0).any():
                missing = int((slots < 0).argmax())
                raise KeyError(f"{_at(keys, missing)!r} at position {missing} of keys is not in the bank")
            keep = np.ones(len(self), np.bool_)
            keep[slots] = False
        kept = np.flatnonzero(keep)
        marked = self._at_mark()
        self._left += int(((events > marked) & ~keep).sum())
        self._marked = marked[kept] if self._marked.size else self._marked
        self._streams.keep(kept)
        evicted = len(self) - kept.size
        self._keys.arrange(*self._streams.keys(), self._keys.names)
        return evicted

    def merge(self, other: Bank) -> None:
        """Take in the streams of another bank, as if its events had come after those of this one.

        Its keys must be others, its settings the same. The other bank stays as it is.
        """
        if other._settings() != self._settings():
            raise ValueError("the banks differ in their settings: " + _difference(self._settings(), other._settings()))
        numbers, kinds = other._streams.keys()
        common = np.flatnonzero(self._keys.find(parts(numbers, kinds, other._keys.names)) >= 0)
        if common.size:
            key = other._keys.name(int(numbers[common[0]]), int(kinds[common[0]]))
            raise ValueError(f"key {key!r} is in both banks")
        columns = other._streams.columns()
        columns["last"] += self.events
        names = dict(self._keys.names)
        others = np.flatnonzero(columns["flags"] // KIND & 3 == OTHER)
        fresh = self._keys.free() + np.arange(others.size)
        names |= dict(
            zip(fresh.tolist(), map(other._keys.names.__getitem__, columns["keys"][others].tolist()), strict=True)
        )
        columns["keys"][others] = fresh
        marked = np.concatenate([self._at_mark(), other._at_mark()])
        self._streams.extend(columns)
        self._keys.arrange(*self._streams.keys(), names)
        self._marked = marked if marked.any() else np.empty(0, np.int64)
        self.events += other.events
        self._left += other._left

    def _settings(self) -> dict[str | None, dict[str, Any]]:
        return {name: one.parameters for name, one in zip(self._names, self._detectors, strict=True)}

    def __repr__(self) -> str:
        return f"<Bank of {len(self):,} streams, {self.events:,} events, {self._detectors[0]!r}>"

    # False discoveries ----------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Begin a new period: :meth:`discoveries` will tell of the events from now on."""
        self._marked = self._streams.summary()[0]
        self._streams.unmark()
        self._left = 0

    def discoveries(self, q: float = 0.05) -> list[Hashable]:
        """Name streams that drifted since the last :meth:`mark`, wrongly in a share of at most q on average.

        It holds whatever the streams have to do with each other (docs/many-streams.md has the proof), as long as
        neither the number of events of a stream nor the time you ask depends on how its predictions turn out. Streams
        are named together: the fewer events since the mark and the smaller the detection level, the fewer it takes.

        Parameters
        ----------
        q : float
            The share of streams named in error, in (0, 1).
        """
        if not 0 < q < 1:
            raise ValueError(f"q {q!r} is not in (0, 1)")
        events, flags, groups, _ = self._streams.summary()
        before = self._at_mark()
        chance = np.array([_chance(one) for one in self._detectors])[groups]
        with np.errstate(over="ignore", invalid="ignore"):  # alarms to expect of a stable stream
            false = np.exp(chance * before) * np.expm1(chance * (events - before))
        alarmed = np.flatnonzero(flags & ALARMED)
        alarmed = alarmed[np.argsort(false[alarmed], kind="stable")]
        watched = int((events > before).sum()) + self._left
        enough = false[alarmed] * watched <= q * np.arange(1, alarmed.size + 1)
        named = alarmed[: np.flatnonzero(enough)[-1] + 1] if enough.any() else alarmed[:0]
        return [self._keys.name(*self._streams.head(slot)[:2]) for slot in np.sort(named).tolist()]

    def _at_mark(self) -> Array:
        """Events of each stream at the last mark."""
        at = np.zeros(len(self), np.int64)
        at[: self._marked.size] = self._marked
        return at

    # Files ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, an .npz of NumPy, whole or not at all; :meth:`load` goes on bit for bit.

        Keys must be numbers, strings, bytes or tuples of such.
        """
        from fourrates import files

        files.write(path, self._packed())

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
            return cls._unpacked(content, group_of)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    def _packed(self) -> bytes:
        from fourrates.bank_file import pack

        about = {
            "events": self.events,
            "left": self._left,
            "detectors": [one.clone().to_bytes().hex() for one in self._detectors],
            "groups": self._names[1:],
        }
        return pack(about, [*self._keys.names.values()], {"marked": self._at_mark(), **self._streams.columns()})

    @classmethod
    def _unpacked(cls, content: bytes, group_of: GroupOf | None) -> Bank:
        from fourrates.bank_file import unpack

        about, names, columns = unpack(content)
        first, *others = [LFR.from_bytes(bytes.fromhex(saved)) for saved in about["detectors"]]
        if others and group_of is None:
            raise ValueError(f"the bank has groups {tuple(about['groups'])}: say group_of")
        bank = cls(first, groups=dict(zip(about["groups"], others, strict=True)), group_of=group_of)
        marked = np.ascontiguousarray(columns.pop("marked"), np.int64)
        columns = bank._sound(columns)
        others_at = columns["flags"] // KIND & 3 == OTHER
        bank._fill_up(
            columns,
            dict(zip(columns["keys"][others_at].tolist(), names, strict=True)),
            about["events"],
            marked if marked.any() else marked[:0],
            about["left"],
        )
        return bank

    def _fill_up(
        self, columns: dict[str, Array], names: dict[int, Hashable], events: int, marked: Array, left: int
    ) -> None:
        """Give a new bank the state of another."""
        self._streams.extend(columns)
        self._keys.arrange(*self._streams.keys(), names)
        self.events, self._marked, self._left = events, marked, left

    def _sound(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Columns that are what a bank of these settings has."""
        found = {}
        for name, like in self._streams.columns().items():
            array = arrays.get(name)
            if array is None or array.ndim != like.ndim or array.shape[1:] != like.shape[1:]:
                raise ValueError(f"its part {name!r} does not fit the others")
            found[name] = np.ascontiguousarray(array, like.dtype)
        if len({len(array) for array in found.values()}) > 1 or (found["groups"] >= len(self._names)).any():
            raise ValueError("its parts do not fit each other")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        groups = dict(zip(self._names[1:], self._detectors[1:], strict=True))
        state = (self._streams.columns(), self._keys.names, self.events, self._marked, self._left)
        return _revive, (self._detectors[0], groups, self._group_of, state)


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
        slot = int(self._bank._keys.find(sort_out([self.key]))[0])
        if slot < 0:
            raise KeyError(self.key)
        return slot

    @property
    def group(self) -> str | None:
        """The name of its group."""
        return self._bank._names[self._bank._streams.head(self._slot())[2]]

    @property
    def events(self) -> int:
        """Events of this stream."""
        return self._bank._streams.head(self._slot())[3]

    @property
    def drift_detected(self) -> bool:
        """Whether its last event was a drift."""
        return self._bank._streams.head(self._slot())[5]

    @property
    def warning_detected(self) -> bool:
        """Whether its last event left it in the warning zone, without a drift."""
        return self._bank._streams.head(self._slot())[6]

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Where each rate stands now: counts, statistic, warning and detection bounds."""
        return self._filled().rates

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """Counts since the last reset, by true class and then by predicted class."""
        return self._filled()._confusion()

    def detector(self) -> LFR:
        """Make a detector of its own with this state, as if it had seen these events.

        It does not know where a drift may have started: a bank remembers nothing for that.
        """
        slot = self._slot()
        return self._bank._fill(self._bank._detectors[self._bank._streams.head(slot)[2]].clone(), slot)

    def _filled(self) -> LFR:
        slot = self._slot()
        return self._bank._fill(self._bank._detectors[self._bank._streams.head(slot)[2]], slot)

    def __repr__(self) -> str:
        return f"<Stream {self.key!r} of a bank, {self.events:,} events>"


def _blank(detector: object, name: str | None, first: LFR) -> LFR:
    """A clone of a group's detector, if it goes with the first."""
    what = "the detector" if name is None else f"group {name!r}"
    if not isinstance(detector, LFR):
        raise TypeError(f"{what} is not an LFR: {detector!r}")
    if detector._labels.values != first._labels.values:
        raise ValueError(f"{what} has the labels {detector._labels.values!r}, the bank has {first._labels.values!r}")
    if detector.plan is not None:
        raise ValueError(f"{what} watches windows, which a bank does not: give it a decay")
    if [*map(len, detector._statistics)] != [*map(len, first._statistics)]:
        raise ValueError(f"{what} has not as many decays as the detector of the bank")
    return detector.clone()


def _tests(detector: LFR) -> list[list[tuple[Any, int, int, bool, bool]]]:
    """The tests of each rate, as the kernel takes them."""
    return [
        [(table, warn, detect, *watched) for table, warn, detect in tests]
        for tests, watched in zip(detector._statistics, detector._watched, strict=True)
    ]


def _chance(detector: LFR) -> float:
    """The chance that an event of a stable stream leaves the detection bounds, at most: two rates, levels added."""
    if detector.parameters["null"] != "exact":
        raise ValueError(f"discoveries needs the exact null; {detector.parameters['null']!r} keeps no level")
    levels = [
        sum((down + up) * table.levels[detect] for table, _, detect, down, up in rate) for rate in _tests(detector)
    ]
    return float(max(levels[: len(levels) // 2]) + max(levels[len(levels) // 2 :]))


def _difference(ours: dict[str | None, Any], theirs: dict[str | None, Any]) -> str:
    if [*ours] != [*theirs]:
        return f"groups {[*ours][1:]} and {[*theirs][1:]}"
    name = next(name for name in ours if ours[name] != theirs[name])
    what = next(what for what in ours[name] if ours[name][what] != theirs[name][what])
    where = "" if name is None else f" of group {name!r}"
    return f"{what}{where} is {ours[name][what]!r} here and {theirs[name][what]!r} there"


def _at(keys: Any, position: int) -> object:
    return keys[position].as_py() if hasattr(keys[position], "as_py") else canonical(keys[position])


def _revive(detector: LFR, groups: dict[str, LFR], group_of: GroupOf | None, state: tuple[Any, ...]) -> Bank:
    bank = Bank(detector, groups=groups, group_of=group_of)
    bank._fill_up(*state)
    return bank

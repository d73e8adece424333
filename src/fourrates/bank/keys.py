"""Keys of streams to slots 0, 1, ...: integers by a compiled index, everything else by a dictionary.

Keys are equal as Python's are: 2, 2.0 and numpy.int64(2) are one key, "2" is another. Missing values (None, nan, a
null) and unhashable ones are no keys.
"""

from __future__ import annotations

import binascii
import numbers
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.kernel.index import Index
from fourrates.labels import plain

Array = npt.NDArray[Any]
Slots = npt.NDArray[np.int32]

INTEGER, OTHER = 0, 1  # kinds: signed 64 bits, anything else
MOST = 2**31 - 2  # streams


@dataclass(frozen=True, slots=True)
class Sorted:
    """Keys of a batch, checked and sorted by kind, each kind with its places, or None if it is everywhere."""

    size: int
    integers: list[tuple[Array | None, Array]]
    others: list[tuple[Array | None, Sequence[Hashable]]]
    positions: Array | None = None  # if given, the keys are these positions among the parts


def classify_keys(keys: Any) -> Sorted:
    """Check keys and sort them by kind, or raise an error that names the first bad one and its place."""
    if isinstance(keys, str | bytes) or not hasattr(keys, "__len__"):
        raise TypeError(f"keys must be an array or a list of keys, not {keys!r}")
    if isinstance(keys, list | tuple):  # an array of them might turn 1 into "1", or tuples into a dimension
        return _one_by_one(keys)
    if hasattr(keys, "dictionary_encode") and (str(keys.type)[:3] not in ("int", "uin") or keys.null_count):
        from fourrates.events.columns import checked_column, distinct_values

        values, positions, gone = distinct_values(checked_column(keys, "keys"))
        return _coded(values, positions, gone)
    categories = getattr(keys, "cat", keys)  # of a pandas series
    if hasattr(categories, "categories") and hasattr(categories, "codes"):
        codes = np.asarray(categories.codes)
        return _coded(categories.categories.tolist(), codes, codes < 0)
    if isinstance(keys, np.ma.MaskedArray) and np.ma.getmaskarray(keys).any():
        raise _no_key("masked", int(np.ma.getmaskarray(keys).argmax()))
    return _array(np.asarray(keys))


def canonical(key: Any, position: int | None = None) -> Hashable:
    """The one form of equal keys, an int if it is a whole number; or an error if it cannot be a key."""
    key = plain(key)
    try:
        hash(key)
        missing = key is None or bool(key != key)
    except (TypeError, ValueError):  # unhashable; pandas.NA, which is neither equal to itself nor not
        raise _no_key(key, position) from None
    if missing:
        raise _no_key(key, position)
    if isinstance(key, numbers.Number):
        try:
            whole = int(key)  # type: ignore[call-overload]
        except (TypeError, ValueError, OverflowError):  # complex, infinite
            return key
        if whole == key:
            return int(whole)
    found: Hashable = key
    return found


def kind_of(key: Hashable) -> int:
    """The kind of a key in its canonical form."""
    return INTEGER if type(key) is int and -(2**63) <= key < 2**63 else OTHER


def token(key: Any) -> Hashable:
    """A key's own key in a dictionary. Python seeds no hashes of numbers, which an attacker could choose to collide."""
    if isinstance(key, str | bytes):
        return key
    if isinstance(key, tuple) and type(key).__eq__ is tuple.__eq__:
        return (tuple, *map(token, key))
    if isinstance(key, numbers.Number | np.generic):
        number = canonical(key) if key == key else "nan"
        return (int, f"{number:x}") if type(number) is int else (float, repr(number))
    return key  # type: ignore[no-any-return]


def _array(values: Array) -> Sorted:
    if values.ndim != 1:
        raise ValueError(f"keys have {values.ndim} dimensions, not one")
    kind = values.dtype.kind
    if kind not in "biufUSOT":
        raise TypeError(f"keys of type {values.dtype} are not numbers, strings or objects")
    if kind == "f":
        if (missing := np.isnan(values)).any():
            raise _no_key(float("nan"), int(missing.argmax()))
        if (values == np.floor(values)).all() and (np.abs(values) < 2.0**62).all():
            values, kind = values.astype(np.int64), "i"
    if kind in "biu" and not (values.dtype == np.uint64 and (values >= 2**63).any()):
        return Sorted(values.size, [(None, np.array(values, np.int64))], [])  # a copy, as theirs may change meanwhile
    return _one_by_one(values.tolist())


def _one_by_one(keys: Sequence[Any]) -> Sorted:
    kinds = set(map(type, keys))
    if kinds <= {str, bytes}:
        return Sorted(len(keys), [], [(None, keys)])
    if kinds == {int}:
        try:
            return _array(np.array(keys, np.int64))
        except OverflowError:
            pass
    found = [canonical(key, position) for position, key in enumerate(keys)]
    sort = np.array([kind_of(key) for key in found])
    places, rest = np.flatnonzero(sort == INTEGER), np.flatnonzero(sort == OTHER)
    return Sorted(
        len(found),
        [(places, np.array([found[i] for i in places], np.int64))] if places.size else [],
        [(rest, [found[i] for i in rest])] if rest.size else [],
    )


def _coded(values: list[Any], positions: Array, gone: Array | None) -> Sorted:
    """Keys by their positions in a dictionary; only those that occur count."""
    if gone is not None and gone.any():
        raise _no_key(None, int(gone.argmax()))
    used = np.zeros(len(values), np.bool_)
    used[positions] = True
    for i in np.flatnonzero(used):
        if type(values[i]) is not str:
            try:
                canonical(values[i])
            except (TypeError, ValueError):
                raise _no_key(values[i], int((positions == i).argmax())) from None
    parts = _one_by_one([values[i] for i in np.flatnonzero(used)])
    return Sorted(len(positions), parts.integers, parts.others, (np.cumsum(used) - 1)[positions])


def _no_key(key: Any, position: int | None) -> ValueError | TypeError:
    where = "" if position is None else f" at position {position}"
    try:
        hash(key)
    except TypeError:
        return TypeError(f"keys: {key!r}{where} cannot be a key: it is not hashable")
    return ValueError(f"keys: {key!r}{where} cannot be a key: it is missing")


class Keys:
    """The keys of a bank, in slots 0, 1, ...; those that are no integers of 64 bits are `names`, by number."""

    __slots__ = ("_index", "_slots", "free", "most", "names", "size")

    def __init__(self, most: int = MOST) -> None:
        if not 1 <= most <= MOST:
            raise ValueError(f"max_streams {most!r} is not between 1 and {MOST:,}")
        self.most = most
        self._index = Index(int.from_bytes(os.urandom(8), "little"))
        self._slots: dict[Hashable, int] = {}
        self.names: dict[int, Hashable] = {}
        self.free = 0  # the first number from which on no name has one
        self.size = 0

    @property
    def nbytes(self) -> int:
        """Memory of the index of integers, in bytes."""
        return int(self._index.nbytes)

    def find(self, keys: Sorted) -> Slots:
        """The slots of keys, -1 for those without one."""

        def integers(own: Array) -> Slots:
            slots = np.empty(own.size, np.int32)
            self._index.find(own, slots)
            return slots

        def others(names: Sequence[Hashable]) -> Slots:
            return np.array([self._slots.get(token(name), -1) for name in names], np.int32)

        return _put_together(keys, integers, others)

    def take(self, keys: Sorted) -> tuple[Slots, Array, Array]:
        """The slots of keys, and the number and kind of each new one; after an error there are no new ones."""
        before = self.size
        new: list[tuple[Slots, Array, int]] = []

        def integers(own: Array) -> Slots:
            slots = np.empty(own.size, np.int32)
            start, known = self.size, self._index.size
            self._index.take(own, start, slots)
            if self._index.size > known:
                self.size += self._index.size - known
                fresh = slots >= start
                new.append((slots[fresh], own[fresh], INTEGER))
            return slots

        def others(names: Sequence[Hashable]) -> Slots:
            start, first = self.size, self.free
            slots = np.empty(len(names), np.int32)
            for i, name in enumerate(names):
                known = name if type(name) is str else token(name)
                if (slot := self._slots.get(known)) is None:
                    slot = self._slots[known] = self.size
                    self.names[self.free] = name
                    self.size, self.free = self.size + 1, self.free + 1
                slots[i] = slot
            added = np.arange(start, self.size, dtype=np.int32)
            new.append((added, np.arange(first, self.free), OTHER))
            return slots

        try:
            slots = _put_together(keys, integers, others)
            if self.size > self.most:
                raise ValueError(f"{self.size:,} streams; this bank holds at most {self.most:,} (max_streams)")
            numbers_, kinds = np.empty(self.size - before, np.int64), np.empty(self.size - before, np.uint8)
            for where, number, kind in new:
                numbers_[where - before], kinds[where - before] = number, kind
        except BaseException:
            self.truncate(before)
            raise
        return slots, numbers_, kinds

    def truncate(self, size: int) -> None:
        """Forget the keys with slots from `size` on."""
        self._index.truncate(size)
        # The new ones are last in both; none is hashed again, which may be the cause of the error.
        while self._slots and next(reversed(self._slots.values())) >= size:
            self._slots.popitem()
            self.names.popitem()
        self.size = size

    def arrange(self, numbers: Array, kinds: Array, names: dict[int, Hashable]) -> None:
        """Load the keys with these numbers and kinds, in slots 0, 1, ...; the others by their names."""
        if numbers.size > self.most or (kinds > OTHER).any():
            raise ValueError(f"{numbers.size:,} keys; at most {self.most:,} are possible")
        slots = np.arange(numbers.size, dtype=np.int32)
        integers = kinds != OTHER
        if np.unique(numbers[integers]).size < np.count_nonzero(integers):
            raise ValueError("a key that is there twice")
        self._index.arrange(numbers[integers], slots[integers])
        places = np.flatnonzero(~integers)
        self.names = {number: names[number] for number in numbers[places].tolist()}
        self._slots = dict(zip(map(token, self.names.values()), places.tolist(), strict=True))
        if len(self._slots) < places.size:
            raise ValueError("a key that is there twice")
        self.free = max(self.free, max(self.names, default=-1) + 1)
        self.size = numbers.size

    def name(self, number: int, kind: int) -> Hashable:
        """The key with this number and kind."""
        return self.names[number] if kind == OTHER else number


def _put_together(keys: Sorted, integers: Any, others: Any) -> Slots:
    parts = [(places, integers(own)) for places, own in keys.integers]
    parts += [(places, others(names)) for places, names in keys.others]
    if len(parts) == 1 and parts[0][0] is None:
        slots: Slots = parts[0][1]
    else:
        slots = np.empty(sum(part.size for _, part in parts), np.int32)
        for places, part in parts:
            slots[places] = part
    return slots if keys.positions is None else slots[keys.positions]


def key_at(keys: Any, position: int) -> object:
    """One of the given keys, as a bank has it."""
    return keys[position].as_py() if hasattr(keys[position], "as_py") else canonical(keys[position])


def key_to_json(key: Any) -> Any:
    """A key that is no integer of 64 bits, as JSON."""
    if isinstance(key, tuple):
        return {"tuple": [key_to_json(part) for part in key]}
    if isinstance(key, bytes):
        return {"bytes": binascii.b2a_base64(key, newline=False).decode()}
    if key is None or type(key) in (str, int, float, bool):
        return key
    raise TypeError(f"save keeps keys that are numbers, strings, bytes or tuples of them, not {key!r}; pickle does")


def key_from_json(saved: Any) -> Hashable:
    """The key given to :func:`key_to_json`."""
    match saved:
        case {"tuple": list(parts)}:
            return tuple(key_from_json(part) for part in parts)
        case {"bytes": str(text)}:
            return binascii.a2b_base64(text)
        case str() | int() | float() | bool() | None:
            return saved
    raise ValueError(f"{saved!r} is no saved key")

"""References by key, for each stream of a bank the classifier as it was shipped to it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.bank.keys import canonical, key_from_json, key_to_json
from fourrates.detectors.four_rates import confusion_counts, in_order_of_codes
from fourrates.labels import Labels

Counts = npt.NDArray[np.int64]


class References(Mapping[Hashable, "Counts"]):
    """Confusion counts by key, in the order of the labels, from any ``FourRates(reference=...)``."""

    def __init__(self, labels: Labels, given: Mapping[Any, Any]) -> None:
        self._labels = labels
        self._counts: dict[Hashable, Counts] = {}
        self.add(given)

    def __getitem__(self, key: Hashable) -> Counts:
        return self._counts[key]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, given: Mapping[Any, Any]) -> None:
        """Add more of them, all or none. An existing key must have the same counts."""
        new: dict[Hashable, Counts] = {}
        for key, confusion in given.items():
            name = canonical(key)
            try:
                new[name] = confusion_counts(confusion, self._labels)
            except ValueError as error:
                raise ValueError(f"key {key!r}: {error}") from None
            if name in self._counts and not np.array_equal(self._counts[name], new[name]):
                raise ValueError(f"key {key!r} has two references that differ")
        self._counts |= new

    def replace(self, key: Hashable, counts: Counts) -> None:
        """Replace the reference of a key."""
        self._counts[canonical(key)] = counts

    def numbers(self, keys: Sequence[Hashable]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Observations and right ones of each class for these keys, by code; zero for unknown keys."""
        shape = len(keys), len(self._labels.values)
        given, ones = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        here = [i for i, key in enumerate(keys) if key in self._counts]
        if here:
            counts = in_order_of_codes(np.array([self._counts[keys[i]] for i in here]), self._labels)
            given[here], ones[here] = counts.sum(2), counts.diagonal(axis1=1, axis2=2)
        return given, ones

    def check(self, keys: Sequence[Hashable], held: npt.NDArray[np.void]) -> None:
        """Raise a ValueError unless the look of each key's record has that key's reference, or has left it for good."""
        given, ones = self.numbers(keys)
        fits = ((held["given"] == given) & (held["ones"] == ones) | (held["given"] == 0)).all(1)
        if not fits.all():
            raise ValueError(f"the stream of key {keys[int(fits.argmin())]!r} holds another reference than the key has")

    def to_state(self) -> tuple[list[Any], bytes]:
        """The keys as JSON has them, and the counts of each, one after the other."""
        counts = [confusion.astype("<i8").tobytes() for confusion in self._counts.values()]
        return [key_to_json(key) for key in self._counts], b"".join(counts)

    @classmethod
    def from_state(cls, labels: Labels, keys: Any, counts: bytes | memoryview) -> References:
        """Load the state of :meth:`to_state`; anything else is a ValueError."""
        classes = len(labels.values)
        if not isinstance(keys, list) or len(counts) != 8 * classes**2 * len(keys):
            raise ValueError(f"{len(counts)} bytes of references that do not fit their keys")
        each = np.frombuffer(counts, "<i8").astype(np.int64).reshape(-1, classes, classes)
        return cls(labels, {key_from_json(key): confusion for key, confusion in zip(keys, each, strict=True)})

"""Encode the values of a column as class codes; nothing else does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.events.columns import distinct_values, is_missing, single_letters
from fourrates.events.rows import Mask
from fourrates.labels import NUMBER, Labels, plain, small_codes

Codes = npt.NDArray[np.uint16]

UNKNOWN = np.uint16(65_535)
"""The code of a value that is no label; a detector has far fewer classes."""
CACHED = 1 << 16


class LabelEncoder:
    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._cache: dict[Any, int] = {}
        self.is_small = labels.values == tuple(range(len(labels.values)))  # whole numbers are then codes
        self._letters = np.full(256, UNKNOWN, np.uint16)
        self._blank = np.zeros(256, np.bool_)
        for letter in range(128):
            self._letters[letter], self._blank[letter] = self.code(chr(letter)), self.is_missing(chr(letter))

    def code(self, value: Any) -> int:
        found = self.labels.read(value)
        return found if found >= 0 else int(UNKNOWN)

    def is_missing(self, value: Any) -> bool:
        """Whether a value is missing; a word such as NA counts unless it is a label."""
        return is_missing(value) and self.labels.read(value) < 0

    def encode(self, column: Any) -> tuple[Codes, Mask | None]:
        """Codes of a checked column, and the rows without a value (None if there are none)."""
        if isinstance(column, list):
            return self._encode_list(column)
        if isinstance(column, np.ndarray) and column.dtype.kind in "biu" and self.is_small:
            codes, bad = small_codes(column, len(self.labels.values))
            if bad >= 0:
                codes[(column < 0) | (column >= len(self.labels.values))] = UNKNOWN
            return codes, None
        if (letters := single_letters(column)) is not None:
            codes = self._letters.take(letters)  # twice as fast as by index
            unknown = codes == UNKNOWN
            return codes, unknown & self._blank.take(letters) if unknown.any() else None
        values, positions, gone = distinct_values(column, self.is_missing)
        codes = np.array([*(self.code(value) for value in values), UNKNOWN], np.uint16)
        return codes[positions], gone

    def _encode_list(self, column: list[Any]) -> tuple[Codes, Mask | None]:
        if self.is_small:
            try:
                small = np.frombuffer(bytes(column), np.uint8)  # whole numbers and truth values, nothing else
            except (TypeError, ValueError):
                pass
            else:
                if not small.size or small.max() < len(self.labels.values):
                    return small.astype(np.uint16), None
        cache = self._cache
        try:
            found = [cache[value] for value in column]
        except (KeyError, TypeError):
            found = [self._cached_code(value) for value in column]
        codes = np.array(found, np.int32)
        gone = codes < 0
        return codes.astype(np.uint16), gone if gone.any() else None

    def _cached_code(self, value: Any) -> int:
        """The code of a value, -1 if it is missing."""
        if not isinstance(value, Hashable):
            return int(UNKNOWN)
        code = self._cache.get(value)
        if code is None:
            code = -1 if self.is_missing(value) else self.code(value)
            # Only labels are cached, as other numbers could be chosen so that their hashes collide.
            if code != UNKNOWN and len(self._cache) < CACHED and value == value:
                self._cache[value] = code
        return code


def classes_in(column: Any) -> Counter[Hashable]:
    """The labels in a column, as the values they spell, with counts; missing ones do not count."""
    values: list[Any]
    if (letters := single_letters(column)) is not None:  # without pyarrow.compute, which is slow to import
        numbers = np.bincount(letters, minlength=1)
        values = [chr(letter) for letter in np.flatnonzero(numbers).tolist()]
        numbers = numbers[numbers > 0]
    else:
        values, positions, _ = distinct_values(column)
        numbers = np.bincount(positions, minlength=len(values))
    met: Counter[Hashable] = Counter()
    for value, number in zip(values, numbers.tolist(), strict=False):  # behind the values is the count of missing ones
        if number and not is_missing(value):
            met[_class_of(value)] += number
    return met


def _class_of(value: Any) -> Hashable:
    """Text as the number or truth value it spells; a number without a fraction as a whole number."""
    value = plain(value)
    if isinstance(value, str):
        value = value.strip()
        if value.lower() in ("true", "false"):
            return int(value.lower() == "true")
        if NUMBER.fullmatch(value) and len(value) < 400 and math.isfinite(number := float(value)):
            value = int(value) if abs(number) >= 2**53 and value.lstrip("+-").isdigit() else number
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value if isinstance(value, Hashable) else str(value)

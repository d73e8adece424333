"""Times of one source: its epoch unit and the order of its dates are learned once and then hold for all of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fourrates.events.columns import (
    arrow_moments,
    arrow_nulls,
    arrow_numbers,
    as_number,
    is_missing,
    item,
    listed_values,
    pyarrow,
)
from fourrates.events.dates import Order, Undecided, as_iso, is_written, order_of
from fourrates.events.rows import InputError, Mask
from fourrates.labels import shown

Times = npt.NDArray[np.datetime64]

Unit = Literal["s", "ms", "us", "ns"]
SIZES: dict[Unit, tuple[float, float]] = {"s": (0, 1e11), "ms": (1e11, 1e14), "us": (1e14, 1e17), "ns": (1e17, 1e20)}
"""What numbers of a unit lie between, up to sign: seconds up to the year 5138, and nothing before 1973 in others."""
MICROS: dict[Unit, float] = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
NAT = np.datetime64("NaT", "us")
FIRST, LAST = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
PLAIN_TIMES = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d(?::\d\d){0,2}(?:\.\d+)?)?Z?\n)*")


class Clock:
    """Reads the times of one source; the unit of numbers and the order of dates are learned from the first."""

    __slots__ = ("dates", "unit")

    def __init__(self, unit: Unit | None = None, dates: Order | None = None) -> None:
        if unit is not None and unit not in SIZES:
            raise ValueError(f"unit {unit!r} is not one of {tuple(SIZES)}")
        if dates not in (None, "day", "month"):
            raise ValueError(f"dates {dates!r}: the day or the month is first")
        self.unit, self.dates = unit, dates

    def read(self, column: Any, name: str) -> tuple[Times, bool, Mask | None]:
        """Times in microseconds, whether they carry a zone (and are in UTC then), and where the value is no time."""
        if hasattr(column, "dictionary"):
            values, utc, wrong = self.read(column.dictionary, name)
            positions = arrow_numbers(column.indices.cast("int64"), len(values))
            bad = None if wrong is None else np.append(wrong, False)[positions]
            return np.append(values, NAT)[positions], utc, bad
        kind = str(getattr(column, "type", ""))
        if kind.startswith(("timestamp", "date")):
            return _in_range(arrow_moments(column), getattr(column.type, "tz", None) is not None)
        if kind == "string":
            pa = pyarrow("pyarrow")
            try:  # ISO 8601 without a zone, all at once
                return _in_range(arrow_moments(column.cast(pa.timestamp("us"))), False)
            except pa.ArrowInvalid:
                pass
        elif kind.startswith(("int", "uint", "float", "double")):
            return self._epoch(arrow_numbers(column, 0 if "int" in kind else np.nan), arrow_nulls(column))
        if isinstance(column, np.ndarray) and column.dtype.kind == "M":
            return _in_range(column, False)
        if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
            return self._epoch(column, None)
        return self._listed(listed_values(column), name)

    def _epoch(self, values: npt.NDArray[Any], gone: Mask | None) -> tuple[Times, bool, Mask | None]:
        """Numbers since 1970 as times; those of another unit's size are none."""
        is_float = values.dtype.kind == "f"
        if is_float:
            gone = np.isnan(values) if gone is None else gone | np.isnan(values)
        size = np.abs(values.astype(np.float64))
        known = size < SIZES["ns"][1] if gone is None else (size < SIZES["ns"][1]) & ~gone
        if self.unit is None and known.any():
            first = size[int(known.argmax())]
            self.unit = next(unit for unit, (_, end) in SIZES.items() if first < end)
        low, high = SIZES[self.unit or "s"]
        known &= (size >= low) & (size < high)
        per_micro = MICROS[self.unit or "s"]
        fine = np.where(known, values, 0)
        if is_float:
            micros = (fine.astype(np.float64) * per_micro).astype(np.int64)
        else:
            micros = fine.astype(np.int64) * int(per_micro) if per_micro >= 1 else fine.astype(np.int64) // 1000
        times = np.where(known, micros.view("M8[us]"), NAT)
        bad = ~known if gone is None else ~known & ~gone
        return times, True, bad if bad.any() else None

    def _listed(self, values: list[Any], name: str) -> tuple[Times, bool, Mask | None]:
        self._learn_dates(values, name)
        if self.dates is not None:
            values = [as_iso(value, self.dates) for value in values]
        if (plain := _plain_times(values)) is not None:
            return plain
        micros = np.full(len(values), NAT)
        numbers = np.full(len(values), np.nan)
        bad = np.zeros(len(values), np.bool_)
        utc = False
        for at, value in enumerate(values):
            if is_missing(value):
                continue
            number = None if isinstance(value, bool) else as_number(value)
            if number is not None:
                numbers[at] = number
            elif (moment := _moment(value)) is None:
                bad[at] = True
            else:
                micros[at], zoned = moment
                utc |= zoned
        epoch = ~np.isnan(numbers)
        if epoch.any():
            times, utc, wrong = self._epoch(numbers, None)
            micros = np.where(epoch, times, micros)
            bad = bad if wrong is None else bad | wrong
        return micros, utc, bad if bad.any() else None

    def _learn_dates(self, values: list[Any], name: str) -> None:
        """Learn from the first dates with dots or slashes what is first in them."""
        if self.dates is None and is_written(next((value for value in values if not is_missing(value)), None)):
            try:
                self.dates = order_of(value for value in values if is_written(value))
            except Undecided as error:
                raise InputError(
                    f"column {name!r}: {error}; write dates as 2026-09-01, or with dots as 01.09.2026"
                ) from None


def problem_of_time(column: Any, row: int, name: str, unit: Unit | None) -> str:
    """What is wrong with a time."""
    value = item(column, row)
    units = "" if unit is None or as_number(value) is None else f" in {unit} since 1970, as those before it"
    return f"{shown(value)} in column {name!r} is not a time{units or ' (ISO 8601, 01.09.2026 or epoch)'}"


def _in_range(moments: Times, utc: bool) -> tuple[Times, bool, Mask | None]:
    """In microseconds; what Python has no date for is no time: conversion would wrap around."""
    there = ~np.isnat(moments)
    days = moments.astype("M8[D]")
    bad = there & ((days < FIRST) | (days > LAST))
    if not bad.any():
        return moments.astype("M8[us]", copy=False), utc, None
    return np.where(bad, NAT, np.where(bad, FIRST, moments).astype("M8[us]")), utc, bad


def _plain_times(values: list[Any]) -> tuple[Times, bool, None] | None:
    """Times that are all written alike, without a zone or all with a Z: NumPy reads those at once."""
    if not values or not all(
        isinstance(value, str) and len(value) >= 10 and value[4] == "-" == value[7] for value in values
    ):
        return None
    utc = values[0].endswith("Z")
    if utc != all(value.endswith("Z") for value in values):
        return None
    if not PLAIN_TIMES.fullmatch("\n".join([*values, ""])):  # zones NumPy would read with a warning
        return None
    text = np.array([value.removesuffix("Z") for value in values])
    if any(np.char.find(text, sign, 10).max() >= 0 for sign in ("Z", "+", "-")):
        return None
    try:
        return text.astype("M8[us]"), utc, None
    except ValueError:
        return None


def _moment(value: Any) -> tuple[np.datetime64, bool] | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return np.datetime64(value, "us"), False
        try:
            return np.datetime64(value.astimezone(UTC).replace(tzinfo=None), "us"), True
        except OverflowError:  # a zone that takes it out of the calendar
            return None
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]"), False
    return (np.datetime64(value, "us"), False) if isinstance(value, date) else None


def looks_like_time(value: Any) -> bool:
    """Whether a value is a date or a time as such; numbers may be anything and are not guessed at."""
    if isinstance(value, str):
        iso = value if "/" in value else as_iso(value, "day")
        return re.match(r"\d{4}-\d\d-\d\d", iso) is not None and _moment(iso) is not None
    return isinstance(value, date)


def look_like_times(data: Mapping[str, Any]) -> list[str]:
    """The columns whose first value is a date or a time."""
    return [
        name
        for name, column in data.items()
        if (isinstance(column, np.ndarray) and column.dtype.kind == "M")
        or (len(column) and looks_like_time(item(column, 0)))
    ]

"""Times of one source. The first ones settle the epoch unit and the date order for all of it.

Dates as people write them: with dots (01.09.2026) the day is first. With slashes (09/13/2026) it may be the day or the
month; the first part above 12 settles the order for the whole source, and until then a date is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fourrates.events.columns import (
    arrow_moments,
    arrow_nulls,
    arrow_numbers,
    as_number,
    checked_column,
    is_missing,
    item,
    listed_values,
    pyarrow,
)
from fourrates.events.rows import InputError, Mask
from fourrates.labels import shown

Times = npt.NDArray[np.datetime64]

Order = Literal["day", "month"]  # which is first
Unit = Literal["s", "ms", "us", "ns"]
SIZES: dict[Unit, tuple[float, float]] = {"s": (0, 1e11), "ms": (1e11, 1e14), "us": (1e14, 1e17), "ns": (1e17, 1e20)}
"""The range of numbers of a unit, up to sign, seconds up to the year 5138, and nothing before 1973 in others."""
MICROS: dict[Unit, float] = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
NAT = np.datetime64("NaT", "us")
FIRST, LAST = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
WHOLE = re.compile(r"\s*[-+]?[0-9]+\s*")
WRITTEN = re.compile(
    r"\s*(\d{1,2})([./])(\d{1,2})\2(\d{4})(?:[T ,]\s{0,3}(\d{1,2})(:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z?))?\s*"
)


class Clock:
    """Read the times of one source; the first ones settle the unit of numbers and the order of dates."""

    __slots__ = ("dates", "unit")

    def __init__(self, unit: Unit | None = None, dates: Order | None = None) -> None:
        if unit is not None and unit not in SIZES:
            raise ValueError(f"unit {unit!r} is not one of {tuple(SIZES)}")
        if dates not in (None, "day", "month"):
            raise ValueError(f"dates {dates!r}: the day or the month is first")
        self.unit, self.dates = unit, dates

    def read(self, column: Any) -> tuple[Times, bool, Mask | None]:
        """Times in microseconds, whether they carry a zone (and are in UTC then), and the rows without a valid time."""
        if hasattr(column, "dictionary"):
            with suppress(NotImplementedError):  # of text views
                return self._coded(column)
        kind = str(getattr(column, "type", ""))
        if kind.startswith(("timestamp", "date")):
            return _in_range(arrow_moments(column), getattr(column.type, "tz", None) is not None)
        if kind == "string":
            if (found := _iso_times(column)) is not None:
                return found
        elif kind.startswith(("int", "uint", "float", "double")):
            return self._epoch(arrow_numbers(column, 0 if "int" in kind else np.nan), arrow_nulls(column))
        if isinstance(column, np.ndarray) and column.dtype.kind == "M":
            return _in_range(column, False)
        if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
            return self._epoch(column, None)
        return self._listed(listed_values(column))

    def _coded(self, column: Any) -> tuple[Times, bool, Mask | None]:
        """Each value of a dictionary once, as rows first have it. Decoded, a long text would fill each row."""
        codes = arrow_numbers(column.indices.cast("int64"), -1)
        present, first = np.unique(codes, return_index=True)
        present = present[np.argsort(first)]
        present = present[present >= 0]
        values = checked_column(column.dictionary.take(pyarrow("pyarrow").array(present)), "", validate=False)
        times, utc, bad = self.read(values)
        place = np.full(len(column.dictionary) + 1, present.size)  # behind the values for a null, whose code is -1
        place[present] = np.arange(present.size)
        rows = place[codes]
        return np.append(times, NAT)[rows], utc, None if bad is None else np.append(bad, False)[rows]

    def _epoch(self, values: npt.NDArray[Any], gone: Mask | None) -> tuple[Times, bool, Mask | None]:
        """Numbers since 1970 as times; sizes that suggest another unit are invalid."""
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
            whole = fine.astype(np.uint64 if values.dtype == np.uint64 else np.int64)
            micros = (whole * int(per_micro) if per_micro >= 1 else whole // 1000).astype(np.int64)
        times = np.where(known, micros.view("M8[us]"), NAT)
        bad = ~known if gone is None else ~known & ~gone
        return times, True, bad if bad.any() else None

    def _listed(self, values: list[Any]) -> tuple[Times, bool, Mask | None]:
        if {*map(type, values)} == {int}:
            with suppress(OverflowError):  # beyond 64 bits
                return self._epoch(np.array(values, np.int64), None)
        if (found := _iso_times(values)) is not None:
            return found
        if written := [value for value in values if is_written(value)]:
            self.dates = self.dates or order_of(written)
            values = [as_iso(value, self.dates) for value in values]
            if (found := _iso_times(values)) is not None:
                return found
        micros = np.full(len(values), NAT)
        numbers = np.full(len(values), np.nan)
        exact: dict[int, int] = {}
        bad = np.zeros(len(values), np.bool_)
        utc = False
        for at, value in enumerate(values):
            if is_missing(value):
                continue
            number = None if isinstance(value, bool) else as_number(value)
            if number is not None:
                numbers[at] = number
                if 2**53 <= abs(number) < 2**63 and (type(value) is int or WHOLE.fullmatch(str(value))):
                    exact[at] = int(value)
            elif (moment := _moment(value)) is None:
                bad[at] = True
            else:
                micros[at], zoned = moment
                utc |= zoned
        epoch = ~np.isnan(numbers)
        if epoch.any():
            times, utc, wrong = self._epoch(numbers, None)
            for at, number in exact.items():  # that a float cannot hold
                if not np.isnat(times[at]):
                    times[at] = np.datetime64(number // (1000 if self.unit == "ns" else 1), "us")
            micros = np.where(epoch, times, micros)
            bad = bad if wrong is None else bad | wrong
        return micros, utc, bad if bad.any() else None


def problem_of_time(value: Any, name: str, clock: Clock) -> str:
    if clock.dates is None and is_written(value):
        why = f"may be {either_of(value)}; write dates as 2026-09-01, or with dots as 01.09.2026"
        return f"{shown(value)} in column {name!r} {why}"
    number = None if isinstance(value, bool) else as_number(value)
    stray = number is not None and abs(number) < SIZES["ns"][1]  # its size shows another unit
    why = f"in {clock.unit} since 1970, as those before it" if stray else "(ISO 8601, 01.09.2026 or epoch)"
    return f"{shown(value)} in column {name!r} is not a time {why}"


def _in_range(moments: Times, utc: bool) -> tuple[Times, bool, Mask | None]:
    """Times in microseconds; those outside Python's calendar are invalid, since conversion would wrap around."""
    there = ~np.isnat(moments)
    days = moments.astype("M8[D]")
    bad = there & ((days < FIRST) | (days > LAST))
    if not bad.any():
        return moments.astype("M8[us]", copy=False), utc, None
    return np.where(bad, NAT, np.where(bad, FIRST, moments).astype("M8[us]")), utc, bad


def _iso_times(texts: Any) -> tuple[Times, bool, Mask | None] | None:
    """Text in ISO 8601, all with a zone or all without one, which Arrow reads at once; None for anything else."""
    if isinstance(texts, list) and {*map(type, texts)} != {str}:
        return None
    with suppress(InputError, UnicodeEncodeError):  # without pyarrow, or broken text: one at a time
        pa = pyarrow("pyarrow")
        texts = pa.array(texts, pa.string()) if isinstance(texts, list) else texts
        for zone in (None, "UTC"):
            with suppress(pa.ArrowInvalid):
                return _in_range(arrow_moments(texts.cast(pa.timestamp("us", zone))), zone is not None)
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
        except OverflowError:  # a zone that moves it outside the calendar
            return None
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]"), False
    return (np.datetime64(value, "us"), False) if isinstance(value, date) else None


def looks_like_time(value: Any) -> bool:
    """Whether a value is clearly a date or a time; numbers are ambiguous and do not count."""
    if isinstance(value, str):
        iso = value if "/" in value else as_iso(value, "day")
        return re.match(r"\d{4}-\d\d-\d\d", iso) is not None and _moment(iso) is not None
    return isinstance(value, date)


def look_like_times(data: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, column in data.items()
        if (isinstance(column, np.ndarray) and column.dtype.kind == "M")
        or (len(column) and looks_like_time(item(column, 0)))
    ]


def is_written(value: Any) -> bool:
    """Whether a value is a date with dots or slashes, the year last."""
    return isinstance(value, str) and WRITTEN.fullmatch(value) is not None


def order_of(dates: Iterable[str]) -> Order | None:
    """Whether day or month is first, by the first date that shows it; None if none does."""
    for text in dates:
        low, sign, high = WRITTEN.fullmatch(text).group(1, 2, 3)  # type: ignore[union-attr]
        if sign == "." or int(low) > 12:
            return "day"
        if int(high) > 12:
            return "month"
    return None


def either_of(text: str) -> str:
    from calendar import month_name

    day, month = map(int, text.split("/")[:2])
    return f"{day} {month_name[month]} or {month} {month_name[day]}"


def as_iso(value: Any, order: Order | None) -> Any:
    """Such a date in ISO 8601; anything else, and an ambiguous date, unchanged."""
    match = WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    day, sign, month, year, hour, rest, zone = match.groups()
    if sign == "/" and order is None:
        return value
    if sign == "/" and order == "month":
        day, month = month, day
    iso = f"{year}-{month:0>2}-{day:0>2}"
    return iso if hour is None else f"{iso} {hour:0>2}{rest}{zone}"

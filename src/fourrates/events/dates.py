"""Dates as people write them: 01.09.2026, day first, and 09/13/2026, whose order the column itself must show.

With dots the day is first. With slashes it may be the day or the month; the first part above 12 settles the order for
the whole source, and until then a date is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

Order = Literal["day", "month"]  # which is first

WRITTEN = re.compile(
    r"\s*(\d{1,2})([./])(\d{1,2})\2(\d{4})(?:[T ,]\s{0,3}(\d{1,2})(:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z?))?\s*"
)


def is_written(value: Any) -> bool:
    """Whether a value is a date with dots or slashes, the year last."""
    return isinstance(value, str) and WRITTEN.fullmatch(value) is not None


def order_of(dates: Iterable[str]) -> Order | None:
    """Whether day or month is first, by the first date that shows it; None if none does."""
    for date in dates:
        low, sign, high = WRITTEN.fullmatch(date).group(1, 2, 3)  # type: ignore[union-attr]
        if sign == "." or int(low) > 12:
            return "day"
        if int(high) > 12:
            return "month"
    return None


def either_of(text: str) -> str:
    """The two readings of a date with slashes."""
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
    date = f"{year}-{month:0>2}-{day:0>2}"
    return date if hour is None else f"{date} {hour:0>2}{rest}{zone}"

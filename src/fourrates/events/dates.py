"""Dates as people write them: 01.09.2026, day first, and 09/13/2026, where a column itself says what is first.

With dots the day is first wherever dates are written so. With slashes some put the day first and some the month: a part
above 12 decides for the whole column, and without one a date is not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

Order = Literal["day", "month"]  # which is first

WRITTEN = re.compile(
    r"\s*(\d{1,2})([./])(\d{1,2})\2(\d{4})(?:[T ,]\s{0,3}(\d{1,2})(:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z?))?\s*"
)


class Undecided(ValueError):
    """Dates of which neither part is above 12, or some day first and some month first: the message has one."""


def is_written(value: Any) -> bool:
    """Whether a value is a date with dots or slashes, the year last."""
    return isinstance(value, str) and WRITTEN.fullmatch(value) is not None


def order_of(dates: Iterable[str]) -> Order | None:
    """Which is first in such dates, day or month; None if there are none."""
    found: Order | None = None
    first: str | None = None
    for date in dates:
        first = first or date
        one, sign, other = WRITTEN.fullmatch(date).group(1, 2, 3)  # type: ignore[union-attr]
        if sign == ".":
            return "day"
        order: Order | None = "day" if int(one) > 12 else "month" if int(other) > 12 else None
        if order is not None and found not in (None, order):
            raise Undecided(f"{date!r} has the {order} first, others before it do not")
        found = found or order
    if found is None and first is not None:
        raise Undecided(f"{first!r} may be {_both(first)}")
    return found


def _both(text: str) -> str:
    from calendar import month_name

    one, other = map(int, text.split("/")[:2])
    return f"{one} {month_name[other]} or {other} {month_name[one]}"


def as_iso(value: Any, order: Order) -> Any:
    """A date so written as ISO 8601 has it; anything else as it is."""
    match = WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    one, sign, other, year, hour, rest, zone = match.groups()
    day, month = (one, other) if sign == "." or order == "day" else (other, one)
    date = f"{year}-{month:0>2}-{day:0>2}"
    return date if hour is None else f"{date} {hour:0>2}{rest}{zone}"

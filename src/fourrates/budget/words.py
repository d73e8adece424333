"""Budgets and volumes in everyday words: 100000 events, "1 per month", "one a quarter"; "40,000 a day"."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt

UNITS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30.44 * 86_400,
    "quarter": 91.31 * 86_400,
    "year": 365.25 * 86_400,
}
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
FORM = (
    r"\s*(?:(?P<alarms>{number})(?:\s+false\s+alarms?)?\s+(?:per|in|every|an?)\s+(?:an?\s+)?)?"
    r"(?P<amount>{number})?\s*(?P<unit>[a-z]*)\s*".format(number=rf"\d[\d_,]*(?:\.\d+)?(?:e\d+)?|{'|'.join(NUMBERS)}")
)
VOLUME = (
    r"\s*(?P<amount>\d[\d_,]*(?:\.\d+)?(?:e\d+)?)\s*(?P<times>k|million)?\s*(?:events?|predictions?)?\s*"
    r"(?:/|per|every|an?)\s*(?P<unit>[a-z]+)\s*"
)
TIMES = {None: 1, "k": 1_000, "million": 1_000_000}
DEFAULT_EVENTS = 100_000  # between two false alarms, if no time is known
DEFAULT_WORDS = "1 per month"
LEAST = 100  # events; a smaller budget makes no sense


def run_length(text: str, rate: float | None, name: str = "budget") -> float:
    """The events between two false alarms in a budget given in words.

    `rate` is in events per second, if times are known; `name` is that of the budget in messages.

    Examples
    --------
    >>> from fourrates.budget.words import run_length
    >>> run_length("100000", None)
    100000.0
    >>> run_length("1 per 30 days", rate=0.5)  # one event every two seconds
    1296000.0
    >>> run_length("two a week", rate=0.5)
    151200.0
    >>> run_length("2 per week", None)
    Traceback (most recent call last):
    ...
    ValueError: budget '2 per week' needs a column of times to know how many events that is
    """
    form = re.fullmatch(FORM, text.lower())
    alarms, amount, unit = (
        (form["alarms"], form["amount"], form["unit"].removesuffix("s")) if form else (None, None, "?")
    )
    if unit not in ("", "event", *UNITS) or (amount is None and unit == ""):
        raise ValueError(f"{name} {text!r}: try '1 per month' or 100000")
    length = _amount(amount or "1", name) / _amount(alarms or "1", name)
    if unit in ("", "event"):
        return length
    if rate is None:
        raise ValueError(f"{name} {text!r} needs a column of times to know how many events that is")
    return length * UNITS[unit] * rate


def volume(text: str, name: str = "volume") -> float:
    """Events per second, from a volume in words.

    Such as "40,000 a day", "40000/day", "40k/day" or "2 million per month".

    Examples
    --------
    >>> from fourrates.budget.words import run_length, volume
    >>> run_length("one a quarter", volume("40,000 a day"))
    3652400.0
    """
    form = re.fullmatch(VOLUME, text.lower())
    unit = form["unit"].removesuffix("s") if form else ""
    if form is None or unit not in UNITS:
        raise ValueError(f"{name} {text!r}: try 40000/day or '40,000 a day'")
    return _amount(form["amount"], name) * TIMES[form["times"]] / UNITS[unit]


def duration(seconds: float) -> str:
    """A length of time in words, in its natural unit."""
    for unit, most in (("second", 100), ("minute", 100), ("hour", 48), ("day", 61), ("month", 24), ("year", math.inf)):
        number = seconds / UNITS[unit]
        if number < most:
            break
    shown = f"{number:,.0f}" if number >= 9.95 or unit == "second" else f"{number:.1f}".removesuffix(".0")
    return f"{shown} {unit}{'' if shown == '1' else 's'}"


def is_duration(text: str, name: str = "budget") -> bool:
    """Whether a budget is one of time, so that its events depend on the daily volume."""
    return run_length(text, 1.0, name) != run_length(text, 2.0, name)


def _amount(text: str, name: str) -> float:
    value = NUMBERS.get(text) or float(text.replace(",", "").replace("_", ""))
    if not value > 0:
        raise ValueError(f"{name}: {text} is not positive")
    return float(value)


def event_rate(times: npt.NDArray[np.datetime64] | None) -> float | None:
    """Events per second, from their times; None if these do not determine it."""
    known = times[~np.isnat(times)] if times is not None else np.empty(0, "M8[us]")
    return rate_between(known.size, known.min(), known.max()) if known.size > 1 else None


def rate_between(events: int, first: np.datetime64, last: np.datetime64) -> float | None:
    """Events per second between two times; of dates, the last day counts too.

    Examples
    --------
    >>> import numpy as np
    >>> from fourrates.budget.words import rate_between
    >>> 86_400 * rate_between(70, np.datetime64("2026-09-01"), np.datetime64("2026-09-07"))
    10.0
    """
    seconds = float((last - first) / np.timedelta64(1, "s"))
    if all(time == time.astype("M8[D]") for time in (first, last)):
        return events / (seconds + UNITS["day"])
    return (events - 1) / seconds if seconds > 0 else None


def default_budget(rate: float | None) -> tuple[float, str]:
    """The default events between two false alarms, and a sentence about it."""
    if rate is None:
        return float(DEFAULT_EVENTS), f"budget: one false alarm in {DEFAULT_EVENTS:,} events"
    month = run_length(DEFAULT_WORDS, rate)
    length = min(max(month, LEAST), 1e12)
    if length != month:
        return length, f"budget: one false alarm in {length:,.0f} events, at {86_400 * rate:,.0f} a day"
    return length, f"budget: one false alarm a month, which is {length:,.0f} events at {86_400 * rate:,.0f} a day"

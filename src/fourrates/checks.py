"""Arguments that are numbers: each as it is kept, or an error that says what is accepted."""

from __future__ import annotations

import math
import operator


def check_number(value: float, name: str) -> float:
    """`value` as a float, or an error that names it."""
    if isinstance(value, str | bytes):
        raise TypeError(f"{name} {value!r} is not a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} {value!r} is not a number") from None


def check_deviations(warn: float, detect: float) -> tuple[float, float]:
    """How many deviations warn and how many alarm: positive, the second more."""
    warn, detect = check_number(warn, "warn"), check_number(detect, "detect")
    for name, value in (("warn", warn), ("detect", detect)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} {value!r} is not a positive number of deviations")
    if not warn < detect:
        raise ValueError(f"warn {warn!r} is not smaller than detect {detect!r}")
    return warn, detect


def check_shares(warn: float, detect: float) -> tuple[float, float]:
    """What share of the best value warns and what share alarms: in (0, 1), the second less."""
    warn, detect = check_number(warn, "warn"), check_number(detect, "detect")
    for name, value in (("warn", warn), ("detect", detect)):
        if not 0 < value < 1:
            raise ValueError(f"{name} {value!r} is not in (0, 1)")
    if not warn > detect:
        raise ValueError(f"warn {warn!r} is not larger than detect {detect!r}")
    return warn, detect


def check_whole(value: int, name: str, least: int = 1) -> int:
    """A count of at least `least`."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} {value!r} is not a whole number") from None
    if whole < least:
        raise ValueError(f"{name} {whole!r} is less than {least}")
    return whole

"""Check numeric arguments. Return the normalized value, or raise an error that names valid ones."""

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
    """Deviations that warn and alarm, positive, the second larger."""
    warn, detect = check_number(warn, "warn"), check_number(detect, "detect")
    for name, value in (("warn", warn), ("detect", detect)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} {value!r} is not a positive number of deviations")
    if not warn < detect:
        raise ValueError(f"warn {warn!r} is not smaller than detect {detect!r}")
    return warn, detect


def check_shares(warn: float, detect: float) -> tuple[float, float]:
    """Shares of the best value that warn and alarm, in (0, 1), the second smaller."""
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

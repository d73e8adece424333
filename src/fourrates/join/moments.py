"""Times and lengths of time as numbers; numbers as they are, dates as microseconds since 1970."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Unit = Literal["number", "date"]


def duration(max_wait: Any) -> tuple[Unit | None, float]:
    """The unit that goes with a longest wait, and the wait as a number."""
    if max_wait is None:
        return None, math.inf
    unit: Unit = "date" if isinstance(max_wait, timedelta | np.timedelta64) else "number"
    if unit == "date":
        longest = float(np.timedelta64(max_wait) / np.timedelta64(1, "us"))
    elif isinstance(max_wait, bool) or not isinstance(max_wait, int | float | np.integer | np.floating):
        raise TypeError(f"max_wait {max_wait!r} is neither a number nor a timedelta")
    else:
        longest = float(max_wait)
    if not 0 <= longest < math.inf:
        raise ValueError(f"max_wait {max_wait!r} is not a length of time")
    return unit, longest


def moments(times: Any) -> tuple[npt.NDArray[np.float64], Unit]:
    """Times as numbers, dates as microseconds since 1970 (UTC if they have a zone), and their unit."""
    values = np.asarray(_utc(times) if isinstance(times, datetime) else times)
    if values.dtype.kind == "O":
        listed = [_utc(value) for value in values.ravel().tolist()]
        kinds = {isinstance(value, date | np.datetime64) for value in listed if value is not None}
        if len(kinds) == 2:
            raise TypeError("times must all be numbers, or all be dates")
        missing, kind = (np.datetime64("NaT", "us"), "M8[us]") if True in kinds else (math.nan, "f8")
        try:
            values = np.array([missing if value is None else value for value in listed], kind).reshape(values.shape)
        except (TypeError, ValueError):
            raise TypeError("times must be numbers or dates") from None
    if values.dtype.kind == "M":
        micros = values.astype("M8[us]")
        return np.where(np.isnat(micros), np.nan, micros.astype(np.int64).astype(np.float64)), "date"
    if values.dtype.kind in "iuf" or not values.size:
        return values.astype(np.float64), "number"
    raise TypeError(f"times of type {values.dtype} are neither numbers nor dates")


def _utc(moment: Any) -> Any:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment

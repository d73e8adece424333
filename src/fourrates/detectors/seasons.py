"""Seasons as strata, the hours of a day or the days of a week, and whether errors follow one of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Season = Literal["day", "week"]
SEASONS: dict[Any, int] = {"day": 24, "week": 7}  # strata
PERIODS = {"day": 4, "week": 2}  # full ones before a season is chosen
MOST = 8  # that are examined
HOUR, DAY = 3_600_000_000, 86_400_000_000
SHUFFLES = 2_000
LEVEL = 0.005


def strata_of(times: npt.NDArray[np.datetime64], season: Season) -> npt.NDArray[np.uint16]:
    """The hour of each time, or its weekday from Monday on; 0 if the time is not known."""
    whole = times.astype("M8[us]").view(np.int64)
    found = whole // HOUR % 24 if season == "day" else (whole // DAY + 3) % 7  # the first of 1970 was a Thursday
    return np.where(np.isnat(times), 0, found).astype(np.uint16)


def choose_season(
    times: npt.NDArray[np.datetime64], truths: npt.NDArray[np.uint16], preds: npt.NDArray[np.uint16]
) -> Season | None:
    """The season that the errors of a stream follow, by its first full periods; None if there are too few, or none.

    A season repeats, so a stratum's excess in one period is there in the others too. So the strata of each period are
    shuffled (hours, whose neighbours are alike, only turned). The season is significant if hardly any shuffle makes the
    periods agree as well. Levels of whole periods or days do not matter.
    """
    seen = ~np.isnat(times)
    if not seen.any():
        return None
    at, truths, wrong = times[seen].astype("M8[us]").view(np.int64), truths[seen], (truths != preds)[seen]
    found: dict[float, Season] = {}
    for season, unit, strata in (("week", DAY, 7), ("day", HOUR, 24)):
        units = at // unit - at.min() // unit - 1  # from the first full day or hour on
        whole = min(int((units.max() - 1) // strata) if units.max() > 0 else 0, MOST)
        if whole >= PERIODS[season]:
            p = _p_value(units, truths, wrong, whole, strata, turned=season == "day")
            if p < LEVEL:
                found[p] = season  # type: ignore[assignment]
    return found[min(found)] if found else None


def _p_value(units: Any, truths: Any, wrong: Any, periods: int, strata: int, turned: bool) -> float:
    """How often shuffled periods agree at least as well as these."""
    inside = (units >= 0) & (units < periods * strata)
    cells, size = units[inside], periods * strata
    excess, variance = np.zeros((2, size))
    for c in np.unique(truths):
        own = truths[inside] == c
        n, errors = np.bincount(cells[own], minlength=size), np.bincount(cells[own], wrong[inside][own], size)
        rate = errors.sum() / max(n.sum(), 1)
        excess, variance = excess + errors - rate * n, variance + rate * (1 - rate) * n
    score = (excess / np.sqrt(np.maximum(variance, 1e-9) + 1)).reshape(periods, strata)
    score = score - score.mean(1, keepdims=True)
    random, agree = np.random.default_rng(0), (score.sum(0) ** 2).sum()
    if turned:
        shifts = random.integers(strata, size=(SHUFFLES, periods, 1))
        order = (np.arange(strata) + shifts) % strata
    else:
        order = random.random((SHUFFLES, periods, strata)).argsort(2)
    shuffled = np.take_along_axis(np.broadcast_to(score, order.shape), order, 2).sum(1)
    return (1 + int(((shuffled**2).sum(1) >= agree * (1 - 1e-9)).sum())) / (1 + SHUFFLES)

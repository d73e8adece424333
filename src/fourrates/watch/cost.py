"""The daily cost of a drift, its errors beyond normal, each at its price."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fourrates.findings import DEVIATIONS, RateState
from fourrates.labels import FOUR, rate_names

ERRORS = {"false alarm": FOUR[0], "miss": FOUR[1]}
DAY = np.timedelta64(1, "D")
MOST = 1e12  # largest cost of an error, so that sums stay finite


@dataclass(frozen=True, slots=True)
class ExtraCost:
    """The cost of a drift compared with normal.

    Attributes
    ----------
    value, lower, upper : float
        The extra cost since the alarm, with an interval at 90 %.
    days : float or None
        How long ago the alarm was, if times are known.
    """

    value: float
    lower: float
    upper: float
    days: float | None = None

    def __str__(self) -> str:
        over, unit = (1.0, "since the alarm") if self.days is None else (self.days, "a day")
        value, lower, upper = (f"{rounded(number / over):,.6g}" for number in (self.value, self.lower, self.upper))
        return f"costs about {value} {unit} ({lower} to {upper})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can have."""
        return {"value": self.value, "lower": self.lower, "upper": self.upper, "days": self.days}


def rounded(number: float) -> float:
    return 0.0 if number == 0 else round(number, 1 - math.floor(math.log10(abs(number))))


def prices(cost: Mapping[Any, float], labels: Sequence[Hashable]) -> dict[str, float]:
    """Prices of errors, given for "miss" and "false alarm" or for true classes, by the recall they lower.

    Examples
    --------
    >>> from fourrates.watch.cost import prices
    >>> prices({"miss": 120, "false alarm": 3}, (0, 1))
    {'tpr': 120.0, 'tnr': 3.0}
    """
    known: dict[Any, str] = dict(zip(labels, rate_names(labels), strict=False))
    known |= {str(label): rate for label, rate in known.items()} | (ERRORS if len(labels) == 2 else {})
    made: dict[str, float] = {}
    if not isinstance(cost, Mapping):
        raise TypeError(f"cost {cost!r} names no errors: {{'miss': 120, 'false alarm': 3}}")
    for name, price in cost.items():
        if name not in known:
            listed = ", ".join(ERRORS) if len(labels) == 2 else ", ".join(map(str, labels))
            raise ValueError(f"cost: {name!r} is none of {listed}")
        if not (isinstance(price, int | float) and 0 <= price <= MOST):
            raise ValueError(f"cost: {price!r} for {name!r} is not a price")
        made[known[name]] = float(price)
    return made


def extra_cost(
    rates: Mapping[str, RateState],
    price: Mapping[str, float],
    events: Mapping[str, float],
    since: np.timedelta64 | None,
) -> ExtraCost | None:
    """The extra cost of a drift since its alarm, from the rates away from normal; None while these are not known.

    `events` are, by recall, those of its class since the alarm, `since` the time since then. Each rate, now and normal,
    is uncertain by its own interval; these are combined by squares (Newcombe 1998).
    """
    value = below = above = 0.0
    for rate, state in rates.items():
        normal, now = state.normal, state.now
        if (
            rate not in price
            or rate not in events
            or normal is None
            or now is None
            or not normal.n
            or now.n < state.enough
        ):
            continue
        fall, errors = normal.value - now.value, price[rate] * events[rate]
        value += errors * fall
        volume = (DEVIATIONS * fall) ** 2 / events[rate] if events[rate] else 0.0  # a count by chance
        below += errors**2 * ((normal.value - normal.lower) ** 2 + (now.upper - now.value) ** 2 + volume)
        above += errors**2 * ((normal.upper - normal.value) ** 2 + (now.value - now.lower) ** 2 + volume)
    if not above:
        return None
    days = None if since is None or not since > np.timedelta64(0) else float(since / DAY)
    return ExtraCost(value, value - math.sqrt(below), value + math.sqrt(above), days)

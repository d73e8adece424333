"""Drifts that stand: until what moved is back where it was, or until somebody has seen it and takes it as it is.

With a reference the detector itself says when a rate is back. Without one, as segments are, each drift begins a new
concept, and the way back is one more drift: here it is known for what it is, by the levels from before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from fourrates.drift import Drift, Share


class Standing(msgspec.Struct, array_like=True, frozen=True):
    """A drift that stands.

    Attributes
    ----------
    event : int
        Of the monitor, at which it was found.
    time : float
        Since when the whole, or the segment, is drifted, in seconds since 1970.
    at : int
        The event of the stream that the latest drift was found at: names it.
    away : dict
        Without a reference: the rates that are away, each with its level before and its level since.
    """

    event: int
    time: float
    at: int = -1
    away: dict[str, tuple[float, float]] = {}


def rates_away(drift: Drift, away: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The rates that are away after a drift without a reference, given those that were before it.

    Of rates that move together, the one that moved most stands for all: how the others moved is uncertain, and so would
    be whether they are back. A drift that leads back begins nothing new, whatever else moves with it.

    Parameters
    ----------
    drift : Drift
        The latest.
    away : mapping
        Rates that were away: the level they left, and the one they went to.

    Examples
    --------
    >>> from fourrates.drift import RateChange
    >>> def moved(**rates):
    ...     levels = {rate: (Share.of(900 * a, 900), Share.of(100 * b, 100)) for rate, (a, b) in rates.items()}
    ...     changes = [RateChange(rate, "down", 1.0, 1.0, None, 100, None, *pair) for rate, pair in levels.items()]
    ...     return Drift(99, 99, tuple(changes), ())
    >>> away = rates_away(moved(tnr=(0.97, 0.98), tpr=(0.9, 0.5)), {})
    >>> away
    {'tpr': (0.9, 0.5)}
    >>> rates_away(moved(tpr=(0.5, 0.7)), away), rates_away(moved(tpr=(0.5, 0.88)), away)
    ({'tpr': (0.9, 0.7)}, {})
    >>> rates_away(moved(tnr=(0.98, 0.8)), away)
    {'tpr': (0.9, 0.5), 'tnr': (0.98, 0.8)}
    """
    moved = {change.rate: (change.before, change.after) for change in drift.changes if change.before and change.after}
    left = dict(away)
    for rate in away.keys() & moved.keys():
        now = moved[rate][1]
        if is_back(now, *away[rate]):
            del left[rate]
        else:
            left[rate] = away[rate][0], now.value
    if len(left) == len(away) and moved:
        most = max(moved, key=lambda rate: abs(_log_odds(moved[rate][1]) - _log_odds(moved[rate][0])))
        if most not in away:
            left[most] = moved[most][0].value, moved[most][1].value
    return left


def _log_odds(share: Share) -> float:
    """The log-odds of a rate; half an observation more of each kind keeps them finite."""
    ones = share.value * share.n
    return math.log((ones + 0.5) / (share.n - ones + 0.5))


def is_back(now: Share, before: float, after: float) -> bool:
    """Whether a rate that left its level is back: nearer to it than to where it went, and not significantly short."""
    reached = now.upper >= before if after < before else now.lower <= before
    return reached and abs(now.value - before) < abs(now.value - after)

"""Drifts that stand: until what moved is back where it was, or until somebody has seen it and takes it as it is.

With a reference the detector itself says when a rate is back. Without one, as segments are, each drift begins a new
concept, and the way back is one more drift: here it is known for what it is, by the levels from before.
"""

from __future__ import annotations

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
        Without a reference: the rates that moved, each with its level before and its level since.
    """

    event: int
    time: float
    at: int = -1
    away: dict[str, tuple[float, float]] = {}


def rates_away(
    drift: Drift, levels: Mapping[str, Share], away: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """The rates that are away after a drift without a reference, given those that were before it.

    Parameters
    ----------
    drift : Drift
        The latest.
    levels : mapping
        Each recall up to it, since the last drift: the level of those that it does not name.
    away : mapping
        Rates that were away: the level they left, and the one they went to.

    Examples
    --------
    >>> from fourrates.drift import RateChange
    >>> def moved(before, after):
    ...     shares = Share.of(900 * before, 900), Share.of(100 * after, 100)
    ...     return Drift(99, 99, (RateChange("tpr", "down", 1.0, 1.0, None, 100, None, *shares),), ())
    >>> away = rates_away(moved(0.9, 0.5), {}, {})
    >>> away
    {'tpr': (0.9, 0.5)}
    >>> rates_away(moved(0.5, 0.7), {}, away), rates_away(moved(0.5, 0.88), {}, away)
    ({'tpr': (0.9, 0.7)}, {})
    """
    moved = {change.rate: change for change in drift.changes}
    left: dict[str, tuple[float, float]] = {}
    for rate, (before, after) in away.items():
        now = moved[rate].after if rate in moved else levels.get(rate)
        if now is None or not is_back(now, before, after):
            left[rate] = before, after if now is None or not now.n else now.value
    for rate, change in moved.items():
        if rate not in away and change.before is not None and change.after is not None:
            left[rate] = change.before.value, change.after.value
    return left


def is_back(now: Share, before: float, after: float) -> bool:
    """Whether a rate that left its level is back: nearer to it than to where it went, and not significantly short."""
    reached = now.upper >= before if after < before else now.lower <= before
    return reached and abs(now.value - before) < abs(now.value - after)

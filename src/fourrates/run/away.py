"""Drifts without a reference: which rates are away from where they were, and which drift leads back.

With a reference the detector itself says when a rate is back. Without one each drift begins a new concept, and the way
back is one more drift: here it is known for what it is, a recovery, by the levels from before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from fourrates.drift import Drift, Recovery, Share

Away = dict[str, tuple[float, float]]  # rates that are away, each with its level before and its level since
Levels = Mapping[str, tuple[Share, Share]]  # rates that moved, before and after


def rates_away(moved: Levels, away: Mapping[str, tuple[float, float]]) -> Away:
    """The rates that are away after a drift without a reference, given those that were before it.

    Of rates that move together, the one that moved most stands for all: how the others moved is uncertain, and so would
    be whether they are back. A drift that leads back begins nothing new, whatever else moves with it. Only an
    improvement leads back: a rate that rose and falls again is away from where it had risen to.

    Parameters
    ----------
    moved : mapping
        Rates that moved in the latest drift, before and after.
    away : mapping
        Rates that were away: the level they left, and the one they went to.

    Examples
    --------
    >>> from fourrates.drift import Share
    >>> def moved(**rates):
    ...     return {rate: (Share.of(900 * a, 900), Share.of(100 * b, 100)) for rate, (a, b) in rates.items()}
    >>> away = rates_away(moved(tnr=(0.97, 0.98), tpr=(0.9, 0.5)), {})
    >>> away
    {'tpr': (0.9, 0.5)}
    >>> rates_away(moved(tpr=(0.5, 0.7)), away), rates_away(moved(tpr=(0.5, 0.88)), away)
    ({'tpr': (0.9, 0.7)}, {})
    >>> rates_away(moved(tpr=(0.97, 0.8)), {"tpr": (0.8, 0.97)})
    {'tpr': (0.97, 0.8)}
    >>> rates_away(moved(tnr=(0.98, 0.8)), away)
    {'tpr': (0.9, 0.5), 'tnr': (0.98, 0.8)}
    """
    left = dict(away)
    for rate in away.keys() & moved.keys():
        (home, level), (old, now) = away[rate], moved[rate]
        if now.value < old.value:
            left[rate] = max(home, old.value), now.value
        elif is_back(now, home, level):
            del left[rate]
        else:
            left[rate] = home, now.value
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
    """Whether a rate that fell is back: nearer to where it was than to where it went, and not significantly short."""
    return after < before <= now.upper and abs(now.value - before) < abs(now.value - after)


def as_recovery(drift: Drift) -> Recovery:
    """A drift that leads back, as the recovery it is."""
    return Recovery(**{field.name: getattr(drift, field.name) for field in fields(drift)})

"""Drifts without a reference: which rates are away from where they were, and which drift leads back.

With a reference the detector itself says when a rate is back. Without one each drift begins a new concept, and the way
back is one more drift: here it is known for what it is, a recovery, by the levels from before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fourrates.drift import Drift, Recovery, Share

if TYPE_CHECKING:
    from fourrates.detectors import Detector

Away = dict[str, tuple[float, float]]  # rates that are away, each with its level before and its level since
SHORT = 6.63  # deviance from where it was that one rate in a hundred that is back exceeds
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
    """Whether a rate that fell is back: nearer to where it was than to where it went, and not significantly short.

    A likelihood ratio says whether it is short, at 1 %: an alarm comes after few observations, some of them perhaps
    from before the change, so that the 90 % interval ends below the truth too often.
    """
    if after >= before or abs(now.value - before) >= abs(now.value - after):
        return False
    return now.value >= before or _deviance(now, before) < SHORT


def _deviance(now: Share, level: float) -> float:
    """Twice the log-likelihood of the observed rate over that of a level above it."""
    level = min(level, 1 - 0.5 / now.n)  # no level is known to be 1
    right = now.value * math.log(now.value / level) if now.value > 0 else 0.0
    return 2 * now.n * (right + (1 - now.value) * math.log((1 - now.value) / (1 - level)))


class Recoveries:
    """Streams without a reference that are away from where they were, and the drifts that lead back.

    What is kept is bounded by the streams that have drifted.

    Parameters
    ----------
    holds : bool
        Whether the streams hold a reference. Their detector itself reports a recovery then, and nothing is kept.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.run.away import Recoveries
    >>> detector, recoveries = fr.FourRates(arl=100_000), Recoveries()
    >>> right = [1, 1, 1, 1, 0] * 400 + [1, 0] * 500 + [1, 1, 1, 1, 0] * 400
    >>> for drift in detector.update_many([1] * len(right), right):
    ...     print(type(recoveries.recognize("shop", drift)).__name__)
    Drift
    Recovery
    """

    def __init__(self, holds: bool = False) -> None:
        self._holds = holds
        self._away: dict[Hashable, Away] = {}

    @classmethod
    def of(cls, detector: Detector) -> Recoveries:
        """Those of streams that are watched with this detector."""
        return cls(detector.parameters.get("after") == "hold")

    def recognize(self, stream: Hashable, drift: Drift) -> Drift:
        """The drift of a stream; a :class:`~fourrates.Recovery` if after it nothing is away that was before."""
        if self._holds:
            return drift
        before = self._away.pop(stream, {})
        away = rates_away(drift.levels, before)
        if away:
            self._away[stream] = away
        return _as_recovery(drift) if before and not away else drift

    def keep_only(self, streams: Container[Hashable]) -> None:
        """Forget all but these streams."""
        self._away = {stream: away for stream, away in self._away.items() if stream in streams}

    def to_plain(self, name: Callable[[Any], Any]) -> list[list[Any]]:
        """What JSON can say of it, with streams as `name` says them."""
        return [[name(stream), away] for stream, away in self._away.items()]

    def adopt(self, saved: Iterable[Any], stream_of: Callable[[Any], Hashable]) -> Recoveries:
        """Know what :meth:`to_plain` gave; bytes that it cannot have given are a ValueError, TypeError or the like."""
        for name, rates in saved:
            stream = stream_of(name)
            away = {str(rate): (float(before), float(after)) for rate, (before, after) in rates.items()}
            if self._holds or stream in self._away or not away:
                raise ValueError(f"rates that are away in stream {name!r}, which cannot have any")
            if not all(0 <= level <= 1 for levels in away.values() for level in levels):
                raise ValueError(f"rates of stream {name!r} that are away have levels that cannot be")
            self._away[stream] = away
        return self


def _as_recovery(drift: Drift) -> Recovery:
    """A drift that leads back, as the recovery it is."""
    return Recovery(**{field.name: getattr(drift, field.name) for field in fields(drift)})

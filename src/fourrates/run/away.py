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

Away = dict[str, tuple[float, float]]  # rates, each with its home and where it is now: the same unless it is away
SHORT = 6.63  # deviance from its home that one rate in a hundred that is there exceeds
TOGETHER = 0.5  # of the largest fall: a rate that fell by less, in log-odds, did not fall with it


def rates_away(drift: Drift, away: Mapping[str, tuple[float, float]]) -> Away:
    """Where the rates are after a drift without a reference, given where they were before it; empty if all are home.

    Of rates that move together, the one that moved most is away at once: how the others moved is uncertain. Where they
    stood is seen when the next drift comes, by all that was observed in between. A drift that leads back begins nothing
    new, whatever else moves with it; all are home if no rate is below its own. Only an improvement leads back: a rate
    that rose and falls again is away from where it had risen to.

    Parameters
    ----------
    drift : Drift
        The latest.
    away : mapping
        Where the rates were: home, and the level that each went to.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.drift import Share
    >>> def drift(**rates):
    ...     known = {rate: (Share.of(900 * a, 900), Share.of(100 * b, 100)) for rate, (a, b) in rates.items()}
    ...     changes = (fr.RateChange(rate, "down", 0, 0, None, 1, None, *pair) for rate, pair in known.items())
    ...     return fr.Drift(0, 0, tuple(changes), ())
    >>> away = rates_away(drift(tpr=(0.9, 0.5)), {})
    >>> away
    {'tpr': (0.9, 0.5)}
    >>> rates_away(drift(tpr=(0.5, 0.7)), away), rates_away(drift(tpr=(0.5, 0.88)), away)
    ({'tpr': (0.9, 0.7)}, {})
    >>> rates_away(drift(tpr=(0.97, 0.8)), {"tpr": (0.8, 0.97)})
    {'tpr': (0.97, 0.8)}
    >>> rates_away(drift(tnr=(0.98, 0.8)), away)
    {'tpr': (0.9, 0.5), 'tnr': (0.98, 0.8)}
    """
    moved = drift.levels
    observed = {rate: (before, after) for rate, before, after in drift.unmoved if before.n} | moved
    found = {rate: away.get(rate, (before.lower, before.lower)) for rate, (before, _) in observed.items()}
    found = dict(away) | found
    fall = max((_log_odds(home) - _log_odds(level) for home, level in away.values()), default=0.0)
    for rate, (before, _) in observed.items():
        home, level = found[rate]
        if level == home and fall > 0 and _fell_too(before, home, TOGETHER * fall):
            found[rate] = home, before.value
    gone = {rate for rate, (home, level) in found.items() if level != home}
    leads_back = any(is_back(moved[rate][1], *found[rate]) for rate in gone & moved.keys())
    for rate in gone & observed.keys():
        (home, level), (before, after) = found[rate], observed[rate]
        # What came back with another rate may be told by few observations; what came back unnoticed takes many.
        if is_back(after if leads_back or rate in moved else before, home, level):
            found[rate] = home, home
        elif rate in moved:
            found[rate] = max(home, before.value) if after.value < before.value else home, after.value
    if leads_back:
        return found if any(level < home for home, level in found.values()) else {}
    if moved:
        most = max(moved, key=lambda rate: abs(_smooth(moved[rate][1]) - _smooth(moved[rate][0])))
        if most not in gone:
            found[most] = moved[most][0].value, moved[most][1].value
    return found


def _fell_too(now: Share, home: float, by: float) -> bool:
    """Whether a rate is significantly short of its home, and by this much in log-odds at least."""
    return now.value < home and _deviance(now, home) > SHORT and _log_odds(home) - _smooth(now) >= by


def _log_odds(level: float) -> float:
    level = min(max(level, 1e-6), 1 - 1e-6)
    return math.log(level / (1 - level))


def _smooth(share: Share) -> float:
    """The log-odds of a rate; half an observation more of each kind keeps them finite."""
    return _log_odds((share.value * share.n + 0.5) / (share.n + 1))


def is_back(now: Share, before: float, after: float) -> bool:
    """Whether a rate that fell is back: nearer to where it was than to where it went, and not significantly short.

    A likelihood ratio says whether it is short, at 1 %: an alarm comes after few observations, some of them perhaps
    from before the change, so that the 90 % interval ends below the truth too often.
    """
    if not now.n or after >= before or abs(now.value - before) >= abs(now.value - after):
        return False
    return now.value >= before or _deviance(now, before) < SHORT


def _deviance(now: Share, level: float) -> float:
    """Twice the log-likelihood of the observed rate over that of a level above it."""
    level = min(level, 1 - 0.5 / now.n)  # no level is known to be 1
    right = now.value * math.log(now.value / level) if now.value > 0 else 0.0
    return 2 * now.n * (right + (1 - now.value) * math.log((1 - now.value) / (1 - level)))


class Recoveries:
    """Streams without a reference that are away from where they were, and the drifts that lead back.

    What is kept is bounded by the streams that have drifted, and their classes.

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
        away = rates_away(drift, before)
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

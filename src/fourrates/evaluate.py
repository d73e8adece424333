"""Detections against the truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fourrates.drift import Drift


@dataclass(frozen=True, slots=True)
class Score:
    """How the drifts found in one stream compare with its one change.

    Attributes
    ----------
    hit : bool
        Whether a drift was found within the allowed delay.
    false_alarms : int
        Drifts found before the change.
    delay : int or None
        Events from the change to the first drift found after it, whenever that was.
    """

    hit: bool
    false_alarms: int
    delay: int | None


def score(drifts: Iterable[Drift], change: int, within: int) -> Score:
    """Judge the drifts of a stream that changes once.

    Parameters
    ----------
    drifts : iterable of Drift
        As found.
    change : int
        The first event of the new concept.
    within : int
        A hit is a drift at `change`, ..., `change + within - 1`.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.evaluate import score
    >>> from fourrates.streams import SCENARIOS
    >>> drifts = fr.LFR().update_many(*SCENARIOS["Imbalance2"].stream(seed=1))
    >>> score(drifts, change=5000, within=200)
    Score(hit=True, false_alarms=0, delay=98)
    """
    found = sorted(drift.at for drift in drifts)
    delays = [at - change for at in found if at >= change]
    return Score(
        hit=bool(delays) and delays[0] < within,
        false_alarms=len(found) - len(delays),
        delay=delays[0] if delays else None,
    )

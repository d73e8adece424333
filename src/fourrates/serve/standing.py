"""Drifts that stand: until what moved is back where it was, or until somebody has seen it and takes it as it is."""

from __future__ import annotations

import msgspec

from fourrates.run.away import Away


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
        Without a reference: where the rates are, each with its home and its level now.
    """

    event: int
    time: float
    at: int = -1
    away: Away = {}

"""Clustering of errors compared with independent events, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fourrates.findings import RateState
    from fourrates.watch import Watch

LOOKED_AT = 1_000  # segments of many
TOLD = 1.5  # dispersion worth a sentence; some 2 % of independent streams reach it


def dispersions(watch: Watch) -> dict[str, float]:
    """The dispersion that FourRates found, by recall, over all segments weighted by their events.

    Other detectors have none. Of very many segments an evenly spaced sample is used.
    """
    names = [*watch.segments]
    return dispersion_of(watch.segments[name].rates for name in names[:: max(1, len(names) // LOOKED_AT)])


def dispersion_of(streams: Iterable[Mapping[str, RateState]]) -> dict[str, float]:
    events: dict[str, float] = {}
    worth: dict[str, float] = {}  # events divided by dispersion, as informative as that number of independent ones
    for rates in streams:
        for rate, state in rates.items():
            if state.dispersion is not None and state.n:
                events[rate] = events.get(rate, 0.0) + state.n
                worth[rate] = worth.get(rate, 0.0) + state.n / state.dispersion
    return {rate: events[rate] / worth[rate] for rate in events}


def in_words(found: Mapping[str, float], drifted: bool) -> str | None:
    """Explain dispersion for the rate with most of it; None if it is not worth mentioning.

    A drift in the same data makes errors vary too.
    """
    most = max(found, key=lambda rate: found[rate], default=None)
    if most is None or found[most] < TOLD:
        return None
    others = ", ".join(f"for {rate} {100 / worth:.0f}" for rate, worth in found.items() if rate != most)
    aside = f" (for {most}; {others})" if 0 < len(found) - 1 <= 3 else f" (for {most})"
    worth = f"{100 / found[most]:.0f} independent ones{aside}"
    if drifted:
        return f"errors vary more than independent ones, perhaps because of the drift: 100 events count as {worth}"
    return f"your events are correlated: 100 of them are worth only {worth}"

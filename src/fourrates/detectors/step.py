"""One event over a saved state: bytes in, bytes out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from fourrates.detectors.base import Detector
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.lfr import LFR
from fourrates.findings import Finding
from fourrates.state import unpack

CACHED = 64  # detectors, by their settings
KINDS: dict[str, type[Detector]] = {"FourRates": FourRates, "LFR": LFR}

_cache: OrderedDict[tuple[str, str], Detector] = OrderedDict()
_lock = threading.Lock()


def step(state: bytes, y_true: Any, y_pred: Any, stratum: int | None = None) -> tuple[bytes, tuple[Finding, ...]]:
    """Take one event: the state before it in, the state after it and the findings out.

    A detector as a pure function, for engines and databases that keep bytes. The bytes are those of ``to_bytes()``, of
    FourRates or LFR; what they cannot be is a ValueError, and nothing else happens.

    Parameters
    ----------
    state : bytes
        As ``detector.to_bytes()`` gives them.
    y_true, y_pred : label
        What the event turned out to be, and what the classifier had said.
    stratum : int, optional
        Which the event belongs to, for FourRates with strata.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.detectors.step import step
    >>> state = fr.FourRates(arl=10_000).to_bytes()
    >>> state, findings = step(state, 1, 0)
    >>> fr.FourRates.from_bytes(state).events, findings
    (1, ())
    """
    found = unpack(state)
    kind = KINDS.get(found.kind)
    if kind is None:
        raise ValueError(f"the state of a {found.kind!r}, which this release does not know")
    with _lock:
        settings = (found.kind, repr(sorted(found.about.items())))
        detector = _cache.pop(settings, None)
        if detector is None:
            detector = kind.from_bytes(state)
        else:
            detector.restore(bytes(found.sections["state"]))
        detector.update(y_true, y_pred, stratum)
        _cache[settings] = detector
        while len(_cache) > CACHED:
            _cache.popitem(last=False)
        return detector.to_bytes(), detector.findings

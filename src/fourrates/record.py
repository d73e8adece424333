"""The head of a record as Python reads it, and one step over a saved state: bytes in, bytes out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from fourrates import detectors
from fourrates.detectors.base import Detector
from fourrates.drift import Drift
from fourrates.state import VERSION, unpack

HEAD = np.dtype([("key", "<i8"), ("last", "<i8"), ("events", "<u8"), ("since", "<u8")])
DRIFT, SHIFT = 2, 3  # states that an event leaves, as the kernel has them
FLAGS, KIND, GROUP = 6, 4, 16  # bits of the flags, place of the key's kind among them, bits of the group
KEPT = 64  # detectors that `step` keeps at hand

_at_hand: OrderedDict[tuple[str, str], Detector] = OrderedDict()
_lock = threading.Lock()


class Head(NamedTuple):
    """What every record begins with."""

    key: int
    kind: int
    group: int
    events: int
    since: int


def head_of(record: bytes) -> Head:
    """The head of a record."""
    key, _, events, since = np.frombuffer(record, HEAD, 1)[0].tolist()
    return Head(key, events // KIND & 3, since & ((1 << GROUP) - 1), events >> FLAGS, (since >> GROUP) - 1)


def step(state: bytes, y_true: Any, y_pred: Any) -> tuple[bytes, Drift | None]:
    """Take one event: the state before it in, the state after it out.

    A detector as a pure function, for engines and databases that keep bytes. The bytes are those of ``to_bytes()``, of
    any detector; what they cannot be is a ValueError, and nothing else happens.

    Parameters
    ----------
    state : bytes
        As ``detector.to_bytes()`` gives them.
    y_true, y_pred : label
        What the event turned out to be, and what the classifier had said.

    Examples
    --------
    >>> import fourrates as fr
    >>> state = fr.FourRates(arl=10_000).to_bytes()
    >>> state, drift = fr.step(state, 1, 0)
    >>> fr.FourRates.from_bytes(state).events, drift
    (1, None)
    """
    found = unpack(state)
    kind = getattr(detectors, found.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, Detector)) or kind is Detector:
        raise ValueError(f"the state of a {found.kind!r}, which this release does not know")
    with _lock:
        settings = (found.kind, repr(sorted(found.about.items())))
        detector = _at_hand.pop(settings, None)
        if detector is None or found.version != VERSION:
            detector = kind.from_bytes(state)
        else:
            detector.restore(bytes(found.sections["state"]))
        drift = detector.update(y_true, y_pred)
        _at_hand[settings] = detector
        while len(_at_hand) > KEPT:
            _at_hand.popitem(last=False)
        return detector.to_bytes(), drift

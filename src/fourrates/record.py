"""The head of a record as Python reads it, with its stream, number of events and last findings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fourrates.kernel.record import NUMBERS

HEAD = np.dtype([("key", "<i8"), ("last", "<i8"), ("events", "<u8"), ("since", "<u8")])
DRIFT, LOOK, SHIFT, REPORT = (NUMBERS[name] for name in ("DRIFT", "LOOK", "SHIFT", "REPORT"))  # the results of an event
DRIFTED, ALARMED, WARNED, OPEN = (
    NUMBERS[name] for name in ("DRIFTED", "ALARMED", "WARNED", "OPEN")
)  # flags below the events
FLAGS, KIND = NUMBERS["FLAGS"], NUMBERS["KIND"]  # their bits, and place of the kind


class Head(NamedTuple):
    """The head of every record."""

    key: int
    kind: int
    events: int
    since: int


def head_of(record: bytes | np.ndarray) -> Head:
    """The head of a record."""
    key, _, events, since = np.frombuffer(record, HEAD, 1)[0].tolist()
    return Head(key, events // KIND & 3, events >> FLAGS, since - 1)

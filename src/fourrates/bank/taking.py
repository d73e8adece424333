"""A batch of events of many streams: taken stream by stream, by several threads where there is enough for them.

A stream is one thread's, so its events are taken in their order and no two threads meet at a record: what is found does
not depend on the number of threads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fourrates.record import DRIFT

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.kernel.record import Arena

    Array = npt.NDArray[Any]

SHARE = 20_000  # events that are worth a thread


class Alarm(NamedTuple):
    """A drift or a shift: the event of the bank that gave it, the state it left, and the record of its stream then."""

    event: int
    state: int
    record: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Events as class codes, stream by stream; `places` says where each stood when it came, after `clock` others."""

    slots: Array
    truths: Array
    guesses: Array
    places: Array
    clock: int

    def shares(self, threads: int) -> list[tuple[int, int]]:
        """Divide the events among threads, as evenly as whole streams can be: (first, one after the last) of each."""
        size = self.slots.size
        parts = max(min(threads, size // SHARE), 1)
        middles = self.slots[np.arange(1, parts) * size // parts]
        ends = sorted({0, size, *self.slots.searchsorted(middles).tolist()})
        return list(pairwise(ends))


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def take(arena: Arena, batch: Batch, threads: int) -> list[Alarm]:
    """Take a batch, restarting each stream that alarms; the alarms in the order of arrival."""
    shares = batch.shares(threads)
    if len(shares) < 2:
        found = [alarm for share in shares for alarm in _take(arena, batch, *share)]
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(shares)) as pool:
            found = [alarm for part in pool.map(lambda share: _take(arena, batch, *share), shares) for alarm in part]
    return sorted(found, key=lambda alarm: alarm.event)


def _take(arena: Arena, batch: Batch, start: int, end: int) -> list[Alarm]:
    found = []
    while start < end:
        start, state, record = arena.run(
            batch.slots, batch.truths, batch.guesses, batch.places, start, end, batch.clock
        )
        if state >= DRIFT:
            found.append(Alarm(batch.clock + int(batch.places[start - 1]), state, record))
    return found

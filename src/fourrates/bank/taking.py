"""A batch of events of many streams, sorted and processed by stream, by several threads if large enough.

Sorted, the processor fetches the memory of each stream once. A stream belongs to one thread, so its events keep their
order and no two threads share a record. The findings do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fourrates.findings import Finding
from fourrates.record import REPORT, Head, head_of

if TYPE_CHECKING:
    from fourrates.detectors.base import RecordDetector
    from fourrates.kernel.record import Arena

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.uint16]
Slots = npt.NDArray[np.int32]
Found = list[tuple[int, Head, Sequence[Finding]]]  # an event, the head of its stream, its findings

SHARE = 20_000  # events that are worth a thread
FEW = 256  # events that are not worth sorting
MOST = 1 << 32  # events whose places a uint32 can hold


@dataclass(frozen=True, slots=True)
class Batch:
    """Events as class codes, sorted by stream; `places` are their places in the batch, after `clock` others."""

    slots: Array
    truths: Array
    preds: Array
    places: Array
    clock: int

    def shares(self, threads: int) -> list[tuple[int, int]]:
        """Divide the events among threads, evenly by whole streams, as (first, one after the last) of each."""
        size = self.slots.size
        parts = max(min(threads, size // SHARE), 1)
        middles = self.slots[np.arange(1, parts) * size // parts]
        ends = sorted({0, size, *self.slots.searchsorted(middles).tolist()})
        return list(pairwise(ends))


def by_stream(
    slots: Slots, truths: Codes, preds: Codes, streams: int
) -> tuple[Slots, Codes, Codes, npt.NDArray[np.uint32]]:
    """Sort events by their slots, all below `streams`, unless they are few; and give each one's old place."""
    if slots.size >= MOST:
        raise ValueError(f"{slots.size} events at once; at most {MOST - 1} are possible")
    if slots.size < FEW or streams < 2:
        return slots, truths, preds, np.arange(slots.size, dtype=np.uint32)
    # NumPy sorts numbers of 16 bits by their digits, several times faster than longer ones, so half a slot at a time.
    order = np.argsort(slots.astype(np.uint16), kind="stable")
    if streams > 1 << 16:
        order = order[np.argsort((slots >> 16).astype(np.uint16)[order], kind="stable")]
    return slots[order], truths[order], preds[order], order.astype(np.uint32)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def take(arena: Arena, detector: RecordDetector, batch: Batch, threads: int) -> Found:
    """Process a batch of streams with the settings of a detector; findings in order of arrival."""
    shares = batch.shares(threads)
    if len(shares) < 2:
        found = _take(arena, detector, batch, 0, batch.slots.size)
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(shares)) as pool:
            parts = pool.map(lambda share: _take(arena, detector, batch, *share), shares)
            found = [finding for part in parts for finding in part]
    return sorted(found, key=lambda finding: finding[0])


def _take(arena: Arena, detector: RecordDetector, batch: Batch, start: int, end: int) -> Found:
    found: Found = []
    while start < end:
        start, state = arena.run(batch.slots, batch.truths, batch.preds, batch.places, start, end, batch.clock)
        if state & REPORT:
            record = arena.view(int(batch.slots[start - 1]))
            head = head_of(record)
            findings = detector._settle_record(record, state)
            found.append((batch.clock + int(batch.places[start - 1]), head, findings))
    return found

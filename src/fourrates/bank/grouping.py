"""Events of many streams sorted by stream, so that the processor fetches each stream's memory once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint16]
Slots = npt.NDArray[np.int32]

FEW = 256  # events that are not worth sorting
MOST = 1 << 32  # events whose places a uint32 can hold


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

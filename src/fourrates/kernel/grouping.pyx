"""Events of many streams, stream by stream: what a processor has to fetch once, it uses for all events of a stream."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.string cimport memset

import numpy as np

cdef enum:
    BITS = 11             # of a slot by which events are dealt out in one pass
    FEW = 256             # events that are not worth a pass


cdef void deal(const int32_t* slots, const uint32_t* places, Py_ssize_t size, int shift, int32_t* slots_to,
               uint32_t* places_to, int64_t* starts) noexcept nogil:
    """Events in the order of some bits of their slots; those that are alike keep their order."""
    cdef Py_ssize_t i
    cdef int64_t at, before = 0, count
    cdef int digit
    memset(starts, 0, sizeof(int64_t) << BITS)
    for i in range(size):
        starts[(slots[i] >> shift) & ((1 << BITS) - 1)] += 1
    for digit in range(1 << BITS):
        count = starts[digit]
        starts[digit] = before
        before += count
    for i in range(size):
        digit = (slots[i] >> shift) & ((1 << BITS) - 1)
        at = starts[digit]
        starts[digit] = at + 1
        slots_to[at] = slots[i]
        places_to[at] = places[i]


def by_stream(const int32_t[::1] slots, const uint16_t[::1] truths, const uint16_t[::1] preds, int64_t streams):
    """Put events in the order of their slots, all below `streams`, unless they are few; those of a stream keep theirs.

    Returns
    -------
    (slots, truths, preds, places) : arrays
        `places` says where each event stood.
    """
    cdef Py_ssize_t i, size = slots.shape[0]
    cdef int shift = 0
    if size >= <int64_t>1 << 32:
        raise ValueError(f"{size} events at once; at most {(1 << 32) - 1} are possible")
    places = np.arange(size, dtype=np.uint32)
    if size < FEW or streams < 2:
        return np.asarray(slots), np.asarray(truths), np.asarray(preds), places
    found, more = np.array(slots), np.empty(size, np.int32)
    others = np.empty(size, np.uint32)
    cdef int64_t[::1] starts = np.empty(1 << BITS, np.int64)
    cdef int32_t[::1] left, right
    cdef uint32_t[::1] from_place, to_place
    while streams >> shift > 0:
        left, right, from_place, to_place = found, more, places, others
        with nogil:
            deal(&left[0], &from_place[0], size, shift, &right[0], &to_place[0], &starts[0])
        found, more, places, others = more, found, others, places
        shift += BITS
    truth, pred = np.empty(size, np.uint16), np.empty(size, np.uint16)
    cdef uint16_t[::1] truth_to = truth, pred_to = pred
    from_place = places
    with nogil:
        for i in range(size):
            truth_to[i] = truths[from_place[i]]
            pred_to[i] = preds[from_place[i]]
    return found, truth, pred, places

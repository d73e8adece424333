"""From keys to slots: where in an arena the record of a stream lies."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from fourrates.kernel.memory cimport prefetch

cdef enum:
    AHEAD = 16            # keys between asking for an entry of the index and using it


cdef struct Entry:
    int64_t key
    int32_t slot          # plus one; 0 where there is none
    int32_t high          # whether the key stands for one of 2**63 or more


cdef inline uint64_t mixed(int64_t key, uint64_t seed) noexcept nogil:
    """Bits that depend on every bit of the key and of the seed; the highest are the best.

    Without the seed nobody can choose keys that fall on one place.
    """
    cdef uint64_t bits = (<uint64_t>key ^ seed) * <uint64_t>0xD6E8FEB86659FD93
    bits = (bits ^ (bits >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return (bits ^ (bits >> 29)) * <uint64_t>0xBF58476D1CE4E5B9


cdef inline int64_t place(const Entry* entries, int64_t capacity, int shift, int64_t key, bint high,
                          uint64_t seed) noexcept nogil:
    """Where in a table a key stands, or would."""
    cdef int64_t at = <int64_t>(mixed(key, seed) >> shift)
    while entries[at].slot != 0 and (entries[at].key != key or entries[at].high != high):
        at = (at + 1) & (capacity - 1)
    return at


@cython.final
cdef class Index:
    """From keys, integers of 64 bits, to slots.

    While the keys lie close together a plain array answers, from the lowest key up; otherwise a table with open
    addressing. A key of 2**63 or more is given by the negative number with the same bits, and told apart by a flag.
    """

    cdef readonly int64_t size          # keys
    cdef uint64_t seed
    cdef object array                   # of slots plus one, or of entries
    cdef int32_t* slots
    cdef Entry* entries
    cdef int64_t low, span              # the lowest key the array answers for, and how many
    cdef int64_t capacity               # of the table, a power of two
    cdef int shift                      # from the bits of a key to its place

    def __init__(self, uint64_t seed):
        self.seed = seed

    @property
    def nbytes(self):
        """Memory, in bytes."""
        return 0 if self.array is None else self.array.nbytes

    @property
    def dense(self):
        """Whether a plain array answers."""
        return self.entries == NULL

    def take(self, const int64_t[::1] keys, bint unsigned, int64_t slot, int32_t[::1] slots):
        """Find the slots of keys; new ones get the slots from `slot` on.

        With `unsigned`, negative keys stand for large ones.
        """
        cdef Py_ssize_t done = 0, size = keys.shape[0]
        cdef int64_t offset = slot - self.size
        while done < size:
            with nogil:
                done = self.fill(&keys[0], done, size, unsigned, offset, &slots[0])
            if done < size:
                self.arrange(*self.pairs(), keys[done], unsigned and keys[done] < 0)

    cdef Py_ssize_t fill(self, const int64_t* keys, Py_ssize_t start, Py_ssize_t size, bint unsigned, int64_t offset,
                         int32_t* slots) noexcept nogil:
        """Find or add keys until there is no room for one; a new key gets the slot `offset` + the number of keys."""
        # Locals, for a store to an array may, as far as a compiler knows, change what self points to.
        cdef Entry* entries = self.entries
        cdef int32_t* array = self.slots
        cdef int64_t low = self.low, span = self.span, capacity = self.capacity, known = self.size, at
        cdef int shift = self.shift
        cdef uint64_t seed = self.seed
        cdef bint high
        cdef Py_ssize_t i = start
        while i < size:
            high = unsigned and keys[i] < 0
            if entries == NULL:
                if high or <uint64_t>keys[i] - <uint64_t>low >= <uint64_t>span:
                    break
                at = keys[i] - low
                if array[at] == 0:
                    known += 1
                    array[at] = <int32_t>(offset + known)
                slots[i] = array[at] - 1
            else:
                if i + AHEAD < size:
                    prefetch(&entries[mixed(keys[i + AHEAD], seed) >> shift])
                at = place(entries, capacity, shift, keys[i], high, seed)
                if entries[at].slot == 0:
                    if 4 * (known + 1) > 3 * capacity:
                        break
                    known += 1
                    entries[at].key, entries[at].high, entries[at].slot = keys[i], high, <int32_t>(offset + known)
                slots[i] = entries[at].slot - 1
            i += 1
        self.size = known
        return i

    def find(self, const int64_t[::1] keys, bint unsigned, int32_t[::1] slots):
        """Find the slots of keys, -1 where there is none."""
        cdef Py_ssize_t i
        cdef int64_t at
        cdef bint high
        for i in range(keys.shape[0]):
            high = unsigned and keys[i] < 0
            if self.entries != NULL:
                at = place(self.entries, self.capacity, self.shift, keys[i], high, self.seed)
                slots[i] = self.entries[at].slot - 1
            elif high or <uint64_t>keys[i] - <uint64_t>self.low >= <uint64_t>self.span:
                slots[i] = -1
            else:
                slots[i] = self.slots[keys[i] - self.low] - 1

    def truncate(self, int64_t size):
        """Forget the keys with slots from `size` on."""
        keys, slots, highs = self.pairs()
        old = slots < size
        self.arrange(keys[old], slots[old], highs[old])

    def arrange(self, keys, slots, highs, key=None, bint high=False):
        """Know these keys and no others, with room for one more: in an array if that takes hardly more than a table."""
        self.size = len(keys)
        ends = ([] if key is None else [key]) + ([int(keys.min()), int(keys.max())] if len(keys) else [])
        low, top = min(ends, default=0), max(ends, default=0)
        if high or highs.any() or top - low >= max(1 << 16, 8 * (self.size + 1)):
            self.scatter(keys, slots, highs)
        else:
            slack = max(64, (top - low) // 4)  # for more keys on the side where the new one is
            low, top = (low - slack, top) if key == low and len(keys) else (low, top + slack)
            self.spread(max(low, -(2**63)), min(top, 2**63 - 1), keys, slots)

    cdef object spread(self, low, top, keys, slots):
        """Become an array."""
        cdef int32_t[::1] view
        array = np.zeros(top - low + 1, np.int32)
        array[keys - low] = slots + 1
        view = array
        self.array, self.slots, self.entries, self.low, self.span = array, &view[0], NULL, low, top - low + 1

    cdef object scatter(self, const int64_t[::1] keys, const int32_t[::1] slots, const uint8_t[::1] highs):
        """Become a table."""
        cdef int64_t[::1] view
        cdef int64_t at
        cdef Py_ssize_t i
        self.capacity, self.shift = 64, 58
        while 4 * (self.size + 1) > 3 * self.capacity:
            self.capacity, self.shift = 2 * self.capacity, self.shift - 1
        self.array = np.zeros(self.capacity * sizeof(Entry) // 8, np.int64)
        view = self.array
        self.entries, self.slots, self.span = <Entry*>&view[0], NULL, 0
        for i in range(keys.shape[0]):
            at = place(self.entries, self.capacity, self.shift, keys[i], highs[i], self.seed)
            self.entries[at].key, self.entries[at].slot, self.entries[at].high = keys[i], slots[i] + 1, highs[i]

    cdef tuple pairs(self):
        """(keys, slots, which keys are of 2**63 or more)."""
        cdef int64_t at
        cdef Py_ssize_t i = 0
        keys, slots, highs = np.empty(self.size, np.int64), np.empty(self.size, np.int32), np.zeros(self.size, np.uint8)
        cdef int64_t[::1] key = keys
        cdef int32_t[::1] slot = slots
        cdef uint8_t[::1] high = highs
        for at in range(self.span):
            if self.slots[at] != 0:
                key[i], slot[i] = self.low + at, self.slots[at] - 1
                i += 1
        for at in range(self.capacity if self.entries != NULL else 0):
            if self.entries[at].slot != 0:
                key[i], slot[i], high[i] = self.entries[at].key, self.entries[at].slot - 1, self.entries[at].high
                i += 1
        return keys, slots, highs

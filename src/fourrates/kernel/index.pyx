"""From keys to slots, the places of records in an arena."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from fourrates.kernel.memory cimport prefetch

cdef enum:
    AHEAD = 16            # keys between asking for an entry of the index and using it


cdef struct Entry:
    int64_t key
    int32_t slot          # plus one; 0 where there is none


cdef inline uint64_t mixed(int64_t key, uint64_t seed) noexcept nogil:
    """Bits that depend on every bit of the key and of the seed; the highest are the best.

    Without the seed nobody can choose keys that fall on one place.
    """
    cdef uint64_t bits = (<uint64_t>key ^ seed) * <uint64_t>0xD6E8FEB86659FD93
    bits = (bits ^ (bits >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return (bits ^ (bits >> 29)) * <uint64_t>0xBF58476D1CE4E5B9


cdef inline int64_t place(const Entry* entries, int64_t capacity, int shift, int64_t key, uint64_t seed) noexcept nogil:
    """The entry of a key in a table, or the empty one that it would get."""
    cdef int64_t at = <int64_t>(mixed(key, seed) >> shift)
    while entries[at].slot != 0 and entries[at].key != key:
        at = (at + 1) & (capacity - 1)
    return at


@cython.final
cdef class Index:
    """From keys, integers of 64 bits, to slots: a table with open addressing, at most three in four of it in use."""

    cdef readonly int64_t size          # keys
    cdef uint64_t seed
    cdef object array                   # of entries
    cdef Entry* entries
    cdef int64_t capacity               # of the table, a power of two
    cdef int shift                      # from the bits of a key to its place

    def __init__(self, uint64_t seed):
        self.seed = seed
        self.arrange(np.empty(0, np.int64), np.empty(0, np.int32))

    @property
    def nbytes(self):
        """Memory, in bytes."""
        return self.array.nbytes

    def take(self, const int64_t[::1] keys, int64_t slot, int32_t[::1] slots):
        """Find the slots of keys; new ones get the slots from `slot` on."""
        cdef Py_ssize_t done = 0, size = keys.shape[0]
        cdef int64_t offset = slot - self.size
        while done < size:
            with nogil:
                done = self.fill(&keys[0], done, size, offset, &slots[0])
            if done < size:
                self.arrange(*self.pairs())

    cdef Py_ssize_t fill(self, const int64_t* keys, Py_ssize_t start, Py_ssize_t size, int64_t offset,
                         int32_t* slots) noexcept nogil:
        """Find or add keys until there is no room for one; a new key gets the slot `offset` + the number of keys."""
        # Locals, for a store to an array may, as far as a compiler knows, change the target of self.
        cdef Entry* entries = self.entries
        cdef int64_t capacity = self.capacity, known = self.size, at
        cdef int shift = self.shift
        cdef uint64_t seed = self.seed
        cdef Py_ssize_t i = start
        while i < size:
            if i + AHEAD < size:
                prefetch(&entries[mixed(keys[i + AHEAD], seed) >> shift])
            at = place(entries, capacity, shift, keys[i], seed)
            if entries[at].slot == 0:
                if 4 * (known + 1) > 3 * capacity:
                    break
                known += 1
                entries[at].key, entries[at].slot = keys[i], <int32_t>(offset + known)
            slots[i] = entries[at].slot - 1
            i += 1
        self.size = known
        return i

    def find(self, const int64_t[::1] keys, int32_t[::1] slots):
        """Find the slots of keys, -1 where there is none."""
        cdef Py_ssize_t i
        for i in range(keys.shape[0]):
            slots[i] = self.entries[place(self.entries, self.capacity, self.shift, keys[i], self.seed)].slot - 1

    def truncate(self, int64_t size):
        """Forget the keys with slots from `size` on."""
        keys, slots = self.pairs()
        old = slots < size
        self.arrange(keys[old], slots[old])

    def arrange(self, const int64_t[::1] keys, const int32_t[::1] slots):
        """Know these keys and no others, with room for one more."""
        cdef int64_t[::1] view
        cdef int64_t at
        cdef Py_ssize_t i
        self.size, self.capacity, self.shift = keys.shape[0], 64, 58
        while 4 * (self.size + 1) > 3 * self.capacity:
            self.capacity, self.shift = 2 * self.capacity, self.shift - 1
        self.array = np.zeros(self.capacity * sizeof(Entry) // 8, np.int64)
        view = self.array
        self.entries = <Entry*>&view[0]
        for i in range(keys.shape[0]):
            at = place(self.entries, self.capacity, self.shift, keys[i], self.seed)
            self.entries[at].key, self.entries[at].slot = keys[i], slots[i] + 1

    cdef tuple pairs(self):
        """(keys, slots)."""
        table = self.array.view([("key", np.int64), ("slot", np.int32), ("spare", np.int32)])
        known = table[table["slot"] > 0]
        return known["key"].copy(), known["slot"] - np.int32(1)

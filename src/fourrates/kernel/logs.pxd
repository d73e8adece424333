"""Entries by fingerprint, in logs, each in the order of arrival."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    LOGS = 3
    NEAR = 12                  # ids between asking for an entry and using it
    DEAD = 0                   # the state of an entry that has left; the others are the caller's

cdef struct Entry:
    uint64_t low
    double time
    int64_t tag
    uint32_t high
    uint16_t code
    uint8_t state
    uint8_t spare

cdef struct Chunk:
    Entry* entries
    uint32_t before, after     # chunks of the same log; `after` of a free one is the next free one
    int32_t first, last        # the live ones stand in this range; at `first` there is one
    int32_t live
    int32_t log

cdef struct Log:
    uint32_t head, tail
    int64_t size


cdef class Logs:
    cdef uint64_t* index
    cdef int bits, width
    cdef int32_t chunk_size
    cdef int64_t used
    cdef Chunk* chunks
    cdef uint32_t made, room, unused
    cdef Log[LOGS] logs

    cdef inline uint64_t home(self, uint64_t place) noexcept nogil:
        """Where what stands in a place of the index belongs."""
        return place >> (64 - self.bits)

    cdef inline Entry* entry(self, uint32_t position) noexcept nogil:
        return &self.chunks[position >> self.width].entries[position & <uint32_t>(self.chunk_size - 1)]

    cdef inline uint32_t oldest(self, int log) noexcept nogil:
        """The position of the oldest of a log that is not empty."""
        cdef uint32_t head = self.logs[log].head
        return head << self.width | <uint32_t>self.chunks[head].first

    cdef int64_t find(self, uint64_t low, uint32_t high) noexcept nogil
    cdef uint64_t locate(self, uint64_t low, uint32_t position) noexcept nogil
    cdef void fetch_entry(self, uint64_t low) noexcept nogil
    cdef void settle(self, uint64_t* index, int bits, uint64_t place) noexcept nogil
    cdef int make_room(self) noexcept nogil
    cdef void close_up(self, uint64_t hole) noexcept nogil
    cdef uint32_t append(self, const Entry* entry, int log) noexcept nogil
    cdef uint32_t begin_chunk(self, int log) noexcept nogil
    cdef void release(self, uint32_t at) noexcept nogil
    cdef void kill(self, uint32_t position) noexcept nogil
    cdef void put_together(self, uint32_t at, uint32_t after) noexcept nogil
    cdef int32_t gather(self, uint32_t to, uint32_t part, int32_t size) noexcept nogil
    cdef int insert(self, const Entry* entry, int log) noexcept nogil
    cdef void drop(self, uint64_t place) noexcept nogil
    cdef void drop_oldest(self, int log) noexcept nogil
    cdef int64_t move(self, uint64_t place, const Entry* entry, int log) noexcept nogil

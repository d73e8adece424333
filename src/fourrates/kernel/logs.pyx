"""Entries by fingerprint, in logs, each in the order of arrival.

An entry takes 32 bytes and stands in one of the logs, each in the order of arrival, so the oldest is always at hand
and nothing depends on the key of the fingerprints. A log is a list of chunks of 65,536 entries. An entry that leaves
from the middle is marked dead; two neighbours that fit into one chunk are put together, which keeps chunks half full or
better at a cost of at most one move for each entry that ever came.

The index is a table of 8 bytes a place, open addressing with linear probing: 32 bits of the fingerprint and the
position of the entry. Its first bits say where it belongs, so the table grows by one pass in order, without a look at
an entry. What leaves is closed up by a backward shift: there are no tombstones.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

import numpy as np

from fourrates.kernel.memory cimport prefetch

cdef enum:
    LEAST = 6                  # bits of the smallest index

cdef uint32_t NONE = 0xFFFFFFFF

ENTRY = np.dtype([
    ("low", np.uint64), ("time", np.float64), ("tag", np.int64), ("high", np.uint32), ("code", np.uint16),
    ("state", np.uint8), ("spare", np.uint8),
])


cdef class Logs:
    """The logs and their index.

    Parameters
    ----------
    width : int
        A chunk holds 2**width entries.
    """

    def __cinit__(self, *_, int width=16, **__):
        cdef int i
        if not 1 <= width <= 20:
            raise ValueError(f"chunks of 2**{width} entries")
        self.width, self.chunk_size = width, 1 << width
        self.index, self.chunks = NULL, NULL
        self.made = self.room = 0
        self.unused = NONE
        self.used = 0
        for i in range(LOGS):
            self.logs[i].head = self.logs[i].tail = NONE
            self.logs[i].size = 0
        self.bits = LEAST
        self.index = <uint64_t*>malloc(sizeof(uint64_t) << LEAST)
        if self.index == NULL:
            raise MemoryError
        memset(self.index, 0xFF, sizeof(uint64_t) << LEAST)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.made):
            free(self.chunks[i].entries)
        free(self.chunks)
        free(self.index)

    # The index ------------------------------------------------------------------------------------------------

    cdef int64_t find(self, uint64_t low, uint32_t high) noexcept nogil:
        """The place of a fingerprint in the index, or -1."""
        cdef uint64_t mask = (<uint64_t>1 << self.bits) - 1, at = self.home(low), place
        cdef Entry* entry
        while True:
            place = self.index[at]
            if <uint32_t>place == NONE:
                return -1
            if place >> 32 == low >> 32:
                entry = self.entry(<uint32_t>place)
                if entry.low == low and entry.high == high:
                    return <int64_t>at
            at = (at + 1) & mask

    cdef uint64_t locate(self, uint64_t low, uint32_t position) noexcept nogil:
        """The place in the index of an entry that is there."""
        cdef uint64_t mask = (<uint64_t>1 << self.bits) - 1, at = self.home(low)
        while <uint32_t>self.index[at] != position:
            at = (at + 1) & mask
        return at

    cdef void settle(self, uint64_t* index, int bits, uint64_t place) noexcept nogil:
        cdef uint64_t mask = (<uint64_t>1 << bits) - 1, at = place >> (64 - bits)
        while <uint32_t>index[at] != NONE:
            at = (at + 1) & mask
        index[at] = place

    cdef int make_room(self) noexcept nogil:
        """See that one more fits, at most three in four; -1 if there is no memory."""
        cdef uint64_t* larger
        cdef uint64_t i, size = <uint64_t>1 << self.bits
        if <uint64_t>self.used + 1 <= size - size // 4:
            return 0
        if self.bits == 32:
            return -1
        larger = <uint64_t*>malloc(sizeof(uint64_t) * size * 2)
        if larger == NULL:
            return -1
        memset(larger, 0xFF, sizeof(uint64_t) * size * 2)
        for i in range(size):
            if <uint32_t>self.index[i] != NONE:
                self.settle(larger, self.bits + 1, self.index[i])
        free(self.index)
        self.index = larger
        self.bits += 1
        return 0

    cdef void close_up(self, uint64_t hole) noexcept nogil:
        """Empty a place, and move up what would not be found behind a gap."""
        cdef uint64_t mask = (<uint64_t>1 << self.bits) - 1, at = hole, wanted
        self.used -= 1
        while True:
            at = (at + 1) & mask
            if <uint32_t>self.index[at] == NONE:
                break
            wanted = self.home(self.index[at])
            if ((at - wanted) & mask) >= ((at - hole) & mask):
                self.index[hole] = self.index[at]
                hole = at
        self.index[hole] = <uint64_t>-1

    # The logs -------------------------------------------------------------------------------------------------

    cdef uint32_t append(self, const Entry* entry, int log) noexcept nogil:
        """Put an entry behind the others of its log; its position, or NONE if there is no memory."""
        cdef uint32_t tail = self.logs[log].tail
        cdef Chunk* chunk
        if tail == NONE or self.chunks[tail].last == self.chunk_size:
            tail = self.begin_chunk(log)
            if tail == NONE:
                return NONE
        chunk = &self.chunks[tail]
        chunk.entries[chunk.last] = entry[0]
        chunk.last += 1
        chunk.live += 1
        self.logs[log].size += 1
        return tail << self.width | <uint32_t>(chunk.last - 1)

    cdef uint32_t begin_chunk(self, int log) noexcept nogil:
        cdef uint32_t fresh = self.unused, tail = self.logs[log].tail, room
        cdef Chunk* chunks
        cdef Chunk* chunk
        if fresh == NONE:
            if self.made == self.room:
                room = self.room * 2 if self.room else 4
                if room > NONE >> self.width:
                    room = NONE >> self.width
                if room <= self.made:
                    return NONE
                chunks = <Chunk*>realloc(self.chunks, room * sizeof(Chunk))
                if chunks == NULL:
                    return NONE
                self.chunks, self.room = chunks, room
            fresh = self.made
            self.chunks[fresh].entries = NULL
            self.chunks[fresh].after = NONE
        chunk = &self.chunks[fresh]
        chunk.entries = <Entry*>malloc(<size_t>self.chunk_size * sizeof(Entry))
        if chunk.entries == NULL:
            return NONE
        if fresh == self.made:
            self.made += 1
        else:
            self.unused = chunk.after
        chunk.first = chunk.last = chunk.live = 0
        chunk.log = log
        chunk.before, chunk.after = tail, NONE
        if tail == NONE:
            self.logs[log].head = fresh
        else:
            self.chunks[tail].after = fresh
        self.logs[log].tail = fresh
        return fresh

    cdef void release(self, uint32_t at) noexcept nogil:
        """Give back a chunk that is not the last of its log."""
        cdef Chunk* chunk = &self.chunks[at]
        self.chunks[chunk.after].before = chunk.before
        if chunk.before == NONE:
            self.logs[chunk.log].head = chunk.after
        else:
            self.chunks[chunk.before].after = chunk.after
        free(chunk.entries)
        chunk.entries = NULL
        chunk.after = self.unused
        self.unused = at

    cdef void kill(self, uint32_t position) noexcept nogil:
        """Take an entry out of its log; the index is the caller's business."""
        cdef uint32_t at = position >> self.width
        cdef Chunk* chunk = &self.chunks[at]
        cdef Log* log = &self.logs[chunk.log]
        self.entry(position).state = DEAD
        chunk.live -= 1
        log.size -= 1
        if chunk.live == 0:
            if at == log.tail:
                chunk.first = chunk.last = 0
            else:
                self.release(at)
            return
        while chunk.entries[chunk.first].state == DEAD:
            chunk.first += 1
        # The last chunk is left alone until it has been filled: put together with its neighbour after each entry, it
        # would cost a chunk of moves each time.
        if at == log.tail:
            return
        if chunk.after != log.tail and chunk.live + self.chunks[chunk.after].live <= self.chunk_size:
            self.put_together(at, chunk.after)
        elif chunk.before != NONE and chunk.live + self.chunks[chunk.before].live <= self.chunk_size:
            self.put_together(chunk.before, at)

    cdef void put_together(self, uint32_t at, uint32_t after) noexcept nogil:
        """Move what lives in two neighbours into the first, in order."""
        cdef Chunk* chunk = &self.chunks[at]
        cdef int32_t size = self.gather(at, after, self.gather(at, at, 0))
        chunk.first, chunk.last, chunk.live = 0, size, size
        self.release(after)

    cdef int32_t gather(self, uint32_t to, uint32_t part, int32_t size) noexcept nogil:
        """Move what lives in `part` behind the first `size` entries of `to`; how many there are then."""
        cdef Entry* entries = self.chunks[to].entries
        cdef Chunk* source = &self.chunks[part]
        cdef uint64_t place
        cdef int32_t i
        for i in range(source.first, source.last):
            if i + NEAR < source.last:
                prefetch(&self.index[self.home(source.entries[i + NEAR].low)])
            if source.entries[i].state == DEAD:
                continue
            if part != to or i != size:
                place = self.locate(source.entries[i].low, part << self.width | <uint32_t>i)
                self.index[place] = (self.index[place] >> 32 << 32) | to << self.width | <uint32_t>size
                entries[size] = source.entries[i]
            size += 1
        return size

    cdef void fetch_entry(self, uint64_t low) noexcept nogil:
        """Ask for the entry that a fingerprint most likely leads to."""
        cdef uint64_t mask = (<uint64_t>1 << self.bits) - 1, at = self.home(low), place
        cdef int i
        for i in range(8):
            place = self.index[(at + <uint64_t>i) & mask]
            if <uint32_t>place == NONE:
                return
            if place >> 32 == low >> 32:
                prefetch(self.entry(<uint32_t>place))
                return

    # Entries come and go --------------------------------------------------------------------------------------

    cdef int insert(self, const Entry* entry, int log) noexcept nogil:
        """Add an entry whose fingerprint is new; -1 if there is no memory."""
        cdef uint32_t position
        if self.make_room() < 0:
            return -1
        position = self.append(entry, log)
        if position == NONE:
            return -1
        self.settle(self.index, self.bits, (entry.low >> 32 << 32) | position)
        self.used += 1
        return 0

    cdef void drop(self, uint64_t place) noexcept nogil:
        """Forget the entry that a place of the index leads to."""
        cdef uint32_t position = <uint32_t>self.index[place]
        self.close_up(place)
        self.kill(position)

    cdef void drop_oldest(self, int log) noexcept nogil:
        cdef uint32_t position = self.oldest(log)
        self.drop(self.locate(self.entry(position).low, position))

    cdef int64_t move(self, uint64_t place, const Entry* entry, int log) noexcept nogil:
        """Put an entry of the same fingerprint into another log instead of the one a place of the index leads to.

        Returns -1 if there is no memory.
        """
        cdef uint32_t position = <uint32_t>self.index[place], moved = self.append(entry, log)
        if moved == NONE:
            return -1
        self.index[place] = (self.index[place] >> 32 << 32) | moved
        self.kill(position)
        return 0

    # What Python calls ----------------------------------------------------------------------------------------

    @property
    def nbytes(self):
        """Memory in bytes."""
        cdef uint32_t i
        cdef int64_t chunks = 0
        for i in range(self.made):
            chunks += self.chunks[i].entries != NULL
        return chunks * self.chunk_size * sizeof(Entry) + self.room * sizeof(Chunk) + (sizeof(uint64_t) << self.bits)

    def dump(self, int log):
        """The entries of a log, in the order of arrival."""
        if not 0 <= log < LOGS:
            raise ValueError(log)
        found = np.empty(self.logs[log].size, ENTRY)
        cdef Entry[::1] out = found
        cdef uint32_t at = self.logs[log].head
        cdef Py_ssize_t n = 0
        cdef int32_t i
        while at != NONE:
            for i in range(self.chunks[at].first, self.chunks[at].last):
                if self.chunks[at].entries[i].state != DEAD:
                    out[n] = self.chunks[at].entries[i]
                    n += 1
            at = self.chunks[at].after
        return found

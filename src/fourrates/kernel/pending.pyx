"""What waits: predictions without a label, labels without a prediction, and ids that are done with, by fingerprint.

They stand in three logs, each in the order of arrival, so the oldest is always at hand and nothing depends on the key of
the fingerprints. A log is a list of chunks of 65,536 entries of 32 bytes. An entry that leaves from the middle is marked
dead; two neighbours that fit into one chunk are put together, which keeps chunks half full or better at a cost of at most
one move for each entry that ever came.

The index is a table of 8 bytes a place, open addressing with linear probing: 32 bits of the fingerprint and the
position of the entry. Its first bits say where it belongs, so the table grows by one pass in order, without a look at
an entry. What leaves is closed up by a backward shift: there are no tombstones.

A time is a double, counted in whatever unit the caller has. The clock is the latest time met; it never runs backwards,
and an entry waits from where the clock stood when it came. So each log is in the order of its times as well.
"""

from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

import numpy as np

from fourrates.kernel.memory cimport prefetch

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

cdef enum:
    LEAST = 6                  # bits of the smallest index

cdef uint32_t NONE = 0xFFFFFFFF

ENTRY = np.dtype([
    ("low", np.uint64), ("time", np.float64), ("tag", np.int64), ("high", np.uint32), ("code", np.uint16),
    ("state", np.uint8), ("spare", np.uint8),
])


cdef class Logs:
    """Entries by fingerprint, in logs, each in the order of arrival, and their index; a chunk holds 2**width of them."""

    cdef uint64_t* index
    cdef int bits, width
    cdef int32_t chunk_size
    cdef int64_t used
    cdef Chunk* chunks
    cdef uint32_t made, room, unused
    cdef Log[LOGS] logs

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

    cdef inline uint64_t home(self, uint64_t place) noexcept nogil:
        """Where what stands in a place of the index belongs."""
        return place >> (64 - self.bits)

    cdef inline Entry* entry(self, uint32_t position) noexcept nogil:
        return &self.chunks[position >> self.width].entries[position & <uint32_t>(self.chunk_size - 1)]

    cdef inline uint32_t oldest(self, int log) noexcept nogil:
        """The position of the oldest of a log that is not empty."""
        cdef uint32_t head = self.logs[log].head
        return head << self.width | <uint32_t>self.chunks[head].first

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


cdef enum:
    FAR = 24                   # ids between asking for a place of the index and using it

cdef enum:  # logs
    PREDICTIONS, LABELS, DONE

cdef enum:  # states of an entry
    PREDICTION = 1, LABEL, PAIRED, MISSED

cdef enum:  # counts
    N_PAIRS, N_EXPIRED, N_DISPLACED, N_UNMATCHED, N_REPEATED_PREDICTIONS, N_REPEATED_LABELS, N_LATE_LABELS, COUNTS

STATES = {"prediction": PREDICTION, "label": LABEL, "paired": PAIRED, "missed": MISSED}

cdef packed struct Fingerprint:
    uint64_t low
    uint32_t high

cdef struct Pairs:
    uint16_t* truths
    uint16_t* preds
    int64_t* tags
    int64_t* positions


cdef class Pending(Logs):
    """Predictions, labels and ids that are done with; the time of an entry is where the clock stood when it came, or
    before the clock began minus infinity.

    Parameters
    ----------
    most_waiting, most_remembered : int
        How many predictions may wait, as many labels, and how many ids are remembered that are done with.
    longest : float
        How long any of them stays; infinity for no limit.
    width : int
        A chunk holds 2**width entries.
    """

    cdef int64_t most_waiting, most_remembered
    cdef double longest, now, began
    cdef int64_t[COUNTS] tally

    def __cinit__(self, int64_t most_waiting, int64_t most_remembered, double longest, int width=16):
        cdef int i
        for i in range(COUNTS):
            self.tally[i] = 0
        self.most_waiting, self.most_remembered, self.longest = most_waiting, most_remembered, longest
        self.now = self.began = NAN

    # What happens to an entry -----------------------------------------------------------------------------------

    cdef int retire(self, uint64_t place, int state) noexcept nogil:
        """Keep only that the id was met and what became of it; -1 if there is no memory."""
        cdef Entry entry
        if self.most_remembered == 0:
            self.drop(place)
            return 0
        entry = self.entry(<uint32_t>self.index[place])[0]
        entry.tag, entry.code, entry.time, entry.state = 0, 0, self.moment(), <uint8_t>state
        if self.move(place, &entry, DONE) < 0:
            return -1
        if self.logs[DONE].size > self.most_remembered:
            self.drop_oldest(DONE)
        return 0

    cdef int remember(self, Entry entry) noexcept nogil:
        """Keep that an id was met that nothing was known of, with its prediction and its label; -1 if there is no memory."""
        if self.most_remembered == 0:
            return 0
        entry.tag, entry.code, entry.state = 0, 0, PAIRED
        if self.insert(&entry, DONE) < 0:
            return -1
        if self.logs[DONE].size > self.most_remembered:
            self.drop_oldest(DONE)
        return 0

    cdef int miss_oldest(self, int count) noexcept nogil:
        """The oldest prediction leaves without a label."""
        cdef uint32_t position = self.oldest(PREDICTIONS)
        self.tally[count] += 1
        return self.retire(self.locate(self.entry(position).low, position), MISSED)

    cdef inline double moment(self) noexcept nogil:
        return -INFINITY if isnan(self.now) else self.now

    cdef inline bint is_over(self, int log) noexcept nogil:
        """Whether the oldest of a log has waited too long."""
        cdef double since
        if self.logs[log].size == 0:
            return False
        since = self.entry(self.oldest(log)).time
        if since < self.began:
            since = self.began
        return self.now - since > self.longest

    cdef int advance(self, double time) noexcept nogil:
        """Move the clock, and let go of what has waited too long; -1 if there is no memory."""
        if isnan(time) or time <= self.now:
            return 0
        if isnan(self.now):
            self.began = time
        self.now = time
        while self.is_over(DONE):
            self.drop_oldest(DONE)
        while self.is_over(LABELS):
            self.tally[N_UNMATCHED] += 1
            self.drop_oldest(LABELS)
        while self.is_over(PREDICTIONS):
            if self.miss_oldest(N_EXPIRED) < 0:
                return -1
        return 0

    cdef int predict(self, const Entry* entry, Pairs* out, int64_t* pairs) noexcept nogil:
        cdef int64_t place = self.find(entry.low, entry.high)
        cdef Entry* met
        if place < 0:
            if self.insert(entry, PREDICTIONS) < 0:
                return -1
            if self.logs[PREDICTIONS].size > self.most_waiting:
                return self.miss_oldest(N_DISPLACED)
            return 0
        met = self.entry(<uint32_t>self.index[place])
        if met.state != LABEL:
            self.tally[N_REPEATED_PREDICTIONS] += 1
            return 0
        return self.pair(place, met.code, entry.code, entry.tag, out, pairs)

    cdef int label(self, const Entry* entry, Pairs* out, int64_t* pairs) noexcept nogil:
        cdef int64_t place = self.find(entry.low, entry.high)
        cdef Entry* met
        if place < 0:
            if self.insert(entry, LABELS) < 0:
                return -1
            if self.logs[LABELS].size > self.most_waiting:
                self.tally[N_UNMATCHED] += 1
                self.drop_oldest(LABELS)
            return 0
        met = self.entry(<uint32_t>self.index[place])
        if met.state == PREDICTION:
            return self.pair(place, entry.code, met.code, met.tag, out, pairs)
        if met.state == MISSED:
            self.tally[N_LATE_LABELS] += 1
            met.state = PAIRED  # so that the same label once more is a repeat
        else:
            self.tally[N_REPEATED_LABELS] += 1
        return 0

    cdef int both(self, Entry* entry, uint16_t truth, Pairs* out, int64_t* pairs) noexcept nogil:
        """A prediction and its label, which come together: one entry, where they would be two after each other."""
        if self.find(entry.low, entry.high) < 0:
            self.count_pair(truth, entry.code, entry.tag, out, pairs)
            return self.remember(entry[0])
        if self.predict(entry, out, pairs) < 0:
            return -1
        entry.code, entry.tag, entry.state = truth, 0, LABEL
        return self.label(entry, out, pairs)

    cdef inline int pair(self, int64_t place, uint16_t truth, uint16_t pred, int64_t tag, Pairs* out,
                         int64_t* pairs) noexcept nogil:
        self.count_pair(truth, pred, tag, out, pairs)
        return self.retire(<uint64_t>place, PAIRED)

    cdef inline void count_pair(self, uint16_t truth, uint16_t pred, int64_t tag, Pairs* out,
                                int64_t* pairs) noexcept nogil:
        out.truths[pairs[0]], out.preds[pairs[0]], out.tags[pairs[0]] = truth, pred, tag
        pairs[0] += 1
        self.tally[N_PAIRS] += 1

    # What Python calls ------------------------------------------------------------------------------------------

    def take(self, const Fingerprint[::1] ids, const uint16_t[::1] codes, const uint8_t[::1] is_label,
             const uint16_t[::1] true_codes, const int64_t[::1] tags, const double[::1] times, uint16_t[::1] truths,
             uint16_t[::1] preds, int64_t[::1] pair_tags, int64_t[::1] positions):
        """Take predictions and labels in the order of arrival; the last four are filled with the pairs, whose number is
        returned. With `true_codes`, each prediction comes with its label. These, `tags` and `times` may be None; a time
        that is nan is the clock's."""
        cdef Py_ssize_t i, size = ids.shape[0]
        cdef const int64_t* tag = &tags[0] if tags is not None and size else NULL
        cdef const double* time = &times[0] if times is not None and size else NULL
        cdef const uint16_t* truth = &true_codes[0] if true_codes is not None and size else NULL
        cdef int64_t pairs = 0, before
        cdef int sound = 0
        cdef Pairs out
        cdef Entry entry
        if size == 0:
            return 0
        out.truths, out.preds, out.tags, out.positions = &truths[0], &preds[0], &pair_tags[0], &positions[0]
        with nogil:
            for i in range(size):
                if i + FAR < size:
                    prefetch(&self.index[self.home(ids[i + FAR].low)])
                if i + NEAR < size:
                    self.fetch_entry(ids[i + NEAR].low)
                if time != NULL and self.advance(time[i]) < 0:
                    sound = -1
                    break
                entry.low, entry.high = ids[i].low, ids[i].high
                entry.time, entry.code, entry.spare = self.moment(), codes[i], 0
                before = pairs
                if is_label[i]:
                    entry.tag, entry.state = 0, LABEL
                    sound = self.label(&entry, &out, &pairs)
                else:
                    entry.tag, entry.state = tag[i] if tag != NULL else 0, PREDICTION
                    if truth == NULL:
                        sound = self.predict(&entry, &out, &pairs)
                    else:
                        sound = self.both(&entry, truth[i], &out, &pairs)
                if pairs > before:
                    out.positions[before] = i
                if sound < 0:
                    break
        if sound < 0:
            raise MemoryError("no room for more waiting predictions")
        return pairs

    def expire(self, double now):
        """Move the clock to `now`, if that is later."""
        if self.advance(now) < 0:
            raise MemoryError("no room for more waiting predictions")

    @property
    def sizes(self):
        """How many predictions wait, how many labels, and how many ids are remembered."""
        return self.logs[PREDICTIONS].size, self.logs[LABELS].size, self.logs[DONE].size

    @property
    def counts(self):
        """Pairs, expired, displaced, unmatched, repeated predictions, repeated labels, late labels."""
        return tuple([self.tally[i] for i in range(COUNTS)])

    @property
    def clock(self):
        """Where the clock stands and where it began; nan before the first time."""
        return self.now, self.began

    @property
    def oldest_time(self):
        """Since when the oldest prediction waits; nan if none does or no time was known."""
        if self.logs[PREDICTIONS].size == 0 or isnan(self.now):
            return NAN
        return max(self.entry(self.oldest(PREDICTIONS)).time, self.began)

    def load(self, tuple logs, tuple counts, double now, double began):
        """Fill an empty table with what :meth:`dump` gave; the position of the first id that is there twice, or -1."""
        cdef const Entry[::1] entries
        cdef Py_ssize_t i, done = 0
        cdef int log
        for log in range(LOGS):
            entries = logs[log]
            for i in range(entries.shape[0]):
                if self.find(entries[i].low, entries[i].high) >= 0:
                    return done + i
                if self.insert(&entries[i], log) < 0:
                    raise MemoryError("no room for more waiting predictions")
            done += entries.shape[0]
        for log in range(COUNTS):
            self.tally[log] = counts[log]
        self.now, self.began = now, began
        return -1

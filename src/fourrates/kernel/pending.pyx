"""Predictions without a label, labels without a prediction, and ids that are done with, by fingerprint.

They are in three logs, each a list in the order of arrival that is linked both ways, so the oldest is always first and
any entry can leave at once. Entries never move. They lie in chunks, and the place of one that left is used again, so
memory is that of the most that were ever there.

The index is a table of 8 bytes a place, open addressing with linear probing: 32 bits of the fingerprint and the
position of the entry. Those bits give its place, so the table grows by one pass in order, without a look at an entry,
and by half each time. A gap is closed by a backward shift, so there are no tombstones.

A time is a double, counted in whatever unit the caller has. The clock is the latest time met; it never runs backwards,
and an entry waits from the clock at its arrival. So each log is in the order of its times as well.
"""

from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

import numpy as np

from fourrates.kernel.memory cimport prefetch

cdef enum:
    FAR = 24                   # ids between asking for a place of the index and using it
    NEAR = 12                  # and between asking for an entry and using it
    WIDTH = 16                 # a chunk has 1 << WIDTH entries
    LEAST = 64                 # places of the smallest index

cdef enum:  # logs
    PREDICTIONS, LABELS, DONE, LOGS

cdef enum:  # states of an entry
    PREDICTION = 1, LABEL, PAIRED, MISSED

cdef enum:  # whose the probabilities of an entry are
    BY_CLASS = 1, OWN_FIRST

cdef enum:  # counts
    N_PAIRS, N_EXPIRED, N_DISPLACED, N_UNMATCHED, N_REPEATED_PREDICTIONS, N_REPEATED_LABELS, N_LATE_LABELS, COUNTS

cdef uint32_t NONE = 0xFFFFFFFF

STATES = {"prediction": PREDICTION, "label": LABEL, "paired": PAIRED, "missed": MISSED}

cdef packed struct Fingerprint:
    uint64_t low
    uint32_t high

cdef struct Entry:
    uint64_t low
    double time                # the clock at its arrival; before the clock began minus infinity
    int64_t tag
    uint32_t high
    uint16_t code
    uint8_t state
    uint8_t drawn              # whether it has probabilities of being labelled, and whose: BY_CLASS or OWN_FIRST
    float[2] probabilities     # for each prediction it might have had; or for the one it had and the other

cdef struct Node:
    Entry entry
    uint32_t before, after     # nodes of the same log; `after` of a free one is the next free one

cdef struct Log:
    uint32_t head, tail
    int64_t size

cdef struct Pair:
    float[2] probabilities     # by class; 0 for none
    int64_t tag, position
    double since, wait         # the prediction was there; how long its label took, nan if unknown
    uint16_t truth, pred

ENTRY = np.dtype([
    ("low", np.uint64), ("time", np.float64), ("tag", np.int64), ("high", np.uint32), ("code", np.uint16),
    ("state", np.uint8), ("drawn", np.uint8), ("probabilities", np.float32, 2),
])
PAIR = np.dtype([
    ("probabilities", np.float32, 2), ("tag", np.int64), ("position", np.int64), ("since", np.float64),
    ("wait", np.float64), ("truth", np.uint16), ("pred", np.uint16),
], align=True)


cdef inline void clear(Entry* entry, int state) noexcept nogil:
    """Leave of an entry only that its id was met, and its state."""
    entry.tag, entry.code, entry.state, entry.drawn = 0, 0, <uint8_t>state, 0
    entry.probabilities[0] = entry.probabilities[1] = 0


cdef inline int log_of(int state) noexcept nogil:
    return min(state, PAIRED) - 1


cdef class Pending:
    """Entries by fingerprint: predictions, labels, and ids that are done with.

    Parameters
    ----------
    most_waiting, most_remembered : int
        How many predictions may wait, and labels, and how many ids are remembered that are done with.
    longest : float
        How long any of them stays; infinity for no limit.
    """

    cdef uint64_t* index
    cdef uint64_t places
    cdef int64_t used
    cdef Node** chunks
    cdef uint32_t made, unused         # nodes ever in use, and the first that is free again
    cdef Log[LOGS] logs
    cdef int64_t most_waiting, most_remembered
    cdef double longest, now, began, at  # at, the time of the present item, which may be earlier than now
    cdef int64_t[COUNTS] tally

    def __cinit__(self, int64_t most_waiting, int64_t most_remembered, double longest):
        cdef int i
        self.most_waiting, self.most_remembered, self.longest = most_waiting, most_remembered, longest
        self.now = self.began = NAN
        self.unused = NONE
        for i in range(LOGS):
            self.logs[i].head = self.logs[i].tail = NONE
        self.places = LEAST
        self.index = <uint64_t*>malloc(sizeof(uint64_t) * LEAST)
        if self.index == NULL:
            raise MemoryError
        memset(self.index, 0xFF, sizeof(uint64_t) * LEAST)

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.n_chunks()):
            free(self.chunks[i])
        free(self.chunks)
        free(self.index)

    # The index ------------------------------------------------------------------------------------------------

    cdef inline uint64_t home(self, uint64_t place) noexcept nogil:
        """The home of an entry at a place of the index; the place of a fingerprint begins with its first bits."""
        return (place >> 32) * self.places >> 32

    cdef inline uint64_t next(self, uint64_t at) noexcept nogil:
        return at + 1 if at + 1 < self.places else 0

    cdef inline uint64_t steps(self, uint64_t start, uint64_t end) noexcept nogil:
        """From one place on to another."""
        return end - start if end >= start else end + self.places - start

    cdef inline Node* node(self, uint32_t position) noexcept nogil:
        return &self.chunks[position >> WIDTH][position & ((1 << WIDTH) - 1)]

    cdef int64_t find(self, const Entry* entry) noexcept nogil:
        """The place in the index of the entry with this fingerprint, or -1."""
        cdef uint64_t at = self.home(entry.low), place
        cdef const Entry* met
        while True:
            place = self.index[at]
            if <uint32_t>place == NONE:
                return -1
            if place >> 32 == entry.low >> 32:
                met = &self.node(<uint32_t>place).entry
                if met.low == entry.low and met.high == entry.high:
                    return <int64_t>at
            at = self.next(at)

    cdef void settle(self, uint64_t place) noexcept nogil:
        cdef uint64_t at = self.home(place)
        while <uint32_t>self.index[at] != NONE:
            at = self.next(at)
        self.index[at] = place

    cdef int make_room(self) noexcept nogil:
        """See that one more fits, at most three in four; -1 if there is no memory."""
        cdef uint64_t* old = self.index
        cdef uint64_t* larger
        cdef uint64_t i, size = self.places
        if <uint64_t>self.used + 1 <= size - size // 4:
            return 0
        larger = <uint64_t*>malloc(sizeof(uint64_t) * (size + size // 2))
        if larger == NULL:
            return -1
        self.index, self.places = larger, size + size // 2
        memset(larger, 0xFF, sizeof(uint64_t) * self.places)
        for i in range(size):
            if <uint32_t>old[i] != NONE:
                self.settle(old[i])
        free(old)
        return 0

    cdef void close_up(self, uint64_t hole) noexcept nogil:
        """Empty a place, and move up entries that a gap would hide."""
        cdef uint64_t at = hole, wanted
        self.used -= 1
        while True:
            at = self.next(at)
            if <uint32_t>self.index[at] == NONE:
                break
            wanted = self.home(self.index[at])
            if self.steps(wanted, at) >= self.steps(hole, at):
                self.index[hole] = self.index[at]
                hole = at
        self.index[hole] = <uint64_t>-1

    cdef void fetch_entry(self, uint64_t low) noexcept nogil:
        """Ask for the entry that a fingerprint most likely leads to."""
        cdef uint64_t at = self.home(low), place
        for _ in range(8):
            place = self.index[at]
            if <uint32_t>place == NONE:
                return
            if place >> 32 == low >> 32:
                prefetch(self.node(<uint32_t>place))
                return
            at = self.next(at)

    # The logs -------------------------------------------------------------------------------------------------

    cdef void link(self, uint32_t position) noexcept nogil:
        """Put an entry behind the others of the log of its state."""
        cdef Node* node = self.node(position)
        cdef Log* log = &self.logs[log_of(node.entry.state)]
        node.before, node.after = log.tail, NONE
        if log.tail == NONE:
            log.head = position
        else:
            self.node(log.tail).after = position
        log.tail = position
        log.size += 1

    cdef void unlink(self, uint32_t position) noexcept nogil:
        """Take an entry out of its log."""
        cdef Node* node = self.node(position)
        cdef Log* log = &self.logs[log_of(node.entry.state)]
        if node.before == NONE:
            log.head = node.after
        else:
            self.node(node.before).after = node.after
        if node.after == NONE:
            log.tail = node.before
        else:
            self.node(node.after).before = node.before
        log.size -= 1

    cdef inline int64_t n_chunks(self) noexcept nogil:
        return (<int64_t>self.made + (1 << WIDTH) - 1) >> WIDTH

    cdef uint32_t new_node(self) noexcept nogil:
        """A node that is free; NONE if there is no memory."""
        cdef uint32_t position = self.unused, chunk = self.made >> WIDTH
        cdef Node** chunks
        if position != NONE:
            self.unused = self.node(position).after
            return position
        if self.made & ((1 << WIDTH) - 1) == 0:
            if chunk == NONE >> WIDTH:
                return NONE
            chunks = <Node**>realloc(self.chunks, (chunk + 1) * sizeof(Node*))
            if chunks == NULL:
                return NONE
            self.chunks = chunks
            chunks[chunk] = <Node*>malloc(sizeof(Node) << WIDTH)
            if chunks[chunk] == NULL:
                return NONE
        self.made += 1
        return self.made - 1

    cdef int insert(self, const Entry* entry) noexcept nogil:
        """Add an entry whose fingerprint is new to the log of its state; -1 if there is no memory."""
        cdef uint32_t position
        if self.make_room() < 0:
            return -1
        position = self.new_node()
        if position == NONE:
            return -1
        self.node(position).entry = entry[0]
        self.link(position)
        self.settle((entry.low >> 32 << 32) | position)
        self.used += 1
        return 0

    cdef void drop(self, uint64_t place) noexcept nogil:
        """Forget the entry that a place of the index leads to."""
        cdef uint32_t position = <uint32_t>self.index[place]
        self.close_up(place)
        self.unlink(position)
        self.node(position).after = self.unused
        self.unused = position

    cdef inline uint64_t oldest(self, int log) noexcept nogil:
        """The place in the index of the oldest of a log that is not empty."""
        cdef uint32_t position = self.logs[log].head
        cdef uint64_t at = self.home(self.node(position).entry.low)
        while <uint32_t>self.index[at] != position:
            at = self.next(at)
        return at

    # The life of an entry -----------------------------------------------------------------------------------

    cdef void retire(self, uint64_t place, int state) noexcept nogil:
        """Keep only that the id was met and its outcome."""
        cdef uint32_t position = <uint32_t>self.index[place]
        if self.most_remembered == 0:
            self.drop(place)
            return
        self.unlink(position)
        clear(&self.node(position).entry, state)
        self.node(position).entry.time = self.moment()
        self.link(position)
        self.forget_oldest()

    cdef int remember(self, Entry entry) noexcept nogil:
        """Keep that an id was met that nothing was known of, with its prediction and its label; -1 if there is no memory."""
        if self.most_remembered == 0:
            return 0
        clear(&entry, PAIRED)
        if self.insert(&entry) < 0:
            return -1
        self.forget_oldest()
        return 0

    cdef void forget_oldest(self) noexcept nogil:
        if self.logs[DONE].size > self.most_remembered:
            self.drop(self.oldest(DONE))

    cdef void miss_oldest(self, int count) noexcept nogil:
        """The oldest prediction leaves without a label."""
        self.tally[count] += 1
        self.retire(self.oldest(PREDICTIONS), MISSED)

    cdef inline double moment(self) noexcept nogil:
        return -INFINITY if isnan(self.now) else self.now

    cdef inline bint is_over(self, int log) noexcept nogil:
        """Whether the oldest of a log has waited too long."""
        if self.logs[log].size == 0:
            return False
        return self.now - max(self.node(self.logs[log].head).entry.time, self.began) > self.longest

    cdef void advance(self, double time) noexcept nogil:
        """Move the clock, and drop entries that have waited too long."""
        if isnan(time) or time <= self.now:
            return
        if isnan(self.now):
            self.began = time
        self.now = time
        while self.is_over(DONE):
            self.drop(self.oldest(DONE))
        while self.is_over(LABELS):
            self.miss_oldest_label()
        while self.is_over(PREDICTIONS):
            self.miss_oldest(N_EXPIRED)

    cdef void miss_oldest_label(self) noexcept nogil:
        """The oldest label leaves without a prediction."""
        self.tally[N_UNMATCHED] += 1
        self.drop(self.oldest(LABELS))

    cdef int add(self, const Entry* entry, Pair* pair) noexcept nogil:
        """One more prediction or label: 1 if that completes a pair, -1 if there is no memory."""
        cdef bint is_label = entry.state == LABEL
        cdef int64_t place = self.find(entry)
        cdef Entry* met
        if place < 0:
            if self.insert(entry) < 0:
                return -1
            if is_label and self.logs[LABELS].size > self.most_waiting:
                self.miss_oldest_label()
            elif not is_label and self.logs[PREDICTIONS].size > self.most_waiting:
                self.miss_oldest(N_DISPLACED)
            return 0
        met = &self.node(<uint32_t>self.index[place]).entry
        if met.state == (PREDICTION if is_label else LABEL):
            self.complete(entry if is_label else met, met if is_label else entry, pair)
            self.retire(<uint64_t>place, PAIRED)
            return 1
        if not is_label:
            self.tally[N_REPEATED_PREDICTIONS] += 1
        elif met.state == MISSED:
            self.tally[N_LATE_LABELS] += 1
            met.state = PAIRED  # so that the same label once more is a repeat
        else:
            self.tally[N_REPEATED_LABELS] += 1
        return 0

    cdef int both(self, Entry* entry, uint16_t truth, Pair* pair) noexcept nogil:
        """A prediction and its label, which arrive together, as one entry instead of two."""
        cdef Entry label = entry[0]
        cdef int first, second
        clear(&label, LABEL)
        label.code = truth
        if self.find(entry) < 0:
            self.complete(&label, entry, pair)
            return 1 if self.remember(entry[0]) == 0 else -1
        first = self.add(entry, pair)
        second = self.add(&label, pair)
        return second if second < 0 else first + second

    cdef inline void complete(self, const Entry* label, const Entry* prediction, Pair* pair) noexcept nogil:
        cdef const Entry* drawn = prediction if prediction.drawn else label
        cdef bint swapped = drawn.drawn == OWN_FIRST and prediction.code
        pair.truth, pair.pred, pair.tag = label.code, prediction.code, prediction.tag
        pair.probabilities[0] = drawn.probabilities[swapped] if drawn.drawn else 0
        pair.probabilities[1] = drawn.probabilities[not swapped] if drawn.drawn else 0
        pair.since = prediction.time
        # Unknown if it was there before the clock began.
        pair.wait = max(self.at - prediction.time, 0) if prediction.time >= self.began else NAN
        self.tally[N_PAIRS] += 1

    # Called from Python ------------------------------------------------------------------------------------------

    def take(self, const Fingerprint[::1] ids, const uint16_t[::1] codes, const uint8_t[::1] is_label,
             const uint16_t[::1] true_codes, const int64_t[::1] tags, const double[::1] times,
             const float[:, ::1] probabilities, bint own_first, Pair[::1] pairs, uint8_t[::1] repeated):
        """Take predictions and labels in the order of arrival; `pairs` is filled with the pairs, whose number is returned,
        and `repeated` with whether each item is a prediction whose id was met before. With `true_codes`, each prediction
        has its label. These, `tags`, `times` and `probabilities` may be None; a time that is nan is the clock's, and an
        item whose first probability is 0 has none."""
        cdef Py_ssize_t i, size = ids.shape[0]
        cdef bint tagged = tags is not None, timed = times is not None, labelled = true_codes is not None
        cdef bint drawn = probabilities is not None
        cdef int64_t n = 0, met
        cdef int found = 0
        cdef Entry entry
        with nogil:
            for i in range(size):
                if i + FAR < size:
                    prefetch(&self.index[self.home(ids[i + FAR].low)])
                if i + NEAR < size:
                    self.fetch_entry(ids[i + NEAR].low)
                self.at = times[i] if timed else NAN
                self.advance(self.at)
                self.at = self.now if isnan(self.at) else self.at
                clear(&entry, LABEL if is_label[i] else PREDICTION)
                entry.low, entry.high, entry.time, entry.code = ids[i].low, ids[i].high, self.moment(), codes[i]
                if drawn and probabilities[i, 0] != 0:
                    entry.probabilities[0], entry.probabilities[1] = probabilities[i, 0], probabilities[i, 1]
                    entry.drawn = OWN_FIRST if own_first else BY_CLASS
                met = self.tally[N_REPEATED_PREDICTIONS]
                if tagged and not is_label[i]:
                    entry.tag = tags[i]
                if labelled:
                    found = self.both(&entry, true_codes[i], &pairs[n])
                else:
                    found = self.add(&entry, &pairs[n])
                if found < 0:
                    break
                pairs[n].position = i  # overwritten unless there is a pair
                n += found
                repeated[i] = self.tally[N_REPEATED_PREDICTIONS] > met
        if found < 0:
            raise MemoryError("no room for more waiting predictions")
        return n

    def expire(self, double now):
        """Move the clock to `now`, if that is later."""
        self.advance(now)

    @property
    def nbytes(self):
        """Memory in bytes."""
        return self.n_chunks() * (sizeof(Node) << WIDTH) + self.places * sizeof(uint64_t)

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
        """The clock and its beginning; nan before the first time."""
        return self.now, self.began

    @property
    def oldest_time(self):
        """Since when the oldest prediction waits; nan if none does or no time was known."""
        if self.logs[PREDICTIONS].size == 0 or isnan(self.now):
            return NAN
        return max(self.node(self.logs[PREDICTIONS].head).entry.time, self.began)

    def dump(self, int log):
        """The entries of a log, in the order of arrival."""
        if not 0 <= log < LOGS:
            raise ValueError(log)
        found = np.empty(self.logs[log].size, ENTRY)
        cdef Entry[::1] out = found
        cdef uint32_t at = self.logs[log].head
        cdef Py_ssize_t n
        for n in range(out.shape[0]):
            out[n] = self.node(at).entry
            at = self.node(at).after
        return found

    def load(self, const Entry[::1] entries, tuple counts, double now, double began):
        """Fill an empty table with the entries of all logs; the position of the first id that is there twice, or -1."""
        cdef Py_ssize_t i
        for i in range(entries.shape[0]):
            if self.find(&entries[i]) >= 0:
                return i
            if self.insert(&entries[i]) < 0:
                raise MemoryError("no room for more waiting predictions")
        for i in range(COUNTS):
            self.tally[i] = counts[i]
        self.now, self.began = now, began
        return -1

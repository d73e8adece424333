"""What waits: predictions without a label, labels without a prediction, and ids that are done with, by fingerprint.

They stand in three logs (:mod:`fourrates.kernel.logs`), each in the order of arrival, so the oldest is always at hand and
nothing depends on the key of the fingerprints.

A time is a double, counted in whatever unit the caller has. The clock is the latest time met; it never runs backwards,
and an entry waits from where the clock stood when it came. So each log is in the order of its times as well.
"""

from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from fourrates.kernel.logs cimport LOGS, NEAR, Entry, Logs
from fourrates.kernel.memory cimport prefetch

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

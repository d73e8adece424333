"""A stream's record and its step, with rules that many streams share, and an arena of many records.

A record is its head, which is the same for all rules, and a body, which is the rules' own. Every record of one set of rules
has the same size, and holds numbers only, so it can be copied, saved and sent as it is.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from fourrates.kernel.memory cimport prefetch

cdef enum:
    MANY = 6              # events of a stream in a row from which on they are taken together
    TOGETHER = 8          # events whose records are fetched at once,
    WAITING = 40          # as long as they are no more lines than this, for a processor that waits for more stalls
    BLOCK = 1 << 22       # bytes of a block of records; NumPy asks for huge pages from this size on
    CHECKED = 256         # records that are checked at a time

cdef int64_t MOST_EVENTS = <int64_t>1 << 47  # the most that the fields of a head have room for

NUMBERS = {  # for those who read records in Python
    "DRIFT": DRIFT, "LOOK": LOOK, "SHIFT": SHIFT, "REPORT": REPORT, "DRIFTED": DRIFTED, "ALARMED": ALARMED, "KIND": KIND,
    "WARNED": WARNED, "OPEN": OPEN, "FLAGS": FLAGS,
}


cdef class Rules:
    """The rules as numbers, frozen and shared by any number of records."""

    cdef void begin(self, char* record) noexcept nogil:
        """Write the body of a stream that has seen nothing; its memory is zero."""

    cdef void set_reference(self, char* record, const float* given, const float* given_ones) noexcept nogil:
        """Give a stream that has seen nothing its own reference, the observations and right ones by class."""

    cdef void restart(self, char* record) noexcept nogil:
        """After a drift was reported, forget the part of the record that the rules do not keep."""

    cdef void load_checked(self, char* record) noexcept nogil:
        """A checked record is from outside, so numbers that can be derived from the rest are not trusted."""

    cdef int step(self, char* record, int truth, int pred) noexcept nogil:
        """Take one event and return its result."""
        return QUIET

    cdef Py_ssize_t scan(self, char* record, char* scratch, const uint16_t* truths, const uint16_t* preds,
                         Py_ssize_t size, int* state) noexcept nogil:
        """Take events of one stream up to the first that has something to report; return how many, and its result."""
        cdef Py_ssize_t i
        state[0] = QUIET
        for i in range(size):
            state[0] = self.step(record, truths[i], preds[i])
            if state[0] & REPORT:
                return i + 1
        return size

    cdef void fetch(self, const char* record, int truth, int pred) noexcept nogil:
        """Ask for the lines of the cache that an event will touch."""
        prefetch(record)
        prefetch(record + LINE)

    def start_again(self, uint8_t[::1] record):
        """Restart a record after its drift was reported."""
        self.restart(<char*>&record[0])

    @property
    def scratch_size(self):
        """Bytes of the values that `scan` derives from a record, and keeps from call to call."""
        return 0

    def check(self, const uint8_t[:, ::1] records):
        """Raise ValueError unless each row can be a record of these rules; the bodies are the subclass's to check."""
        cdef const Head* head
        cdef Py_ssize_t i
        cdef int64_t events, since
        if records.shape[1] != self.size:
            raise ValueError(f"a record of {records.shape[1]} bytes where {self.size} belong")
        for i in range(records.shape[0]):
            head = <const Head*>&records[i, 0]
            events, since = events_of(head), since_of(head)
            if events > MOST_EVENTS or not -1 <= since < max(events, 1):
                raise ValueError(f"a warning since event {since} of {events}")
            if (since >= 0) != (head.events & WARNED != 0) or (head.events & WARNED and head.events & DRIFTED):
                raise ValueError("flags that contradict each other")


cdef char* aligned(const uint8_t[::1] block) noexcept:
    """The first place in a block that begins two lines of the cache."""
    return <char*>((<size_t>&block[0] + 2 * LINE - 1) // (2 * LINE) * (2 * LINE))


cdef object slice_of(object block, const char* record, Py_ssize_t size):
    """The part of a block that is a record."""
    cdef const uint8_t[::1] view = block
    cdef Py_ssize_t start = record - <const char*>&view[0]
    return block[start:start + size]


@cython.final
cdef class Arena:
    """The records of many streams, by slot 0, 1, ...

    Parameters
    ----------
    rules : Rules
        Of all of them.
    """

    cdef Rules rules
    cdef readonly int64_t size         # streams
    cdef readonly int64_t stride       # bytes from record to record
    cdef int shift                     # a block has 1 << shift records
    cdef int64_t mask
    cdef list blocks
    cdef object firsts                 # addresses of each block's first record, an array,
    cdef char** block                  # and its memory
    cdef size_t scratch_size           # bytes of the values derived from the record of the present stream
    cdef int together                  # events whose records are fetched at once
    cdef int running                   # threads that are taking events

    def __init__(self, Rules rules not None):
        self.rules, self.blocks, self.scratch_size = rules, [], rules.scratch_size
        step = LINE if rules.size <= 8 * LINE else 8  # a record of many lines may begin anywhere
        self.stride = (rules.size + step - 1) // step * step
        self.together = <int>min(max(WAITING * LINE // self.stride, 1), TOGETHER)
        self.shift = 0
        while (self.stride << (self.shift + 1)) <= BLOCK:
            self.shift += 1
        self.mask = (1 << self.shift) - 1

    @property
    def nbytes(self):
        """Memory of the records, in bytes."""
        return sum([block.nbytes for block in self.blocks])

    cdef inline char* at(self, int64_t slot) noexcept nogil:
        return self.block[slot >> self.shift] + (slot & self.mask) * self.stride

    cdef int idle(self) except -1:
        if self.running:
            raise RuntimeError("another thread is using this bank; give each thread its own, or take turns")
        return 0

    def reserve(self, int64_t size):
        """Make room for this number of streams; spare memory is given back."""
        cdef int64_t wanted = (size + self.mask) >> self.shift
        cdef uint64_t[::1] firsts = np.zeros(max(wanted, 1), np.uint64)
        del self.blocks[wanted:]
        while len(self.blocks) < wanted:
            self.blocks.append(np.zeros((self.stride << self.shift) + 2 * LINE, np.uint8))
        for i, block in enumerate(self.blocks):
            firsts[i] = <size_t>aligned(block)
        self.firsts, self.block = firsts, <char**>&firsts[0]

    def begin(self, const int64_t[::1] keys, const uint8_t[::1] kinds):
        """Add streams that have seen nothing."""
        cdef Py_ssize_t i
        cdef char* record
        cdef Head* head
        self.idle()
        self.reserve(self.size + keys.shape[0])
        for i in range(keys.shape[0]):
            record = self.at(self.size + i)
            memset(record, 0, self.stride)
            head = <Head*>record
            head.key, head.last, head.events = keys[i], -1, kinds[i] * KIND
            self.rules.begin(record)
        self.size += keys.shape[0]

    def set_reference(self, int64_t first, const float[:, ::1] given, const float[:, ::1] given_ones):
        """Give streams that have seen nothing, from slot `first` on, their own references."""
        cdef Py_ssize_t i
        for i in range(given.shape[0]):
            self.rules.set_reference(self.at(first + i), &given[i, 0], &given_ones[i, 0])

    def run(self, const int32_t[::1] slots, const uint16_t[::1] truths, const uint16_t[::1] preds,
            const uint32_t[::1] places, Py_ssize_t start, Py_ssize_t end, int64_t clock):
        """Take the coded events from `start` to `end`, stream by stream, up to the first that has something to report.

        `places` is the position of each event on arrival, `clock` is the number of events before them all. Threads may
        run at the same time, each with other streams.

        Returns
        -------
        (events taken by then, the result of the last one)
        """
        cdef Py_ssize_t taken
        cdef int state = QUIET
        cdef const uint8_t[::1] scratch = np.empty(self.scratch_size + 2 * LINE, np.uint8)
        cdef char* memory = aligned(scratch)
        if not slots.shape[0] == truths.shape[0] == preds.shape[0] == places.shape[0]:
            raise ValueError("arrays of different sizes")
        if not 0 <= start < end <= slots.shape[0]:
            raise IndexError(f"events {start} to {end} of {slots.shape[0]}")
        self.running += 1
        try:
            with nogil:
                taken = self.scan(&slots[0], &truths[0], &preds[0], &places[0], start, end, clock, memory, &state)
        finally:
            self.running -= 1
        return taken, state

    def view(self, int64_t slot):
        """The record of a stream itself, to be changed by whoever takes its events."""
        if not 0 <= slot < self.size:
            raise IndexError(f"slot {slot} of {self.size}")
        return slice_of(self.blocks[slot >> self.shift], self.at(slot), self.rules.size)

    cdef Py_ssize_t scan(self, const int32_t* slots, const uint16_t* truths, const uint16_t* preds,
                         const uint32_t* places, Py_ssize_t start, Py_ssize_t size, int64_t clock, char* scratch,
                         int* state) noexcept nogil:
        cdef Py_ssize_t i = start, j, asked = start, end
        cdef char* record
        while i < size:
            if i >= asked:  # not one by one, so that they wait for their pages together
                for j in range(i + self.together, min(i + 2 * self.together, size)):
                    self.rules.fetch(self.at(slots[j]), truths[j], preds[j])
                asked = i + self.together
            record, end = self.at(slots[i]), i + 1
            while end < size and slots[end] == slots[i]:
                end += 1
            if end - i < MANY:
                state[0] = self.rules.step(record, truths[i], preds[i])
                i += 1
            else:  # values derived from the record are worth keeping from event to event
                memset(scratch, 0, self.scratch_size)
                i += self.rules.scan(record, scratch, truths + i, preds + i, end - i, state)
            (<Head*>record).last = clock + places[i - 1]
            if state[0] & REPORT:
                break
        return i

    def record(self, int64_t slot):
        """The record of a stream, as bytes."""
        self.idle()
        if not 0 <= slot < self.size:
            raise IndexError(f"slot {slot} of {self.size}")
        return self.at(slot)[:self.rules.size]

    def records(self):
        """All records, one after the other."""
        self.idle()
        cdef int64_t slot, size = self.rules.size
        found = np.empty((self.size, size), np.uint8)
        cdef uint8_t[:, ::1] view = found
        for slot in range(self.size):
            memcpy(&view[slot, 0], self.at(slot), size)
        return found

    def extend(self, const uint8_t[:, ::1] records):
        """Add streams by their records; each is checked first."""
        cdef int64_t i, size = self.rules.size
        self.idle()
        if records.shape[1] != size:
            raise ValueError(f"records of {records.shape[1]} bytes where {size} belong")
        for i in range(0, records.shape[0], CHECKED):  # the number that the processor's cache holds
            self.rules.check(np.asarray(records[i:i + CHECKED]))
        self.reserve(self.size + records.shape[0])
        for i in range(records.shape[0]):
            memset(self.at(self.size + i), 0, self.stride)
            memcpy(self.at(self.size + i), &records[i, 0], size)
            self.rules.load_checked(self.at(self.size + i))
        self.size += records.shape[0]

    def keep(self, const int64_t[::1] slots):
        """Keep these streams only, given in ascending order, and close the gaps."""
        cdef Py_ssize_t i
        self.idle()
        for i in range(slots.shape[0]):
            if slots[i] != i:
                memcpy(self.at(i), self.at(slots[i]), self.stride)
        self.size = slots.shape[0]
        self.reserve(self.size)

    def start_period(self):
        """Forget which streams had a drift."""
        cdef int64_t slot
        self.idle()
        for slot in range(self.size):
            (<Head*>self.at(slot)).events &= ~<uint64_t>ALARMED

    def progress(self, const int32_t[::1] slots):
        """Of these streams, the events, and the event that opened the present warning or -1."""
        cdef Py_ssize_t i
        cdef Head* head
        self.idle()
        events, since = np.empty(slots.shape[0], np.int64), np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] events_view = events, since_view = since
        for i in range(slots.shape[0]):
            if not 0 <= slots[i] < self.size:
                raise IndexError(f"slot {slots[i]} of {self.size}")
            head = <Head*>self.at(slots[i])
            events_view[i], since_view[i] = events_of(head), since_of(head)
        return events, since

    def heads(self):
        """Keys, kinds, events, last events, and which streams had a drift, an array of each, by name."""
        cdef int64_t slot
        self.idle()
        table = np.empty(self.size, [("key", "i8"), ("last", "i8"), ("events", "u8"), ("since", "u8")])
        cdef uint8_t[:, ::1] view = table.view(np.uint8).reshape(self.size, sizeof(Head))
        for slot in range(self.size):
            memcpy(&view[slot, 0], self.at(slot), sizeof(Head))
        flags = table["events"] & ((1 << FLAGS) - 1)
        return {
            "key": table["key"].copy(), "kind": (flags // KIND & 3).astype(np.uint8),
            "events": (table["events"] >> FLAGS).astype(np.int64), "last": table["last"].copy(),
            "alarmed": (flags & ALARMED) != 0, "open": (flags & OPEN) != 0,
        }

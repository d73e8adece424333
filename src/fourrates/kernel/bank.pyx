"""Many streams in one array of states, and the index that finds a stream by its key. Numbers only: what a key may be,
what a drift looks like and how files are laid out is the business of :mod:`fourrates.bank` and :mod:`fourrates.keys`.

A record is 128 bytes for two classes at one decay, two lines of the processor's cache:

    key, last event, events and flags, warning and group      32 bytes
    the K x K counts                                           8 bytes each
    how often each rate was touched, for more than two classes 8 bytes each
    the statistics, with the limits they are calm within      16 bytes each
"""

cimport cython
from libc.math cimport ceil, floor
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from fourrates.kernel.pairs cimport CROSSED, INSIDE, MOVED, Grid, Table, Test, horizon, look_ahead, stand

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define FOURRATES_FETCH(place) __builtin_prefetch((place), 1)
    #else
    #define FOURRATES_FETCH(place) ((void)(place))
    #endif
    """
    void fetch "FOURRATES_FETCH"(const void* place) noexcept nogil

cdef enum:
    AHEAD = 16            # keys between asking for an entry of the index and using it
    TOGETHER = 8          # events whose records are asked for at once; more lines than a processor can wait for stall it
    WORTH = 6             # observations: a look ahead over fewer costs more than it saves
    LINE = 64             # bytes of a line of the cache
    BLOCK = 1 << 22       # bytes of a small block of records; NumPy asks for huge pages from this size on
    BLOCKS = 16           # the most there are: then they are put together two by two
    DRIFTED = 1           # flags: the last event was a drift
    ALARMED = 2           # there was a drift since the last mark
    KIND = 4              # two bits: what the key is
    FLAGS = 4             # bits of them
    GROUP = 16            # bits of the group
    PLACE = 2             # bits of the place
    LONGEST = (1 << 30) - 1


cdef struct Head:
    int64_t key           # as an integer of 64 bits; for a key that is none, anything
    int64_t last          # the bank's event that was this stream's last
    uint64_t events       # and below them FLAGS
    uint64_t since        # the event that opened the present warning, plus one; and below it the group


cdef struct Cell:
    # One statistic. While n <= calm and low <= statistic * FULL <= high it stands where it stood: as `Test`, but with the
    # limits of its present place only, rounded inwards.
    double statistic
    uint16_t low, high
    uint32_t calm         # and below it the place


cdef struct Group:
    Test* test            # settings, and room for a look ahead
    Grid* grid            # one a test


cdef double FULL = 65535.0  # the largest limit


cdef inline int touch(Group* group, Cell* cells, int begin, int end, int64_t n, int64_t ones, double hit) noexcept nogil:
    """One more observation of a rate; what became of its tests, `begin` up to `end`."""
    cdef int found = 0, crossed, place, j
    cdef double statistic, scaled
    cdef Cell* cell
    cdef Test* test
    for j in range(begin, end):
        cell, test = &cells[j], &group.test[j]
        statistic = test.decay * cell.statistic + test.gain * hit
        cell.statistic = statistic
        if n <= group.grid[j].window:  # the table is small there, and no limit is needed
            crossed = 0
            place = stand(&group.grid[j], test, statistic, n, ones, 0, &crossed)
            if place != <int>cell.calm:
                cell.calm = place
                crossed |= MOVED
            found |= crossed
            continue
        scaled = statistic * FULL
        if n > cell.calm >> PLACE or scaled < cell.low or scaled > cell.high:
            found |= settle(&group.grid[j], test, cell, n, ones)
    return found


cdef int settle(const Grid* grid, Test* test, Cell* cell, int64_t n, int64_t ones) noexcept nogil:
    """Find out where a statistic stands beyond the window, and the limits within which it will stand there."""
    cdef int found = 0
    cdef int64_t row, last = horizon(grid, n, &row)
    cdef int place = stand(grid, test, cell.statistic, n, ones, row, &found)
    if place != <int>(cell.calm & 3):
        found |= MOVED
    elif n <= cell.calm >> PLACE:
        return found
    cell.calm = place
    if last - n >= WORTH:
        look_ahead(grid, test, place, n, ones, row, last)
        cell.low = <uint16_t>min(max(ceil(test.lows[place] * FULL), 0.0), FULL)
        cell.high = <uint16_t>min(max(floor(test.highs[place] * FULL), 0.0), FULL)
        cell.calm |= <uint32_t>min(last, <int64_t>LONGEST) << PLACE
    return found


cdef char* aligned(const uint8_t[::1] block) noexcept:
    """The first place in a block that begins two lines of the cache."""
    return <char*>((<size_t>&block[0] + 2 * LINE - 1) // (2 * LINE) * (2 * LINE))


@cython.final
cdef class Streams:
    """The states of many streams, by slot 0, 1, ...

    Parameters
    ----------
    classes : int
        Rates are recall of class 0 .. classes - 1, then precision of each.
    groups : list
        For each group of streams, for each rate, a list of (table, warning level, detection level, down?, up?). All
        groups have equally many tests.
    """

    cdef int classes, rates, tests
    cdef readonly int64_t size         # streams
    cdef readonly int64_t stride       # bytes of a record
    cdef int shift                     # a block has 1 << shift records
    cdef int64_t mask
    cdef Py_ssize_t sums, cells        # where in a record they begin
    cdef int* first                    # test of each rate, and behind the last
    cdef Group* group
    cdef readonly int groups
    cdef list blocks, kept             # arrays; tables, so that theirs stay
    cdef char* block[BLOCKS]           # where each array's first record lies

    def __init__(self, int classes, list groups):
        cdef int g, j, r
        if self.first != NULL:
            raise TypeError("these streams are set up already")
        self.classes, self.rates, self.groups = classes, 2 * classes, len(groups)
        self.tests = sum([len(tests) for tests in groups[0]])
        self.first = <int*>calloc(self.rates + 1, sizeof(int))
        self.group = <Group*>calloc(self.groups, sizeof(Group))
        if self.first == NULL or self.group == NULL:
            raise MemoryError
        for r in range(self.rates):
            self.first[r + 1] = self.first[r] + len(groups[0][r])
        self.kept, self.blocks = [], []
        for g in range(self.groups):
            self.group[g].test = <Test*>calloc(self.tests, sizeof(Test))
            self.group[g].grid = <Grid*>calloc(self.tests, sizeof(Grid))
            if self.group[g].test == NULL or self.group[g].grid == NULL:
                raise MemoryError
            if [len(tests) for tests in groups[g]] != [len(tests) for tests in groups[0]]:
                raise ValueError(f"group {g} has other tests than group 0")
            for j, (table, warn, detect, down, up) in enumerate([test for tests in groups[g] for test in tests]):
                self.kept.append(table)
                self.group[g].grid[j] = (<Table>table).grid
                self.group[g].test[j].warn, self.group[g].test[j].detect = warn, detect
                self.group[g].test[j].down, self.group[g].test[j].up = down, up
                self.group[g].test[j].decay = (<Table>table).decay
                self.group[g].test[j].gain = 1.0 - (<Table>table).decay
        self.sums = sizeof(Head) + 8 * classes * classes
        self.cells = self.sums + (8 * self.rates if classes > 2 else 0)
        self.stride = (self.cells + self.tests * <int64_t>sizeof(Cell) + LINE - 1) // LINE * LINE
        self.shift = 0
        while (self.stride << (self.shift + 1)) <= BLOCK:
            self.shift += 1
        self.mask = (1 << self.shift) - 1

    def __dealloc__(self):
        cdef int g
        if self.group != NULL:
            for g in range(self.groups):
                free(self.group[g].test)
                free(self.group[g].grid)
        free(self.group)
        free(self.first)

    @property
    def nbytes(self):
        """Memory of the records, in bytes."""
        return sum([block.nbytes for block in self.blocks])

    cdef inline char* record(self, int64_t slot) noexcept nogil:
        return self.block[slot >> self.shift] + (slot & self.mask) * self.stride

    def reserve(self, int64_t size):
        """Make room for so many streams; what is too much is given back."""
        cdef int shift = self.shift
        while size > <int64_t>BLOCKS << shift:
            shift += 1
        blocks = self.blocks if shift == self.shift else self.put_together(shift)
        while len(blocks) << shift < size:
            blocks.append(np.zeros((self.stride << shift) + 2 * LINE, np.uint8))
        del blocks[(size + (<int64_t>1 << shift) - 1) >> shift:]
        self.blocks, self.shift, self.mask = blocks, shift, (<int64_t>1 << shift) - 1
        for i, block in enumerate(blocks):
            self.block[i] = aligned(block)

    cdef list put_together(self, int shift):
        """The streams in larger blocks."""
        cdef int64_t slot, mask = (<int64_t>1 << shift) - 1
        blocks = [np.zeros((self.stride << shift) + 2 * LINE, np.uint8) for _ in range((self.size + mask) >> shift)]
        for slot in range(0, self.size, self.mask + 1):
            memcpy(aligned(blocks[slot >> shift]) + (slot & mask) * self.stride, self.record(slot), self.stride << self.shift)
        return blocks

    def begin(self, const int64_t[::1] keys, const uint8_t[::1] kinds, const uint16_t[::1] groups):
        """Add streams that have seen nothing."""
        cdef Py_ssize_t i
        cdef Head* head
        self.reserve(self.size + keys.shape[0])
        for i in range(keys.shape[0]):
            head = <Head*>self.record(self.size + i)
            head.key, head.last, head.events, head.since = keys[i], -1, kinds[i] * KIND, groups[i]
            self.forget(<char*>head)
        self.size += keys.shape[0]

    cdef void forget(self, char* record) noexcept nogil:
        cdef Cell* cells = <Cell*>(record + self.cells)
        cdef int j
        memset(record + sizeof(Head), 0, self.cells - sizeof(Head))
        for j in range(self.tests):
            cells[j].statistic, cells[j].calm = 0.5, 0

    def restart(self, int64_t slot):
        """After a drift: begin anew, the events counted on."""
        cdef Head* head = <Head*>self.record(slot)
        head.since &= (1 << GROUP) - 1
        self.forget(<char*>head)

    def run(self, const int32_t[::1] slots, const uint16_t[::1] truths, const uint16_t[::1] guesses, Py_ssize_t start,
            int64_t clock):
        """Take coded events from `start` on up to the first drift; how many of all events are taken then, and whether
        the last was a drift. `clock` is the number of events before the first."""
        cdef Py_ssize_t size = slots.shape[0], taken
        cdef bint drifted = False
        if size == 0:
            return 0, False
        with nogil:
            taken = self.scan(&slots[0], &truths[0], &guesses[0], start, size, clock, &drifted)
        return taken, drifted

    cdef Py_ssize_t scan(self, const int32_t* slots, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t start,
                         Py_ssize_t size, int64_t clock, bint* drifted) noexcept nogil:
        # Locals, for a store to a record may, as far as a compiler knows, change what self points to.
        cdef char** block = self.block
        cdef int64_t mask = self.mask, stride = self.stride
        cdef Py_ssize_t sums_at = self.sums, cells_at = self.cells
        cdef const int* recall = self.first
        cdef const int* precision = self.first + self.classes
        cdef int shift = self.shift
        cdef double[2] bits = [0.0, 1.0]  # looked up, not branched on: errors cannot be foreseen
        cdef double hit
        cdef int classes = self.classes, truth, guess, found
        cdef int64_t n, m
        cdef int64_t* counts
        cdef int64_t* sums
        cdef Cell* cells
        cdef Head* head
        cdef Group* group
        cdef char* record
        cdef Py_ssize_t i, j
        for i in range(start, size):
            if (i - start) % TOGETHER == 0:
                # Not one by one, so that they wait for their pages together; and not in a function of its own: without
                # effect on results it would be optimised away.
                for j in range(i + TOGETHER, min(i + 2 * TOGETHER, size)):
                    record = block[slots[j] >> shift] + (slots[j] & mask) * stride
                    fetch(record)
                    fetch(record + LINE)
                    if stride > 2 * LINE:
                        truth, guess = truths[j], guesses[j]
                        counts, cells = <int64_t*>(record + sizeof(Head)), <Cell*>(record + cells_at)
                        fetch(&counts[truth * classes + guess])
                        fetch(&counts[truth * (classes + 1)])
                        fetch(&counts[guess * (classes + 1)])
                        fetch(record + sums_at + 8 * truth)
                        fetch(record + sums_at + 8 * (classes + guess))
                        fetch(&cells[recall[truth]])
                        fetch(&cells[precision[guess]])
            record = block[slots[i] >> shift] + (slots[i] & mask) * stride
            head, counts, cells = <Head*>record, <int64_t*>(record + sizeof(Head)), <Cell*>(record + cells_at)
            truth, guess = truths[i], guesses[i]
            hit = bits[truth == guess]
            counts[truth * classes + guess] += 1
            if classes == 2:
                n, m = counts[2 * truth] + counts[2 * truth + 1], counts[guess] + counts[2 + guess]
            else:
                sums = <int64_t*>(record + sums_at)
                sums[truth] += 1
                sums[classes + guess] += 1
                n, m = sums[truth], sums[classes + guess]
            group = &self.group[head.since & ((1 << GROUP) - 1)]
            found = touch(group, cells, recall[truth], recall[truth + 1], n, counts[truth * (classes + 1)], hit)
            found |= touch(group, cells, precision[guess], precision[guess + 1], m,
                           counts[guess * (classes + 1)], hit)
            head.last = clock + i
            head.events = (head.events & ~<uint64_t>DRIFTED) + (1 << FLAGS)
            if found:
                if not self.outside(cells):
                    head.since &= (1 << GROUP) - 1
                elif head.since >> GROUP == 0:
                    head.since |= (head.events >> FLAGS) << GROUP
                if found & CROSSED:
                    head.events |= DRIFTED | ALARMED
                    drifted[0] = True
                    return i + 1
        return size

    cdef inline bint outside(self, const Cell* cells) noexcept nogil:
        """Whether any statistic stands outside its warning bounds."""
        cdef int j
        for j in range(self.tests):
            if cells[j].calm & 3 != INSIDE:
                return True
        return False

    def head(self, int64_t slot):
        """(key, kind, group, events, since, last event a drift?, warning?)."""
        cdef char* record = self.record(slot)
        cdef Head* head = <Head*>record
        return (head.key, (head.events // KIND) & 3, head.since & ((1 << GROUP) - 1), <int64_t>(head.events >> FLAGS),
                <int64_t>(head.since >> GROUP) - 1, bool(head.events & DRIFTED),
                self.outside(<Cell*>(record + self.cells)))

    def state(self, int64_t slot, int64_t[::1] counts, double[::1] statistics, uint8_t[::1] places):
        """Copy out the K x K counts, the statistics, and where these stand."""
        self.copy(self.record(slot), &counts[0], &statistics[0], &places[0])

    cdef void copy(self, const char* record, int64_t* counts, double* statistics, uint8_t* places) noexcept nogil:
        cdef const Cell* cells = <const Cell*>(record + self.cells)
        cdef int j
        memcpy(counts, record + sizeof(Head), 8 * self.classes * self.classes)
        for j in range(self.tests):
            statistics[j], places[j] = cells[j].statistic, cells[j].calm & 3

    def unmark(self):
        """Forget which streams had a drift."""
        cdef int64_t slot
        for slot in range(self.size):
            (<Head*>self.record(slot)).events &= ~<uint64_t>ALARMED

    def keep(self, const int64_t[::1] slots):
        """Keep these streams only, given in ascending order, and close the gaps."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if slots[i] != i:
                memcpy(self.record(i), self.record(slots[i]), self.stride)
        self.size = slots.shape[0]
        self.reserve(self.size)

    def keys(self):
        """(keys, kinds) of all streams."""
        cdef int64_t slot
        numbers, kinds = np.empty(self.size, np.int64), np.empty(self.size, np.uint8)
        cdef int64_t[::1] number = numbers
        cdef uint8_t[::1] kind = kinds
        for slot in range(self.size):
            number[slot] = (<Head*>self.record(slot)).key
            kind[slot] = (<Head*>self.record(slot)).events // KIND & 3
        return numbers, kinds

    def summary(self):
        """(events, flags, groups, last events) of all streams."""
        cdef int64_t slot
        cdef Head* head
        events, flags = np.empty(self.size, np.int64), np.empty(self.size, np.uint8)
        groups, last = np.empty(self.size, np.uint16), np.empty(self.size, np.int64)
        cdef int64_t[::1] event = events, late = last
        cdef uint8_t[::1] flag = flags
        cdef uint16_t[::1] group = groups
        for slot in range(self.size):
            head = <Head*>self.record(slot)
            event[slot], flag[slot] = <int64_t>(head.events >> FLAGS), head.events & ((1 << FLAGS) - 1)
            group[slot], late[slot] = head.since & ((1 << GROUP) - 1), head.last
        return events, flags, groups, last

    def columns(self):
        """Everything there is to know of all streams, as arrays by name."""
        cdef int64_t slot
        since, counts = np.empty(self.size, np.int64), np.empty((self.size, self.classes * self.classes), np.int64)
        statistics, places = np.empty((self.size, self.tests)), np.empty((self.size, self.tests), np.uint8)
        cdef int64_t[::1] begun = since
        cdef int64_t[:, ::1] count = counts
        cdef double[:, ::1] statistic = statistics
        cdef uint8_t[:, ::1] place = places
        for slot in range(self.size):
            begun[slot] = <int64_t>((<Head*>self.record(slot)).since >> GROUP) - 1
            self.copy(self.record(slot), &count[slot, 0], &statistic[slot, 0], &place[slot, 0])
        events, flags, groups, last = self.summary()
        return {"keys": self.keys()[0], "flags": flags, "groups": groups, "events": events, "since": since, "last": last,
                "counts": counts, "statistics": statistics, "places": places}

    def extend(self, dict arrays):
        """Add streams as `columns` gave them."""
        cdef int64_t slot
        cdef int i, j, classes = self.classes
        cdef int64_t[::1] keys = arrays["keys"], last = arrays["last"], events = arrays["events"], since = arrays["since"]
        cdef uint8_t[::1] flags = arrays["flags"]
        cdef uint16_t[::1] groups = arrays["groups"]
        cdef int64_t[:, ::1] counts = arrays["counts"]
        cdef double[:, ::1] statistics = arrays["statistics"]
        cdef uint8_t[:, ::1] places = arrays["places"]
        cdef char* record
        cdef Head* head
        cdef int64_t* sums
        cdef Cell* cells
        self.reserve(self.size + keys.shape[0])
        for slot in range(keys.shape[0]):
            record = self.record(self.size + slot)
            head, sums, cells = <Head*>record, <int64_t*>(record + self.sums), <Cell*>(record + self.cells)
            head.key, head.last = keys[slot], last[slot]
            head.events = <uint64_t>events[slot] << FLAGS | flags[slot]
            head.since = <uint64_t>(since[slot] + 1) << GROUP | groups[slot]
            self.forget(record)
            memcpy(record + sizeof(Head), &counts[slot, 0], 8 * classes * classes)
            if classes > 2:
                for i in range(classes):
                    for j in range(classes):
                        sums[i] += counts[slot, i * classes + j]
                        sums[classes + j] += counts[slot, i * classes + j]
            for j in range(self.tests):  # calm until observation 0: the limits are found anew
                cells[j].statistic, cells[j].calm = statistics[slot, j], places[slot, j]
        self.size += keys.shape[0]


cdef struct Entry:
    int64_t key
    int32_t slot          # plus one; 0 where there is none
    int32_t high          # whether the key stands for one of 2**63 or more


cdef inline uint64_t mixed(int64_t key) noexcept nogil:
    """Bits that depend on every bit of the key; the highest are the best."""
    cdef uint64_t bits = <uint64_t>key
    bits = (bits ^ (bits >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return (bits ^ (bits >> 29)) * <uint64_t>0xBF58476D1CE4E5B9


cdef inline int64_t place(const Entry* entries, int64_t capacity, int shift, int64_t key, bint high) noexcept nogil:
    """Where in a table a key stands, or would."""
    cdef int64_t at = <int64_t>(mixed(key) >> shift)
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
    cdef object array                   # of slots plus one, or of entries
    cdef int32_t* slots
    cdef Entry* entries
    cdef int64_t low, span              # the lowest key the array answers for, and how many
    cdef int64_t capacity               # of the table, a power of two
    cdef int shift                      # from the bits of a key to its place

    @property
    def nbytes(self):
        """Memory, in bytes."""
        return 0 if self.array is None else self.array.nbytes

    @property
    def dense(self):
        """Whether a plain array answers."""
        return self.entries == NULL

    def take(self, const int64_t[::1] keys, bint unsigned, int64_t slot, int32_t[::1] slots):
        """Find the slots of keys; new ones get the slots from `slot` on. With `unsigned`, negative keys stand for large ones."""
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
                    fetch(&entries[mixed(keys[i + AHEAD]) >> shift])
                at = place(entries, capacity, shift, keys[i], high)
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
        cdef bint high
        for i in range(keys.shape[0]):
            high = unsigned and keys[i] < 0
            if self.entries != NULL:
                slots[i] = self.entries[place(self.entries, self.capacity, self.shift, keys[i], high)].slot - 1
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
        """Know these keys and no others, with room for one more: in an array if that takes hardly more than a table would."""
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
            at = place(self.entries, self.capacity, self.shift, keys[i], highs[i])
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

"""The paper's statistic: 2K rates, each with decayed means held against their exact bounds.

The body of a record, 96 bytes for two classes at one decay, after the head of 32:

    the K x K counts                                           8 bytes each
    how often each rate was observed, for more than two classes 8 bytes each
    the statistics, with the place of each                    16 bytes each
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

import numpy as np

from fourrates.kernel.record cimport (
    ALARMED, DRIFT, DRIFTED, FLAGS, QUIET, WARNED, WARNING, Head, Rules, close_warning, open_warning,
)
from fourrates.kernel.tables cimport CROSSED, INSIDE, MOVED, OVER, Table, Test, classify


cdef struct Cell:
    double statistic
    int64_t place                      # INSIDE, UNDER or OVER, as at the last observation


cdef inline int observe(const Test* tests, Cell* cells, int number, int64_t n, int64_t ones, double hit) noexcept nogil:
    """One more observation of a rate; the state of its tests after it."""
    cdef int found = 0, place, j
    for j in range(number):
        cells[j].statistic = tests[j].decay * cells[j].statistic + tests[j].gain * hit
        place = classify(&tests[j], cells[j].statistic, n, ones, &found)
        if place != cells[j].place:
            found |= MOVED
            cells[j].place = place
    return found


cdef class LinearRules(Rules):
    """The rules of LFR.

    Parameters
    ----------
    classes : int
        Rates are recall of class 0 .. classes - 1, then precision of each.
    tests : list
        For each rate a list of (table, warning level, detection level, down?, up?).
    """

    cdef readonly int tests
    cdef Py_ssize_t sums, cells        # their offsets in a record
    cdef int* first                    # test of each rate, and behind the last
    cdef Test* test
    cdef tuple kept                    # the tables, and arrays with the memory of the pointers

    def __init__(self, int classes, list tests):
        cdef int j
        cdef int[::1] first = np.cumsum([0, *map(len, tests)], dtype=np.intc)
        every = [test for own in tests for test in own]
        cdef double[::1] memory = np.empty((len(every) + 1) * sizeof(Test) // sizeof(double))
        if self.test != NULL:
            raise TypeError("these rules are set up already")
        self.kept = np.asarray(first), np.asarray(memory), every
        self.first, self.test = &first[0], <Test*>&memory[0]
        for j, (table, warn, detect, down, up) in enumerate(every):
            self.test[j] = Test((<Table>table).grid, table.decay, 1.0 - table.decay, warn, detect, down, up)
        self.classes, self.tests = classes, len(every)
        self.sums = sizeof(Head) + 8 * classes * classes
        self.cells = self.sums + (16 * classes if classes > 2 else 0)
        self.size = self.cells + self.tests * <int64_t>sizeof(Cell)

    cdef inline bint outside(self, const Cell* cells) noexcept nogil:
        """Whether any statistic is outside its warning bounds."""
        cdef int j
        for j in range(self.tests):
            if cells[j].place != INSIDE:
                return True
        return False

    cdef inline int observe_rate(self, Cell* cells, int rate, int64_t n, int64_t ones, double hit) noexcept nogil:
        cdef int first = self.first[rate]
        return observe(self.test + first, cells + first, self.first[rate + 1] - first, n, ones, hit)

    cdef void begin(self, char* record) noexcept nogil:
        cdef Cell* cells = <Cell*>(record + self.cells)
        cdef int j
        memset(record + sizeof(Head), 0, self.cells - sizeof(Head))
        for j in range(self.tests):
            cells[j].statistic, cells[j].place = 0.5, INSIDE

    cdef void restart(self, char* record) noexcept nogil:
        close_warning(<Head*>record)
        self.begin(record)

    cdef int step(self, char* record, int truth, int pred) noexcept nogil:
        cdef Head* head = <Head*>record
        cdef int64_t* counts = <int64_t*>(record + sizeof(Head))
        cdef int64_t* sums = <int64_t*>(record + self.sums)
        cdef Cell* cells = <Cell*>(record + self.cells)
        cdef double[2] bits = [0.0, 1.0]  # looked up, not branched on, because errors cannot be foreseen
        cdef int classes = self.classes, found
        cdef double hit = bits[truth == pred]
        cdef int64_t n, m
        counts[truth * classes + pred] += 1
        if classes == 2:
            n, m = counts[2 * truth] + counts[2 * truth + 1], counts[pred] + counts[2 + pred]
        else:
            sums[truth] += 1
            sums[classes + pred] += 1
            n, m = sums[truth], sums[classes + pred]
        found = self.observe_rate(cells, truth, n, counts[truth * (classes + 1)], hit)
        found |= self.observe_rate(cells, classes + pred, m, counts[pred * (classes + 1)], hit)
        head.events = (head.events & ~<uint64_t>DRIFTED) + (1 << FLAGS)
        if found:
            if not self.outside(cells):
                close_warning(head)
                head.events &= ~<uint64_t>WARNED
            else:
                open_warning(head)
                head.events |= WARNED
            if found & CROSSED:
                head.events = (head.events & ~<uint64_t>WARNED) | DRIFTED | ALARMED
                return DRIFT
        return WARNING if head.events & WARNED else QUIET

    def check(self, const uint8_t[:, ::1] records):
        """Raise ValueError unless each of these can be a record of these rules."""
        cdef const Cell* cells
        cdef const Head* head
        cdef Py_ssize_t i
        cdef int j, k = self.classes
        Rules.check(self, records)
        bodies = np.asarray(records)[:, sizeof(Head):]
        counts = bodies[:, :8 * k * k].copy().view(np.int64).reshape(-1, k, k)
        events = (np.asarray(records)[:, 16:24].copy().view(np.uint64)[:, 0] >> FLAGS).astype(np.int64)
        if (counts < 0).any() or (counts > events[:, None, None]).any() or (
                counts.sum((1, 2)) > events).any() or (counts.sum((1, 2), dtype=np.float64) > 2.0**62).any():
            raise ValueError("counts that do not fit the events")
        if k > 2:
            sums = np.asarray(records)[:, self.sums:self.sums + 16 * k].copy().view(np.int64)
            if (sums != np.concatenate([counts.sum(2), counts.sum(1)], 1)).any():
                raise ValueError("sums that do not fit the counts")
        for i in range(records.shape[0]):
            head, cells = <const Head*>&records[i, 0], <const Cell*>(&records[i, 0] + self.cells)
            for j in range(self.tests):
                if not 0.0 <= cells[j].statistic <= 1.0:
                    raise ValueError(f"a statistic of {cells[j].statistic}, not in [0, 1]")
                if not INSIDE <= cells[j].place <= OVER:
                    raise ValueError("a statistic at no place")
            if self.outside(cells) != (head.events & WARNED != 0):
                raise ValueError("a warning that does not fit the statistics")

    def counts(self, const uint8_t[::1] record):
        """The K x K counts of a record."""
        return np.frombuffer(record, np.int64, self.classes * self.classes, sizeof(Head)).reshape(
            self.classes, self.classes)

    def statistics(self, const uint8_t[::1] record):
        """The statistics, rate by rate."""
        cdef const Cell* cells = <const Cell*>(&record[0] + self.cells)
        cdef int i
        return [cells[i].statistic for i in range(self.tests)]

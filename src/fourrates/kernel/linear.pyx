"""The paper's statistic: 2K rates, each with decayed means held against their exact bounds.

The body of a record, 96 bytes for two classes at one decay, after the head of 32:

    the K x K counts                                           8 bytes each
    how often each rate was observed, for more than two classes 8 bytes each
    the statistics, with the place of each                    16 bytes each
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from fourrates.kernel.pairs cimport DRIFT, QUIET, WARNING
from fourrates.kernel.record cimport (
    ALARMED, DRIFTED, FLAGS, WARNED, Head, Rules, close_warning, open_warning,
)
from fourrates.kernel.tables cimport CROSSED, INSIDE, MOVED, OVER, Grid, Table, Test, classify


cdef struct Cell:
    double statistic
    int64_t place                      # INSIDE, UNDER or OVER, as at the last observation


cdef struct Layout:
    int classes, tests
    Py_ssize_t sums, cells             # their offsets in a record
    int* first                         # test of each rate, and behind the last
    Test* test
    Grid* grid                         # one a test


cdef inline int observe(const Layout* layout, Cell* cells, int begin, int end, int64_t n, int64_t ones,
                        double hit) noexcept nogil:
    """One more observation of a rate; the state of its tests after it, `begin` up to `end`."""
    cdef int found = 0, place, j
    cdef Cell* cell
    cdef const Test* test
    for j in range(begin, end):
        cell, test = &cells[j], &layout.test[j]
        cell.statistic = test.decay * cell.statistic + test.gain * hit
        place = classify(&layout.grid[j], test, cell.statistic, n, ones, &found)
        if place != cell.place:
            found |= MOVED
            cell.place = place
    return found


cdef inline bint outside(const Layout* layout, const Cell* cells) noexcept nogil:
    """Whether any statistic is outside its warning bounds."""
    cdef int j
    for j in range(layout.tests):
        if cells[j].place != INSIDE:
            return True
    return False


cdef inline int take(const Layout* layout, char* record, int truth, int pred) noexcept nogil:
    cdef Head* head = <Head*>record
    cdef int64_t* counts = <int64_t*>(record + sizeof(Head))
    cdef Cell* cells = <Cell*>(record + layout.cells)
    cdef double[2] bits = [0.0, 1.0]  # looked up, not branched on, because errors cannot be foreseen
    cdef int classes = layout.classes, found
    cdef double hit = bits[truth == pred]
    cdef int64_t n, m
    cdef int64_t* sums
    counts[truth * classes + pred] += 1
    if classes == 2:
        n, m = counts[2 * truth] + counts[2 * truth + 1], counts[pred] + counts[2 + pred]
    else:
        sums = <int64_t*>(record + layout.sums)
        sums[truth] += 1
        sums[classes + pred] += 1
        n, m = sums[truth], sums[classes + pred]
    found = observe(layout, cells, layout.first[truth], layout.first[truth + 1], n, counts[truth * (classes + 1)], hit)
    found |= observe(layout, cells, layout.first[classes + pred], layout.first[classes + pred + 1], m,
                     counts[pred * (classes + 1)], hit)
    head.events = (head.events & ~<uint64_t>DRIFTED) + (1 << FLAGS)
    if found:
        if not outside(layout, cells):
            close_warning(head)
            head.events &= ~<uint64_t>WARNED
        else:
            open_warning(head)
            head.events |= WARNED
        if found & CROSSED:
            head.events = (head.events & ~<uint64_t>WARNED) | DRIFTED | ALARMED
            return DRIFT
    return WARNING if head.events & WARNED else QUIET


cdef class LinearRules(Rules):
    """The rules of LFR.

    Parameters
    ----------
    classes : int
        Rates are recall of class 0 .. classes - 1, then precision of each.
    tests : list
        For each rate a list of (table, warning level, detection level, down?, up?).
    """

    cdef readonly int rates, tests
    cdef Layout layout
    cdef tuple tables                  # kept, so that their arrays stay

    def __init__(self, int classes, list tests):
        cdef int j, r
        if self.layout.first != NULL:
            raise TypeError("these rules are set up already")
        self.classes, self.rates = classes, 2 * classes
        self.tests = sum([len(own) for own in tests])
        self.layout.first = <int*>calloc(self.rates + 1, sizeof(int))
        self.layout.test = <Test*>calloc(max(self.tests, 1), sizeof(Test))
        self.layout.grid = <Grid*>calloc(max(self.tests, 1), sizeof(Grid))
        if self.layout.first == NULL or self.layout.test == NULL or self.layout.grid == NULL:
            raise MemoryError
        for r in range(self.rates):
            self.layout.first[r + 1] = self.layout.first[r] + len(tests[r])
        every = [test for own in tests for test in own]
        for j, (table, warn, detect, down, up) in enumerate(every):
            self.layout.grid[j] = (<Table>table).grid
            self.layout.test[j].warn, self.layout.test[j].detect = warn, detect
            self.layout.test[j].down, self.layout.test[j].up = down, up
            self.layout.test[j].decay = (<Table>table).decay
            self.layout.test[j].gain = 1.0 - (<Table>table).decay
        self.tables = tuple([test[0] for test in every])
        self.layout.sums = sizeof(Head) + 8 * classes * classes
        self.layout.cells = self.layout.sums + (8 * self.rates if classes > 2 else 0)
        self.layout.classes, self.layout.tests = classes, self.tests
        self.size = self.layout.cells + self.tests * <int64_t>sizeof(Cell)

    def __dealloc__(self):
        free(self.layout.first)
        free(self.layout.test)
        free(self.layout.grid)

    cdef void begin(self, char* record) noexcept nogil:
        cdef Cell* cells = <Cell*>(record + self.layout.cells)
        cdef int j
        memset(record + sizeof(Head), 0, self.layout.cells - sizeof(Head))
        for j in range(self.tests):
            cells[j].statistic, cells[j].place = 0.5, INSIDE

    cdef void restart(self, char* record) noexcept nogil:
        close_warning(<Head*>record)
        self.begin(record)

    cdef int step(self, char* record, int truth, int pred) noexcept nogil:
        return take(&self.layout, record, truth, pred)

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
            sums = np.asarray(records)[:, self.layout.sums:self.layout.sums + 16 * k].copy().view(np.int64)
            if (sums != np.concatenate([counts.sum(2), counts.sum(1)], 1)).any():
                raise ValueError("sums that do not fit the counts")
        for i in range(records.shape[0]):
            head, cells = <const Head*>&records[i, 0], <const Cell*>(&records[i, 0] + self.layout.cells)
            for j in range(self.tests):
                if not 0.0 <= cells[j].statistic <= 1.0:
                    raise ValueError(f"a statistic of {cells[j].statistic}, not in [0, 1]")
                if not INSIDE <= cells[j].place <= OVER:
                    raise ValueError("a statistic at no place")
            if outside(&self.layout, cells) != (head.events & WARNED != 0):
                raise ValueError("a warning that does not fit the statistics")

    def counts(self, const uint8_t[::1] record):
        """The K x K counts of a record."""
        return np.frombuffer(record, np.int64, self.classes * self.classes, sizeof(Head)).reshape(
            self.classes, self.classes)

    def statistics(self, const uint8_t[::1] record):
        """The statistics, rate by rate."""
        cdef const Cell* cells = <const Cell*>(&record[0] + self.layout.cells)
        cdef int i
        return [cells[i].statistic for i in range(self.tests)]

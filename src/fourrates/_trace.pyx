"""Rates followed for a picture: few points of each statistic, chosen so that no excursion is lost.

Events fall into bins of equal width, at most `BINS` of them: when the last is full, neighbours are merged and the width
doubles, so memory stays flat. Of each statistic a bin keeps the points that a picture needs: the first, the last, the lowest,
the highest, and the two that lay farthest outside their warning bounds, below and above. Beside the bins a ring remembers
every recent point, so that the surroundings of a drift can be kept in full.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t, uint16_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from fourrates._kernel cimport Grid, Table, bound

cdef enum:
    KINDS = 6
    FIRST = 0
    LOWEST = 1
    HIGHEST = 2
    UNDER = 3    # lowest against its lower warning bound
    OVER = 4     # highest against its upper warning bound
    LAST = 5


cdef struct Point:
    int64_t event         # -1: none
    double value, warn_low, warn_high, detect_low, detect_high


cdef inline bint better(int kind, const Point* new, const Point* old) noexcept nogil:
    """Whether a later point takes the place of an earlier one."""
    if old.event < 0:
        return True
    if kind == FIRST:
        return False
    if kind == LOWEST:
        return new.value < old.value
    if kind == HIGHEST:
        return new.value > old.value
    if kind == UNDER:
        return new.value - new.warn_low < old.value - old.warn_low
    if kind == OVER:
        return new.value - new.warn_high > old.value - old.warn_high
    return True


cdef class Recorder:
    """Follows statistics R <- decay R + (1 - decay) I, each of one rate, within the bounds of its table.

    Parameters
    ----------
    classes : int
        Rates are recall of class 0 .. classes - 1, then precision of each.
    tests : list of (rate, decay, table or None, warning level, detection level)
        The statistics, rate by rate; levels are positions in the table. Without a table there are no bounds.
    bins : int
        The most bins there are.
    ring : int
        How many recent points of each statistic are remembered.
    """

    cdef int classes, tests, bins, ring
    cdef readonly int64_t events, width
    cdef int64_t[::1] start      # of the tests of each rate
    cdef int64_t[::1] rate, warn, detect, n, ones, head
    cdef double[::1] decay, value
    cdef Grid* table
    cdef Point* point            # tests x bins x KINDS
    cdef Point* recent           # tests x ring
    cdef object kept             # the tables, so that their arrays stay

    def __cinit__(self, int classes, list tests, int bins, int ring):
        cdef int i
        self.classes, self.tests, self.bins, self.ring = classes, len(tests), bins, ring
        self.rate = np.array([test[0] for test in tests], np.int64)
        self.start = np.searchsorted(self.rate, np.arange(2 * classes + 1)).astype(np.int64)
        self.decay = np.array([test[1] for test in tests], np.float64)
        self.warn = np.array([test[3] for test in tests], np.int64)
        self.detect = np.array([test[4] for test in tests], np.int64)
        self.n, self.ones = np.zeros(2 * classes, np.int64), np.zeros(2 * classes, np.int64)
        self.value, self.head = np.full(self.tests, 0.5), np.zeros(self.tests, np.int64)
        self.table = <Grid*>calloc(self.tests, sizeof(Grid))
        self.point = <Point*>calloc(<size_t>self.tests * bins * KINDS, sizeof(Point))
        self.recent = <Point*>calloc(<size_t>self.tests * ring, sizeof(Point))
        if self.table == NULL or self.point == NULL or self.recent == NULL:
            raise MemoryError
        memset(self.point, 0xff, <size_t>self.tests * bins * KINDS * sizeof(Point))
        memset(self.recent, 0xff, <size_t>self.tests * ring * sizeof(Point))
        self.kept = [test[2] for test in tests]
        for i, table in enumerate(self.kept):
            if table is not None:
                self.table[i] = (<Table>table).grid
        self.events, self.width = 0, 1

    def __dealloc__(self):
        free(self.table)
        free(self.point)
        free(self.recent)

    def begin(self, int64_t events, const int64_t[:, ::1] confusion, const double[::1] values):
        """Go on from a detector that has taken events already."""
        cdef int i, j
        self.events = events
        while self.events // self.width >= self.bins:
            self.width *= 2
        for i in range(self.classes):
            for j in range(self.classes):
                self.n[i] += confusion[i, j]
                self.n[self.classes + j] += confusion[i, j]
            self.ones[i] = self.ones[self.classes + i] = confusion[i, i]
        for i in range(self.tests):
            self.value[i] = values[i]

    def take(self, const uint16_t[::1] truths, const uint16_t[::1] guesses):
        """Take coded events."""
        cdef Py_ssize_t i, size = truths.shape[0]
        cdef int test
        cdef int64_t truth, guess, hit
        with nogil:
            for i in range(size):
                if self.events // self.width >= self.bins:
                    self.merge()
                truth, guess = truths[i], self.classes + guesses[i]
                hit = truths[i] == guesses[i]
                self.n[truth] += 1
                self.ones[truth] += hit
                self.n[guess] += 1
                self.ones[guess] += hit
                for test in range(self.start[truth], self.start[truth + 1]):
                    self.record(test, hit)
                for test in range(self.start[guess], self.start[guess + 1]):
                    self.record(test, hit)
                self.events += 1

    cdef void record(self, int test, int64_t hit) noexcept nogil:
        cdef int64_t rate = self.rate[test], n = self.n[rate], ones = self.ones[rate]
        cdef const Grid* table = &self.table[test]
        cdef Point* slot = self.point + (<int64_t>test * self.bins + self.events // self.width) * KINDS
        cdef Point new
        cdef int kind
        self.value[test] = self.decay[test] * self.value[test] + (1.0 - self.decay[test]) * hit
        new.event, new.value = self.events, self.value[test]
        new.warn_low, new.warn_high, new.detect_low, new.detect_high = NAN, NAN, NAN, NAN
        if table.near != NULL:
            new.warn_low = bound(table, <int>self.warn[test], n, n - ones)
            new.warn_high = 1.0 - bound(table, <int>self.warn[test], n, ones)
            new.detect_low = bound(table, <int>self.detect[test], n, n - ones)
            new.detect_high = 1.0 - bound(table, <int>self.detect[test], n, ones)
        for kind in range(KINDS):
            if better(kind, &new, &slot[kind]):
                slot[kind] = new
        self.recent[test * self.ring + self.head[test] % self.ring] = new
        self.head[test] += 1

    cdef void merge(self) noexcept nogil:
        """Bins of twice the width."""
        cdef int test, bin, kind
        cdef Point* own
        cdef Point* one
        cdef Point* other
        for test in range(self.tests):
            own = self.point + <int64_t>test * self.bins * KINDS
            for bin in range(self.bins):
                for kind in range(KINDS):
                    one = own + bin * KINDS + kind
                    if 2 * bin + 1 < self.bins:
                        one[0] = own[2 * bin * KINDS + kind]
                        other = own + (2 * bin + 1) * KINDS + kind
                        if other.event >= 0 and better(kind, other, one):
                            one[0] = other[0]
                    elif 2 * bin < self.bins:
                        one[0] = own[2 * bin * KINDS + kind]
                    else:
                        one.event = -1
        self.width *= 2

    def restart(self):
        """The detector began anew."""
        self.n[:] = 0
        self.ones[:] = 0
        self.value[:] = 0.5

    def last(self, int test):
        """(n, ones, statistic) as they are now."""
        return self.n[self.rate[test]], self.ones[self.rate[test]], self.value[test]

    def points(self, int test):
        """What the bins kept of a statistic: events, and value with its four bounds by row, in order of events."""
        cdef int i
        cdef list found = []
        cdef Point* slot = self.point + <int64_t>test * self.bins * KINDS
        for i in range(self.bins * KINDS):
            if slot[i].event >= 0:
                found.append((slot[i].event, slot[i].value, slot[i].warn_low, slot[i].warn_high,
                              slot[i].detect_low, slot[i].detect_high))
        return found

    def recently(self, int test):
        """The points the ring remembers of a statistic, as :meth:`points` gives them."""
        cdef int i
        cdef list found = []
        cdef Point* slot = self.recent + <int64_t>test * self.ring
        for i in range(self.ring):
            if slot[i].event >= 0:
                found.append((slot[i].event, slot[i].value, slot[i].warn_low, slot[i].warn_high,
                              slot[i].detect_low, slot[i].detect_high))
        return found

"""Rates followed for a picture: few points of each statistic, chosen so that no excursion is lost.

Events fall into bins of equal width, at most `bins` of them: when the last is full, neighbours are merged and the width
doubles, so memory stays flat. Of each statistic a bin keeps the points that a picture needs: the first, the last, the lowest,
the highest, and the two that lay farthest outside their warning bounds, below and above. Besides the bins a ring remembers
every recent point, so that the surroundings of a drift can be kept in full.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t, uint16_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from fourrates.kernel.tables cimport Grid, Table, bound

cdef enum:
    KINDS = 6
    FIRST = 0
    LOWEST = 1
    HIGHEST = 2
    UNDER = 3    # lowest against its lower warning bound
    OVER = 4     # highest against its upper warning bound
    LAST = 5
    FEWEST = 8   # observations of a rate, from which on it is drawn where there are no bounds


cdef struct Point:
    int64_t event         # -1: none
    double value, warn_low, warn_high, detect_low, detect_high


cdef inline bint better(int kind, const Point* new, const Point* old) noexcept nogil:
    """Whether a later point takes the place of an earlier one."""
    if old.event < 0:
        return True
    if kind == FIRST:
        return False
    if kind == LAST:
        return True
    if kind == LOWEST:
        return new.value < old.value
    if kind == HIGHEST:
        return new.value > old.value
    if old.warn_low != old.warn_low:
        return True  # without bounds; a point that has them tells more
    if kind == UNDER:
        return new.value - new.warn_low < old.value - old.warn_low
    return new.value - new.warn_high > old.value - old.warn_high


cdef struct Count:
    int64_t n, ones


cdef struct Followed:
    # One statistic: R of a rate at a decay, and the bounds it is shown within, if any.
    double decay, statistic
    const Grid* grid          # NULL: no bounds
    int warn, detect          # positions of the levels in the grid
    int64_t head              # in the ring


cdef class Recorder:
    """Follows the decayed rates of a stream, within their bounds where there are some.

    Parameters
    ----------
    statistics : list of lists of (decay, Table or None, warning level, detection level)
        For each of the 2K rates, in the order of the kernels, what is followed of it; levels as positions in the table.
    events : int
        Events before the first that will be taken.
    bins : int
        The most bins there are.
    ring : int
        How many recent points of each statistic are remembered.
    """

    cdef int classes, tests, bins, ring
    cdef readonly int64_t width
    cdef readonly int64_t events
    cdef list tables             # kept alive for their grids
    cdef int64_t[::1] start      # of the statistics of each rate
    cdef Count* count            # of each rate
    cdef Followed* followed      # the statistics of rate 0, of rate 1, ...
    cdef Point* point            # tests x bins x KINDS
    cdef Point* recent           # tests x ring

    def __cinit__(self, list statistics, int64_t events, int bins, int ring):
        cdef int test = 0, i
        cdef Table table
        self.classes, self.bins, self.ring, self.events = len(statistics) // 2, bins, ring, events
        self.tests = sum(map(len, statistics))
        self.tables = [one[1] for own in statistics for one in own]
        self.start = np.zeros(len(statistics) + 1, np.int64)
        self.count = <Count*>calloc(len(statistics), sizeof(Count))
        self.followed = <Followed*>calloc(self.tests, sizeof(Followed))
        self.point = <Point*>calloc(<size_t>self.tests * bins * KINDS, sizeof(Point))
        self.recent = <Point*>calloc(<size_t>self.tests * ring, sizeof(Point))
        if self.count == NULL or self.followed == NULL or self.point == NULL or self.recent == NULL:
            raise MemoryError
        memset(self.point, 0xff, <size_t>self.tests * bins * KINDS * sizeof(Point))
        memset(self.recent, 0xff, <size_t>self.tests * ring * sizeof(Point))
        for i, own in enumerate(statistics):
            for decay, bounds, warn, detect in own:
                self.followed[test].decay, self.followed[test].statistic = decay, 0.5
                if bounds is not None:
                    table = bounds
                    self.followed[test].grid = &table.grid
                    self.followed[test].warn, self.followed[test].detect = warn, detect
                test += 1
            self.start[i + 1] = test
        self.width = 1
        while events // self.width >= self.bins:
            self.width *= 2

    def __dealloc__(self):
        free(self.count)
        free(self.followed)
        free(self.point)
        free(self.recent)

    def resume(self, const int64_t[::1] n, const int64_t[::1] ones, const double[::1] values):
        """Go on from the counts of each rate and the value of each statistic."""
        cdef int i
        if n.shape[0] != 2 * self.classes or ones.shape[0] != n.shape[0] or values.shape[0] != self.tests:
            raise ValueError(f"{n.shape[0]} rates and {values.shape[0]} statistics, not {2 * self.classes} and {self.tests}")
        for i in range(2 * self.classes):
            self.count[i].n, self.count[i].ones = n[i], ones[i]
        for i in range(self.tests):
            self.followed[i].statistic = values[i]

    def take(self, const uint16_t[::1] truths, const uint16_t[::1] preds):
        """Take coded events; their codes are below the number of classes."""
        cdef Py_ssize_t i, size = truths.shape[0]
        cdef bint right
        with nogil:
            for i in range(size):
                if self.events // self.width >= self.bins:
                    self.merge()
                right = truths[i] == preds[i]
                self.observe(truths[i], right)
                self.observe(self.classes + preds[i], right)
                self.events += 1

    cdef void observe(self, int rate, bint right) noexcept nogil:
        """A rate has one more observation."""
        cdef int test, kind
        cdef double decay
        cdef Followed* one
        cdef Point* slot
        cdef Point new
        self.count[rate].n += 1
        self.count[rate].ones += right
        for test in range(self.start[rate], self.start[rate + 1]):
            one = &self.followed[test]
            decay = one.decay
            if one.grid == NULL:  # the mean of what there is, until there is something to forget
                decay = min(decay, 1.0 - 1.0 / (self.count[rate].n + 1))
            one.statistic = decay * one.statistic + (1.0 - decay) * right
            if one.grid == NULL and self.count[rate].n < FEWEST:
                continue
            slot = self.point + (<int64_t>test * self.bins + self.events // self.width) * KINDS
            new = self.now(one, &self.count[rate])
            for kind in range(KINDS):
                if better(kind, &new, &slot[kind]):
                    slot[kind] = new
            self.recent[<int64_t>test * self.ring + one.head % self.ring] = new
            one.head += 1

    cdef Point now(self, const Followed* one, const Count* count) noexcept nogil:
        """A statistic and its bounds as they are."""
        cdef int64_t zeros = count.n - count.ones
        cdef Point new
        new.event, new.value = self.events, one.statistic
        if one.grid == NULL:
            new.warn_low, new.warn_high, new.detect_low, new.detect_high = NAN, NAN, NAN, NAN
        else:
            new.warn_low = bound(one.grid, one.warn, count.n, zeros)
            new.warn_high = 1.0 - bound(one.grid, one.warn, count.n, count.ones)
            new.detect_low = bound(one.grid, one.detect, count.n, zeros)
            new.detect_high = 1.0 - bound(one.grid, one.detect, count.n, count.ones)
        return new

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
        """The detector starts afresh: so do counts and statistics."""
        cdef int i
        memset(self.count, 0, 2 * self.classes * sizeof(Count))
        for i in range(self.tests):
            self.followed[i].statistic = 0.5

    def last(self, int test):
        """(n, ones, statistic) as they are now."""
        cdef int rate = 0
        while self.start[rate + 1] <= test:
            rate += 1
        return self.count[rate].n, self.count[rate].ones, self.followed[test].statistic

    def points(self, int test):
        """What the bins kept of a statistic: (event, value, four bounds), in no order."""
        return self.kept(self.point + <int64_t>test * self.bins * KINDS, self.bins * KINDS)

    def recently(self, int test):
        """The points the ring remembers of a statistic, as :meth:`points` gives them."""
        return self.kept(self.recent + <int64_t>test * self.ring, self.ring)

    cdef list kept(self, const Point* slot, int size):
        cdef int i
        cdef list found = []
        for i in range(size):
            if slot[i].event >= 0:
                found.append((slot[i].event, slot[i].value, slot[i].warn_low, slot[i].warn_high,
                              slot[i].detect_low, slot[i].detect_high))
        return found

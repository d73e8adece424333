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

from fourrates.kernel.pairs cimport FourRates, Grid, Rate, Span, Test, bound, mean, opening
from fourrates.kernel.window cimport critical, largest

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


cdef struct Followed:
    # One statistic of a rate: a test or a window. The bounds of a window are found anew when it stands outside its last
    # ones, and after some observations; a picture shows no more.
    Rate* rate
    Test* test
    Span* span
    Point bounds
    int64_t calm_until
    int64_t head              # in the ring


cdef class Recorder:
    """Follows the statistics of a detector within their bounds.

    Parameters
    ----------
    follower : FourRates
        Takes every event of the stream; nobody else's.
    bounds : bool
        Whether its bounds are of interest.
    bins : int
        The most bins there are.
    ring : int
        How many recent points of each statistic are remembered.
    """

    cdef FourRates follower
    cdef bint bounds
    cdef int tests, bins, ring
    cdef readonly int64_t width
    cdef int64_t[::1] start      # of the tests of each rate
    cdef Followed* followed      # the statistics of rate 0, of rate 1, ...
    cdef Point* point            # tests x bins x KINDS
    cdef Point* recent           # tests x ring

    def __cinit__(self, FourRates follower, bint bounds, int bins, int ring):
        cdef int i, j = 0, k
        cdef Rate* rate
        self.follower, self.bounds, self.bins, self.ring = follower, bounds, bins, ring
        self.tests = follower.tests + follower.spans
        self.start = np.zeros(2 * follower.classes + 1, np.int64)
        self.followed = <Followed*>calloc(self.tests, sizeof(Followed))
        self.point = <Point*>calloc(<size_t>self.tests * bins * KINDS, sizeof(Point))
        self.recent = <Point*>calloc(<size_t>self.tests * ring, sizeof(Point))
        if self.followed == NULL or self.point == NULL or self.recent == NULL:
            raise MemoryError
        memset(self.point, 0xff, <size_t>self.tests * bins * KINDS * sizeof(Point))
        memset(self.recent, 0xff, <size_t>self.tests * ring * sizeof(Point))
        for i in range(2 * follower.classes):
            rate = &follower.rate[i]
            for k in range(rate.end - rate.test):
                self.followed[j].rate, self.followed[j].test = rate, &rate.test[k]
                j += 1
            for k in range(rate.span_end - rate.span):
                self.followed[j].rate, self.followed[j].span = rate, &rate.span[k]
                j += 1
            self.start[i + 1] = j
        self.width = 1
        while follower.events // self.width >= self.bins:
            self.width *= 2

    def __dealloc__(self):
        free(self.followed)
        free(self.point)
        free(self.recent)

    @property
    def events(self):
        """Events taken."""
        return self.follower.events

    def take(self, const uint16_t[::1] truths, const uint16_t[::1] guesses):
        """Take coded events."""
        cdef Py_ssize_t i, size = truths.shape[0]
        cdef int state
        with nogil:
            for i in range(size):
                if self.follower.events // self.width >= self.bins:
                    self.merge()
                self.follower.scan(&truths[i], &guesses[i], 1, &state)
                self.record(truths[i])
                self.record(self.follower.classes + guesses[i])

    cdef void record(self, int rate) noexcept nogil:
        """The latest event touched a rate."""
        cdef int64_t event = self.follower.events - 1
        cdef int test, kind
        cdef Point* slot
        cdef Point new
        for test in range(self.start[rate], self.start[rate + 1]):
            slot = self.point + (<int64_t>test * self.bins + event // self.width) * KINDS
            new = self.now(&self.followed[test])
            new.event = event
            for kind in range(KINDS):
                if better(kind, &new, &slot[kind]):
                    slot[kind] = new
            self.recent[test * self.ring + self.followed[test].head % self.ring] = new
            self.followed[test].head += 1

    cdef Point now(self, Followed* followed) noexcept nogil:
        """A statistic and its bounds as they are."""
        cdef int64_t n = followed.rate.n, ones = followed.rate.ones[0]
        cdef const Grid* table
        cdef Point new = followed.bounds
        if followed.test != NULL:
            new.value = followed.test.statistic
            table = &self.follower.grid[followed.test.table]
            if self.bounds:
                new.warn_low = bound(table, followed.test.warn, n, n - ones)
                new.warn_high = 1.0 - bound(table, followed.test.warn, n, ones)
                new.detect_low = bound(table, followed.test.detect, n, n - ones)
                new.detect_high = 1.0 - bound(table, followed.test.detect, n, ones)
        else:
            new.value = mean(followed.span)
            if n <= opening(followed.span):
                followed.calm_until = 0
                new.warn_low, new.warn_high, new.detect_low, new.detect_high = NAN, NAN, NAN, NAN
            elif self.bounds and (n > followed.calm_until or not new.warn_low <= new.value <= new.warn_high):
                new = self.bounded(followed.span, new)
                followed.calm_until = n + (n >> 6)
                followed.bounds = new
        if not self.bounds:
            new.warn_low, new.warn_high, new.detect_low, new.detect_high = NAN, NAN, NAN, NAN
        return new

    cdef Point bounded(self, Span* span, Point new) noexcept nogil:
        """The mean over a window with its bounds."""
        cdef int64_t n = span.rate.n, ones = span.rate.ones[0]
        cdef double whole = largest(span.width), level = self.follower.level(span)
        new.warn_low = (critical(span.width, n, ones, span.warn) + 1) / whole
        new.warn_high = 1.0 - (critical(span.width, n, n - ones, span.warn) + 1) / whole
        new.detect_low = (critical(span.width, n, ones, level) + 1) / whole
        new.detect_high = 1.0 - (critical(span.width, n, n - ones, level) + 1) / whole
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
        """The detector began anew."""
        self.follower._restart()
        self.follower.since = -1

    def last(self, int test):
        """(n, ones, statistic) as they are now."""
        cdef Followed* followed = &self.followed[test]
        return followed.rate.n, followed.rate.ones[0], self.now(followed).value

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

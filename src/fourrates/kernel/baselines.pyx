# cython: auto_pickle=False
"""The effect of one event on each detector that LFR is compared with. Arrays and numbers only; names, labels and messages are
the business of :mod:`fourrates.baselines`, which explains each rule.
"""

from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memcpy, memset

import numpy as np

from fourrates.kernel.pairs cimport DRIFT, QUIET, WARNING, Pairs

cdef enum:
    UNTESTED = -1                 # an event at which nothing is tested; a warning stays open


cdef class Baseline(Pairs):
    """The shared part has the K x K counts since the last drift, one row of numbers with all the rest, and the settings.

    A detector gives `length`, how many numbers there are, `take`, the effect of one event, and `begin`, which writes those
    first numbers that are not 0.
    """

    cdef readonly object _counts, _numbers  # arrays, for Python; the pointers are to their memory
    cdef int64_t* confusion       # by true class, then by predicted class
    cdef double* numbers
    cdef Py_ssize_t classes, history
    cdef int64_t span             # events that a verdict is about
    cdef int watched              # the class, if there is one
    cdef double warn, detect, minimum, decay
    cdef bint watch_down, watch_up

    def _configure(self, Py_ssize_t classes, double warn, double detect, double minimum=0, double decay=0, int64_t batch=1,
                   Py_ssize_t history=0, int watched=0, bint down=True, bint up=True):
        self.classes, self.span, self.history, self.watched = classes, batch, history, watched
        self.warn, self.detect, self.minimum, self.decay = warn, detect, minimum, decay
        self.watch_down, self.watch_up = down, up
        cdef int64_t[:, ::1] counts = np.zeros((classes, classes), np.int64)
        cdef double[::1] numbers = np.zeros(self.length())
        self._counts, self._numbers = np.asarray(counts), np.asarray(numbers)
        self.confusion, self.numbers = &counts[0, 0], &numbers[0]
        self._forget()

    cdef Py_ssize_t length(self) noexcept:
        return 1

    def _restart(self):
        self._counts[:] = 0
        self._numbers[:] = 0
        self.begin()

    cdef void begin(self) noexcept:
        pass

    cdef int take(self, int truth, int pred) noexcept nogil:
        """Take one event; QUIET, WARNING, DRIFT or UNTESTED."""
        return UNTESTED

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size,
                         int* state) noexcept nogil:
        cdef Py_ssize_t i
        cdef int level
        for i in range(size):
            self.confusion[truths[i] * self.classes + preds[i]] += 1
            self.events += 1
            level = self.take(truths[i], preds[i])
            if level == QUIET:
                self.since = -1
            elif level != UNTESTED and self.since < 0:
                self.since = self.events - self.span
            if level == DRIFT:
                state[0] = DRIFT
                return i + 1
        state[0] = WARNING if self.since >= 0 else QUIET
        return size


cdef struct Running:
    double n, ones, total         # total of the shares of ones seen after each observation
    double place                  # QUIET, WARNING or DRIFT
    double down                   # whether it is below


cdef class RunningRates(Baseline):
    """The state of NFR. Numbers: how many rates are outside; then n, ones, total, place and down of each rate."""

    cdef Py_ssize_t length(self) noexcept:
        return 1 + 2 * self.classes * sizeof(Running) // sizeof(double)

    cdef int take(self, int truth, int pred) noexcept nogil:
        cdef Running* rate = <Running*>(self.numbers + 1)  # recall of class 0 .. K - 1, then precision of class 0 .. K - 1
        cdef bint crossed = self.touch(&rate[truth], truth == pred)
        crossed |= self.touch(&rate[self.classes + pred], truth == pred)
        return DRIFT if crossed else WARNING if self.numbers[0] > 0 else QUIET

    cdef bint touch(self, Running* rate, double hit) noexcept nogil:
        """One more observation of a rate; whether it crossed a detection bound."""
        cdef double mean, gap, spread, place = QUIET
        rate.n += 1
        rate.ones += hit
        rate.total += rate.ones / rate.n
        if rate.n >= self.minimum:
            mean = rate.total / rate.n
            gap = rate.ones / rate.n - mean
            spread = mean * (1.0 - mean) / rate.n
            rate.down = gap < 0
            if (self.watch_down if gap < 0 else self.watch_up):
                place = ((gap * gap > self.warn * self.warn * spread)
                         + (gap * gap > self.detect * self.detect * spread))
        self.numbers[0] += (place != QUIET) - (rate.place != QUIET)
        rate.place = place
        return place == DRIFT


cdef struct Errors:
    double n, errors
    double p_min, s_min           # at the least p + s; infinite before


cdef class ErrorRate(Baseline):
    """The state of DDM."""

    cdef Py_ssize_t length(self) noexcept:
        return sizeof(Errors) // sizeof(double)

    cdef void begin(self) noexcept:
        cdef Errors* own = <Errors*>self.numbers
        own.p_min = own.s_min = INFINITY

    cdef int take(self, int truth, int pred) noexcept nogil:
        cdef Errors* own = <Errors*>self.numbers
        cdef double p, s
        own.n += 1
        own.errors += truth != pred
        if own.n < self.minimum or own.errors == 0:
            return UNTESTED
        p = own.errors / own.n
        s = sqrt(p * (1.0 - p) / own.n)
        if p + s < own.p_min + own.s_min:
            own.p_min, own.s_min = p, s
        return (p + s > own.p_min + self.warn * own.s_min) + (p + s > own.p_min + self.detect * own.s_min)


cdef struct Recalled:
    double n, recall
    double r_max, s_max           # at the greatest R + s; R minus infinite before


cdef class Recall(Baseline):
    """The state of DDM-OCI."""

    cdef Py_ssize_t length(self) noexcept:
        return sizeof(Recalled) // sizeof(double)

    cdef void begin(self) noexcept:
        (<Recalled*>self.numbers).r_max = -INFINITY

    cdef int take(self, int truth, int pred) noexcept nogil:
        cdef Recalled* own = <Recalled*>self.numbers
        cdef double s
        if truth != self.watched:
            return UNTESTED
        own.n += 1
        own.recall = self.decay * own.recall + (1.0 - self.decay) * (pred == self.watched)
        if own.n < self.minimum:
            return UNTESTED
        s = sqrt(own.recall * (1.0 - own.recall) / own.n)
        if own.recall + s > own.r_max + own.s_max:
            own.r_max, own.s_max = own.recall, s
        return ((own.recall - s < own.r_max - self.warn * own.s_max)
                + (own.recall - s < own.r_max - self.detect * own.s_max))


cdef struct Distance:
    double n, last                # events, and the number of the last that was an error
    double errors, total          # distances, and their sum
    double squares                # the sum of their squared differences from the mean
    double most                   # the greatest mean + 2 deviations; 0 before


cdef class Distances(Baseline):
    """The state of EDDM."""

    cdef Py_ssize_t length(self) noexcept:
        return sizeof(Distance) // sizeof(double)

    cdef int take(self, int truth, int pred) noexcept nogil:
        cdef Distance* own = <Distance*>self.numbers
        cdef double distance, before, mean, reach
        own.n += 1
        if truth == pred:
            return UNTESTED
        distance = own.n - own.last
        before = own.total / own.errors if own.errors > 0 else 0.0
        own.last = own.n
        own.errors += 1
        own.total += distance
        mean = own.total / own.errors
        own.squares += (distance - before) * (distance - mean)
        if own.errors < self.minimum:
            return UNTESTED
        reach = mean + 2.0 * sqrt(own.squares / own.errors)
        own.most = max(own.most, reach)
        return (reach < self.warn * own.most) + (reach < self.detect * own.most)


cdef class Similarity(Baseline):
    """The state of PerfSim. Numbers: events in the present batch, batches before it, the last similarity, the counts of
    the batch before, the counts of the present one.
    """

    cdef Py_ssize_t length(self) noexcept:
        return 3 + 2 * self.classes * self.classes

    cdef void begin(self) noexcept:
        self.numbers[2] = NAN

    cdef int take(self, int truth, int pred) noexcept nogil:
        cdef Py_ssize_t i, cells = self.classes * self.classes
        cdef double across = 0, own = 0, other = 0
        cdef double* before = self.numbers + 3
        cdef double* present = before + cells
        cdef int level = UNTESTED
        present[truth * self.classes + pred] += 1
        self.numbers[0] += 1
        if self.numbers[0] < self.span:
            return UNTESTED
        if self.numbers[1] > 0:
            for i in range(cells):
                across += present[i] * before[i]
                own += present[i] * present[i]
                other += before[i] * before[i]
            self.numbers[2] = across / sqrt(own * other)
            level = (self.numbers[2] < self.warn) + (self.numbers[2] < self.detect)
        self.numbers[0] = 0
        self.numbers[1] += 1
        memcpy(before, present, cells * sizeof(double))
        memset(present, 0, cells * sizeof(double))
        return level


cdef struct Present:
    double size, right, positive, guessed, both  # of the present batch


cdef struct Measure:
    double n, value               # of the last batch in which it could be taken
    double mean, error            # of the history it was held against; the mean is nan while that is too short
    double place                  # QUIET, WARNING or DRIFT
    double kept                   # values in the history so far, the oldest overwritten first


cdef class Measures(Baseline):
    """The state of ThreeMeasures. Numbers: size, right, positive, guessed and both of the present batch; n, value,
    mean, error, place and kept of accuracy, recall and precision; their histories.
    """

    cdef Py_ssize_t length(self) noexcept:
        return (sizeof(Present) + 3 * sizeof(Measure)) // sizeof(double) + 3 * self.history

    cdef inline Measure* measures(self) noexcept nogil:
        return <Measure*>(self.numbers + sizeof(Present) // sizeof(double))

    cdef void begin(self) noexcept:
        cdef Measure* measure = self.measures()
        for i in range(3):
            measure[i].value = measure[i].mean = measure[i].error = NAN

    cdef int take(self, int truth, int pred) noexcept nogil:
        cdef Present* present = <Present*>self.numbers
        cdef int level
        present.size += 1
        present.right += truth == pred
        present.positive += truth == self.watched
        present.guessed += pred == self.watched
        present.both += truth == self.watched and pred == self.watched
        if present.size < self.span:
            return UNTESTED
        level = self.weigh(0, present.right, present.size)
        level = max(level, self.weigh(1, present.both, present.positive))
        level = max(level, self.weigh(2, present.both, present.guessed))
        memset(present, 0, sizeof(Present))
        return level

    cdef int weigh(self, int which, double ones, double n) noexcept nogil:
        """Hold a measure's new value against its history, then add it there; how far it fell."""
        cdef Measure* measure = &self.measures()[which]
        cdef double* past = <double*>(self.measures() + 3) + which * self.history
        cdef double squares = 0
        cdef bint even = True
        cdef Py_ssize_t i
        measure.place = QUIET
        if n == 0:
            return QUIET
        measure.n, measure.value = n, ones / n
        if measure.kept >= self.history:
            measure.mean = 0
            for i in range(self.history):
                measure.mean += past[i]
            measure.mean /= self.history
            for i in range(self.history):
                squares += (past[i] - measure.mean) * (past[i] - measure.mean)
                even &= past[i] == past[0]
            # The mean of equal values may be a hair off them; their spread is still none.
            measure.error = 0 if even else sqrt(squares / (self.history - 1) / self.history)
            if not even:
                measure.place = ((measure.value < measure.mean - self.warn * measure.error)
                                 + (measure.value < measure.mean - self.detect * measure.error))
        past[<Py_ssize_t>measure.kept % self.history] = measure.value
        measure.kept += 1
        return <int>measure.place

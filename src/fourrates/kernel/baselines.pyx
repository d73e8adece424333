"""The loops of the detectors that LFR is compared with. Arrays and numbers only; names, labels and messages are the
business of :mod:`fourrates.detectors`, where each rule is told.
"""

cimport cython
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint16_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from fourrates.kernel.pairs cimport DRIFT, QUIET, WARNING, Pairs

cdef double INF = float("inf")
cdef double NAN = float("nan")

cdef enum:
    BLOCK = 256


cdef class Baseline(Pairs):
    """What they share: the K x K counts since the last drift, and one row of numbers that holds all the rest.

    A detector gives `watch`, its loop over events, and `begin`, which writes those first numbers that are not 0.
    """

    cdef Py_ssize_t classes
    cdef Py_ssize_t size
    cdef int64_t* confusion       # by true class, then by predicted class
    cdef double* numbers

    def __dealloc__(self):
        free(self.confusion)
        free(self.numbers)

    cdef int allocate(self, Py_ssize_t classes, Py_ssize_t size) except -1:
        self.classes, self.size = classes, size
        self.confusion = <int64_t*>calloc(classes * classes, sizeof(int64_t))
        self.numbers = <double*>calloc(size, sizeof(double))
        if self.confusion == NULL or self.numbers == NULL:
            raise MemoryError
        return 0

    def _restart(self):
        memset(self.confusion, 0, self.classes * self.classes * sizeof(int64_t))
        memset(self.numbers, 0, self.size * sizeof(double))
        self.begin()

    cdef void begin(self) noexcept:
        pass

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        """Take events up to the first drift and note each; return how many were taken, with minus for a drift."""
        return size

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size,
                         int* state) noexcept nogil:
        cdef Py_ssize_t taken = self.watch(truths, preds, size)
        state[0] = WARNING if self.since >= 0 else QUIET
        if taken < 0:
            state[0], taken = DRIFT, -taken
        self.count(truths, preds, taken)
        self.events += taken
        return taken

    @cython.final
    cdef inline void note(self, int level, int64_t first) noexcept nogil:
        """Open, keep or close a warning; one that opens now is about the events from `first` on."""
        if level == QUIET:
            self.since = -1
        elif self.since < 0:
            self.since = first

    @cython.final
    cdef void count(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t i
        cdef int64_t positive = 0, guessed = 0, both = 0
        if self.classes > 2:
            for i in range(size):
                self.confusion[truths[i] * self.classes + preds[i]] += 1
            return
        for i in range(size):  # three sums are several times faster than one counter after the other
            positive += truths[i]
            guessed += preds[i]
            both += truths[i] & preds[i]
        self.confusion[0] += size - positive - guessed + both
        self.confusion[1] += guessed - both
        self.confusion[2] += positive - both
        self.confusion[3] += both

    def _crossed(self):
        """(watched quantity, whether downwards) for each that crossed its detection bound."""
        return [(0, True)]

    def _confusion(self):
        cdef Py_ssize_t i, j, classes = self.classes
        return tuple([tuple([self.confusion[i * classes + j] for j in range(classes)]) for i in range(classes)])

    def _numbers(self):
        """The row of numbers, in the order each class gives for its own."""
        return tuple([self.numbers[i] for i in range(self.size)])

    def _shape(self):
        """(how many counts, how many numbers) make the state."""
        return self.classes * self.classes, self.size

    def _state(self, int64_t[::1] counts, double[::1] numbers):
        """Copy out the counts and the numbers."""
        memcpy(&counts[0], self.confusion, self.classes * self.classes * sizeof(int64_t))
        memcpy(&numbers[0], self.numbers, self.size * sizeof(double))

    def _set_state(self, const int64_t[::1] counts, const double[::1] numbers):
        memcpy(self.confusion, &counts[0], self.classes * self.classes * sizeof(int64_t))
        memcpy(self.numbers, &numbers[0], self.size * sizeof(double))


cdef struct Running:
    double n, ones, total         # total of the shares of ones seen after each observation
    double place                  # QUIET, WARNING or DRIFT
    double down                   # whether it stands below


cdef class RunningRates(Baseline):
    """The state of NFR. Numbers: how many rates stand outside; then n, ones, total, place and down of each rate."""

    cdef Running* rate            # recall of class 0 .. K - 1, then precision of class 0 .. K - 1
    cdef double warn, detect      # squares of the deviations allowed
    cdef double minimum
    cdef bint watch_down, watch_up

    def _configure(self, Py_ssize_t classes, double warn, double detect, double minimum, bint down, bint up):
        self.warn, self.detect, self.minimum = warn * warn, detect * detect, minimum
        self.watch_down, self.watch_up = down, up
        self.allocate(classes, 1 + 2 * classes * sizeof(Running) // sizeof(double))
        self.rate = <Running*>(self.numbers + 1)
        self._forget()

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t i
        cdef double hit
        cdef bint found
        for i in range(size):
            hit = truths[i] == preds[i]
            found = self.touch(&self.rate[truths[i]], hit)
            found |= self.touch(&self.rate[self.classes + preds[i]], hit)
            self.note(WARNING if self.numbers[0] > 0 else QUIET, self.events + i)
            if found:
                return -(i + 1)
        return size

    @cython.final
    cdef inline bint touch(self, Running* rate, double hit) noexcept nogil:
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
                place = (gap * gap > self.warn * spread) + (gap * gap > self.detect * spread)
        self.numbers[0] += (place != QUIET) - (rate.place != QUIET)
        rate.place = place
        return place == DRIFT

    def _crossed(self):
        return [(r, self.rate[r].down != 0) for r in range(2 * self.classes) if self.rate[r].place == DRIFT]

    def _rate(self, int r):
        """(n, ones, total) of a rate."""
        return self.rate[r].n, self.rate[r].ones, self.rate[r].total


cdef class ErrorRate(Baseline):
    """The state of DDM. Numbers: n, errors, and p and s where p + s was least (infinite before)."""

    cdef double warn, detect, minimum

    def _configure(self, Py_ssize_t classes, double warn, double detect, double minimum):
        self.warn, self.detect, self.minimum = warn, detect, minimum
        self.allocate(classes, 4)
        self._forget()

    cdef void begin(self) noexcept:
        self.numbers[2] = self.numbers[3] = INF

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t i, taken = size
        cdef double n = self.numbers[0], errors = self.numbers[1], square, room
        cdef double p_min = self.numbers[2], s_min = self.numbers[3]
        cdef double least = p_min + s_min, warn = p_min + self.warn * s_min, detect = p_min + self.detect * s_min
        for i in range(size):
            n += 1
            errors += truths[i] != preds[i]
            if n < self.minimum or errors == 0:
                continue
            # p + s < x without division and root: times n, errors + sqrt(square / n) < x n, so square / n < room ** 2
            # where room = x n - errors is not negative.
            square = errors * (n - errors)
            room = least * n - errors
            if room > 0 and square < room * room * n:
                p_min = errors / n
                s_min = sqrt(p_min * (1.0 - p_min) / n)
                least, warn, detect = p_min + s_min, p_min + self.warn * s_min, p_min + self.detect * s_min
            room = warn * n - errors
            if room < 0 or square > room * room * n:
                self.note(WARNING, self.events + i)
                room = detect * n - errors
                if room < 0 or square > room * room * n:
                    taken = -(i + 1)
                    break
            else:
                self.since = -1
        self.numbers[0], self.numbers[1], self.numbers[2], self.numbers[3] = n, errors, p_min, s_min
        return taken

    def _crossed(self):
        return [(0, False)]


cdef class Recall(Baseline):
    """The state of DDM-OCI. Numbers: n, R, and R and s where R + s was greatest (R minus infinite before)."""

    cdef int watched
    cdef double decay, gain, warn, detect, minimum

    def _configure(self, Py_ssize_t classes, int watched, double decay, double warn, double detect, double minimum):
        self.watched, self.decay, self.gain = watched, decay, 1.0 - decay
        self.warn, self.detect, self.minimum = warn, detect, minimum
        self.allocate(classes, 4)
        self._forget()

    cdef void begin(self) noexcept:
        self.numbers[2] = -INF

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t i, taken = size
        cdef double n = self.numbers[0], recall = self.numbers[1], s
        cdef double r_max = self.numbers[2], s_max = self.numbers[3]
        for i in range(size):
            if truths[i] != self.watched:
                continue
            n += 1
            recall = self.decay * recall + self.gain * (preds[i] == self.watched)
            if n < self.minimum:
                continue
            s = sqrt(recall * (1.0 - recall) / n)
            if recall + s > r_max + s_max:
                r_max, s_max = recall, s
            if recall - s < r_max - self.warn * s_max:
                self.note(WARNING, self.events + i)
                if recall - s < r_max - self.detect * s_max:
                    taken = -(i + 1)
                    break
            else:
                self.since = -1
        self.numbers[0], self.numbers[1], self.numbers[2], self.numbers[3] = n, recall, r_max, s_max
        return taken


cdef class Distances(Baseline):
    """The state of EDDM. Numbers: events; the number of the last that was an error; of the distances how many, their
    sum, and the sum of squared differences from their mean; the greatest mean + 2 deviations (0 before).
    """

    cdef double warn, detect, minimum

    def _configure(self, Py_ssize_t classes, double warn, double detect, double minimum):
        self.warn, self.detect, self.minimum = warn, detect, minimum
        self.allocate(classes, 6)
        self._forget()

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t wrong[BLOCK]
        cdef Py_ssize_t i, end = 0, found, j, taken = size
        cdef double n = self.numbers[0], last = self.numbers[1]
        cdef double errors = self.numbers[2], total = self.numbers[3], squares = self.numbers[4]
        cdef double most = self.numbers[5], mean = total / errors if errors > 0 else 0.0, before, distance, reach
        while end < size and taken > 0:
            # Where the errors are is found without a branch, which no processor could foresee.
            i, end, found = end, min(end + BLOCK, size), 0
            while i < end:
                wrong[found] = i
                found += truths[i] != preds[i]
                i += 1
            for j in range(found):
                distance = n + (wrong[j] + 1) - last
                last += distance
                errors += 1
                total += distance
                before, mean = mean, total / errors
                squares += (distance - before) * (distance - mean)
                if errors < self.minimum:
                    continue
                reach = mean + 2.0 * sqrt(squares / errors)
                if reach > most:
                    most = reach
                if reach < self.warn * most:
                    self.note(WARNING, self.events + wrong[j])
                    if reach < self.detect * most:
                        taken = -(wrong[j] + 1)
                        break
                else:
                    self.since = -1
        self.numbers[0], self.numbers[1] = n + (taken if taken > 0 else -taken), last
        self.numbers[2], self.numbers[3], self.numbers[4], self.numbers[5] = errors, total, squares, most
        return taken


cdef class Similarity(Baseline):
    """The state of PerfSim. Numbers: events in the present batch, batches before it, the last similarity, the counts of
    the batch before, the counts of the present one.
    """

    cdef double warn, detect, batch
    cdef double* before
    cdef double* present

    def _configure(self, Py_ssize_t classes, double warn, double detect, double batch):
        self.warn, self.detect, self.batch = warn, detect, batch
        self.allocate(classes, 3 + 2 * classes * classes)
        self.before = self.numbers + 3
        self.present = self.before + classes * classes
        self._forget()

    cdef void begin(self) noexcept:
        self.numbers[2] = NAN

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(size):
            self.present[truths[i] * self.classes + preds[i]] += 1
            self.numbers[0] += 1
            if self.numbers[0] == self.batch and self.compare(self.events + i) == DRIFT:
                return -(i + 1)
        return size

    @cython.final
    cdef int compare(self, int64_t event) noexcept nogil:
        """Close the batch whose last event this was."""
        cdef Py_ssize_t i, cells = self.classes * self.classes
        cdef double across = 0, own = 0, other = 0
        cdef int level = QUIET
        if self.numbers[1] > 0:
            for i in range(cells):
                across += self.present[i] * self.before[i]
                own += self.present[i] * self.present[i]
                other += self.before[i] * self.before[i]
            self.numbers[2] = across / sqrt(own * other)
            level = (self.numbers[2] < self.warn) + (self.numbers[2] < self.detect)
            self.note(level, event + 1 - <int64_t>self.batch)
        self.numbers[0] = 0
        self.numbers[1] += 1
        memcpy(self.before, self.present, cells * sizeof(double))
        memset(self.present, 0, cells * sizeof(double))
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

    cdef int watched
    cdef Py_ssize_t history
    cdef double warn, detect, batch
    cdef Present* present
    cdef Measure* measure
    cdef double* past

    def _configure(self, Py_ssize_t classes, int watched, double warn, double detect, double batch, Py_ssize_t history):
        self.watched, self.history = watched, history
        self.warn, self.detect, self.batch = warn, detect, batch
        self.allocate(classes, (sizeof(Present) + 3 * sizeof(Measure)) // sizeof(double) + 3 * history)
        self.present = <Present*>self.numbers
        self.measure = <Measure*>(self.present + 1)
        self.past = <double*>(self.measure + 3)
        self._forget()

    cdef void begin(self) noexcept:
        for i in range(3):
            self.measure[i].value = self.measure[i].mean = self.measure[i].error = NAN

    cdef Py_ssize_t watch(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(size):
            self.present.size += 1
            self.present.right += truths[i] == preds[i]
            self.present.positive += truths[i] == self.watched
            self.present.guessed += preds[i] == self.watched
            self.present.both += truths[i] == self.watched and preds[i] == self.watched
            if self.present.size == self.batch and self.compare(self.events + i) == DRIFT:
                return -(i + 1)
        return size

    @cython.final
    cdef int compare(self, int64_t event) noexcept nogil:
        """Close the batch whose last event this was."""
        cdef int level = self.weigh(0, self.present.right, self.present.size)
        level = max(level, self.weigh(1, self.present.both, self.present.positive))
        level = max(level, self.weigh(2, self.present.both, self.present.guessed))
        self.note(level, event + 1 - <int64_t>self.batch)
        memset(self.present, 0, sizeof(Present))
        return level

    @cython.final
    cdef int weigh(self, int which, double ones, double n) noexcept nogil:
        """Hold a measure's new value against its history, then add it there; how far it fell."""
        cdef Measure* measure = &self.measure[which]
        cdef double* past = self.past + which * self.history
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

    def _measure(self, int which):
        """(n, value, mean, error) of a measure."""
        cdef Measure* measure = &self.measure[which]
        return measure.n, measure.value, measure.mean, measure.error

    def _crossed(self):
        return [(i, True) for i in range(3) if self.measure[i].place == DRIFT]

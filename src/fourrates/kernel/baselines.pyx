"""The effect of one event on each detector that LFR is compared with. Arrays and numbers only; names, labels and messages are
the business of :mod:`fourrates.baselines`, which explains each rule.
"""

from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from fourrates.kernel.record cimport (
    ALARMED, DRIFT, DRIFTED, FLAGS, QUIET, WARNED, WARNING, Head, Rules, close_warning, events_of,
)

cdef enum:
    UNTESTED = -1                 # an event at which nothing is tested; a warning stays open


cdef class Baseline(Rules):
    """A record has the K x K counts since the last drift, and one row of numbers with all the rest.

    A detector gives `length`, how many numbers there are, `take`, the effect of one event, and `first`, which writes those
    first numbers that are not 0.
    """

    cdef Py_ssize_t history
    cdef int64_t span             # events that a verdict is about
    cdef int watched              # the class, if there is one
    cdef double warn, detect, minimum, decay
    cdef bint watch_down, watch_up

    def __init__(self, int classes, double warn, double detect, double minimum=0, double decay=0, int64_t batch=1,
                 Py_ssize_t history=0, int watched=0, bint down=True, bint up=True):
        self.classes, self.span, self.history, self.watched = classes, batch, history, watched
        self.warn, self.detect, self.minimum, self.decay = warn, detect, minimum, decay
        self.watch_down, self.watch_up = down, up
        self.size = sizeof(Head) + 8 * classes * classes + 8 * self.length()

    cdef Py_ssize_t length(self) noexcept:
        return 0

    cdef void first(self, double* numbers) noexcept nogil:
        pass

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        """Take one event; QUIET, WARNING, DRIFT or UNTESTED."""
        return UNTESTED

    cdef inline double* numbers(self, char* record) noexcept nogil:
        return <double*>(record + sizeof(Head) + 8 * self.classes * self.classes)

    cdef void begin(self, char* record) noexcept nogil:
        self.first(self.numbers(record))

    cdef void restart(self, char* record) noexcept nogil:
        close_warning(<Head*>record)
        memset(record + sizeof(Head), 0, self.size - sizeof(Head))
        self.begin(record)

    cdef int step(self, char* record, int truth, int pred) noexcept nogil:
        cdef Head* head = <Head*>record
        cdef int level
        (<int64_t*>(record + sizeof(Head)))[truth * self.classes + pred] += 1
        head.events = (head.events & ~<uint64_t>DRIFTED) + (1 << FLAGS)
        level = self.take(self.numbers(record), truth, pred)
        if level == QUIET:
            close_warning(head)
            head.events &= ~<uint64_t>WARNED
        elif level != UNTESTED and head.since == 0:
            head.since = events_of(head) - self.span + 1
            head.events |= WARNED
        if level == DRIFT:
            head.events = (head.events & ~<uint64_t>WARNED) | DRIFTED | ALARMED
            return DRIFT
        return WARNING if head.events & WARNED else QUIET


cdef struct Running:
    double n, ones, total         # total of the shares of ones seen after each observation
    double place                  # QUIET, WARNING or DRIFT
    double down                   # whether it is below


cdef class RunningRates(Baseline):
    """The state of NFR. Numbers: how many rates are outside; then n, ones, total, place and down of each rate."""

    cdef Py_ssize_t length(self) noexcept:
        return 1 + 2 * self.classes * sizeof(Running) // sizeof(double)

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        cdef Running* rate = <Running*>(numbers + 1)  # recall of class 0 .. K - 1, then precision of class 0 .. K - 1
        cdef bint crossed = self.touch(numbers, &rate[truth], truth == pred)
        crossed |= self.touch(numbers, &rate[self.classes + pred], truth == pred)
        return DRIFT if crossed else WARNING if numbers[0] > 0 else QUIET

    cdef bint touch(self, double* numbers, Running* rate, double hit) noexcept nogil:
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
        numbers[0] += (place != QUIET) - (rate.place != QUIET)
        rate.place = place
        return place == DRIFT


cdef struct Errors:
    double n, errors
    double p_min, s_min           # at the least p + s; infinite before


cdef class ErrorRate(Baseline):
    """The state of DDM."""

    cdef Py_ssize_t length(self) noexcept:
        return sizeof(Errors) // sizeof(double)

    cdef void first(self, double* numbers) noexcept nogil:
        cdef Errors* own = <Errors*>numbers
        own.p_min = own.s_min = INFINITY

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        cdef Errors* own = <Errors*>numbers
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

    cdef void first(self, double* numbers) noexcept nogil:
        (<Recalled*>numbers).r_max = -INFINITY

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        cdef Recalled* own = <Recalled*>numbers
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

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        cdef Distance* own = <Distance*>numbers
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

    cdef void first(self, double* numbers) noexcept nogil:
        numbers[2] = NAN

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        cdef Py_ssize_t i, cells = self.classes * self.classes
        cdef double across = 0, own = 0, other = 0
        cdef double* before = numbers + 3
        cdef double* present = before + cells
        cdef int level = UNTESTED
        present[truth * self.classes + pred] += 1
        numbers[0] += 1
        if numbers[0] < self.span:
            return UNTESTED
        if numbers[1] > 0:
            for i in range(cells):
                across += present[i] * before[i]
                own += present[i] * present[i]
                other += before[i] * before[i]
            numbers[2] = across / sqrt(own * other)
            level = (numbers[2] < self.warn) + (numbers[2] < self.detect)
        numbers[0] = 0
        numbers[1] += 1
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

    cdef void first(self, double* numbers) noexcept nogil:
        cdef Measure* measure = <Measure*>(<Present*>numbers + 1)
        cdef int i
        for i in range(3):
            measure[i].value = measure[i].mean = measure[i].error = NAN

    cdef int take(self, double* numbers, int truth, int pred) noexcept nogil:
        cdef Present* present = <Present*>numbers
        cdef Measure* measure = <Measure*>(present + 1)
        cdef int level
        present.size += 1
        present.right += truth == pred
        present.positive += truth == self.watched
        present.guessed += pred == self.watched
        present.both += truth == self.watched and pred == self.watched
        if present.size < self.span:
            return UNTESTED
        level = self.weigh(measure, 0, present.right, present.size)
        level = max(level, self.weigh(measure, 1, present.both, present.positive))
        level = max(level, self.weigh(measure, 2, present.both, present.guessed))
        memset(present, 0, sizeof(Present))
        return level

    cdef int weigh(self, Measure* measures, int which, double ones, double n) noexcept nogil:
        """Hold a measure's new value against its history, then add it there; how far it fell."""
        cdef Measure* measure = &measures[which]
        cdef double* past = <double*>(measures + 3) + which * self.history
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

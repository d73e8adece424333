"""The hot loops: a pair of class codes -> two rates -> flags. Arrays and numbers only; labels, names and messages are
the business of :mod:`fourrates.detectors`.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

cdef double INF = float("inf")


cdef double edge(const Grid* grid, int level, int64_t row, int64_t zeros, int64_t n, int32_t* hint) noexcept nogil:
    """The lower bound in a far row, given `zeros` among n observations. `hint` is where it was found last, and now."""
    cdef double share = <double>zeros / n, found, other
    cdef const float* largest = grid.far + (level * grid.rows + row) * (grid.steps + 1)
    cdef int64_t low = hint[0], high = hint[0], mid, stride = 4  # the largest share falls along the row
    if largest[low] >= share:
        while high < grid.steps and largest[high] >= share:
            low, high, stride = high, min(high + stride, grid.steps), 4 * stride
        high = high if largest[high] >= share else high - 1
    else:
        while low > 0 and largest[low] < share:
            high, low, stride = low - 1, max(low - stride, 0), 4 * stride
    while low < high:
        mid = (low + high + 1) >> 1
        if largest[mid] >= share:
            low = mid
        else:
            high = mid - 1
    hint[0] = <int32_t>low
    found = <double>low / grid.steps
    if zeros < grid.counts:
        other = grid.few[(level * grid.rows + row) * grid.counts + zeros]
        found = max(found, other)
    return found


cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil:
    if n <= grid.window:
        return grid.near[level * grid.near_size + n * (n + 1) // 2 + zeros]
    cdef int32_t hint = 0
    return edge(grid, level, grid.marks // n, zeros, n, &hint)


cdef int lay_out(Grid* grid, const float[:, :, ::1] far, const float[:, :, ::1] few) except -1:
    grid.far, grid.few, grid.counts = &far[0, 0, 0], &few[0, 0, 0], few.shape[2]
    grid.rows, grid.steps, grid.marks = far.shape[1], far.shape[2] - 1, (far.shape[1] - 1) * grid.window
    return 0


cdef int depth(const Grid* deep, int levels, int64_t n, int64_t zeros, double statistic) noexcept nogil:
    """How many of the deep levels the statistic is rarer than, from the first on; none within the window."""
    cdef int level = 0
    if n > deep.window:
        while level < levels and below(deep, level, n, zeros, statistic, deep.marks // n):
            level += 1
    return level


cdef void look_ahead(const Grid* grid, Test* test, int place, int64_t n, int64_t ones, int64_t row,
                     int64_t last) noexcept nogil:
    """Find limits of a place that hold up to `last` observations in this row, whatever the next ones are.

    Within a far row a bound falls with the number of zeros and rises with n: its extremes are reached when the
    next ones are all zeros or all ones.
    """
    cdef int64_t zeros = n - ones, ahead = last - n
    cdef double hair = 1e-9  # a statistic on the very edge is left to `below`
    cdef double low = -INF, high = INF
    if place == INSIDE:
        if test.down:
            low = edge(grid, test.warn, row, zeros, last, &test.hints[0]) + hair
        if test.up:
            high = 1.0 - edge(grid, test.warn, row, ones, last, &test.hints[1]) - hair
    elif place == UNDER:
        low = edge(grid, test.detect, row, zeros, last, &test.hints[2]) + hair
        high = edge(grid, test.warn, row, zeros + ahead, last, &test.hints[3]) - hair
    else:
        low = 1.0 - edge(grid, test.warn, row, ones + ahead, last, &test.hints[4]) + hair
        high = 1.0 - edge(grid, test.detect, row, ones, last, &test.hints[5]) - hair
    test.lows[place], test.highs[place] = low, high


cdef class Table:
    """Lower bounds of the statistic for every (n, zeros), at several levels; the upper ones are their mirror image.

    Up to `window` observations each bound is stored. Beyond, a row answers for all n between two marks: it holds, for
    each of `steps + 1` equally spaced values x, the largest share of zeros at which a statistic below x is still as
    rare as the level says. Looking up a bound is a search; testing a statistic is one comparison. For a few zeros a
    second array holds bounds by their number; the higher one counts.

    Parameters
    ----------
    decay : float
        The factor eta the table was built for.
    levels : tuple of Level
        The levels.
    near : array of float32, levels by (window + 1) (window + 2) / 2
        The bound for n and zeros at n (n + 1) / 2 + zeros.
    far : array of float32, levels by rows by steps + 1
        Row i answers for n up to (rows - 1) window / i, row 0 for any n.
    few : array of float32, levels by rows by counts
        The bound of that row for so many zeros.
    deep : tuple of float
        Levels, falling, for which there are bounds beyond the window only: enough of them to tell a p-value.
    deep_far, deep_few : arrays of float32, optional
        As `far` and `few`, for these.
    """

    def __init__(self, double decay, tuple levels, near, far, few, tuple deep=(), deep_far=None, deep_few=None):
        cdef const float[:, ::1] near_view = near
        self.decay, self.levels, self.near, self.far, self.few = decay, levels, near, far, few
        self.deep_levels, self.deep_far, self.deep_few = deep, deep_far, deep_few
        self.grid.near, self.grid.near_size, self.grid.window = &near_view[0, 0], near.shape[1], 0
        while (self.grid.window + 2) * (self.grid.window + 3) // 2 <= self.grid.near_size:
            self.grid.window += 1
        self.deep.window = self.grid.window
        lay_out(&self.grid, far, few)
        if deep:
            lay_out(&self.deep, deep_far, deep_few)

    @property
    def window(self):
        """How many observations are told apart exactly; beyond, only the most recent ones weigh."""
        return self.grid.window

    @property
    def nbytes(self):
        """Memory of the bounds, in bytes."""
        deep = self.deep_far.nbytes + self.deep_few.nbytes if self.deep_levels else 0
        return self.near.nbytes + self.far.nbytes + self.few.nbytes + deep

    cdef int check(self, int level, int64_t n, int64_t ones) except -1:
        if not 0 <= level < len(self.levels):
            raise IndexError(f"level {level} of {len(self.levels)}")
        if not 0 <= ones <= n:
            raise ValueError(f"k = {ones} ones among n = {n} observations is not possible")
        return 0

    def lower(self, int level, int64_t n, int64_t ones):
        """The lower bound at `levels[level]`, given `ones` among n observations."""
        self.check(level, n, ones)
        return bound(&self.grid, level, n, n - ones)

    def upper(self, int level, int64_t n, int64_t ones):
        """The upper bound at `levels[level]`, given `ones` among n observations."""
        self.check(level, n, ones)
        return 1.0 - bound(&self.grid, level, n, ones)

    def p_value(self, int64_t n, int64_t ones, double statistic, bint down=True):
        """A deep level at which this statistic is as rare as that: never below its p-value; 1 if there is none."""
        self.check(0, n, ones)
        cdef int found = (depth(&self.deep, len(self.deep_levels), n, n - ones, statistic) if down else
                          depth(&self.deep, len(self.deep_levels), n, ones, 1.0 - statistic))
        return self.deep_levels[found - 1] if found else 1.0


ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def small_codes(const Integer[::1] values, uint64_t classes, uint16_t[::1] codes):
    """Copy integers below `classes` into `codes`; return the position of the first other value, or -1."""
    cdef Py_ssize_t i, size = values.shape[0]
    cdef uint64_t seen = 0
    with nogil:
        for i in range(size):
            seen |= <uint64_t>values[i]  # no value exceeds the union of bits; a negative one turns into a huge one
            codes[i] = <uint16_t>values[i]
    if seen >= classes:
        for i in range(size):
            if <uint64_t>values[i] >= classes:
                return i
    return -1


cdef inline void flag(Pairs self, int state) noexcept nogil:
    self.drift_detected = state == DRIFT
    self.warning_detected = state == WARNING


cdef class Pairs:
    """What every detector of pairs shares: labels to codes, the count of events, flags, and the loops over events.

    A detector gives `scan`, the loop over coded events. On a drift `_report` makes what the user gets, then `_restart`
    begins anew.
    """

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil:
        """Take coded events up to the first drift; return how many, and the state the last one left."""
        state[0] = QUIET
        return size

    def update(self, y_true, y_pred):
        """Take one event and say what it showed.

        Parameters
        ----------
        y_true : label
            What the event turned out to be.
        y_pred : label
            What the classifier had said.

        Returns
        -------
        Drift or None
        """
        cdef PyObject* truth = NULL
        cdef PyObject* guess = NULL
        try:
            truth = PyDict_GetItemWithError(self._codes, y_true)
            guess = PyDict_GetItemWithError(self._codes, y_pred)
        except TypeError:  # unhashable, so no label
            pass
        if truth == NULL or guess == NULL:
            self._refuse(y_true, y_pred)
        cdef uint16_t truth_code = <object>truth, guess_code = <object>guess
        cdef int state
        self.scan(&truth_code, &guess_code, 1, &state)
        flag(self, state)
        return self._drifted() if state == DRIFT else None

    def _drifted(self):
        report = self._report(self.events - 1, self.since)
        self._restart()
        self.since = -1
        return report

    def _run(self, const uint16_t[::1] truths, const uint16_t[::1] guesses, Py_ssize_t start):
        """Take coded events from `start` on, up to the first drift; return (events taken, Drift or None)."""
        cdef Py_ssize_t taken
        cdef int state
        if self._codes is None:
            raise TypeError("this detector was never set up: __init__ has not run")
        with nogil:
            taken = self.scan(&truths[start], &guesses[start], truths.shape[0] - start, &state)
        flag(self, state)
        return taken, self._drifted() if state == DRIFT else None

    def _forget(self):
        """Back to the first event."""
        self._set_progress(0, -1, False, False)
        self._restart()

    def _restart(self):
        raise NotImplementedError

    def _report(self, at, since):
        raise NotImplementedError

    def _refuse(self, y_true, y_pred):
        raise NotImplementedError

    def _progress(self):
        return self.events, self.since, self.drift_detected, self.warning_detected

    def _set_progress(self, int64_t events, int64_t since, bint drift, bint warning):
        self.events, self.since, self.drift_detected, self.warning_detected = events, since, drift, warning


cdef struct Rate:
    int64_t n
    Test* test                # the first of its tests,
    Test* end                 # and behind the last
    int64_t* ones             # the diagonal count of its class: a right prediction is a one for recall and precision alike


cdef struct Pair:
    # Two tests of different recalls, which are independent given the classes, held against a region of both p-values.
    Rate* rate[2]
    Test* test[2]
    const Grid* deep
    int levels                # deep ones; none: there is no such pair
    int need[64]              # how deep the second must be where the first is 1, 2, ... levels deep


cdef enum:
    RECENT = 512  # the latest events, remembered one by one
    LEVELS = 12  # of the past before them: level j remembers every 2**j-th mark,
    SLOTS = 32   # the latest so many of them
    CLASSES = 64  # with more classes than this the past is not remembered


cdef class FourRates(Pairs):
    """The state of LFR: 2K rates, each with one statistic a decay, the K x K counts, and what these were at past marks.

    The latest events are remembered one by one. For what was before there is a mark every 8 K events; the marks
    remembered are ever sparser towards the past, as many however long the stream: the older a change, the less the last
    events matter to where it was.
    """

    cdef int classes, tests
    cdef Rate* rate               # recall of class 0 .. K - 1, then precision of class 0 .. K - 1
    cdef Test* test               # the tests of rate 0, of rate 1, ...
    cdef int64_t* confusion       # by true class, then by predicted class
    cdef int outside              # how many tests stand outside their warning bounds
    cdef tuple tables
    cdef Grid* grid               # one a table
    cdef Pair pair
    cdef int64_t* past            # levels by slots by 3 K: the observations of each rate, then the diagonal counts
    cdef int64_t spacing, marks, until  # events between two marks, marks passed, events to the next
    cdef uint16_t* recent         # a ring of the latest events: true class times K plus predicted class
    cdef int64_t taken, kept      # events since the restart, and how many of the latest the ring has

    def __dealloc__(self):
        free(self.past)
        free(self.recent)
        free(self.rate)
        free(self.test)
        free(self.confusion)
        free(self.grid)

    def _configure(self, int classes, tuple tables, list settings):
        """Set up for `classes` with one list of tests a rate.

        A test is (position of the table, position of the warning level, of the detection level, down?, up?).
        """
        cdef int r = 0, i = 0
        if self.rate != NULL:
            raise TypeError("this detector is set up already; clone() makes another")
        self.classes, self.tests, self.tables = classes, sum(map(len, settings)), tables
        self.rate = <Rate*>calloc(2 * classes, sizeof(Rate))
        self.test = <Test*>calloc(self.tests, sizeof(Test))
        self.confusion = <int64_t*>calloc(classes * classes, sizeof(int64_t))
        self.grid = <Grid*>calloc(len(tables), sizeof(Grid))
        self.spacing = 8 * classes
        if classes <= CLASSES:
            self.past = <int64_t*>calloc(LEVELS * SLOTS * 3 * classes, sizeof(int64_t))
            self.recent = <uint16_t*>calloc(RECENT, sizeof(uint16_t))
            if self.past == NULL or self.recent == NULL:
                raise MemoryError
        if self.rate == NULL or self.test == NULL or self.confusion == NULL or self.grid == NULL:
            raise MemoryError
        for position, table in enumerate(tables):
            self.grid[position] = (<Table>table).grid
        for r in range(2 * classes):
            self.rate[r].test, self.rate[r].end = &self.test[i], &self.test[i + len(settings[r])]
            self.rate[r].ones = &self.confusion[r % classes * (classes + 1)]
            for table, warn, detect, down, up in settings[r]:
                self.test[i].table, self.test[i].warn, self.test[i].detect = table, warn, detect
                self.test[i].down, self.test[i].up = down, up
                self.test[i].decay = (<Table>tables[table]).decay
                self.test[i].gain = 1.0 - self.test[i].decay
                i += 1
        self._forget()

    def _pair_up(self, int test, list need):
        """Hold the two recalls of two classes together: their test number `test`, and how deep the second must be."""
        cdef int i
        cdef Table table
        for i in range(2):
            self.pair.rate[i], self.pair.test[i] = &self.rate[i], &self.rate[i].test[test]
        table = self.tables[self.pair.test[0].table]
        if not len(need) == len(table.deep_levels) <= 64:
            raise ValueError(f"{len(need)} depths for {len(table.deep_levels)} levels, of which there may be 64")
        for i, depth in enumerate(need):
            self.pair.need[i] = depth
        self.pair.deep, self.pair.levels = &table.deep, len(need)

    def _restart(self):
        cdef int i
        memset(self.confusion, 0, self.classes * self.classes * sizeof(int64_t))
        for i in range(2 * self.classes):
            self.rate[i].n = 0
        for i in range(self.tests):
            self.test[i].statistic, self.test[i].calm_until, self.test[i].place = 0.5, -1, INSIDE
        self.outside = 0
        self.marks, self.until = 0, self.spacing
        self.taken = self.kept = 0
        if self.past != NULL:
            memset(self.past, 0, LEVELS * SLOTS * 3 * self.classes * sizeof(int64_t))

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil:
        # Locals, for a store to an array may, as far as a compiler knows, change what self points to.
        cdef Rate* recall = self.rate
        cdef Rate* precision = self.rate + self.classes
        cdef int64_t* confusion = self.confusion
        cdef int64_t first = self.events
        cdef double[2] bits = [0.0, 1.0]  # looked up, not branched on: errors cannot be foreseen
        cdef double hit
        cdef int classes = self.classes, truth, guess, found
        cdef bint warned = self.outside > 0 or self.since >= 0
        cdef Py_ssize_t i = 0, stop
        state[0] = QUIET
        while i < size:
            stop = min(size, i + self.until)
            self.until -= stop - i
            while i < stop:
                truth, guess = truths[i], guesses[i]
                i += 1
                hit = bits[truth == guess]
                confusion[truth * classes + guess] += 1
                found = self.touch(&recall[truth], hit)
                found |= self.touch(&precision[guess], hit)
                if found or warned:
                    warned = self.outside > 0
                    if not warned:
                        self.since = -1
                    elif self.since < 0:
                        self.since = first + i - 1
                    if found & CROSSED or (self.pair.levels and self.together()):
                        self.keep(truths, guesses, i)
                        self.events = first + i
                        state[0] = DRIFT
                        return i
            if self.until == 0:
                self.remember()
        if self.outside:
            state[0] = WARNING
        self.keep(truths, guesses, size)
        self.events = first + size
        return size

    @cython.final
    cdef void keep(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size) noexcept nogil:
        """Remember the latest of these events."""
        cdef Py_ssize_t i
        cdef int64_t first = self.taken
        self.taken += size
        if self.recent != NULL:
            for i in range(max(0, size - RECENT), size):
                self.recent[(first + i) % RECENT] = <uint16_t>(truths[i] * self.classes + guesses[i])
            self.kept = min(self.kept + size, RECENT)

    @cython.final
    cdef void remember(self) noexcept nogil:
        """Pass a mark."""
        cdef int classes = self.classes, level, i
        cdef int64_t* slot
        self.marks += 1
        self.until = self.spacing
        if self.past == NULL:
            return
        for level in range(LEVELS):
            slot = self.slot(level, self.marks >> level)
            for i in range(2 * classes):
                slot[i] = self.rate[i].n
            for i in range(classes):
                slot[2 * classes + i] = self.rate[i].ones[0]
            if self.marks >> level & 1:
                break

    @cython.final
    cdef int64_t* slot(self, int level, int64_t number) noexcept nogil:
        """Where a level keeps its mark of this number."""
        return self.past + (level * SLOTS + number % SLOTS) * 3 * self.classes

    @cython.final
    cdef inline int touch(self, Rate* rate, double hit) noexcept nogil:
        """One more observation of a rate; what became of its tests."""
        cdef Test* test = rate.test
        cdef int found = 0
        cdef double statistic
        cdef int64_t n = rate.n + 1
        rate.n = n
        while True:
            statistic = test.decay * test.statistic + test.gain * hit
            test.statistic = statistic
            if n > test.calm_until or statistic < test.low or statistic > test.high:
                found |= self.examine(rate, test)
            test += 1
            if test == rate.end:
                return found

    @cython.final
    cdef int examine(self, Rate* rate, Test* test) noexcept nogil:
        """Find out where the statistic stands: MOVED in or out of its warning bounds, CROSSED a detection bound."""
        cdef const Grid* grid = &self.grid[test.table]
        cdef int found = 0, place
        if rate.n > test.calm_until and rate.n > grid.window:
            test.calm_until = horizon(grid, rate.n, &test.row)
            for place in range(3):
                if place == INSIDE or (place == UNDER and test.down) or (place == OVER and test.up):
                    look_ahead(grid, test, place, rate.n, rate.ones[0], test.row, test.calm_until)
        place = stand(grid, test, test.statistic, rate.n, rate.ones[0], test.row, &found)
        if place != test.place:
            self.outside += (place != INSIDE) - (test.place != INSIDE)
            test.place = place
            found |= MOVED
        test.low, test.high = test.lows[place], test.highs[place]
        return found

    @cython.final
    cdef bint together(self) noexcept nogil:
        """Whether the pair's two statistics, both outside their warning bounds, are too rare together."""
        cdef int[2] found = [0, 0]
        cdef int i
        for i in range(2):
            if self.pair.test[i].place == INSIDE:
                return False
        for i in range(2):
            found[i] = self.depth(i)
            if found[i] == 0:
                return False
        return found[1] >= self.pair.need[found[0] - 1]

    @cython.final
    cdef int depth(self, int i) noexcept nogil:
        """How deep one of the pair stands on its side."""
        cdef Rate* rate = self.pair.rate[i]
        cdef Test* test = self.pair.test[i]
        if test.place == UNDER:
            return depth(self.pair.deep, self.pair.levels, rate.n, rate.n - rate.ones[0], test.statistic)
        return depth(self.pair.deep, self.pair.levels, rate.n, rate.ones[0], 1.0 - test.statistic)

    def _rate(self, int r):
        """(n, ones, statistics) of a rate."""
        return (self.rate[r].n, self.rate[r].ones[0],
                tuple([self.rate[r].test[i].statistic for i in range(self.rate[r].end - self.rate[r].test)]))

    def _crossed(self):
        """(rate, test, whether downwards) for every test that stands outside its detection bounds."""
        cdef int r, i
        cdef Test* test
        cdef Rate* rate
        found = []
        for r in range(2 * self.classes):
            rate = &self.rate[r]
            for i in range(rate.end - rate.test):
                test = &rate.test[i]
                if test.place != INSIDE and self.examine(rate, test) & CROSSED:
                    found.append((r, i, test.place == UNDER))
        return found

    def _together(self):
        """(rate, whether downwards, bound) for both of the pair if they crossed together."""
        cdef int i, level
        cdef Rate* rate
        cdef bint down
        found = []
        if self.pair.levels and self.together():
            for i in range(2):
                rate, down, level = self.pair.rate[i], self.pair.test[i].place == UNDER, self.depth(i) - 1
                edge_of = bound(self.pair.deep, level, rate.n, rate.n - rate.ones[0] if down else rate.ones[0])
                found.append((i, down, edge_of if down else 1.0 - edge_of))
        return found

    def _confusion(self):
        cdef int i, j, classes = self.classes
        return tuple([tuple([self.confusion[i * classes + j] for j in range(classes)]) for i in range(classes)])

    def _marks(self):
        """(observations of each rate, diagonal counts) at the marks remembered, in order; all 3 K in one row a mark."""
        cdef int level, i
        cdef int64_t number, last, events
        cdef int64_t* slot
        found = {}
        if self.past != NULL:
            for level in range(LEVELS):
                last = self.marks >> level
                for number in range(max(1, last - SLOTS + 1), last + 1):
                    slot = self.slot(level, number)
                    events = 0
                    for i in range(self.classes):
                        events += slot[i]
                    if events == (number << level) * self.spacing:  # else it was passed elsewhere
                        found[events] = [slot[i] for i in range(3 * self.classes)]
        return [row for _, row in sorted(found.items())]

    def _recent(self):
        """The latest events in order, each as its true class times K plus its predicted class."""
        cdef int64_t i
        return [self.recent[i % RECENT] for i in range(self.taken - self.kept, self.taken)]

    def _set_past(self, const int64_t[:, ::1] marks, const uint16_t[::1] recent):
        """Copy in what `_marks` and `_recent` gave."""
        cdef Py_ssize_t i, j
        cdef int64_t number, level
        if self.past == NULL:
            return
        if recent.shape[0] > min(self.taken, RECENT):
            raise ValueError(f"{recent.shape[0]} latest events of {self.taken}, where at most {RECENT} are kept")
        for i in range(marks.shape[0]):
            number = 0
            for j in range(self.classes):
                number += marks[i, j]
            number //= self.spacing
            if not 0 < number <= self.marks:
                raise ValueError(f"a mark at event {number * self.spacing} of {self.taken}")
            for level in range(LEVELS):
                if number > (self.marks >> level) - SLOTS:
                    memcpy(self.slot(level, number), &marks[i, 0], 3 * self.classes * sizeof(int64_t))
                if number & 1:
                    break
                number >>= 1
        self.kept = recent.shape[0]
        for i in range(self.kept):
            self.recent[(self.taken - self.kept + i) % RECENT] = recent[i]

    def _state(self, int64_t[::1] counts, double[::1] statistics, uint8_t[::1] places):
        """Copy out the K x K counts, the statistics, and where these stand."""
        cdef int i
        memcpy(&counts[0], self.confusion, self.classes * self.classes * sizeof(int64_t))
        for i in range(self.tests):
            statistics[i], places[i] = self.test[i].statistic, self.test[i].place

    def _set_state(self, const int64_t[::1] counts, const double[::1] statistics, const uint8_t[::1] places):
        cdef int i, j, classes = self.classes
        self._restart()
        memcpy(self.confusion, &counts[0], classes * classes * sizeof(int64_t))
        for i in range(classes):
            for j in range(classes):
                self.rate[i].n += counts[i * classes + j]
                self.rate[classes + j].n += counts[i * classes + j]
        for i in range(self.tests):
            self.test[i].statistic, self.test[i].place = statistics[i], places[i]
            self.outside += self.test[i].place != INSIDE
        for i in range(classes):
            self.taken += self.rate[i].n
        self.marks, self.until = self.taken // self.spacing, self.spacing - self.taken % self.spacing

"""The hot loops: a pair of class codes -> two rates -> flags. Arrays and numbers only; labels, names and messages are
the business of :mod:`fourrates.detectors`.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

cdef enum:
    QUIET = 0
    WARNING = 1
    DRIFT = 2

cdef double INF = float("inf")


cdef struct Grid:
    # The arrays of a Table, laid out as its docstring says.
    const float* near
    const float* far
    int64_t near_size, window, marks, rows, steps


cdef inline bint below(const Grid* grid, int level, int64_t n, int64_t zeros, double statistic) noexcept nogil:
    """Whether the statistic lies under its lower bound, given `zeros` among n observations."""
    cdef int64_t step
    if n <= grid.window:
        return statistic < grid.near[level * grid.near_size + n * (n + 1) // 2 + zeros]
    step = <int64_t>(statistic * grid.steps) + 1
    return (step <= grid.steps and
            zeros <= n * <double>grid.far[(level * grid.rows + grid.marks // n) * (grid.steps + 1) + step])


cdef double edge(const Grid* grid, int level, int64_t row, double share) noexcept nogil:
    """The lower bound in a far row at this share of zeros."""
    cdef const float* largest = grid.far + (level * grid.rows + row) * (grid.steps + 1)
    cdef int64_t low = 0, high = grid.steps, mid  # the largest share falls along the row
    while low < high:
        mid = (low + high + 1) >> 1
        if largest[mid] >= share:
            low = mid
        else:
            high = mid - 1
    return <double>low / grid.steps


cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil:
    if n <= grid.window:
        return grid.near[level * grid.near_size + n * (n + 1) // 2 + zeros]
    return edge(grid, level, grid.marks // n, <double>zeros / n)


cdef class Table:
    """Lower bounds of the statistic for every (n, zeros), at several levels; the upper ones are their mirror image.

    Up to `window` observations each bound is stored. Beyond, a row answers for all n between two marks: it holds, for
    each of `steps + 1` equally spaced values x, the largest share of zeros at which a statistic below x is still as
    rare as the level says. Looking up a bound is a search; testing a statistic is one comparison.

    Parameters
    ----------
    decay : float
        The factor eta the table was built for.
    levels : tuple of float
        The levels.
    near : array of float32, levels by (window + 1) (window + 2) / 2
        The bound for n and zeros at n (n + 1) / 2 + zeros.
    far : array of float32, levels by rows by steps + 1
        Row i answers for n up to (rows - 1) window / i, row 0 for any n.
    """

    cdef readonly double decay
    cdef readonly tuple levels
    cdef readonly object near, far
    cdef Grid grid

    def __init__(self, double decay, tuple levels, near, far):
        cdef const float[:, ::1] near_view = near
        cdef const float[:, :, ::1] far_view = far
        self.decay, self.levels, self.near, self.far = decay, levels, near, far
        self.grid.near, self.grid.far = &near_view[0, 0], &far_view[0, 0, 0]
        self.grid.near_size, self.grid.rows, self.grid.steps = near.shape[1], far.shape[1], far.shape[2] - 1
        self.grid.window = 0
        while (self.grid.window + 2) * (self.grid.window + 3) // 2 <= self.grid.near_size:
            self.grid.window += 1
        self.grid.marks = (self.grid.rows - 1) * self.grid.window

    @property
    def window(self):
        """How many observations are told apart exactly; beyond, only the most recent ones weigh."""
        return self.grid.window

    @property
    def nbytes(self):
        """Memory of the bounds, in bytes."""
        return self.near.nbytes + self.far.nbytes

    def lower(self, int level, int64_t n, int64_t ones):
        """The lower bound at `levels[level]`, given `ones` among n observations."""
        return bound(&self.grid, level, n, n - ones)

    def upper(self, int level, int64_t n, int64_t ones):
        """The upper bound at `levels[level]`, given `ones` among n observations."""
        return 1.0 - bound(&self.grid, level, n, ones)


ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def binary_codes(const Integer[::1] values, uint16_t[::1] codes):
    """Copy zeros and ones into `codes`; return the position of the first other value, or -1."""
    cdef Py_ssize_t i, size = values.shape[0]
    cdef uint64_t seen = 0
    with nogil:
        for i in range(size):
            seen |= <uint64_t>values[i]
            codes[i] = <uint16_t>values[i]
    if seen <= 1:
        return -1
    for i in range(size):
        if values[i] != 0 and values[i] != 1:
            return i


cdef class Pairs:
    """What every detector of pairs shares: labels to codes, the count of events, flags, and the loops over events.

    A detector gives `scan`, the loop over coded events. On a drift `_report` makes what the user gets, then `_restart`
    begins anew.
    """

    cdef public dict _codes             # from label to code
    cdef public object _labels, parameters  # not used here; a slot in the Python base would clash with the kernel's layout
    cdef readonly int64_t events        # since construction or reset()
    cdef int64_t since                  # the event that opened the present warning, or -1
    cdef readonly bint drift_detected
    cdef readonly bint warning_detected

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil:
        """Take coded events up to the first drift; return how many, and the state the last one left."""
        state[0] = QUIET
        return size

    @cython.final
    cdef inline void note(self, int state) noexcept nogil:
        """Count an event, and remember where the present warning began."""
        if state == QUIET:
            self.since = -1
        elif self.since < 0:
            self.since = self.events
        self.events += 1

    @cython.final
    cdef inline void flag(self, int state) noexcept nogil:
        self.drift_detected = state == DRIFT
        self.warning_detected = state == WARNING

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
        cdef PyObject* truth = PyDict_GetItemWithError(self._codes, y_true)
        cdef PyObject* guess = PyDict_GetItemWithError(self._codes, y_pred)
        if truth == NULL or guess == NULL:
            self._refuse(y_true, y_pred)
        cdef uint16_t truth_code = <object>truth, guess_code = <object>guess
        cdef int state
        self.scan(&truth_code, &guess_code, 1, &state)
        self.flag(state)
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
        with nogil:
            taken = self.scan(&truths[start], &guesses[start], truths.shape[0] - start, &state)
        self.flag(state)
        return taken, self._drifted() if state == DRIFT else None

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


cdef struct Test:
    # One statistic of one rate. While n <= quiet_until and low <= statistic <= high no bound can have been crossed: the
    # interval was found to hold for every (n, ones) that can be reached by then.
    double statistic, decay, gain, low, high
    int64_t quiet_until
    int table, warn, detect   # positions of the table and of the levels in it
    bint down, up             # the sides it watches
    bint out                  # whether it stands outside its warning bounds now


cdef struct Rate:
    int64_t n, ones
    Test* test                # the first of its tests
    int tests


cdef class FourRates(Pairs):
    """The state of LFR: 2K rates, each with one statistic a decay, and the K x K counts."""

    cdef int classes, tests
    cdef Rate* rate               # recall of class 0 .. K - 1, then precision of class 0 .. K - 1
    cdef Test* test               # the tests of rate 0, of rate 1, ...
    cdef int64_t* confusion       # by true class, then by predicted class
    cdef int outside              # how many tests stand outside their warning bounds
    cdef tuple tables
    cdef Grid* grid               # one a table

    def __dealloc__(self):
        free(self.rate)
        free(self.test)
        free(self.confusion)
        free(self.grid)

    def _configure(self, int classes, tuple tables, list settings):
        """Set up for `classes` with one list of tests a rate.

        A test is (position of the table, position of the warning level, of the detection level, down?, up?).
        """
        cdef int r = 0, i = 0
        self.classes, self.tests, self.tables = classes, sum(map(len, settings)), tables
        self.rate = <Rate*>calloc(2 * classes, sizeof(Rate))
        self.test = <Test*>calloc(self.tests, sizeof(Test))
        self.confusion = <int64_t*>calloc(classes * classes, sizeof(int64_t))
        self.grid = <Grid*>calloc(len(tables), sizeof(Grid))
        if self.rate == NULL or self.test == NULL or self.confusion == NULL or self.grid == NULL:
            raise MemoryError
        for position, table in enumerate(tables):
            self.grid[position] = (<Table>table).grid
        for r in range(2 * classes):
            self.rate[r].test, self.rate[r].tests = &self.test[i], len(settings[r])
            for table, warn, detect, down, up in settings[r]:
                self.test[i].table, self.test[i].warn, self.test[i].detect = table, warn, detect
                self.test[i].down, self.test[i].up = down, up
                self.test[i].decay = (<Table>tables[table]).decay
                self.test[i].gain = 1.0 - self.test[i].decay
                i += 1
        self._forget()

    def _forget(self):
        """Back to the first event."""
        self._set_progress(0, -1, False, False)
        self._restart()

    def _restart(self):
        cdef int i
        memset(self.confusion, 0, self.classes * self.classes * sizeof(int64_t))
        for i in range(2 * self.classes):
            self.rate[i].n = self.rate[i].ones = 0
        for i in range(self.tests):
            self.test[i].statistic, self.test[i].quiet_until, self.test[i].out = 0.5, -1, False
        self.outside = 0

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil:
        cdef Py_ssize_t i
        cdef int truth, guess, found
        cdef int64_t hit
        for i in range(size):
            truth, guess = truths[i], guesses[i]
            hit = truth == guess
            self.confusion[truth * self.classes + guess] += 1
            found = self.touch(&self.rate[truth], hit)
            found |= self.touch(&self.rate[self.classes + guess], hit)
            state[0] = DRIFT if found else WARNING if self.outside else QUIET
            self.note(state[0])
            if found:
                return i + 1
        return size

    @cython.final
    cdef inline int touch(self, Rate* rate, int64_t hit) noexcept nogil:
        """One more observation of a rate; whether it crossed a detection bound."""
        cdef Test* test = rate.test
        cdef int i, found = 0
        rate.n += 1
        rate.ones += hit
        for i in range(rate.tests):
            test.statistic = test.decay * test.statistic + test.gain * hit
            if rate.n > test.quiet_until or test.statistic < test.low or test.statistic > test.high:
                found |= self.examine(rate, test)
            test += 1
        return found

    @cython.final
    cdef int examine(self, Rate* rate, Test* test) noexcept nogil:
        cdef const Grid* grid = &self.grid[test.table]
        cdef int64_t zeros = rate.n - rate.ones, ahead, row
        cdef bint low = test.down and below(grid, test.warn, rate.n, zeros, test.statistic)
        cdef bint high = test.up and below(grid, test.warn, rate.n, rate.ones, 1.0 - test.statistic)
        self.outside += (low or high) - test.out
        test.out = low or high
        test.quiet_until = -1
        if low:
            return below(grid, test.detect, rate.n, zeros, test.statistic)
        if high:
            return below(grid, test.detect, rate.n, rate.ones, 1.0 - test.statistic)
        if rate.n > grid.window:
            # Within a far row bounds depend on the share of zeros alone, and that stays above zeros / (n + ahead).
            row, ahead = grid.marks // rate.n, rate.n >> 5
            if row > 0:
                ahead = min(ahead, grid.marks // row - rate.n)
            if ahead > 0:
                test.quiet_until = rate.n + ahead
                test.low, test.high = -INF, INF
                # A hair inside, so that a statistic on the very edge is left to `below`.
                if test.down:
                    test.low = edge(grid, test.warn, row, <double>zeros / test.quiet_until) + 1e-9
                if test.up:
                    test.high = 1.0 - edge(grid, test.warn, row, <double>rate.ones / test.quiet_until) - 1e-9
        return 0

    def _rate(self, int r):
        """(n, ones, statistics) of a rate."""
        return (self.rate[r].n, self.rate[r].ones,
                tuple([self.rate[r].test[i].statistic for i in range(self.rate[r].tests)]))

    def _crossed(self):
        """(rate, test, direction) for every test that stands outside its detection bounds, -1 down and 1 up."""
        cdef int r, i
        cdef Test* test
        cdef const Grid* grid
        found = []
        for r in range(2 * self.classes):
            for i in range(self.rate[r].tests):
                test = &self.rate[r].test[i]
                if not test.out:
                    continue
                grid = &self.grid[test.table]
                if test.down and below(grid, test.detect, self.rate[r].n, self.rate[r].n - self.rate[r].ones,
                                       test.statistic):
                    found.append((r, i, -1))
                elif test.up and below(grid, test.detect, self.rate[r].n, self.rate[r].ones, 1.0 - test.statistic):
                    found.append((r, i, 1))
        return found

    def _confusion(self):
        cdef int i, j, classes = self.classes
        return tuple([tuple([self.confusion[i * classes + j] for j in range(classes)]) for i in range(classes)])

    def _state(self, int64_t[::1] counts, double[::1] statistics, uint8_t[::1] outside):
        """Copy out the K x K counts, the statistics, and which of them stand outside their warning bounds."""
        cdef int i
        memcpy(&counts[0], self.confusion, self.classes * self.classes * sizeof(int64_t))
        for i in range(self.tests):
            statistics[i], outside[i] = self.test[i].statistic, self.test[i].out

    def _set_state(self, const int64_t[::1] counts, const double[::1] statistics, const uint8_t[::1] outside):
        cdef int i, j, classes = self.classes
        self._restart()
        memcpy(self.confusion, &counts[0], classes * classes * sizeof(int64_t))
        for i in range(classes):
            for j in range(classes):
                self.rate[i].n += counts[i * classes + j]
                self.rate[classes + j].n += counts[i * classes + j]
            self.rate[i].ones = self.rate[classes + i].ones = counts[i * classes + i]
        for i in range(self.tests):
            self.test[i].statistic, self.test[i].out = statistics[i], outside[i] != 0
            self.outside += self.test[i].out

"""The hot loops: a pair of class codes -> two rates -> flags. Arrays and numbers only; labels, names and messages are
the business of :mod:`fourrates.detectors`.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.math cimport exp, sqrt
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from fourrates.kernel.window cimport EXACTLY, chance, critical, largest, quick, weight

cdef double INF = float("inf")
cdef int64_t FOREVER = 0x7fffffffffffffff
cdef double AHEAD = 6.0  # times the root of n observations: so long limits are to last. Further, they are looser; less, more work


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
    levels : tuple of float
        The levels.
    near : array of float32, levels by (window + 1) (window + 2) / 2
        The bound for n and zeros at n (n + 1) / 2 + zeros.
    far : array of float32, levels by rows by steps + 1
        Row i answers for n up to (rows - 1) window / i, row 0 for any n.
    few : array of float32, levels by rows by counts
        The bound of that row for so many zeros.
    """

    def __init__(self, double decay, tuple levels, near, far, few):
        cdef const float[:, ::1] near_view = near
        cdef const float[:, :, ::1] far_view = far, few_view = few
        self.decay, self.levels, self.near, self.far, self.few = decay, levels, near, far, few
        self.grid.near, self.grid.far, self.grid.few = &near_view[0, 0], &far_view[0, 0, 0], &few_view[0, 0, 0]
        self.grid.counts = few.shape[2]
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
        return self.near.nbytes + self.far.nbytes + self.few.nbytes

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


cdef inline int bit(const uint64_t* bits, int i) noexcept nogil:
    return <int>(bits[i >> 6] >> (i & 63) & 1)


cdef inline int64_t next_due(int64_t mark) noexcept nogil:
    """The mark at which levels are brought up to date after this one."""
    return mark + max(1, mark >> 4)


cdef int value(const uint64_t* bits, int width) noexcept nogil:
    """The value of the window over the latest of these bits."""
    cdef int i, found = 0
    for i in range(width):
        found += bit(bits, i) * (weight(width) + (i < width // 2))
    return found


cdef void clear(Span* span) noexcept nogil:
    """A window of a rate without observations."""
    cdef int i
    span.value, span.place, span.near, span.reach = 0, INSIDE, INSIDE, 1.0
    span.low, span.room = 0, largest(span.width)
    for i in range(2):
        span.side[i].screen = span.side[i].warn = span.side[i].surely = span.side[i].detect = -1


cdef inline int outermost(int width, int count) noexcept nogil:
    """The largest value that may be as rare as a level, if `quick` found so many ones; without any there is one value only."""
    return min((count + 1) * weight(width) - 1, largest(width)) if count else -1


cdef double rare(const Span* span, double level=EXACTLY) noexcept nogil:
    """The chance of a value as far out as this one, on the side where it is; with a level as `chance` says."""
    cdef int64_t n = span.rate.n, ones = span.rate.ones[0]
    if span.near == UNDER:
        return chance(span.width, n, ones, span.value, level)
    return chance(span.width, n, n - ones, largest(span.width) - span.value, level)


cdef bint rarer(const Span* span, double level) noexcept nogil:
    return rare(span, level) <= level


cdef enum:
    RECENT = 512  # the latest events, remembered one by one
    LEVELS = 12  # of the past before them: level j remembers every 2**j-th mark,
    SLOTS = 32   # the latest so many of them
    NOWHERE = 1 << 20  # no value of a window is as large
    LONG = 1 << 14  # observations of a rate from which on it pays to know the limits of its windows precisely
    CLASSES = 64  # with more classes than this the past is not remembered


cdef inline int slide(FourRates self, Rate* rate, int hit) noexcept nogil:
    """The windows of a rate move on by one observation."""
    cdef uint64_t* bits = rate.bits
    cdef Span* span = rate.span
    cdef int found = 0
    cdef int64_t n = rate.n, ones = rate.ones[0]
    if rate.long:
        bits[3] = bits[3] << 1 | bits[2] >> 63
        bits[2] = bits[2] << 1 | bits[1] >> 63
    bits[1] = bits[1] << 1 | bits[0] >> 63
    bits[0] = bits[0] << 1 | <uint64_t>hit
    if n > rate.calm_until or ones > rate.ones_until or n - ones > rate.zeros_until:
        self.foresee(rate)
    while span != rate.span_end:
        span.value += (span.unit * (hit - <int>(span.oldest[0] >> span.oldest_at & 1)) +
                       hit - <int>(span.middle[0] >> span.middle_at & 1))
        if <uint32_t>(span.value - span.low) > span.room:
            found |= self.look(span)
        span += 1
    return found


cdef inline int touch(FourRates self, Rate* rate, double right) noexcept nogil:
    """The decayed statistics of a rate move on by one observation."""
    cdef Test* test = rate.test
    cdef int found = 0
    cdef double statistic
    cdef int64_t n = rate.n
    while True:
        statistic = test.decay * test.statistic + test.gain * right
        test.statistic = statistic
        if n > test.calm_until or statistic < test.low or statistic > test.high:
            found |= self.examine(rate, test)
        test += 1
        if test == rate.end:
            return found


cdef inline Py_ssize_t walk(FourRates self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size, int* state,
                            bint windows) noexcept nogil:
    """As `scan`, for windows or for decayed statistics: a rate has one or the other."""
    # Locals, for a store to an array may, as far as a compiler knows, change what self points to.
    cdef Rate* recall = self.rate
    cdef Rate* precision = self.rate + self.classes
    cdef int64_t* confusion = self.confusion
    cdef int64_t first = self.events
    cdef double[2] bits = [0.0, 1.0]  # looked up, not branched on: errors cannot be foreseen
    cdef int classes = self.classes, truth, guess, found, hit
    cdef bint warned = self.outside > 0 or self.since >= 0
    cdef Py_ssize_t i = 0, stop
    state[0] = QUIET
    while i < size:
        stop = min(size, i + self.until)
        self.until -= stop - i
        while i < stop:
            truth, guess = truths[i], guesses[i]
            i += 1
            hit = truth == guess
            confusion[truth * classes + guess] += 1
            recall[truth].n += 1
            precision[guess].n += 1
            if windows:
                found = slide(self, &recall[truth], hit) | slide(self, &precision[guess], hit)
            else:
                found = touch(self, &recall[truth], bits[hit]) | touch(self, &precision[guess], bits[hit])
            if found or warned:
                warned = self.outside > 0
                if not warned:
                    self.since = -1
                elif self.since < 0:
                    self.since = first + i - 1
                if found & CROSSED:
                    if self.since < 0:  # two windows, too rare together, with neither outside its warning bounds
                        self.since = first + i - 1
                    self.keep(truths, guesses, i)
                    self.events = first + i
                    state[0] = DRIFT
                    return i
        if self.until == 0:
            self.remember()
            if self.marks == self.due:
                self.weigh()
    if self.outside:
        state[0] = WARNING
    self.keep(truths, guesses, size)
    self.events = first + size
    return size


cdef class FourRates(Pairs):
    """The state of LFR: 2K rates, each with decayed statistics or windows, the K x K counts, and these at past marks.

    The latest events are remembered one by one. For what was before there is a mark every 8 K events; the marks
    remembered are ever sparser towards the past, as many however long the stream: the older a change, the less the last
    events matter to where it was.
    """

    def __dealloc__(self):
        free(self.past)
        free(self.recent)
        free(self.rate)
        free(self.test)
        free(self.span)
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
        self.test = <Test*>calloc(max(self.tests, 1), sizeof(Test))
        self.confusion = <int64_t*>calloc(classes * classes, sizeof(int64_t))
        self.grid = <Grid*>calloc(max(len(tables), 1), sizeof(Grid))
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

    def _open_windows(self, list settings, double attention, double product, double ramp, double start,
                      double evenness):
        """Give each rate its windows: (width, warning level, detection levels, grows?, early, down?, up?, held together?).

        There are 21 detection levels of a window, for rates of 0, 0.05, ... 1; in between they are interpolated.
        After a restart the level of a window that grows is (events / ramp)**2 of its own, up to the ramp, and that of another
        is larger by `early` times itself, less and less from `start` events on. With two classes the windows of the two recalls that are held together alarm when both have a chance of at most
        `attention`, and the product of the two is at most `product`.
        """
        cdef int r, i = 0
        cdef Span* span
        cdef Span* partner = NULL
        self.spans = sum(map(len, settings))
        self.span = <Span*>calloc(self.spans, sizeof(Span))
        if self.span == NULL:
            raise MemoryError
        self.attention, self.product, self.evenness = attention, product, evenness
        self.ramp, self.start = ramp, start
        for r in range(2 * self.classes):
            self.rate[r].span, self.rate[r].span_end = &self.span[i], &self.span[i + len(settings[r])]
            for width, warn, detect, grows, early, down, up, together in settings[r]:
                span = &self.span[i]
                span.rate = &self.rate[r]
                span.width, span.warn, span.unit = width, warn, weight(width)
                span.grows, span.early = grows, early
                span.oldest, span.oldest_at = &span.rate.bits[span.width >> 6], span.width & 63
                span.middle, span.middle_at = &span.rate.bits[span.width >> 7], span.width // 2 & 63
                for step, level in enumerate(detect):
                    span.detect[step] = level
                span.down, span.up, span.screen = down, up, max(warn, attention) if together else warn
                self.rate[r].long |= span.width >= 128  # the bit that leaves it is in the third word or the fourth
                if together and partner == NULL:
                    partner = span
                elif together:
                    span.partner, partner.partner = partner, span
                i += 1
        self._forget()

    def _restart(self):
        cdef int i
        memset(self.confusion, 0, self.classes * self.classes * sizeof(int64_t))
        for i in range(2 * self.classes):
            self.rate[i].n = 0
        for i in range(self.tests):
            self.test[i].statistic, self.test[i].calm_until, self.test[i].place = 0.5, -1, INSIDE
        for i in range(2 * self.classes):
            self.rate[i].scale, self.rate[i].calm_until = 1.0, 0
            memset(self.rate[i].bits, 0, sizeof(self.rate[i].bits))
        for i in range(self.spans):
            clear(&self.span[i])
        self.outside = 0
        self.growth, self.youth, self.due = 0.0, 1.0, 1
        self.marks, self.until = 0, self.spacing
        self.taken = self.kept = 0
        if self.past != NULL:
            memset(self.past, 0, LEVELS * SLOTS * 3 * self.classes * sizeof(int64_t))

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil:
        if self.spans:
            return walk(self, truths, guesses, size, state, True)
        return walk(self, truths, guesses, size, state, False)

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
    cdef void weigh(self) noexcept nogil:
        """Bring the levels of the windows up to date: how rare is each class, and how far have levels grown?

        A class with a share s of the events gets a part of the budget in proportion to s ** (1 - evenness). Recalls go by
        the true classes and precisions by the predicted ones, so given these a level is no matter of chance.
        """
        cdef double events = self.marks * self.spacing, total
        cdef int family, i
        cdef Rate* rate
        self.due = next_due(self.due)
        if self.spans == 0:
            return
        self.grow(min(1.0, events / self.ramp) ** 2)
        for family in range(2):
            rate, total = &self.rate[family * self.classes], 0.0
            for i in range(self.classes):
                total += (rate[i].n / events) ** (1.0 - self.evenness)
            for i in range(self.classes):
                rate[i].scale = (rate[i].n / events) ** -self.evenness / total if rate[i].n else 1.0
        for i in range(self.spans):
            if 1.2 * self.level(&self.span[i]) > self.span[i].reach:  # the rest is for a rate that moves
                self.span[i].rate.calm_until = self.span[i].rate.n

    @cython.final
    cdef void grow(self, double growth) noexcept nogil:
        """How far levels have grown, or fallen."""
        self.growth = growth
        self.youth = exp(-growth * (self.ramp / self.start) ** 2)  # of the events: exp(-(events / start)**2)

    @cython.final
    cdef int look(self, Span* span) noexcept nogil:
        """Find out where the value of a window stands: MOVED in or out of its warning bounds, CROSSED a detection bound."""
        cdef int found = 0, place = INSIDE, value = span.value, near = UNDER, most = largest(span.width)
        cdef Side* side = &span.side[0]
        # Limits that hold for long may put a value near both sides: then it is the one where the mean is not.
        if value > side.screen or (most - value <= span.side[1].screen and
                                   <double>value * span.rate.n > <double>most * span.rate.ones[0]):
            side, near, value = &span.side[1], OVER, most - value
        if value > side.screen:
            span.near = INSIDE
            span.low, span.room = span.side[0].screen + 1, most - span.side[1].screen - span.side[0].screen - 2
        else:
            span.near, span.low, span.room = near, NOWHERE, 0
            if value <= side.surely or (value <= side.warn and rarer(span, span.warn)):
                place = near
            if (value <= side.detect and rarer(span, self.level(span))) or self.together(span):
                found = CROSSED
        if place != span.place:
            self.outside += (place != INSIDE) - (span.place != INSIDE)
            span.place = place
            found |= MOVED
        return found

    @cython.final
    cdef void foresee(self, Rate* rate) noexcept nogil:
        """Find limits of the windows of a rate that hold for some observations to come, and have these looked at.

        More ones make a low value rarer, and more zeros make it less rare, whatever their order. So limits that hold for the
        counts now and for so many more of either hold for all in between.
        """
        cdef int64_t n = rate.n
        cdef int64_t[2] now = [rate.ones[0], n - rate.ones[0]], then
        cdef double ahead = min(n / 16.0, AHEAD * sqrt(<double>n)), part
        cdef Span* span
        cdef double[3] levels
        cdef int[3] count
        cdef int width, i, j
        for i in range(2):
            part = ahead * now[i] / n
            then[i] = now[i] + <int64_t>(part + sqrt(part)) + 1
        rate.calm_until, rate.ones_until, rate.zeros_until = FOREVER, then[0], then[1]
        for j in range(rate.span_end - rate.span):
            span = &rate.span[j]
            width = span.width
            if n <= opening(span):
                rate.calm_until = min(rate.calm_until, opening(span))
                continue
            levels = [min(span.warn, 1.5 * self.level(span)), span.warn, span.screen]
            span.reach, span.low, span.room = levels[0], NOWHERE, 0
            for i in range(2):
                if span.up if i else span.down:
                    quick(width, then[i] + now[1 - i], then[i], 3, levels, count)
                    span.side[i].detect = outermost(width, count[0])
                    span.side[i].warn = outermost(width, count[1])
                    span.side[i].screen = outermost(width, count[2])
                    if n >= LONG:
                        span.side[i].surely = critical(width, now[i] + then[1 - i], now[i], span.warn)
                        span.side[i].warn = critical(width, then[i] + now[1 - i], then[i], span.warn)
                        if span.screen == span.warn:
                            span.side[i].screen = span.side[i].warn

    @cython.final
    cdef double level(self, const Span* span) noexcept nogil:
        """The detection level of a window as of now; never above its warning level."""
        cdef double at = <double>span.rate.ones[0] / max(span.rate.n, 1) * STEPS
        cdef int step = min(<int>at, STEPS - 1)
        cdef double full = span.detect[step] + (at - step) * (span.detect[step + 1] - span.detect[step])
        return min(span.warn, full * span.rate.scale * (self.growth if span.grows else 1.0 + span.early * self.youth))

    @cython.final
    cdef bint together(self, const Span* span) noexcept nogil:
        """Whether a window and its partner are too rare together."""
        if span.partner == NULL or span.near == INSIDE or span.partner.near == INSIDE:
            return False
        if not rarer(span, self.attention) or not rarer(span.partner, self.attention):
            return False
        return rare(span) * rare(span.partner) <= self.growth * self.product

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

    def _rate(self, int r):
        """(n, ones, statistics) of a rate."""
        cdef Rate* rate = &self.rate[r]
        return rate.n, rate.ones[0], tuple([rate.test[i].statistic for i in range(rate.end - rate.test)])

    def _windows(self, int r):
        """(width, mean, warning level, detection level) of each window of a rate as of now; no levels before it is looked at."""
        cdef Rate* rate = &self.rate[r]
        cdef Span* span
        cdef int i
        found = []
        for i in range(rate.span_end - rate.span):
            span = &rate.span[i]
            levels = (span.warn, self.level(span)) if rate.n > opening(span) else (0.0, 0.0)
            found.append((span.width, mean(span), *levels))
        return found

    def _crossed(self):
        """(rate, test, whether downwards) for every test or window that stands outside its detection bounds.

        Windows count after the tests of their rate.
        """
        cdef int r, i
        cdef Test* test
        cdef Rate* rate
        cdef Span* span
        found = []
        for r in range(2 * self.classes):
            rate = &self.rate[r]
            for i in range(rate.end - rate.test):
                test = &rate.test[i]
                if test.place != INSIDE and self.examine(rate, test) & CROSSED:
                    found.append((r, i, test.place == UNDER))
            for i in range(rate.span_end - rate.span):
                span = &rate.span[i]
                if span.place != INSIDE and rarer(span, self.level(span)):
                    found.append((r, rate.end - rate.test + i, span.place == UNDER))
        return found

    def _together(self):
        """(rate, window, whether downwards, level) for two windows too rare together: the level is that left by the other."""
        cdef int r, i
        cdef Rate* rate
        cdef Span* span
        found = []
        for r in range(self.classes):
            rate = &self.rate[r]
            for i in range(rate.span_end - rate.span):
                span = &rate.span[i]
                if self.together(span):
                    level = min(self.attention, self.growth * self.product / rare(span.partner))
                    found.append((r, i, span.near == UNDER, level))
        return found

    def _confusion(self):
        cdef int i, j, classes = self.classes
        return tuple([tuple([self.confusion[i * classes + j] for j in range(classes)]) for i in range(classes)])

    def _marks(self, int64_t[:, ::1] rows):
        """Copy out the marks remembered, in order; return how many.

        A row is the observations of each rate and then the diagonal counts, 3 K in all.
        """
        cdef int level, i
        cdef int64_t number, newest, last, events
        cdef Py_ssize_t found = 0
        cdef int64_t* slot
        if self.past == NULL:
            return 0
        for level in reversed(range(LEVELS)):
            last = newest = self.marks >> level
            if level:  # the next level has those from here on
                last = ((self.marks >> level - 1) - SLOTS) // 2
            for number in range(max(1, newest - SLOTS + 1), last + 1):
                slot = self.slot(level, number)
                events = 0
                for i in range(self.classes):
                    events += slot[i]
                if events == (number << level) * self.spacing:  # else it was passed elsewhere
                    memcpy(&rows[found, 0], slot, 3 * self.classes * sizeof(int64_t))
                    found += 1
        return found

    def _moments(self, int64_t[:, ::1] rows):
        """As `_marks`, up to the latest events; then the counts before each of these. A change has an event before it."""
        cdef int64_t first = self.taken - self.kept, i, events
        cdef int classes = self.classes, j, truth, guess
        cdef Py_ssize_t found = self._marks(rows), row
        while found:
            events = 0
            for j in range(classes):
                events += rows[found - 1, j]
            if events < first:
                break
            found -= 1
        first = max(first, 1)
        if self.past == NULL or self.taken <= first:
            return found
        row = found + self.taken - first  # behind the last one: the counts now
        for j in range(2 * classes):
            rows[row, j] = self.rate[j].n
        for j in range(classes):
            rows[row, 2 * classes + j] = self.rate[j].ones[0]
        for i in range(self.taken - 1, first - 1, -1):
            row -= 1
            memcpy(&rows[row, 0], &rows[row + 1, 0], 3 * classes * sizeof(int64_t))
            truth, guess = self.recent[i % RECENT] // classes, self.recent[i % RECENT] % classes
            rows[row, truth] -= 1
            rows[row, classes + guess] -= 1
            rows[row, 2 * classes + truth] -= truth == guess
        return found + self.taken - first

    @property
    def _longest_past(self):
        """How many rows `_moments` needs at most."""
        return 0 if self.past == NULL else LEVELS * SLOTS + RECENT + 1

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

    def _window_state(self, uint64_t[:, ::1] bits, double[::1] weights):
        """Copy out the latest observations of each rate, the scales of their levels, and how far levels have grown."""
        cdef int i, j
        for i in range(2 * self.classes):
            for j in range(4):
                bits[i, j] = self.rate[i].bits[j]
            weights[i] = self.rate[i].scale
        weights[2 * self.classes] = self.growth

    def _set_window_state(self, const uint64_t[:, ::1] bits, const double[::1] weights):
        """Copy these in, after the counts."""
        cdef int i, j
        cdef Rate* rate
        cdef Span* span
        self.grow(weights[2 * self.classes])
        while self.due <= self.marks:
            self.due = next_due(self.due)
        for i in range(2 * self.classes):
            rate = &self.rate[i]
            rate.scale = weights[i]
            for j in range(4):
                rate.bits[j] = bits[i, j]
            for j in range(rate.span_end - rate.span):
                span = &rate.span[j]
                span.value = value(rate.bits, span.width)
            if rate.n:
                self.foresee(rate)
            for j in range(rate.span_end - rate.span):
                span = &rate.span[j]
                if rate.n > opening(span):
                    self.look(span)

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

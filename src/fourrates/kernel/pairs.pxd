"""What the other compiled modules build on."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t

from fourrates.kernel.window cimport largest

cdef enum:
    QUIET = 0
    WARNING = 1
    DRIFT = 2


cdef struct Grid:
    # The arrays of a Table, laid out as its docstring says.
    const float* near
    const float* far
    const float* few
    int64_t near_size, window, marks, rows, steps, counts


cdef enum:
    INSIDE = 0   # its warning bounds
    UNDER = 1
    OVER = 2
    MOVED = 1    # from one of these places to another
    CROSSED = 2  # a detection bound


cdef struct Test:
    # One statistic of one rate, and where it stands. While n <= calm_until and low <= statistic <= high, it stands where it
    # stood and no detection bound is crossed: the limits were found to hold for every count of ones reachable by then.
    double statistic, decay, gain, low, high
    int64_t calm_until
    int place                 # INSIDE, UNDER or OVER
    int table, warn, detect   # positions of the table and of the levels in it
    bint down, up             # the sides it watches
    int64_t row               # of the table, while n <= calm_until
    double lows[3]            # low and high by place
    double highs[3]
    int32_t hints[6]          # where they stood in the row before


cdef inline bint below(const Grid* grid, int level, int64_t n, int64_t zeros, double statistic,
                       int64_t row) noexcept nogil:
    """Whether the statistic lies under its lower bound, given `zeros` among n observations; `row` is used beyond the window."""
    cdef int64_t step
    if n <= grid.window:
        return statistic < grid.near[level * grid.near_size + n * (n + 1) // 2 + zeros]
    if zeros < grid.counts and statistic < grid.few[(level * grid.rows + row) * grid.counts + zeros]:
        return True
    step = <int64_t>(statistic * grid.steps) + 1
    return (step <= grid.steps and
            zeros <= n * <double>grid.far[(level * grid.rows + row) * (grid.steps + 1) + step])


cdef inline int stand(const Grid* grid, const Test* test, double statistic, int64_t n, int64_t ones, int64_t row,
                      int* found) noexcept nogil:
    """The place of a statistic, given `ones` among n observations; `found` is CROSSED where a detection bound is."""
    if test.down and below(grid, test.warn, n, n - ones, statistic, row):
        if below(grid, test.detect, n, n - ones, statistic, row):
            found[0] = CROSSED
        return UNDER
    if test.up and below(grid, test.warn, n, ones, 1.0 - statistic, row):
        if below(grid, test.detect, n, ones, 1.0 - statistic, row):
            found[0] = CROSSED
        return OVER
    return INSIDE


cdef inline int64_t horizon(const Grid* grid, int64_t n, int64_t* row) noexcept nogil:
    """How far to look ahead from n observations beyond the window: n / 32 more, within the row that answers for n."""
    cdef int64_t last = n + (n >> 5)
    row[0] = grid.marks // n
    if row[0] > 0:
        last = min(last, grid.marks // row[0])
    return last


cdef void look_ahead(const Grid* grid, Test* test, int place, int64_t n, int64_t ones, int64_t row,
                     int64_t last) noexcept nogil


cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil


cdef class Table:
    cdef readonly double decay
    cdef readonly tuple levels
    cdef readonly object near, far, few
    cdef Grid grid

    cdef int check(self, int level, int64_t n, int64_t ones) except -1


cdef class Pairs:
    cdef public dict _codes             # from label to code
    cdef public object _labels, parameters  # not used here; a slot in the Python base would clash with the kernel's layout
    cdef readonly int64_t events        # since construction or reset()
    cdef int64_t since                  # the event that opened the present warning, or -1
    cdef readonly bint drift_detected
    cdef readonly bint warning_detected

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil


cdef enum:
    STEPS = 20  # of a rate, from one level of a window to the next


cdef struct Rate


cdef struct Side:
    # How low a window's value, or its mirror image, must be to matter. While its rate is calm a value above `screen` is not
    # worth holding together with another, one above `warn` is inside its warning bound, one up to `surely` is outside, and
    # one above `detect` is inside its detection bound.
    int screen, warn, surely, detect


cdef struct Span:
    # A window over the last observations of a rate, and where its value stands. While it is at least `low`, and by no more
    # than `room`, there is nothing to look at.
    int width, value, place, low
    uint32_t room
    int unit, oldest_at, middle_at  # what a one adds to the value; where in their words the bits are that leave
    const uint64_t* oldest    # the window,
    const uint64_t* middle    # and its newer half
    Side[2] side              # UNDER, OVER
    int near                  # the side on which it is rare enough to be held together with another, else INSIDE
    double screen, warn, reach  # levels; the limits of `side` hold for detection levels up to `reach`
    double[STEPS + 1] detect  # detection levels for rates of 0, 1 / STEPS, ... 1
    bint down, up, grows      # the sides it watches, and whether its detection level grows after a restart,
    double early              # or by what part of itself it is larger at first
    Rate* rate
    Span* partner             # the window of the other recall that it is held together with, if any


cdef struct Rate:
    int64_t n
    Test* test                # the first of its tests,
    Test* end                 # and behind the last
    int64_t* ones             # the diagonal count of its class: a right prediction is a one for recall and precision alike
    Span* span                # the first of its windows,
    Span* span_end            # and behind the last
    int64_t calm_until, ones_until, zeros_until  # so many observations, ones and zeros: the limits of its windows hold
    double scale              # of the detection levels of its windows, by how rare its class is
    bint long                 # whether a window has 128 observations or more: the last two words are not kept otherwise
    uint64_t[4] bits          # the latest observations


cdef inline int64_t opening(const Span* span) noexcept nogil:
    """Up to how many observations of a rate its window is not looked at: held against a mean mostly its own, it shows little."""
    return span.width * (4 if span.grows else 2)


cdef inline double mean(const Span* span) noexcept nogil:
    """The mean over a window, or over all observations while they are fewer; 1/2 without any, as R begins."""
    if span.rate.n < span.width:
        return <double>span.rate.ones[0] / span.rate.n if span.rate.n else 0.5
    return <double>span.value / largest(span.width)


cdef class FourRates(Pairs):
    cdef int classes, tests, spans
    cdef Rate* rate               # recall of class 0 .. K - 1, then precision of class 0 .. K - 1
    cdef Test* test               # the tests of rate 0, of rate 1, ...
    cdef Span* span               # the windows, likewise
    cdef int64_t* confusion       # by true class, then by predicted class
    cdef int outside              # how many tests and windows stand outside their warning bounds
    cdef tuple tables
    cdef Grid* grid               # one a table
    cdef double attention, product  # two windows held together alarm when both chances are at most the one, their product the other
    cdef double ramp, start       # events until levels are full-grown, and until those that fall have fallen
    cdef double evenness          # how evenly classes share the budget, 0 to 1
    cdef double growth, youth     # of the levels of windows that grow, so far; what is left of the early part of others
    cdef int64_t due              # the mark at which scales and growth are next brought up to date
    cdef int64_t* past            # levels by slots by 3 K: the observations of each rate, then the diagonal counts
    cdef int64_t spacing, marks, until  # events between two marks, marks passed, events to the next
    cdef uint16_t* recent         # a ring of the latest events: true class times K plus predicted class
    cdef int64_t taken, kept      # events since the restart, and how many of the latest the ring has

    cdef void remember(self) noexcept nogil
    cdef void keep(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size) noexcept nogil
    cdef int64_t* slot(self, int level, int64_t number) noexcept nogil
    cdef void weigh(self) noexcept nogil
    cdef void grow(self, double growth) noexcept nogil
    cdef int look(self, Span* span) noexcept nogil
    cdef void foresee(self, Rate* rate) noexcept nogil
    cdef double level(self, const Span* span) noexcept nogil
    cdef bint together(self, const Span* span) noexcept nogil
    cdef int examine(self, Rate* rate, Test* test) noexcept nogil

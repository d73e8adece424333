"""Bounds of the decayed statistic, looked up and looked ahead."""

from libc.stdint cimport int32_t, int64_t


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
    # One statistic of one rate: what it is and what it is held against.
    double decay, gain
    int warn, detect          # positions of the levels in the table
    bint down, up             # the sides it watches


cdef struct Limits:
    double low, high


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


cdef inline int classify(const Grid* grid, const Test* test, double statistic, int64_t n, int64_t ones, int64_t row,
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


cdef Limits look_ahead(const Grid* grid, const Test* test, int place, int64_t n, int64_t ones, int64_t row,
                       int64_t last) noexcept nogil


cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil


cdef class Table:
    cdef readonly double decay
    cdef readonly tuple levels
    cdef readonly object near, far, few
    cdef Grid grid

    cdef int check(self, int level, int64_t n, int64_t ones) except -1

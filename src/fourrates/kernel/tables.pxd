"""Bounds of the decayed statistic, looked up."""

from libc.stdint cimport int32_t, int64_t


cdef struct Grid:
    # The arrays of a Table, laid out as in its docstring.
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
    # One statistic of one rate and its bounds.
    Grid grid
    double decay, gain
    int warn, detect          # positions of the levels in the table
    bint down, up             # the sides it watches


cdef inline int64_t row_of(const Grid* grid, int64_t n) noexcept nogil:
    """The row that answers for n observations beyond the window."""
    return <int64_t>(grid.marks / <double>n)  # a division of integers takes several times as long


cdef inline bint below(const Grid* grid, int level, int64_t n, int64_t zeros, double statistic,
                       int64_t row) noexcept nogil:
    """Whether the statistic lies under its lower bound, given `zeros` among n observations.

    Beyond the window, `row` answers.
    """
    cdef int64_t step
    if n <= grid.window:
        return statistic < grid.near[level * grid.near_size + n * (n + 1) // 2 + zeros]
    if zeros < grid.counts and statistic < grid.few[(level * grid.rows + row) * grid.counts + zeros]:
        return True
    step = <int64_t>(statistic * grid.steps) + 1
    return (step <= grid.steps and
            zeros <= n * <double>grid.far[(level * grid.rows + row) * (grid.steps + 1) + step])


cdef inline int classify(const Test* test, double statistic, int64_t n, int64_t ones, int* found) noexcept nogil:
    """The place of a statistic, given `ones` among n observations; `found` gets CROSSED if a detection bound is."""
    cdef const Grid* grid = &test.grid
    cdef int64_t row = row_of(grid, n)
    if test.down and below(grid, test.warn, n, n - ones, statistic, row):
        if below(grid, test.detect, n, n - ones, statistic, row):
            found[0] |= CROSSED
        return UNDER
    if test.up and below(grid, test.warn, n, ones, 1.0 - statistic, row):
        if below(grid, test.detect, n, ones, 1.0 - statistic, row):
            found[0] |= CROSSED
        return OVER
    return INSIDE


cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil


cdef class Table:
    cdef readonly double decay
    cdef readonly tuple levels
    cdef readonly object near, far, few
    cdef Grid grid

    cdef int check(self, int level, int64_t n, int64_t ones) except -1

"""The bounds of the statistic R for every count of observations and ones, as :mod:`fourrates.null` computes them."""

from libc.stdint cimport int64_t

cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil:
    """The lower bound, given `zeros` among n observations."""
    if n <= grid.window:
        return grid.near[level * grid.near_size + n * (n + 1) // 2 + zeros]
    cdef double share = <double>zeros / n, found
    cdef int64_t row = row_of(grid, n), low = 0, high = grid.steps, mid
    cdef const float* largest = grid.far + (level * grid.rows + row) * (grid.steps + 1)
    while low < high:  # the largest share falls along the row
        mid = (low + high + 1) >> 1
        if largest[mid] >= share:
            low = mid
        else:
            high = mid - 1
    found = <double>low / grid.steps
    if zeros < grid.counts:
        found = max(found, <double>grid.few[(level * grid.rows + row) * grid.counts + zeros])
    return found


cdef class Table:
    """Lower bounds of the statistic for every (n, zeros), at several levels; the upper ones are their mirror image.

    Up to `window` observations each bound is stored. Beyond, a row answers for all n between two marks. It holds, for
    each of `steps + 1` equally spaced values x, the largest share of zeros at which a statistic below x is still as
    rare as the level. Looking up a bound is a search; testing a statistic is one comparison. For a few zeros a
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
        """How many observations are distinguished exactly; beyond, only the most recent ones weigh."""
        return self.grid.window

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

"""The arithmetic behind :mod:`fourrates.null`. It carries the law of R given (n, k) on a lattice.

A row holds the distribution function of the statistic given k ones among n observations, at equally spaced points,
for every k at once. One observation more is one blend of neighbouring rows. Nothing here knows levels of people,
files or caches: :mod:`fourrates.null` decides those.
"""

from libc.math cimport INFINITY, ceil, floor, log, nextafterf
from libc.stdlib cimport calloc, free, malloc

import numpy as np

cdef extern from "law.h":
    void fourrates_blend(float* out, const float* a, const float* b, Py_ssize_t size, float c0, float c1,
                         float c2) noexcept nogil


cdef float rounded_down(double value) noexcept nogil:
    """The largest single-precision number that is not above `value`."""
    cdef float single = <float>value
    return nextafterf(single, -1.0) if single > value else single


cdef struct Row:
    float* store   # the memory this row owns
    float* cdf     # P(statistic <= point) at the points first .. first + size - 1
    long first     # below it the function counts as 0,
    long size      # from first + size on as 1


cdef inline float value_at(Row* row, long i) noexcept nogil:
    if i < row.first:
        return 0.0
    if i >= row.first + row.size:
        return 1.0
    return row.cdf[i - row.first]


cdef void add(float* out, long base, long first, long last, Row* row, long shift, float weight) noexcept nogil:
    """Add `weight` times the row, moved up by `shift`, to the points first .. last - 1 of `out`, from `base` on."""
    cdef long begin = max(first, row.first + shift), end = max(min(last, row.first + row.size + shift), begin), i
    cdef float* source = row.cdf - row.first - shift
    for i in range(begin, end):
        out[i - base] += weight * source[i]
    for i in range(max(end, first), last):
        out[i - base] += weight


cdef class Lattice:
    """The law of R given k ones among n, for k = 0 .. n, started at n = 0.

    Between two coarsenings the lattice lives in the units of Q = R / decay**phase, in which one more observation
    moves a value by a constant instead of shrinking every value, a unit-stride loop. Values between two points are
    split onto both so that the mean is kept; :mod:`fourrates.null` proves the price of that.

    Parameters
    ----------
    decay : the factor eta
    spacing : distance of two lattice points, in units of R, right after a coarsening
    stride : observations between two coarsenings
    rows : the largest n that is needed
    width : points a row can hold
    floor_cut, ceil_cut : probabilities below which the lower (upper) end of a row is dropped
    """

    cdef readonly double decay, spacing
    cdef readonly long n
    cdef long stride, phase, width, rows
    cdef float floor_cut, ceil_cut
    cdef Row* row
    cdef float* scratch

    def __cinit__(self, double decay, double spacing, long stride, long rows, long width,
                  double floor_cut, double ceil_cut):
        self.decay, self.spacing, self.stride, self.width, self.rows = decay, spacing, stride, width, rows
        self.floor_cut, self.ceil_cut = <float>floor_cut, <float>(1.0 - ceil_cut)
        self.row = <Row*>calloc(rows + 1, sizeof(Row))  # no store yet, should a later allocation fail
        self.scratch = <float*>malloc(width * sizeof(float))
        cdef long k
        if self.row == NULL or self.scratch == NULL:
            raise MemoryError
        for k in range(rows + 1):
            self.row[k].store = <float*>malloc(width * sizeof(float))
            if self.row[k].store == NULL:
                raise MemoryError
        # One atom at 1/2, which may lie between two points.
        cdef double at = 0.5 / spacing
        cdef long below = <long>floor(at)
        self.row[0].cdf = self.row[0].store
        self.row[0].cdf[0] = <float>(1.0 - (at - below))
        self.row[0].first, self.row[0].size = below, 1

    def __dealloc__(self):
        cdef long k
        if self.row != NULL:
            for k in range(self.rows + 1):
                free(self.row[k].store)
        free(self.row)
        free(self.scratch)

    cdef double unit(self, long phase) noexcept nogil:
        cdef double value = self.spacing
        for _ in range(phase):
            value *= self.decay
        return value

    cdef void replace_row(self, long k, long first, long size) noexcept nogil:
        """Make the scratch row the k-th, its negligible ends dropped."""
        cdef Row* row = &self.row[k]
        cdef float* cdf = self.scratch
        self.scratch, row.store = row.store, cdf
        while size > 0 and cdf[0] < self.floor_cut:
            cdf += 1
            first += 1
            size -= 1
        while size > 0 and cdf[size - 1] >= self.ceil_cut:
            size -= 1
        row.cdf, row.first, row.size = cdf, first, size

    cdef void blend(self, long n, long k, double step) noexcept nogil:
        """Row k at n - 1 becomes row k at n. The newest bit is a one, `step` points worth, with probability k / n."""
        cdef Row* zero = &self.row[k]
        cdef Row* one = &self.row[k - 1]
        cdef long shift = <long>floor(step)
        cdef double part = step - shift, share = <double>k / n
        cdef float c0 = <float>(1.0 - share), c1 = <float>(share * (1.0 - part)), c2 = <float>(share * part)
        cdef long first = one.first + shift, last = one.first + one.size + shift + 1, i
        if k == n:  # there is no such row yet, and its weight is 0
            zero.first, zero.size, zero.cdf = first, 0, zero.store
        cdef long inner = max(first + 1, zero.first), outer = min(last - 1, zero.first + zero.size)
        first, last = min(first, zero.first), max(last, zero.first + zero.size)
        # A row that outgrows its memory counts as 1 sooner, so the bound moves outwards, never inwards.
        last = min(last, first + self.width)
        inner = min(inner, last)
        outer = max(min(outer, last), inner)
        fourrates_blend(self.scratch + (inner - first), zero.cdf + (inner - zero.first),
                        one.cdf + (inner - shift - 1 - one.first), outer - inner, c0, c1, c2)
        for i in range(first, inner):
            self.scratch[i - first] = 0.0
        for i in range(outer, last):
            self.scratch[i - first] = 0.0
        add(self.scratch, first, first, inner, zero, 0, c0)
        add(self.scratch, first, first, inner, one, shift, c1)
        add(self.scratch, first, first, inner, one, shift + 1, c2)
        add(self.scratch, first, outer, last, zero, 0, c0)
        add(self.scratch, first, outer, last, one, shift, c1)
        add(self.scratch, first, outer, last, one, shift + 1, c2)
        self.replace_row(k, first, last - first)

    cdef void coarsen(self, double factor, long[::1] source, float[:, ::1] weight) noexcept nogil:
        """Bring every row from the units of Q back to those of R, moving a point to factor * point and splitting it.

        The new value at i is a mean of the old ones at source[i], + 1 and + 2, the same for every row; two points more
        cannot fall into one cell, for the factor is above 1/2.
        """
        cdef long k, i, s, first, last
        cdef Row* row
        cdef double kept0, kept1
        for i in range(source.shape[0]):
            s = <long>floor(i / factor)
            while factor * s > i:
                s -= 1
            while factor * (s + 1) <= i:
                s += 1
            kept0 = max(i + 1 - factor * (s + 1), 0.0)
            kept1 = max(i + 1 - factor * (s + 2), 0.0)
            source[i] = s
            weight[0, i], weight[1, i], weight[2, i] = <float>(1.0 - kept0), <float>(kept0 - kept1), <float>kept1
        for k in range(self.n + 1):
            row = &self.row[k]
            first, last = <long>floor(factor * row.first), <long>ceil(factor * (row.first + row.size))
            last = min(last, first + self.width, source.shape[0])
            for i in range(first, last):
                s = source[i]
                if s >= row.first and s + 2 < row.first + row.size:
                    s -= row.first
                    self.scratch[i - first] = (weight[0, i] * row.cdf[s] + weight[1, i] * row.cdf[s + 1]
                                               + weight[2, i] * row.cdf[s + 2])
                else:
                    self.scratch[i - first] = (weight[0, i] * value_at(row, s) + weight[1, i] * value_at(row, s + 1)
                                               + weight[2, i] * value_at(row, s + 2))
            self.replace_row(k, first, last - first)

    cdef double quantile(self, long k, double level, double unit) noexcept nogil:
        """The largest lattice point x with P(statistic < x) <= level, in units of R."""
        cdef Row* row = &self.row[k]
        cdef long low = 0, high = row.size, mid
        while low < high:
            mid = (low + high) >> 1
            if row.cdf[mid] <= level:
                low = mid + 1
            else:
                high = mid
        return (row.first + low) * unit

    def advance(self, long limit, double[::1] levels, double margin, float[:, ::1] triangle):
        """Take observations up to the next coarsening or `limit`; note each law's lower bounds in `triangle`.

        `triangle[l, n (n + 1) / 2 + zeros]` receives the quantile at `levels[l]` less `margin`.
        """
        cdef long steps = min(12, self.stride - self.phase, limit - self.n), start = self.n, front, r, k, n
        cdef double unit
        cdef Py_ssize_t level
        cdef long points = <long>(1.0 / self.spacing) + 3
        cdef long[::1] source = np.empty(points, np.dtype("l"))
        cdef float[:, ::1] weight = np.empty((3, points), np.float32)
        with nogil:
            # Rows that are still in the cache take their next step. At each front, step 1 on row `front`, step 2 on
            # the row above it, and so on. Every step finds both its rows exactly one observation old.
            for front in range(start + 1, -steps, -1):
                unit = self.unit(self.phase)
                for r in range(1, steps + 1):
                    n, k = start + r, front + r - 1
                    unit *= self.decay
                    if k < 0 or k > n:
                        continue
                    if k > 0:
                        self.blend(n, k, (1.0 - self.decay) / unit)
                    for level in range(levels.shape[0]):
                        triangle[level, n * (n + 1) // 2 + n - k] = rounded_down(
                            max(self.quantile(k, levels[level], unit) - margin, 0.0))
            self.n += steps
            self.phase += steps
            if self.phase == self.stride:
                self.coarsen(self.unit(self.phase) / self.spacing, source, weight)
                self.phase = 0

    def column(self, double x, double[::1] out):
        """Fill `out[m]` with P(statistic < x | m zeros), x rounded up to the lattice."""
        cdef double unit = self.unit(self.phase)
        cdef long i = <long>ceil(x / unit), m
        with nogil:
            for m in range(self.n + 1):
                out[m] = value_at(&self.row[self.n - m], i - 1)

    def plugin(self, double level, double margin, float[::1] out):
        """Fill `out[zeros]` with the lower bound when the bits are independent with chance 1 - zeros / n of a one."""
        cdef double unit = self.unit(self.phase)
        cdef long zeros, low, high, mid, k, top = <long>ceil(1.0 / unit) + 1
        cdef double[::1] weight = np.empty(self.n + 1), odds = odds_of(self.n)
        cdef long first = 0, last = 0
        cdef double total, mass
        with nogil:
            high = top
            for zeros in range(self.n + 1):
                mass = spread(weight, &odds[0], self.n, MANY, MANY * zeros / self.n if self.n else 0.0, &first, &last)
                low, high = 0, min(high + 1, top)  # more zeros, lower bound, because the last answer caps this one
                while low < high:
                    mid = (low + high + 1) >> 1
                    total = 0.0
                    for k in range(first, last + 1):
                        total += weight[k] * value_at(&self.row[self.n - k], mid - 1)
                    if total <= level * mass:
                        low = mid
                    else:
                        high = mid - 1
                out[zeros] = rounded_down(max(low * unit - margin, 0.0))


cdef double MANY = 2.0**40  # so large a population that drawing from it is as good as independent
cdef double NEGLIGIBLE = 1e-18  # next to the largest weight of a law whose tail of 1e-9 is the smallest needed


cdef double[::1] odds_of(long window):
    """The factor of a hypergeometric weight for one zero more among the draws, apart from the rest of the population."""
    m = np.arange(window + 1)
    return (window - m) / (m + 1)


cdef double spread(double[::1] weight, const double* odds, long window, double population, double zeros, long* first,
                   long* last) noexcept nogil:
    """Hypergeometric weights of m zeros in the window, first <= m <= last, and their sum; the rest is negligible."""
    cdef double ones = population - zeros, total = 1.0, w
    cdef long mode = <long>floor((window + 1.0) * (zeros + 1.0) / (population + 2.0)), m
    mode = max(min(mode, window), 0)
    mode = max(mode, <long>ceil(window - ones))
    mode = min(mode, <long>floor(zeros))
    weight[mode] = 1.0
    # Quotients first, because one need not wait for the weight before it.
    m, w = mode, 1.0
    while m < window and zeros - m > 0.0:
        w *= odds[m] * ((zeros - m) / (ones - window + m + 1.0))
        if w < NEGLIGIBLE:
            break
        m += 1
        weight[m] = w
        total += w
    last[0] = m
    m, w = mode, 1.0
    while m > 0 and ones - window + m > 0.0:
        w *= (ones - window + m) / (odds[m - 1] * (zeros - m + 1.0))
        if w < NEGLIGIBLE:
            break
        m -= 1
        weight[m] = w
        total += w
    first[0] = m
    return total


cdef void mixture(double[::1] tail, double[::1] weight, const double* odds, long window, double population, double zeros,
                  double* mean, double* more) noexcept nogil:
    """The mean of `tail` over the zeros in the window, for `zeros` in the population and for one more."""
    cdef long first = 0, last = 0, m
    cdef double here = 0.0, there, extra, w
    cdef double mass = spread(weight, odds, window, population, zeros, &first, &last)
    # With one zero more in the population, m + 1 zeros in the window weigh odds[m] times the present weight of m, up to a
    # common factor. The first of all has none below it.
    extra = weight[first] * (population - zeros - window + first) / (zeros + 1.0 - first)
    there = extra * tail[first]
    for m in range(first, min(last + 1, window)):
        here += weight[m] * tail[m]
        w = weight[m] * odds[m]
        extra += w
        there += w * tail[m + 1]
    if last == window:
        here += weight[last] * tail[last]
    mean[0] = here / mass
    more[0] = there / extra if extra > 0.0 else INFINITY


cdef double CLOSE = 0.99, AIM = 0.996  # of a level; near enough if no two neighbouring counts enclose it


cdef class Search:
    """How many zeros a population may hold before the mean of a tail passes a level, for ever steeper tails.

    Each population answers for every smaller one with the same share of zeros (the subsampling lemma in
    :mod:`fourrates.null`), provided the tail is convex in the zeros of the window: :meth:`refine` sees to that.

    Parameters
    ----------
    window : the number of draws
    populations : the sizes that answer for smaller ones
    least : for each, the smallest size it is used for
    levels : the most that the mean of a tail may be
    few : levels by populations by counts; receives the first bound at which so many zeros among `least` are few enough
    """

    cdef double[::1] populations, least, levels, weight, odds, raw
    cdef double[:, ::1] zeros, increment, growth, slope
    cdef long[:, ::1] reached
    cdef float[:, :, ::1] few
    cdef long window

    def __cinit__(self, long window, double[::1] populations, double[::1] least, double[::1] levels,
                  float[:, :, ::1] few):
        shape = (levels.shape[0], populations.shape[0])
        self.window, self.populations, self.least, self.levels, self.few = window, populations, least, levels, few
        self.weight, self.odds, self.raw = np.empty(window + 1), odds_of(window), np.empty(window + 1)
        self.reached = np.zeros(shape, np.dtype("l"))
        self.zeros, self.growth = np.full(shape, -1.0), np.ones(shape)
        self.increment, self.slope = np.zeros(shape), np.zeros(shape)

    def refine(self, double bound, double[::1] tail):
        """Take the tail of the next bound, a lower one; return the largest zeros found safe, level by population.

        `tail[m]` is a probability given m zeros in the window; a convex majorant takes its place. A count between two
        integers is the two mixed in proportion; at -1 even no zero at all is too many.
        """
        cdef double slope = 0.0, rise, previous = tail[0]
        cdef long m
        cdef Py_ssize_t level, p
        with nogil:
            self.raw[:] = tail
            for m in range(1, self.window + 1):
                rise = tail[m] - previous
                previous = tail[m]
                slope = max(slope, rise)
                tail[m] = tail[m - 1] + slope
            for level in range(self.levels.shape[0]):
                if tail[0] > self.levels[level]:
                    continue
                for p in range(self.populations.shape[0]):
                    self.solve(tail, level, p)
                    self.count(bound, level, p)
        return np.asarray(self.zeros)

    cdef void count(self, double bound, Py_ssize_t level, Py_ssize_t p) noexcept nogil:
        """Note the bound for every small number of zeros that it is now low enough for."""
        cdef long zeros = self.reached[level, p]
        cdef double value = 0.0, more = 0.0
        while zeros < self.few.shape[2] and zeros <= self.least[p]:
            mixture(self.raw, self.weight, &self.odds[0], self.window, self.least[p], zeros, &value, &more)
            if value > self.levels[level]:
                break
            self.few[level, p, zeros] = rounded_down(bound)
            zeros += 1
        self.reached[level, p] = zeros

    cdef void solve(self, double[::1] tail, Py_ssize_t level, Py_ssize_t p) noexcept nogil:
        cdef double target = self.levels[level], population = self.populations[p]
        cdef double before = max(self.zeros[level, p], 0.0), slope = self.slope[level, p]
        cdef double low = floor(before), high = population, found, value = 0.0, more = 0.0, z
        cdef long tries = 0
        # The answer lies in low .. high. Guess from the last two answers, then follow the slope of the logarithm; from
        # the fourth guess on, halve every other time.
        z = before + self.increment[level, p] * self.growth[level, p]
        while True:
            z = min(max(floor(z), low), high)
            mixture(tail, self.weight, &self.odds[0], self.window, population, z, &value, &more)
            tries += 1
            if value <= target:
                found = z
                if z >= population:
                    break
                if more > target:
                    found += (target - value) / (more - value)
                    break
                if more >= CLOSE * target:
                    found += 1.0
                    break
                low = z + 1.0
            else:
                high = z - 1.0
                if high < low:  # the last answer, safe for a higher tail, is safe for this one
                    found = low
                    break
            if value > 0.0 and more > value:
                slope = log(more / value)
            if slope > 0.0 and value > 0.0 and (tries < 4 or tries % 2):
                z += log(AIM * target / value) / slope
            else:
                z = 0.5 * (low + high) if tries > 4 else 2.0 * z + 1.0
        # A tail that is nowhere higher keeps safe counts safe, though its majorant may be higher here and there.
        found = max(found, self.zeros[level, p])
        self.growth[level, p] = (found - before) / self.increment[level, p] if self.increment[level, p] > 0.0 else 1.0
        self.growth[level, p] = min(max(self.growth[level, p], 0.5), 2.0)
        self.increment[level, p] = found - before
        self.zeros[level, p] = found
        self.slope[level, p] = slope

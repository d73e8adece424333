"""Windows: the mean of a rate's last few observations, and its exact law given the counts.

The value of a window counts its ones, and among windows with equally many those with fewer ones in the newer half come
first: value = (half + 1) * ones + ones in the newer half. That is a weighted mean of the bits, the newer half weighing a
hair more, and it tells apart about as many cases as a decayed mean does.

While the concept is stable every arrangement of the k ones among n observations is equally likely. So the ones in the
window are hypergeometric given (n, k), and those in its newer half hypergeometric given the ones in the window. The chance
of a value, or less, is a sum of a few dozen products: there is nothing to be tabulated, and nothing is rounded but doubles.
"""

from libc.math cimport NAN, log, sqrt
from libc.stdint cimport int64_t

EXACTLY = NAN  # no level: compares with nothing
cdef double NEGLIGIBLE = 1e-13  # of a sum
cdef double TINY = 1e-30  # a chance; smaller ones are looked for from there


cdef double ratio(double above, double under, int count) noexcept nogil:
    """above (above - 1) ... / (under (under - 1) ...), so many factors each."""
    # Two factors as far from the middle one make a difference of squares, and there is one division for eight of them.
    cdef double found = 1.0, distance = 0.5
    cdef double[4] square
    cdef int i, pairs = count // 2
    above -= 0.5 * (count - 1)
    under -= 0.5 * (count - 1)
    if count & 1:
        found, distance = above / under, 1.0
    above *= above
    under *= under
    for i in range(0, pairs - 3, 4):
        square = [distance * distance, (distance + 1) * (distance + 1),
                  (distance + 2) * (distance + 2), (distance + 3) * (distance + 3)]
        found *= (((above - square[0]) * (above - square[1])) * ((above - square[2]) * (above - square[3])) /
                  (((under - square[0]) * (under - square[1])) * ((under - square[2]) * (under - square[3]))))
        distance += 4
    for i in range(pairs & 3):
        found *= (above - distance * distance) / (under - distance * distance)
        distance += 1
    return found


cdef double mass(int width, int64_t n, int64_t ones, int count) noexcept nogil:
    """The chance of `count` ones in a window, given `ones` among n observations."""
    if count < 0 or count > ones or width - count > n - ones:
        return 0.0
    return ratio(width, count, count) * ratio(ones, n, count) * ratio(n - ones, n - count, width - count)


cdef inline double step_down(int width, int64_t n, int64_t ones, int count) noexcept nogil:
    """mass(count - 1) / mass(count)."""
    return (<double>count * <double>(n - ones - width + count) /
            (<double>(ones - count + 1) * <double>(width - count + 1)))


cdef double lower_tail(int width, int64_t n, int64_t ones, int count, double first) noexcept nogil:
    """The chance of `count` ones or fewer, given that of `count`; what is negligible beside it is left out."""
    cdef double total = first
    while count > 0 and first > NEGLIGIBLE * total:
        first *= step_down(width, n, ones, count)
        total += first
        count -= 1
    return total


cdef double chance(int width, int64_t n, int64_t ones, int value, double level) noexcept nogil:
    """The chance of this value or less in a window, given `ones` among n observations, n no fewer than `width`.

    With a level it is enough that what is found is above it if the chance is, and not if not.
    """
    cdef int half = width // 2, count = value // weight(width), newer = value % weight(width)
    cdef double here = mass(width, n, ones, count)
    cdef double fewer
    if here == 0.0:
        return 1.0 if count > ones else 0.0
    fewer = lower_tail(width, n, ones, count, here) - here
    if fewer > level:
        return fewer
    if fewer + here <= level or newer >= min(half, count):
        return fewer + here
    # mass() is zero where the older half cannot hold the rest.
    return fewer + here * lower_tail(half, width, count, newer, mass(half, width, count, newer))


cdef void quick(int width, int64_t n, int64_t ones, int levels, const double* level, int* found) noexcept nogil:
    """For each of some rising levels the number of ones of the largest value whose chance is at most the level, or 1 more."""
    cdef double rest
    climb(width, n, ones, levels, level, found, &rest)


cdef void climb(int width, int64_t n, int64_t ones, int levels, const double* level, int* found,
                double* rest) noexcept nogil:
    """As `quick`; `rest` is what part of the windows with so many ones the last level leaves room for."""
    cdef int least = <int>max(0, width - (n - ones)), most = <int>min(width, ones), count, i
    cdef double share = <double>ones / n, part, fewer
    # From about where a normal law has the lowest level, down to where no more than that is left, and up again.
    count = <int>(width * share - sqrt(-2.0 * log(max(level[0], TINY)) * width * share * (1.0 - share)))
    count = max(least, min(most, count))
    part = mass(width, n, ones, count)
    fewer = lower_tail(width, n, ones, count, part) - part
    while count > least and fewer > level[0]:
        part *= step_down(width, n, ones, count)
        count -= 1
        fewer = lower_tail(width, n, ones, count, part) - part
    for i in range(levels):
        while count <= most and fewer + part <= level[i]:
            fewer += part
            count += 1
            if count <= most:
                part /= step_down(width, n, ones, count)
        found[i] = count
    rest[0] = (level[levels - 1] - fewer) / part if count <= most else 0.0


cdef int critical(int width, int64_t n, int64_t ones, double level) noexcept nogil:
    """The largest value whose chance is at most the level, or -1."""
    cdef int half = width // 2, count, newer, last
    cdef double rest, part, total = 0.0
    climb(width, n, ones, 1, &level, &count, &rest)
    if count > min(width, ones):
        return largest(width)
    # Of the windows with so many ones those with the fewest in the newer half.
    newer, last = max(0, count - (width - half)), min(half, count)
    part = mass(half, width, count, newer)
    if newer == last or part > rest:
        return count * weight(width) - 1 + newer
    while newer < last and total + part <= rest:
        total += part
        newer += 1
        part /= step_down(half, width, count, newer)
    return count * weight(width) - 1 + newer


class Window:
    """Bounds of the mean over a window, given what was observed.

    Parameters
    ----------
    width : int
        How many of the last observations, from 2 to 255.

    Examples
    --------
    A rate of 0.9 over ten thousand observations. How low may the mean of the last hundred fall by chance once in a thousand?

    >>> from fourrates.kernel.window import Window
    >>> round(Window(100).lower(1e-3, 10_000, 9_000), 3)
    0.796
    """

    __slots__ = ("width",)

    def __init__(self, int width):
        if not 2 <= width <= LONGEST:
            raise ValueError(f"window {width} is not from 2 to {LONGEST} observations")
        self.width = width

    def critical(self, double level, int64_t n, int64_t ones):
        """The largest value that is as rare as this level, or -1."""
        check(n, ones)
        return critical(self.width, n, ones, level) if n >= self.width and level > 0 else -1

    def lower(self, double level, int64_t n, int64_t ones):
        """The lower bound at this level: a mean below it is as rare as that; 0 before the window is full."""
        return <double>(self.critical(level, n, ones) + 1) / largest(self.width)

    def upper(self, double level, int64_t n, int64_t ones):
        """The upper bound at this level; 1 before the window is full."""
        return 1.0 - self.lower(level, n, n - ones)

    def p_value(self, int value, int64_t n, int64_t ones):
        """The chance of this value or less."""
        check(n, ones)
        if n < self.width:
            raise ValueError(f"a window of {self.width} is not full after {n} observations")
        if not 0 <= value <= largest(self.width):
            raise ValueError(f"value {value} of a window of {self.width} is not from 0 to {largest(self.width)}")
        return chance(self.width, n, ones, value, EXACTLY)


cdef int check(int64_t n, int64_t ones) except -1:
    if not 0 <= ones <= n:
        raise ValueError(f"k = {ones} ones among n = {n} observations is not possible")
    return 0

"""Dispersion: how much more the right ones in blocks of observations scatter than those of independent events."""

from libc.math cimport floor, sqrt
from libc.stdint cimport int16_t, int64_t, uint8_t

cdef enum:
    SMALLEST = 8          # observations in the smallest block; each next one is twice as large
    LEVELS = 10           # sizes of blocks that are added up: 8, 16, 32, ... 4096
    BLOCKS = 8            # and those by which dispersion is estimated: all but 16 and 64
    PERIOD = 8192         # observations in a pair of the largest blocks
    UNITS = 4             # blocks are kept in quarters


cdef struct Dispersion:
    # Differences of successive blocks, squared, over their expectation given how many right ones the two hold together, so a
    # change of the rate alone does not make dispersion.
    float[BLOCKS] squares       # their sum so far
    int16_t[LEVELS] first       # the first block of the present pair: right ones, or residuals, in quarters
    uint8_t[BLOCKS] pairs       # how many were added up


cdef struct Tempering:
    # How dispersion is estimated and used.
    float inflation         # dispersion beyond 1 counts for this much
    float scale             # nats that an alternative needs to be found, which makes its scale in observations
    float reach             # blocks up to this many times that scale count
    float errors            # standard errors that are taken off
    float pairs             # pairs of blocks in mind to begin with,
    float scatter           # and their dispersion
    float remembered        # pairs of blocks, at most 256, then sums are halved
    float cap               # no difference of blocks counts for more than this many times its expectation


cdef inline int64_t size_of(int b) noexcept nogil:
    """Observations in a block by which dispersion is estimated: 8, 32, 128, 256, ... 4096."""
    return SMALLEST << (2 * b if b < 2 else b + 2)


cdef inline int quarters(float residual) noexcept nogil:
    return <int>floor(UNITS * residual + <float>0.5)


cdef inline void close_block(Dispersion* dispersion, const Tempering* tempering, int64_t observed, int block,
                             float variance, float* first) noexcept nogil:
    """A block of 8 is full, the last of those observed. It holds `block` quarters, right ones or residuals.

    Of residuals the variance of an observation is given; 0 if right ones are counted. If each block has a variance of
    its own, it is that of the block, and `first` keeps those of first blocks.
    """
    cdef int level
    cdef float mean = variance
    for level in range(LEVELS):
        if observed // SMALLEST >> level & 1:
            dispersion.first[level] = <int16_t>block
            if first != NULL:
                first[level] = variance
            return
        if first != NULL:
            variance += first[level]
            first[level], mean = 0.0, variance / (2 * SMALLEST << level)
        if level != 1 and level != 3:
            close_pair(dispersion, tempering, level // 2 if level < 4 else level - 2, 2 * SMALLEST << level,
                       <float>(dispersion.first[level] - block) / UNITS,
                       <float>(dispersion.first[level] + block) / UNITS, mean)
        block += dispersion.first[level]
        dispersion.first[level] = 0


cdef inline void close_pair(Dispersion* dispersion, const Tempering* tempering, int b, int64_t size, float difference,
                            float both, float variance) noexcept nogil:
    """Two blocks that follow each other, of `size` observations together, are full."""
    cdef float expected = size * variance if variance > 0 else both * (size - both) / (size - 1), known
    if expected <= 0:  # all were alike, so nothing is learned
        return
    # One jump, such as a drift makes, is not dispersion, hence the cap.
    known = (dispersion.squares[b] + tempering.pairs) / (dispersion.pairs[b] + tempering.pairs)
    dispersion.squares[b] += min(difference * difference / expected, tempering.cap * max(known, <float>1.0))
    if dispersion.pairs[b] + 1 >= tempering.remembered:
        dispersion.squares[b] *= 0.5
        dispersion.pairs[b] //= 2
    else:
        dispersion.pairs[b] += 1


cdef inline void dispersions(const Dispersion* dispersion, const Tempering* tempering, float* found) noexcept nogil:
    """The dispersion of blocks up to each size, at least 1, less standard errors of its own."""
    cdef int b
    cdef float n, most = 1.0
    for b in range(BLOCKS):
        n = dispersion.pairs[b] + tempering.pairs
        most = max(most, (dispersion.squares[b] + tempering.pairs * tempering.scatter) / n
                   - tempering.errors * <float>sqrt(2.0 / n))
        found[b] = most

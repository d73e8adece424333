"""Dispersion: how much more the right ones in blocks of observations scatter than those of independent events."""

from libc.math cimport sqrt
from libc.stdint cimport int64_t

cdef enum:
    BLOCKS = 4            # sizes of blocks by which dispersion is estimated
    SMALLEST = 8          # observations in the smallest block; each next one has as many times more
    PERIOD = 8192         # observations in a pair of the largest blocks


cdef struct Dispersion:
    # Differences of successive blocks of 8, 64, ... observations, squared, next to their expectation given how many right
    # ones the two hold together: a change of the rate alone does not make dispersion.
    float[BLOCKS] squares   # the sum of the squared differences so far,
    float[BLOCKS] pairs     # and of what was expected, both over the variance of a pair


cdef struct Tempering:
    # How dispersion is estimated and used.
    float inflation         # dispersion beyond 1 counts for this much
    float scale             # nats that an alternative needs to be found, which makes its scale in observations
    float reach             # blocks up to this many times that scale count
    float errors            # standard errors that are taken off
    float pairs             # pairs of blocks without dispersion, to begin with
    float remembered        # pairs of blocks, then sums are halved
    float cap               # no difference of blocks counts for more than this many times its expectation


cdef inline void close_block(float* signed, float* both, Dispersion* dispersion, const Tempering* tempering,
                             int64_t observed, float block, float residual, float variance) noexcept nogil:
    """A block of 8 is full: it holds `block`, of which `residual` is compared.

    Of the present pair of blocks of each size, `both` is what they hold and `signed` the residuals, those of the second
    counted as negative. `variance` is that of an observation, or 0 where the blocks hold variances instead of right ones:
    then these are what is expected.
    """
    cdef int b
    cdef int64_t size = SMALLEST
    for b in range(BLOCKS):
        both[b] += block
        if (observed - 1) // size & 1:
            signed[b] -= residual
            if observed % (2 * size) == 0:
                close_pair(dispersion, tempering, b, 2 * size, signed[b], both[b], variance)
                signed[b] = both[b] = 0
        else:
            signed[b] += residual
        size *= SMALLEST


cdef inline void close_pair(Dispersion* dispersion, const Tempering* tempering, int b, int64_t size, float difference,
                            float both, float variance) noexcept nogil:
    """Two blocks that follow each other, of `size` observations together, are full."""
    cdef float whole = (size * variance if variance > 0 else both) + <float>1e-6
    cdef float square = difference * difference / whole, expected = 1.0, known
    if variance > 0:
        expected = both * (size - both) / ((size - 1) * whole)
    if expected > 1:  # no pair counts for more than one
        square /= expected
        expected = 1.0
    # One jump, such as a drift makes, is not dispersion: that is why there is a cap.
    known = (dispersion.squares[b] + tempering.pairs) / (dispersion.pairs[b] + tempering.pairs)
    dispersion.squares[b] += min(square, tempering.cap * max(known, <float>1.0))
    dispersion.pairs[b] += max(expected, <float>0.0)
    if dispersion.pairs[b] >= tempering.remembered:
        dispersion.squares[b] *= 0.5
        dispersion.pairs[b] *= 0.5


cdef inline bint dispersions(const Dispersion* dispersion, const Tempering* tempering, float* found) noexcept nogil:
    """The dispersion of blocks up to each size, at least 1, less standard errors of its own; whether any is above 1."""
    cdef int b
    cdef float n, most = 1.0
    for b in range(BLOCKS):
        n = dispersion.pairs[b] + tempering.pairs
        if dispersion.squares[b] > dispersion.pairs[b]:
            most = max(most, (dispersion.squares[b] + tempering.pairs) / n - tempering.errors * <float>sqrt(2.0 / n))
        found[b] = most
    return most > 1.0

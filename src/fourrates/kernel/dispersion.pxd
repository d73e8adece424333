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
    float block             # right ones in the present block of 8
    float[BLOCKS] signed    # of the present pair of blocks, those of the second counted as negative,
    float[BLOCKS] both      # and all of them
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


cdef inline void close_block(Dispersion* dispersion, const Tempering* tempering, int64_t observed, float residual,
                             float variance) noexcept nogil:
    """The present block of 8 is full; `residual` is what of it is compared.

    `variance` is that of an observation, or 0 where the blocks hold variances instead of right ones: then these are what
    is expected.
    """
    cdef int b
    cdef int64_t size = SMALLEST
    cdef float square, expected, known, whole
    for b in range(BLOCKS):
        dispersion.both[b] += dispersion.block
        if (observed - 1) // size & 1:
            dispersion.signed[b] -= residual
            if observed % (2 * size) == 0:
                whole = (2 * size * variance if variance > 0 else dispersion.both[b]) + <float>1e-6
                square = dispersion.signed[b] * dispersion.signed[b] / whole
                expected = 1.0
                if variance > 0:
                    expected = dispersion.both[b] * (2 * size - dispersion.both[b]) / ((2 * size - 1) * whole)
                if expected > 1:  # no pair counts for more than one
                    square /= expected
                    expected = 1.0
                # One jump, such as a drift makes, is not dispersion: that is why there is a cap.
                known = (dispersion.squares[b] + tempering.pairs) / (dispersion.pairs[b] + tempering.pairs)
                dispersion.squares[b] += min(square, tempering.cap * max(known, <float>1.0))
                dispersion.pairs[b] += max(expected, <float>0.0)
                dispersion.signed[b] = dispersion.both[b] = 0.0
                if dispersion.pairs[b] >= tempering.remembered:
                    dispersion.squares[b] *= 0.5
                    dispersion.pairs[b] *= 0.5
        else:
            dispersion.signed[b] += residual
        size *= SMALLEST
    dispersion.block = 0.0


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

"""The normal of a recall by stratum, such as a weekday: rates of their own, around a level that they share."""

from libc.math cimport exp, log
from libc.stdint cimport uint32_t


cdef struct Stratum:
    uint32_t n, ones        # observations while the recall was normal, and right ones
    float base, next_refresh_n


cdef inline double log_odds(double rate) noexcept nogil:
    rate = min(max(rate, 1e-7), 1 - 1e-7)
    return log(rate / (1 - rate))


cdef inline double mean_of(const Stratum* strata, int number, double prior) noexcept nogil:
    """The rate in all strata together, as far as they are known."""
    cdef double n = 2 * prior, ones = prior
    cdef int s
    for s in range(number):
        n += strata[s].n
        ones += strata[s].ones
    return ones / n


cdef inline double rate_in(const Stratum* stratum, double mean, double weight, double offset) noexcept nogil:
    """The rate in a stratum, its log-odds moved by an offset; the mean of all weighs as so many observations of it."""
    cdef double rate = (stratum.ones + weight * mean) / (stratum.n + weight)
    return min(max(1 / (1 + exp(-log_odds(rate) - offset)), 1e-7), 1 - 1e-7)


cdef inline void count_in(Stratum* stratum, int right) noexcept nogil:
    stratum.n += 1
    stratum.ones += right
    if stratum.n >= <uint32_t>1 << 31:
        stratum.n, stratum.ones, stratum.next_refresh_n = stratum.n // 2, stratum.ones // 2, 0

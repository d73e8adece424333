"""The normal of a recall by stratum, such as a weekday: rates of their own, around a level that they share.

Or where events were drawn for labelling, with probabilities that are known: rates that follow from the true one.
"""

from libc.math cimport exp, exp2, log
from libc.stdint cimport uint16_t, uint32_t

cdef enum:
    ODDS = 257            # ratios of the probabilities with which the two predictions are drawn, by their logarithm
    USUAL = 256           # observations that make a usual one


cdef struct Stratum:
    uint32_t n, ones        # observations while the recall was normal, and right ones
    float base, next_refresh_n


cdef struct Sample:
    # A recall whose observations were drawn. Among these right ones are to wrong ones as in truth, times the ratio of the
    # probabilities of being drawn. One that is right counts 1 / d, one that is wrong ratio / d, for d as in `drawn_base`:
    # such counts have the true rate, and tell as much of it as the observations do.
    double n, ones          # of what makes its level
    double volume           # events of the class since the restart, to scale
    float recent_n, recent_ones, last_n, last_ones   # of the latest observations, as in Recent
    float given             # observations of the reference, as many as tell as much among those that are seen
    float odds              # the usual ratio of the latest observations, in the steps that events have
    uint16_t known          # of so many


cdef inline float drawn_base(float base, float odds) noexcept nogil:
    """A true rate as it is among events that are drawn when right `odds` times as often as when wrong."""
    return base * odds / (1 - base + base * odds)


cdef inline float usual_base(const Sample* sample, int c, float rate) noexcept nogil:
    return drawn_base(rate, <float>exp2((sample.odds if c else -sample.odds) / 16))


cdef inline void note_odds(Sample* sample, int stratum) noexcept nogil:
    sample.known += sample.known < USUAL
    sample.odds += (stratum - ODDS // 2 - sample.odds) / sample.known


cdef inline void count_drawn(Sample* sample, float base, float odds, int right, bint turn) noexcept nogil:
    cdef float weight = (1 if right else odds) / (1 - base + base * odds)
    if turn:
        sample.last_n, sample.last_ones = sample.recent_n, sample.recent_ones
        sample.recent_n = sample.recent_ones = 0
    sample.n += weight
    sample.ones += weight * right
    sample.recent_n += weight
    sample.recent_ones += weight * right


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

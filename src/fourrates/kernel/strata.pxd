"""The normal of a recall by stratum, such as a weekday, as rates of their own around a shared level.

If events were drawn for labelling, with known probabilities, rates that follow from the true one.
"""

from libc.math cimport exp, exp2, log
from libc.stdint cimport uint16_t, uint32_t

from fourrates.kernel.dispersion cimport LEVELS

cdef enum:
    ODDS = 257            # ratios of the probabilities with which the two predictions are drawn, by their logarithm
    USUAL = 256           # observations that make a usual one


cdef struct Stratum:
    uint32_t n, ones        # observations while the recall was normal, and right ones
    float base, next_refresh_n


cdef struct Sample:
    # A recall whose observations were drawn. Among these right ones are to wrong ones as in truth, times the ratio of the
    # probabilities of being drawn. One that is right counts 1 / d, one that is wrong ratio / d, for d as in `drawn_base`:
    # such counts have the true rate, and the information of the observations.
    double n, ones          # of those that make its level
    double volume           # events of the class since the restart, to scale
    float recent_n, recent_ones, last_n, last_ones   # of the latest observations, as in Recent
    float given             # observations of the reference, scaled to the information of labelled ones
    float odds              # the usual ratio of the latest observations, in the steps that events have
    uint16_t known          # of so many


cdef struct Spread:
    # Of a class that was drawn, and of all, the variances of independent events in the blocks of a dispersion, as each
    # event has its own.
    float begun             # part of the budget in use, as of the last refresh; of all, of the largest one of any class
    float block             # variance in the present block of 8
    float[LEVELS] first     # of the first block of the present pair


cdef inline float drawn_base(float base, float odds) noexcept nogil:
    """A true rate as it is among events that are drawn when right `odds` times as often as when wrong."""
    return base * odds / (1 - base + base * odds)


cdef inline float usual_base(const Sample* sample, int c, float rate) noexcept nogil:
    return drawn_base(rate, <float>exp2((sample.odds if c else -sample.odds) / 16))


cdef inline double drawn_rate(const Sample* sample, int c, double n, double ones, double prior, double base) noexcept nogil:
    """The rate by n observations as they count, and those right and wrong ones of a prior that are usually drawn."""
    cdef double odds = exp2((sample.odds if c else -sample.odds) / 16), scale = prior / (1 - base + base * odds)
    return (ones + scale) / (n + scale + scale * odds)


cdef inline double at_crossing(double before, double after) noexcept nogil:
    """The evidence, on average, just after an event that raises it this much has made it cross a level.

    If its logarithm is anywhere within the jump when it crosses, it is beyond by this factor, the mean of a jump.
    """
    return after * (after - before) / (before * log(after / before)) if after > before > 0 else after


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

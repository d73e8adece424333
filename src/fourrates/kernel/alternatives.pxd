"""The alternatives, the evidence for each of them, and the power of their ratios."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from fourrates.kernel.dispersion cimport BLOCKS, Tempering, size_of

cdef extern from "lanes.h":
    cdef enum:
        LANES "FOURRATES_LANES"
        SIZES "FOURRATES_SIZES"
    float fourrates_log2(float x) noexcept nogil
    int fourrates_exponent(float x) noexcept nogil
    void fourrates_ratios(float p, int right, const float* growth, float* ratio) noexcept nogil
    void fourrates_raise(float* ratio, const float* power) noexcept nogil
    float fourrates_advance(float* evidence, float* age, const float* weight, const float* ratio, float gap) noexcept nogil
    float fourrates_observe(float* evidence, float* age, float* n_since, float* correct_since, const float* weight,
                            const float* ratio, float gap, float one) noexcept nogil
    void fourrates_bound(const float* evidence, float* product, float most) noexcept nogil


cdef inline float sum_lanes(const float* evidence, int first, int lanes) noexcept nogil:
    cdef int j
    cdef float found = 0.0
    for j in range(first, first + lanes):
        found += evidence[j]
    return found


cdef struct Alternatives:
    # The alternatives, a lane each; the weight of a lane that is not used is 0.
    float[LANES] shift    # of the log-odds
    float[LANES] growth   # of the odds: exp(shift) - 1
    float[LANES] weight   # share of the budget


cdef struct Row:
    # The alternatives at a rate that is known from this number of observations.
    Alternatives own
    Alternatives[2] shared   # by class, for two; for more they are the same


cdef struct Ratios:
    # The alternatives of a recall, derived from a record by scan, and the ratios of its own lanes and of the shared
    # ones, for wrong and right. For the mix, its ratios alone and in a joint change, for class 0 and 1.
    int64_t valid
    const Alternatives* alone
    const Alternatives* together
    bint fading             # whether nothing is looked for in some direction
    float base              # of a recall, in the stratum of the event
    float variance          # of an observation
    float tolerance         # how far from its base a recall may be; changes are looked for beyond
    float[2][LANES] own
    float[2][LANES] shared


cdef inline void clear_lanes(float* evidence, float* age) noexcept nogil:
    memset(evidence, 0, LANES * sizeof(float))
    memset(age, 0, LANES * sizeof(float))


cdef inline void temper(float* power, const Tempering* tempering, const float* dispersion, const Alternatives* alternatives,
                        float p) noexcept nogil:
    """The power of the ratios of each size of a change: 1 over a dispersion, of blocks up to some times its scale."""
    cdef int i, b
    cdef float information, shift
    for i in range(SIZES):
        shift = min(abs(alternatives.shift[i]), abs(alternatives.shift[i + SIZES]))
        information = 0.5 * p * (1 - p) * shift * shift + <float>1e-9
        b = 0
        while b + 1 < BLOCKS and size_of(b + 1) * information <= tempering.reach * tempering.scale:
            b += 1
        power[i] = 1.0 / (1.0 + tempering.inflation * (dispersion[b] - 1.0))


cdef inline float least_of(const float* power) noexcept nogil:
    """The power of the size that has the smallest."""
    cdef int i
    cdef float found = power[0]
    for i in range(1, SIZES):
        found = min(found, power[i])
    return found


cdef inline void edge_ratios(float p, float tolerance, int right, const Alternatives* alternatives,
                             float* ratio) noexcept nogil:
    """The likelihood ratios of an observation if changes within a tolerance do not count.

    A fall is one from p - tolerance, a rise one from p + tolerance; if there is no rate beyond, the ratio is next to 0.
    """
    cdef float[LANES] risen
    cdef int j
    fourrates_ratios(max(p - tolerance, <float>0.0), right, alternatives.growth, ratio)
    fourrates_ratios(min(p + tolerance, <float>1.0), right, alternatives.growth, risen)
    for j in range(LANES):
        if alternatives.growth[j] > 0:
            ratio[j] = risen[j]
        if (1 - p if alternatives.growth[j] > 0 else p) <= tolerance + <float>1e-6:
            ratio[j] = <float>1e-30


cdef inline void find_ratios(float p, float tolerance, int right, const Alternatives* alternatives, const float* power,
                             float* ratio) noexcept nogil:
    """The likelihood ratios of an observation, each raised to the power of its size."""
    if tolerance > 0:
        edge_ratios(p, tolerance, right, alternatives, ratio)
    else:
        fourrates_ratios(p, right, alternatives.growth, ratio)
    if least_of(power) != 1:
        fourrates_raise(ratio, power)

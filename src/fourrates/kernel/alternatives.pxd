"""What may have happened: alternatives, the evidence for each of them, and the power of their ratios."""

from libc.stdint cimport int64_t

from fourrates.kernel.dispersion cimport BLOCKS, SMALLEST, Tempering
from fourrates.kernel.lanes cimport LANES, SIZES


cdef struct Alternatives:
    # What may have happened, a lane each; the weight of a lane that is not used is 0.
    float[LANES] shift    # of the log-odds
    float[LANES] growth   # of the odds: exp(shift) - 1
    float[LANES] weight   # share of the budget


cdef struct Row:
    # What is looked for at a rate that is known from this number of observations.
    Alternatives own
    Alternatives[2] shared   # by class, for two; for more they are the same


cdef struct Lanes:
    float[LANES] evidence   # weighted, summed over all moments at which the change may have begun
    float[LANES] age        # times the events since


cdef struct Ratios:
    # What scan derives from a record: what is looked for in a recall, and the ratios of its own lanes and of the shared
    # ones, for wrong and right; or the ratios of the mix, alone and in a joint change, for class 0 and 1.
    int64_t valid
    const Alternatives* alone
    const Alternatives* together
    bint fading             # whether nothing is looked for in some direction
    float variance          # of an observation
    float[2][LANES] own
    float[2][LANES] shared


cdef inline void temper(float* power, const Tempering* tempering, float fixed, const Alternatives* alternatives,
                        const float* dispersion, float p) noexcept nogil:
    """The power of the ratios of each size: 1 over the dispersion at the scale at which it finds a change.

    Of blocks up to some times that scale the largest dispersion counts; where there is none, NULL, the fixed one does.
    """
    cdef int i, b
    cdef float information, shift, size
    for i in range(SIZES):
        power[i] = 1.0 / fixed
    if dispersion == NULL:
        return
    for i in range(SIZES):
        shift = min(abs(alternatives.shift[i]), abs(alternatives.shift[i + SIZES]))
        information = 0.5 * p * (1 - p) * shift * shift + <float>1e-9
        b, size = 0, SMALLEST * SMALLEST
        while b + 1 < BLOCKS and size * information <= tempering.reach * tempering.scale:
            b, size = b + 1, size * SMALLEST
        power[i] = 1.0 / (1.0 + tempering.inflation * (dispersion[b] - 1.0))

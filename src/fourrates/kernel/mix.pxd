"""Evidence that the class mix shifted, alone or together with a change of the recalls."""

from libc.math cimport exp
from libc.stdint cimport int64_t, uint8_t

from fourrates.kernel.alternatives cimport (
    LANES, SIZES, Alternatives, Ratios, clear_lanes, fourrates_advance, fourrates_bound, fourrates_raise, fourrates_ratios,
)
from fourrates.kernel.dispersion cimport BLOCKS, SMALLEST, UNITS, Dispersion, Tempering, close_block


cdef struct Mix:
    # The share of class 1 among the true classes.
    int64_t n, ones
    float base, next_refresh_n, total
    float power             # 1 over the dispersion of blocks of all sizes
    float[LANES] evidence   # of each lane, weighted, summed over all moments at which the change may have begun,
    float[LANES] age        # and times the events since
    Dispersion dispersion
    uint8_t block           # positives in the present block of 8


cdef struct Joint:
    # The mix shifted, down in the first half of the lanes and up in the second, and the recalls moved as in the shared
    # lanes at the same place of a half. It follows the mix in the records of rules that look for it.
    double total
    float[LANES] evidence   # of each lane, weighted, summed over all moments at which the change may have begun,
    float[LANES] age        # and times the events since
    float[2][4] shares      # of positives before and after, as the open drift reported them; of 0 events if it did not


cdef inline int fill(Alternatives* found, list lanes) except -1:
    """Alternatives by the log-odds of their shift, and their weight."""
    cdef int j
    for j in range(LANES):
        found.shift[j], found.weight[j] = lanes[j]
        found.growth[j] = <float>(exp(<double>found.shift[j]) - 1)
    return 0


cdef inline void refresh_mix(Mix* mix, float prior, float lag, const Tempering* tempering,
                             const float* dispersion) noexcept nogil:
    """Bring the base up to date, and the power of its ratios, by blocks of all sizes and so the same for all lanes."""
    mix.base = <float>((mix.ones + prior) / (mix.n + 2 * prior))
    mix.next_refresh_n = <float>(mix.n + max(1.0, <double>mix.n * lag))
    mix.power = 1.0 / (1.0 + tempering.inflation * (dispersion[BLOCKS - 1] - 1.0))


cdef inline void count_mix(Mix* mix, int positive, const Tempering* tempering, int64_t events) noexcept nogil:
    """One event, the last of this number; its part in the dispersion if that is estimated."""
    mix.n += 1
    mix.ones += positive
    if tempering != NULL:
        mix.block += positive
        if events % SMALLEST == 0:
            close_block(&mix.dispersion, tempering, events, UNITS * mix.block, 0.0, NULL)
            mix.block = 0


cdef inline void mix_ratios(Ratios* ratios, int positive, float base, float power, const Alternatives* mix,
                            const Alternatives* joint) noexcept nogil:
    """The ratios of the mix for this class, in lanes of its own and in those of a joint change, if any."""
    cdef float[SIZES] powers
    cdef int i
    fourrates_ratios(base, positive, mix.growth, ratios.own[positive])
    if joint != NULL:
        fourrates_ratios(base, positive, joint.growth, ratios.shared[positive])
    if power != 1:
        for i in range(SIZES):
            powers[i] = power
        fourrates_raise(ratios.own[positive], powers)
        if joint != NULL:
            fourrates_raise(ratios.shared[positive], powers)


cdef inline void take_joint(Joint* found, const Alternatives* joint, const Alternatives* together, const float* mixed,
                            const float* recalls) noexcept nogil:
    """One event: ratios and weights are those of the mix times those of the recalls."""
    cdef float[LANES] weight, ratio
    cdef int j
    for j in range(LANES):
        weight[j] = joint.weight[j] * together.weight[j % SIZES]
        ratio[j] = mixed[j] * recalls[j % SIZES]
    found.total = fourrates_advance(found.evidence, found.age, weight, ratio, 1.0)


cdef inline void forget_joint(Joint* joint) noexcept nogil:
    """No evidence."""
    if joint != NULL:
        joint.total = 0.0
        clear_lanes(joint.evidence, joint.age)


cdef inline void bound_mix(Mix* mix, Joint* joint) noexcept nogil:
    """Evidence is no older than the share."""
    fourrates_bound(mix.evidence, mix.age, <float>mix.n)
    if joint != NULL:
        fourrates_bound(joint.evidence, joint.age, <float>mix.n)

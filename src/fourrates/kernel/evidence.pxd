"""Evidence for a change: rules and record of FourRates."""

from libc.stdint cimport int8_t, int16_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from fourrates.kernel.alternatives cimport Alternatives, Lanes, Ratios, Row, find_ratios
from fourrates.kernel.dispersion cimport BLOCKS, Dispersion, Tempering
from fourrates.kernel.lanes cimport LANES, SIZES, fourrates_bound, largest
from fourrates.kernel.mix cimport Joint
from fourrates.kernel.record cimport Rules


cdef struct Recall:
    int64_t n, ones         # observations since the restart, and right ones
    float base              # the rate as known when it was last brought up to date
    float due               # the number of observations at which it will be
    float total             # evidence of its own lanes
    uint32_t last           # the event, since the restart, that observed it last, modulo 2**32
    int8_t moved            # under hold: -1 or 1 while it is away from its reference, below or above
    uint8_t row             # of the table of alternatives: its base, by log-odds
    uint16_t phase          # observations in the present pair of the largest blocks; a restart does not cut it
    uint8_t block           # right ones in the present block of 8
    uint8_t[3] reach        # which of the powers each size of a change has, its own and then the shared ones: two bits each
    float[BLOCKS] power     # of its own ratios: 1 over the dispersion of blocks up to each size,
    float[BLOCKS] shared_power  # and of the shared ones; none is larger than the one before
    Lanes lanes
    float[LANES] seen       # evidence times observations since the change began,
    float[LANES] right      # and right ones
    int16_t[BLOCKS] signed  # right ones in the present pair of blocks, those in the second counted as negative,
    int16_t[BLOCKS] both    # and all of them
    Dispersion dispersion


cdef struct Reference:
    # Of a recall, at the end of the records of rules that have any.
    float given, ones       # observations in the reference, and right ones
    float back, back_age    # under hold: evidence that the recall is back at it


cdef inline float rate_since(const Recall* recall, int first) noexcept nogil:
    """The rate of a recall since it moved in the direction of these lanes, by the most likely of them."""
    cdef int best = largest(recall.lanes.evidence, first, SIZES)
    return recall.right[best] / max(recall.seen[best], <float>1e-30)


cdef inline void clear(Recall* recall) noexcept nogil:
    """There is no evidence that it moved."""
    recall.total = 0.0
    memset(&recall.lanes, 0, sizeof(Lanes))
    memset(recall.seen, 0, sizeof(recall.seen))
    memset(recall.right, 0, sizeof(recall.right))


cdef inline void fill_ratios(const Recall* recall, int right, Ratios* ratios) noexcept nogil:
    """The ratios of an observation that is right or not, of its own lanes and of the shared ones."""
    find_ratios(recall.base, right, ratios.alone, recall.power, recall.reach, 0, ratios.own[right])
    find_ratios(recall.base, right, ratios.together, recall.shared_power, recall.reach, SIZES, ratios.shared[right])


cdef inline bint fades(const Alternatives* own) noexcept nogil:
    """Whether nothing is looked for in some direction: evidence of it is only ever multiplied, alone and together."""
    return own.weight[0] == 0 or own.weight[SIZES] == 0


cdef inline bint constant(const Recall* recall, const Reference* reference) noexcept nogil:
    """Whether a recall was always right, or always wrong, in its reference too."""
    if recall.ones == recall.n:
        return reference.ones == reference.given
    return recall.ones == 0 and reference.ones == 0


cdef struct Shared:
    int64_t taken           # events since the restart
    double own              # evidence of the recalls' own lanes, all classes
    float total             # evidence of the shared lanes
    float residual          # right ones in the present block of 8, less those expected of their classes,
    float block             # and their variance
    Lanes lanes
    float[BLOCKS] signed, both   # of the present pairs of blocks, as in a recall
    Dispersion dispersion


cdef inline void bound(Recall* recall, float events, Shared* shared) noexcept nogil:
    """Evidence is no older than the events since the restart, and no more was seen since the change than observed."""
    fourrates_bound(recall.lanes.evidence, recall.lanes.age, events)
    fourrates_bound(recall.lanes.evidence, recall.seen, <float>recall.n)
    fourrates_bound(recall.seen, recall.right, 1.0)
    fourrates_bound(shared.lanes.evidence, shared.lanes.age, <float>shared.taken)


cdef struct Verdict:
    # Which hypothesis has most of the evidence: a class or -1 for all together, the first lane of its direction, and
    # how many lanes it has; or a class that is back.
    int cls, first, lanes
    bint back
    int shift               # of the mix together with all: -1, 1, or 0 for none,
    bint telling            # and whether that explains a good deal more than the recalls alone


cdef class EvidenceRules(Rules):
    cdef readonly double arl, warn
    cdef readonly bint hold, keyed, watch_mix, watch_joint, estimate
    cdef double threshold, mix_threshold
    cdef float lag, given_lag, prior, fixed, back_weight, favour, telling, row_scale
    cdef Tempering tempering
    cdef const float[::1] given, given_ones   # of the reference, by class
    cdef const float[:, :, :, :, ::1] table   # of Rows, by rate and by observations
    cdef const Row* rows
    cdef int rates, octaves
    cdef Alternatives mix
    cdef Alternatives joint      # the mix's part; the weights are over those of the shared lanes
    cdef readonly object layout
    cdef readonly int directions  # of the shared lanes
    cdef Py_ssize_t recalls, common, mixed, joined, referred   # where in a record they begin
    cdef bint refers      # whether a stream may have a reference
    cdef Reference none

    cdef Recall* recall(self, char* record, int c) noexcept nogil
    cdef Joint* joint_of(self, char* record) noexcept nogil
    cdef Reference* reference(self, char* record, int c) noexcept nogil
    cdef const Row* row(self, const Recall* recall, const Reference* reference) noexcept nogil
    cdef void refresh(self, char* record, Recall* recall, int c) noexcept nogil
    cdef const float* dispersed(self, const Dispersion* dispersion, float* found) noexcept nogil
    cdef void derive(self, char* record, const Recall* recall, int truth, Ratios* ratios) noexcept nogil
    cdef void renew(self, char* record, const Recall* recall, int truth, Ratios* ratios) noexcept nogil
    cdef int take(self, char* record, Ratios* ratios, Ratios* mixed, int truth, int guess) noexcept nogil
    cdef float take_back(self, Recall* recall, Reference* reference, int right, float gap) noexcept nogil
    cdef bint take_mix(self, char* record, Ratios* ratios, int truth, const Alternatives* together,
                       const float* recalls) noexcept nogil
    cdef Verdict verdict(self, char* record) noexcept nogil
    cdef int way_of(self, char* record, const Verdict* verdict, int c) noexcept nogil
    cdef void rule_out(self, char* record, Recall* recall, Shared* shared, int truth) noexcept nogil
    cdef bint all_back(self, char* record, int first) noexcept nogil
    cdef int lanes_of(self, int c, int lane) noexcept nogil
    cdef void forget_recall(self, Recall* recall) noexcept nogil
    cdef void leave_reference(self, Recall* recall, const Reference* reference, int first) noexcept nogil
    cdef float reference_rate(self, const Reference* reference) noexcept nogil

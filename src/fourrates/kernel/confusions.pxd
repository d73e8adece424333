"""Single confusions. The evidence that one class is predicted as another more often, or two as each other."""

from libc.math cimport exp, expm1, log1p
from libc.stdint cimport int64_t, uint16_t, uint32_t

cdef enum:
    STEPS = 4             # by which a confusion may have risen


cdef struct Confusing:
    # The alternatives.
    float weight            # of a lane at an observation of its class,
    float begins            # half of it at this number of observations
    double[STEPS] growth    # of the odds


cdef struct Confusion:
    # Observations of a class predicted as another; if the two are the same, all observations of the class.
    uint32_t hits
    uint32_t last                   # observations of the class at the last hit; evidence is as of then
    uint32_t began, began_n, began_hits   # event since the restart, observations and hits at which evidence began to grow
    float base                      # the share of hits as known at the last one
    float[STEPS] evidence
    uint32_t pair_n, pair_m         # of the lesser class with the larger one; observations of both as of which
    float[STEPS] pair               # there is this evidence that both are predicted as each other more often


cdef struct Swap:
    # The confusion that the drift that is open named; of a class with itself, none.
    uint16_t truth, pred
    uint32_t spare
    float[2][4] shares


cdef inline double base_of(const Confusion* cell, uint32_t n) noexcept nogil:
    return cell.base if cell.base > 0 else 0.5 / (n + 1.0)


cdef inline float sum_steps(const float* evidence) noexcept nogil:
    return evidence[0] + evidence[1] + evidence[2] + evidence[3]


cdef inline float confuse(Confusion* cells, const Confusing* confusing, int classes, int truth, int pred, int64_t taken,
                          double power, double other_power) noexcept nogil:
    """One observation; the evidence that this class is predicted as that one more often, which only a hit can raise.

    The power of its ratios is that of the class; that of the other is negative while nobody looks at it.
    """
    cdef Confusion* whole = cells + truth * (classes + 1)
    cdef Confusion* cell = cells + truth * classes + pred
    cdef Confusion* pair = NULL
    cdef float total = 0.0, weight
    cdef uint32_t n = whole.hits
    cdef double ratio
    cdef int i
    if n == 0xffffffffu:
        return 0.0
    if truth == pred:
        whole.hits += 1
        return 0.0
    if other_power >= 0 and truth < pred:
        pair = fade_pair(cells, confusing, classes, truth, pred, power, other_power)
    elif other_power >= 0:
        pair = fade_pair(cells, confusing, classes, pred, truth, other_power, power)
    fade(cell, confusing, power, n)
    whole.hits += 1
    cell.base = (cell.hits + <float>0.5) / (n + <float>1.0)
    weight = confusing.weight * n / (n + confusing.begins)
    if sum_steps(cell.evidence) <= 4 * STEPS * weight / cell.base:
        cell.began, cell.began_n, cell.began_hits = <uint32_t>(taken - 1), n, cell.hits
    for i in range(STEPS):
        ratio = exp(power * (log1p(confusing.growth[i]) - log1p(cell.base * confusing.growth[i])))
        cell.evidence[i] = <float>((cell.evidence[i] + weight) * ratio)
        total += cell.evidence[i]
        if pair != NULL:
            pair.pair[i] = <float>((pair.pair[i] + weight) * ratio)
            total += pair.pair[i]
    cell.hits += 1
    cell.last = n + 1
    if pair != NULL and truth < pred:
        pair.pair_n = n + 1
    elif pair != NULL:
        pair.pair_m = n + 1
    return total


cdef inline void fade(Confusion* cell, const Confusing* confusing, double power, uint32_t n) noexcept nogil:
    """Bring the evidence for a confusion up to observation n of its class; none since the last hit was one.

    R <- (R + w) r for each of them, with the same r, as a geometric series.
    """
    cdef double misses = <double>n - cell.last, loss
    cdef double weight = confusing.weight * cell.last / (cell.last + confusing.begins)
    cdef int i
    cell.last = n
    if cell.base <= 0 or misses <= 0:
        return
    for i in range(STEPS):
        loss = power * log1p(cell.base * confusing.growth[i])
        cell.evidence[i] = <float>(cell.evidence[i] * exp(-misses * loss) - weight * expm1(-misses * loss) / expm1(loss))


cdef inline Confusion* fade_pair(Confusion* cells, const Confusing* confusing, int classes, int c, int d, double power,
                                 double other_power) noexcept nogil:
    """Likewise the evidence that two classes, c < d, are predicted as each other; the order of the misses is left out."""
    cdef Confusion* pair = cells + c * classes + d
    cdef uint32_t n = cells[c * (classes + 1)].hits, m = cells[d * (classes + 1)].hits
    cdef double of_c = <double>n - pair.pair_n, of_d = <double>m - pair.pair_m, loss
    cdef double known = pair.pair_n + <double>pair.pair_m
    cdef double weight = confusing.weight * known / (known + 2 * confusing.begins)
    cdef double base = base_of(pair, pair.pair_n), other_base = base_of(cells + d * classes + c, pair.pair_m)
    cdef int i
    pair.pair_n, pair.pair_m = n, m
    if of_c + of_d <= 0:
        return pair
    for i in range(STEPS):
        loss = (of_c * power * log1p(base * confusing.growth[i])
                + of_d * other_power * log1p(other_base * confusing.growth[i]))
        if loss > 0:
            pair.pair[i] = <float>(pair.pair[i] * exp(-loss) - weight * expm1(-loss) / expm1(loss / (of_c + of_d)))
    return pair


cdef inline void weigh(Confusion* cells, const Confusing* confusing, int classes, const double* powers,
                       double* found) noexcept nogil:
    """Bring all up to date, and add their evidence to `found`, zero before; at a negative power nobody looks at the class."""
    cdef int c, d, at
    for c in range(classes):
        for d in range(classes):
            at = c * classes + d
            if c == d or powers[c] < 0:
                continue
            if c < d and powers[d] >= 0:
                fade_pair(cells, confusing, classes, c, d, powers[c], powers[d])
                found[at] += sum_steps(cells[at].pair)
                found[d * classes + c] += sum_steps(cells[at].pair)
            fade(cells + at, confusing, powers[c], cells[c * (classes + 1)].hits)
            found[at] += sum_steps(cells[at].evidence)

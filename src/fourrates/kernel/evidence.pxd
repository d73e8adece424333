"""The rules and the record of FourRates, with the second look."""

from libc.math cimport exp, log
from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from fourrates.kernel.alternatives cimport (
    LANES, SIZES, Alternatives, Ratios, Row, clear_lanes, find_ratios, fourrates_bound, least_of,
)
from fourrates.kernel.confusions cimport Confusing
from fourrates.kernel.dispersion cimport (
    BLOCKS, PERIOD, SMALLEST, UNITS, Dispersion, Tempering, close_block, quarters,
)
from fourrates.kernel.mix cimport Joint
from fourrates.kernel.record cimport Rules
from fourrates.kernel.strata cimport ODDS, Sample, Spread, Stratum

cdef enum:
    RECENT = 500          # observations after which those before them are forgotten
    AVERAGED = 64         # blocks of 8 events, for the variance of an event
    EARLIEST = 15         # observations since the alarm before which no look decides
    LATEST = 1000         # since it may be back; the latest for a decision
    ALONE = 255           # the direction of a look at one recall alone

cdef enum Condition:      # of a recall
    NORMAL = 0
    UNCONFIRMED = 1
    CONFIRMED = 2
    RECOVERING = 3

cdef enum Decision:       # of the look at a recall
    NONE = 0
    CONFIRM = 1
    WITHDRAW = 2          # this recall,
    WITHDRAW_ALL = 3      # or all that moved together with it
    RETURN = 4            # it may be back, so look at that
    RECOVER = 5
    IMPROVE = 6           # nearer to normal, but not there,
    STAY = 7              # or as far away as before


cdef struct Recent:
    # The latest observations of a rate: those of the present bucket, and of the one before.
    uint16_t n, ones, last_n, last_ones


cdef inline void note(Recent* recent, int right) noexcept nogil:
    if recent.n == RECENT:
        recent.last_n, recent.last_ones = recent.n, recent.ones
        recent.n = recent.ones = 0
    recent.n += 1
    recent.ones += right


cdef struct Recall:
    int64_t n, ones         # observations that make its level, and right ones: of normal; or since it left it, or may be back
    float base              # the rate as known when it was last brought up to date
    float next_refresh_n               # the number of observations at which it will be
    float total             # evidence of its own lanes
    uint32_t last           # the event, since the restart, that observed it last, modulo 2**32
    int8_t moved            # -1 or 1 while it is away from normal, below or above
    uint8_t row             # of the table of alternatives: its base, by log-odds
    uint16_t phase          # observations in the present pair of the largest blocks; a restart does not cut it
    float[SIZES] power      # of its own ratios, by the size of the change: 1 over a dispersion,
    float[SIZES] shared_power   # and of the shared ones
    float[LANES] evidence   # of each lane, weighted, summed over all moments at which the change may have begun,
    float[LANES] age        # and times the events since
    float[LANES] n_since    # evidence times observations since the change began,
    float[LANES] correct_since   # and right ones
    float block             # right ones in the present block of 8; with strata those beyond expectation
    float offset            # with strata, of its log-odds from those of their mean
    Dispersion dispersion


cdef struct Look:
    # At the end of a record, the reference of a recall, and while it is away from normal the look at it.
    float given, ones               # observations in the reference, and right ones
    float back, back_age            # evidence that it is back at normal
    int64_t normal_n, normal_ones   # observations of normal besides the reference, frozen at the alarm
    double expected                 # with strata, right ones to expect at normal of those that make the level
    uint32_t away_n, away_ones      # observations from the alarm until it may be back, and right ones
    uint32_t returned               # events from the alarm that opened the episode to then
    uint8_t condition
    uint8_t direction               # of the shared lanes that found it, or ALONE
    uint8_t settled                 # it was confirmed once, so it may recover but is not withdrawn
    int8_t opened                   # which way it moved in the alarm that opened the episode; 0: not at all
    float[SIZES] weight             # of the lanes of the look


cdef struct Episode:
    # The drift that opened it, as it was reported.
    int64_t at                      # the event of the alarm, plus one; 0 if no drift is open
    uint32_t since, started         # events before the alarm,
    uint32_t first, last            # and those between which it started
    float evidence
    float known                     # 1 if normal was known, of all that moved
    float[2][3] mixed               # the share of positives, tnr and tpr, before and after; for two classes


cdef inline double weighted(const Look* look, const double* support) noexcept nogil:
    """The likelihood ratio of a look, by the logarithms of those of its lanes."""
    cdef double found = 0.0
    cdef int i
    for i in range(SIZES):
        found += look.weight[i] * exp(min(support[i], 300.0))
    return found


cdef inline void clear(Recall* recall) noexcept nogil:
    """There is no evidence that it moved."""
    recall.total = 0.0
    clear_lanes(recall.evidence, recall.age)
    memset(recall.n_since, 0, sizeof(recall.n_since))
    memset(recall.correct_since, 0, sizeof(recall.correct_since))


cdef inline void fill_ratios(const Recall* recall, int right, Ratios* ratios) noexcept nogil:
    """The ratios of an observation that is right or not, of its own lanes and of the shared ones."""
    find_ratios(ratios.base, ratios.tolerance, right, ratios.alone, recall.power, ratios.own[right])
    find_ratios(ratios.base, ratios.tolerance, right, ratios.together, recall.shared_power, ratios.shared[right])


cdef inline bint fades(const Alternatives* own) noexcept nogil:
    """Whether some direction is not looked for, so that its evidence is only ever multiplied, alone and together."""
    return own.weight[0] == 0 or own.weight[SIZES] == 0


cdef inline bint constant(const Recall* recall, const Look* look) noexcept nogil:
    """Whether a recall was always right, or always wrong, in its reference too."""
    if recall.ones == recall.n:
        return look.ones == look.given
    return recall.ones == 0 and look.ones == 0


cdef inline double edge_of(double rate, double tolerance, int way) noexcept nogil:
    """Of a normal rate, the edge of the tolerance on one side."""
    return min(max(rate + way * tolerance, 1e-9), 1 - 1e-9) if tolerance > 0 else rate


cdef inline double nearer(const Recall* recall, const Look* look, double n, double k) noexcept nogil:
    """The logarithm of how much more likely a recall is nearer to normal than its rate is the same."""
    cdef double m = look.away_n + 1.0, j = look.away_ones + 0.5
    n, k = n + 1.0, k + 0.5
    cdef double same = (k + j) / (n + m)
    if recall.moved * (k / n - j / m) >= 0:
        return 0.0
    return least_of(recall.power) * (
        k * log(k / (n * same)) + (n - k) * log((n - k) / (n * (1 - same)))
        + j * log(j / (m * same)) + (m - j) * log((m - j) / (m * (1 - same))))


cdef inline bint due(int64_t n) noexcept nogil:
    """Whether a look is taken after n observations, at each of the first ones and then at every thirtieth more."""
    cdef int64_t step = 1
    while n >= 32 * step:
        step *= 2
    return n >= EARLIEST and n & (step - 1) == 0


cdef struct Shared:
    int64_t taken           # events since the restart
    double own              # evidence of the recalls' own lanes, all classes
    double proof            # ratios of looks that ended without a withdrawal, since the period began
    float total             # evidence of the shared lanes
    float residual          # right ones in the present block of 8, less those expected of their classes,
    float block             # and their variance; and that of an event, on average over the latest blocks
    float variance
    float[LANES] evidence   # of each lane, weighted, summed over all moments at which the change may have begun,
    float[LANES] age        # and times the events since
    Dispersion dispersion


cdef inline void note_blocks(Recall* recall, Shared* shared, const Stratum* own, const Tempering* tempering, int right,
                             float variance, float base, float usual, Spread* spread, Spread* spread_of_all,
                             int64_t events) noexcept nogil:
    """An observation's part in the dispersion of its recall and of all.

    `own` is its stratum, if there are any; then `usual` is the variance of an observation, unless blocks have a spread of
    their own.
    """
    cdef bint known = recall.n > SMALLEST  # before, little is known of its rate
    cdef int held
    recall.phase = (recall.phase + 1) & (PERIOD - 1)
    if own == NULL:
        recall.block += right
    elif known and own.n > SMALLEST:
        recall.block += right - base
        if spread != NULL:
            spread.block += variance
    else:
        known = False
    if recall.phase % SMALLEST == 0:
        held = quarters(recall.block)
        close_block(&recall.dispersion, tempering, PERIOD + recall.phase, held,
                    <float>0.0 if own == NULL else usual if spread == NULL else spread.block,
                    NULL if spread == NULL else spread.first)
        recall.block -= <float>held / UNITS  # what was rounded off, or it would add up where all blocks are alike
        if spread != NULL:
            spread.block = 0.0
    if known:
        shared.block += variance
        shared.residual += right - base
    if events % SMALLEST == 0:
        shared.variance += (shared.block / SMALLEST - shared.variance) / min(events // SMALLEST, AVERAGED)
        held = quarters(shared.residual)
        close_block(&shared.dispersion, tempering, events, held,
                    max(shared.variance, <float>1e-9) if spread == NULL else shared.block,
                    NULL if spread == NULL else spread_of_all.first)
        shared.residual = <float>0.0 if spread == NULL else shared.residual - <float>held / UNITS
        shared.block = 0.0


cdef inline void bound(Recall* recall, float events, Shared* shared) noexcept nogil:
    """Evidence is no older than the events since the restart, and no more was seen since the change than observed."""
    fourrates_bound(recall.evidence, recall.age, events)
    fourrates_bound(recall.evidence, recall.n_since, <float>recall.n)
    fourrates_bound(recall.n_since, recall.correct_since, 1.0)
    fourrates_bound(shared.evidence, shared.age, <float>shared.taken)

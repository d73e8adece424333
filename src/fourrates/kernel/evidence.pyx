"""Evidence for a change, as the ratio of how likely the recent events are if a rate moved and if none did.

For each alternative, a recall moved by a step in log-odds or several of them together, the Shiryaev-Roberts statistic

    R <- (R + 1) q(event) / p(event)

adds up, over all moments at which the change may have begun, how much more likely the events since are. A lane holds w R; the
alarm is given when their sum reaches the threshold. The same lanes then take a second look at a recall that moved, by the
observations since the alarm. See docs/mathematics.md.

tests/evidence/oracle.py has the same step in plain NumPy, and the tests compare the two. :mod:`fourrates.evidence.life`
decides after an alarm.
"""

cimport cython
from libc.math cimport exp2, log, log1p
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from fourrates.kernel.alternatives cimport (
    LANES, SIZES, Alternatives, Ratios, Row, clear_lanes, fourrates_advance, fourrates_exponent, fourrates_log2,
    fourrates_observe, least_of, sum_lanes, temper,
)
from fourrates.kernel.confusions cimport STEPS, Confusion, Swap, confuse, weigh
from fourrates.kernel.dispersion cimport BLOCKS, LEVELS, PERIOD, SMALLEST, UNITS, Dispersion, dispersions
from fourrates.kernel.memory cimport prefetch
from fourrates.kernel.mix cimport (
    Joint, Mix, bound_mix, count_mix, fill, forget_joint, mix_ratios, refresh_mix, take_joint,
)
from fourrates.kernel.record cimport (
    DRIFT, DRIFTED, FLAGS, LINE, LOOK, OPEN, QUIET, REPORT, SHIFT, WARNED, WARNING, Head, Rules, close_warning, open_warning,
)
from fourrates.kernel.strata cimport (
    ODDS, USUAL, Sample, Spread, Stratum, at_crossing, count_drawn, count_in, drawn_base, drawn_rate, log_odds, mean_of,
    note_odds, rate_in, usual_base,
)

NUMBERS = {  # for those who read records in Python
    "STEPS": STEPS, "LANES": LANES, "SIZES": SIZES, "BLOCKS": BLOCKS, "LEVELS": LEVELS, "UNITS": UNITS,
    "SMALLEST": SMALLEST, "PERIOD": PERIOD, "RECENT": RECENT, "EARLIEST": EARLIEST, "AVERAGED": AVERAGED, "LATEST": LATEST,
    "ODDS": ODDS, "USUAL": USUAL,
    "ALONE": ALONE, "NORMAL": NORMAL, "UNCONFIRMED": UNCONFIRMED, "CONFIRMED": CONFIRMED, "RECOVERING": RECOVERING,
    "NONE": NONE, "CONFIRM": CONFIRM, "WITHDRAW": WITHDRAW, "WITHDRAW_ALL": WITHDRAW_ALL, "RETURN": RETURN,
    "RECOVER": RECOVER, "IMPROVE": IMPROVE, "STAY": STAY,
}


cdef struct Parts:
    # The parts of a record, for their layout.
    Head head
    Recent recent
    Recall recall
    Shared shared
    Mix mix
    Joint joint
    Look look
    Episode episode
    Sample sample
    Spread spread
    Stratum stratum
    Confusion cell
    Swap swap


cdef Parts no_parts
PARTS = np.asarray(<Parts[:1]>&no_parts).dtype


cdef class EvidenceRules(Rules):
    """The rules of FourRates as numbers by name, made by :mod:`fourrates.evidence.rules`."""

    cdef double warn
    cdef readonly bint watch_mix, watch_joint, estimate
    cdef readonly double threshold, mix_threshold, back_threshold
    cdef readonly double confirm, withdraw, recover, distrust, least_known
    cdef float lag, given_lag, prior, mean_weight, fixed, back_weight, row_scale
    cdef Tempering tempering
    cdef const float[::1] given, given_ones   # of the reference, by class
    cdef const float[:, :, ::1] scatter       # squares and pairs of blocks that a reference showed: by class, of all, of mix
    cdef const float[::1] tolerance           # by class: changes of less than this are not looked for
    cdef const uint8_t[::1] watched           # by class: whether its recall may raise an alarm
    cdef const float[:, :, :, :, ::1] table   # of Rows, by rate and by observations
    cdef const Row* rows
    cdef int rates, octaves
    cdef Alternatives mix
    cdef Alternatives joint      # the mix's part; the weights are over those of the shared lanes
    cdef readonly int directions  # of the shared lanes
    cdef readonly int strata
    cdef readonly bint sampled   # events were drawn for labelling; a stratum is then a ratio of probabilities
    cdef float[ODDS] odds
    cdef Stratum drawn           # in place of those that are always known
    cdef readonly bint watch_confusions
    cdef readonly float confusion_weight
    cdef Confusing confusing
    cdef Py_ssize_t recents, recalls, common, mixed, joined, looks, by_stratum, confusions   # where they begin in a record

    def __init__(self, int classes, dict settings):
        cdef int i
        self.classes = classes
        self.warn, self.threshold, self.mix_threshold = settings["warn"], settings["threshold"], settings["mix_threshold"]
        self.watch_mix, self.watch_joint = settings["watch_mix"], settings["watch_joint"]
        self.back_weight, self.back_threshold = settings["back_weight"], settings["back_threshold"]
        self.confirm, self.withdraw, self.recover = settings["confirm"], settings["withdraw"], settings["recover"]
        self.distrust, self.least_known = settings["distrust"], settings["least_known"]
        self.directions = settings["directions"]
        self.lag, self.given_lag, self.prior = settings["lag"], settings["given_lag"], settings["prior"]
        self.tempering = settings["tempering"]
        self.estimate, self.fixed = settings["estimate"], settings["dispersion"]
        fill(&self.mix, settings["mix"])
        fill(&self.joint, settings["joint"])
        self.table = settings["alternatives"]
        self.rates, self.octaves = <int>self.table.shape[0], <int>self.table.shape[1]
        if (self.table.shape[2], self.table.shape[3], self.table.shape[4]) != (3, 3, LANES):
            raise ValueError("a table of alternatives has 3 x 3 x lanes numbers for each rate and number of observations")
        self.rows = <const Row*>&self.table[0, 0, 0, 0, 0]
        self.row_scale = settings["rows_per_nat"]
        self.given, self.given_ones = settings["reference"]
        self.scatter = settings["scatter"]
        self.tolerance, self.watched = settings["tolerance"], settings["watched"]
        begins = {name: settings["layout"].fields[name][1] for name in settings["layout"].names}
        self.recents, self.recalls = begins["recent"], begins["recall"]
        self.common, self.looks = begins["shared"], begins["look"]
        self.mixed, self.joined = begins.get("mix", 0), begins.get("joint", 0)
        self.by_stratum, self.confusions = begins.get("sample", begins.get("stratum", 0)), begins.get("cell", 0)
        self.size = settings["layout"].itemsize
        self.strata, self.mean_weight = settings["strata"], settings["mean_weight"]
        self.sampled = settings["sampled"]
        for i in range(ODDS):
            self.odds[i] = exp2((i - ODDS // 2) / 16.0)
        self.drawn.n, self.drawn.next_refresh_n = 1 << 30, <float>4e9
        self.watch_confusions = settings["watch_confusions"]
        self.confusion_weight = self.confusing.weight = settings["confusion_weight"]
        self.confusing.begins, self.confusing.growth = settings["confusion_begins"], np.expm1(settings["confusion_steps"])

    @property
    def scratch_size(self):
        """Bytes of the ratios that `scan` keeps."""
        return (self.classes * self.strata + 1) * sizeof(Ratios)

    cdef inline Recall* recall(self, char* record, int c) noexcept nogil:
        return <Recall*>(record + self.recalls) + c

    @cython.final
    cdef inline Joint* joint_of(self, char* record) noexcept nogil:  # NULL if the rules have none
        return <Joint*>(record + self.joined) if self.watch_joint else NULL

    @cython.final
    cdef inline Look* look(self, char* record, int c) noexcept nogil:
        return <Look*>(record + self.looks) + c

    @cython.final
    cdef inline Stratum* strata_of(self, char* record, int c) noexcept nogil:
        return <Stratum*>(record + self.by_stratum) + c * self.strata

    @cython.final
    cdef inline Sample* sample_of(self, char* record, int c) noexcept nogil:
        return <Sample*>(record + self.by_stratum) + c

    @cython.final
    cdef inline Spread* spread_of(self, char* record, int c) noexcept nogil:  # the last is of all
        return <Spread*>(record + self.by_stratum + self.classes * sizeof(Sample)) + c if self.sampled else NULL

    @cython.final
    cdef inline double level(self, char* record, int c, double* ones) noexcept nogil:
        """How many observations make the level of a recall, and the right ones; as they count if they were drawn."""
        cdef const Recall* recall = self.recall(record, c)
        cdef const Sample* sample = self.sample_of(record, c)
        ones[0] = sample.ones if self.sampled else recall.ones
        return sample.n if self.sampled else recall.n

    @cython.final
    cdef inline const Row* row(self, char* record, int c) noexcept nogil:
        """The alternatives of a recall at its last refresh, by its base and by how much was known of it."""
        cdef const Recall* recall = self.recall(record, c)
        cdef float given = self.sample_of(record, c).given if self.sampled else self.look(record, c).given
        cdef float known = recall.next_refresh_n if recall.moved else recall.next_refresh_n + given
        cdef int octave = min(max(fourrates_exponent(known), 0), self.octaves - 1)
        return self.rows + recall.row * self.octaves + octave

    @cython.final
    cdef const Row* row_at(self, char* record, int c, double rate, double known) noexcept nogil:
        """The alternatives to a rate known from this number of observations."""
        cdef float seen = self.as_seen(record, c, rate, &known)
        cdef int octave = min(max(fourrates_exponent(<float>known), 0), self.octaves - 1)
        return self.rows + self.row_of(seen) * self.octaves + octave

    @cython.final
    cdef inline float as_seen(self, char* record, int c, double rate, double* n) noexcept nogil:
        """A true rate as it usually is among labelled events; and how many of these have the information of n of all."""
        cdef float seen = <float>rate
        if self.sampled:
            seen = usual_base(self.sample_of(record, c), c, seen)
            n[0] *= rate * (1 - rate) / (seen * (1 - seen))
        return seen

    @cython.final
    cdef int row_of(self, float base) noexcept nogil:
        """The row of a rate's alternatives in the table."""
        cdef float odds = fourrates_log2(base) - fourrates_log2(1 - base)
        return min(max(<int>(self.row_scale * odds + self.rates // 2 + <float>0.5), 0), self.rates - 1)

    cdef void begin(self, char* record) noexcept nogil:
        """A stream without events is all zero but for its reference."""
        cdef int c
        self.set_reference(record, &self.given[0], &self.given_ones[0])
        for c in range(self.classes):
            self.scatter_of(c, &self.recall(record, c).dispersion)
        self.scatter_of(self.classes, &(<Shared*>(record + self.common)).dispersion)
        if self.watch_mix:
            self.scatter_of(self.classes + 1, &(<Mix*>(record + self.mixed)).dispersion)

    cdef void scatter_of(self, int part, Dispersion* dispersion) noexcept nogil:
        """The dispersion of the reference."""
        cdef int b
        for b in range(BLOCKS):
            dispersion.squares[b] = self.scatter[part, 0, b]
            dispersion.pairs[b] = <uint8_t>self.scatter[part, 1, b]

    cdef void load_checked(self, char* record) noexcept nogil:
        """Bring a record from outside well below the bounds of the check, which rounding could exceed later."""
        cdef int c
        cdef float last
        cdef Recall* recall
        cdef Look* look
        cdef Shared* shared = <Shared*>(record + self.common)
        for c in range(self.classes):
            recall, look = self.recall(record, c), self.look(record, c)
            last = <float>(shared.taken - <uint32_t>(<uint32_t>shared.taken - recall.last))
            bound(recall, last, shared)
            if recall.moved:
                look.back_age = min(look.back_age, <float>1.005 * last * look.back)
        if self.watch_mix:
            bound_mix(<Mix*>(record + self.mixed), self.joint_of(record))

    cdef void set_reference(self, char* record, const float* given, const float* given_ones) noexcept nogil:
        """Give a stream that has seen nothing a reference of its own."""
        cdef int c
        for c in range(self.classes):
            self.look(record, c).given = given[c]
            self.look(record, c).ones = given_ones[c]

    def look_weights(self, const uint8_t[::1] record, int c, int way, int direction, float least=0.0):
        """The weights of a look's lanes before any event, in all 1: of the budget; or of steps from a size on, all alike."""
        cdef char* at = <char*>&record[0]
        cdef const Look* look = self.look(at, c)
        cdef double normal = self.normal_rate(at, c, way)
        cdef const Row* row = self.row_at(at, c, normal, look.normal_n + look.given)
        cdef int first = 0 if way < 0 else SIZES, lanes = SIZES, i
        cdef const Alternatives* alternatives = &row.own
        if direction != ALONE:
            lanes = LANES // self.directions
            first, alternatives = direction * lanes, &row.shared[c if self.classes == 2 else 0]
        steps = np.abs([alternatives.shift[first + i] for i in range(lanes)])
        weights = np.array([alternatives.weight[first + i] for i in range(lanes)])
        if least > 0 or not weights.any():
            weights = (steps >= min(least, steps.max())).astype(np.float64)
        found = np.zeros(SIZES, np.float32)
        found[:lanes] = weights / weights.sum()
        return found

    def decision(self, const uint8_t[::1] record, int c):
        """The decision of the look at a recall after its latest observation."""
        return self.decide(<char*>&record[0], c)

    def support(self, const uint8_t[::1] record, int c):
        """How much better the observations since the alarm fit the drift than normal, together and alone."""
        return self.supported(<char*>&record[0], c, True), self.supported(<char*>&record[0], c, False)

    def returning(self, const uint8_t[::1] record, int c):
        """How much better the observations since it may be back go with being away than with normal."""
        return self.recovery_support(<char*>&record[0], c)

    @cython.final
    cdef void dispersed(self, const Dispersion* dispersion, float* found) noexcept nogil:
        """The dispersion of blocks up to each size, estimated or as it was given."""
        cdef int b
        if self.estimate:
            dispersions(dispersion, &self.tempering, found)
            return
        for b in range(BLOCKS):
            found[b] = <float>1.0 + (self.fixed - <float>1.0) / self.tempering.inflation

    @cython.final
    cdef void refresh(self, char* record, Recall* recall, int c) noexcept nogil:
        """Bring the base of a recall up to date, and the powers of its ratios."""
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef const Look* look = self.look(record, c)
        cdef const Row* row
        cdef float[BLOCKS] found, found_of_all
        cdef float edge, seen
        cdef int b, s
        cdef double expected
        cdef Stratum* strata = self.strata_of(record, c)
        cdef double ones, n = self.level(record, c, &ones), wait, given = look.given
        if not recall.moved:
            n, ones = n + look.given, ones + look.ones
            if self.tolerance[c] > 0 and look.given > 0:  # the theorem needs a normal that stays
                n, ones = look.given, look.ones
        recall.base = <float>self.rate_of(record, c, n, ones)
        seen = self.as_seen(record, c, recall.base, &given)
        if self.sampled:
            self.sample_of(record, c).given = <float>given
        wait = recall.n * self.lag + (0 if recall.moved else given * self.given_lag)
        recall.next_refresh_n = <float>(recall.n + max(1.0, wait))
        if self.strata > 1 and not self.sampled:
            expected = look.expected / recall.n if recall.moved and recall.n else mean_of(strata, self.strata, self.prior)
            recall.offset = <float>(log_odds(recall.base) - log_odds(expected))
            for s in range(self.strata):
                strata[s].next_refresh_n = 0
        edge = max(recall.base - self.tolerance[c], <float>0.5 * recall.base)  # falls are looked for from there
        recall.row = <uint8_t>self.row_of(edge if self.tolerance[c] > 0 else seen)
        row = self.row(record, c)
        if self.sampled:
            self.share_budget(record, c, row)
        self.dispersed(&recall.dispersion, found)
        self.dispersed(&shared.dispersion, found_of_all)
        for b in range(BLOCKS):  # all together are no less correlated than one class
            found_of_all[b] = max(found_of_all[b], found[b])
        temper(recall.power, &self.tempering, found, &row.own, seen)
        temper(recall.shared_power, &self.tempering, found_of_all, &row.shared[c if self.classes == 2 else 0], seen)

    @cython.final
    cdef inline double rate_of(self, char* record, int c, double n, double ones) noexcept nogil:
        """A recall by its observations and the prior."""
        if self.sampled:
            return drawn_rate(self.sample_of(record, c), c, n, ones, self.prior, self.recall(record, c).base)
        return (ones + self.prior) / (n + 2 * self.prior)

    @cython.final
    cdef void share_budget(self, char* record, int c, const Row* row) noexcept nogil:
        """A class that is known lends the part of the budget that one hardly known yet does not use."""
        cdef float total = 0.0, most = <float>1e-30, begun
        cdef int k, watched = 0
        self.spread_of(record, c).begun = sum_lanes(row.own.weight, 0, LANES)
        for k in range(self.classes):
            if self.watched[k]:
                begun = self.spread_of(record, k).begun
                total, most, watched = total + begun, max(most, begun), watched + 1
        self.spread_of(record, self.classes).begun = max(total / (watched * most), <float>1.0 / watched)

    @cython.final
    cdef float base_in(self, char* record, const Recall* recall, int c, int s) noexcept nogil:
        """The base of a recall in a stratum, its own rate there, moved as far as the recall is from the strata's mean."""
        cdef Stratum* strata = self.strata_of(record, c)
        if self.sampled:
            return drawn_base(recall.base, self.odds[s] if c else self.odds[ODDS - 1 - s])
        if self.strata == 1:
            return recall.base
        if strata[s].n >= strata[s].next_refresh_n:
            mean = mean_of(strata, self.strata, self.prior)
            strata[s].base = <float>rate_in(strata + s, mean, self.mean_weight, recall.offset)
            strata[s].next_refresh_n = <float>(strata[s].n + max(1.0, <double>strata[s].n * self.lag))
        return strata[s].base

    @cython.final
    cdef double normal_in(self, char* record, int c, int s) noexcept nogil:
        """The normal of a recall that is away from it, in a stratum."""
        cdef double rate = self.normal_rate(record, c, 0)
        cdef Stratum* strata = self.strata_of(record, c)
        if self.sampled:
            return drawn_base(<float>rate, self.odds[s] if c else self.odds[ODDS - 1 - s])
        if self.strata == 1:
            return rate
        mean = mean_of(strata, self.strata, self.prior)
        return rate_in(strata + s, mean, self.mean_weight, log_odds(rate) - log_odds(mean))

    @cython.final
    cdef void rule_out(self, char* record, Recall* recall, Shared* shared, int truth) noexcept nogil:
        """A recall that was always right, or always wrong, has not changed; nor have all together if none of them has."""
        cdef int c
        if not constant(recall, self.look(record, truth)):
            return
        clear(recall)
        for c in range(self.classes):
            if not constant(self.recall(record, c), self.look(record, c)):
                return
        clear_lanes(shared.evidence, shared.age)
        shared.total = 0.0
        forget_joint(self.joint_of(record))

    @cython.final
    cdef void derive(self, char* record, const Recall* recall, int truth, int stratum, Ratios* ratios) noexcept nogil:
        """All of the ratios but themselves."""
        cdef const Row* row = self.row(record, truth)
        ratios.alone, ratios.together = &row.own, &row.shared[truth if self.classes == 2 else 0]
        ratios.fading = fades(&row.own)
        ratios.base = self.base_in(record, recall, truth, stratum)
        ratios.variance = ratios.base * (1 - ratios.base)
        ratios.tolerance = self.tolerance[truth]

    @cython.final
    cdef inline int take(self, char* record, Ratios* ratios, Ratios* mixed, int truth, int pred,
                         int stratum) noexcept nogil:
        """One event. `ratios`, if there is room for them, are kept as long as their base."""
        cdef Head* head = <Head*>record
        cdef Recall* recall = self.recall(record, truth)
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef int right = truth == pred
        cdef Ratios here
        cdef float gap
        cdef double total, before = shared.own + shared.total
        cdef int state = QUIET, s
        cdef Stratum* own = &self.drawn if self.sampled else self.strata_of(record, truth) + stratum
        cdef Sample* sample = self.sample_of(record, truth)
        cdef bint turn = (<Recent*>(record + self.recents))[truth].n == RECENT
        if self.sampled:
            note_odds(sample, stratum)
        (<int64_t*>(record + sizeof(Head)))[truth * self.classes + pred] += 1
        note(<Recent*>(record + self.recents) + truth, right)
        note(<Recent*>(record + self.recents) + self.classes + pred, right)
        if recall.n >= recall.next_refresh_n:
            self.refresh(record, recall, truth)
            if ratios != NULL:
                for s in range(self.strata):
                    (ratios + (s - stratum) * self.classes).valid = 0
        if ratios == NULL:
            ratios = &here
            self.derive(record, recall, truth, stratum, ratios)
            fill_ratios(recall, right, ratios)
        elif not ratios.valid or (self.strata > 1 and own.n >= own.next_refresh_n):
            self.derive(record, recall, truth, stratum, ratios)
            fill_ratios(recall, 0, ratios)
            fill_ratios(recall, 1, ratios)
            ratios.valid = 1
        shared.taken += 1
        gap = <float><uint32_t>(<uint32_t>shared.taken - recall.last)
        recall.n += 1
        recall.ones += right
        if self.sampled:
            count_drawn(sample, recall.base, self.odds[stratum] if truth else self.odds[ODDS - 1 - stratum], right, turn)
            sample.volume += min(self.odds[ODDS - 1 - stratum if pred else stratum], <float>1.0)
        shared.own -= recall.total
        if self.watched[truth]:
            recall.total = fourrates_observe(recall.evidence, recall.age, recall.n_since, recall.correct_since,
                                             ratios.alone.weight, ratios.own[right], gap, <float>right)
        shared.total = fourrates_advance(shared.evidence, shared.age, ratios.together.weight,
                                         ratios.shared[right], 1.0)
        if ratios.fading:
            bound(recall, <float>shared.taken, shared)
        if recall.ones == recall.n or recall.ones == 0:
            self.rule_out(record, recall, shared, truth)
        shared.own += recall.total
        total = shared.own + shared.total
        recall.last = <uint32_t>shared.taken
        head.events = (head.events & ~<uint64_t>DRIFTED) + (1 << FLAGS)
        if self.estimate:
            note_blocks(recall, shared, own if self.strata > 1 else NULL, &self.tempering, right, ratios.variance,
                        ratios.base, recall.base * (1 - recall.base), self.spread_of(record, truth),
                        self.spread_of(record, self.classes), <int64_t>(head.events >> FLAGS))
        if self.watch_mix:
            if self.take_mix(record, mixed, truth, ratios.together, ratios.shared[right]):
                state = SHIFT
        if self.watch_joint:
            total += self.joint_of(record).total
        if self.sampled:  # labels are few, so the run length shall be the budget and not just no less
            total = at_crossing(before, total) / self.spread_of(record, self.classes).begun
        if recall.moved and self.look_at(record, recall, truth, stratum, ratios.base, right, gap):
            state |= LOOK
        if self.strata > 1 and not (recall.moved or self.sampled):
            count_in(own, right)
        if self.watch_confusions and not recall.moved:
            if total + self.take_confusion(record, recall, truth, pred, shared.taken) >= self.threshold:
                total = self.threshold
        if total < self.warn:
            if head.events & WARNED:
                head.events &= ~<uint64_t>WARNED
                close_warning(head)
            return state
        open_warning(head)
        if total >= self.threshold:
            head.events &= ~<uint64_t>WARNED
            return state | DRIFT
        head.events |= WARNED
        return state if head.events & OPEN else state | WARNING

    @cython.final
    cdef float take_confusion(self, char* record, const Recall* recall, int truth, int pred, int64_t taken) noexcept nogil:
        """The evidence that this class is taken for that one more often."""
        cdef Confusion* cells = <Confusion*>(record + self.confusions)
        cdef const Recall* other = self.recall(record, pred)
        cdef float other_power = -1.0 if other.moved else least_of(other.power)
        return confuse(cells, &self.confusing, self.classes, truth, pred, taken, least_of(recall.power), other_power)

    def confused(self, uint8_t[::1] record, list classes):
        """The evidence for each confusion of these classes, as of now, by class and prediction."""
        cdef char* at = <char*>&record[0]
        cdef int c
        cdef double[:, ::1] found = np.zeros((self.classes, self.classes))
        cdef double[::1] powers = np.full(self.classes, -1.0)
        for c in classes:
            powers[c] = least_of(self.recall(at, c).power)
        weigh(<Confusion*>(at + self.confusions), &self.confusing, self.classes, &powers[0], &found[0, 0])
        return np.asarray(found)

    @cython.final
    cdef bint look_at(self, char* record, Recall* recall, int c, int stratum, float base, int right,
                      float gap) noexcept nogil:
        """An observation of a recall that is away from normal adds evidence that it is back; a look may decide."""
        cdef Look* look = self.look(record, c)
        cdef double normal = self.normal_in(record, c, stratum)
        cdef float rate = <float>edge_of(normal, self.tolerance[c], recall.moved), old = look.back, ratio
        cdef float wrong = max(1 - base, <float>3e-8)  # after 17 million right ones no float is below 1
        if self.strata > 1:
            look.expected += normal
        if look.condition != RECOVERING:
            ratio = rate / base if right else (1 - rate) / wrong
            look.back = (old + gap * self.back_weight) * ratio
            look.back_age = (look.back_age + gap * old + <float>0.5 * gap * (gap + 1) * self.back_weight) * ratio
        return self.decide(record, c) != NONE

    @cython.final
    cdef double normal_rate(self, char* record, int c, int way) noexcept nogil:
        """Of a recall that moved this way; with a tolerance its edge on that side."""
        cdef const Look* look = self.look(record, c)
        cdef double known = look.normal_n + <double>look.given, ones = look.normal_ones + <double>look.ones
        return edge_of(self.rate_of(record, c, known, ones), self.tolerance[c], way)

    @cython.final
    cdef int decide(self, char* record, int c) noexcept nogil:
        """The decision of the look at a recall after its latest observation."""
        cdef const Look* look = self.look(record, c)
        cdef const Recall* recall = self.recall(record, c)
        cdef double known = look.normal_n + <double>look.given, support, own, ones, n = self.level(record, c, &ones)
        if look.condition != RECOVERING and look.back >= self.back_threshold:
            return RETURN
        if not due(recall.n):
            return NONE
        if look.condition == RECOVERING or look.settled:
            support = self.recovery_support(record, c)
            if support <= (self.withdraw if look.condition == UNCONFIRMED else self.recover):
                return RECOVER
            if support < self.confirm or look.condition == CONFIRMED or known < self.least_known:
                return NONE
            if look.condition != RECOVERING:
                return CONFIRM
            if nearer(recall, look, n, ones) >= log(self.confirm):
                return IMPROVE
            return STAY if recall.n >= LATEST else NONE
        own = self.supported(record, c, False)
        support = own if look.direction == ALONE else self.supported(record, c, True)
        if support <= self.withdraw:
            return WITHDRAW_ALL
        if own <= self.withdraw:
            return WITHDRAW
        if look.condition == CONFIRMED:
            return NONE
        if n >= 2 * known and own < 1:  # late enough, so the side it is on decides
            return WITHDRAW
        if own >= 1 and known >= self.least_known and (support >= self.confirm or n >= 2 * known):
            return CONFIRM
        return NONE

    @cython.final
    cdef void add_support(self, char* record, int c, int direction, double distrust, double* support) noexcept nogil:
        """Add, for each lane of a look, the log-likelihood ratio of the n observations that make the level, tempered.

        By dispersion, as evidence is, and by how little is known of normal. With a flat prior for an uncertain rate the
        ratio of n observations counts n0 / (n0 + n) times, for n0 of normal. `distrust` multiplies that n.
        """
        cdef const Recall* recall = self.recall(record, c)
        cdef const Look* look = self.look(record, c)
        cdef double known = look.normal_n + <double>look.given, wrong, growth, ones
        cdef double rate = self.normal_rate(record, c, recall.moved)
        cdef double power = least_of(recall.power) if direction == ALONE else least_of(recall.shared_power)
        cdef const Row* row = self.row_at(record, c, rate, known)
        cdef const Alternatives* alternatives = &row.own
        cdef int first = 0 if recall.moved < 0 else SIZES, lanes = SIZES, i
        if direction != ALONE:
            lanes = LANES // self.directions
            first, alternatives = direction * lanes, &row.shared[c if self.classes == 2 else 0]
        if self.strata > 1 and recall.n > 0:  # normal of these observations, by their strata
            rate = edge_of(look.expected / <double>recall.n, self.tolerance[c], recall.moved)
        power *= known / (known + distrust * self.level(record, c, &ones))
        for i in range(lanes):
            growth = alternatives.growth[first + i]
            wrong = -log1p(rate * growth)
            support[i] += power * (recall.n * wrong + recall.ones * log1p(growth))

    @cython.final
    cdef double supported(self, char* record, int c, bint together) noexcept nogil:
        """How much better the observations since the alarm go with the drift; of all that moved with it, or of it alone."""
        cdef const Look* look = self.look(record, c)
        cdef const Look* other
        cdef const Recall* recall
        cdef double[SIZES] support
        cdef int k
        memset(support, 0, sizeof(support))
        for k in range(self.classes):
            other, recall = self.look(record, k), self.recall(record, k)
            if k == c or (together and look.direction != ALONE and other.direction == look.direction and recall.moved
                          and other.condition != RECOVERING and not other.settled):
                self.add_support(record, k, look.direction, self.distrust, support)
        return weighted(look, support)

    @cython.final
    cdef double recovery_support(self, char* record, int c) noexcept nogil:
        """How much better the observations since a recall may be back go with being away than with normal."""
        cdef const Look* look = self.look(record, c)
        cdef double[SIZES] support
        memset(support, 0, sizeof(support))
        self.add_support(record, c, ALONE, 1.0, support)
        return weighted(look, support)

    @cython.final
    cdef inline bint take_mix(self, char* record, Ratios* ratios, int truth, const Alternatives* together,
                              const float* recalls) noexcept nogil:
        """Evidence that the classes shifted, alone and with the recalls; whether it is enough alone."""
        cdef Mix* mix = <Mix*>(record + self.mixed)
        cdef const Alternatives* joint = &self.joint if self.watch_joint else NULL
        cdef float[BLOCKS] found
        cdef Ratios here
        cdef int positive = truth == 1, i
        if mix.n >= mix.next_refresh_n:
            self.dispersed(&mix.dispersion, found)
            refresh_mix(mix, self.prior, self.lag, &self.tempering, found)
            if ratios != NULL:
                ratios.valid = 0
        if ratios == NULL:
            ratios = &here
            mix_ratios(ratios, positive, mix.base, mix.power, &self.mix, joint)
        elif not ratios.valid:
            for i in range(2):
                mix_ratios(ratios, i, mix.base, mix.power, &self.mix, joint)
            ratios.valid = 1
        if self.watch_joint:
            take_joint(self.joint_of(record), joint, together, ratios.shared[positive], recalls)
        mix.total = fourrates_advance(mix.evidence, mix.age, self.mix.weight, ratios.own[positive], 1.0)
        count_mix(mix, positive, &self.tempering if self.estimate else NULL, <int64_t>((<Head*>record).events >> FLAGS))
        return mix.total >= self.mix_threshold

    cdef int step(self, char* record, int truth, int pred) noexcept nogil:
        cdef int stratum = truth // self.classes if self.strata > 1 else 0
        return self.take(record, NULL, NULL, truth - stratum * self.classes, pred, stratum)

    cdef Py_ssize_t scan(self, char* record, char* scratch, const uint16_t* truths, const uint16_t* preds,
                         Py_ssize_t size, int* state) noexcept nogil:
        cdef Ratios* ratios = <Ratios*>scratch
        cdef Py_ssize_t i
        cdef int stratum
        state[0] = QUIET
        for i in range(size):
            stratum = truths[i] // self.classes if self.strata > 1 else 0
            state[0] = self.take(record, ratios + truths[i], ratios + self.classes * self.strata,
                                 truths[i] - stratum * self.classes, preds[i], stratum)
            if state[0] & REPORT:
                return i + 1
        return size

    cdef void fetch(self, const char* record, int truth, int pred) noexcept nogil:
        cdef int c = truth % self.classes if self.strata > 1 else truth
        cdef const char* own = record + self.recalls + c * sizeof(Recall)
        cdef const char* common = record + self.common
        cdef int i, lines = (sizeof(Recall) + LINE - 1) // LINE
        prefetch(record)
        prefetch(record + sizeof(Head) + 8 * (c * self.classes + pred))
        for i in range(lines):
            prefetch(own + i * LINE)
        lines = <int>(self.looks - self.common + LINE - 1) // LINE  # looks are for those that are away, and are few
        for i in range(lines):
            prefetch(common + i * LINE)

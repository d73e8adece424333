"""Evidence for a change: how much more likely the recent events are if a rate moved than if none did.

For each alternative, a recall moved by a step in log-odds or several of them together, the Shiryaev-Roberts statistic

    R <- (R + 1) q(event) / p(event)

adds up, over all moments at which the change may have begun, how much more likely the events since are. A lane holds w R; the
alarm is given when their sum reaches the threshold. See docs/mathematics.md.
"""

cimport cython
from libc.stdint cimport int16_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from fourrates.kernel.alternatives cimport Alternatives, Lanes, Ratios, Row, find_reach, temper
from fourrates.kernel.dispersion cimport BLOCKS, PERIOD, SMALLEST, Dispersion, close_block, dispersions
from fourrates.kernel.lanes cimport (
    LANES, SIZES, fourrates_advance, fourrates_exponent, fourrates_log2, fourrates_observe, part,
)
from fourrates.kernel.layout import EvidenceLayout, Judgement
from fourrates.kernel.memory cimport prefetch
from fourrates.kernel.mix cimport (
    Joint, Mix, bound_mix, count_mix, fill, forget_joint, forget_mix, joint_way, mix_ratios, refresh_mix, take_joint,
)
from fourrates.kernel.pairs cimport DRIFT, QUIET, SHIFT, WARNING
from fourrates.kernel.record cimport ALARMED, DRIFTED, FLAGS, LINE, WARNED, Head, Rules, close_warning, open_warning


cdef class EvidenceRules(Rules):
    """What FourRates watches.

    Parameters
    ----------
    classes : int
        Number of classes.
    settings : dict
        Numbers by name, as :mod:`fourrates.evidence.rules` makes them: thresholds, alternatives with their weights, and what
        there is to know of lags and dispersion.
    """

    def __init__(self, int classes, dict settings):
        self.classes = classes
        self.arl, self.warn = settings["arl"], settings["warn"]
        self.threshold, self.mix_threshold = settings["threshold"], settings["mix_threshold"]
        self.hold, self.keyed = settings["hold"], settings["keyed"]
        self.watch_mix, self.watch_joint = settings["watch_mix"], settings["watch_joint"]
        self.back_weight, self.favour = settings["back_weight"], settings["favour"]
        self.telling, self.directions = settings["telling"], settings["directions"]
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
        self.recalls = sizeof(Head) + 8 * classes * classes
        self.common = self.recalls + classes * sizeof(Recall)
        self.mixed = self.common + sizeof(Shared)
        self.joined = self.mixed + (sizeof(Mix) if self.watch_mix else 0)
        self.referred = self.joined + (sizeof(Joint) if self.watch_joint else 0)
        self.refers = self.hold or self.keyed or np.asarray(self.given).any()
        self.size = self.referred + (classes * sizeof(Reference) if self.refers else 0)
        table = np.asarray(self.table)
        watched = [(table[:, :, i, 2] > 0).any((0, 1)) for i in range(2)] + [np.array(list(self.mix.weight)) > 0]
        watched.append(np.tile(watched[1][:SIZES], 2) & (np.array(list(self.joint.weight)) > 0))
        self.layout = EvidenceLayout(
            classes, self.watch_mix, self.watch_joint, self.hold, self.keyed, self.prior, self.lag, self.given_lag,
            self.threshold, max(self.threshold, self.mix_threshold), self.rates, np.asarray(self.given),
            np.asarray(self.given_ones), tuple(watched), self.tempering.remembered, self.estimate, self.refers)
        if self.layout.dtype().itemsize != self.size:
            raise AssertionError(f"the layout has {self.layout.dtype().itemsize} bytes, a record {self.size}")

    @property
    def scratch_size(self):
        """Bytes of the ratios that `scan` keeps."""
        return (self.classes + 1) * sizeof(Ratios)

    def dtype(self):
        """The layout of a record."""
        return self.layout.dtype()

    def check(self, const uint8_t[:, ::1] records):
        """Raise ValueError unless each of these can be a record of these rules."""
        Rules.check(self, records)
        self.layout.check(np.asarray(records))

    cdef inline Recall* recall(self, char* record, int c) noexcept nogil:
        return <Recall*>(record + self.recalls) + c

    @cython.final
    cdef inline Joint* joint_of(self, char* record) noexcept nogil:
        """That of a record; NULL where the rules have none."""
        return <Joint*>(record + self.joined) if self.watch_joint else NULL

    @cython.final
    cdef inline Reference* reference(self, char* record, int c) noexcept nogil:
        """That of a recall; nothing, which nobody writes to, where the rules have none."""
        return <Reference*>(record + self.referred) + c if self.refers else &self.none

    @cython.final
    cdef inline const Row* row(self, const Recall* recall, const Reference* reference) noexcept nogil:
        """What is looked for in a recall, as of its last refresh: by its base, and by how much was known of it."""
        cdef float known = recall.due if recall.moved else recall.due + reference.given
        cdef int octave = min(max(fourrates_exponent(known), 0), self.octaves - 1)
        return self.rows + recall.row * self.octaves + octave

    cdef void begin(self, char* record) noexcept nogil:
        """All but the reference is zero in a stream that has seen nothing."""
        self.refer(record, &self.given[0], &self.given_ones[0])

    cdef void adopt(self, char* record) noexcept nogil:
        """A checked record came from outside: what its evidence was multiplied with is well below what the check allows.

        At the very bound, rounding in the events to come would take it beyond. A record of our own is not changed.
        """
        cdef int c
        cdef float last
        cdef Recall* recall
        cdef Reference* reference
        cdef Shared* shared = <Shared*>(record + self.common)
        for c in range(self.classes):
            recall, reference = self.recall(record, c), self.reference(record, c)
            last = <float>(shared.taken - <uint32_t>(<uint32_t>shared.taken - recall.last))
            bound(recall, last, shared)
            if recall.moved:
                reference.back_age = min(reference.back_age, <float>1.005 * last * reference.back)
        if self.watch_mix:
            bound_mix(<Mix*>(record + self.mixed), self.joint_of(record))

    cdef void refer(self, char* record, const float* given, const float* given_ones) noexcept nogil:
        """Give a stream that has seen nothing a reference of its own."""
        cdef int c
        for c in range(self.classes if self.refers else 0):
            self.reference(record, c).given = given[c]
            self.reference(record, c).ones = given_ones[c]

    @cython.final
    cdef void forget_recall(self, Recall* recall) noexcept nogil:
        """No evidence, and the base is due."""
        recall.due = 0.0
        recall.last = recall.row = 0
        clear(recall)

    cdef void restart(self, char* record) noexcept nogil:
        """After a drift was reported.

        A new concept: counts and evidence begin again, dispersion is remembered. Under hold the recalls that moved go on
        from what was seen of them since, one that is back goes on from its reference, and the others keep their counts.
        """
        cdef int c, way
        cdef Recall* recall
        cdef Reference* reference
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef Verdict verdict = self.verdict(record)
        cdef bint hold = self.hold and self.reference(record, 0).given > 0  # a stream of a bank may have no reference
        close_warning(<Head*>record)
        memset(record + sizeof(Head), 0, 8 * self.classes * self.classes)
        for c in range(self.classes):
            recall, reference = self.recall(record, c), self.reference(record, c)
            if not hold:
                recall.n = recall.ones = 0
                if self.refers:
                    memset(reference, 0, sizeof(Reference))
            elif verdict.cls == c or verdict.cls == -1:
                if verdict.back:
                    if verdict.cls == c or recall.moved:
                        recall.n = recall.ones = recall.moved = 0
                elif verdict.cls == c:
                    self.leave_reference(recall, reference, verdict.first)
                else:
                    way = self.way_of(record, &verdict, c)
                    if way:
                        self.leave_reference(recall, reference, 0 if way < 0 else SIZES)
            if hold:
                reference.back = reference.back_age = 0.0
            self.forget_recall(recall)
        shared.taken, shared.own, shared.total, shared.residual = 0, 0.0, 0.0, 0.0
        memset(&shared.lanes, 0, sizeof(Lanes))
        if self.watch_mix:
            self.restart_mix(record)

    @cython.final
    cdef void leave_reference(self, Recall* recall, const Reference* reference, int first) noexcept nogil:
        """It moved in the direction of these lanes, and its new rate is to be learned from the events to come.

        What was seen since the change is no guide to it: an alarm comes when a change looks large.
        """
        cdef float new = rate_since(recall, first), old = self.reference_rate(reference)
        recall.n = recall.ones = 0
        recall.moved = -1 if new < old or (new == old and first == 0) else 1

    @cython.final
    cdef float reference_rate(self, const Reference* reference) noexcept nogil:
        return (reference.ones + self.prior) / (reference.given + 2 * self.prior)

    @cython.final
    cdef Verdict verdict(self, char* record) noexcept nogil:
        cdef Verdict found = Verdict(-1, 0, 0, False, 0, False)
        cdef Recall* recall
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef int c, d, width = LANES // self.directions
        cdef float most = -1.0, evidence
        for c in range(self.classes):
            recall = self.recall(record, c)
            for d in range(2):
                evidence = part(recall.lanes.evidence, d * SIZES, SIZES)
                if evidence > most:
                    most = evidence
                    found.cls, found.first, found.lanes, found.back = c, d * SIZES, SIZES, False
        for d in range(self.directions):
            evidence = part(shared.lanes.evidence, d * width, width)
            if evidence > most:
                most = evidence
                found.cls, found.first, found.lanes, found.back = -1, d * width, width, False
        if self.watch_joint:
            found.shift = joint_way(self.joint_of(record), &most)
            found.telling = most > self.telling * self.joint.weight[0] * part(shared.lanes.evidence, 0, width)
            if found.shift:
                found.cls, found.first, found.lanes, found.back = -1, 0, width, False
        for c in range(self.classes if self.hold else 0):
            recall = self.recall(record, c)
            if recall.moved and self.reference(record, c).back * self.favour > most:
                most = self.reference(record, c).back * self.favour
                found.cls, found.first, found.lanes, found.back, found.shift = c, 0, 0, True, 0
        if found.cls == -1 and self.hold:
            found.back = self.all_back(record, found.first)
        return found

    @cython.final
    cdef bint all_back(self, char* record, int first) noexcept nogil:
        """Whether all that is away from its reference moved towards it, and is explained by it nearly as well."""
        cdef Recall* recall
        cdef int c, towards, away = 0
        for c in range(self.classes):
            recall = self.recall(record, c)
            if recall.moved:
                away += 1
                towards = SIZES if recall.moved < 0 else 0
                if self.lanes_of(c, first) != towards or (
                        self.reference(record, c).back * self.favour < part(recall.lanes.evidence, towards, SIZES)):
                    return False
        return away > 0

    @cython.final
    cdef int lanes_of(self, int c, int lane) noexcept nogil:
        """The first of a class's own lanes that move it the way a shared lane does."""
        return 0 if self.rows.shared[c if self.classes == 2 else 0].shift[lane] < 0 else SIZES

    @cython.final
    cdef int way_of(self, char* record, const Verdict* verdict, int c) noexcept nogil:
        """Which way a class moved by a verdict on all of them: -1, 1, or 0 if its own events do not tell so."""
        cdef Recall* recall = self.recall(record, c)
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef int first = self.lanes_of(c, verdict.first)
        cdef float expected = part(self.row(recall, self.reference(record, c)).own.weight, first, SIZES) * shared.taken
        if part(recall.lanes.evidence, first, SIZES) < self.telling * expected:
            return 0
        return -1 if first == 0 else 1

    def judge(self, const uint8_t[::1] record):
        """The hypothesis with most of the evidence, a Judgement."""
        cdef int c
        cdef char* at = <char*>&record[0]
        cdef Verdict found = self.verdict(at)
        if found.back:
            moved = [(c, -self.recall(at, c).moved) for c in range(self.classes)
                     if self.recall(at, c).moved and found.cls in (c, -1)]
        elif found.cls >= 0:
            moved = [(found.cls, -1 if found.first == 0 else 1)]
        else:
            moved = [(c, self.way_of(at, &found, c)) for c in range(self.classes)]
            moved = [(c, way) for c, way in moved if way] or [
                (c, -1 if self.lanes_of(c, found.first) == 0 else 1) for c in range(self.classes)]
        return Judgement(found.cls, found.first, found.lanes, found.back, moved, found.shift, found.telling)

    @property
    def alarm(self):
        """The evidence at which an alarm is given."""
        return self.threshold

    def evidence(self, records):
        """All evidence for a change, of each of many records."""
        found = np.frombuffer(records, self.dtype())
        return found["shared"]["own"] + found["shared"]["total"] + (found["joint"]["total"] if self.watch_joint else 0.0)

    def mix_step(self, int lane):
        """By how much a lane of the mix moves the log-odds of the positive class."""
        return self.mix.shift[lane]

    @cython.final
    cdef const float* dispersed(self, const Dispersion* dispersion, float* found) noexcept nogil:
        """The dispersion of blocks up to each size, or NULL if there is none or it is not estimated."""
        return found if self.estimate and dispersions(dispersion, &self.tempering, found) else NULL

    @cython.final
    cdef void refresh(self, char* record, Recall* recall, int c) noexcept nogil:
        """Bring the base of a recall up to date, and the powers of its ratios."""
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef const Reference* reference = self.reference(record, c)
        cdef const Row* row
        cdef const float* of_class
        cdef float[BLOCKS] found, found_of_all
        cdef float odds
        cdef int b
        cdef double n = recall.n, ones = recall.ones, wait = recall.n * self.lag
        if not recall.moved:
            n, ones, wait = n + reference.given, ones + reference.ones, wait + reference.given * self.given_lag
        recall.base = <float>((ones + self.prior) / (n + 2 * self.prior))
        recall.due = <float>(recall.n + max(1.0, wait))
        odds = fourrates_log2(recall.base) - fourrates_log2(1 - recall.base)
        recall.row = <uint8_t>min(max(<int>(self.row_scale * odds + self.rates // 2 + <float>0.5), 0), self.rates - 1)
        row = self.row(recall, reference)
        of_class = self.dispersed(&recall.dispersion, found)
        temper(recall.power, &self.tempering, self.fixed, of_class)
        temper(recall.shared_power, &self.tempering, self.fixed, self.dispersed(&shared.dispersion, found_of_all))
        if of_class != NULL:  # what all do together is no less correlated than what one class does
            for b in range(BLOCKS):
                recall.shared_power[b] = min(recall.shared_power[b], recall.power[b])
        memset(recall.reach, 0, sizeof(recall.reach))
        find_reach(recall.power, recall.reach, 0, &self.tempering, &row.own, recall.base)
        find_reach(recall.shared_power, recall.reach, SIZES, &self.tempering,
                   &row.shared[c if self.classes == 2 else 0], recall.base)

    @cython.final
    cdef void rule_out(self, char* record, Recall* recall, Shared* shared, int truth) noexcept nogil:
        """What was always right, or always wrong, has not changed; what all do together has not if none of them has."""
        cdef int c
        if not constant(recall, self.reference(record, truth)):
            return
        clear(recall)
        for c in range(self.classes):
            if not constant(self.recall(record, c), self.reference(record, c)):
                return
        memset(&shared.lanes, 0, sizeof(Lanes))
        shared.total = 0.0
        forget_joint(self.joint_of(record))

    @cython.final
    cdef void derive(self, char* record, const Recall* recall, int truth, Ratios* ratios) noexcept nogil:
        """All of the ratios but themselves."""
        cdef const Row* row = self.row(recall, self.reference(record, truth))
        ratios.alone, ratios.together = &row.own, &row.shared[truth if self.classes == 2 else 0]
        ratios.fading = fades(&row.own)
        ratios.variance = recall.base * (1 - recall.base)

    @cython.final
    cdef void renew(self, char* record, const Recall* recall, int truth, Ratios* ratios) noexcept nogil:
        """The ratios of observations of a class, wrong and right, to be kept."""
        self.derive(record, recall, truth, ratios)
        fill_ratios(recall, 0, ratios)
        fill_ratios(recall, 1, ratios)
        ratios.valid = 1

    @cython.final
    cdef inline int take(self, char* record, Ratios* ratios, Ratios* mixed, int truth, int guess) noexcept nogil:
        """One event. `ratios`, where there is room for them, are kept as long as the base they come from."""
        cdef Head* head = <Head*>record
        cdef Recall* recall = self.recall(record, truth)
        cdef Shared* shared = <Shared*>(record + self.common)
        cdef int right = truth == guess
        cdef Ratios here
        cdef float gap
        cdef double total
        cdef bint shifted = False
        (<int64_t*>(record + sizeof(Head)))[truth * self.classes + guess] += 1
        if recall.n >= recall.due:
            self.refresh(record, recall, truth)
            if ratios != NULL:
                ratios.valid = 0
        if ratios == NULL:
            ratios = &here
            self.derive(record, recall, truth, ratios)
            fill_ratios(recall, right, ratios)
        elif not ratios.valid:
            self.renew(record, recall, truth, ratios)
        shared.taken += 1
        gap = <float><uint32_t>(<uint32_t>shared.taken - recall.last)
        recall.n += 1
        recall.ones += right
        shared.own -= recall.total
        recall.total = fourrates_observe(recall.lanes.evidence, recall.lanes.age, recall.seen, recall.right,
                                         ratios.alone.weight, ratios.own[right], gap, <float>right)
        shared.total = fourrates_advance(shared.lanes.evidence, shared.lanes.age, ratios.together.weight,
                                         ratios.shared[right], 1.0)
        if ratios.fading:
            bound(recall, <float>shared.taken, shared)
        if recall.ones == recall.n or recall.ones == 0:
            self.rule_out(record, recall, shared, truth)
        shared.own += recall.total
        total = shared.own + shared.total
        if recall.moved:
            total += self.take_back(recall, self.reference(record, truth), right, gap)
        recall.last = <uint32_t>shared.taken
        head.events = (head.events & ~<uint64_t>DRIFTED) + (1 << FLAGS)
        if self.estimate:
            recall.phase = (recall.phase + 1) & (PERIOD - 1)
            recall.block += right
            if recall.phase % SMALLEST == 0:
                close_block(recall.signed, recall.both, &recall.dispersion, &self.tempering, PERIOD + recall.phase,
                            <int16_t>recall.block, <int16_t>recall.block, ratios.variance)
                recall.block = 0
            if recall.n > SMALLEST:  # before, little is known of what to expect
                shared.block += ratios.variance
                shared.residual += right - recall.base
            if (head.events >> FLAGS) % SMALLEST == 0:
                close_block(shared.signed, shared.both, &shared.dispersion, &self.tempering,
                            <int64_t>(head.events >> FLAGS), shared.block, shared.residual, 0.0)
                shared.block = shared.residual = 0.0
        if self.watch_mix:
            shifted = self.take_mix(record, mixed, truth, ratios.together, ratios.shared[right])
        if self.watch_joint:
            total += self.joint_of(record).total
        if total < self.warn:
            if head.events & WARNED:
                head.events &= ~<uint64_t>WARNED
                close_warning(head)
            return SHIFT if shifted else QUIET
        open_warning(head)
        if total >= self.threshold:
            head.events = (head.events & ~<uint64_t>WARNED) | DRIFTED | ALARMED
            return DRIFT
        head.events |= WARNED
        return SHIFT if shifted else WARNING

    @cython.final
    cdef float take_back(self, Recall* recall, Reference* reference, int right, float gap) noexcept nogil:
        """Evidence that a recall which is away from its reference is back."""
        cdef float rate = self.reference_rate(reference)
        cdef float wrong = max(1 - recall.base, <float>3e-8)  # after 17 million right ones no float is below 1
        cdef float ratio = rate / recall.base if right else (1 - rate) / wrong
        cdef float old = reference.back, ages = <float>0.5 * gap * (gap + 1)
        reference.back = (old + gap * self.back_weight) * ratio
        reference.back_age = (reference.back_age + gap * old + ages * self.back_weight) * ratio
        return reference.back

    @cython.final
    cdef inline bint take_mix(self, char* record, Ratios* ratios, int truth, const Alternatives* together,
                              const float* recalls) noexcept nogil:
        """Evidence that the classes shifted, alone and with the recalls; whether it is enough alone."""
        cdef Mix* mix = <Mix*>(record + self.mixed)
        cdef const Alternatives* joint = &self.joint if self.watch_joint else NULL
        cdef float[BLOCKS] found
        cdef Ratios here
        cdef int positive = truth == 1, i
        if mix.n >= mix.due:
            refresh_mix(mix, self.prior, self.lag, &self.tempering, self.fixed, self.dispersed(&mix.dispersion, found))
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
        mix.total = fourrates_advance(mix.lanes.evidence, mix.lanes.age, self.mix.weight, ratios.own[positive], 1.0)
        count_mix(mix, positive, &self.tempering if self.estimate else NULL, <int64_t>((<Head*>record).events >> FLAGS))
        return mix.total >= self.mix_threshold

    cdef void restart_mix(self, char* record) noexcept nogil:
        """Their shares begin again."""
        forget_mix(<Mix*>(record + self.mixed))
        forget_joint(self.joint_of(record))

    cdef int step(self, char* record, int truth, int guess) noexcept nogil:
        return self.take(record, NULL, NULL, truth, guess)

    cdef Py_ssize_t scan(self, char* record, char* scratch, const uint16_t* truths, const uint16_t* guesses,
                         Py_ssize_t size, int* state) noexcept nogil:
        cdef Ratios* ratios = <Ratios*>scratch
        cdef Py_ssize_t i
        state[0] = QUIET
        for i in range(size):
            state[0] = self.take(record, ratios + truths[i], ratios + self.classes, truths[i], guesses[i])
            if state[0] >= DRIFT:
                return i + 1
        return size

    cdef void fetch(self, const char* record, int truth, int guess) noexcept nogil:
        cdef const char* own = record + self.recalls + truth * sizeof(Recall)
        cdef const char* common = record + self.common
        cdef int i, lines = (sizeof(Recall) + LINE - 1) // LINE
        prefetch(record)
        prefetch(record + sizeof(Head) + 8 * (truth * self.classes + guess))
        for i in range(lines):
            prefetch(own + i * LINE)
        lines = <int>(self.size - self.common + LINE - 1) // LINE
        for i in range(lines):
            prefetch(common + i * LINE)

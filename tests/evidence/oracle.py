"""FourRates' step once more, slow and obvious: what the kernel is held against.

Every lane, dispersion by blocks, the class mix and the life of a drift, in double precision, with lists of everything
that was seen. It shares the numbers of :mod:`fourrates.evidence.rules`, the table of alternatives and :data:`LIFE`
with the package, and no arithmetic.
"""

import math

import numpy as np

from fourrates.evidence import rules
from fourrates.evidence.alternatives import ROWS_PER_NAT, SIZES, alternatives
from fourrates.evidence.life import AWAY, FOUND, LIFE
from fourrates.evidence.report import ALSO, FEWEST
from fourrates.kernel.evidence import NUMBERS

SHIFT, GROWTH, WEIGHT = range(3)  # of a row of the table
OWN, SHARED = 0, 1
BLOCKS = [8, 32, 128, 256, 512, 1024, 2048, 4096]
T = rules.TEMPERING


class Dispersion:
    """How much more blocks of observations scatter than independent ones: squared differences, as expected."""

    def __init__(self):
        self.residuals, self.variances, self.blocks = [], [], []  # blocks of 8: what they hold, in quarters
        self.squares, self.pairs, self.variance = [0.0] * len(BLOCKS), [0] * len(BLOCKS), 0.0
        self.rounded = 0.0  # off the last block, and part of the next

    def note(self, residual, variance=None, known=None, exact=False):
        """One observation: right or not; or what is beyond expectation, with its variance, or one that is known.

        If exact, a pair of blocks has the variance of its own observations.
        """
        self.residuals.append(residual)
        self.variances.append(variance)
        if len(self.residuals) % 8:
            return
        held = sum(self.residuals[-8:]) + self.rounded
        self.blocks.append(math.floor(4 * held + 0.5))
        self.rounded = held - self.blocks[-1] / 4 if exact or known is not None else 0.0
        if variance is not None and known is None:  # that of the latest blocks, on average
            self.variance += (sum(self.variances[-8:]) / 8 - self.variance) / min(len(self.blocks), NUMBERS["AVERAGED"])
            known = max(self.variance, 1e-9)
        for b, size in enumerate(BLOCKS):
            if len(self.residuals) % (2 * size) == 0:
                first, second = sum(self.blocks[-size // 4 : -size // 8]) / 4, sum(self.blocks[-size // 8 :]) / 4
                self.close(b, 2 * size, first - second, first + second,
                           sum(self.variances[-2 * size:]) / (2 * size) if exact else known)  # fmt: skip

    def close(self, b, size, difference, both, variance):
        expected = both * (size - both) / (size - 1) if variance is None else size * variance
        if expected <= 0:
            return
        known = (self.squares[b] + T["pairs"]) / (self.pairs[b] + T["pairs"])
        self.squares[b] += min(difference**2 / expected, T["cap"] * max(known, 1.0))
        self.pairs[b] += 1
        if self.pairs[b] >= T["remembered"]:
            self.squares[b], self.pairs[b] = self.squares[b] / 2, (self.pairs[b] - 1) // 2

    def found(self):
        """The dispersion of blocks up to each size."""
        found = [1.0]
        for squares, pairs in zip(self.squares, self.pairs, strict=True):
            n = pairs + T["pairs"]
            found.append(max(found[-1], (squares + T["pairs"] * T["scatter"]) / n - T["errors"] * math.sqrt(2 / n)))
        return found[1:]


def tempered(found, shifts, p):
    """The power of each size of a change, by the dispersion of blocks up to some times its scale."""
    powers = []
    for i in range(SIZES):
        information = 0.5 * p * (1 - p) * min(abs(shifts[i]), abs(shifts[i + SIZES])) ** 2 + 1e-9
        within = [b for b, size in enumerate(BLOCKS) if size * information <= T["reach"] * T["scale"]]
        powers.append(1 / (1 + T["inflation"] * (found[max(within, default=0)] - 1)))
    return np.tile(powers, 2)


class Lanes:
    """Evidence for each alternative, weighted, and times the events since the change began."""

    def __init__(self):
        self.evidence, self.age, self.n, self.right = (np.zeros(12) for _ in range(4))

    def advance(self, weight, ratio, gap, right=None):
        old = self.evidence
        self.evidence = (old + gap * weight) * ratio
        self.age = (self.age + gap * old + gap * (gap + 1) / 2 * weight) * ratio
        if right is not None:
            self.n = self.n * ratio + self.evidence
            self.right = self.right * ratio + right * self.evidence


def log_odds(p):
    p = min(max(p, 1e-7), 1 - 1e-7)
    return math.log(p / (1 - p))


class Recall:
    """What is known of the recall of a class."""

    def __init__(self, given, ones, tolerance, strata):
        self.strata = np.zeros((strata, 2))  # observations at normal and right ones, by stratum
        self.bases, self.dues, self.offset, self.expected = np.zeros(strata), np.zeros(strata), 0.0, 0.0
        self.given, self.given_ones = given, ones  # the reference
        self.sampled, self.sign, self.counted, self.latest = False, 1, [0.0, 0.0], np.zeros((2, 4))
        self.usual, self.usual_n, self.given_seen = 0.0, 0, given
        self.tolerance = tolerance
        self.n = self.ones = self.due = self.last = 0
        self.lanes, self.dispersion = Lanes(), Dispersion()
        self.base, self.row = 0.0, None
        self.moved, self.condition, self.settled, self.back = 0, "normal", False, 0.0
        self.normal, self.away = (0, 0), (0, 0)

    def known(self):
        """Observations that make its level, and right ones."""
        if self.moved:
            return self.level()
        if self.keeps_reference():
            return self.given, self.given_ones
        return self.level()[0] + self.given, self.level()[1] + self.given_ones

    def level(self):
        """Without the reference; as they count if they were drawn."""
        return tuple(self.counted) if self.sampled else (self.n, self.ones)

    def set_level(self, n, ones, events=0):
        self.counted = [n, ones]
        if self.sampled:
            most = min(math.ceil(n), events)
            n, ones = most, most if ones >= n else int(most * ones / n)
        self.n, self.ones = n, ones

    def drawn(self, rate, stratum):
        """A true rate as it is among labelled events; the stratum is the ratio of the probabilities."""
        odds = self.ratio(stratum)
        return rate * odds / (1 - rate + rate * odds)

    def as_seen(self, rate):
        """A true rate as it usually is among labelled events."""
        return self.drawn(rate, self.usual + NUMBERS["ODDS"] // 2) if self.sampled else rate

    def rate_of(self, n, ones):
        """A rate, with half a right and half a wrong one more, as they are drawn."""
        odds = self.ratio(self.usual + NUMBERS["ODDS"] // 2) if self.sampled else 1.0
        half = 0.5 / (1 - self.base + self.base * odds)
        return (ones + half) / (n + half + half * odds)

    def number_seen(self, rate, n):
        """How many of the observations that are seen tell as much."""
        seen = self.as_seen(rate)
        return n * rate * (1 - rate) / (seen * (1 - seen)) if self.sampled else n

    def note_odds(self, stratum):
        self.usual_n = min(self.usual_n + 1, NUMBERS["USUAL"])
        self.usual += (stratum - NUMBERS["ODDS"] // 2 - self.usual) / self.usual_n

    def ratio(self, stratum):
        return 2.0 ** (self.sign * (stratum - NUMBERS["ODDS"] // 2) / 16)

    def in_truth(self, n, ones):
        """Observations as they count, by the latest."""
        if not self.sampled:
            return n, ones
        n_right, right = self.latest[:, 1].sum(), self.latest[:, 3].sum()
        n_wrong, wrong = self.latest[:, 0].sum() - n_right, self.latest[:, 2].sum() - right
        usual = self.ratio(self.usual + NUMBERS["ODDS"] // 2)
        of_right = right / n_right if n_right else wrong / n_wrong / usual
        of_wrong = wrong / n_wrong if n_wrong else of_right * usual
        return ones * of_right + (n - ones) * of_wrong, ones * of_right

    def note_latest(self, weight, right):
        if self.latest[0, 0] == NUMBERS["RECENT"]:
            self.latest = np.array([np.zeros(4), self.latest[0]])
        self.latest[0] += 1, right, weight, weight * right

    def back_to_normal(self, events):
        """The latest observations are those since it left normal, whose level is that of before."""
        kept = min(self.n, NUMBERS["RECENT"]) / max(self.n, 1)
        counted = [kept * number for number in self.counted]
        self.latest = np.array([np.zeros(4), [round(kept * self.n), round(kept * self.ones), *counted]])
        self.set_level(*self.normal, events)

    def keeps_reference(self):
        """With a tolerance normal is the reference alone."""
        return self.tolerance > 0 and self.given > 0

    def of_normal(self):
        return self.normal[0] + self.given, self.normal[1] + self.given_ones

    def normal_rate(self):
        """The edge of normal that it crossed."""
        n, ones = self.of_normal()
        return self.edge(self.rate_of(n, ones))

    def edge(self, rate):
        return min(max(rate + self.moved * self.tolerance, 1e-9), 1 - 1e-9) if self.tolerance else rate

    def rate_looked_at(self):
        """Normal of what makes the level, by the strata that it came in."""
        by_stratum = self.sampled or len(self.strata) > 1
        return self.edge(self.expected / self.n) if by_stratum and self.n else self.normal_rate()

    def mean(self):
        n, ones = self.strata.sum(0)
        return (ones + 0.5) / (n + 1)

    def moved_rate(self, s, offset):
        """The rate in a stratum, with these log-odds more."""
        (n, ones), w = self.strata[s], rules.MEAN_WEIGHT
        rate = 1 / (1 + math.exp(-log_odds((ones + w * self.mean()) / (n + w)) - offset))
        return min(max(rate, 1e-7), 1 - 1e-7)

    def normal_in(self, s):
        rate = self.rate_of(*self.of_normal())
        if self.sampled:
            return self.drawn(rate, s)
        return rate if len(self.strata) == 1 else self.moved_rate(s, log_odds(rate) - log_odds(self.mean()))


class Oracle:
    """FourRates, by the book."""

    def __init__(self, classes, arl, reference=None, sides="both", mix="report", dispersion=None,
                 tolerance=0.0, learning=False, strata=None, sampled=False, watched=None):  # fmt: skip
        counts = np.zeros((classes, classes)) if reference is None else np.asarray(reference)
        tolerance = float(np.float32(tolerance))
        self.recalls = [Recall(float(row.sum()), float(row[c]), tolerance, strata or 1) for c, row in enumerate(counts)]
        for recall, sign in zip(self.recalls, (-1, 1), strict=False):
            recall.sampled, recall.sign, recall.given_seen = sampled, sign, recall.given * (not sampled)
        self.learning = learning
        self.classes, self.sides, self.fixed = classes, sides, dispersion
        lag = rules.LAG_OF_SAMPLED if sampled else rules.LAG if classes == 2 else rules.LAG_OF_MANY
        self.lag = np.float32(lag)
        joins = mix == "alarm" and classes == 2 and sides != "up" and watched is None
        self.watched = watched or [True] * classes
        self.watches_confusions = (
            watched is None and classes > 2 and sides != "up" and not (tolerance or learning or (strata or 1) > 1)
        )
        part = 1 - rules.JOINT_SHARE if joins else 1 - rules.CONFUSION_SHARE if self.watches_confusions else 1.0
        self.table = alternatives(
            classes, float(arl), float(lag), sides, part, sum(watched) if watched else None
        ).astype(float)
        self.observed, self.cells = [0] * classes, [[] for _ in range(classes)]  # confusions, by class and prediction
        for c in range(classes):
            self.forget_confusions(c)
        share = 1 - rules.MIX_SHARE if mix == "alarm" else 1.0
        self.threshold = rules.MARGIN * arl / share
        self.mix_threshold = rules.MARGIN * arl / (rules.MIX_SHARE if mix == "alarm" else 1.0)
        self.back_threshold = rules.BACK_OPENS * rules.MARGIN * arl
        self.watches_mix, self.joins = mix != "ignore" and classes == 2 and not sampled, joins
        steps = [(sign * step, w) for sign in (-1, 1) for step, w in zip(rules.STEPS, rules.STEP_WEIGHTS, strict=True)]
        self.mix_lanes = np.array(rules._scaled(steps, 1.0)).T
        self.joint_lanes = np.array(rules._joint(sides)).T if joins else np.zeros((2, 12))
        self.mix, self.mix_n, self.mix_ones, self.mix_due = Lanes(), 0, 0, 0
        self.mix_dispersion, self.shared_dispersion = Dispersion(), Dispersion()
        self.events, self.findings = 0, []
        self.restart()

    def restart(self):
        """No evidence; what is counted since the alarm begins."""
        self.taken, self.shared, self.joint = 0, Lanes(), Lanes()
        for i in range(min(self.events % 8, len(self.shared_dispersion.residuals))):
            self.shared_dispersion.residuals[-1 - i] = 0.0
        self.shared_dispersion.rounded = 0.0
        self.clear_confusions()
        for recall in self.recalls:
            recall.lanes, recall.due, recall.last, recall.back, recall.latest = Lanes(), 0, 0, 0.0, np.zeros((2, 4))

    @property
    def evidence(self):
        """All of it."""
        lanes = [self.shared, self.joint, *(recall.lanes for recall in self.recalls)]
        return sum(one.evidence.sum() for one in lanes)

    def row(self, base, known):
        rate = min(
            max(int(ROWS_PER_NAT * math.log(base / (1 - base)) + len(self.table) // 2 + 0.5), 0), len(self.table) - 1
        )
        return self.table[rate, min(max(math.frexp(known)[1] - 1, 0), self.table.shape[1] - 1)]

    def refresh(self, c):
        """Bring the base of a recall up to date, and what its ratios are."""
        recall = self.recalls[c]
        (n, ones), wait = recall.known(), recall.n * self.lag
        recall.base = recall.rate_of(n, ones)
        recall.given_seen = recall.number_seen(recall.base, recall.given)
        wait += 0 if recall.moved else recall.given_seen * rules.GIVEN_LAG
        recall.due = np.float32(recall.n + max(1.0, wait))
        expected = recall.expected / recall.n if recall.moved and recall.n else recall.mean()
        recall.offset = log_odds(recall.base) - log_odds(expected)
        recall.dues[:] = 0
        edge = max(recall.base - recall.tolerance, recall.base / 2) if recall.tolerance else recall.base
        seen = recall.as_seen(recall.base)
        edge = seen if recall.sampled else edge
        recall.row = self.row(edge, float(recall.due) + (0 if recall.moved else recall.given_seen))
        self.together = SHARED + (c if self.classes == 2 else 0)
        if self.fixed is None:
            own = recall.dispersion.found()
            shared = [max(pair) for pair in zip(own, self.shared_dispersion.found(), strict=True)]
            recall.powers = {
                OWN: tempered(own, recall.row[OWN, SHIFT], seen),
                self.together: tempered(shared, recall.row[self.together, SHIFT], seen),
            }
        else:
            recall.powers = dict.fromkeys((OWN, self.together), np.full(12, 1 / self.fixed))
        recall.power, recall.shared_power = recall.powers[OWN].min(), recall.powers[self.together].min()

    def base_in(self, recall, s):
        """The base of a recall in a stratum."""
        if recall.sampled:
            return recall.drawn(recall.base, s)
        if len(recall.strata) == 1:
            return recall.base
        n = recall.strata[s, 0]
        if n >= recall.dues[s]:
            recall.bases[s] = recall.moved_rate(s, recall.offset)
            recall.dues[s] = np.float32(n + max(1.0, n * float(self.lag)))
        return recall.bases[s]

    def ratio(self, p, right, growth):
        return (1 + right * growth) / (1 + p * growth)

    def edge_ratio(self, recall, base, right, growth):
        """A fall is looked for from below the tolerance, a rise from above it; where there is a rate."""
        edge = base + np.where(growth > 0, 1, -1) * recall.tolerance
        ratio = self.ratio(np.clip(edge, 0, 1), right, growth)
        beyond = np.where(growth > 0, 1 - edge, edge) <= 1e-6
        return np.where(beyond, 1e-30, ratio) if recall.tolerance else ratio

    def constant(self, recall):
        if recall.ones == recall.n:
            return recall.given_ones == recall.given
        return recall.ones == 0 and recall.given_ones == 0

    def step(self, truth, pred, stratum=0):
        """One event; what it showed, as (kind, {class: (n, right) now}), and the evidence it left."""
        recall, right, before = self.recalls[truth], int(truth == pred), self.evidence
        recall.note_odds(stratum)
        if recall.n >= recall.due:
            self.refresh(truth)
        part = SHARED + (truth if self.classes == 2 else 0)
        base = self.base_in(recall, stratum)
        ratios = {
            each: self.edge_ratio(recall, base, right, recall.row[each, GROWTH]) ** recall.powers[each]
            for each in (OWN, part)
        }
        self.taken, self.events = self.taken + 1, self.events + 1
        gap, recall.last = self.taken - recall.last, self.taken
        recall.n, recall.ones = recall.n + 1, recall.ones + right
        if recall.sampled:
            odds = recall.ratio(stratum)
            weight = (1 if right else odds) / (1 - recall.base + recall.base * odds)
            recall.counted = [recall.counted[0] + weight, recall.counted[1] + weight * right]
            recall.note_latest(weight, right)
        if self.watched[truth]:
            recall.lanes.advance(recall.row[OWN, WEIGHT], ratios[OWN], gap, right)
        self.shared.advance(recall.row[part, WEIGHT], ratios[part], 1)
        if self.constant(recall):  # what was always right, or always wrong, has not changed
            recall.lanes = Lanes()
            if all(map(self.constant, self.recalls)):
                self.shared, self.joint = Lanes(), Lanes()
        if self.fixed is None:
            variance, told = base * (1 - base), recall.n > 8
            if len(recall.strata) == 1 and not recall.sampled:
                recall.dispersion.note(right)
            else:
                told = told and (recall.sampled or recall.strata[stratum, 0] > 8)
                seen = recall.as_seen(recall.base)
                recall.dispersion.note((right - base) * told, variance * told, seen * (1 - seen), recall.sampled)
            self.shared_dispersion.note((right - base) * told, variance * told, None, recall.sampled)
        shifted = self.watches_mix and self.step_mix(truth, recall.row[part, WEIGHT], ratios[part])
        decision = None
        if recall.moved:
            rate = recall.edge(recall.normal_in(stratum))
            recall.expected += recall.normal_in(stratum)
            if recall.condition != "recovering":
                recall.back = (recall.back + gap * rules.BACK / self.classes) * (
                    rate / base if right else (1 - rate) / (1 - base)
                )
            decision = self.decide(truth)
        elif not recall.sampled:
            recall.strata[stratum] += 1, right
        found, named = [], []
        confused = self.confuse(truth, pred) if self.watches_confusions and not recall.moved else 0.0
        if self.counted(before) + confused >= self.threshold:
            found, named = self.alarm()
        if decision and truth not in named:
            found += self.decided(truth, *decision)
        if shifted:
            self.mix, self.mix_n, self.mix_ones, self.mix_due, self.joint = Lanes(), 0, 0, 0, Lanes()
            found.append(("shift", {}))
        return found

    def counted(self, before):
        """All evidence; of sampled events as it is after a mean jump, by the part of the budget in use."""
        if not self.recalls[0].sampled:
            return self.evidence
        begun = [recall.row[OWN, WEIGHT].sum() if recall.row is not None else 0.0
                 for recall, watched in zip(self.recalls, self.watched, strict=True) if watched]  # fmt: skip
        share = max(np.mean(begun) / max(max(begun), 1e-30), 1 / len(begun))
        jump = self.evidence / before if before > 0 else 1.0
        return self.evidence * ((jump - 1) / math.log(jump) if jump > 1 else 1.0) / share

    def confuse(self, truth, pred):
        """Evidence that this class is taken for that one more often, after an observation of it."""
        if truth == pred:
            self.observed[truth] += 1
            return 0.0
        pair = None if self.recalls[pred].moved else self.brought_up_pair(min(truth, pred), max(truth, pred))
        n, cell = self.observed[truth], self.brought_up(truth, pred)
        base = (cell["hits"] + 0.5) / (n + 1)
        weight = self.confusion_weight(n)
        if cell["evidence"].sum() <= 16 * weight / base:
            cell["began"] = self.taken - 1, n, cell["hits"]
        ratio = np.exp(rules.CONFUSION_STEPS) / (1 + base * np.expm1(rules.CONFUSION_STEPS))
        evidence = (cell["evidence"] + weight) * ratio ** self.recalls[truth].power
        self.observed[truth] += 1
        cell |= {"evidence": evidence, "base": base, "hits": cell["hits"] + 1, "last": n + 1}
        if pair is None:
            return evidence.sum()
        pair["pair"] = (pair["pair"] + weight) * ratio ** self.recalls[truth].power
        pair["as of"] = [self.observed[min(truth, pred)], self.observed[max(truth, pred)]]
        return evidence.sum() + pair["pair"].sum()

    def confusion_weight(self, n):
        return rules.CONFUSION_SHARE / 8 / (self.classes - 1) * n / (n + rules.CONFUSION_BEGINS)

    def brought_up(self, c, d):
        """A confusion as of now: none of the observations since its last hit was one."""
        cell = self.cells[c][d]
        weight = self.confusion_weight(cell["last"])
        for _ in range(self.observed[c] - cell["last"] if cell["base"] else 0):
            miss = (1 + cell["base"] * np.expm1(rules.CONFUSION_STEPS)) ** -self.recalls[c].power
            cell["evidence"] = (cell["evidence"] + weight) * miss
        cell["last"] = self.observed[c]
        return cell

    def brought_up_pair(self, c, d):
        """Likewise the evidence that two classes are taken for each other, misses of both in any order."""
        cell, other, (n, m) = self.cells[c][d], self.cells[d][c], self.cells[c][d]["as of"]
        weight = self.confusion_weight((n + m) / 2)
        since = self.observed[c] - n, self.observed[d] - m
        bases = cell["base"] or 0.5 / (n + 1), other["base"] or 0.5 / (m + 1)
        loss = sum(
            k * self.recalls[one].power * np.log1p(base * np.expm1(rules.CONFUSION_STEPS))
            for one, k, base in zip((c, d), since, bases, strict=True)
            if k
        )
        for _ in range(sum(since)):
            cell["pair"] = (cell["pair"] + weight) * np.exp(-loss / sum(since))
        cell["as of"] = [self.observed[c], self.observed[d]]
        return cell

    def clear_confusions(self):
        for c, row in enumerate(self.cells):
            for d, cell in enumerate(row):
                cell |= {"evidence": np.zeros(4), "last": self.observed[c], "began": (0, *cell["began"][1:])}
                cell |= {"pair": np.zeros(4), "as of": [self.observed[c], self.observed[d]]}

    def forget_confusions(self, c):
        self.observed[c] = 0
        self.cells[c] = [
            {"evidence": np.zeros(4), "base": 0.0, "hits": 0, "last": 0, "began": (0, 0, 0)}
            for _ in range(self.classes)
        ]
        self.clear_confusions()

    def step_mix(self, truth, weight, recalls):
        """The class mix, alone and with both recalls falling."""
        if self.mix_n >= self.mix_due:
            self.mix_base = (self.mix_ones + 0.5) / (self.mix_n + 1)
            self.mix_due = np.float32(self.mix_n + max(1.0, self.mix_n * float(self.lag)))
            scatter = 1 + T["inflation"] * (self.mix_dispersion.found()[-1] - 1)
            self.mix_power = 1 / (scatter if self.fixed is None else self.fixed)
        alone, joint = (
            self.ratio(self.mix_base, truth, np.expm1(shift)) ** self.mix_power
            for shift in (self.mix_lanes[0], self.joint_lanes[0])
        )
        if self.joins:
            self.joint.advance(self.joint_lanes[1] * np.tile(weight[:SIZES], 2), joint * np.tile(recalls[:SIZES], 2), 1)
        self.mix.advance(self.mix_lanes[1], alone, 1)
        self.mix_n, self.mix_ones = self.mix_n + 1, self.mix_ones + truth
        if self.fixed is None:
            self.mix_dispersion.note(truth)
        return self.mix.evidence.sum() >= self.mix_threshold

    # The life of a drift ----------------------------------------------------------------------------------------

    def support(self, c, together, recovering=False):
        """How much better the observations since the alarm go with the drift than with normal."""
        own, total = self.recalls[c], np.zeros(SIZES)
        group = own.direction is not None and together
        for k, recall in enumerate(self.recalls):
            in_group = recall.moved and recall.direction == own.direction and not recall.settled
            if k != c and not (group and in_group and recall.condition != "recovering"):
                continue
            n0, p = recall.of_normal()[0], recall.rate_looked_at()
            normal = recall.normal_rate()
            row = self.row(recall.as_seen(normal), recall.number_seen(normal, n0))
            direction = None if recovering else own.direction
            growth = self.lanes_of(row, k, recall.moved, direction)[GROWTH]
            power = recall.power if direction is None else recall.shared_power
            power *= n0 / (n0 + (1 if recovering else rules.DISTRUST) * recall.level()[0])
            total[: growth.size] += power * (recall.ones * np.log1p(growth) - recall.n * np.log1p(p * growth))
        return float((own.weights * np.exp(np.minimum(total, 300))).sum())

    def lanes_of(self, row, c, way, direction):
        """The part of a row that a look at a recall goes by."""
        if direction is None:
            return row[OWN][:, :SIZES] if way < 0 else row[OWN][:, SIZES:]
        width = 3 if self.classes == 2 else SIZES
        return row[SHARED + (c if self.classes == 2 else 0)][:, direction * width : (direction + 1) * width]

    def weights(self, c, least=0.0):
        """Of the lanes of a look: as the budget has them, or alike from a least step on."""
        recall = self.recalls[c]
        normal = recall.normal_rate()
        row = self.row(recall.as_seen(normal), recall.number_seen(normal, recall.of_normal()[0]))
        lanes = self.lanes_of(row, c, recall.moved, recall.direction)
        weights, steps = lanes[WEIGHT].copy(), np.abs(lanes[SHIFT])
        if least or not weights.any():
            weights = (steps >= min(least, steps.max())).astype(float)
        return np.pad(weights / weights.sum(), (0, SIZES - weights.size))

    def decide(self, c):
        recall = self.recalls[c]
        if recall.condition != "recovering" and recall.back >= self.back_threshold:
            return "may be back", [c]
        if recall.n < NUMBERS["EARLIEST"] or recall.n % 2 ** max(int(math.log2(recall.n)) - 4, 0):
            return None
        known = recall.of_normal()[0]
        if recall.condition == "recovering" or recall.settled:
            support = self.support(c, False, recovering=True)
            if support <= (rules.WITHDRAW if recall.condition == "unconfirmed" else rules.RECOVER):
                return "look says normal", [c]
            if support < rules.CONFIRM or recall.condition == "confirmed" or known < rules.LEAST_KNOWN:
                return None
            if recall.condition != "recovering":
                return "look supports it", [c]
            if self.nearer(recall) >= math.log(rules.CONFIRM):
                return "look says nearer", [c]
            return ("look says as before", [c]) if recall.n >= NUMBERS["LATEST"] else None
        alone, support = self.support(c, False), self.support(c, True)
        group = [k for k, other in enumerate(self.recalls) if other.moved and other.direction == recall.direction
                 and not other.settled and other.condition != "recovering"]  # fmt: skip
        group = [c] if recall.direction is None else group
        if support <= rules.WITHDRAW:
            return "look refutes it", group
        undecided = recall.condition == "unconfirmed" and recall.level()[0] >= 2 * known
        if alone <= rules.WITHDRAW or (undecided and alone < 1):
            return "look refutes it", [c]
        enough = known >= rules.LEAST_KNOWN and recall.condition == "unconfirmed"
        if alone >= 1 and enough and (support >= rules.CONFIRM or undecided):
            also = [k for k in group if k != c and self.recalls[k].condition == "unconfirmed"]
            also = [
                k for k in also if self.recalls[k].of_normal()[0] >= rules.LEAST_KNOWN and self.support(k, False) >= 1
            ]
            return "look supports it", sorted([c, *also])
        return None

    def nearer(self, recall):
        """How much better two rates fit than one, before and since it may be back, if the second is nearer normal."""
        seen = np.array([[*recall.level()], [*recall.away]]) + np.array([1, 0.5])
        rates = seen[:, 1] / seen[:, 0]
        same = seen[:, 1].sum() / seen[:, 0].sum()
        if recall.moved * (rates[0] - rates[1]) >= 0:
            return 0.0
        wrong = seen[:, 0] - seen[:, 1]
        return recall.power * (seen[:, 1] * np.log(rates / same) + wrong * np.log((1 - rates) / (1 - same))).sum()

    def decided(self, c, happening, concerned):
        step = LIFE[self.recalls[c].condition, happening]
        now = {k: self.recalls[k].level() for k in concerned}
        for k in concerned:
            recall = self.recalls[k]
            if happening == "may be back":
                self.look_at_return(k)
            elif step.condition == "normal":
                recall.back_to_normal(self.events)
                recall.moved, recall.settled = 0, False
                self.forget(recall)
            recall.condition, recall.settled = (
                step.condition,
                recall.settled or happening in ("look says nearer", "look says as before"),
            )
        return [] if step.finding is None else [(step.finding, now)]

    def forget(self, recall):
        recall.lanes, recall.due, recall.back, self.shared, self.joint = Lanes(), 0, 0.0, Lanes(), Lanes()
        recall.expected = 0.0

    def look_at_return(self, c):
        recall = self.recalls[c]
        if recall.condition == "recovering":
            return
        recall.away = tuple(map(round, recall.level()))
        recall.set_level(0, 0)
        recall.condition, direction, recall.direction = "recovering", recall.direction, None
        self.forget(recall)
        rates = recall.normal_rate(), (recall.away[1] + 0.5) / (recall.away[0] + 1)
        odds = [math.log(rate / (1 - rate)) for rate in rates]
        recall.weights = self.weights(c, max(AWAY * abs(odds[0] - odds[1]), 1e-6))
        recall.direction = direction

    def alarm(self):
        """The evidence is enough: the hypothesis with most of it, and what it means for each recall that moved."""
        width = 3 if self.classes == 2 else SIZES
        claims = [(recall.lanes.evidence[d * SIZES : (d + 1) * SIZES], (c, d), recall.lanes) for c, recall in
                  enumerate(self.recalls) for d in range(2)]  # fmt: skip
        claims += [
            (self.shared.evidence[d * width : (d + 1) * width], (None, d), self.shared) for d in range(12 // width)
        ]
        if self.joins:
            claims += [(self.joint.evidence[d * SIZES : d * SIZES + width], (None, 0), self.joint) for d in range(2)]
        evidence, (owner, d), lanes = max(claims, key=lambda claim: claim[0].sum())
        began, here = None, [c for c, recall in enumerate(self.recalls) if not recall.moved]
        if self.watches_confusions and here:
            found = {
                (c, k): self.brought_up(c, k)["evidence"].sum() for c in here for k in range(self.classes) if c != k
            }
            for c, k in [(c, k) for c in here for k in here if c < k]:
                pair = self.brought_up_pair(c, k)["pair"].sum()
                found[c, k], found[k, c] = found[c, k] + pair, found[k, c] + pair
            c, k = max(found, key=found.get)
            cell = self.cells[c][k]
            if found[c, k] > evidence.sum():
                evidence, (owner, d), lanes = claims[2 * c]
                began = cell["began"][0]
        first = d * (SIZES if owner is not None else width)
        first_age = SIZES if lanes is self.joint and evidence is claims[-1][0] else first
        ages = lanes.age[first_age : first_age + evidence.size] / np.maximum(evidence, 1e-30)
        best = int(evidence.argmax())
        if owner is not None:
            ways = {owner: -1 if d == 0 else 1}
        else:
            signs = [-1 if self.table[0, -1, SHARED + (c if self.classes == 2 else 0), SHIFT, first] < 0 else 1
                     for c in range(self.classes)]  # fmt: skip
            ways = {c: way for c, way in enumerate(signs) if self.tells(c, way)} or dict(enumerate(signs))
        started = self.events - (round(ages[best]) if began is None else self.taken - began)
        seen = {c: self.since(c, way, None if owner is not None else ages, best) for c, way in ways.items()}
        others = [c for c, recall in enumerate(self.recalls) if c not in ways and not recall.moved]
        for c in others if len(self.recalls[0].strata) == 1 else ():
            watched = [way for way, side in ((-1, "up"), (1, "down")) if self.sides != side]
            errors, way = max((self.errors(c, way, *self.since(c, way, ages, best)), way) for way in watched)
            if errors > math.sqrt(ALSO**2 + 2 * math.log(len(others))):
                ways[c], seen[c] = way, self.since(c, way, ages, best)
        ways = dict(sorted(ways.items()))
        fitting = {c: way for c, way in ways.items() if self.fits(c, way, *seen[c])}
        unclear, ways = not fitting, fitting or ways
        taken = self.taken
        self.restart()
        reported = {}
        for c, way in ways.items():
            recall = self.recalls[c]
            n, right = seen[c]
            if recall.moved and way != recall.moved:
                self.look_at_return(c)
                continue
            if self.learning and way > 0 and not recall.moved:  # an improvement is the new normal
                recall.n = recall.ones = recall.given = recall.given_ones = 0
                continue
            nearer = unclear or way * (right / n - recall.away[1] / max(recall.away[0], 1)) <= 0
            if recall.condition == "recovering" and nearer:
                recall.set_level(0, 0)
                recall.expected = 0.0
                recall.condition, recall.settled = "confirmed", True
                continue
            reported[c] = (0, 0) if unclear else (round(n), round(right))
            fresh = not recall.moved
            recall.direction = d if fresh and owner is None else None
            if fresh:
                history, first = (
                    recall.level()[0] - n + recall.given,
                    min(max(started, self.events - taken), self.events - 1),
                )
                history = recall.given if recall.keeps_reference() else history
                if history < rules.LEAST_HISTORY or (first == 0 and not recall.given):
                    recall.set_level(0, 0)
                    recall.given = recall.given_ones = 0
                    self.forget_confusions(c)
                    continue
                known, known_ones = map(round, recall.level())
                kept = min(max(round(known - n), 0), known)
                ones = min(max(round(known_ones - right), 0, kept - (known - known_ones)), kept, known_ones)
                recall.normal = (0, 0) if recall.keeps_reference() else (kept, ones)
            recall.set_level(0, 0)
            recall.expected = 0.0
            recall.settled = recall.settled or recall.condition in ("confirmed", "recovering")
            recall.moved, recall.condition, recall.away = way, "unconfirmed", (0, 0)
            recall.weights = self.weights(c)
            if fresh:
                shares = np.maximum(evidence, 1e-30) / np.maximum(evidence, 1e-30).sum()
                recall.weights = FOUND * np.pad(shares, (0, SIZES - shares.size)) + (1 - FOUND) * recall.weights
        return ([("drift", reported)] if reported else []), list(ways)

    def errors(self, c, way, n, right):
        """By how many standard errors a recall moved this way since n observations."""
        recall = self.recalls[c]
        known, ones = recall.known()
        fixed = recall.keeps_reference()
        earlier, earlier_ones = (known, ones) if fixed else (known - n, max(ones - right, 0.0))
        if min(n, earlier) < FEWEST:
            return 0.0
        rate, power = (ones + 0.5) / (known + 1), recall.power if recall.due else 1.0
        scatter = rate * (1 - rate) * (1 / n + 1 / earlier) / power
        return (way * (right / n - earlier_ones / earlier) - recall.tolerance) / math.sqrt(scatter)

    def fits(self, c, way, n, right):
        """Whether the level since the change lies where the change is said to lead; if there was one before."""
        recall = self.recalls[c]
        known, known_ones = recall.known()
        if recall.moved or not recall.keeps_reference():
            known, known_ones = known - n, known_ones - right
        earlier, ones = max(known, 0.0), max(known_ones, 0.0)
        return 0 in (round(earlier), round(n)) or way * (right / n - min(ones / earlier, 1.0)) > 0

    def tells(self, c, way):
        recall = self.recalls[c]
        lanes = slice(0, SIZES) if way < 0 else slice(SIZES, 12)
        known = float(recall.due) + (0 if recall.moved else recall.given_seen)
        weight = recall.row[OWN, WEIGHT, lanes] if hasattr(recall, "row") else self.row(0.5, known)[OWN, WEIGHT, lanes]
        return recall.lanes.evidence[lanes].sum() > rules.NAMING * weight.sum() * self.taken

    def since(self, c, way, ages, best):
        """Observations of a recall since the change began, and right ones."""
        recall = self.recalls[c]
        lanes = slice(0, SIZES) if way < 0 else slice(SIZES, 12)
        weight = np.maximum(recall.lanes.evidence[lanes], 1e-30)
        n = np.clip(recall.lanes.n[lanes] / weight, 1.0, max(recall.n, 1.0))
        right = np.clip(recall.lanes.right[lanes] / weight, 0.0, n)
        if ages is not None:
            asked = ages[best] * recall.n / max(self.taken, 1)
            best = int(np.abs(np.log((n + 1) / (asked + 1))).argmin())
        return recall.in_truth(n[best], right[best])

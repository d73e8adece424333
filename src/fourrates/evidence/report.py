"""Findings from the record of FourRates, such as a drift, a class-mix shift, and each rate now.

A drift is written into the episode of its record and read back from there. So the alarm, and the open drift of a
detector that was saved and loaded, report the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fourrates.evidence import onset
from fourrates.evidence.alternatives import SIZES
from fourrates.evidence.layout import FourRatesRules
from fourrates.evidence.precision import Mixed, moved
from fourrates.evidence.rules import NAMING
from fourrates.findings import ConfusionChange, Direction, Drift, RateChange, Share, Shift
from fourrates.kernel.evidence import NUMBERS
from fourrates.record import FLAGS

STEPS, LANES = NUMBERS["STEPS"], NUMBERS["LANES"]
MIX_ERRORS = 3.0  # standard errors from which the class mix counts as moved with the recalls
ALSO = 2.1  # standard errors from which another recall is named too; more if there are many
FEWEST = 8  # observations of such a recall since it moved, and before
FURTHEST = 2**32 - 1  # events before an alarm, as an episode has them


class Verdict(NamedTuple):
    """The hypothesis with most of the evidence."""

    owner: int  # the class whose lanes have it, or -1 for those of several
    first: int  # of these lanes,
    lanes: int  # and how many
    ways: list[tuple[int, int]]  # (class, -1 or 1) of those that moved
    mix_way: int  # which way the classes shifted with it: -1, 1, or 0 for none,
    mix_named: bool  # and whether that explains a good deal more than the recalls alone


@dataclass(frozen=True, slots=True)
class Moved:
    """A recall that moved, with its `n` observations since then, `right` of them right; before and after it."""

    cls: int
    way: int
    n: float
    right: float
    before: Share
    after: Share

    @property
    def rise(self) -> float:
        """How far it rose."""
        return self.after.value - self.before.value


@dataclass(frozen=True, slots=True)
class Alarm:
    """The cause of an alarm."""

    at: int
    since: int  # the warning before it
    started: int
    first: int  # the change started between this event
    last: int  # and this one
    evidence: float
    moved: list[Moved]
    direction: int | None  # of the shared lanes that found it; None for those of one recall
    weights: onset.Floats  # how likely each of the lanes that found it is
    positives: tuple[float, float]  # the share of class 1, before and after
    shares: tuple[Share, Share] | None  # the same with intervals, if the class mix shifted with it
    confusion: tuple[int, int] | None  # a class predicted as another more often, if significant


def events_of(record: Any) -> int:
    """Events of the stream."""
    return int(record["head"]["events"]) >> FLAGS


def judge(rules: FourRatesRules, record: Any) -> Verdict:
    """The hypothesis of a record that explains its events best."""
    recall, shared, classes = record["recall"], record["shared"], len(record["recall"])
    own = recall["evidence"].reshape(classes, 2, SIZES).sum(2)  # single precision, as in the kernel
    together = shared["evidence"].reshape(rules.directions, -1).sum(1)
    most, width, mix_way, named = max(own.max(), together.max()), LANES // rules.directions, 0, False
    c, up = divmod(int(own.argmax()), 2)
    first = int(together.argmax()) * width
    if rules.watch_joint:
        down_up = record["joint"]["evidence"].reshape(2, SIZES).sum(1)
        if down_up.max() > most:
            most, mix_way, first = down_up.max(), -1 if down_up[0] > down_up[1] else 1, 0
        named = bool(most > np.float32(NAMING) * rules.joint_weights[0] * together[0])
    if not mix_way and most == own.max():
        return Verdict(c, up * SIZES, SIZES, [(c, 1 if up else -1)], 0, named)
    ups = [int(rules.table[0, 0, 1 + (c if classes == 2 else 0), 0, first] > 0) for c in range(classes)]
    usual = [_row(rules, record, c)[0, 2].reshape(2, SIZES).sum(1)[up] for c, up in enumerate(ups)]
    least = np.float32(NAMING) * (np.array(usual) * np.float32(shared["taken"]))
    ways = [(c, 1 if up else -1) for c, up in enumerate(ups)]
    supported = [(c, way) for c, way in ways if own[c, ups[c]] > least[c]]  # by its own events
    return Verdict(-1, first, width, supported or ways, mix_way, named)


def _row(rules: FourRatesRules, record: Any, c: int) -> Any:
    """The alternatives of a recall at its last refresh, by its base and by how much was known of it."""
    recall, given = record["recall"][c], (record["sample"] if rules.sampled else record["look"])["given"][c]
    known = recall["next_refresh_n"] if recall["moved"] else recall["next_refresh_n"] + given
    octave = int(np.frexp(known)[1]) - 1
    return rules.table[recall["row"], min(max(octave, 0), rules.table.shape[1] - 1)]


def read_alarm(rules: FourRatesRules, record: Any, memory: Any) -> Alarm:
    """The finding of a record with enough evidence."""
    verdict, confusion, began = judge(rules, record), None, None
    total = float(rules.evidence(record.tobytes())[0])
    if rules.watch_confusions:
        cells = rules.confused(memory, np.flatnonzero(record["recall"]["moved"] == 0).tolist())
        verdict, confusion, began = _confused(rules, record, cells, verdict)
        total = total if total >= rules.threshold else total + float(cells.max())
    at = events_of(record) - 1
    since = int(record["head"]["since"]) - 1
    taken = int(record["shared"]["taken"])
    own = verdict.owner >= 0
    finder = record["recall"][verdict.owner] if own else record["joint"] if verdict.mix_way else record["shared"]
    lane = SIZES if verdict.mix_way > 0 else verdict.first
    evidence, aged = (finder[name][lane : lane + verdict.lanes].astype(float) for name in ("evidence", "age"))
    weights = np.maximum(evidence, 1e-30)
    ages = aged / weights
    weights = weights / weights.sum()
    found, information = [], np.zeros(ages.size)
    for c, way in verdict.ways:
        change, told = _moved(rules, record, c, way, weights, ages, own)
        found.append(change)
        information += told
    found += _moved_too(rules, record, {c for c, _ in verdict.ways}, weights, ages)
    age = float(ages[weights.argmax()])
    restarted = at + 1 - taken
    started = min(max(at + 1 - round(age) if began is None else restarted + began, restarted), at)
    gap = min(_gap(record, c) for c, _ in verdict.ways)
    low, high = onset.started_between(weights, at + 1 - ages, np.maximum(information, 1e-9), gap)
    positives, shares = _positives_at(record, age) if record["counts"].shape[0] == 2 else ((0.0, 0.0), None)
    return Alarm(
        at=at,
        since=since,
        started=started,
        first=min(max(restarted, math.floor(low)), started),
        last=max(min(at, math.ceil(high)), started),
        evidence=max(total, rules.threshold),  # by which it counts, if all lanes show a little less
        moved=_consistent(found),
        direction=None if own else verdict.first // verdict.lanes,
        weights=weights,
        positives=positives,
        shares=shares if verdict.mix_way and verdict.mix_named else None,
        confusion=confusion,
    )


def _confused(
    rules: FourRatesRules, record: Any, found: onset.Floats, verdict: Verdict
) -> tuple[Verdict, tuple[int, int] | None, int | None]:
    """If a single confusion has most of the evidence, its hypothesis, the confusion, and the event it began with."""
    own = verdict.owner >= 0
    lanes = record["recall"][verdict.owner]["evidence"] if own else record["shared"]["evidence"]
    most = float(lanes[verdict.first : verdict.first + verdict.lanes].sum())
    if found.max() > most:
        c, d = divmod(int(found.argmax()), len(found))
        return Verdict(c, 0, SIZES, [(c, -1)], 0, False), (c, d), int(record["cell"][c, d]["began"])
    fell = [[(c, -1) in verdict.ways] for c in range(len(found))]
    c, d = divmod(int(np.where(fell, found, 0.0).argmax()), len(found))
    n = int(record["cell"][c, c]["hits"])
    return (
        verdict,
        (c, d) if fell[c][0] and found[c, d] > NAMING * STEPS * rules.confusion_weight * n else None,
        None,
    )


def _confusion_shares(record: Any, c: int, d: int) -> tuple[Share, Share]:
    """How often a class was predicted as another, up to the start and since."""
    cell, n = record["cell"][c, d], int(record["cell"][c, c]["hits"])
    began_n, began_hits, dispersion = int(cell["began_n"]), int(cell["began_hits"]), dispersion_of(record["recall"][c])
    after = Share.of(int(cell["hits"]) - began_hits, n - began_n, onset.WIDER * dispersion)
    return Share.of(began_hits, began_n, dispersion), after


def _moved_too(
    rules: FourRatesRules, record: Any, named: set[int], weights: onset.Floats, ages: onset.Floats
) -> list[Moved]:
    """The other recalls that differ significantly since the change started; unknown with strata, which may mix."""
    if rules.strata > 1 and not rules.sampled:
        return []
    others = [c for c in range(len(record["recall"])) if c not in named and not record["recall"]["moved"][c]]
    errors = math.sqrt(ALSO**2 + 2 * math.log(max(len(others), 1)))
    found, down = [], rules.watched[0][:SIZES].any()
    ways = [way for way, watched in ((-1, down), (1, rules.watched[0][SIZES:].any())) if watched]
    for c in others:
        changes = [_moved(rules, record, c, way, weights, ages, False)[0] for way in ways]
        likeliest = max(changes, key=lambda change: _errors(rules, record, change))
        if _errors(rules, record, likeliest) > errors:
            found.append(likeliest)
    return found


def _errors(rules: FourRatesRules, record: Any, change: Moved) -> float:
    """By how many standard errors a recall moved its way, beyond the tolerance."""
    known, right = known_of(rules, record, change.cls)
    rate = (right + 0.5) / (known + 1)
    fixed = rules.keeps_reference(record, change.cls)
    earlier, earlier_right = (known, right) if fixed else (known - change.n, max(right - change.right, 0.0))
    if min(change.n, earlier) < FEWEST:
        return 0.0
    moved = change.way * (change.right / change.n - earlier_right / earlier) - rules.tolerances[change.cls]
    scatter = rate * (1 - rate) * (1 / change.n + 1 / earlier) * dispersion_of(record["recall"][change.cls])
    return float(moved / math.sqrt(scatter))


def _consistent(moved: list[Moved]) -> list[Moved]:
    """Those whose levels moved the reported way; if there are none, all, without their levels."""
    fitting = [change for change in moved if not (change.before.n and change.after.n) or change.way * change.rise > 0]
    return fitting or [replace(change, after=Share.of(0.0, 0.0)) for change in moved]


def _moved(
    rules: FourRatesRules, record: Any, c: int, way: int, weights: onset.Floats, ages: onset.Floats, own: bool
) -> tuple[Moved, onset.Floats]:
    """How a recall moved, by the lanes of the change or others about as old; and by step its mean nats an event."""
    recall, lanes = record["recall"][c], slice(0, SIZES) if way < 0 else slice(SIZES, 2 * SIZES)
    share = float(recall["n"]) / max(int(record["shared"]["taken"]), 1)
    weight = np.maximum(recall["evidence"][lanes].astype(float), 1e-30)
    known, known_right = known_of(rules, record, c)
    seen = np.clip(recall["n_since"][lanes] / weight, 1.0, max(float(recall["n"]), 1.0))
    right = np.clip(recall["correct_since"][lanes] / weight, 0.0, seen)
    if not own:
        apart = np.abs(np.log((seen + 1) / (ages[:, None] * share + 1)))
        seen, right = seen[apart.argmin(1)], right[apart.argmin(1)]
    if rules.sampled:
        drawn = seen
        seen, right = as_in_truth(record, c, seen, right)
        share = share * seen / drawn
    dispersion = dispersion_of(recall)
    within = not rules.keeps_reference(record, c) or bool(recall["moved"])  # the known include those since
    earlier, earlier_right = np.maximum(known - within * seen, 0.0), np.clip(known_right - within * right, 0.0, None)
    old = np.clip((earlier_right + 0.5) / (earlier + 1), 1e-6, 1 - 1e-6)
    new = np.clip((right + 0.5) / (seen + 1), 1e-6, 1 - 1e-6)
    told = 0.5 * (new - old) * (np.log(new / (1 - new)) - np.log(old / (1 - old)))
    best = int(weights.argmax())
    return Moved(
        c,
        way,
        float(seen[best]),
        float(right[best]),
        onset.share(weights, earlier_right, earlier, dispersion),
        onset.share(weights, right, seen, onset.WIDER * dispersion),
    ), told * share / dispersion


def known_of(rules: FourRatesRules, record: Any, c: int) -> tuple[float, float]:
    """Observations of a recall's level, and right ones; with the reference, unless a drift is open."""
    recall, look = record["recall"][c], record["look"][c]
    n, ones = level_of(record, c)
    if recall["moved"]:
        return n, ones
    given, right = float(look["given"]), float(look["ones"])
    return (given, right) if rules.keeps_reference(record, c) else (n + given, ones + right)


def level_of(record: Any, c: int) -> tuple[float, float]:
    """Observations of a recall's level and right ones, without the reference; weighted if sampled."""
    level = (record["sample"] if "sample" in record.dtype.names else record["recall"])[c]
    return float(level["n"]), float(level["ones"])


def as_in_truth(record: Any, c: int, n: Any, ones: Any) -> tuple[Any, Any]:
    """Observations of a recall and right ones, weighted as the latest are if sampled."""
    if "sample" not in record.dtype.names:
        return n, ones
    sample, recent = record["sample"][c], record["recent"][c]
    odds = 2.0 ** (float(sample["odds"]) / (16 if c else -16))
    right = float(sample["recent_ones"]) + float(sample["last_ones"])
    wrong = float(sample["recent_n"]) + float(sample["last_n"]) - right
    n_right = int(recent["ones"]) + int(recent["last_ones"])
    n_wrong = int(recent["n"]) + int(recent["last_n"]) - n_right
    of_right = right / n_right if n_right else wrong / n_wrong / odds if n_wrong else 1.0
    of_wrong = wrong / n_wrong if n_wrong else of_right * odds
    return ones * of_right + (n - ones) * of_wrong, ones * of_right


def dispersion_of(recall: Any) -> float:
    """The dispersion of a recall, 1 for independent observations."""
    return 1 / max(float(recall["power"].min()), 1e-6) if recall["next_refresh_n"] else 1.0


def _mix_dispersion(record: Any) -> float:
    if "mix" not in (record.dtype.names or ()) or not record["mix"]["n"]:
        return 1.0
    return 1 / max(float(record["mix"]["power"]), 1e-6)


def _gap(record: Any, c: int) -> float:
    """The mean number of events without one of this class due to runs of classes."""
    n = record["counts"].sum(1)
    share = (n[c] + 0.5) / (n.sum() + 1)
    return float((_mix_dispersion(record) - 1) / 2 * (1 - share) / share)


def _positives_at(record: Any, age: float) -> tuple[tuple[float, float], tuple[Share, Share]]:
    """The share of positives before the last `age` events and in them, equal if possible; and as observed."""
    seen = [_seen_since(recall, age) for recall in record["recall"]]
    taken = record["counts"].sum(1).astype(float)
    if "sample" in record.dtype.names:  # by volume, as the mix is that of all events
        scale = record["sample"]["volume"] / np.maximum(taken, 1.0)
        scale *= taken.sum() / max(float(record["sample"]["volume"].sum()), 1e-9)
        seen, taken = [float(n * by) for n, by in zip(seen, scale, strict=True)], taken * scale
    whole, total = float(taken[1] / max(taken.sum(), 1.0)), float(taken.sum())
    since = min(seen[0] + seen[1], total)
    earlier = total - since
    new = seen[1] / max(seen[0] + seen[1], 1e-9)
    old = (taken[1] - new * since) / earlier if earlier >= 1 else whole
    dispersion = _mix_dispersion(record)
    before, after = (Share.of(min(max(p, 0.0), 1.0) * n, n, dispersion) for p, n in ((old, earlier), (new, since)))
    scatter = whole * (1 - whole) * (1 / max(since, 1.0) + 1 / max(earlier, 1.0)) * dispersion
    if earlier < 1 or not 0 < old < 1 or abs(new - old) < MIX_ERRORS * math.sqrt(scatter):
        old = new = whole
    return (old, new), (before, after)


def _seen_since(recall: Any, age: float) -> float:
    """Observations of a recall in the last `age` events, about, by the lane of about that age."""
    weight = np.maximum(recall["evidence"], 1e-30)
    ages = recall["age"] / weight
    best = int(np.abs(np.log((ages + 1) / (age + 1))).argmin())
    return float(recall["n_since"][best] / weight[best] * (age + 1) / (ages[best] + 1))


# The episode ------------------------------------------------------------------------------------------------------


def write_episode(rules: FourRatesRules, record: Any, alarm: Alarm, reported: Sequence[Moved], known: bool) -> None:
    """Record the drift of these recalls that opens an episode; the counts are still those up to the alarm."""
    episode = record["episode"]
    episode["at"] = alarm.at + 1
    for name in ("since", "started", "first", "last"):
        episode[name] = min(alarm.at - getattr(alarm, name), FURTHEST)
    episode["evidence"], episode["known"] = alarm.evidence, known
    record["confusion"][:] = record["counts"]
    record["change"][:] = 0.0
    record["look"]["opened"] = 0
    for change in reported:
        record["look"]["opened"][change.cls] = change.way
        record["change"][change.cls] = [_plain(change.before), _plain(change.after)]
    if len(record["counts"]) == 2:
        by_class = {change.cls: change for change in reported}
        for i, positives in enumerate(alarm.positives):
            rates = [_rate(rules, record, c, by_class.get(c), i) for c in range(2)]
            episode["mixed"][i] = np.clip([positives, *rates], 0.0, 1.0)
    if "swap" in record.dtype.names:
        swap = record["swap"]
        swap["truth"], swap["pred"] = alarm.confusion or (0, 0)
        shares = _confusion_shares(record, *alarm.confusion) if alarm.confusion else None
        swap["shares"][:] = 0.0 if shares is None else [_plain(share) for share in shares]
    if "joint" in record.dtype.names:
        record["joint"]["shares"][:] = 0.0 if alarm.shares is None else [_plain(share) for share in alarm.shares]


def _plain(share: Share) -> tuple[float, ...]:
    """A share in four numbers, of which none is nan."""
    return tuple(share) if share.n else (0.0, 0.0, 1.0, 0.0)


def _share(plain: Any) -> Share:
    value, lower, upper, n = plain.tolist()
    return Share(value, lower, upper, round(n)) if n else Share.of(0, 0)


def _rate(rules: FourRatesRules, record: Any, c: int, change: Moved | None, i: int) -> float:
    known, right = known_of(rules, record, c)
    still = (right + 0.5) / (known + 1)
    share = None if change is None else (change.before, change.after)[i]
    return still if share is None or not share.n else share.value


def read_episode(
    rules: FourRatesRules, record: Any, names: Sequence[str], about: Drift | None = None, further: bool = False
) -> Drift | None:
    """The drift of an episode; None if none is open."""
    episode = record["episode"]
    if not episode["at"]:
        return None
    at = int(episode["at"]) - 1
    since, started, first, last = (at - int(episode[name]) for name in ("since", "started", "first", "last"))
    changes = []
    for c in np.flatnonzero(record["look"]["opened"]).tolist():
        before, after = (_share(plain) for plain in record["change"][c])
        direction: Direction = "down" if record["look"]["opened"][c] < 0 else "up"
        evidence = float(episode["evidence"]), rules.threshold
        changes.append(RateChange(names[c], direction, *evidence, None, after.n, before=before, after=after))
    shift = None
    if "joint" in record.dtype.names and record["joint"]["shares"][1, 3]:
        before, after = (_share(plain) for plain in record["joint"]["shares"])
        shift = Shift(at=at, started=started, before=before, after=after)
    confusions: tuple[ConfusionChange, ...] = ()
    if "swap" in record.dtype.names and record["swap"]["truth"] != record["swap"]["pred"]:
        truth, pred = (names[int(record["swap"][name])].removeprefix("recall:") for name in ("truth", "pred"))
        before, after = (_share(plain) for plain in record["swap"]["shares"])
        confusions = (ConfusionChange(truth, pred, before, after),)
    old, new = (Mixed(*row) for row in episode["mixed"].tolist())
    return Drift(
        at=at,
        since=since,
        changes=tuple(changes),
        confusion=tuple(tuple(row) for row in record["confusion"].tolist()),
        started=started,
        started_between=(first, last),
        about=about,
        precisions=moved(old, new) if len(record["counts"]) == 2 else (),
        confusions=confusions,
        shift=shift,
        further=further,
        normal_known=bool(episode["known"]),
    )


def read_shift(rules: FourRatesRules, record: Any) -> Shift:
    """The finding of a record whose class mix just shifted."""
    at, mix = events_of(record) - 1, record["mix"]
    best = int(mix["evidence"].argmax())
    age = float(mix["age"][best] / max(float(mix["evidence"][best]), 1e-30))
    base = float(mix["base"])
    odds = base / max(1 - base, 1e-9) * math.exp(rules.mix_steps[best])
    tnr, tpr = ((right + 0.5) / (n + 1) for n, right in (known_of(rules, record, c) for c in range(2)))
    return Shift(
        at=at,
        started=min(max(at + 1 - round(age), at + 1 - int(mix["n"])), at),
        before=Share.of(base * float(mix["n"]), float(mix["n"])),
        after=Share.of(odds / (1 + odds) * age, age),
        precisions=moved(Mixed(base, tnr, tpr), Mixed(odds / (1 + odds), tnr, tpr)),
    )


# A rate now -------------------------------------------------------------------------------------------------------


def normal_of(record: Any, c: int) -> tuple[float, float]:
    """Observations of normal and right ones, for a recall that moved."""
    look = record["look"][c]
    return float(look["normal_n"]) + float(look["given"]), float(look["normal_ones"]) + float(look["ones"])


def now_of(record: Any, i: int) -> tuple[float, float]:
    """Observations of a rate and right ones now, since the alarm if a drift is open, else the latest."""
    classes = len(record["counts"])
    c = i % classes
    if i < classes and record["recall"]["moved"][c]:
        return level_of(record, c)
    counts, recent = record["counts"], record["recent"][i]
    n, ones = int(counts[c].sum() if i < classes else counts[:, c].sum()), int(counts[c, c])
    if not record["episode"]["at"]:
        n, ones = int(recent["n"]) + int(recent["last_n"]), int(recent["ones"]) + int(recent["last_ones"])
    return as_in_truth(record, c, n, ones) if i < classes else (n, ones)

"""FourRates: evidence that a rate of the classifier moved, within a false-alarm budget, whatever its size."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from fourrates.budget.levels import check_arl
from fourrates.detectors.base import RecordDetector, rate_names
from fourrates.drift import Drift, RateChange, RateState, Recovery, Share, Shift, Status, Unmoved
from fourrates.evidence import onset
from fourrates.evidence.alternatives import SIZES, Sides
from fourrates.evidence.precision import Mixed, PrecisionChange, moved
from fourrates.evidence.rules import WARN, Mix, evidence_rules
from fourrates.evidence.version_4 import present_records
from fourrates.kernel.evidence import EvidenceRules
from fourrates.labels import Labels, plain
from fourrates.null import check_number
from fourrates.state import VERSION

if TYPE_CHECKING:
    import numpy.typing as npt

After = Literal["restart", "hold"]
MOST = 1e12  # events: beyond, single precision has no room for the ages that go with them


class FourRates(RecordDetector):
    r"""Evidence that a rate of your classifier moved: which, which way, since when, and is it still so.

    Give it the number of events you want between two false alarms; that is the only number it needs. It watches the
    recall of every class, alone and together with the others, for falls and rises of every size at once, and reports a
    :class:`~fourrates.Drift` as soon as the evidence outweighs the budget.

    For each alternative, such as "tpr fell by this much", it keeps the Shiryaev-Roberts statistic
    :math:`R \leftarrow (R + 1)\, q(x) / p(x)`: how much more likely the recent events are if that happened, summed over
    all moments at which it may have begun. While nothing changes the weighted sum of all of them grows by one an event
    on average, so the budget is the threshold.

    Events need not be independent: how much the errors scatter beyond that is estimated, and the evidence is tempered
    by it.

    **Input**: pairs (y_true, y_pred) of labels.

    Parameters
    ----------
    arl : float
        Events between two false alarms of a stable stream, on average; from 100 up.
    warn : float, optional
        Events between two false warnings; a tenth of `arl` if not given.
    reference : K x K counts, or a pair of arrays (y_true, y_pred), optional
        The classifier as you shipped it: its confusion counts on the validation set, by true class and then by
        predicted class, in the order of `labels`. Without one the stream is compared with its own past.
    after : {"restart", "hold"}, optional
        What follows a drift. "restart": a new concept begins, as in the paper. "hold": the reference stays; what moved
        is away until a :class:`~fourrates.Recovery` says that it is back, and a further change is a further drift.
        "hold" if there is a reference.
    labels : iterable of hashables
        The classes.
    positive : label, optional
        The positive one of two labels; the second if not given.
    sides : {"both", "down", "up"}
        Which moves raise an alarm; "down" is degradation only.
    mix : {"report", "alarm", "ignore"}
        What a shift of the true classes is, with two classes: something to report (in `shift`, and in `shifts` of what
        :meth:`update_many` returns), an alarm, or nothing. As an alarm it has its share of the budget, and both recalls
        falling while the classes shift is looked for too: a drift whose `shift` says so. Not watched with more than two
        classes.
    dispersion : float, optional
        How much more the errors scatter than those of independent events; 1 for independent ones. Estimated if not
        given.

    Attributes
    ----------
    shift : Shift or None
        The latest shift of the true classes.

    Examples
    --------
    A classifier whose tpr falls from 0.75 to 0.25 while its accuracy stays at 0.8:

    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(8)
    >>> def events(size, matrix):  # matrix[truth][guess]
    ...     return np.divmod(random.choice(4, size, p=np.ravel(matrix)), 2)
    >>> before, after = events(5000, [[0.65, 0.15], [0.05, 0.15]]), events(5000, [[0.75, 0.05], [0.15, 0.05]])
    >>> y_true, y_pred = np.hstack([before, after])

    >>> detector = fr.FourRates(arl=100_000)
    >>> drift, = detector.update_many(y_true, y_pred)
    >>> print(drift)
    drift at 5,105, started about 4,975: tpr down: 0.726 -> 0.349
    """

    __slots__ = ("_names", "_reported")

    _names: tuple[str, ...]
    _reported: Shift | None

    def __init__(
        self,
        arl: float = 100_000,
        *,
        warn: float | None = None,
        reference: Any = None,
        after: After | None = None,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
        sides: Sides = "both",
        mix: Mix = "report",
        dispersion: float | None = None,
    ) -> None:
        self._begin({"arl": plain(arl), "warn": plain(warn), "labels": labels, "positive": positive})
        counts = None if reference is None else confusion_counts(reference, self._labels)
        chosen = check_after(after if after is not None else "restart" if counts is None else "hold")
        for name, value, accepted in (
            ("sides", sides, get_args(Sides)),
            ("mix", mix, get_args(Mix)),
        ):
            if value not in accepted:
                raise ValueError(f"{name} {value!r} is not one of {accepted}")
        if chosen == "hold" and counts is None:
            raise ValueError("after 'hold' needs a reference to hold")
        if not check_arl(arl) <= MOST:
            raise ValueError(f"arl {arl!r} is more than {MOST:.0e} events")
        own_warn = WARN * arl if warn is None else check_number(warn, "warn")
        if not 1 <= own_warn < arl:
            raise ValueError(f"warn {warn!r} is not a number of events below arl {arl!r}")
        if dispersion is not None and not 1 <= check_number(dispersion, "dispersion") < 1e6:
            raise ValueError(f"dispersion {dispersion!r} is not a number of at least 1")
        self.parameters |= {
            "reference": None if counts is None else counts.tolist(),
            "after": chosen,
            "sides": sides,
            "mix": mix,
            "dispersion": plain(dispersion),
        }
        self._names = rate_names(self._labels.values)
        self._reported = None
        self._follow(self._made_rules(hold=chosen == "hold", counts=counts))

    def _made_rules(
        self, *, hold: bool, keyed: bool = False, counts: npt.NDArray[np.int64] | None = None
    ) -> EvidenceRules:
        own, arl = self.parameters, float(self.parameters["arl"])
        return evidence_rules(
            len(self._labels.values),
            arl,
            WARN * arl if own["warn"] is None else float(own["warn"]),
            sides=own["sides"],
            mix=own["mix"],
            hold=hold,
            keyed=keyed,
            dispersion=own["dispersion"],
            reference=None if counts is None else in_order_of_codes(counts, self._labels),
        )

    # The reference --------------------------------------------------------------------------------------------

    @property
    def evidence_rules(self) -> EvidenceRules:
        """The rules it shares with others of the same settings."""
        rules = self.rules
        assert isinstance(rules, EvidenceRules)
        return rules

    def keyed_rules(self, after: After) -> EvidenceRules:
        """Rules with these settings for many streams of which each has its own reference, or none."""
        return self._made_rules(hold=after == "hold", keyed=True)

    def _load(self, state: bytes, version: int = VERSION) -> None:
        self._set_record(bytes(present_records(self.rules, state, version)))

    def _forget(self) -> None:
        super()._forget()
        self.shift = self._reported = None

    # Where things stand ---------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """How things stand: under hold a drift stands until its recovery."""
        if self.drift_detected or self.is_away:
            return "drifted"
        return "warning" if self.warning_detected else "stable"

    @property
    def is_away(self) -> bool:
        """Whether a rate has left the reference under hold and is not back: a drift stands."""
        return bool((self._fields()["recall"]["moved"] != 0).any())

    @property
    def evidence(self) -> float:
        """All evidence for a change, as a share of what an alarm takes."""
        one = self._fields()
        return float((one["recall"]["total"].sum() + _together(one)) / self.evidence_rules.alarm)

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Where each rate stands: the recalls with baseline, evidence and dispersion, and the precisions."""
        one, classes = self._fields(), len(self._labels.values)
        counts = one["counts"]
        found = {}
        for i, name in enumerate(self._names):
            n = int(counts[i].sum() if i < classes else counts[:, i - classes].sum())
            ones = int(counts[i % classes, i % classes])
            state = RateState(n=n, estimate=ones / n if n else math.nan)
            if i < classes:
                recall = one["recall"][i]
                dispersion = 1 / max(float(recall["power"].min()), 1e-6) if recall["n"] else 1.0
                known, right = _known(one, i)
                state = RateState(
                    n=n,
                    estimate=state.estimate,
                    baseline=Share.of(right, known, dispersion),
                    evidence=float((recall["total"] + _together(one)) / self.evidence_rules.alarm),
                    dispersion=dispersion,
                )
            found[name] = state
        return MappingProxyType(found)

    def _fields(self) -> Any:
        return np.frombuffer(self.record_bytes, self.evidence_rules.dtype())[0]

    # Reports --------------------------------------------------------------------------------------------------

    def report(self, record: bytes, at: int, since: int) -> Drift:
        """What a record that just alarmed has to tell."""
        one = np.frombuffer(record, self.evidence_rules.dtype())[0]
        found = self.evidence_rules.judge(record)
        owner, first = found.owner, found.first
        taken = int(one["shared"]["taken"])
        confusion = tuple(tuple(row) for row in one["counts"].tolist())
        own = owner >= 0 and not found.back
        if found.back and owner >= 0:
            evidence, aged = (one["reference"][owner][name][None] for name in ("back", "back_age"))
            moved = [(owner, 0 if found.ways[0][1] < 0 else SIZES)]
        else:
            finder = one["recall"][owner] if own else one["joint"] if found.way_of_mix else one["shared"]
            lane = SIZES if found.way_of_mix > 0 else first
            evidence, aged = (finder[name][lane : lane + found.lanes] for name in ("evidence", "age"))
            moved = [(owner, first)] if own else [(c, 0 if way < 0 else SIZES) for c, way in found.ways]
        view = _View(evidence.astype(float), aged.astype(float), own)
        changes, information = [], np.zeros(view.ages.size)
        for c, direction in moved:
            change, told = self._change(one, c, direction, view)
            changes.append(change)
            information += told
        age = float(view.ages[view.weights.argmax()])
        restarted = at + 1 - taken
        started = min(max(at + 1 - round(age), restarted), at)
        low, high = onset.started_between(view.weights, at + 1 - view.ages, np.maximum(information, 1e-9))
        between = (min(max(restarted, math.floor(low)), started), max(min(at, math.ceil(high)), started))
        return (Recovery if found.back else Drift)(
            at=at,
            since=since,
            changes=tuple(changes),
            confusion=confusion,
            started=started,
            started_between=between,
            precisions=self._precisions(one, changes, age) if len(self._labels.values) == 2 else (),
            shift=self._with_shift(one, at, started, age) if found.way_of_mix and found.telling else None,
            unmoved=self._unmoved(one, moved, age),
        )

    def _unmoved(self, one: Any, moved: list[tuple[int, int]], age: float) -> tuple[Unmoved, ...]:
        """The recalls that did not give the alarm, up to the last `age` events and in them.

        Read off lanes that look for a change the same way: should a recall have moved with the others, they know.
        """
        told = {c for c, _ in moved}
        if len(told) == len(self._labels.values):
            return ()
        recall, (_, first) = one["recall"], moved[0]
        weight = np.maximum(recall["evidence"][:, first : first + SIZES].astype(float), 1e-30)
        seen = np.clip(recall["seen"][:, first : first + SIZES] / weight, 0.0, recall["n"][:, None])
        right = np.clip(recall["right"][:, first : first + SIZES] / weight, 0.0, seen)
        # The likelier ones that go back about as far: twice as far, or half, counts for a quarter.
        asked = age * recall["n"] / max(int(one["shared"]["taken"]), 1)
        best = (np.log(weight) - 2 * np.abs(np.log((seen + 1) / (asked[:, None] + 1)))).argmax(1)
        found = []
        for c, lane in enumerate(best.tolist()):
            if c in told:
                continue
            n, ones = float(seen[c, lane]), float(right[c, lane])
            known, known_right = _known(one, c)
            before = Share.of(max(known_right - ones, 0.0), max(known - n, 0.0))
            found.append(Unmoved(self._names[c], before, Share.of(ones, n)))
        return tuple(found)

    def _precisions(self, one: Any, changes: list[RateChange], age: float) -> tuple[PrecisionChange, ...]:
        """How the precisions moved with these recalls, and with the mix of classes if that moved too."""
        rates: list[list[float]] = [[], []]
        for c, name in enumerate(self._names[:2]):
            change = next((change for change in changes if change.rate == name), None)
            known, right = _known(one, c)
            still = (right + 0.5) / (known + 1)
            pair = (still, still) if change is None else (change.before, change.after)
            for side, rate in zip(rates, pair, strict=True):
                value = rate.value if isinstance(rate, Share) else rate
                side.append(still if value is None or math.isnan(value) else value)
        taken = one["counts"].sum(1)
        positives = float(taken[1]) / max(float(taken.sum()), 1.0)
        (old, earlier), (new, since) = _positives(one, age)
        scatter = (
            positives * (1 - positives) * (1 / max(since, 1.0) + 1 / max(earlier, 1.0)) * self._mix_dispersion(one)
        )
        if earlier < 1 or not 0 < old < 1 or abs(new - old) < MIX_ERRORS * math.sqrt(scatter):
            old = new = positives
        return moved(Mixed(old, *rates[0]), Mixed(new, *rates[1]))

    def _with_shift(self, one: Any, at: int, started: int, age: float) -> Shift:
        """The shift of the classes that a drift came with; how it moved the precisions is told there."""
        dispersion = self._mix_dispersion(one)
        before, after = (Share.of(min(max(share, 0.0), 1.0) * n, n, dispersion) for share, n in _positives(one, age))
        return Shift(at=at, started=started, before=before, after=after)

    def _mix_dispersion(self, one: Any) -> float:
        if "mix" not in (one.dtype.names or ()) or not one["mix"]["n"]:
            return 1.0
        return 1 / max(float(one["mix"]["power"].min()), 1e-6)

    def _change(self, one: Any, c: int, direction: int, view: _View) -> tuple[RateChange, onset.Floats]:
        """How a recall moved, and how much an event since told of it, on average, in nats, for each step.

        What was seen since the start is read off the lanes that found the change; where the change was found otherwise,
        off those that go back about as far.
        """
        recall = one["recall"][c]
        share = float(recall["n"]) / max(int(one["shared"]["taken"]), 1)
        weight = np.maximum(recall["evidence"][direction : direction + SIZES].astype(float), 1e-30)
        known, known_right = _known(one, c)
        seen = np.clip(recall["seen"][direction : direction + SIZES] / weight, 1.0, max(float(recall["n"]), 1.0))
        right = np.clip(recall["right"][direction : direction + SIZES] / weight, 0.0, seen)
        if not view.own:
            apart = np.abs(np.log((seen + 1) / (view.ages[:, None] * share + 1)))
            seen, right = seen[apart.argmin(1)], right[apart.argmin(1)]
        dispersion = 1 / max(float(recall["power"].min()), 1e-6)
        earlier, earlier_right = np.maximum(known - seen, 0.0), np.clip(known_right - right, 0.0, None)
        old = np.clip((earlier_right + 0.5) / (earlier + 1), 1e-6, 1 - 1e-6)
        new = np.clip((right + 0.5) / (seen + 1), 1e-6, 1 - 1e-6)
        told = 0.5 * (new - old) * (np.log(new / (1 - new)) - np.log(old / (1 - old)))
        change = RateChange(
            rate=self._names[c],
            direction="down" if direction == 0 else "up",
            statistic=view.evidence,
            bound=self.evidence_rules.alarm,
            expected=None,
            n=int(recall["n"]),
            before=onset.share(view.weights, earlier_right, earlier, dispersion),
            after=onset.share(view.weights, right, seen, onset.WIDER * dispersion),
        )
        return change, told * share / dispersion

    def report_shift(self, record: bytes, at: int) -> Shift:
        """What a record whose classes just shifted has to tell."""
        one = np.frombuffer(record, self.evidence_rules.dtype())[0]
        mix = one["mix"]
        best = int(mix["evidence"].argmax())
        age = float(mix["age"][best] / mix["evidence"][best])
        base = float(mix["base"])
        odds = base / max(1 - base, 1e-9) * math.exp(self.evidence_rules.mix_step(best))
        known = [_known(one, c) for c in range(2)]
        tnr, tpr = ((right + 0.5) / (n + 1) for n, right in known)
        return Shift(
            at=at,
            started=max(at + 1 - round(age), at + 1 - int(mix["n"])),
            before=Share.of(base * float(mix["n"]), float(mix["n"])),
            after=Share.of(odds / (1 + odds) * age, age),
            precisions=moved(Mixed(base, tnr, tpr), Mixed(odds / (1 + odds), tnr, tpr)),
        )

    def _shifted(self) -> None:
        self.shift = self.report_shift(self.record_bytes, self.events - 1)
        self._reported = None
        self._restart_mix()

    def _new_shifts(self) -> list[Shift]:
        if self.shift is None or self.shift is self._reported:
            return []
        self._reported = self.shift
        return [self.shift]

    def keep_from(self) -> int:
        """The earliest event that a later drift may name as the start of its window: any since the restart."""
        return self.events - int(self._fields()["shared"]["taken"])


def check_after(after: Any) -> After:
    """`after` as it is, or an error that says what is accepted."""
    if after not in get_args(After):
        raise ValueError(f"after {after!r} is not one of {get_args(After)}")
    return after  # type: ignore[no-any-return]


class _View:
    """The lanes that found a change, one recall's own or those of all: how likely each is, how far back it goes."""

    def __init__(self, evidence: onset.Floats, aged: onset.Floats, own: bool):
        self.own = own
        self.evidence = float(evidence.sum())
        self.weights = np.maximum(evidence, 1e-30) / np.maximum(evidence, 1e-30).sum()
        self.ages = aged / np.maximum(evidence, 1e-30)


MIX_ERRORS = 3.0  # standard errors from which on the mix of classes is taken to have moved with the recalls


def _seen_since(recall: Any, age: float) -> float:
    """Observations of a recall in the last `age` events, about: by the lane that goes back about as far."""
    weight = np.maximum(recall["evidence"], 1e-30)
    ages = recall["age"] / weight
    best = int(np.abs(np.log((ages + 1) / (age + 1))).argmin())
    return float(recall["seen"][best] / weight[best] * (age + 1) / (ages[best] + 1))


def _together(one: Any) -> Any:
    """Evidence that several recalls moved, alone or as the classes shifted."""
    total = one["shared"]["total"]
    return total + one["joint"]["total"] if "joint" in one.dtype.names else total


def _positives(one: Any, age: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The share of class 1 and of how many events, up to the last `age` events and in them."""
    seen = [_seen_since(recall, age) for recall in one["recall"]]
    taken = one["counts"].sum(1)
    since = min(seen[0] + seen[1], float(taken.sum()))
    earlier = float(taken.sum()) - since
    new = seen[1] / max(seen[0] + seen[1], 1e-9)
    whole = float(taken[1]) / max(float(taken.sum()), 1.0)
    return ((float(taken[1]) - new * since) / earlier if earlier >= 1 else whole, earlier), (new, since)


def _known(one: Any, c: int) -> tuple[float, float]:
    """Observations of a recall and right ones, with the reference, if there is one, unless it is away from it."""
    recall = one["recall"][c]
    n, ones = float(recall["n"]), float(recall["ones"])
    if recall["moved"] == 0 and "reference" in one.dtype.names:
        reference = one["reference"][c]
        n, ones = n + float(reference["given"]), ones + float(reference["ones"])
    return n, ones


def in_order_of_codes(counts: npt.NDArray[np.int64], labels: Labels) -> npt.NDArray[np.int64]:
    """Counts, one matrix or many, in the order in which the kernel has the labels: the positive class last."""
    order = [labels.given.index(label) for label in labels.values]
    return counts[..., order, :][..., order]


def confusion_counts(reference: Any, labels: Labels) -> npt.NDArray[np.int64]:
    """The K x K counts of a reference, in the order of the labels as given; or from the pairs of a validation set."""
    classes = len(labels.values)
    pair = isinstance(reference, tuple) and len(reference) == 2 and np.ndim(reference[0]) == 1
    if pair and not (classes == 2 and len(reference[0]) == 2 and len(reference[1]) == 2):
        truths, guesses = labels.encode(reference[0], "reference"), labels.encode(reference[1], "reference")
        if truths.size != guesses.size:
            raise ValueError(f"reference: y_true has {truths.size} events, y_pred has {guesses.size}")
        order = [labels.values.index(label) for label in labels.given]
        counted = np.bincount(truths.astype(np.int64) * classes + guesses, minlength=classes**2)
        reference = counted.reshape(classes, classes)[np.ix_(order, order)]
    try:
        counts = np.asarray(reference, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"reference {reference!r} is not a matrix of counts") from None
    if counts.shape != (classes, classes):
        raise ValueError(f"reference has shape {counts.shape}, not {classes} x {classes}")
    if not (np.isfinite(counts).all() and (counts >= 0).all() and (counts == np.floor(counts)).all()):
        raise ValueError("reference must hold counts: whole numbers of at least 0")
    if counts.sum() > 1e12:
        raise ValueError(f"reference holds {counts.sum():.3g} events; at most 1e12 are possible")
    if (counts.sum(1) == 0).any():
        empty = labels.values[int((counts.sum(1) == 0).argmax())]
        raise ValueError(f"reference has no event of class {empty!r}")
    return counts.astype(np.int64)

"""FourRates, evidence that a rate of the classifier moved, within a false-alarm budget, for moves of any size."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fourrates.budget.levels import check_arl
from fourrates.checks import check_number, check_whole
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.sampling import ODDS
from fourrates.detectors.seasons import SEASONS, Season
from fourrates.evidence.alternatives import Sides
from fourrates.evidence.layout import FourRatesRules
from fourrates.evidence.life import RECOVERING, Life
from fourrates.evidence.report import dispersion_of, known_of, level_of, normal_of, now_of
from fourrates.evidence.rules import WARN, Mix, evidence_rules
from fourrates.findings import DEVIATIONS, Drift, Finding, RateState, Share, Status
from fourrates.labels import Labels, plain, rate_names

After = Literal["restart", "hold"]
MOST = 1e12  # events; beyond, single precision has no room for their ages
CLOSE = 0.05  # either way; a rate with this interval is worth quoting
LEAST = 30  # observations for that, whatever the interval
MOST_STRATA = 256
LEARNING = 0.05  # tolerance of a model that learns, if not given


class FourRates(RecordDetector):
    r"""Evidence that a rate of your classifier moved, with direction, start and value now, and if it is over.

    Give it the number of events you want between two false alarms; that is the only number it needs. It watches the
    recall of every class, alone and together with the others, for falls and rises of every size at once, and reports a
    :class:`~fourrates.Drift` as soon as the evidence outweighs the budget.

    For each alternative, such as "tpr fell by this much", it keeps the Shiryaev-Roberts statistic :math:`R \leftarrow
    (R + 1)\, q(x) / p(x)`. That is how much more likely the alternative makes the recent events, summed over all
    moments at which it may have begun. While nothing changes the weighted sum of all of them grows by one an event on
    average, so the budget is the threshold.

    An alarm opens the drift. Normal is remembered, and the events that follow are a second look. They confirm the drift
    or withdraw it, and later show whether the rate recovered. All of that is in `findings`; `update` returns drifts
    alone.

    Events need not be independent. Clustering of errors is estimated, and the evidence is tempered by it.

    **Input**: pairs (y_true, y_pred) of labels.

    Parameters
    ----------
    arl : float
        Events between two false alarms of a stable stream, on average; from 100 up.
    warn : float, optional
        Events between two false warnings; a tenth of `arl` if not given.
    reference : K x K counts, or a pair of arrays (y_true, y_pred), optional
        The classifier as you shipped it, by confusion counts of the validation set by true, then predicted class, in
        the order of `labels`; or its pairs. Without one the stream is compared with its own past. Pairs in their
        original order also show how much errors cluster, before the first event is watched.
    after : {"hold", "restart"}
        The policy after a drift. With "hold" normal is kept, and the drift is open until it is withdrawn, recovered or
        accepted. With "restart" the new level is normal at once, as in the paper.
    labels : iterable of hashables
        The classes.
    positive : label, optional
        The positive one of two labels; the second if not given.
    sides : {"both", "down", "up"}
        Which moves raise an alarm; "down" is degradation only.
    mix : {"report", "alarm", "ignore"}
        Report a class-mix shift of two classes, alarm, or ignore it. As an alarm it has its share
        of the budget, and both recalls falling during a shift are looked for too, as a drift with a `shift`. Not
        watched with more than two classes.
    dispersion : float, optional
        Clustering of errors, relative to independent events, for which it is 1. If not given it is estimated; an
        estimate from pairs as a reference is kept here.
    tolerance : float or mapping by rate, optional
        Changes of a recall by less than this are ignored: ``0.03`` is three points, ``{"tpr": 0.05}`` five points of
        tpr and none of tnr. A fall is looked for from normal less the tolerance, a rise from normal plus it. With a
        reference, normal is the reference alone, and the budget holds for every stream that stays within the tolerance
        of it, seasonal, clustered or learning.
    learning : bool
        For a model that keeps learning. Falls beyond the tolerance (0.05 if not given) are alarms; an improvement
        becomes the normal without one.
    strata : int or {"day", "week"}, optional
        The number of strata of events, from 2 to 256: hours, weekdays, types of day. Each recall has a normal of its
        own in each stratum, and a change is one of all strata together. "day" is the 24 hours and "week" the 7
        weekdays, which every input with times derives from them.
    sampled : bool
        Whether only some events get a label, drawn with probabilities that depend on the prediction, as
        :class:`~fourrates.LabelPlan` draws them. Each event then needs its probabilities; evidence, rates and intervals
        are about all events. For two labels.
    rates : iterable of str, optional
        The recalls that may raise an alarm, such as ``["tpr"]``; each is watched alone and they share the whole budget.
        All if not given.

    Examples
    --------
    A classifier whose tpr falls from 0.75 to 0.25 while its accuracy stays at 0.8:

    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(8)
    >>> def events(size, matrix):  # matrix[truth][pred]
    ...     return np.divmod(random.choice(4, size, p=np.ravel(matrix)), 2)
    >>> before, after = events(5000, [[0.65, 0.15], [0.05, 0.15]]), events(5000, [[0.75, 0.05], [0.15, 0.05]])
    >>> y_true, y_pred = np.hstack([before, after])

    >>> detector = fr.FourRates(arl=100_000)
    >>> [drift] = detector.update_many(y_true, y_pred)
    >>> print(drift)
    drift at 5,109, started about 4,975: tnr up: 0.807 -> 0.938; tpr down: 0.726 -> 0.334

    How it ended, and tpr now:

    >>> for finding in detector.findings:
    ...     print(finding)
    drift at 5,109, started about 4,975: tnr up: 0.807 -> 0.938; tpr down: 0.726 -> 0.334
    confirmation at 5,185 of the drift at 5,109: tpr down: 0.726 -> 0.067
    confirmation at 5,219 of the drift at 5,109: tnr up: 0.807 -> 0.875
    >>> detector.status, detector.rates["tpr"].state, detector.rates["tpr"].now_in_words
    ('drifted', 'confirmed', '0.220 [0.195, 0.247] of 990')
    """

    __slots__ = ("_names",)

    rules: FourRatesRules

    def __init__(
        self,
        arl: float = 100_000,
        *,
        warn: float | None = None,
        reference: Any = None,
        after: After = "hold",
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
        sides: Sides = "both",
        mix: Mix = "report",
        dispersion: float | list[Any] | None = None,
        tolerance: float | Mapping[str, float] | None = None,
        learning: bool = False,
        strata: int | Season | None = None,
        sampled: bool = False,
        rates: Iterable[str] | None = None,
    ) -> None:
        self._begin({"arl": plain(arl), "warn": plain(warn), "labels": labels, "positive": positive})
        counts = None if reference is None else confusion_counts(reference, self._labels)
        for name, value, accepted in (
            ("after", after, get_args(After)),
            ("sides", sides, get_args(Sides)),
            ("mix", mix, get_args(Mix)),
        ):
            if value not in accepted:
                raise ValueError(f"{name} {value!r} is not one of {accepted}")
        if not check_arl(arl) <= MOST:
            raise ValueError(f"arl {arl!r} is more than {MOST:.0e} events")
        own_warn = WARN * arl if warn is None else check_number(warn, "warn")
        if not 1 <= own_warn < arl:
            raise ValueError(f"warn {warn!r} is not a number of events below arl {arl!r}")
        if dispersion is None and not sampled and _are_pairs(reference, self._labels):
            dispersion = _clustering(reference[0], reference[1], self._labels)
        elif not isinstance(dispersion, list | None) and not 1 <= check_number(dispersion, "dispersion") < 1e6:
            raise ValueError(f"dispersion {dispersion!r} is not a number of at least 1")
        self.parameters |= {
            "reference": None if counts is None else counts.tolist(),
            "after": after,
            "sides": sides,
            "mix": mix,
            "dispersion": dispersion if isinstance(dispersion, list) else plain(dispersion),
            "tolerance": dict(tolerance) if isinstance(tolerance, Mapping) else plain(tolerance),
            "learning": bool(learning),
            "strata": plain(strata),
            "sampled": bool(sampled),
            "rates": None if rates is None else [*rates],
        }
        if sampled:
            self._check_sampled()
        if strata is not None and not (strata in SEASONS or 2 <= check_whole(strata, "strata") <= MOST_STRATA):  # type: ignore[arg-type]
            raise ValueError(f"strata {strata!r} is none of {tuple(SEASONS)} and not from 2 to {MOST_STRATA}")
        if len(self._labels.values) * self.strata >= 1 << 16:
            raise ValueError(f"strata {strata!r}: too many for {len(self._labels.values)} classes")
        if learning and sides != "both":
            raise ValueError(f"sides {sides!r} and learning, which decides that falls are alarms, rises are not")
        self._names = rate_names(self._labels.values)
        self._watched()
        self.stratified = self.strata > 1
        self._follow(self._made_rules())

    def _check_sampled(self) -> None:
        """Raise a ValueError if a parameter does not work with sampled events."""
        own = self.parameters
        if len(self._labels.values) != 2:
            raise ValueError("sampled: for two labels only")
        for name in ("tolerance", "learning", "strata"):
            if own[name]:
                raise ValueError(f"sampled and {name}: not both")
        if own["mix"] == "alarm":
            raise ValueError("mix='alarm' cannot go with sampled: the class mix of labelled events is that of the draw")

    def _made_rules(self) -> FourRatesRules:
        own, arl = self.parameters, float(self.parameters["arl"])
        counts = None if own["reference"] is None else np.array(own["reference"], np.int64)
        return evidence_rules(
            len(self._labels.values),
            arl,
            WARN * arl if own["warn"] is None else float(own["warn"]),
            sides=own["sides"],
            mix=own["mix"],
            hold=own["after"] == "hold",
            dispersion=own["dispersion"],
            reference=None if counts is None else in_order_of_codes(counts, self._labels),
            tolerance=self._tolerances(),
            learning=own["learning"],
            strata=self.strata,
            sampled=own["sampled"],
            watched=self._watched(),
        )

    def _watched(self) -> list[bool] | None:
        """By class, whether its recall is watched; None if all are."""
        asked, recalls = self.parameters["rates"], self._names[: len(self._labels.values)]
        if asked is None:
            return None
        for rate in asked or [""]:
            if rate not in recalls:
                raise ValueError(f"rates: {rate!r} is not a recall; there are {', '.join(recalls)}")
        return None if {*asked} == {*recalls} else [rate in asked for rate in recalls]

    @property
    def strata(self) -> int:
        """How many normals each recall has."""
        asked = self.parameters["strata"]
        if self.parameters["sampled"]:
            return ODDS
        return 1 if asked is None else int(SEASONS.get(asked, asked))

    def _tolerances(self) -> list[float]:
        """By class, a number between 0 and 1."""
        asked, recalls = self.parameters["tolerance"], self._names[: len(self._labels.values)]
        if asked is None:
            asked = LEARNING if self.parameters["learning"] else 0.0
        by_rate = asked if isinstance(asked, dict) else dict.fromkeys(recalls, asked)
        for rate, value in by_rate.items():
            if rate not in recalls:
                raise ValueError(f"tolerance: {rate!r} is not a recall; there are {', '.join(recalls)}")
            if not 0 <= check_number(value, "tolerance") < 1:
                raise ValueError(f"tolerance {value!r} is not a number from 0 to 1: 0.03 is three points")
        return [float(by_rate.get(rate, 0.0)) for rate in recalls]

    def tolerance_in_words(self) -> str | None:
        """The tolerance as a sentence; None if there is none."""
        asked = self._tolerances()
        points = [f"{100 * share:.3g} point{'' if 100 * share == 1 else 's'}" for share in asked]
        if not any(asked):
            return None
        words = f"changes under {points[0]} are ignored"
        if len({*asked}) > 1:
            named = zip(self._names, asked, points, strict=False)
            words = "changes are ignored under " + ", ".join(
                f"{point} of {rate}" for rate, share, point in named if share
            )
        return words + (", improvements become the normal" if self.parameters["learning"] else "") + ", as you asked"

    # The life of a drift --------------------------------------------------------------------------------------

    def _settle_record(self, record: npt.NDArray[np.uint8], state: int) -> Sequence[Finding]:
        """The findings of the last event of a record with these settings, which then resumes."""
        return self._life_of(record).settle(state)

    def _life_of(self, record: npt.NDArray[np.uint8]) -> Life:
        """The life of a drift in a record with these settings, which is changed by it."""
        return Life(self.rules, self._names, record)

    @property
    def open(self) -> Drift | None:
        """The open drift, the one that opened the episode, if several rates moved one after the other."""
        return self._life_of(self._record_view()).open

    @property
    def alarmed(self) -> bool:
        """Whether the last event gave an alarm, a drift or, with ``mix="alarm"``, a class-mix shift."""
        shift = self.parameters["mix"] == "alarm"
        last = (finding.kind for finding in self.findings if finding.at == self.events - 1)
        return self.drift_detected or (shift and "shift" in last)

    def accept(self, reference: Any = None, *, force: bool = False) -> Finding | None:
        """Accept the level since the alarm as the new normal, for example after a new model was deployed.

        Parameters
        ----------
        reference : K x K counts, or a pair of arrays, optional
            The new normal instead, as for the class itself.
        force : bool
            Also if there are fewer than 30 observations of a class since the alarm.

        Returns
        -------
        Finding or None
            An acceptance; None if no drift is open.
        """
        counts = None if reference is None else confusion_counts(reference, self._labels)
        claimed = self._claim()
        try:
            finding = self._life_of(self._record_view()).accept(normal_of_counts(counts, self._labels), force)
            if counts is not None:
                self.parameters = self.parameters | {"reference": counts.tolist()}
                self._set_rules(self._made_rules())
            self._reread()
            self.findings = () if finding is None else (finding,)
        finally:
            if claimed:
                self._release()
        return finding

    # State ----------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """The state: "drifted" while a drift is open."""
        if self.drift_detected or self._fields()["episode"]["at"]:
            return "drifted"
        return "warning" if self.warning_detected else "stable"

    @property
    def evidence(self) -> float:
        """All evidence for a change, as a share of an alarm."""
        return float(self.rules.evidence(self.record_bytes)[0] / self.rules.threshold)

    def _rate_state(self, saved: bytes, i: int) -> RateState:
        record, classes = np.frombuffer(saved, self.rules.layout)[0], len(self._labels.values)
        counts = record["counts"]
        n = int(counts[i].sum() if i < classes else counts[:, i - classes].sum())
        ones = int(counts[i % classes, i % classes])
        estimate = ones / n if n else math.nan
        now_n, now_ones = now_of(record, i)
        if i >= classes:
            return RateState(
                n=n,
                estimate=estimate,
                now=Share.of(now_ones, now_n),
                enough=_enough((now_ones + 0.5) / (now_n + 1), 1.0),
            )
        rules, recall = self.rules, record["recall"][i]
        if rules.sampled:
            weight, right = level_of(record, i)
            estimate = right / weight if weight else math.nan
        together = record["shared"]["total"] + (record["joint"]["total"] if rules.watch_joint else 0.0)
        dispersion = dispersion_of(recall)
        known, right = known_of(rules, record, i)
        memory = np.frombuffer(saved, np.uint8)
        condition, support = self._life_of(memory).condition(i), None
        normal = known, right
        if condition != "normal":
            normal = normal_of(record, i)
            support = rules.returning(memory, i) if condition == RECOVERING else rules.support(memory, i)[0]
        return RateState(
            n=n,
            estimate=estimate,
            baseline=Share.of(right, known, dispersion),
            normal=Share.of(normal[1], normal[0], dispersion),
            evidence=float((recall["total"] + together) / rules.threshold),
            dispersion=dispersion,
            state=condition,
            now=Share.of(now_ones, now_n, dispersion),
            enough=_enough((now_ones + 0.5) / (now_n + 1), dispersion),
            support=support,
        )

    def _fields(self) -> Any:
        return np.frombuffer(self.record_bytes, self.rules.layout)[0]

    @property
    def volumes(self) -> tuple[float, ...]:
        """Events of each class since the last alarm, whether labelled or not, up to a factor."""
        record = self._fields()
        return tuple((record["sample"]["volume"] if self.parameters["sampled"] else record["counts"].sum(1)).tolist())

    @property
    def earliest_start(self) -> int:
        """The earliest event that a later drift may name as the start of its window, the first since the last alarm."""
        return self.events - int(self._fields()["shared"]["taken"])


def _enough(rate: float, dispersion: float) -> int:
    """Observations from which on a rate is worth quoting."""
    return max(LEAST, math.ceil(dispersion * rate * (1 - rate) * (DEVIATIONS / CLOSE) ** 2))


def in_order_of_codes(counts: npt.NDArray[np.int64], labels: Labels) -> npt.NDArray[np.int64]:
    """Counts, one matrix or many, in the kernel's order of labels, the positive class last."""
    order = [labels.given.index(label) for label in labels.values]
    return counts[..., order, :][..., order]


def normal_of_counts(counts: npt.NDArray[np.int64] | None, labels: Labels) -> tuple[Any, Any] | None:
    """Observations and right ones by class code, if there are counts."""
    ordered = None if counts is None else in_order_of_codes(counts, labels)
    return None if ordered is None else (ordered.sum(1), ordered.diagonal())


def _are_pairs(reference: Any, labels: Labels) -> bool:
    """Whether a reference is the pairs of a validation set; two rows of two numbers are counts."""
    pair = isinstance(reference, tuple) and len(reference) == 2 and np.ndim(reference[0]) == 1
    return pair and not (len(labels.values) == 2 and len(reference[0]) == 2 and len(reference[1]) == 2)


def _clustering(y_true: Any, y_pred: Any, labels: Labels) -> list[Any]:
    """How much a reference clusters, as squares and pairs of blocks, by class, overall and of the class mix."""
    watched = FourRates(MOST, labels=labels.given, positive=labels.values[1] if len(labels.values) == 2 else None)
    watched.update_many(y_true, y_pred)
    record = watched._fields()
    parts = [*record["recall"], record["shared"], record["mix" if len(labels.values) == 2 else "shared"]]
    return [
        [part["dispersion"][name].astype(float).round(4).tolist() for name in ("squares", "pairs")] for part in parts
    ]


def confusion_counts(reference: Any, labels: Labels) -> npt.NDArray[np.int64]:
    """The K x K counts of a reference, counts or pairs, in the order of the labels as given."""
    classes = len(labels.values)
    if _are_pairs(reference, labels):
        truths, preds = labels.encode(reference[0], "reference"), labels.encode(reference[1], "reference")
        if truths.size != preds.size:
            raise ValueError(f"reference: y_true has {truths.size} events, y_pred has {preds.size}")
        order = [labels.values.index(label) for label in labels.given]
        counted = np.bincount(truths.astype(np.int64) * classes + preds, minlength=classes**2)
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

"""Linear Four Rates, every rate of the confusion matrix, each within bounds that hold at every sample size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fourrates.budget.levels import design
from fourrates.detectors.base import RecordDetector
from fourrates.findings import Bounds, Drift, RateState, Statistic
from fourrates.kernel.linear import LinearRules
from fourrates.kernel.tables import Table
from fourrates.labels import plain, rate_names
from fourrates.null import MANY, NULLS, Null, check_decay, check_level, table
from fourrates.record import Head

Sides = Literal["both", "down", "up"]
SIDES: tuple[Sides, ...] = get_args(Sides)
HAIR = 1e-15
DECAY, WARN, DETECT = 0.9, 0.01, 1e-5  # the paper's settings, also for a rate left out of a mapping


class Test(NamedTuple):
    """One statistic of a rate, with the positions of its levels in a table, and the sides it watches."""

    table: Table
    warn: int
    detect: int
    down: bool
    up: bool


class LFR(RecordDetector):
    r"""Linear Four Rates (LFR) finds which rate of your classifier moved, which way, and since when.

    A classifier can lose two thirds of its true positives while its accuracy stays put. LFR watches all four rates of
    the confusion matrix (tpr, tnr, ppv and npv, or recall and precision of each class if there are more). An
    event touches exactly two of them, the recall of its true class and the precision of its predicted class. Both get
    the same bit, whether the prediction was right.

    For each rate LFR keeps a time-decayed mean R, which follows a change quickly, and the plain counts, which remember.
    As long as the concept is stable, every order of the bits seen so far is equally likely. So the law of R given the
    counts is known exactly, with nothing estimated, and R outside its bounds means that the order was no accident. At
    the warning level LFR starts to note the new concept; at the detection level it reports a :class:`~fourrates.Drift`
    and starts afresh. A warning that lapses is forgotten.

    **Input**: pairs (y_true, y_pred) of labels.

    Parameters
    ----------
    decay : float, sequence of floats, or mapping by rate
        Weight of the past, the paper's :math:`\eta`. Near 1 it sees small, lasting changes; low, it sees large ones at
        once. Several values give each rate one statistic each, and the level is shared between them. Default 0.9.
    warn : float or mapping by rate
        Level of the warning bounds, the paper's :math:`\delta`, the chance, per side, rate and step, that a stable R
        lies outside.
    detect : float or mapping by rate
        Level of the detection bounds, the paper's :math:`\epsilon`; smaller than `warn`. 1e-5 if neither it nor `arl`
        is given.
    arl : float, optional
        Instead of `detect`, the mean events between two false alarms of a stable stream; see
        :func:`fourrates.budget.design`. For a budget, :class:`~fourrates.FourRates` finds more.
    labels : iterable of hashables
        The classes. Two make the four rates, more make ``recall:<label>`` and ``precision:<label>``.
    positive : label, optional
        The positive one of two labels; the second if not given.
    sides : {"both", "down", "up"} or mapping by rate
        Which moves raise an alarm; "down" is degradation only.
    null : {"exact", "plugin"}
        How the bounds are computed, see :mod:`fourrates.null`. Only "exact" is a guarantee.
    rates : names of rates, optional
        The rates to watch, if not all: ``["tnr", "tpr"]`` leaves out the precisions, which move with every class-mix
        shift.

    Examples
    --------
    A classifier whose tpr falls from 0.75 to 0.25 while its accuracy stays at 0.8:

    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(7)
    >>> def events(size, matrix):  # matrix[truth][pred]
    ...     return np.divmod(random.choice(4, size, p=np.ravel(matrix)), 2)
    >>> before, after = events(5000, [[0.65, 0.15], [0.05, 0.15]]), events(5000, [[0.75, 0.05], [0.15, 0.05]])
    >>> y_true, y_pred = np.hstack([before, after])

    >>> detector = fr.LFR()
    >>> drift, *later = detector.update_many(y_true, y_pred)
    >>> print(drift)
    drift at 5,080, since 5,024: tpr down: 0.264, below its bound 0.273 (0.732 expected after 1,044 observations)
    >>> drift.window
    range(5024, 5081)

    Names instead of numbers, degradation only, and more care for the positives:

    >>> detector = fr.LFR(labels=["ham", "spam"], sides="down", detect={"tpr": 1e-3, "ppv": 1e-4})
    >>> detector.update("ham", "ham")
    >>> detector.rates["tnr"].n
    1
    >>> detector.update("ham", "egg")
    Traceback (most recent call last):
    ...
    ValueError: 'egg' in column 'y_pred' is not one of the labels ham, spam

    References
    ----------
    H. Wang and Z. Abraham, "Concept Drift Detection for Streaming Data", IJCNN 2015.
    """

    __slots__ = ("_names", "_tests")

    rules: LinearRules
    _tests: list[list[Test]]  # of each rate

    def __init__(
        self,
        decay: float | Sequence[float] | Mapping[str, float | Sequence[float]] | None = None,
        warn: float | Mapping[str, float] = WARN,
        detect: float | Mapping[str, float] | None = None,
        *,
        arl: float | None = None,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
        sides: Sides | Mapping[str, Sides] = "both",
        null: Null = "exact",
        rates: Iterable[str] | None = None,
    ) -> None:
        self._begin(
            {
                "decay": _stored(decay),
                "warn": _stored(warn),
                "detect": _stored(detect),
                "arl": plain(arl),
                "labels": labels,
                "positive": positive,
                "sides": _stored(sides),
                "null": null,
                "rates": None if rates is None else [rates] if isinstance(rates, str) else [*rates],
            }
        )
        if null not in NULLS:
            raise ValueError(f"null {null!r} is not one of {NULLS}")
        self._names = rate_names(self._labels.values)
        every_side: list[Sides] = self._by_rate("sides", sides, "both")
        for rate, side in zip(self._names, every_side, strict=True):
            if side not in SIDES:
                raise ValueError(f"sides {side!r} of {rate} is not one of {SIDES}")
        warns = self._by_rate("warn", warn, WARN)
        if arl is not None and detect is not None:
            raise ValueError(f"arl {arl!r} and detect {detect!r}: give arl or detect, not both")
        decays = [_decays(value) for value in self._by_rate("decay", DECAY if decay is None else decay, DECAY)]
        if arl is not None:
            detect = min(design(arl, *setting).detect for setting in {*zip(decays, every_side, strict=True)})
        detects = self._by_rate("detect", DETECT if detect is None else detect, DETECT)
        levels = [
            _shared_levels(rate, len(own), warn, detect)
            for rate, own, warn, detect in zip(self._names, decays, warns, detects, strict=True)
        ]
        watched = self._watched_rates(rates)
        decays = [own if rate in watched else () for rate, own in zip(self._names, decays, strict=True)]
        used: dict[float, set[float]] = {}
        for own, pair in zip(decays, levels, strict=True):
            for value in own:
                used.setdefault(value, set()).update(pair)
        tables = {value: table(value, used[value], null) for value in sorted(used)}
        self._tests = []
        for own, (outer, inner), side in zip(decays, levels, every_side, strict=True):
            down, up, chosen = side != "up", side != "down", [tables[value] for value in own]
            self._tests.append([Test(t, t.levels.index(outer), t.levels.index(inner), down, up) for t in chosen])
        self._follow(LinearRules(len(self._labels.values), self._tests))

    def _watched_rates(self, rates: Iterable[str] | None) -> frozenset[str]:
        """The rates to watch, all of them if none are named."""
        if rates is None:
            return frozenset(self._names)
        found = frozenset([rates] if isinstance(rates, str) else rates)
        for rate in sorted(found):
            if rate not in self._names:
                raise ValueError(f"rates: {rate!r} is not one of {self._names}")
        if not found:
            raise ValueError("rates: there is none to watch")
        return found

    def _by_rate(self, name: str, value: Any, default: Any) -> list[Any]:
        """The value for each rate, in the order of the kernel."""
        if not isinstance(value, Mapping):
            return [value] * len(self._names)
        for rate in value:
            if rate not in self._names:
                raise ValueError(f"{name}: rate {rate!r} is not one of {self._names}")
        return [value.get(rate, default) for rate in self._names]

    def asymptotic_bounds(self, rate: str, value: float) -> list[tuple[float, float, float]]:
        """(decay, lower, upper) of each statistic's detection bounds after very many observations at this value."""
        ones = round(value * MANY)
        return [
            (own.decay, own.lower(detect, MANY, ones) if down else -1.0, own.upper(detect, MANY, ones) if up else 2.0)
            for own, _, detect, down, up in self._tests[self._names.index(rate)]
        ]

    def _rate_state(self, record: bytes, i: int) -> RateState:
        counts, classes = self.rules.counts(record), len(self._labels.values)
        n = int(counts[i].sum() if i < classes else counts[:, i - classes].sum())
        ones = int(counts[i % classes, i % classes])
        first = sum(map(len, self._tests[:i]))
        values = self.rules.statistics(record)[first : first + len(self._tests[i])]
        estimate = ones / n if n else 0.5
        statistics = tuple(
            Statistic(
                decay=own.decay,
                value=value,
                warn=Bounds(own.lower(warn, n, ones), own.upper(warn, n, ones)),
                detect=Bounds(own.lower(detect, n, ones), own.upper(detect, n, ones)),
                expected=estimate + (0.5 - estimate) * own.decay**n,
            )
            for value, (own, warn, detect, _, _) in zip(values, self._tests[i], strict=True)
        )
        return RateState(n=n, estimate=estimate if n else float("nan"), statistics=statistics)

    def _drift_of(self, record: bytes, head: Head) -> Drift:
        changes = []
        for i, name in enumerate(self._names):
            state = self._rate_state(record, i)
            for statistic, test in zip(state.statistics, self._tests[i], strict=True):
                # A hair, as the kernel compares from below on either side, and rounds otherwise.
                fell = test.down and statistic.value <= statistic.detect.lower + HAIR
                if fell or (test.up and statistic.value >= statistic.detect.upper - HAIR):
                    changes.append(statistic.change(name, "down" if fell else "up", state.n))
                    break
        confusion = tuple(tuple(row) for row in self.rules.counts(record).tolist())
        return Drift(at=head.events - 1, since=head.since, changes=tuple(changes), confusion=confusion)


def _stored(value: Any) -> Any:
    """A parameter as JSON keeps it."""
    if isinstance(value, Mapping):
        return {name: _stored(part) for name, part in value.items()}
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return [plain(part) for part in value]
    return plain(value)


def _decays(value: Any) -> tuple[float, ...]:
    single = isinstance(value, str) or not isinstance(value, Sequence | np.ndarray)
    several = (value,) if single else tuple(value)
    found = tuple(check_decay(decay) for decay in several)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"decay {value!r} must be one number or several different ones")
    return found


def _shared_levels(rate: str, statistics: int, warn: float, detect: float) -> tuple[float, float]:
    """The warning and the detection level of each of a rate's statistics."""
    if not check_level(detect, f"{rate}: detect") < check_level(warn, f"{rate}: warn"):
        raise ValueError(f"{rate}: warn {warn!r} is not larger than detect {detect!r}")
    return check_level(warn / statistics, "warn, as shared,"), check_level(detect / statistics, "detect, as shared,")

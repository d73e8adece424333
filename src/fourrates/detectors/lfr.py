"""Linear Four Rates: every rate of the confusion matrix, each within bounds that hold at every sample size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fourrates.detectors.base import Detector, rate_names
from fourrates.drift import Drift, RateChange, RateState, Statistic
from fourrates.kernel.pairs import FourRates, Table
from fourrates.kernel.window import Window
from fourrates.labels import plain
from fourrates.null import MANY, NULLS, Bounds, Null, check_decay, check_level, table
from fourrates.onset import Share, locate

Sides = Literal["both", "down", "up"]
SIDES: tuple[Sides, ...] = get_args(Sides)
DECAY, WARN, DETECT = 0.9, 0.01, 1e-5  # the paper's settings, and what a rate left out of a mapping gets


class Watch(NamedTuple):
    """One statistic of a rate: its decay and its levels."""

    decay: float
    warn: float
    detect: float


class LFR(Detector, FourRates):
    r"""Linear Four Rates (LFR): which rate of your classifier moved, which way, and since when.

    A classifier can lose two thirds of its true positives while its accuracy stays put. LFR watches all four rates of
    the confusion matrix: tpr, tnr, ppv and npv, or recall and precision of each class when there are more than two. An
    event touches exactly two of them, the recall of its true class and the precision of its predicted class, both with
    the same bit: was the prediction right?

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
        once. Several values give each rate one statistic each, and the level is shared between them. Default
        0.9.
    warn : float or mapping by rate
        Level of the warning bounds, the paper's :math:`\delta`: the chance, per side, rate and step, that a stable R
        lies outside.
    detect : float or mapping by rate
        Level of the detection bounds, the paper's :math:`\epsilon`; smaller than `warn`. 1e-5 if neither it nor `arl`
        is given.
    arl : float, optional
        Instead of `detect`: how many events of a stable stream there should be, on average, between two false alarms;
        see :func:`fourrates.design`.
    labels : iterable of hashables
        The classes. Two make the four rates, more make ``recall:<label>`` and ``precision:<label>``.
    positive : label, optional
        The positive one of two labels; the second if not given.
    sides : {"both", "down", "up"} or mapping by rate
        Which moves raise an alarm; "down" is degradation only.
    null : {"exact", "plugin", "monte-carlo"}
        Where the bounds come from, see :mod:`fourrates.null`. Only "exact" is a guarantee.
    correction : {None, "bonferroni"}
        With "bonferroni", `warn` and `detect` are levels of a whole step: divided by the number of rates and watched
        sides.

    Examples
    --------
    A classifier whose tpr falls from 0.75 to 0.25 while its accuracy stays at 0.8:

    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(7)
    >>> def events(size, matrix):  # matrix[truth][guess]
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
    ValueError: y_pred: label 'egg' is not one of ('ham', 'spam')

    References
    ----------
    H. Wang and Z. Abraham, "Concept Drift Detection for Streaming Data", IJCNN 2015.
    """

    __slots__ = ("_names", "_statistics", "_watched", "common_sides", "plan")

    common_sides: Sides
    """The sides watched of every rate; "both" where rates differ."""

    plan: None
    """The windows it watches for a budget, if it does that instead of decayed statistics."""

    _names: tuple[str, ...]
    _watched: list[tuple[bool, bool]]  # for each rate: down, up
    _statistics: list[list[tuple[Table, int, int]]]  # for each rate: (table, warning level, detection level)

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
        correction: Literal["bonferroni"] | None = None,
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
                "correction": correction,
            }
        )
        if null not in NULLS:
            raise ValueError(f"null {null!r} is not one of {NULLS}")
        if correction not in (None, "bonferroni"):
            raise ValueError(f"correction {correction!r} is not one of (None, 'bonferroni')")
        self._names = rate_names(self._labels.values)
        self.plan = None
        every_side: list[Sides] = self._by_rate("sides", sides, "both")
        self.common_sides = every_side[0] if len(set(every_side)) == 1 else "both"
        for rate, side in zip(self._names, every_side, strict=True):
            if side not in SIDES:
                raise ValueError(f"sides {side!r} of {rate} is not one of {SIDES}")
        warns = self._by_rate("warn", warn, WARN)
        if arl is not None and detect is not None:
            raise ValueError(f"arl {arl!r} and detect {detect!r}: one of them says the other")
        if arl is not None and correction is not None:
            raise ValueError(f"arl {arl!r} is for the whole detector already; it takes no correction {correction!r}")
        decays = [_decays(value) for value in self._by_rate("decay", DECAY if decay is None else decay, DECAY)]
        if arl is not None:
            detect = _level(arl, decays, every_side)
        detects = self._by_rate("detect", DETECT if detect is None else detect, DETECT)
        self._set_up(self._watches(decays, warns, detects, every_side, correction is not None), every_side, null)

    def _by_rate(self, name: str, value: Any, default: Any) -> list[Any]:
        """The value for each rate, in the order of the kernel."""
        if not isinstance(value, Mapping):
            return [value] * len(self._names)
        for rate in value:
            if rate not in self._names:
                raise ValueError(f"{name}: rate {rate!r} is not one of {self._names}")
        return [value.get(rate, default) for rate in self._names]

    def _watches(
        self,
        decays: list[tuple[float, ...]],
        warns: list[float],
        detects: list[float],
        sides: list[Sides],
        corrected: bool,
    ) -> list[list[Watch]]:
        """For each rate its statistics, the levels shared between them."""
        tests = sum(2 if side == "both" else 1 for side in sides) if corrected else 1
        found = []
        for rate, own, warn, detect in zip(self._names, decays, warns, detects, strict=True):
            if not check_level(detect, f"{rate}: detect") < check_level(warn, f"{rate}: warn"):
                raise ValueError(f"{rate}: warn {warn!r} is not larger than detect {detect!r}")
            shared = tests * len(own)
            low, high = (
                check_level(level / shared, f"{name}, as shared,")
                for name, level in (("warn", warn), ("detect", detect))
            )
            found.append([Watch(value, low, high) for value in own])
        return found

    def _set_up(self, watches: list[list[Watch]], sides: list[Sides], null: Null) -> None:
        every = [watch for own in watches for watch in own]
        used = sorted({watch.decay for watch in every})
        levels = {
            decay: sorted({level for one in every if one.decay == decay for level in (one.warn, one.detect)})[::-1]
            for decay in used
        }
        tables = {decay: table(decay, levels[decay], null) for decay in used}
        self._watched = [(side != "up", side != "down") for side in sides]
        self._statistics = []
        settings = []
        for own, watched in zip(watches, self._watched, strict=True):
            found = [(levels[one.decay].index(one.warn), levels[one.decay].index(one.detect)) for one in own]
            self._statistics.append([(tables[one.decay], *at) for one, at in zip(own, found, strict=True)])
            settings.append([(used.index(one.decay), *at, *watched) for one, at in zip(own, found, strict=True)])
        self._configure(len(self._labels.values), tuple(tables.values()), settings)

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Where each rate stands now: counts, statistic, warning and detection bounds."""
        return MappingProxyType({name: self._rate_state(i) for i, name in enumerate(self._names)})

    def asymptotic_bounds(self, rate: str, value: float) -> list[tuple[float, float, float]]:
        """(decay, lower, upper) of each statistic's detection bounds after very many observations at this value."""
        i = self._names.index(rate)
        ones = round(value * MANY)
        down, up = self._watched[i]
        return [
            (own.decay, own.lower(detect, MANY, ones) if down else -1.0, own.upper(detect, MANY, ones) if up else 2.0)
            for own, _, detect in self._statistics[i]
        ]

    def _rate_state(self, i: int) -> RateState:
        n, ones, values = self._rate(i)
        estimate = ones / n if n else 0.5
        statistics = tuple(
            Statistic(
                decay=own.decay,
                value=value,
                warn=Bounds(own.lower(warn, n, ones), own.upper(warn, n, ones)),
                detect=Bounds(own.lower(detect, n, ones), own.upper(detect, n, ones)),
                expected=estimate + (0.5 - estimate) * own.decay**n,
            )
            for value, (own, warn, detect) in zip(values, self._statistics[i], strict=True)
        ) + tuple(
            Statistic(
                decay=None,
                window=width,
                value=value,
                warn=_window_bounds(width, warn, n, ones),
                detect=_window_bounds(width, detect, n, ones),
                expected=estimate,
            )
            for width, value, warn, detect in self._windows(i)
        )
        return RateState(n=n, estimate=estimate if n else float("nan"), statistics=statistics)

    def _report(self, at: int, since: int) -> Drift:
        changes: dict[str, RateChange] = {}
        for i, test, down in self._crossed():
            name = self._names[i]
            if name in changes:
                continue
            state = self._rate_state(i)
            changes[name] = state.statistics[test].change(name, "down" if down else "up", state.n)
        for i, test, down, level in self._together():
            name = self._names[i]
            n, ones, _ = self._rate(i)
            given_other = replace(
                self._rate_state(i).statistics[test],
                detect=_window_bounds(self._windows(i)[test][0], level, n, ones),
            )
            change = given_other.change(name, "down" if down else "up", n)
            changes.setdefault(name, replace(change, together=True))
        found = Drift(at=at, since=since, changes=tuple(changes.values()), confusion=self._confusion())
        return self._located(found)

    def _located(self, drift: Drift) -> Drift:
        """The drift with its start, and the values of the moved rates before and after that."""
        past = self._past()
        if not len(past):
            return drift
        classes = len(self._labels.values)
        events, n = past[:, :classes].sum(1), past[:, : 2 * classes]
        ones = np.hstack([past[:, 2 * classes :]] * 2)  # of the recalls, and the same of the precisions
        now = [self._rate(i)[:2] for i in range(2 * classes)]
        moved = [self._names.index(change.rate) for change in drift.changes]
        # Recalls carry most of what a change shows; a shift of the classes alone shows in the precisions only.
        family = slice(classes) if min(moved) < classes else slice(classes, None)
        onset = locate(events, n[:, family], ones[:, family], list(zip(*now[family], strict=True)))
        origin = drift.at + 1 - sum(count for count, _ in now[:classes])
        changes = tuple(
            replace(
                change,
                before=Share.of(int(ones[onset.moment, i]), int(n[onset.moment, i])),
                after=Share.of(int(now[i][1] - ones[onset.moment, i]), int(now[i][0] - n[onset.moment, i])),
            )
            for change, i in zip(drift.changes, moved, strict=True)
        )
        return replace(
            drift,
            changes=changes,
            started=origin + int(events[onset.moment]),
            started_between=(origin + onset.first, origin + onset.last),
        )

    def _past(self) -> np.ndarray[Any, Any]:
        """The counts before each of the latest events and at the marks before those, in order: 3 K a row.

        These are the observations of each rate, and then the diagonal counts.
        """
        return self._rows(self._moments)

    def _rows(self, copy: Callable[[np.ndarray[Any, Any]], int]) -> np.ndarray[Any, Any]:
        rows = np.empty((self._longest_past, 3 * len(self._labels.values)), np.int64)
        return rows[: copy(rows)]

    def _dump(self) -> bytes:
        counts, statistics, places, bits, weights = self._arrays()
        self._state(counts, statistics, places)
        if weights.size:
            self._window_state(bits, weights)
        parts = counts.astype("<i8"), statistics.astype("<f8"), places, bits.astype("<u8"), weights.astype("<f8")
        recent = np.array(self._recent(), "<u2")
        # From mark to mark, and the low bytes of all numbers first: most of the others are zero, and pack well.
        steps = np.diff(self._rows(self._marks), axis=0, prepend=0).astype("<i8").reshape(-1, 1).view(np.uint8)
        past = len(recent).to_bytes(2, "little") + recent.tobytes() + steps.T.tobytes()
        return b"".join(part.tobytes() for part in parts) + zlib.compress(past)

    def _load(self, state: bytes) -> None:
        sizes = [part.nbytes for part in self._arrays()]
        ends = np.cumsum(sizes)
        try:
            past = zlib.decompress(state[ends[-1] :])
        except zlib.error:
            raise ValueError(f"the saved state of {len(state)} bytes is cut, or of another detector") from None
        row = 3 * len(self._labels.values)
        events = int.from_bytes(past[:2], "little")
        start = 2 + 2 * events
        if len(past) < start or (len(past) - start) % (8 * row):
            raise ValueError(f"the saved past of {len(past)} bytes is not of {events} events and rows of {row} counts")
        counts, statistics, places, bits, weights = (
            state[end - size : end] for size, end in zip(sizes, ends, strict=True)
        )
        self._set_state(
            np.frombuffer(counts, "<i8").astype(np.int64),
            np.frombuffer(statistics, "<f8").astype(np.float64),
            np.frombuffer(places, np.uint8).copy(),
        )
        if weights:
            self._set_window_state(
                np.frombuffer(bits, "<u8").astype(np.uint64).reshape(-1, 4),
                np.frombuffer(weights, "<f8").astype(np.float64),
            )
        recent = np.frombuffer(past, "<u2", events, 2).astype(np.uint16)
        steps = np.frombuffer(past[start:], np.uint8).reshape(8, -1).T.copy().view("<i8").reshape(-1, row)
        self._set_past(np.cumsum(steps, axis=0, dtype=np.int64), recent)

    def _arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The arrays of a state: counts, statistics and where they stand; for windows the latest bits, and weights."""
        tests = sum(map(len, self._statistics))
        rates = 0 if self.plan is None else len(self._names)
        return (
            np.empty(len(self._labels.values) ** 2, np.int64),
            np.empty(tests),
            np.empty(tests, np.uint8),
            np.empty((rates, 4), np.uint64),
            np.empty(rates and rates + 1),
        )


def _window_bounds(width: int, level: float, n: int, ones: int) -> Bounds:
    window = Window(width)
    return Bounds(window.lower(level, n, ones), window.upper(level, n, ones))


def _stored(value: Any) -> Any:
    """A parameter in a form of its own that JSON keeps."""
    if isinstance(value, Mapping):
        return {name: _stored(one) for name, one in value.items()}
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return [plain(one) for one in value]
    return plain(value)


def _decays(value: Any) -> tuple[float, ...]:
    single = isinstance(value, str) or not isinstance(value, Sequence | np.ndarray)
    several = (value,) if single else tuple(value)
    found = tuple(check_decay(decay) for decay in several)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"decay {value!r} must be one number or several different ones")
    return found


def _level(arl: float, decays: list[tuple[float, ...]], sides: list[Sides]) -> float:
    """The detection level that keeps a run length."""
    from fourrates.budget.levels import design

    return min(design(arl, *setting).detect for setting in set(zip(decays, sides, strict=True)))

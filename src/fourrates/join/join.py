"""Match predictions and late labels by id, in any order.

:class:`LabelJoin` holds a prediction until its label arrives, and a label until its prediction does. It returns pairs
in the order they were completed and holds a bounded number, for a bounded time. The library, the command line and the
service all use it.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Hashable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from fourrates.checks import check_whole
from fourrates.detectors.sampling import OwnFirst, both_probabilities
from fourrates.exclusive import ExclusiveUse
from fourrates.join.delays import LabelDelays
from fourrates.join.ids import check_tags, fingerprints
from fourrates.join.paired import Pairs
from fourrates.kernel.fingerprint import Hasher
from fourrates.kernel.pending import ENTRY, PAIR, STATES, Pending
from fourrates.labels import Labels, plain
from fourrates.state import pack, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes

Unit = Literal["number", "date"]  # of times; dates are microseconds since 1970

MOST = 500_000_000  # that may wait or be remembered, as table positions have 32 bits
KIND = "LabelJoin"
PROGRESS = struct.Struct("<16s7qdd4q")  # key, counts, clock and its beginning, entries of each log, delays
UNITS: tuple[Unit | None, ...] = (None, "number", "date")
COUNTS = ("pairs", "expired", "displaced", "unmatched", "repeated_predictions", "repeated_labels", "late_labels")
SAVED = ENTRY.newbyteorder("<")
LOGS = ({STATES["prediction"]}, {STATES["label"]}, {STATES["paired"], STATES["missed"]})  # the states in each


class LabelJoin:
    """Match predictions with their labels by id, whichever arrives first.

    Parameters
    ----------
    labels, positive
        As for the detectors.
    max_waiting : int
        The most predictions waiting for a label, and the most labels waiting for a prediction. Beyond that the oldest
        leaves and is counted.
    max_wait : float or timedelta, optional
        How long anything waits, as a number in the unit of the times, or a timedelta if times are dates. Without it,
        only `max_waiting` bounds the wait.
    max_remembered : int, optional
        How many ids are remembered after they were paired or left, so that a repeated label counts as a repeat.
        Default: `max_waiting`. With `max_wait`, an id is remembered no longer than that.
    seed : int, optional
        Key of the fingerprints, from 0 up to 2**128; random by default. Results do not depend on it.

    Attributes
    ----------
    waiting, waiting_labels : int
        Predictions that wait for their label, and labels that wait for their prediction.
    counts : dict
        These, and by name how all others ended: `pairs`; `expired` and `displaced`, predictions that left without a
        label, after `max_wait`, or because too many waited; `unmatched`, labels that left without a prediction;
        `late_labels`, which arrived after their prediction had left; `repeated_predictions` and `repeated_labels`,
        whose id was seen before. The first one counts, even if the others differ.
    delays : LabelDelays
        A sample of the pairs and of the time their labels took, for :attr:`delay_warning`.

    Notes
    -----
    - *Every prediction* is paired, waits, has expired, was displaced or is a repeat; *every label* is paired, waits, is
      unmatched, late or a repeat. The counts add up.
    - *Ids* are numbers, text, bytes, UUIDs or tuples of them, also mixed; NumPy, Arrow, pandas and polars columns.
      Equal ids are one id, so 1, 1.0 and True are; "1" is another. Only a keyed fingerprint of 96 bits is stored. Among
      ten million of them a new id is mistaken for another with probability 1.3e-22.
    - *Time* is given by the calls. The clock is the latest time given and never runs backwards. An item without a time,
      or with an earlier one, waits from the clock's time. Items may be paired up to `max_wait` later, inclusive.
    - *Memory*: 59 to 64 bytes for each waiting or remembered item, of the most there ever were.
    - A batch gives the same result as its items one at a time. It is checked in full before anything changes.
    - Two threads that use it at once get a RuntimeError.

    Examples
    --------
    >>> import fourrates as fr
    >>> join = fr.LabelJoin(max_wait=30)
    >>> join.predict(["a", "b", "c"], [1, 0, 1], times=[0, 1, 2])
    <0 pairs>
    >>> pairs = join.label(["c", "x", "a"], [1, 0, 0], times=[20, 21, 22])
    >>> list(pairs)                                # (y_true, y_pred), in the order of the labels
    [(1, 1), (0, 1)]
    >>> join.waiting, join.waiting_labels          # b has no label yet, x no prediction
    (1, 1)
    >>> join.label(["a"], [0], times=[25])         # sent again
    <0 pairs>
    >>> join.expire(100)
    1
    >>> {name: count for name, count in join.counts.items() if count}
    {'pairs': 2, 'expired': 1, 'unmatched': 1, 'repeated_labels': 1}
    """

    def __init__(
        self,
        labels: Iterable[Hashable] = (0, 1),
        positive: Hashable = None,
        max_waiting: int = 10_000_000,
        max_wait: float | timedelta | np.timedelta64 | None = None,
        *,
        max_remembered: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._labels = Labels(labels, positive)
        self._unit, self._longest = duration(max_wait)
        self.parameters: dict[str, Any] = {
            "labels": list(self._labels.given),
            "positive": plain(positive),
            "max_waiting": check_whole(max_waiting, "max_waiting"),
            "max_wait": max_wait,
            "max_remembered": max_remembered,
            "seed": None if seed is None else check_whole(seed, "seed", least=0),
        }
        if max_remembered is not None:
            self.parameters["max_remembered"] = check_whole(max_remembered, "max_remembered", least=0)
        for name in ("max_waiting", "max_remembered"):
            if (self.parameters[name] or 0) > MOST:
                raise ValueError(f"{name} {self.parameters[name]:,} is more than {MOST:,}")
        if seed is not None and seed >= 2**128:
            raise ValueError(f"seed {seed!r} is not below 2**128")
        self._set_key(os.urandom(16) if seed is None else int(seed).to_bytes(16, "little"))
        self._pending = Pending(self.max_waiting, self.max_remembered, self._longest)
        self.delays = LabelDelays(len(self._labels.values))
        self._use = ExclusiveUse("this LabelJoin")

    def _set_key(self, key: bytes) -> None:
        self._key, self._hasher = key, Hasher(key)

    # Predictions and labels -----------------------------------------------------------------------------------

    def predict(
        self,
        ids: Any,
        y_pred: npt.ArrayLike,
        times: Any = None,
        tags: npt.ArrayLike | None = None,
        probability: Any = None,
    ) -> Pairs:
        """Add predictions; returns the pairs whose labels were already here.

        Parameters
        ----------
        ids : array of ids
            One per prediction.
        y_pred : array of labels
            The predicted labels.
        times : array of numbers or dates, or one for all, optional
            When each was made. A missing time is the clock's.
        tags : array of integers, optional
            Any number of 64 bits to return with the pair, such as that of a segment.
        probability : mapping or array of shape (predictions, 2), optional
            How likely each was drawn for labelling, for each prediction it might have had, as a
            :class:`~fourrates.LabelPlan` draws them; returned with the pair.
        """
        return self._take(ids, self._labels.encode(y_pred, "y_pred"), "y_pred", 0, times, tags, probability)

    def label(self, ids: Any, y_true: npt.ArrayLike, times: Any = None, probability: Any = None) -> Pairs:
        """Add labels; returns the pairs they complete.

        Parameters
        ----------
        ids : array of ids
            As given to :meth:`predict`.
        y_true : array of labels
            The true labels.
        times : array of numbers or dates, or one for all, optional
            When each arrived.
        probability : optional
            As for :meth:`predict`, for predictions without it.
        """
        return self._take(ids, self._labels.encode(y_true, "y_true"), "y_true", 1, times, None, probability)

    def both(
        self,
        ids: Any,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        times: Any = None,
        tags: npt.ArrayLike | None = None,
        probability: Any = None,
    ) -> Pairs:
        """Add predictions together with their labels; returns those whose id is new.

        The same as :meth:`predict` and then :meth:`label` for each id, in one step.

        Parameters
        ----------
        ids : array of ids
            One per event.
        y_true, y_pred : array of labels
            The true and the predicted labels.
        times, tags, probability
            As for :meth:`predict`.
        """
        truths = self._labels.encode(y_true, "y_true")
        preds = self._labels.encode(y_pred, "y_pred")
        return self._take(ids, preds, "y_pred", 0, times, tags, probability, truths)

    def replay(
        self,
        ids: Any,
        y: npt.ArrayLike,
        is_label: npt.ArrayLike,
        times: Any = None,
        tags: npt.ArrayLike | None = None,
        probability: Any = None,
    ) -> Pairs:
        """Add predictions and labels in one sequence, as a combined log has them.

        Parameters
        ----------
        ids : array of ids
            One per item.
        y : array of labels
            The predicted or the true labels.
        is_label : array of bool
            Whether each item is a label.
        times, tags, probability
            As for :meth:`predict`; the tag of a label does not matter.
        """
        sides = np.asarray(is_label)
        if sides.dtype != np.bool_ or sides.ndim != 1:
            raise TypeError("is_label must be an array of bools")
        return self._take(ids, self._labels.encode(y, "y"), "y", sides.view(np.uint8), times, tags, probability)

    def fingerprints(self, ids: Any) -> npt.NDArray[np.void]:
        """Fingerprint ids in advance, possibly in another thread; every method accepts the result."""
        return fingerprints(self._hasher, ids)

    def expire(self, now: Any) -> int:
        """Move the clock, drop items that waited too long, and return how many predictions those were.

        Parameters
        ----------
        now : number or date
            In the unit of the times.
        """
        with self._use:
            before = self.counts["expired"]
            moment = self._times(now, 1)
            if moment is None:
                raise ValueError(f"now {now!r} is not a time")
            self._pending.expire(float(moment[0]))
            return self.counts["expired"] - before

    def _take(
        self,
        ids: Any,
        codes: Codes,
        name: str,
        sides: int | npt.NDArray[np.uint8],
        times: Any,
        tags: Any,
        probability: Any,
        true_codes: Codes | None = None,
    ) -> Pairs:
        with self._use:
            prints = self.fingerprints(ids)
            size = codes.size
            if prints.size != size:
                raise ValueError(f"ids has {prints.size} items, {name} has {size}")
            which = np.full(size, sides, np.uint8) if isinstance(sides, int) else np.ascontiguousarray(sides)
            if which.size != size:
                raise ValueError(f"is_label has {which.size} items, {name} has {size}")
            if true_codes is not None and true_codes.size != size:
                raise ValueError(f"y_true has {true_codes.size} items, {name} has {size}")
            marks = None if tags is None else check_tags(tags, size)
            own_first = isinstance(probability, OwnFirst)
            drawn = None if probability is None else self._probabilities(probability, size)
            when = self._times(times, size)
            found, repeated = np.empty(size, PAIR), np.empty(size, np.uint8)
            given = prints, codes, which, true_codes, marks, when, drawn, own_first
            done = found[: self._pending.take(*given, found, repeated)]
            pairs = Pairs(
                truths=done["truth"].copy(),
                preds=done["pred"].copy(),
                positions=done["position"].copy(),
                tags=done["tag"].copy(),
                waits=done["wait"].copy(),
                labels=self._labels,
                probabilities=done["probabilities"].copy(),
                repeated=repeated.view(np.bool_),
            )
            if done.size and self._unit is not None:
                draws = prints["low"][pairs.positions]
                self.delays.add(draws, pairs.truths, pairs.preds, done["since"].copy(), pairs.waits)
        return pairs

    def _probabilities(self, probability: Any, size: int) -> npt.NDArray[np.float32]:
        if not isinstance(probability, OwnFirst):
            if len(self._labels.values) != 2:
                raise ValueError("probability: for two labels only")
            return both_probabilities(probability, self._labels, size)
        if probability.pairs.shape != (size, 2):
            raise ValueError(f"probability has shape {probability.pairs.shape} for {size} events")
        return np.ascontiguousarray(probability.pairs, np.float32)

    def _times(self, times: Any, size: int) -> npt.NDArray[np.float64] | None:
        """Times as numbers, nan if missing; the first ones settle whether they are numbers or dates."""
        if times is None:
            return None
        found, unit = moments(times)
        if found.ndim == 0:
            found = np.full(size, found)
        if found.shape != (size,):
            raise ValueError(f"times has the shape {found.shape}, ids has {size} items")
        if np.isinf(found).any():
            raise ValueError(f"times: the time at position {int(np.isinf(found).argmax())} is infinite")
        if np.isnan(found).all():
            return None
        if self._unit not in (None, unit):
            kinds = {"number": "numbers", "date": "dates"}
            where = "max_wait" if self.max_wait is not None else "the times before"
            raise TypeError(f"times are {kinds[unit]}, but {where} goes with {kinds[self._unit or unit]}")
        self._unit = unit
        return np.ascontiguousarray(found)

    # Status ---------------------------------------------------------------------------------------------------

    @property
    def max_waiting(self) -> int:
        """The most predictions, and the most labels, that may wait."""
        return int(self.parameters["max_waiting"])

    @property
    def max_wait(self) -> float | timedelta | np.timedelta64 | None:
        """How long anything waits."""
        return self.parameters["max_wait"]  # type: ignore[no-any-return]

    @property
    def max_remembered(self) -> int:
        """How many paired or dropped ids are remembered at most."""
        given = self.parameters["max_remembered"]
        return self.max_waiting if given is None else int(given)

    @property
    def counts(self) -> dict[str, int]:
        """Counts of waiting items and of all outcomes, by name."""
        waiting, waiting_labels, _ = self._pending.sizes
        pairs, *others = zip(COUNTS, self._pending.counts, strict=True)
        return dict([pairs, ("waiting", waiting), ("waiting_labels", waiting_labels), *others])

    @property
    def waiting(self) -> int:
        """Predictions that wait for their label."""
        return int(self._pending.sizes[0])

    @property
    def waiting_labels(self) -> int:
        """Labels that wait for their prediction."""
        return int(self._pending.sizes[1])

    @property
    def remembered(self) -> int:
        """Paired or dropped ids that are remembered."""
        return int(self._pending.sizes[2])

    @property
    def waiting_since(self) -> float | datetime | None:
        """When the oldest waiting prediction was made; None if none waits or no time was given."""
        with self._use:
            since = self._pending.oldest_time
        if math.isnan(since):
            return None
        return since if self._unit == "number" else datetime(1970, 1, 1) + timedelta(microseconds=since)

    @property
    def waiting_tags(self) -> npt.NDArray[np.int64]:
        """The tags of waiting predictions, in order of arrival."""
        with self._use:
            return np.ascontiguousarray(self._pending.dump(0)["tag"])

    @property
    def delay_warning(self) -> str | None:
        """A sentence if errors are labelled sooner than right predictions, or later; None if not, or without times."""
        with self._use:
            return self.delays.sentence(self._labels.values, 1e6 if self._unit == "date" else None)

    @property
    def nbytes(self) -> int:
        """Memory of the table, in bytes."""
        with self._use:
            return int(self._pending.nbytes)

    def __repr__(self) -> str:
        defaults = {"max_remembered": None, "seed": None}
        shown = {name: value for name, value in self.parameters.items() if value != defaults.get(name, ...)}
        return f"LabelJoin({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    # Copies and bytes -----------------------------------------------------------------------------------------

    def clone(self) -> Self:
        """Make an empty copy with the same settings; ``copy.copy`` also copies waiting items."""
        return type(self)(**self.parameters)

    def to_bytes(self) -> bytes:
        """Settings and all items, versioned; :meth:`from_bytes` resumes from it."""
        for label in self._labels.values:
            if type(label) not in (str, int, float, bool):
                raise TypeError(f"to_bytes saves labels that are strings, numbers or bools, not {label!r}; pickle does")
        settings = {**self.parameters, "max_wait": None if math.isinf(self._longest) else self._longest}
        dates = isinstance(self.max_wait, timedelta | np.timedelta64)
        return pack(KIND, {"settings": settings, "dates": dates, "unit": self._unit}, state=self._dump())

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        """Load the bytes of :meth:`to_bytes`; any others are a ValueError."""
        found = unpack(saved, KIND)
        try:
            settings, unit = found.about["settings"], found.about["unit"]
            if found.about["dates"]:
                settings["max_wait"] = timedelta(microseconds=settings["max_wait"])
            if unit not in UNITS:
                raise ValueError(f"the saved unit of time is {unit!r}")
            join = cls(**settings)
            join._restore(unit, bytes(found.sections["state"]))
        except (AttributeError, ArithmeticError, LookupError, RecursionError, TypeError, struct.error) as error:
            raise ValueError(f"the saved {KIND} is not sound: {error}") from None
        return join

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.parameters, self._unit, self._dump())

    def _dump(self) -> bytes:
        with self._use:
            logs = [self._pending.dump(log) for log in range(len(LOGS))]
            delays = self.delays.to_bytes()
            sizes = *(log.size for log in logs), len(delays)
            progress = PROGRESS.pack(self._key, *self._pending.counts, *self._pending.clock, *sizes)
        return b"".join([progress, *(log.astype(SAVED, copy=False).tobytes() for log in logs), delays])

    def _restore(self, unit: Unit | None, state: bytes) -> None:
        key, *numbers = PROGRESS.unpack_from(state)
        counts, (now, began), sizes, n_delays = tuple(numbers[:7]), numbers[7:9], numbers[9:12], numbers[12]
        self._set_key(key)
        if self.parameters["seed"] is not None and int.from_bytes(key, "little") != self.parameters["seed"]:
            raise ValueError("the saved key is not that of the seed")
        if self._unit not in (None, unit) or (unit is None and not math.isnan(now)):
            raise ValueError("the saved clock does not fit the unit of max_wait")
        if not (math.isnan(now) and math.isnan(began)) and not -math.inf < began <= now < math.inf:
            raise ValueError(f"the saved clock is at {now!r} and began at {began!r}")
        if not 0 <= min(counts) <= max(counts) < 2**62:
            raise ValueError(f"the saved counts {counts} are not counts")
        most = (self.max_waiting, self.max_waiting, self.max_remembered)
        if any(not 0 <= size <= limit for size, limit in zip(sizes, most, strict=True)):
            raise ValueError(f"{sizes} entries were saved, at most {most} are allowed")
        end = PROGRESS.size + sum(sizes) * SAVED.itemsize
        if n_delays < 0 or len(state) != end + n_delays:
            raise ValueError(f"the saved state has {len(state):,} bytes, which does not fit its {sum(sizes):,} entries")
        self.delays.load(state[end:])
        entries = np.frombuffer(state[:end], SAVED, offset=PROGRESS.size).astype(ENTRY)
        for log, states in zip(np.split(entries, np.cumsum(sizes)[:-1]), LOGS, strict=True):
            self._check(log, states, now, began)
        twice = self._pending.load(entries, counts, now, began)
        if twice >= 0:
            raise ValueError(f"the id of the saved entry {twice} is there twice")
        self._unit = unit

    def _check(self, log: npt.NDArray[np.void], states: set[int], now: float, began: float) -> None:
        times = log["time"]
        known = np.isneginf(times) if math.isnan(now) else np.isneginf(times) | ((times >= began) & (times <= now))
        if not known.all() or (times[1:] < times[:-1]).any():
            raise ValueError("the times of the saved entries are not in order, or not up to the clock")
        if not np.isin(log["state"], [*states]).all():
            raise ValueError("a saved entry is out of place")
        pairs, drawn = log["probabilities"], log["drawn"]
        if (drawn > 2).any() or not np.where(drawn[:, None] > 0, (pairs > 0) & (pairs <= 1), pairs == 0).all():
            raise ValueError("a saved entry has probabilities that are none")
        if (log["code"] >= len(self._labels.values)).any():
            raise ValueError(f"a saved entry has a code that is none of {len(self._labels.values)} labels")
        waits = log["state"] == STATES["prediction"]
        if log["tag"][~waits].any() or (STATES["paired"] in states and (log["code"].any() or drawn.any())):
            raise ValueError("a saved entry carries numbers that only a prediction has")


def _revive(kind: type[LabelJoin], parameters: dict[str, Any], unit: Unit | None, state: bytes) -> LabelJoin:
    join = kind(**parameters)
    join._restore(unit, state)
    return join


def duration(max_wait: Any) -> tuple[Unit | None, float]:
    """The unit that goes with a longest wait, and the wait as a number."""
    if max_wait is None:
        return None, math.inf
    unit: Unit = "date" if isinstance(max_wait, timedelta | np.timedelta64) else "number"
    if unit == "date":
        longest = float(np.timedelta64(max_wait) / np.timedelta64(1, "us"))
    elif isinstance(max_wait, bool) or not isinstance(max_wait, int | float | np.integer | np.floating):
        raise TypeError(f"max_wait {max_wait!r} is neither a number nor a timedelta")
    else:
        longest = float(max_wait)
    if not 0 <= longest < math.inf:
        raise ValueError(f"max_wait {max_wait!r} is not a length of time")
    return unit, longest


def moments(times: Any) -> tuple[npt.NDArray[np.float64], Unit]:
    """Times as numbers, dates as microseconds since 1970 (UTC if they have a zone), and their unit."""
    values = np.asarray(_utc(times) if isinstance(times, datetime) else times)
    if values.dtype.kind == "O":
        listed = [_utc(value) for value in values.ravel().tolist()]
        kinds = {isinstance(value, date | np.datetime64) for value in listed if value is not None}
        if len(kinds) == 2:
            raise TypeError("times must all be numbers, or all be dates")
        missing, kind = (np.datetime64("NaT", "us"), "M8[us]") if True in kinds else (math.nan, "f8")
        try:
            values = np.array([missing if value is None else value for value in listed], kind).reshape(values.shape)
        except (TypeError, ValueError):
            raise TypeError("times must be numbers or dates") from None
    if values.dtype.kind == "M":
        micros = values.astype("M8[us]")
        return np.where(np.isnat(micros), np.nan, micros.astype(np.int64).astype(np.float64)), "date"
    if values.dtype.kind in "iuf" or not values.size:
        return values.astype(np.float64), "number"
    raise TypeError(f"times of type {values.dtype} are neither numbers nor dates")


def _utc(moment: Any) -> Any:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment

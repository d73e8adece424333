"""The protocol of every detector of pairs, with update, flags, reset, clone, pickle and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fourrates.detectors.sampling import both_probabilities, odds_codes
from fourrates.findings import Drift, Drifts, Finding, RateState, Status
from fourrates.kernel.baselines import Baseline
from fourrates.kernel.pairs import Pairs
from fourrates.labels import Labels, plain
from fourrates.record import HEAD, Head, head_of
from fourrates.state import pack, unpack

TOGETHER = 1 << 14  # coded events taken at a time


class Detector(Pairs):
    """A detector fed with pairs (y_true, y_pred).

    A subclass defines the quantities; this class gives all of them the same interface. Flags and counters:

    Attributes
    ----------
    events : int
        Events since construction or :meth:`reset`.
    findings : tuple of Finding
        All findings of the last call, in order; drifts and, for FourRates, their ends.
    drift_detected : bool
        Whether the last event showed a drift.
    warning_detected : bool
        Whether the last update left the detector in the warning zone, without a drift.
    parameters : dict
        The parameters of the detector.
    """

    __slots__ = ()

    def _begin(self, parameters: dict[str, Any]) -> None:
        """Keep the parameters, and get ready to read labels."""
        parameters["positive"] = plain(parameters["positive"])
        self._labels = Labels(parameters["labels"], parameters["positive"])
        self._codes = self._labels.codes
        parameters["labels"] = list(self._labels.given)
        self.parameters = parameters

    # For subclasses ------------------------------------------------------------------------------------------

    _names: tuple[str, ...]  # of the rates, or other quantities it watches

    def _rate_state(self, record: bytes, i: int) -> RateState:
        raise NotImplementedError

    def _drift_of(self, record: bytes, head: Head) -> Drift:
        """The finding of a record that just alarmed."""
        raise NotImplementedError

    def _settle_record(self, record: npt.NDArray[np.uint8], state: int) -> Sequence[Finding]:
        """The findings of the last event of a record with these settings, which then resumes."""
        drift = self._drift_of(record.tobytes(), head_of(record))
        self.rules.start_again(record)
        return [drift]

    def _load(self, state: bytes) -> None:
        self._set_record(state)

    @classmethod
    def _least_size(cls, about: Mapping[str, Any]) -> int:
        """The fewest bytes of a detector's state with these parameters, which may be any."""
        labels = about.get("labels")
        if not isinstance(labels, list):
            raise ValueError("the saved state has no labels")
        return 8 * len(labels) ** 2

    def _unjudged(self) -> int:
        """How many of the last events wait for a verdict on all of them."""
        return 0

    # Shared by all detectors -------------------------------------------------------------------------------

    def update_many(
        self,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        *,
        strata: npt.ArrayLike | None = None,
        probability: Any = None,
        first_only: bool = False,
    ) -> Drifts:
        """Process many events, with the same result as one at a time, only faster.

        The whole batch is checked first, so an error changes nothing.

        Parameters
        ----------
        y_true, y_pred : array of labels
            True and predicted labels; equally long.
        strata : array of int, optional
            For FourRates with strata, the stratum of each event, from 0 up.
        probability : mapping from labels to numbers, or array of shape (events, 2), optional
            For FourRates with ``sampled=True``, the probability of drawing an event for labelling, for each prediction
            it might have had. The same for all, or event by event.
        first_only : bool
            Stop after the first drift.

        Returns
        -------
        Drifts
            A list of :class:`~fourrates.Drift`; its `consumed` is the number of events processed.
        """
        truths = self._labels.encode(y_true, "y_true")
        preds = self._labels.encode(y_pred, "y_pred")
        if truths.size != preds.size:
            raise ValueError(f"y_true has {truths.size} events, y_pred has {preds.size}")
        truths = self._in_strata(truths, self.codes_of(probability, truths.size, strata))
        findings: list[Finding] = []
        consumed = 0
        claimed = self._claim()
        try:
            while consumed < truths.size:
                taken, found = self._run(truths, preds, consumed)
                consumed += taken
                findings += found
                if first_only and self.drift_detected:
                    break
        finally:
            if claimed:
                self._release()
        self.findings = tuple(findings)
        return Drifts([finding for finding in findings if isinstance(finding, Drift)], consumed)

    def update_coded(
        self,
        truths: npt.NDArray[np.uint16],
        preds: npt.NDArray[np.uint16],
        start: int = 0,
        strata: npt.NDArray[Any] | None = None,
    ) -> tuple[int, tuple[Finding, ...]]:
        """Process events given as class codes, from `start` up to the first finding.

        For callers who read labels themselves, in the order of :attr:`labels`. Call again with the rest. No more than
        some ten thousand events are processed at a time.

        Returns
        -------
        taken : int
            How many events were processed.
        findings : tuple of Finding
            The findings of the last of them.
        """
        if truths.size != preds.size or not 0 <= start <= truths.size:
            raise ValueError(f"{truths.size} truths, {preds.size} preds, to be taken from {start} on")
        if start == truths.size:
            return 0, ()
        if start == 0:
            self._labels.copy(truths, "truths")
            self._labels.copy(preds, "preds")
        end = start + TOGETHER  # copied, as a caller's array may change after the check
        own = self._labels.copy(truths[start:end], "truths")
        taken, self.findings = self._run(
            self._in_strata(own, None if strata is None else strata[start:end]),
            self._labels.copy(preds[start:end], "preds"),
            0,
        )
        return taken, self.findings

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Each rate, or other watched quantity, now, with observations, estimate, and evidence or statistics."""
        record = self.record_bytes
        return MappingProxyType({name: self._rate_state(record, i) for i, name in enumerate(self._names)})

    def codes_of(self, probability: Any, size: int, strata: npt.ArrayLike | None = None) -> npt.ArrayLike | None:
        """The strata of sampled events, which are ratios of probabilities."""
        if probability is None:
            return strata
        if not self.parameters.get("sampled"):
            raise ValueError("probability: for FourRates(sampled=True)")
        return odds_codes(both_probabilities(probability, self._labels, size))[0]

    def _in_strata(self, truths: npt.NDArray[np.uint16], strata: npt.ArrayLike | None) -> npt.NDArray[np.uint16]:
        """Class codes as the kernel has them; those of the second stratum follow those of the first."""
        number = self.strata
        if (strata is None) != (number == 1):
            raise ValueError(
                f"strata: this {type(self).__name__} has none"
                if number == 1
                else "this detector is for sampled events; probability= must give how likely each was drawn"
                if self.parameters.get("sampled")
                else f"this detector has {number} strata; strata= must give the one of each event"
            )
        if strata is None:
            return truths
        found = np.asarray(strata)
        if found.shape != truths.shape:
            raise ValueError(f"strata has shape {found.shape} for {truths.size} events")
        if found.size and (found.dtype.kind not in "biu" or found.min() < 0 or found.max() >= number):
            raise ValueError(f"strata must be whole numbers from 0 to {number - 1}")
        return (truths + found.astype(np.uint16) * np.uint16(len(self._labels.values))).astype(np.uint16)

    @property
    def strata(self) -> int:
        """How many normals each recall has; 1 but for FourRates with strata."""
        return 1

    @property
    def labels(self) -> Labels:
        """The classes, in the order of their codes."""
        return self._labels

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """Counts since the last alarm, by true class and then by predicted class."""
        classes = len(self._labels.values)
        counts = np.frombuffer(self.record_bytes, np.int64, classes**2, HEAD.itemsize).reshape(classes, classes)
        return tuple(tuple(row) for row in counts.tolist())

    @property
    def status(self) -> Status:
        """The state after the last update."""
        return "drifted" if self.drift_detected else "warning" if self.warning_detected else "stable"

    @property
    def earliest_start(self) -> int:
        """The earliest event that a later drift may name as the start of its window; older ones can go."""
        return self.events - self._unjudged() if self.warning_since is None else self.warning_since

    def reset(self) -> None:
        """Forget everything, the count of events too."""
        self._idle()
        self._forget()

    def clone(self) -> Self:
        """Make a detector with the same parameters and no events; ``copy.copy`` keeps its events."""
        return type(self)(**self.parameters)

    def to_bytes(self) -> bytes:
        """Parameters and state in a small, versioned form; :meth:`from_bytes` continues from it bit for bit."""
        self._idle()
        for label in self._labels.values:
            if type(label) not in (str, int, float, bool):
                raise TypeError(f"to_bytes saves labels that are strings, numbers or bools, not {label!r}; pickle does")
        return pack(type(self).__name__, self.parameters, state=self.record_bytes)

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        """Load the bytes of :meth:`to_bytes`; anything else is a ValueError."""
        found = unpack(saved)
        if found.kind != cls.__name__:
            raise ValueError(f"this is the state of {found.kind}, not of {cls.__name__}")
        if set(found.sections) != {"state"}:
            raise ValueError("the saved state has other sections than a detector's")
        state = found.sections["state"]
        if cls._least_size(found.about) > len(state):  # before anything of that size is made
            raise ValueError(f"the saved state of {len(state)} bytes is too short for its parameters")
        try:
            detector = cls(**found.about)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"the saved state has parameters that no {cls.__name__} has ({error})") from None
        detector._load(bytes(state))
        return detector

    def restore(self, state: bytes) -> None:
        """Resume from the state of a detector with the same parameters, checked first."""
        self._idle()
        self._load(bytes(state))

    def __reduce__(self) -> tuple[Any, ...]:
        self._idle()
        return _revive, (type(self), self.parameters, self.record_bytes)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({parameters})"

    def _update_in(self, stratum: int | None, y_true: Any, y_pred: Any) -> Drift | None:
        """Process an event of a stratum."""
        drifts = self.update_many([y_true], [y_pred], strata=None if stratum is None else [stratum])
        return drifts[0] if drifts else None

    def _update_spelled(self, y_true: object, y_pred: object) -> Drift | None:
        """Process an event whose labels are unknown but may be spelled like known ones."""
        labels = self._labels
        for name, label in (("y_true", y_true), ("y_pred", y_pred)):
            if labels.read(label) < 0:
                raise labels.unknown(label, name)
        return self.update(labels.values[labels.read(y_true)], labels.values[labels.read(y_pred)])


class RecordDetector(Detector):
    """A detector that a bank can hold one of for each key: LFR and FourRates."""

    __slots__ = ()


class CountingDetector(Detector):
    """A baseline, whose state is the confusion counts and one row of numbers."""

    __slots__ = ()

    _kernel: type[Baseline]

    def _set_up(self, labels: Any, positive: Any, **settings: Any) -> None:
        """Begin with these parameters; the settings are also the kernel's."""
        self._begin({**settings, "labels": labels, "positive": positive})
        self._follow(self._kernel(len(self._labels.values), **settings))

    def _set_up_for_one(self, labels: Any, positive: Any, **settings: Any) -> int:
        """Likewise, to watch one class of any number, the last by default; returns its code."""
        self._begin({**settings, "labels": labels, "positive": None})
        watched = len(self._labels.values) - 1
        if watched == 1:
            self._begin({**self.parameters, "positive": positive})
        elif (positive := plain(positive)) is not None:
            if positive not in self._codes:
                raise ValueError(f"positive {positive!r} is not one of {self._labels.values!r}")
            watched, self.parameters["positive"] = self._codes[positive], positive
        self._follow(self._kernel(len(self._labels.values), watched=watched, **settings))
        return watched

    def _numbers(self, record: bytes) -> npt.NDArray[np.float64]:
        return np.frombuffer(record, np.float64, offset=HEAD.itemsize + 8 * len(self._labels.values) ** 2)

    def _fits(self, counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> bool:
        """Whether these counts and numbers, which may be from outside, belong to one state."""
        raise NotImplementedError

    def _crossed(self, record: bytes) -> list[tuple[int, bool]]:
        """(watched quantity, whether downwards) for each that crossed its detection bound."""
        return [(0, True)]

    def _drift_of(self, record: bytes, head: Head) -> Drift:
        changes = []
        for i, down in self._crossed(record):
            rate = self._rate_state(record, i)
            changes.append(rate.statistics[0].change(self._names[i], "down" if down else "up", rate.n))
        return Drift(at=head.events - 1, since=head.since, changes=tuple(changes), confusion=self.confusion)

    def _load(self, state: bytes) -> None:
        self.rules.check(np.frombuffer(state, np.uint8)[None])
        events, classes = head_of(state).events, len(self._labels.values)
        counts = np.frombuffer(state, np.int64, classes**2, HEAD.itemsize).reshape(classes, classes)
        if (counts < 0).any() or int(counts.sum(dtype=object)) > events:
            raise ValueError(f"counts that do not fit {events} events")
        with np.errstate(invalid="ignore", over="ignore"):
            fits = self._fits(counts, self._numbers(state))
        if not fits:
            raise ValueError(f"numbers that no {type(self).__name__} has after {events} events")
        super()._load(state)


def _revive(kind: type[Detector], parameters: dict[str, Any], state: bytes) -> Detector:
    detector = kind(**parameters)
    detector._load(state)
    return detector

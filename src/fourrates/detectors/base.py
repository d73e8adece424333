"""The protocol every detector of pairs follows: update, flags, reset, clone, pickle and bytes."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from fourrates.drift import Drift, Drifts, RateState
from fourrates.kernel.baselines import Baseline
from fourrates.kernel.pairs import Pairs
from fourrates.labels import Labels, plain

if TYPE_CHECKING:
    import numpy.typing as npt

MAGIC = b"4rates"
VERSION = 3
HEADER = struct.Struct("<6sBBI")  # magic, version, length of the class name, length of the parameters
PROGRESS = struct.Struct("<qqBB")  # events, since, drift flag, warning flag
FOUR = ("tnr", "tpr", "npv", "ppv")  # in the order of the kernels: recalls by class, then precisions by class


def rate_names(labels: Sequence[Hashable]) -> tuple[str, ...]:
    """The names of the 2K rates, in the order of the kernels."""
    if len(labels) == 2:
        return FOUR
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):  # such as 1 and "1"
        names = [repr(label) for label in labels]
    return tuple(f"{kind}:{name}" for kind in ("recall", "precision") for name in names)


class Detector(Pairs):
    """A detector fed with pairs (y_true, y_pred).

    A subclass says what it watches; this class gives all of them the same face. Flags and counters:

    Attributes
    ----------
    events : int
        Events taken since construction or :meth:`reset`.
    drift_detected : bool
        Whether the last update found a drift.
    warning_detected : bool
        Whether the last update left the detector in the warning zone, without a drift.
    parameters : dict
        What the detector was made with.
    """

    __slots__ = ()

    def _begin(self, parameters: dict[str, Any]) -> None:
        """Keep the parameters, and get ready to read labels."""
        parameters["positive"] = plain(parameters["positive"])
        self._labels = Labels(parameters["labels"], parameters["positive"])
        self._codes = self._labels.codes
        parameters["labels"] = list(self._labels.given)
        self.parameters = parameters

    # What a subclass gives, besides the kernel's loop -------------------------------------------------------

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Where each watched quantity stands now."""
        raise NotImplementedError

    def _dump(self) -> bytes:
        raise NotImplementedError

    def _load(self, state: bytes) -> None:
        raise NotImplementedError

    def _unjudged(self) -> int:
        """How many of the last events wait for a verdict that will be about all of them."""
        return 0

    # What every detector does -------------------------------------------------------------------------------

    def update_many(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, first_only: bool = False) -> Drifts:
        """Take many events, with the same result as one at a time, only faster.

        The whole batch is checked before the first event is taken: after an error nothing has changed.

        Parameters
        ----------
        y_true, y_pred : array of labels
            What the events turned out to be, and what the classifier had said; equally long.
        first_only : bool
            Stop after the first drift.

        Returns
        -------
        Drifts
            A list of :class:`~fourrates.Drift`; its `consumed` says how many events were taken.
        """
        truths = self._labels.encode(y_true, "y_true")
        guesses = self._labels.encode(y_pred, "y_pred")
        if truths.size != guesses.size:
            raise ValueError(f"y_true has {truths.size} events, y_pred has {guesses.size}")
        drifts: list[Drift] = []
        consumed = 0
        while consumed < truths.size:
            taken, drift = self._run(truths, guesses, consumed)
            consumed += taken
            if drift is not None:
                drifts.append(drift)
                if first_only:
                    break
        return Drifts(drifts, consumed)

    def _keep_from(self) -> int:
        """The earliest event that a later drift may name as its `since`: what came before is not needed any more."""
        since = self._progress()[1]
        return since if since >= 0 else self.events - self._unjudged()

    def reset(self) -> None:
        """Forget everything, the count of events too."""
        self._forget()

    def clone(self) -> Self:
        """Make a detector with the same parameters that has seen nothing; ``copy.copy`` keeps what was seen."""
        return type(self)(**self.parameters)

    def to_bytes(self) -> bytes:
        """Parameters and state in a small, versioned form; :meth:`from_bytes` continues from it bit for bit."""
        import json
        import zlib

        name = type(self).__name__.encode()
        for label in self._labels.values:
            if type(label) not in (str, int, float, bool):
                raise TypeError(f"to_bytes saves labels that are strings, numbers or bools, not {label!r}; pickle does")
        parameters = json.dumps(self.parameters, separators=(",", ":")).encode()
        body = HEADER.pack(MAGIC, VERSION, len(name), len(parameters)) + name + parameters
        body += PROGRESS.pack(*self._progress()) + self._dump()
        return body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def from_bytes(cls, saved: bytes) -> Self:
        """Bring back what :meth:`to_bytes` saved."""
        import json
        import zlib

        saved = bytes(saved)
        if saved[: len(MAGIC)] != MAGIC or len(saved) < HEADER.size + 4:
            raise ValueError("these bytes are not the state of a fourrates detector")
        _, version, name_size, size = HEADER.unpack_from(saved)
        if version != VERSION:
            raise ValueError(f"state of version {version}; this release reads version {VERSION}")
        body = saved[:-4]
        if struct.unpack("<I", saved[-4:])[0] != zlib.crc32(body):
            raise ValueError("the saved state is damaged: its checksum does not fit")
        name = body[HEADER.size : HEADER.size + name_size].decode()
        if name != cls.__name__:
            raise ValueError(f"this is the state of {name}, not of {cls.__name__}")
        start = HEADER.size + name_size
        detector = cls(**json.loads(body[start : start + size]))
        detector._restore(body[start + size :])
        return detector

    def _restore(self, state: bytes) -> None:
        if len(state) < PROGRESS.size:
            raise ValueError(f"the saved state of {len(state)} bytes is cut")
        self._set_progress(*PROGRESS.unpack_from(state))
        self._load(state[PROGRESS.size :])

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.parameters, PROGRESS.pack(*self._progress()) + self._dump())

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({parameters})"

    def _refuse(self, y_true: object, y_pred: object) -> NoReturn:
        for name, label in (("y_true", y_true), ("y_pred", y_pred)):
            if self._labels.code(label) < 0:
                raise self._labels.unknown(label, name)
        raise AssertionError("both labels are known")


class CountingDetector(Detector, Baseline):
    """A detector whose state is the confusion counts and one row of numbers: every one but LFR.

    A subclass names what it watches in `_names` and tells in `_rate_state` where each of those stands.
    """

    __slots__ = ()

    _names: tuple[str, ...]

    def _begin_watching(self, parameters: dict[str, Any]) -> int:
        """As `_begin`, for a detector that watches one class among any number of them; the code of that class."""
        self._begin({**parameters, "positive": None})
        positive = plain(parameters["positive"])
        if len(self._labels.values) == 2:
            self._begin({**self.parameters, "positive": positive})
        self.parameters["positive"] = positive
        if positive is None:
            return len(self._labels.values) - 1
        if positive not in self._codes:
            raise ValueError(f"positive {positive!r} is not one of {self._labels.values!r}")
        return self._codes[positive]

    @property
    def rates(self) -> Mapping[str, RateState]:
        """Where each watched quantity stands now: observations, estimate, statistic, warning and detection bounds."""
        return MappingProxyType({name: self._rate_state(i) for i, name in enumerate(self._names)})

    def _rate_state(self, i: int) -> RateState:
        raise NotImplementedError

    def _report(self, at: int, since: int) -> Drift:
        changes = []
        for i, down in self._crossed():
            state = self._rate_state(i)
            changes.append(state.statistics[0].change(self._names[i], "down" if down else "up", state.n))
        return Drift(at=at, since=since, changes=tuple(changes), confusion=self._confusion())

    def _dump(self) -> bytes:
        shape = self._shape()
        counts, numbers = np.empty(shape[0], np.int64), np.empty(shape[1], np.float64)
        self._state(counts, numbers)
        return counts.astype("<i8").tobytes() + numbers.astype("<f8").tobytes()

    def _load(self, state: bytes) -> None:
        counts, numbers = self._shape()
        if len(state) != 8 * (counts + numbers):
            raise ValueError(f"the saved state has {len(state)} bytes where {8 * (counts + numbers)} belong")
        self._set_state(
            np.frombuffer(state, "<i8", counts).astype(np.int64),
            np.frombuffer(state, "<f8", numbers, 8 * counts).astype(np.float64),
        )


def _revive(kind: type[Detector], parameters: dict[str, Any], state: bytes) -> Detector:
    detector = kind(**parameters)
    detector._restore(state)
    return detector

"""Predictions that a monitor draws for labelling, in order, until their label arrives.

Whether a prediction is drawn follows from its id, its prediction and the plan. So the queue needs no state by reader. A
reader continues after the last number it has, and the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Fingerprints = npt.NDArray[np.void]


def is_drawn(ids: Fingerprints, probability: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Whether each prediction is drawn, by the keyed fingerprint of its id and its own probability."""
    return np.asarray(ids["low"] * 2.0**-64 < probability)


class Drawn(msgspec.Struct, array_like=True, frozen=True):
    number: int  # from 1, in the order of arrival
    id: Any
    pred: int  # code of the class
    segment: int | None
    time: float  # by the monitor's clock, which never runs backwards here


class ToLabel(msgspec.Struct):
    """The drawn predictions that wait, by fingerprint, and how many there were in all, and with a label."""

    waiting: dict[bytes, Drawn] = {}
    drawn: int = 0
    labelled: int = 0

    def add(self, ids: Fingerprints, drawn: Sequence[tuple[Any, int, int | None]], time: float) -> None:
        """Add predictions by id, class and segment of each."""
        last = next(reversed(self.waiting.values()), None)
        time = time if last is None else max(time, last.time)
        for number, (mark, facts) in enumerate(zip(ids, drawn, strict=True), self.drawn + 1):
            self.waiting[mark.tobytes()] = Drawn(number, *facts, time)
        self.drawn += len(drawn)

    def answer(self, ids: Fingerprints) -> None:
        """Note labels."""
        self.labelled += sum(self.waiting.pop(mark.tobytes(), None) is not None for mark in ids)

    def expire(self, since: float) -> None:
        """Forget predictions from before this time, which do not wait any more."""
        for mark in [mark for mark, drawn in self.waiting.items() if drawn.time < since]:
            del self.waiting[mark]

    def after(self, number: int, limit: int) -> list[Drawn]:
        return [*islice((drawn for drawn in self.waiting.values() if drawn.number > number), limit)]

"""The life of each model, the decisions of a loop, and the errors of fits that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from fourrates.findings import Drift

Why = Literal["first", "drift", "hand"]
Kind = Literal["drift", "fit", "wait", "fail"]
WORDS = {"drift": "", "fit": "retrained ", "wait": "too few examples of a class, waits: ", "fail": "failed: "}


class FitError(RuntimeError):
    """The next model could not be trained on `window`; the old one keeps serving.

    `predictions` are what `run` would have returned.
    """

    def __init__(self, window: range, reason: str) -> None:
        super().__init__(window, reason)
        self.window, self.reason = window, reason
        self.predictions: npt.NDArray[Any] | None = None

    def __str__(self) -> str:
        return (
            f"no model could be trained on the window {self.window.start:,} to {self.window.stop - 1:,} "
            f"({self.reason}); the old model keeps serving"
        )


@dataclass(frozen=True, slots=True)
class ServingPeriod:
    """The service of one model, and its results."""

    start: int  #: the first example of the stream for which it served
    stop: int | None  #: the example before which it stopped; None while it serves
    why: Why  #: why it began to serve, as the first model, after a drift, or because the user replaced another
    #: the examples of the stream it was trained on, negative if from the first fit; None if trained on others
    window: range | None
    drift: Drift | None  #: the drift that ended its concept
    #: its counts by true class, then by predicted class, in the order of the detector's labels
    confusion: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """The number of labels compared with its predictions."""
        return sum(map(sum, self.confusion))

    @property
    def correct(self) -> int:
        """The number of right predictions."""
        return sum(row[i] for i, row in enumerate(self.confusion))

    @property
    def accuracy(self) -> float:
        """The share of right predictions; nan before the first."""
        return self.correct / self.n if self.n else float("nan")

    def __str__(self) -> str:
        until = "on" if self.stop is None else f"to {self.stop - 1:,}"
        source = "" if self.window is None else f", trained on {self.window.start:,} to {self.window.stop - 1:,}"
        return f"{self.start:,} {until}: {self.why}{source}, accuracy {self.accuracy:.3f} of {self.n:,}"


@dataclass(frozen=True, slots=True)
class Decision:
    """A drift was found, or a model was retrained, has to wait for examples of a class, or could not be trained."""

    at: int  # labels observed before it
    kind: Kind
    about: str  # the drift, or the model
    window: range | None = None  # the examples the model was or would have been trained on
    reason: str = ""  # the error of a fit that failed

    def __str__(self) -> str:
        words = [f"{self.at:,}: {WORDS[self.kind]}{self.about}"]
        if self.window is not None:
            words.append(f"on {self.window.start:,} to {self.window.stop - 1:,}")
        return ", ".join([*words, *filter(None, [self.reason])])

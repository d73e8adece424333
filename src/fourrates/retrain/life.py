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
    """The next model could not be trained; the old one keeps serving.

    Attributes
    ----------
    window : range
        The examples it was to be trained on.
    predictions : array or None
        The return value of `run` without the error.
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
class Life:
    """The service of one model, and its results.

    Attributes
    ----------
    start, stop : int
        It served for the examples ``range(start, stop)`` of the stream; `stop` is None while it serves.
    why : {"first", "drift", "hand"}
        Why it began to serve, as the first model, after a drift, or because the user replaced another.
    window : range or None
        The examples of the stream it was trained on, negative if from the first fit; None if trained on others.
    drift : Drift or None
        The drift that ended its concept.
    confusion : tuple of tuples of int
        Its counts by true class, then by predicted class, in the order of the detector's labels.
    """

    start: int
    stop: int | None
    why: Why
    window: range | None
    drift: Drift | None
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
    """One decision.

    Attributes
    ----------
    at : int
        Labels observed before it.
    kind : {"drift", "fit", "wait", "fail"}
        A drift was found; a model was retrained; its window has too few examples of a class; or the fit failed.
    about : str
        The drift, or the model.
    window : range or None
        The examples the model was or would have been trained on.
    reason : str
        The error of a fit that failed.
    """

    at: int
    kind: Kind
    about: str
    window: range | None = None
    reason: str = ""

    def __str__(self) -> str:
        words = [f"{self.at:,}: {WORDS[self.kind]}{self.about}"]
        if self.window is not None:
            words.append(f"on {self.window.start:,} to {self.window.stop - 1:,}")
        return ", ".join([*words, *filter(None, [self.reason])])

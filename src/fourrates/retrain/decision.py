"""What a loop decided, when, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["drift", "fit", "wait", "fail"]
WORDS = {"drift": "", "fit": "retrained ", "wait": "too few examples of a class, waits: ", "fail": "failed: "}


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

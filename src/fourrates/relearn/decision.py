"""What a loop decided, when, and on what evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["drift", "fit", "refit", "promote", "follow", "wait", "fail", "drop"]
WORDS = {
    "drift": "drift, a challenger begins:",
    "fit": "challenger learnt:",
    "refit": "champion learnt again:",
    "promote": "new champion:",
    "follow": "predictions follow:",
    "wait": "too few examples of a class, waits:",
    "fail": "failed:",
    "drop": "let go:",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Attributes
    ----------
    at : int
        Labels observed before it.
    kind : {"drift", "fit", "refit", "promote", "follow", "wait", "fail", "drop"}
        What was decided.
    about : str
        The candidate it is about, or the rule.
    window : range or None
        The examples it has learnt from.
    evidence : float
        How many times as much as the champion it weighs.
    wins, losses : int
        Examples of the contest on which it alone was right, and on which the champion alone was.
    reason : str
        What else there is to say: the drift, the records of two rules, the error.
    """

    at: int
    kind: Kind
    about: str
    window: range | None = None
    evidence: float = 0.0
    wins: int = 0
    losses: int = 0
    reason: str = ""

    def __str__(self) -> str:
        words = [f"{self.at:,}: {WORDS[self.kind]} {self.about}"]
        if self.window is not None:
            words.append(f"learnt from {self.window.start:,} to {self.window.stop - 1:,}")
        if self.wins or self.losses:
            words.append(f"right alone {self.wins} times, the champion {self.losses}, evidence {self.evidence:.3g}")
        if self.reason:
            words.append(self.reason)
        return ", ".join(words)

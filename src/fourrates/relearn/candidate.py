"""Who may serve: a model as it is, or a way of learning one from the stream again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.relearn.rules import RATES

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.relearn.window import Window

NEVER = 1 << 62  # a position no stream reaches
GROWTH = 1.5  # a window that grows is learnt from again when it is this many times as long
STEPS = 4  # fits while a window that slides moves by its length


class Candidate:
    """A model that may serve, and how it does.

    Attributes
    ----------
    model : classifier or None
        None until it has been learnt.
    window : range or None
        The examples it has learnt from.
    due : int
        When it is to be learnt again.
    weights : array of float
        How likely it is the best one now, relative to the others, by the quick and by the slow vote; 0 until it takes
        part.
    weight : float
        The quick one.
    wins, losses : int
        Examples on which it alone, or the champion alone, was right, since that one is champion.
    ahead : float
        What it has shown before it takes part: the logarithm of the odds that it is better than the champion.
    alone : int or None
        The place among the rules that take one member's word, if this is such a member.
    """

    def __init__(self, model: Any = None, window: range | None = None) -> None:
        self.model, self.window = model, window
        self.due = NEVER
        self.weights: npt.NDArray[np.float64] = np.zeros(len(RATES))
        self.wins = self.losses = 0
        self.ahead = 0.0
        self.alone: int | None = None

    @property
    def weight(self) -> float:
        """How likely it is the best one now, relative to the others."""
        return float(self.weights[0])

    def wanted(self, events: int, examples: Window) -> range:
        """The examples to learn from now."""
        raise NotImplementedError

    def postpone(self, events: int) -> None:
        """Say when it is to be learnt again, after it has been tried."""
        raise NotImplementedError


class Held(Candidate):
    """A model as it is: the first one, or one that served before a drift and may be the better one again."""

    def __init__(self, model: Any, window: range | None, name: str, *, first: bool = False) -> None:
        super().__init__(model, window)
        self.name, self.first = name, first
        self.alone = 0 if first else None

    def __str__(self) -> str:
        return self.name


class Since(Candidate):
    """Learns from all examples since a moment, again when they are half as many more."""

    def __init__(self, start: int, due: int) -> None:
        super().__init__()
        self.start, self.due = start, due

    def wanted(self, events: int, examples: Window) -> range:
        """All since the start that are still here."""
        return range(max(self.start, examples.start), events)

    def postpone(self, events: int) -> None:
        """Until the window is half as long again."""
        self.due = events + max(int((GROWTH - 1) * (events - self.start)), 10)

    def __str__(self) -> str:
        return f"all since {self.start:,}" if self.start >= 0 else "all examples"


class Memory(Candidate):
    """Learns from the newest examples, again when a quarter of them are new."""

    def __init__(self, size: int, least: int, events: int) -> None:
        super().__init__()
        self.size, self.least = size, least
        self.postpone(events)

    def wanted(self, events: int, examples: Window) -> range:
        """The newest `size`, and as many before as it takes to have `least` of each class, where they are here."""
        start = events - self.size
        truths = examples.truths()
        for code in np.flatnonzero(examples.counts):
            positions = np.flatnonzero(truths == code)
            start = min(start, examples.start + int(positions[-min(self.least, positions.size)]))
        return range(max(start, examples.start), events)

    def postpone(self, events: int) -> None:
        """Until a quarter of the examples are new."""
        self.due = events + max(self.size // STEPS, 1)

    def __str__(self) -> str:
        return f"the newest {self.size:,}"

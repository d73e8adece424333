"""Our count beside the paper's: how far apart, in standard errors of the difference of the two experiments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paper.numbers import RUNS

ERRORS = 2.0
"""Standard errors within which two counts agree: by chance one pair in 20 does not."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Ours and the paper's, per 100 runs, and the standard error of their difference.

    Examples
    --------
    >>> from paper.compare import Cell
    >>> print(Cell(29, 38, 6.7).verdict)
    within sampling error (-1.3 standard errors)
    >>> print(Cell(3, 12, 3.8).verdict)
    2.4 standard errors fewer
    """

    ours: float
    paper: int
    error: float

    @property
    def distance(self) -> float:
        """How far ours lies above, in standard errors."""
        return (self.ours - self.paper) / self.error

    @property
    def agrees(self) -> bool:
        """Whether it may be sampling error."""
        return abs(self.distance) <= ERRORS

    @property
    def verdict(self) -> str:
        """In words."""
        if self.ours == self.paper:
            return "the same"
        if self.agrees:
            return f"within sampling error ({self.distance:+.1f} standard errors)"
        return f"{abs(self.distance):.1f} standard errors {'more' if self.distance > 0 else 'fewer'}"


def share(found: Sequence[bool], paper: int) -> Cell:
    """Runs with something found, against the paper's of 100: two binomials with the pooled share."""
    runs = len(found)
    pooled = (sum(found) + paper) / (runs + RUNS)
    pooled = min(max(pooled, 0.5 / (runs + RUNS)), 1 - 0.5 / (runs + RUNS))  # an error of nothing would be none
    return Cell(RUNS * sum(found) / runs, paper, RUNS * math.sqrt(pooled * (1 - pooled) * (1 / RUNS + 1 / runs)))


def count(found: Sequence[int], paper: int) -> Cell:
    """Counts of each run, against the paper's of 100: two means, with the variance of ours or the mean if larger."""
    runs = len(found)
    spread = max(np.var(found, ddof=1) if runs > 1 else 0.0, (sum(found) + paper) / (runs + RUNS), 0.5 / (runs + RUNS))
    return Cell(RUNS * sum(found) / runs, paper, RUNS * math.sqrt(spread * (1 / RUNS + 1 / runs)))

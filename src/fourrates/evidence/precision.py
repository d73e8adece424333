"""Why a precision moved, with a recall, with the class mix, or with both.

Given the true classes, a classifier is described by its recalls; ppv and npv follow from them and the share of
positives. So a change of a precision is split into the effect of the recalls and that of the mix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fourrates.findings import PrecisionChange

LEAST = 0.005  # a precision that moved by less did not move


class Mixed(NamedTuple):
    """The share of positives and the recalls of two classes."""

    positives: float
    tnr: float
    tpr: float

    @property
    def npv(self) -> float:
        """The share of negative predictions that are right."""
        right = (1 - self.positives) * self.tnr
        return _share(right, self.positives * (1 - self.tpr))

    @property
    def ppv(self) -> float:
        """The share of positive predictions that are right."""
        return _share(self.positives * self.tpr, (1 - self.positives) * (1 - self.tnr))


def moved(before: Mixed, after: Mixed) -> tuple[PrecisionChange, ...]:
    """The precisions that moved, if known, with each cause's mean effect before and after the other."""
    recalls = Mixed(before.positives, after.tnr, after.tpr)
    mix = Mixed(after.positives, before.tnr, before.tpr)
    found = []
    for rate in ("npv", "ppv"):
        old, new, first, second = (getattr(mixed, rate) for mixed in (before, after, recalls, mix))
        if not all(map(math.isfinite, (old, new, first, second))) or abs(new - old) < LEAST:
            continue
        by_recalls = ((first - old) + (new - second)) / 2
        found.append(PrecisionChange(rate, old, new, by_recalls, new - old - by_recalls))
    return tuple(found)


def _share(right: float, wrong: float) -> float:
    return right / (right + wrong) if right + wrong > 0 else math.nan

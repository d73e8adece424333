"""Events to a bank, and what it finds: drifts, recoveries and shifts of the classes, each with its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from fourrates.bank import Bank
from fourrates.drift import Drift, Shift
from fourrates.run.away import Recoveries


def update(bank: Bank, recoveries: Recoveries, keys: Any, codes: Any) -> list[tuple[int, Drift | Shift]]:
    """Let a bank take events; what was found and at which of them, in their order.

    Parameters
    ----------
    bank : Bank
        The streams.
    recoveries : Recoveries
        Which of them are away from where they were.
    keys : array or list
        Which stream each event belongs to.
    codes : array of integers
        The true class of each times the number of classes, plus the predicted one.
    """
    truths, guesses = (part.astype(np.uint16) for part in np.divmod(codes, len(bank.labels.values)))
    first = bank.events
    found: list[tuple[int, Drift | Shift]] = [
        (one.event - first, recoveries.recognize(one.key, one.drift))
        for one in bank.update_coded(keys, truths, guesses)
    ]
    found += [(one.event - first, one.shift) for one in bank.shifts]
    return sorted(found, key=lambda pair: pair[0])

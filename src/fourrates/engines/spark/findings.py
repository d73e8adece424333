"""Events to a bank, and what it finds, each finding with its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from fourrates.bank import Bank
from fourrates.findings import Finding


def update(bank: Bank, keys: Any, codes: Any) -> list[tuple[int, Finding]]:
    """Let a bank take events; what was found and at which of them, in their order.

    Parameters
    ----------
    bank : Bank
        The streams.
    keys : array or list
        Which stream each event belongs to.
    codes : array of integers
        The true class of each times the number of classes, plus the predicted one.
    """
    truths, preds = (part.astype(np.uint16) for part in np.divmod(codes, len(bank.labels.values)))
    first = bank.events
    bank.update_coded(keys, truths, preds)
    return [(keyed.event - first, keyed.finding) for keyed in bank.findings]

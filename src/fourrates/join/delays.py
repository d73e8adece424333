"""Whether errors are labelled sooner than right predictions, or later.

While labels are missing, the labelled predictions of a day are then not like all of that day. Its rates look worse than
they are, or better. :class:`LabelDelays` keeps a sample of the pairs of each class, wrong and right ones. Within groups
of neighbours by time of prediction it compares the ranks of their delays (a stratified Wilcoxon test). Neighbours are
equally old, so labels that are still missing, a drift or a change of all delays do not mislead it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.budget.words import duration
from fourrates.escaping import shortened
from fourrates.labels import rate_names

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.labels import Codes

    Numbers = npt.NDArray[np.float64]

SAMPLED = np.dtype([("draw", "<u4"), ("since", "<f8"), ("wait", "<f8"), ("truth", "<u2"), ("wrong", "?")])
MOST = 8_192  # pairs in the sample, shared by the classes
LEVEL = 1e-4  # of a look, over all classes
GROUP = 16  # neighbours whose delays are compared
FEWEST = 20  # wrong and right ones of a class
SMALLEST = 0.05  # of the chance that an error is labelled before a right prediction, off one half
NEARLY_ALL = 0.95  # of the labels, after which a rate is called complete
CALLS = 256  # of :meth:`add` before the sample is thinned
SHOWN = 4  # classes in a warning
ERRORS_FIRST = ("errors", "right predictions", "worse")
RIGHT_FIRST = ("right predictions", "errors", "better")


@dataclass(frozen=True, slots=True)
class DelayDifference:
    """A class whose errors are labelled sooner than its right predictions, or later."""

    code: int  #: the true class
    wrong: float  #: half of the labels of errors have arrived after this time,
    right: float  #: and half of those of right predictions
    complete: float  #: when 95 % of both have arrived


class LabelDelays:
    """A bounded random sample of pairs and of the time their labels took.

    Parameters
    ----------
    classes : int
        How many there are.
    """

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._sample = np.empty(0, SAMPLED)
        self._new: list[tuple[Any, ...]] = []
        self._n_new = 0

    def add(self, draws: Any, truths: Codes, preds: Codes, since: Numbers, waits: Numbers) -> None:
        """Add pairs; `draws` are random numbers of 64 bits, waits that are not known are nan."""
        self._new.append((draws, truths, preds, since, waits))
        self._n_new += waits.size
        if len(self._new) > CALLS or self._n_new > MOST:
            self._thin()

    def _thin(self) -> None:
        """Keep the pairs with the smallest draws, as many of each class, wrong and right."""
        parts = [self._sample]
        for draws, truths, preds, since, waits in self._new:
            made = np.empty(waits.size, SAMPLED)
            made["draw"], made["since"], made["wait"] = draws >> np.uint64(32), since, waits
            made["truth"], made["wrong"] = truths, truths != preds
            parts.append(made[np.isfinite(waits)])
        self._new, self._n_new = [], 0
        pairs = np.concatenate(parts)
        cells = pairs["truth"] * 2 + pairs["wrong"]
        order = np.lexsort([pairs["draw"], cells])
        cells = cells[order]
        rank = np.arange(cells.size) - np.searchsorted(cells, cells)
        self._sample = pairs[order[rank < max(MOST // (2 * self._classes), GROUP)]]

    def differences(self) -> list[DelayDifference]:
        """The classes whose errors are labelled sooner or later than their right predictions."""
        self._thin()
        classes = [self._sample[self._sample["truth"] == code] for code in np.unique(self._sample["truth"])]
        enough = [waits for waits in classes if FEWEST <= waits["wrong"].sum() <= waits.size - FEWEST]
        least = NormalDist().inv_cdf(1 - LEVEL / (2 * max(len(enough), 1)))
        found = []
        for pairs in enough:
            score, effect = _compared(pairs[np.argsort(pairs["since"], kind="stable")])
            if abs(score) > least and abs(effect) >= SMALLEST:
                waits = pairs["wait"][pairs["wrong"]], pairs["wait"][~pairs["wrong"]]
                complete = max(float(np.quantile(times, NEARLY_ALL)) for times in waits)
                wrong, right = (float(np.median(times)) for times in waits)
                found.append(DelayDifference(int(pairs["truth"][0]), wrong, right, complete))
        return found

    def sentence(self, labels: Sequence[Hashable], per_second: float | None) -> str | None:
        """A warning for people; `per_second` units of time are a second, None if that is not known."""
        names = rate_names(labels)
        sentences = []
        for delays in self.differences()[:SHOWN]:
            first, second, how = ERRORS_FIRST if delays.wrong < delays.right else RIGHT_FIRST
            sooner, later, complete = (
                f"{time:.4g}" if per_second is None else duration(time / per_second)
                for time in (min(delays.wrong, delays.right), max(delays.wrong, delays.right), delays.complete)
            )
            rate = names[delays.code]
            sentences.append(
                f"{first} on {shortened(str(labels[delays.code]), 40)} are labelled sooner than {second} (half of them "
                f"within {sooner}, the others {later}): for the first {complete}, {rate} looks {how} than it is"
            )
        return "; ".join(sentences) or None

    def to_bytes(self) -> bytes:
        """The sample; :meth:`load` takes it."""
        self._thin()
        return self._sample.tobytes()

    def load(self, saved: bytes) -> None:
        """Take over what :meth:`to_bytes` gave; a ValueError if it is no such sample."""
        sample = np.frombuffer(saved, SAMPLED)
        if sample.size and not (
            (sample["truth"] < self._classes).all()
            and np.isfinite(sample["since"]).all()
            and (np.isfinite(sample["wait"]) & (sample["wait"] >= 0)).all()
            and (sample["wrong"].view(np.uint8) <= 1).all()
        ):
            raise ValueError("the saved sample of delays is none")
        self._sample = sample


def _compared(pairs: npt.NDArray[np.void]) -> tuple[float, float]:
    """How much later errors are labelled than right predictions, of pairs in the order of time.

    In standard errors, and as the chance that an error is labelled later, less one half.
    """
    groups = pairs[: pairs.size // GROUP * GROUP].reshape(-1, GROUP)
    waits, wrong = groups["wait"], groups["wrong"]
    ranks = np.sign(waits[:, :, None] - waits[:, None, :]).sum(2) / 2  # less their mean; equal ones share a rank
    n_wrong = wrong.sum(1)
    n_pairs = n_wrong * (GROUP - n_wrong)
    sums = (ranks * wrong).sum(1)
    variance = (n_pairs / (GROUP - 1) * (ranks**2).mean(1)).sum()
    # Delays and errors that cluster make the sums larger than an independent shuffle would.
    error = math.sqrt(max(float(variance), float((sums**2).sum())))
    return (float(sums.sum()) / error, float(sums.sum() / n_pairs.sum())) if error else (0.0, 0.0)

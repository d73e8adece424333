"""The second layer of HLFR: does a model learnt before an alarm fail after it more than chance explains?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.detectors.parameters import check_whole
from fourrates.null import check_number
from fourrates.rows import join, take

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.drift import Drift
    from fourrates.labels import Codes
    from fourrates.relearn.learner import Learner


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the second layer said of an alarm.

    Attributes
    ----------
    drift : Drift
        The alarm.
    at : int
        The label at which the verdict came.
    confirmed : bool
        Whether the alarm stands.
    p_value : float
        Of the permutation test.
    loss : float
        The share of errors after the alarm of a model learnt before it.
    shuffled : float
        The mean share of errors when the order of these examples is by chance.
    problem : str or None
        Why the alarm could not be judged, if it could not; then it stands, and the numbers are nan.
    """

    drift: Drift
    at: int
    confirmed: bool
    p_value: float
    loss: float
    shuffled: float
    problem: str | None = None

    @property
    def delay(self) -> int:
        """Labels between the alarm and the verdict: what the second layer costs."""
        return self.at - self.drift.at

    def __str__(self) -> str:
        what = "confirmed" if self.confirmed else "dismissed"
        if self.problem is not None:
            return f"drift at {self.drift.at:,} stands, it could not be judged: {self.problem}"
        return (
            f"drift at {self.drift.at:,} {what} at {self.at:,}: loss {self.loss:.3f}, "
            f"{self.shuffled:.3f} in shuffled order, p {self.p_value:.3f}"
        )


class PermutationTest:
    """Confirm or dismiss an alarm by the loss of a classifier learnt before it (HLFR, Yu & Abraham, 2017).

    A clone of the model learns from the `window` examples before the drift began and is held against as many since. The
    same is done with these examples in random orders. If the concept is the same, the order does not matter: the
    p-value is the share of orders with at least the loss of the true one, the true one counted among them.

    The examples since the beginning are counted from where the detector puts it (`drift.window`), so that those between
    there and the alarm need not be waited for. HLFR takes them from the alarm on.

    Parameters
    ----------
    window : int
        Examples on either side, 10 or more.
    permutations : int
        Random orders, each of which costs one fit.
    level : float
        An alarm is confirmed if the p-value is at most this.
    seed : int
        For the orders.

    Examples
    --------
    At so loose a level LFR alarms five times, at the change at 2,500 and by chance:

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import fourrates as fr
    >>> from fourrates.relearn import PermutationTest, Relearner
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> loop = Relearner(GaussianNB(), fr.LFR(warn=0.1, detect=0.001), confirm=PermutationTest(100))
    >>> loop = loop.fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> [(verdict.drift.at, verdict.confirmed, verdict.delay) for verdict in loop.verdicts]
    [(154, False, 81), (2500, True, 28), (3514, False, 85), (3799, False, 81), (4257, False, 45)]
    """

    def __init__(self, window: int = 100, *, permutations: int = 99, level: float = 0.05, seed: int = 0) -> None:
        self.window = check_whole(window, "window", least=10)
        self.permutations = check_whole(permutations, "permutations", least=1)
        if not 0 < check_number(level, "level") < 1:
            raise ValueError(f"level {level!r} is not in (0, 1)")
        if level * (permutations + 1) < 1:
            raise ValueError(f"{permutations} permutations cannot give a p-value of {level}")
        self.level, self.seed = float(level), check_whole(seed, "seed", least=0)

    def __repr__(self) -> str:
        return (
            f"PermutationTest({self.window}, permutations={self.permutations}, level={self.level:g}, seed={self.seed})"
        )

    def test(
        self, learner: Learner, before: tuple[Any, Codes], after: tuple[Any, Codes], drift: Drift, at: int
    ) -> Verdict:
        """Judge an alarm by the examples before and after it; a ValueError if those before it are of one class."""
        rows = join([before[0], after[0]])
        truths = np.concatenate([before[1], after[1]])
        size = before[1].size
        random = np.random.default_rng((self.seed, drift.at))
        ordered = self._loss(learner, rows, truths, np.arange(truths.size), size)
        losses = [
            loss
            for _ in range(self.permutations)
            if (loss := self._loss(learner, rows, truths, random.permutation(truths.size), size)) is not None
        ]
        if ordered is None or not losses:
            raise ValueError("the examples before the drift are of a single class")
        as_large = sum(loss >= ordered for loss in losses)
        p_value = (1 + as_large) / (1 + len(losses))
        return Verdict(drift, at, p_value <= self.level, p_value, ordered, float(np.mean(losses)))

    @staticmethod
    def _loss(learner: Learner, rows: Any, truths: Codes, order: npt.NDArray[np.intp], size: int) -> float | None:
        """The share of errors on the last of the examples in this order of what was learnt from the first `size`."""
        first, rest = order[:size], order[size:]
        if np.unique(truths[first]).size < 2:
            return None
        model = learner.learnt(take(rows, first), truths[first])
        return float(np.mean(learner.ask(model, take(rows, rest)) != truths[rest]))

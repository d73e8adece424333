"""The second layer of HLFR: whether a model learnt before an alarm fails after it more than chance explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.checks import check_whole
from fourrates.retrain.rows import join, take
from fourrates.retrain.second_layer import SecondLayer

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.findings import Drift
    from fourrates.labels import Codes
    from fourrates.retrain.learner import Learner
    from fourrates.retrain.second_layer import Examples


class PermutationTest(SecondLayer):
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
    >>> from fourrates.retrain import PermutationTest, Retrainer
    >>> X = np.random.default_rng(1).normal(size=(6_000, 2))
    >>> y = np.where(np.arange(6_000) < 3_000, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    >>> loop = Retrainer(GaussianNB(), fr.LFR(warn=0.1, detect=0.001), confirm=PermutationTest(100))
    >>> loop = loop.fit(X[:500], y[:500])
    >>> predictions = loop.run(X[500:], y[500:])
    >>> [(verdict.drift.at, verdict.confirmed, verdict.delay) for verdict in loop.verdicts]
    [(154, False, 81), (2500, True, 28), (3514, False, 85), (3799, False, 81), (4257, False, 45)]
    """

    def __init__(self, window: int = 100, *, permutations: int = 99, level: float = 0.05, seed: int = 0) -> None:
        super().__init__(window, level)
        self.permutations = check_whole(permutations, "permutations", least=1)
        if level * (permutations + 1) < 1:
            raise ValueError(f"{permutations} permutations cannot give a p-value of {level}")
        self.seed = check_whole(seed, "seed", least=0)

    def __repr__(self) -> str:
        return (
            f"PermutationTest({self.window}, permutations={self.permutations}, level={self.level:g}, seed={self.seed})"
        )

    def begins(self, drift: Drift) -> int:
        """Where the detector puts the beginning of the drift."""
        return drift.window.start

    def p_value(self, learner: Learner, model: Any, before: Examples, after: Examples, seed: int) -> tuple[float, str]:
        """The share of orders in which a model that learnt from the first examples fails as often on the rest."""
        rows = join([before[0], after[0]])
        truths = np.concatenate([before[1], after[1]])
        size = before[1].size
        random = np.random.default_rng((self.seed, seed))
        ordered = _loss(learner, rows, truths, np.arange(truths.size), size)
        if ordered is None:
            raise ValueError("the examples before the drift are of a single class")
        orders = (random.permutation(truths.size) for _ in range(self.permutations))
        losses = [loss for order in orders if (loss := _loss(learner, rows, truths, order, size)) is not None]
        p_value = (1 + sum(loss >= ordered for loss in losses)) / (1 + len(losses))
        return p_value, f"loss {ordered:.3f}, in random orders {np.mean([*losses, ordered]):.3f}"


def _loss(learner: Learner, rows: Any, truths: Codes, order: npt.NDArray[np.intp], size: int) -> float | None:
    """The share of errors on the last of the examples in this order of what was learnt from the first `size`."""
    first, rest = order[:size], order[size:]
    if np.unique(truths[first]).size < 2:
        return None
    model = learner.trained(take(rows, first), truths[first])
    return float(np.mean(learner.ask(model, take(rows, rest)) != truths[rest]))

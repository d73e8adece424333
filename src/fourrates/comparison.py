"""Two models on the same traffic. :func:`compare` decides whether the second is better, however often you look.

For each true class it compares right answers, second model minus first, a number between -1 and 1 whose mean is the
difference of the two recalls. A gambler who bets against "the difference is at most m" cannot expect to win while that
is true, and ever becomes rich by a factor of 1/alpha with probability alpha at most (Ville's inequality). The m that no
gambler got rich against make an interval that holds at every look at once, a confidence sequence by betting
(Waudby-Smith & Ramdas 2023). It assumes that events do not foretell each other's differences.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.findings import Share
from fourrates.io import Bad, Columns, InputError, read
from fourrates.labels import rate_names
from fourrates.plain import to_json

if TYPE_CHECKING:
    import numpy.typing as npt

    Bits = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.float64]
    Read = tuple[tuple[str, str], Sequence[Hashable], list[tuple[Numbers, Share, Share]]]  # names, classes, by class

STAKES = 0.9 * 2.0 ** -np.arange(8.0)  # shares of a gambler's largest bet, from bold to careful, a mixture of all
LARGEST = 100  # most events of one version per event of the other
FIRST = 16  # events of a class before the versions' shares are estimated; then at 32, 64, ...


@dataclass(frozen=True, slots=True)
class RateComparison:
    """A recall of two models."""

    rate: str  #: its name, such as ``"tpr"``
    first: Share  #: the recall of each model, with an interval for this look alone
    second: Share
    difference: float  #: second minus first
    lower: float  #: interval of the true difference, valid at every look at once
    upper: float
    pairs: int  #: comparisons made, by events that both models saw, or groups of events of both
    verdict: str  #: ``"better"``, ``"not worse"`` (by more than the margin), ``"worse"`` or ``"undecided"``

    def __str__(self) -> str:
        return (
            f"{self.rate} {self.first.value:.3f} -> {self.second.value:.3f}: {100 * self.difference:+.1f} points "
            f"[{100 * self.lower:+.1f}, {100 * self.upper:+.1f}], {self.verdict}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer of :func:`compare`."""

    models: tuple[str, str]  #: the first and the second
    rates: dict[str, RateComparison]  #: by recall
    margin: float  #: as given
    alpha: float  #: as given
    paired: bool  #: whether both models saw the same events

    @property
    def verdict(self) -> str:
        """Worse if any recall is, better if one is and no other can be worse than the margin allows."""
        verdicts = {rate.verdict for rate in self.rates.values()}
        if "worse" in verdicts:
            return "worse"
        if "undecided" in verdicts:
            return "undecided"
        return "better" if "better" in verdicts else "not worse"

    def __str__(self) -> str:
        first, second = self.models
        words = {
            "better": f"{second} is better than {first}",
            "worse": f"{second} is worse than {first}: stop",
            "not worse": f"{second} is not worse than {first} by more than {100 * self.margin:g} points",
            "undecided": f"{second} against {first}: undecided, more labels are needed",
        }
        return "\n".join([words[self.verdict], *(f"  {rate}" for rate in self.rates.values())])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        rates = [to_json(rate) for rate in self.rates.values()]
        return {**to_json(self), "verdict": self.verdict, "rates": rates}


def compare(
    source: Any,
    truth: str | None = None,
    pred: str | Sequence[str] | None = None,
    by: str | None = None,
    models: Sequence[str] | None = None,
    margin: float = 0.01,
    alpha: float = 0.05,
    positive: Hashable = None,
    labels: Iterable[Hashable] | None = None,
    bad: Bad = "reject",
) -> Comparison:
    """Compare two models on labelled traffic. The second is better, not worse, or worse.

    Look as often as you like, at a growing file or at a day's table: "better" and "worse" are wrong with probability
    `alpha` at most, over all looks and all classes together.

    Parameters
    ----------
    source : frame, path, list of paths
        Any input of :func:`fourrates.detect`, oldest events first.
    truth : str, optional
        Column of true labels; inferred from common names.
    pred : str or pair of str
        Two columns of predictions if both models saw every event (a shadow); one, with `by`, if each saw its own.
    by : str, optional
        Column that names the model, such as a version (a canary).
    models : pair of str, optional
        The first and the second; with `by`, in order of appearance by default.
    margin : float
        How much worse, in recall, still counts as not worse.
    alpha : float
        The probability of a wrong "better" or "worse".
    positive, labels : optional
        As for :func:`fourrates.detect`.
    bad : {"reject", "skip"}
        Whether a bad row, such as one without a prediction, is an error or skipped.

    Examples
    --------
    >>> import numpy as np
    >>> import fourrates as fr
    >>> random = np.random.default_rng(1)
    >>> y = random.random(4_000) < 0.3
    >>> v1 = np.where(random.random(4_000) < np.where(y, 0.62, 0.95), y, ~y)
    >>> v2 = np.where(random.random(4_000) < np.where(y, 0.78, 0.95), y, ~y)
    >>> print(fr.compare({"y": y, "v1": v1, "v2": v2}, truth="y", pred=("v1", "v2"), margin=0.03))
    v2 is better than v1
      tnr 0.945 -> 0.949: +0.4 points [-1.7, +2.6], not worse
      tpr 0.621 -> 0.793: +17.2 points [+10.8, +23.6], better
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha!r}")
    if not 0 <= margin < 1:
        raise ValueError(f"margin must be from 0 to 1, in recall, not {margin!r}")
    asked = {"labels": None if labels is None else tuple(labels), "positive": positive, "bad": bad}
    paired = pred is not None and not isinstance(pred, str)
    if paired == (by is not None) or (paired and len(pred) != 2):  # type: ignore[arg-type]
        raise ValueError("give two columns of predictions (pred), or one and the column that names the model (by)")
    if pred is None or isinstance(pred, str):
        names, classes, compared = _canary(source, Columns(truth, pred, by=by), models, asked)
    else:
        names, classes, compared = _shadow(source, truth, (pred[0], pred[1]), asked)
    rates = {}
    for rate, (differences, first, second) in zip(rate_names(classes), compared, strict=False):
        lower, upper = _bounds(differences, alpha / (2 * len(classes)))
        verdict = "better" if lower > 0 else "worse" if upper < 0 else "not worse" if lower > -margin else "undecided"
        difference = second.value - first.value
        rates[rate] = RateComparison(rate, first, second, difference, lower, upper, differences.size, verdict)
    return Comparison(names, rates, margin, alpha, paired)


def _shadow(source: Any, truth: str | None, preds: tuple[str, str], asked: dict[str, Any]) -> Read:
    """The rows with a prediction of both models."""
    both = [read(source, columns=Columns(truth, pred), **asked) for pred in preds]
    columns = [_columns((batch.rows, batch.truths, batch.preds) for batch in events) for events in both]
    classes = both[0].labels.values
    if classes != both[1].labels.values:
        raise InputError(f"{preds[0]} and {preds[1]} have other classes; name them all (--classes, or labels=)")
    _, *places = np.intersect1d(columns[0][0], columns[1][0], assume_unique=True, return_indices=True)
    truths = columns[0][1][places[0]]
    right = [column[2][place] == truths for column, place in zip(columns, places, strict=True)]
    compared = []
    for code in range(len(classes)):
        first, second = (bits[truths == code] for bits in right)
        compared.append((second.astype(float) - first, _share(first), _share(second)))
    return preds, classes, compared


def _canary(source: Any, columns: Columns, models: Sequence[str] | None, asked: dict[str, Any]) -> Read:
    events = read(source, columns=columns, **asked)
    keys, truths, preds = _columns((batch.keys, batch.truths, batch.preds) for batch in events)
    names = [str(name) for name in (events.keys if models is None else models)]
    if len(names) != 2:
        raise InputError(f"two models can be compared, not {len(names)} ({', '.join(names[:5])}); name two (models)")
    for name in names:
        if name not in events.keys:
            raise InputError(f"no row is of model {name!r}; there are {', '.join(events.keys[:5])}")
    version = np.select([keys == events.keys.index(name) for name in names], [0, 1], -1)
    right = truths == preds
    compared = []
    for code in range(len(events.labels.values)):
        here = (truths == code) & (version >= 0)
        first, second = (_share(right[here & (version == side)]) for side in (0, 1))
        compared.append((_side_by_side(version[here], right[here]), first, second))
    return (names[0], names[1]), events.labels.values, compared


def _columns(batches: Iterable[tuple[Any, ...]]) -> list[npt.NDArray[Any]]:
    columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
    if not columns:
        raise InputError("no row has a label and a prediction")
    return columns


def _share(right: Bits) -> Share:
    return Share.of(int(right.sum()), right.size)


def _side_by_side(version: npt.NDArray[np.int64], right: Bits) -> Numbers:
    """Right-answer differences of one class between groups, with each version's share as in the traffic.

    Which events make a group depends on their version, never on whether they were right. A later look makes the same
    groups and then more. The sizes change only when the number of events has doubled.
    """
    answers = [right[version == side].astype(float) for side in (0, 1)]
    seen = [np.cumsum(version == side) for side in (0, 1)]
    used, sizes, end = [0, 0], [1, 1], FIRST
    groups: list[Numbers] = [np.empty(0)]
    while version.size:
        at = min(end, version.size)
        here = [int(seen[side][at - 1]) for side in (0, 1)]
        number = min((here[side] - used[side]) // sizes[side] for side in (0, 1))
        means = []
        for side in (0, 1):
            stop = used[side] + number * sizes[side]
            means.append(answers[side][used[side] : stop].reshape(number, sizes[side]).mean(axis=1))
            used[side] = stop
        groups.append(means[1] - means[0])
        if at == version.size:
            break
        sizes = [min(LARGEST, max(1, round(here[side] / max(1, here[1 - side])))) for side in (0, 1)]
        end *= 2
    return np.concatenate(groups).round(9)


def _bounds(differences: Numbers, level: float) -> tuple[float, float]:
    """An interval of the mean of numbers in -1 to 1, wrong at either end with probability `level` over all looks."""
    if not differences.size:
        return -1.0, 1.0
    values, counts = np.unique(differences, return_counts=True)
    return _lower(values, counts, level), -_lower(-values, counts, level)


def _lower(values: Numbers, counts: npt.NDArray[np.int64], level: float) -> float:
    """The largest m such that bets against "the mean is at most m" have won 1/level."""

    def is_refuted(m: float) -> bool:
        gains = counts @ np.log1p(np.multiply.outer((values - m) / (1 + m), STAKES))
        return bool(np.logaddexp.reduce(gains) - np.log(STAKES.size) >= -np.log(level))

    low, high = -1.0, 1.0
    for _ in range(40):  # the winnings fall with m
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low

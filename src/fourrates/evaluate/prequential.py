"""How well a classifier does along a stream: accuracy, F1 and G-mean, event by event or overall."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fourrates.labels import Labels

Curve = npt.NDArray[np.float64]

FADED = 1e-290  # a smaller sum counts as no event, as doubles lose their digits


@dataclass(frozen=True, slots=True)
class Prequential:
    """How good the predictions were after each event, as curves along the stream.

    Attributes
    ----------
    accuracy : array of float
    f1 : array of float
        2 TP / (2 TP + FP + FN) of the positive class; nan while it was neither seen nor predicted.
    g_mean : array of float
        The geometric mean of the recalls of the classes seen.
    """

    accuracy: Curve
    f1: Curve
    g_mean: Curve


@dataclass(frozen=True, slots=True)
class Totals:
    """Accuracy, F1 and G-mean of a whole stream of predictions, nan if undefined."""

    accuracy: float
    f1: float
    g_mean: float


def prequential(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    fading: float | None = None,
    window: int | None = None,
    labels: Iterable[Hashable] = (0, 1),
    positive: Hashable = None,
) -> Prequential:
    """Follow accuracy, F1 and G-mean event by event, with each prediction made before its label was known.

    A class not seen (in the window) has no recall and is left out of G-mean.

    Parameters
    ----------
    y_true, y_pred : arrays
        Labels.
    fading : float, optional
        An event counts this much less with each one that follows it, such as 0.999; in (0, 1).
    window : int, optional
        Only this number of the latest events counts. Without either all count alike.
    labels : iterable of hashable
        All classes.
    positive : label, optional
        The label for F1; if not given, the second of two, and with more the mean over the classes.

    Examples
    --------
    The accuracy does not show what G-mean shows:

    >>> from fourrates.evaluate import prequential
    >>> from fourrates.streams import SCENARIOS
    >>> curves = prequential(*SCENARIOS["Imbalance2"].stream(seed=1), window=1000)
    >>> for at in (4_999, 5_999):
    ...     print(f"{curves.accuracy[at]:.2f} {curves.f1[at]:.2f} {curves.g_mean[at]:.2f}")
    0.79 0.58 0.78
    0.79 0.34 0.49
    """
    if fading is not None and window is not None:
        raise ValueError("events are forgotten by fading or by a window, not by both")
    if fading is not None and not 0 < fading < 1:
        raise ValueError(f"fading {fading} is not in (0, 1)")
    if window is not None and window < 1:
        raise ValueError(f"window {window}: at least one event must count")

    def sums(events: npt.NDArray[np.bool_]) -> Curve:
        return _faded(events, fading) if fading is not None else _windowed(events, window)

    return Prequential(*_measures(y_true, y_pred, labels, positive, sums))


def totals(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: Iterable[Hashable] = (0, 1),
    positive: Hashable = None,
) -> Totals:
    """Accuracy, F1 and G-mean of a whole stream.

    Parameters
    ----------
    y_true, y_pred : arrays
        Labels.
    labels : iterable of hashable
        All classes.
    positive : label, optional
        The label for F1; if not given, the second of two, and with more the mean over the classes.

    Examples
    --------
    >>> from fourrates.evaluate import totals
    >>> totals(["spam", "ham", "ham", "ham"], ["ham", "ham", "ham", "ham"], labels=("ham", "spam"))
    Totals(accuracy=0.75, f1=0.0, g_mean=0.0)
    """
    measures = _measures(y_true, y_pred, labels, positive, lambda events: np.array([events.sum()], float))
    return Totals(*(float(measure[0]) for measure in measures))


def _measures(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    labels: Iterable[Hashable],
    positive: Hashable,
    sums: Callable[[npt.NDArray[np.bool_]], Curve],
) -> tuple[Curve, Curve, Curve]:
    """Accuracy, F1 and G-mean, from `sums` of events."""
    known = Labels(labels)
    truth, pred = known.encode(y_true, "y_true"), known.encode(y_pred, "y_pred")
    if truth.size != pred.size:
        raise ValueError(f"y_true has {truth.size} labels, y_pred has {pred.size}")
    scored = _scored(known, positive)
    right = truth == pred
    events = sums(np.ones(truth.size, bool))
    logs, recalled, f1, counted = (np.zeros(events.size) for _ in range(4))
    for code in range(len(known.values)):
        true = truth == code
        hits, seen = sums(true & right), sums(true)
        with np.errstate(divide="ignore"):  # a recall of 0: G-mean is 0
            _add(logs, recalled, np.log(_ratio(hits, seen)))
        if code in scored:
            _add(f1, counted, _ratio(2 * hits, seen + sums(pred == code)))
    return _ratio(sums(right), events), _ratio(f1, counted), np.exp(_ratio(logs, recalled))


def _add(total: Curve, count: Curve, values: Curve) -> None:
    """Add the values that are there, and count them."""
    there = ~np.isnan(values)
    total[there] += values[there]
    count += there


def _scored(labels: Labels, positive: Hashable) -> range:
    """The codes of the classes for F1."""
    if positive is None:
        return range(1, 2) if len(labels.values) == 2 else range(len(labels.values))
    code = labels.code(positive)
    if code < 0:
        raise ValueError(f"positive {positive!r} is not one of {labels.values!r}")
    return range(code, code + 1)


def _windowed(events: npt.NDArray[np.bool_], window: int | None) -> Curve:
    sums = np.cumsum(events, dtype=float)  # exact, as these are whole numbers
    if window is not None:
        sums[window:] -= sums[:-window].copy()
    return sums


def _faded(events: npt.NDArray[np.bool_], fading: float) -> Curve:
    """S(t) = fading S(t - 1) + event(t): each round doubles how many events a sum contains."""
    sums, span = events.astype(float), 1
    while span < sums.size and (weight := fading**span) > 0:
        sums[span:] += weight * sums[:-span]
        span *= 2
    sums[sums < FADED] = 0
    return sums


def _ratio(part: Curve, whole: Curve) -> Curve:
    ratio = np.full(whole.size, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio

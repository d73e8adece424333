"""Run lengths and delays of any detector, by running it.

The same seed gives the same result; its sampling error is reported. :func:`~fourrates.budget.expected_delay` computes
how soon an LFR finds a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fourrates.budget.confusion import probabilities
from fourrates.budget.delay import Delay, check_horizon
from fourrates.evaluate import RunLength, run_length
from fourrates.findings import Drift
from fourrates.streams.scenarios import edges_of

if TYPE_CHECKING:
    from fourrates.detectors.base import Detector

Pairs = tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]

CHUNK = 1_000_000  # events drawn at a time, at most
PIECE = 4_096  # events drawn at first after a change


def expected_run_length(
    detector: Detector, confusion: npt.ArrayLike, alarms: int = 400, *, limit: int = 100_000_000, seed: int = 0
) -> RunLength:
    """Events between two false alarms, by running a detector on a stable stream until it has given enough of them.

    Parameters
    ----------
    detector : Detector
        Any; a clone of it runs.
    confusion : K x K array
        Probabilities or counts, by true class and then by predicted class.
    alarms : int
        The alarms to wait for. Runs are about exponential, so the mean of 400 has a standard error of 5 %.
    limit : int
        Events after which to stop at the latest.
    seed : int
        Of the stream.

    Examples
    --------
    >>> import fourrates as fr
    >>> found = fr.budget.expected_run_length(fr.LFR(detect=1e-3), [[45, 5], [5, 45]], alarms=100)
    >>> f"{found.mean:,.0f} events, give or take {found.standard_error:,.0f}"
    '1,223 events, give or take 122'
    """
    if alarms < 1 or limit < 1:
        raise ValueError(f"alarms {alarms!r} and limit {limit!r} must both be at least 1")
    draw = Draw(detector, confusion)
    random = np.random.default_rng(seed)
    running = detector.clone()
    at: list[int] = []
    events, size = 0, 10_000
    while len(at) < alarms and events < limit:
        size = min(size, limit - events)
        at += [drift.at for drift in drifts_of(running, draw(random, size))]
        events += size
        # The events that the missing alarms need, but at most double, to avoid surprises.
        size = min(2 * size, CHUNK, max(10_000, int(1.1 * events / max(len(at), 1) * (alarms - len(at)))))
    return run_length(at, events)


def simulated_delay(
    detector: Detector,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    *,
    streams: int = 1000,
    history: int = 5000,
    horizon: int = 5000,
    seed: int | np.random.Generator = 0,
) -> Delay:
    """Run a detector on many streams that change once, and see how soon it reacts.

    A false alarm before the change happens as in life; only drifts from the change on count. Arguments are those of
    :func:`~fourrates.budget.expected_delay`, with `history` events before the change.

    Examples
    --------
    >>> import fourrates as fr
    >>> from fourrates.budget.simulation import simulated_delay
    >>> delay = simulated_delay(fr.LFR(), [[65, 15], [5, 15]], [[75, 5], [15, 5]], streams=200)
    >>> delay.median, delay.median_between
    (90.0, (84.0, 96.0))
    >>> f"{delay.within(200):.2f}, give or take {delay.standard_error(200):.2f}"
    '0.94, give or take 0.02'
    """
    check_horizon(horizon)
    if streams < 1 or history < 0:
        raise ValueError(f"streams {streams!r} must be at least 1, and history {history!r} at least 0")
    old, new = Draw(detector, before), Draw(detector, after)
    random = np.random.default_rng(seed)
    running = detector.clone()
    found = np.zeros(horizon)
    for _ in range(streams):
        running.reset()
        list(drifts_of(running, old(random, history)))
        done, size = 0, PIECE  # in pieces, so that a stream that alarms soon costs little
        while done < horizon:
            size = min(size, horizon - done)
            drift = next(drifts_of(running, new(random, size)), None)
            if drift is not None:
                found[drift.at - history] += 1
                break
            done, size = done + size, 2 * size
    return Delay(np.cumsum(found) / streams, streams)


class Draw:
    """Draws pairs of class codes, in the order of a detector's labels, from a confusion matrix."""

    def __init__(self, detector: Detector, confusion: npt.ArrayLike) -> None:
        matrix = probabilities(confusion, len(detector.labels.values))
        self.classes = len(matrix)
        self.edges = edges_of(matrix)

    def __call__(self, random: np.random.Generator, size: int) -> Pairs:
        """True and predicted classes of some events."""
        cells = np.searchsorted(self.edges, random.random(size), side="right")
        truths, preds = (side.astype(np.uint16) for side in np.divmod(cells, self.classes))
        return truths, preds


def drifts_of(detector: Detector, pairs: Pairs) -> Iterator[Drift]:
    """Yield the drifts of a detector in such pairs as it finds them, reading no further than asked."""
    truths, preds = pairs
    done = 0
    while done < truths.size:
        taken, findings = detector.update_coded(truths, preds, done)
        done += taken
        yield from (finding for finding in findings if isinstance(finding, Drift))

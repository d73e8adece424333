"""The one call: :func:`detect`, on a DataFrame that is all there and on one that streams."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fourrates.budget.words import DEFAULT_EVENTS, run_length
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates
from fourrates.engines.spark.batch import find_in_batch
from fourrates.engines.spark.events import TIMES, Task, check
from fourrates.engines.spark.streaming import find_in_stream
from fourrates.events.rows import Bad
from fourrates.labels import Labels


def detect(
    df: DataFrame,
    *,
    truth: str,
    pred: str,
    by: str | Iterable[str] | None = None,
    order: str | Iterable[str] | None = None,
    version: str | None = None,
    arl: float | None = None,
    budget: str | float | None = None,
    rate: float | None = None,
    reference: Any = None,
    labels: Iterable[Hashable] = (0, 1),
    positive: Hashable = None,
    detector: RecordDetector | None = None,
    shards: int | None = None,
    watermark: str | bool | None = None,
    bad: Bad = "keep",
) -> DataFrame:
    """Find the drifts of keyed streams in a DataFrame, the same as :func:`fourrates.detect` finds on one machine.

    Parameters
    ----------
    df : DataFrame
        Events, a row each; batch or streaming.
    truth, pred : str
        Columns of true labels and of predictions.
    by : str or several, optional
        Columns that distinguish streams; without them all events are one stream.
    order : str or several, optional
        Columns that put the events of a stream in order; rows that are equal in all of them keep the order in which
        Spark delivers them. Batch needs it. A streaming DataFrame takes one, a timestamp or an integer, to order the
        events of a micro-batch and, with a `watermark`, of the whole stream.
    version : str, optional
        Column of the model version that predicted, a string or an integer. Each has its own normal and drifts. It
        retires when it made none of 500 predictions, of its key in batch, of its shard in a stream.
    arl : float, optional
        Events of all streams together between two false alarms; 100,000 if nothing else is given.
    budget : str or float, optional
        The same in words, such as ``"1 per month"``. That needs the event rate, from `rate` or, in batch, from an
        `order` that is a timestamp, which costs one more pass over it.
    rate : float, optional
        Events a second, in all streams together.
    reference : K x K counts, pair of arrays or DataFrame, optional
        The classifier as you shipped it, on its validation set; a DataFrame with the same columns `truth` and `pred`.
    labels : iterable of labels
        The classes.
    positive : label, optional
        The positive one of two labels; the second if not given.
    detector : FourRates or LFR, optional
        Settings instead of `arl`, `budget`, `reference`, `labels` and `positive`.
    shards : int, optional
        For batches, partitions to work on; Spark's own choice if not given. For streams, parts of the state, 32 if not
        given, which cannot change once a query has a checkpoint.
    watermark : str or True, optional
        For streams, how long to wait for late events, such as ``"10 minutes"``; True if the DataFrame has a watermark
        on `order` already. Events are then ordered by time once the watermark has passed them, and later ones are
        rejected. Without it they are processed as they arrive.
    bad : {"keep", "skip", "reject"}
        Rows without a key, time or prediction, or with an unknown label, become rows of the result with the kind
        ``"rejected"``, a reason and the row as JSON; are skipped; or end the job with an error. Rows without a true
        label are always skipped and counted, in `rows` of a row of the kind ``"unlabelled"``.

    Returns
    -------
    DataFrame
        One row for each rate that moved. It has the columns of `by` and the first of `order` at the alarm, that of
        `version`, and the `kind`, that of a :class:`~fourrates.Finding`, "rejected" or "unlabelled". The columns `at`,
        `drift` (the one it is about), `since`, `started`, `started_first` and `started_last` count the events of that
        stream; `started_time` is the time of the event `started` if the first of `order` is a timestamp. `closes` is
        whether it closes that drift. Then follow `rate`, `direction`, `before`, `after`, their `before_n` and
        `after_n`, `evidence` and its `bound`; `id`, the same for the same finding; the `reason` and `row` of a rejected
        row, and the number of `rows`.
    """
    if detector is None:
        if arl is not None and budget is not None:
            raise ValueError(f"arl {arl!r} and budget {budget!r}: give one of them")
        length: Any = budget if budget is not None else DEFAULT_EVENTS if arl is None else arl
        if isinstance(length, str):
            length = run_length(length, rate or _event_rate(df, _names(order)))
        classes = tuple(labels)
        if isinstance(reference, DataFrame):
            reference = _counts(reference, truth, pred, Labels(classes))
        detector = FourRates(length, reference=reference, labels=classes, positive=positive)
    else:
        _check_alone(detector, arl=arl, budget=budget, reference=reference, positive=positive)
    task = Task(detector.clone(), truth, pred, _names(by), _names(order), bad, version)
    check(task, df.schema, df.isStreaming)
    if shards is not None and shards < 1:
        raise ValueError(f"shards {shards!r} is not at least 1")
    if df.isStreaming:
        return find_in_stream(df, task, shards, watermark)
    if watermark is not None:
        raise ValueError("watermark is for a streaming DataFrame; one that is all there is put in order by `order`")
    if not task.order:
        raise ValueError("order: a DataFrame has none; name the column that puts its events in order")
    return find_in_batch(df, task, shards)


def _names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _check_alone(detector: RecordDetector, **settings: Any) -> None:
    """Raise an error if there are settings beside a detector, or if it is none that Spark can hold."""
    for name, value in settings.items():
        if value is not None:
            raise ValueError(f"{name} and a detector: give {name} to the detector")
    if not isinstance(detector, RecordDetector):
        raise TypeError(f"detector is neither a FourRates nor an LFR: {detector!r}")


def _event_rate(df: DataFrame, order: tuple[str, ...]) -> float | None:
    if df.isStreaming or not order or order[0] not in df.columns or not isinstance(df.schema[order[0]].dataType, TIMES):
        return None
    time = F.col(order[0]).cast(T.TimestampType()).cast("double")
    (found,) = df.agg(F.min(time), F.max(time), F.count(time)).collect()
    first, last, count = found
    return (count - 1) / (last - first) if count > 1 and last > first else None


def _counts(reference: DataFrame, truth: str, pred: str, labels: Labels) -> Any:
    """The confusion counts of a DataFrame, by the labels as they were given."""
    counts = np.zeros((len(labels.given), len(labels.given)), np.int64)
    for actual, predicted, count in reference.groupBy(truth, pred).count().collect():
        for name, label in ((truth, actual), (pred, predicted)):
            if labels.read(label) < 0:
                raise ValueError(f"reference: {labels.problem(label, name)}")
        counts[labels.read(actual), labels.read(predicted)] += count
    return counts

"""Batch, with one exchange by key, one sort by key and order, and watches that see one stream after the other.

The events of a stream are adjacent, so only the streams of one Arrow batch are in memory at a time, whatever the number
of keys; the last stream of a batch may continue in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fourrates.engines.spark.coding import Coder, events_of, moments
from fourrates.engines.spark.events import Task, prepare
from fourrates.engines.spark.results import Rows, result_schema
from fourrates.findings import Finding
from fourrates.watch import Watch

TOGETHER = 10_000  # rows; a watch remembers the times of 5,000 streams

Batches = Iterator[pa.RecordBatch]


def find_in_batch(frame: DataFrame, task: Task, shards: int | None) -> DataFrame:
    schema = result_schema(task, frame.schema)
    events = prepare(frame, task)
    keys: list[Any] = [events[i] for i in range(len(task.by))]
    if not keys:
        events = events.coalesce(1) if shards == 1 else events.repartition(1)
    else:
        events = events.repartition(*keys) if shards is None else events.repartition(shards, *keys)
    events = events.sortWithinPartitions(*[F.col(events.columns[i]) for i in range(len(task.by) + len(task.order))])
    return events.mapInArrow(watcher(task, schema), schema)


def watcher(task: Task, schema: T.StructType) -> Callable[[Batches], Batches]:
    """The function for each partition, sorted by key and order."""

    def watch(batches: Batches) -> Batches:
        coder, streams = Coder(task), _Streams(task)
        for batch in batches:
            rows = Rows(task)
            codes, letters = coder.read(batch)
            rows.reject(letter for _, letter in letters)
            if not (good := codes >= 0).all():
                batch, codes = batch.filter(pa.array(good)), codes[good]
            for start in range(0, len(batch), TOGETHER):
                part = batch.slice(start, TOGETHER)
                for finding in streams.take(part, codes[start : start + TOGETHER]):
                    own = [part.column(i)[finding.row] for i in range(len(task.by) + bool(task.order))]
                    rows.add([*map(_value, own)], finding)
            if rows:
                yield rows.batch(schema)

    return watch


class _Streams:
    """The streams of a partition, in pieces that follow each other.

    Streams that begin and end in a piece are watched together; the last one alone, since it may continue.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._last = Watch(task.detector)
        self._last_key: list[Any] | None = None

    def take(self, rows: pa.RecordBatch, codes: Any) -> list[Finding]:
        """Take events; each finding has the place of its event as its row."""
        task = self._task
        keys = [rows.column(i) for i in range(len(task.by))]
        times = moments(rows.column(len(keys))) if task.order else None
        versions = None if task.version is None else rows.column(task.version)
        events = events_of(codes, task.classes, times, versions)
        starts = _starts(keys, len(rows))
        if self._last_key != [key[0] for key in keys]:
            self._last = Watch(task.detector)
        findings = self._last.update(events.take(slice(starts[1])))
        if versions is not None:  # which serves is a question of one stream
            for first, end in pairwise(starts[1:-1]):
                findings += Watch(task.detector).update(events.take(slice(first, end)))
        elif len(starts) > 3:  # streams between the first one and the last one
            inner, streams = events.take(slice(starts[1], starts[-2])), np.arange(len(starts) - 3)
            keyed = replace(inner, keys=np.repeat(streams, np.diff(starts[1:-1])))
            findings += Watch(task.detector).update(keyed, [*map(str, streams.tolist())])
        if len(starts) > 2:
            self._last = Watch(task.detector)
            findings += self._last.update(events.take(slice(starts[-2], starts[-1])))
        self._last_key = [key[-1] for key in keys]
        return findings


def _starts(keys: list[pa.Array], size: int) -> list[int]:
    """The first rows of streams, with another key than the row before, and their ends."""
    differs = np.zeros(max(size - 1, 0), np.bool_)
    for key in keys if size > 1 else ():
        differs |= pc.not_equal(key[1:], key[:-1]).to_numpy(zero_copy_only=False)
    return [0, *(np.flatnonzero(differs) + 1).tolist(), size]


def _value(scalar: pa.Scalar) -> Any:
    """A value in its column's type; a timestamp as its number, for Python has no dates after 9999."""
    is_moment = pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type)
    return scalar.value if is_moment else scalar.as_py()

"""Batch: one exchange by key, one sort by key and order, and a bank that sees one stream after the other.

The events of a stream lie together, so a bank never holds more than the streams of one Arrow batch, whatever the number
of keys; the last stream of a batch may go on in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fourrates.bank import Bank
from fourrates.engines.spark.coding import Coder
from fourrates.engines.spark.events import Task, prepare
from fourrates.engines.spark.findings import update
from fourrates.engines.spark.results import Rows, result_schema

Batches = Iterator[pa.RecordBatch]


def find_in_batch(frame: DataFrame, task: Task, shards: int | None) -> DataFrame:
    """The drifts of a DataFrame that is all there."""
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
    """What runs over each partition, sorted by key and order."""

    def watch(batches: Batches) -> Batches:
        bank = Bank(task.detector)
        bank.threads = 1  # Spark has a task for each processor
        coder = Coder(task)
        last: list[Any] | None = None
        streams = 0
        for batch in batches:
            rows = Rows(task)
            codes, letters = coder.read(batch)
            rows.reject(letter for _, letter in letters)
            if not (good := codes >= 0).all():
                batch, codes = batch.filter(pa.array(good)), codes[good]
            if len(batch):
                numbers = _streams(batch, len(task.by), last, streams)
                _take(bank, numbers, codes, batch, task, rows)
                streams = int(numbers[-1])
                last = [batch.column(i)[-1] for i in range(len(task.by))]
                bank.evict(idle=1)  # all but the stream of the last event
                if len(bank) > 1:  # and those whose drift is open, which are over
                    bank.evict([number for number in bank if number != streams])
            if rows:
                yield rows.batch(schema)

    return watch


def _take(bank: Bank, numbers: Any, codes: Any, batch: pa.RecordBatch, task: Task, rows: Rows) -> None:
    for place, finding in update(bank, numbers, codes):
        rows.add([_value(batch.column(i)[place]) for i in range(len(task.by) + bool(task.order))], finding)


def _value(scalar: pa.Scalar) -> Any:
    """A value that a column of its type takes; of a moment its number, for Python has no dates after 9999."""
    is_moment = pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type)
    return scalar.value if is_moment else scalar.as_py()


def _streams(batch: pa.RecordBatch, keys: int, last: list[Any] | None, before: int) -> Any:
    """The number of each row's stream: one more wherever a key differs from that of the row before."""
    differs = np.zeros(len(batch), np.int64)
    for i in range(keys):
        column = batch.column(i)
        if len(batch) > 1:
            differs[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        differs[0] |= last is not None and not column[0].equals(last[i])
    return before + np.cumsum(differs)

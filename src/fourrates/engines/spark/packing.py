"""Events on their way to their shards: many rows as one.

Spark moves, sorts and groups rows one at a time. So the events of a micro-batch are gathered by shard where they are
read, as columns: through the exchange and into the worker that keeps the shard goes a row for each shard, not for each
event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fourrates.engines.spark.events import BAD, CODE, SHARD, Task

GATHERED = 500_000  # rows that are packed together
EVENTS, LETTERS = "events", "letters"  # PySpark renames a column that begins with an underscore
PACKED = f"{SHARD} int, {EVENTS} binary, {LETTERS} array<string>"

Batches = Iterator[pa.RecordBatch]


def packed(events: DataFrame, task: Task) -> DataFrame:
    """Rows of :data:`PACKED`: a shard, events of it as :func:`unpack` reads them, and what is wrong with other rows."""
    return events.mapInArrow(packer(packed_columns(events.schema, task)), PACKED)


def packed_columns(schema: T.StructType, task: Task) -> pa.Schema:
    """What is packed of an event: key, order and code."""
    return to_arrow_schema(T.StructType([schema[name] for name in (*task.by, *task.order, CODE)]))


def packer(columns: pa.Schema) -> Callable[[Batches], Batches]:
    """What runs where events are read."""

    def pack(batches: Batches) -> Batches:
        gathered: list[pa.RecordBatch] = []
        for batch in batches:
            gathered.append(batch)
            if sum(map(len, gathered)) >= GATHERED:
                yield _by_shard(gathered, columns)
                gathered = []
        if any(map(len, gathered)):
            yield _by_shard(gathered, columns)

    return pack


def _by_shard(gathered: list[pa.RecordBatch], columns: pa.Schema) -> pa.RecordBatch:
    """A row for each shard, its events in the order in which they came."""
    table = pa.Table.from_batches(gathered).combine_chunks()
    shards = table[SHARD].to_numpy()
    order = np.argsort(shards, kind="stable")
    shards, table = shards[order], table.take(pa.array(order))
    letters = table[BAD].combine_chunks() if BAD in table.column_names else pa.nulls(len(table), pa.string())
    is_event = np.ones(len(table), np.bool_) if BAD not in table.column_names else letters.is_null().to_numpy(False)
    events = table.select(columns.names).filter(pa.array(is_event)).cast(columns).combine_chunks()
    batch = events.to_batches()[0] if len(events) else pa.RecordBatch.from_pylist([], columns)
    first = np.flatnonzero(np.diff(shards, prepend=-1))
    starts = np.r_[0, np.cumsum(is_event)][np.r_[first, shards.size]].tolist()
    own = [batch.slice(start, end - start).serialize() for start, end in pairwise(starts)]
    wrong = np.r_[first, shards.size] - starts
    return pa.RecordBatch.from_arrays(
        [
            pa.array(shards[first], pa.int32()),
            pa.array([buffer.to_pybytes() for buffer in own], pa.binary()),
            pa.ListArray.from_arrays(pa.array(wrong, pa.int32()), letters.drop_null()),
        ],
        names=[SHARD, EVENTS, LETTERS],
    )


def unpack(rows: list[bytes], columns: pa.Schema) -> pa.Table:
    """The events of packed rows."""
    batches: list[Any] = [pa.ipc.read_record_batch(pa.py_buffer(row), columns) for row in rows]
    return pa.Table.from_batches(batches, columns).combine_chunks()

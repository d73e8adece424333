"""Packing of events on the way to their shards, many rows as one.

Spark moves, sorts and groups rows one at a time. So the events of a micro-batch are gathered by shard as they are
read, as columns. One row per shard, instead of one per event, passes through the exchange and into the shard's worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fourrates.engines.spark.coding import Coder
from fourrates.engines.spark.events import SHARD, TIMES, Task
from fourrates.engines.spark.shard import CODE, TIME, VERSION

GATHERED = 500_000  # rows that are packed together
EVENTS, LETTERS = "events", "letters"  # PySpark renames a column that begins with an underscore
PACKED = f"{SHARD} int, {EVENTS} binary, {LETTERS} array<string>"

Batches = Iterator[pa.RecordBatch]


def packed(events: DataFrame, task: Task) -> DataFrame:
    """Rows of :data:`PACKED`, with a shard, events for :func:`unpack`, and reasons for rejected rows."""
    return events.mapInArrow(packer(task, packed_columns(events.schema, task)), PACKED)


def packed_columns(schema: T.StructType, task: Task) -> pa.Schema:
    keys = to_arrow_schema(T.StructType([schema[name] for name in task.by]))
    order = [pa.timestamp("us") if isinstance(schema[name].dataType, TIMES) else pa.int64() for name in task.order]
    code = pa.from_numpy_dtype(np.min_scalar_type(task.classes**2 - 1))
    own = [(f"key{i}", key.type) for i, key in enumerate(keys)]
    versions = [(VERSION, pa.string()) for _ in task.versions]
    return pa.schema([*own, *[(TIME, kind) for kind in order], *versions, (CODE, code)])


def packer(task: Task, columns: pa.Schema) -> Callable[[Batches], Batches]:

    def pack(batches: Batches) -> Batches:
        coder = Coder(task)
        gathered: list[pa.RecordBatch] = []
        for batch in batches:
            gathered.append(batch)
            if sum(map(len, gathered)) >= GATHERED:
                yield _by_shard(gathered, task, columns, coder)
                gathered = []
        if any(map(len, gathered)):
            yield _by_shard(gathered, task, columns, coder)

    return pack


def _by_shard(gathered: list[pa.RecordBatch], task: Task, columns: pa.Schema, coder: Coder) -> pa.RecordBatch:
    """A row for each shard, its events in their original order."""
    rows = pa.Table.from_batches(gathered).combine_chunks()
    codes, letters = coder.read(rows)
    shards = rows[SHARD].to_numpy()
    order = np.argsort(shards.astype(np.min_scalar_type(shards.max())), kind="stable")
    events = order[codes[order] >= 0]
    taken = rows.select([*task.keys]).take(pa.array(events)).append_column(CODE, pa.array(codes[events]))
    cast = taken.rename_columns(columns.names).cast(columns)
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in cast], schema=columns)
    present = np.unique(shards)
    ends = np.searchsorted(shards[events], present, "right").tolist()
    starts = [0, *ends[:-1]]
    wrong: dict[int, list[str]] = {shard: [] for shard in present.tolist()}
    for row, letter in letters:
        wrong[int(shards[row])].append(letter)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(present, pa.int32()),
            pa.array([batch.slice(i, j - i).serialize().to_pybytes() for i, j in zip(starts, ends, strict=True)]),
            pa.array(wrong.values(), pa.list_(pa.string())),
        ],
        names=[SHARD, EVENTS, LETTERS],
    )


def unpack(rows: list[bytes], columns: pa.Schema) -> pa.Table:
    batches: list[Any] = [pa.ipc.read_record_batch(pa.py_buffer(row), columns) for row in rows]
    return pa.Table.from_batches(batches, columns).combine_chunks()

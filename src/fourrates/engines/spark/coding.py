"""Rows to events, with a code for each pair of labels and a reason for each rejected row.

Spark writes a column for Python value by value. A column of reasons, though nearly always null, would cost more than
all labels. So rows arrive unchecked, and problems are found here, a column at a time.

Spark also moves, sorts and groups rows one at a time. So the events of a micro-batch are packed by shard as they are
read, as columns. One row per shard, instead of one per event, passes through the exchange and into the shard's worker.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fourrates.engines.spark.events import CODE, PRED, SHARD, TIME, TIMES, TRUTH, VERSION, Task
from fourrates.events.batch import Batch, Table
from fourrates.events.columns import arrow_moments, checked_column, listed_values
from fourrates.events.door import Columns, Door, check_keys, missing_problem
from fourrates.events.labels import LabelEncoder
from fourrates.events.rows import UNLABELLED, BadRows, InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.int32]
    Mask = npt.NDArray[np.bool_]

GATHERED = 500_000  # rows that are packed together
EVENTS, LETTERS = "events", "letters"  # PySpark renames a column that begins with an underscore
PACKED = f"{SHARD} int, {EVENTS} binary, {LETTERS} array<string>"

Batches = Iterator[pa.RecordBatch]


class Coder:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._door = Door(LabelEncoder(task.detector.labels), Columns(task.truth, task.pred), bad="keep")

    def read(self, rows: pa.Table | pa.RecordBatch) -> tuple[Codes, list[tuple[int, str]]]:
        """The code of each row that `prepare` selected, -1 if it is no event, and letters about those by row."""
        task = self._task
        labels = {task.truth: rows.column(TRUTH), task.pred: rows.column(PRED)}
        reading = self._door.reading(Table(labels, "", np.arange(len(rows)), sound=True))
        assert reading.truths is not None
        assert reading.preds is not None
        for name in (*task.by, *task.versions):
            column = rows.column(name)
            if column.null_count or not pa.types.is_integer(column.type):
                check_keys(checked_column(column, name, validate=False), name, reading.bad)
        for name in task.order:
            reading.bad.add(_missing(rows.column(name)), name, "missing", partial(missing_problem, name))
        codes = reading.truths.astype(np.int32) * task.classes + reading.preds
        if not reading.bad.counts:
            return codes, []
        codes[reading.bad.mask] = -1
        return codes, [*self._letters(rows, reading.bad)]

    def _letters(self, rows: Any, bad: BadRows) -> Iterator[tuple[int, str]]:
        """A letter about each bad row, and one about all that are unlabelled, by row."""
        task = self._task
        if count := bad.counts[UNLABELLED]:
            reason = f"{count:,} rows without a value in column {task.truth!r}"
            yield int(bad.mask.argmax()), letter(reason, None, "unlabelled", count)
        places = bad.rejected_rows()
        if task.bad == "skip" or not places.size:
            return
        wrong = rows.take(pa.array(places))
        own = {name: name for name in task.keys} | {task.truth: TRUTH, task.pred: PRED}
        columns = {name: listed(wrong.column(column)) for name, column in own.items()}
        for place, values in zip(places.tolist(), zip(*columns.values(), strict=True), strict=True):
            row, reason = dict(zip(columns, values, strict=True)), bad[place].problem
            if task.bad == "reject":
                raise InputError(f"{reason}: {json.dumps(row)}")
            yield place, letter(reason, row)


def events_of(codes: Any, classes: int, times: npt.NDArray[np.datetime64] | None, versions: Any = None) -> Batch:
    """Codes as a watch takes them, with a column of versions, if any; the row of each is its place."""
    truths, preds = (part.astype(np.uint16) for part in np.divmod(codes, classes))
    events = Batch(truths, preds, "", np.arange(codes.size), times)
    if versions is None:
        return events
    known = versions.dictionary_encode()
    of, names = known.indices.to_numpy().astype(np.int64), known.dictionary.to_pylist()
    return replace(events, versions=of, version_names=names)


def moments(column: Any) -> npt.NDArray[np.datetime64] | None:
    is_time = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    return arrow_moments(column).astype("M8[us]", copy=False) if is_time else None


def letter(reason: str, row: dict[str, Any] | None, kind: str = "rejected", rows: int = 1) -> str:
    """The reason for a row and the row, for :class:`~fourrates.engines.spark.results.Rows`."""
    found = {"kind": kind, "reason": reason, "rows": rows}
    return json.dumps(found if row is None else found | {"row": json.dumps(row)})


def listed(column: Any) -> list[Any]:
    return [shown(value) for value in listed_values(checked_column(column, "", validate=False))]


def _missing(column: Any) -> Mask | None:
    is_float = pa.types.is_floating(column.type)
    if not column.null_count and not is_float:
        return None
    found: Mask = pc.is_null(column, nan_is_null=is_float).to_numpy(zero_copy_only=False)
    return found


def shown(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str | int | None) else str(value)


# Packing ----------------------------------------------------------------------------------------------------


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

"""Structured Streaming: a watch for each shard of keys in the state store, its sink, and the way back to a bank."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from fourrates.bank import Bank
from fourrates.engines.spark.coding import EVENTS, LETTERS, letter, listed, packed, packed_columns, shown, unpack
from fourrates.engines.spark.events import CLOCK, CODE, SHARD, TIME, Task, prepare, shard_of
from fourrates.engines.spark.results import Rows, result_schema
from fourrates.engines.spark.shard import VERSIONED, Head, Shard, ShardState, key_of, rebuilt
from fourrates.lazy import install

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

SHARDS = 32
COLUMN = "value binary"  # of each variable: Spark makes an encoder of it for every task, longer with more columns
DELAY = "spark.watermarkDelayMs"  # Spark's note about a column with a watermark
BEFORE_ALL = int(np.iinfo(np.int64).min)
NEVER_LATE = datetime(2200, 1, 1, tzinfo=UTC)  # pandas counts nanoseconds, up to 2262


def find_in_stream(frame: DataFrame, task: Task, shards: int | None, watermark: str | bool | None) -> DataFrame:
    if importlib.util.find_spec("google") is None or importlib.util.find_spec("google.protobuf") is None:
        raise ImportError(f"a stream's state in Python needs protobuf: {install('spark')}")
    count = SHARDS if shards is None else shards
    schema = result_schema(task, frame.schema)
    waits = bool(watermark)
    if watermark:
        frame = _with_watermark(frame, task, watermark)
    events = prepare(frame, task, [shard_of(task, count)])
    rows = packed(events, task)
    if waits:
        # Spark drops late rows silently if it sees their time. So it sees a time that is never late, and the real
        # watermark; late rows are rejected by name.
        note = {DELAY: frame.schema[task.order[0]].metadata[DELAY]}
        rows = rows.select("*", F.lit(NEVER_LATE).alias(CLOCK, metadata=note))
    watcher = Watcher(task, schema, packed_columns(events.schema, task), count, waits)
    return rows.groupBy(SHARD).transformWithStateInPandas(watcher, schema, "append", "eventTime" if waits else "none")


def _with_watermark(frame: DataFrame, task: Task, watermark: str | bool) -> DataFrame:
    if not task.order or not isinstance(frame.schema[task.order[0]].dataType, T.TimestampType):
        raise ValueError("watermark: give order= a column of timestamps")
    name = task.order[0]
    if isinstance(watermark, str):
        return frame.withWatermark(name, watermark)
    if DELAY not in frame.schema[name].metadata:
        raise ValueError(f"watermark: column {name!r} has none; give the time to wait, such as watermark='10 minutes'")
    return frame


class Watcher(StatefulProcessor):  # type: ignore[misc]
    """Runs for each shard that a micro-batch touches, or whose events the watermark has passed."""

    def __init__(self, task: Task, schema: T.StructType, columns: pa.Schema, shards: int, waits: bool) -> None:
        self._task, self._schema, self._columns = task, schema, columns
        self._shards, self._waits = shards, waits
        self._by = [f"{name} {field.type}" for name, field in zip(task.by, columns, strict=False)]
        self._by += [f"{VERSIONED}{name}" for name in task.versions]
        self._column = T.StructType.fromDDL(COLUMN)  # parsed once

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._kept = ShardState(
            head=handle.getValueState("head", self._column),
            watch=handle.getValueState("watch", self._column),
            log=handle.getListState("log", self._column),
        )

    def handleInputRows(self, key: Any, rows: Iterator[pandas.DataFrame], timerValues: Any) -> Iterator[Any]:
        frames = list(rows)
        found = Rows(self._task)
        found.reject(letter for frame in frames for letters in frame[LETTERS] for letter in letters)
        table = unpack([bytes(events) for frame in frames for events in frame[EVENTS]], self._columns)
        return self._step(table, timerValues, found)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        return self._step(self._columns.empty_table(), timerValues, Rows(self._task))

    def close(self) -> None:
        """Nothing is left open."""

    def _step(self, events: pa.Table, timers: Any, rows: Rows) -> Iterator[Any]:
        task = self._task
        shard, wake = Shard.restore(self._kept, task.detector, self._shards, self._by), -1
        if self._waits:
            if shard.head.wake >= 0:
                self._handle.deleteTimer(shard.head.wake)
            reached = timers.getCurrentWatermarkInMs()
            watermark = 1000 * reached or BEFORE_ALL  # Spark's is 0 until it has seen a time
            found, late = shard.pass_watermark(events, watermark)
            if task.bad == "keep":
                rows.reject(_late(late, task, watermark))
            if shard.waiting is not None and shard.waiting.num_rows:
                first = pc.min(shard.waiting[TIME]).value
                wake = max(first // 1000, reached) + 1
                self._handle.registerTimer(wake)
        else:
            found = shard.take(events)
        for own, finding in found:
            rows.add(own, finding)
        shard.save(self._kept, wake)
        if rows:
            from pandas import ArrowDtype

            yield rows.batch(self._schema).to_pandas(types_mapper=ArrowDtype)


def _late(events: pa.Table, task: Task, watermark: int) -> Iterator[str]:
    """The reasons for events after the watermark, with the events."""
    labels = [*map(shown, task.detector.labels.values)]
    moments = listed(pc.assume_timezone(events[TIME].combine_chunks(), "UTC"))
    keys = [listed(column.combine_chunks()) for column in events.columns[: len(task.by)]]
    for i, moment in enumerate(moments):
        truth, pred = divmod(events[CODE][i].as_py(), task.classes)
        row = {name: key[i] for name, key in zip(task.by, keys, strict=True)}
        row |= {task.order[0]: moment, task.truth: labels[truth], task.pred: labels[pred]}
        behind = (watermark - events[TIME][i].value) / 1e6
        yield letter(f"late: {moment} in {task.order[0]!r} is {behind:g} s behind the watermark", row)


def write_once(path: str, format: str = "parquet") -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that writes each micro-batch to its own folder, replacing earlier attempts.

    Spark repeats the last micro-batch after a crash, with the same number and events. Written to
    ``path/query=<id>/batch=<number>``, it replaces the first attempt, so nothing is lost or duplicated. The id is that
    of the query's checkpoint, so a query that begins from the start writes elsewhere.

    Parameters
    ----------
    path : str
        A folder, on any file system that Spark writes to.
    format : str
        As Spark names it.

    Examples
    --------
    >>> from fourrates.engines import spark as engine
    >>> drifts.writeStream.foreachBatch(engine.write_once("drifts")).start()  # doctest: +SKIP
    >>> session.read.parquet("drifts")  # doctest: +SKIP
    """

    def write(found: DataFrame, batch: int) -> None:
        query = found.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        found.write.mode("overwrite").format(format).save(f"{path}/query={query}/batch={batch:09d}")

    return write


def read_bank(session: SparkSession, checkpoint: str, batch: int | None = None) -> Bank:
    """Read the streams of a streaming query from its checkpoint, as one bank.

    Events that wait for the watermark are not in it.

    Parameters
    ----------
    session : SparkSession
        It reads the state.
    checkpoint : str
        The query's ``checkpointLocation``.
    batch : int, optional
        The state after this micro-batch; after the last if not given.

    Examples
    --------
    >>> from fourrates.engines import spark as engine
    >>> bank = engine.read_bank(session, "checkpoint")  # doctest: +SKIP
    >>> bank["Oslo"].rates["tpr"].estimate  # doctest: +SKIP
    0.39
    """
    heads, watches, logs = (_variable(session, checkpoint, batch, name) for name in ("head", "watch", "log"))
    if not heads:
        raise ValueError(f"{checkpoint}: no shard has had an event yet")
    found: Bank | None = None
    for shard, saved in sorted(heads.items()):
        head = Head.from_bytes(bytes(saved[0]))
        watch = rebuilt(head, partial(watches.get, shard), partial(logs.get, shard, ()))
        if found is None:
            found = Bank(watch.detector)  # type: ignore[arg-type]
        names, bank = watch.segments.names, watch.segments.bank
        if bank is not None:  # which begins with the first event
            found.merge(bank.renamed([key_of(str(names[number]), head.by) for number in bank]))  # type: ignore[call-overload]
    assert found is not None
    return found


def _variable(session: SparkSession, checkpoint: str, batch: int | None, name: str) -> dict[int, Any]:
    reader = session.read.format("statestore").option("stateVarName", name).option("flattenCollectionTypes", False)
    if batch is not None:
        reader = reader.option("batchId", batch)
    found = reader.load(checkpoint)
    value = "list_value" if "list_value" in found.columns else "value"
    return dict(found.select("key.__shard", value).collect())

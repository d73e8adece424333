"""Structured Streaming: a bank for each shard of keys in the state store, rewritten when a micro-batch touches it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from fourrates.engines.spark.events import BAD, CLOCK, CODE, SHARD, Task, prepare, shard_of
from fourrates.engines.spark.results import Rows, result_schema
from fourrates.engines.spark.shard import STATE, Events, Found, Shard

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    Step = Callable[[tuple[Any, ...], Iterator[pandas.DataFrame], GroupState], Iterator[pandas.DataFrame]]

SHARDS = 64
DELAY = "spark.watermarkDelayMs"  # what Spark notes of a column with a watermark
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEFORE_ALL = int(np.iinfo(np.int64).min)
NEVER_LATE = datetime(2200, 1, 1, tzinfo=UTC)  # pandas counts nanoseconds, up to 2262


def find_in_stream(frame: DataFrame, task: Task, shards: int | None, watermark: str | bool | None) -> DataFrame:
    """The drifts of a streaming DataFrame."""
    count = SHARDS if shards is None else shards
    schema = result_schema(task, frame.schema)
    is_time = bool(task.order) and isinstance(frame.schema[task.order[0]].dataType, T.TimestampType)
    extra = [shard_of(task, count)]
    if watermark is not None and watermark is not False:
        frame = _with_watermark(frame, task, watermark, is_time)
        # Spark drops late rows in silence where it sees their time. It sees a time that is never late, and the
        # watermark of the real one: late rows are named.
        note = {DELAY: frame.schema[task.order[0]].metadata[DELAY]}
        extra.append(F.lit(NEVER_LATE).alias(CLOCK, metadata=note))
    events = prepare(frame, task, extra)
    if is_time:
        events = events.withColumn(task.order[0], F.unix_micros(events[task.order[0]]))
    timeout = GroupStateTimeout.EventTimeTimeout if len(extra) > 1 else GroupStateTimeout.NoTimeout
    step = stepper(task, schema, events.schema, count, is_time, waits=len(extra) > 1)
    return events.groupBy(SHARD).applyInPandasWithState(step, schema, STATE, "append", timeout)


def _with_watermark(frame: DataFrame, task: Task, watermark: str | bool, is_time: bool) -> DataFrame:
    if not is_time:
        raise ValueError("watermark: give order= a column of timestamps")
    name = task.order[0]
    if isinstance(watermark, str):
        return frame.withWatermark(name, watermark)
    if DELAY not in frame.schema[name].metadata:
        raise ValueError(f"watermark: column {name!r} has none; say how long to wait, such as watermark='10 minutes'")
    return frame


def stepper(task: Task, schema: T.StructType, given: T.StructType, shards: int, is_time: bool, waits: bool) -> Step:
    """What runs for each shard that a micro-batch touches, or whose events the watermark has passed."""
    names = [*task.by, *task.order, CODE, *([BAD] if task.bad == "keep" else [])]

    def step(_: tuple[Any, ...], frames: Iterator[pandas.DataFrame], state: GroupState) -> Iterator[pandas.DataFrame]:
        from pandas import ArrowDtype

        saved = state.getOption
        shard = Shard.begin(task.detector, shards) if saved is None else Shard.restore(saved, task.detector, shards)
        rows = Rows(task)
        table = _table([] if state.hasTimedOut else list(frames), names, given)
        if BAD in names:
            letters = table[BAD]
            rows.reject(letters.drop_null().to_pylist())
            table = table.filter(letters.is_null())
        events = _events(table, task)
        if waits:
            reached = 1000 * state.getCurrentWatermarkMs()
            watermark = reached or BEFORE_ALL  # Spark's is 0 until it has seen a time
            found, late = shard.pass_watermark(events, watermark, task.classes)
            if task.bad == "keep":
                rows.reject(_late(late, task, watermark))
            if shard.waiting is not None and shard.waiting.codes.size:
                state.setTimeoutTimestamp(max(int(shard.waiting.times.min()), reached) // 1000 + 1)
        else:
            found = shard.take(events, task.classes)
        for one in found:
            rows.add(_own(one, task, is_time), one.what)
        state.update(shard.state())
        if rows:
            yield rows.batch(schema).to_pandas(types_mapper=ArrowDtype)

    return step


def _table(frames: list[pandas.DataFrame], names: list[str], given: T.StructType) -> pa.Table:
    schema = to_arrow_schema(T.StructType([given[name] for name in names]))
    tables = [pa.Table.from_pandas(frame[names], schema, preserve_index=False) for frame in frames]
    return pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()


def _events(table: pa.Table, task: Task) -> Events:
    keys = [table[name].combine_chunks() for name in task.by]
    times = table[task.order[0]].to_numpy().astype(np.int64) if task.order else np.empty(0, np.int64)
    return Events(keys, times, table[CODE].to_numpy().astype(np.int64))


def _own(one: Found, task: Task, is_time: bool) -> list[Any]:
    """The values of the key and of the order, as the result has them."""
    if not task.order or one.time is None:
        return [*one.key]
    return [*one.key, EPOCH + timedelta(microseconds=one.time) if is_time else one.time]


def _late(events: Events, task: Task, watermark: int) -> Iterator[str]:
    """What is wrong with events that came after the watermark, and what they were."""
    labels = task.detector.labels.values
    for i, time in enumerate(events.times.tolist()):
        moment = (EPOCH + timedelta(microseconds=time)).isoformat()
        behind = (watermark - time) / 1e6
        truth, guess = divmod(int(events.codes[i]), task.classes)
        row = {name: key[i].as_py() for name, key in zip(task.by, events.keys, strict=True)}
        row |= {task.order[0]: moment, task.truth: labels[truth], task.pred: labels[guess]}
        reason = f"late: {moment} in {task.order[0]!r} is {behind:g} s behind the watermark"
        yield json.dumps({"reason": reason, "row": json.dumps(row, default=repr)})

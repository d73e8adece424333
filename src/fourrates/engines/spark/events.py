"""A task on a DataFrame of events with its columns, its detector, and its treatment of bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fourrates.detectors.base import RecordDetector
from fourrates.events.rows import Bad, check_bad

INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FLOATS = (T.FloatType, T.DoubleType)
TIMES = (T.TimestampType, T.TimestampNTZType)
READ = (*INTEGERS, *FLOATS, *TIMES, T.StringType, T.BooleanType, T.DecimalType, T.DateType)  # as labels and keys
SAVED = (*INTEGERS, T.StringType)  # keys that a saved bank can hold as they are
TRUTH, PRED, SHARD, CLOCK = "__truth", "__pred", "__shard", "__clock"
CODE, TIME, VERSION = "code", "time", "version"  # of packed events, besides their keys


@dataclass(frozen=True)
class Task:
    detector: RecordDetector
    truth: str
    pred: str
    by: tuple[str, ...]  # columns that distinguish streams; none for one stream
    order: tuple[str, ...]  # columns that put the events of a stream in order
    bad: Bad
    version: str | None = None  # the column of the model version that predicted

    @property
    def versions(self) -> tuple[str, ...]:
        return () if self.version is None else (self.version,)

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.by, *self.order, *self.versions)

    @property
    def classes(self) -> int:
        return len(self.detector.labels.values)


def check(task: Task, schema: T.StructType, streaming: bool) -> None:
    """Raise an error that names any column of a schema that does not fit a task."""
    check_bad(task.bad)
    roles = {"truth": [task.truth], "pred": [task.pred], "by": task.by, "order": task.order, "version": task.versions}
    for role, names in roles.items():
        for name in names:
            if name not in schema.names:
                raise ValueError(f"{role}: there is no column {name!r}; there are {', '.join(schema.names)}")
    used = [task.truth, task.pred, *task.keys]
    if twice := sorted({name for name in used if used.count(name) > 1} - {task.truth, task.pred}):
        raise ValueError(f"column {twice[0]!r} is named twice")
    for role, name in (("truth", task.truth), ("pred", task.pred)):
        if not isinstance(kind := schema[name].dataType, READ):
            raise ValueError(f"{role}: column {name!r} is {kind.simpleString()}, which cannot be a label: cast it")
    for name in task.by:
        kind = schema[name].dataType
        if not isinstance(kind, SAVED if streaming else READ):
            raise ValueError(f"by: column {name!r} is {kind.simpleString()}, which cannot be a key: cast it to string")
    for name in task.versions:
        if not isinstance(kind := schema[name].dataType, SAVED):
            raise ValueError(f"version: column {name!r} is {kind.simpleString()}: cast it to string")
    if streaming and len(task.order) > 1:
        raise ValueError(f"order: a stream is put in order by one column, not by {task.order}")
    if streaming and task.order and not isinstance(schema[task.order[0]].dataType, (*INTEGERS, *TIMES)):
        raise ValueError(f"order: column {task.order[0]!r} is neither a timestamp nor an integer")


def prepare(frame: DataFrame, task: Task, extra: Sequence[Column] = ()) -> DataFrame:
    """The columns to read of a DataFrame, which are keys, order, `extra` and labels.

    Skipped rows without key or order are dropped here, since an exchange would put them all in one place.
    """
    if task.bad == "skip":
        for name in task.keys:
            frame = frame.where(_is_there(frame, name))
    columns = [F.col(_quoted(name)) for name in (*task.by, *task.order)]
    columns += [F.col(_quoted(name)).cast("string").alias(name) for name in task.versions]
    labels = [F.col(_quoted(name)).alias(own) for name, own in ((task.truth, TRUTH), (task.pred, PRED))]
    return frame.select(*columns, *extra, *labels)


def _is_there(frame: DataFrame, name: str) -> Column:
    value = F.col(_quoted(name))
    is_float = isinstance(frame.schema[name].dataType, FLOATS)
    return value.isNotNull() & ~F.isnan(value) if is_float else value.isNotNull()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def shard_of(task: Task, shards: int) -> Column:
    keys: list[Any] = [F.col(_quoted(name)) for name in task.by] or [F.lit(0)]
    return F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int").alias(SHARD)

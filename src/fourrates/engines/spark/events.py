"""What is asked of a DataFrame of events: its columns, with which detector, and what becomes of bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fourrates.detectors.base import RecordDetector
from fourrates.labels import Labels

Bad = Literal["keep", "skip", "raise"]
INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FLOATS = (T.FloatType, T.DoubleType)
TIMES = (T.TimestampType, T.TimestampNTZType)
SAVED = (*INTEGERS, T.StringType, T.BinaryType)  # keys that a saved bank can hold as they are
TRUTH, GUESS, SHARD, CLOCK = "__truth", "__guess", "__shard", "__clock"


@dataclass(frozen=True)
class Task:
    """What to do: which columns, with which detector, and what becomes of bad rows.

    Attributes
    ----------
    detector : FourRates or LFR
        The settings of every stream.
    truth, pred : str
        Columns of labels.
    by : tuple of str
        Columns that tell streams apart; none for one stream.
    order : tuple of str
        Columns that put the events of a stream in order.
    bad : {"keep", "skip", "raise"}
        What becomes of rows that are no events.
    """

    detector: RecordDetector
    truth: str
    pred: str
    by: tuple[str, ...]
    order: tuple[str, ...]
    bad: Bad

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return len(self.detector.labels.values)


def check(task: Task, schema: T.StructType, streaming: bool) -> None:
    """Raise an error that names what of a schema does not fit a task."""
    if task.bad not in get_args(Bad):
        raise ValueError(f"bad {task.bad!r} is not one of {get_args(Bad)}")
    for role, names in (("truth", [task.truth]), ("pred", [task.pred]), ("by", task.by), ("order", task.order)):
        for name in names:
            if name not in schema.names:
                raise ValueError(f"{role}: there is no column {name!r}; there are {', '.join(schema.names)}")
    used = [task.truth, task.pred, *task.by, *task.order]
    if twice := sorted({name for name in used if used.count(name) > 1} - {task.truth, task.pred}):
        raise ValueError(f"column {twice[0]!r} is asked for twice")
    labels = task.detector.labels
    for role, name in (("truth", task.truth), ("pred", task.pred)):
        if not _comparable(schema[name].dataType, labels):
            raise ValueError(
                f"{role}: column {name!r} is {schema[name].dataType.simpleString()}, which the labels "
                f"{labels.values!r} are not: give labels=[...], or cast the column"
            )
    for name in task.by:
        kind = schema[name].dataType
        if isinstance(kind, T.MapType) or (streaming and not isinstance(kind, SAVED)):
            raise ValueError(f"by: column {name!r} is {kind.simpleString()}, which cannot be a key: cast it to string")
    if streaming and len(task.order) > 1:
        raise ValueError(f"order: a stream is put in order by one column, not by {task.order}")
    if streaming and task.order and not isinstance(schema[task.order[0]].dataType, (*INTEGERS, *TIMES)):
        raise ValueError(f"order: column {task.order[0]!r} is neither a timestamp nor an integer")


def _comparable(kind: T.DataType, labels: Labels) -> bool:
    if isinstance(kind, T.StringType):
        return all(isinstance(label, str) for label in labels.values)
    if isinstance(kind, (*INTEGERS, *FLOATS, T.BooleanType, T.DecimalType)):
        return all(isinstance(label, int | float) for label in labels.values)
    return False


def prepare(frame: DataFrame, task: Task, extra: Sequence[Column] = ()) -> DataFrame:
    """What is read of a DataFrame: keys, order, `extra` and labels.

    Rows that are not to be kept and have no key or order go here: in an exchange they would all meet in one place.
    """
    if task.bad == "skip":
        for name in (*task.by, *task.order):
            frame = frame.where(_is_there(frame, name))
    columns = [F.col(_quoted(name)) for name in (*task.by, *task.order)]
    labels = [F.col(_quoted(name)).alias(own) for name, own in ((task.truth, TRUTH), (task.pred, GUESS))]
    return frame.select(*columns, *extra, *labels)


def _is_there(frame: DataFrame, name: str) -> Column:
    """Whether a column has a value."""
    value = F.col(_quoted(name))
    is_float = isinstance(frame.schema[name].dataType, FLOATS)
    return value.isNotNull() & ~F.isnan(value) if is_float else value.isNotNull()


def _quoted(name: str) -> str:
    """A column's name as an expression, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def shard_of(task: Task, shards: int) -> Column:
    """The shard of a row, by its key."""
    keys: list[Any] = [F.col(_quoted(name)) for name in task.by] or [F.lit(0)]
    return F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int").alias(SHARD)

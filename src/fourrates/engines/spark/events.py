"""A DataFrame of events as the detector takes it: keys, an order, and a code for each pair of labels.

What cannot be an event (no key, no label, a label that is none of the classes) is named here, in Spark's own
expressions: nothing of it reaches Python but the sentence that says what is wrong.
"""

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
CODE, BAD, SHARD, CLOCK = "__code", "__bad", "__shard", "__clock"
CHAIN = 32  # labels up to which a chain of comparisons is as quick as a map


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
    """Keys, order, `extra` and codes of the events; with bad rows kept, a column of what is wrong with each."""
    schema, labels = frame.schema, task.detector.labels
    truth = _coded(F.col(_quoted(task.truth)), schema[task.truth].dataType, labels)
    pred = _coded(F.col(_quoted(task.pred)), schema[task.pred].dataType, labels)
    code = truth * F.lit(task.classes) + pred
    wrong = _wrong(task, schema, truth, pred)
    columns = [F.col(_quoted(name)) for name in (*task.by, *task.order)]
    if task.bad == "raise":
        problem = F.concat(wrong, F.lit(": "), _row(task))
        code = F.when(wrong.isNotNull(), F.raise_error(problem).cast("int")).otherwise(code)
    found = frame.select(*columns, *extra, code.cast("int").alias(CODE), *_letter(task, wrong))
    if task.bad == "skip":
        found = frame.where(wrong.isNull()).select(*columns, *extra, code.cast("int").alias(CODE))
    return found


def _letter(task: Task, wrong: Column) -> list[Column]:
    """What is wrong with a row, and the row, as JSON; null for an event."""
    if task.bad != "keep":
        return []
    letter = F.to_json(F.struct(wrong.alias("reason"), _row(task).alias("row")))
    return [F.when(wrong.isNotNull(), letter).alias(BAD)]


def _row(task: Task) -> Column:
    """The columns that are read, as JSON."""
    used = dict.fromkeys((*task.by, *task.order, task.truth, task.pred))
    return F.to_json(F.struct(*[F.col(_quoted(name)) for name in used]), {"ignoreNullFields": "false"})


def _coded(column: Column, kind: T.DataType, labels: Labels) -> Column:
    """The code of a label; null where it is none."""
    values = [int(value) if isinstance(value, bool) else value for value in labels.values]
    if isinstance(kind, T.BooleanType):
        column, kind = column.cast("int"), T.IntegerType()
    if isinstance(kind, INTEGERS) and values == list(range(len(values))):
        return F.when((column >= 0) & (column < len(values)), column.cast("int"))
    if len(values) <= CHAIN:
        chain = F.when(column == F.lit(values[0]), F.lit(0))
        for code, value in enumerate(values[1:], 1):
            chain = chain.when(column == F.lit(value), F.lit(code))
        return chain
    pairs = [F.lit(part) for code, value in enumerate(values) for part in (value, code)]
    return F.try_element_at(F.create_map(*pairs), column)


def _wrong(task: Task, schema: T.StructType, truth: Column, pred: Column) -> Column:
    """What is wrong with a row, in a sentence; null for an event."""
    labels = task.detector.labels.values
    shown = repr(labels) if len(labels) <= 20 else f"the {len(labels)} labels"
    reason = F.lit(None).cast("string")
    for role, name, code in (("y_pred", task.pred, pred), ("y_true", task.truth, truth)):
        column = F.col(_quoted(name))
        quote = "'" if isinstance(schema[name].dataType, T.StringType) else ""
        unknown = F.concat(
            F.lit(f"{role}: label {quote}"), column.cast("string"), F.lit(f"{quote} in {name!r} is not one of {shown}")
        )
        reason = F.when(code.isNull(), F.coalesce(unknown, F.lit(f"{role}: no label in {name!r}"))).otherwise(reason)
    for role, names in (("order", task.order), ("key", task.by)):
        for name in names:
            column = F.col(_quoted(name))
            missing = column.isNull()
            if isinstance(schema[name].dataType, FLOATS):
                missing |= F.isnan(column)
            reason = F.when(missing, F.lit(f"no {role} in {name!r}")).otherwise(reason)
    return reason


def _quoted(name: str) -> str:
    """A column's name as an expression, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def shard_of(task: Task, shards: int) -> Column:
    """The shard of a row, by its key."""
    keys: list[Any] = [F.col(_quoted(name)) for name in task.by] or [F.lit(0)]
    return F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int").alias(SHARD)

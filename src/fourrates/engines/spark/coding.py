"""Rows to events: a code for each pair of labels, and what is wrong with rows that are none.

Spark writes a column for Python value by value, and a sentence for each row, though nearly always null, costs more than
all labels. So rows come as they are, and what is wrong with them is looked for here, a column at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from fourrates.engines.spark.events import GUESS, TRUTH, Task
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.int32]
    Mask = npt.NDArray[np.bool_]


def coded(rows: pa.Table | pa.RecordBatch, task: Task) -> tuple[Codes, dict[int, str]]:
    """The code of each row, -1 where it is no event, and what is wrong with those, if they are kept.

    Parameters
    ----------
    rows : Arrow table or batch
        What :func:`~fourrates.engines.spark.events.prepare` selects.
    task : Task
        Its columns, its labels and what becomes of bad rows: with ``"raise"`` the first is a ValueError.
    """
    truths, guesses = (_codes(rows.column(name), task.detector.labels) for name in (TRUTH, GUESS))
    codes = truths * np.int32(task.classes) + guesses
    codes[(truths < 0) | (guesses < 0)] = -1
    gone: dict[str, Mask] = {}  # by what is wrong
    for role, names in (("key", task.by), ("order", task.order)):
        for name in names:
            if (missing := _missing(rows.column(name))) is not None:
                gone[f"no {role} in {name!r}"] = missing
                codes[missing] = -1
    if task.bad == "skip" or (codes >= 0).all():
        return codes, {}
    bad = np.flatnonzero(codes < 0)
    reasons = {what: missing[bad] for what, missing in gone.items()}
    return codes, dict(zip(bad.tolist(), _letters(rows.take(pa.array(bad)), task, reasons, truths[bad]), strict=True))


def letter(reason: str, row: dict[str, Any]) -> str:
    """What is wrong with a row, and the row, as :class:`~fourrates.engines.spark.results.Rows` takes it."""
    return json.dumps({"reason": reason, "row": json.dumps(row)})


def listed(column: Any) -> list[Any]:
    """The values of a column as JSON has them; of moments one of which Python has no date for, their numbers."""
    if pa.types.is_timestamp(column.type):  # of a zone that Spark knows, and Arrow may not
        column = column.cast(pa.timestamp(column.type.unit, column.type.tz and "UTC"))
    try:
        return [shown(value) for value in column.to_pylist()]
    except OverflowError:  # after the year 9999
        return [scalar.value for scalar in column]


def _codes(column: Any, labels: Labels) -> Codes:
    """The code of each label, -1 where it is none."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_floating(column.type):
        column = pc.add(column.cast(pa.float64()), 0.0)  # to Arrow -0.0 is another value
    values, held = _held(labels.values, column.type)
    places = pc.fill_null(pc.index_in(column, value_set=values), len(held)).to_numpy()
    found: Codes = np.array([*held, -1], np.int32)[places]
    return found


@lru_cache(maxsize=16)
def _held(labels: tuple[Any, ...], kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """The labels that a column of this type can hold, and their codes; asked for every Arrow batch."""
    held = {}
    for code, label in enumerate(labels):
        try:
            held[code] = pa.scalar(_as_kind(label, kind), kind).as_py()
        except (pa.ArrowException, OverflowError, ValueError):  # too large, or not a number of this type
            continue
    return pa.array(held.values(), kind), [*held]


def _as_kind(label: Any, kind: pa.DataType) -> Any:
    """A label as a column of a type has it; a ValueError if it cannot."""
    if pa.types.is_integer(kind):
        if int(label) != label:
            raise ValueError(f"{label!r} is no integer")
        return int(label)
    if pa.types.is_floating(kind):
        if float(label) != label:
            raise ValueError(f"{label!r} is between two floats")
        return float(label) + 0.0
    if pa.types.is_decimal(kind):  # 0.3 is what people mean by it, not the binary fraction next to it
        return Decimal(label) if isinstance(label, int) else Decimal(repr(float(label)))
    return label


def _missing(column: Any) -> Mask | None:
    """Which values are missing; None if none is."""
    is_float = pa.types.is_floating(column.type)
    if not column.null_count and not is_float:
        return None
    found: Mask = pc.is_null(column, nan_is_null=is_float).to_numpy(zero_copy_only=False)
    return found


def _letters(rows: Any, task: Task, gone: dict[str, Mask], truths: Codes) -> Iterator[str]:
    """What is wrong with each of these rows; a ValueError if that is asked for."""
    columns = {name: listed(rows.column(name)) for name in (*task.by, *task.order)}
    labels = {name: rows.column(own).to_pylist() for name, own in ((task.truth, TRUTH), (task.pred, GUESS))}
    columns |= {name: [*map(shown, values)] for name, values in labels.items()}
    for i, values in enumerate(zip(*columns.values(), strict=True)):
        reason = next((what for what, missing in gone.items() if missing[i]), None)
        if reason is None:
            role, name = ("y_true", task.truth) if truths[i] < 0 else ("y_pred", task.pred)
            reason = _wrong_label(labels[name][i], role, name, task.detector.labels)
        row = dict(zip(columns, values, strict=True))
        if task.bad == "raise":
            raise ValueError(f"{reason}: {json.dumps(row)}")
        yield letter(reason, row)


def _wrong_label(label: Any, role: str, name: str, labels: Labels) -> str:
    if label is None:
        return f"{role}: no label in {name!r}"
    return str(labels.unknown(label, f"{role} in {name!r}"))


def shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str | int | None) else str(value)

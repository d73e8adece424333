"""Rows to events: a code for each pair of labels, and what is wrong with rows that are none.

Spark writes a column for Python value by value, and a sentence for each row, though nearly always null, costs more than
all labels. So rows come as they are, and what is wrong with them is looked for here, a column at a time.
"""

from __future__ import annotations

import json
import math
from datetime import date
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
    for name in (*task.by, *task.order):
        if (gone := _missing(rows.column(name))) is not None:
            codes[gone] = -1
    if task.bad == "skip" or (codes >= 0).all():
        return codes, {}
    return codes, {row: _letter(rows, row, task, truths[row] >= 0) for row in np.flatnonzero(codes < 0).tolist()}


def letter(reason: str, row: dict[str, Any]) -> str:
    """What is wrong with a row, and the row, as :class:`~fourrates.engines.spark.results.Rows` takes it."""
    return json.dumps({"reason": reason, "row": _text(row)})


def _text(row: dict[str, Any]) -> str:
    return json.dumps({name: _shown(value) for name, value in row.items()})


def _codes(column: Any, labels: Labels) -> Codes:
    """The code of each label, -1 where it is none."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
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
            value: Any = int(label) if pa.types.is_integer(kind) else label
            if value == label:
                held[code] = pa.scalar(value, kind).as_py()
        except (pa.ArrowException, OverflowError, ValueError):  # too large, or no number at all
            continue
    return pa.array(held.values(), kind), [*held]


def _missing(column: Any) -> Any:
    """Which values are missing; None if none is."""
    is_float = pa.types.is_floating(column.type)
    if not column.null_count and not is_float:
        return None
    return pc.is_null(column, nan_is_null=is_float).to_numpy(zero_copy_only=False)


def _letter(rows: Any, row: int, task: Task, has_truth: bool) -> str:
    """What is wrong with a row; a ValueError if that is asked for."""
    values = {name: rows.column(name)[row].as_py() for name in (*task.by, *task.order)}
    reason = _reason(values, task)
    values |= {task.truth: rows.column(TRUTH)[row].as_py(), task.pred: rows.column(GUESS)[row].as_py()}
    if reason is None:
        role, name = ("y_pred", task.pred) if has_truth else ("y_true", task.truth)
        unknown = task.detector.labels.unknown(values[name], f"{role} in {name!r}")
        reason = f"{role}: no label in {name!r}" if values[name] is None else str(unknown)
    if task.bad == "raise":
        raise ValueError(f"{reason}: {_text(values)}")
    return letter(reason, values)


def _reason(values: dict[str, Any], task: Task) -> str | None:
    """What is missing that puts an event where it belongs."""
    for role, names in (("key", task.by), ("order", task.order)):
        for name in names:
            if values[name] is None or values[name] != values[name]:
                return f"no {role} in {name!r}"
    return None


def _shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str | int | None) else str(value)

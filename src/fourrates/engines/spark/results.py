"""Result rows for drifts, their later findings, class-mix shifts, and rejected rows."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fourrates.engines.spark.events import Task
from fourrates.findings import Drift, Finding, Shift

FIELDS = {
    "kind": T.StringType(),
    "at": T.LongType(),
    "drift": T.LongType(),
    "closes": T.BooleanType(),
    "since": T.LongType(),
    "started": T.LongType(),
    "started_time": T.TimestampType(),
    "started_first": T.LongType(),
    "started_last": T.LongType(),
    "rate": T.StringType(),
    "direction": T.StringType(),
    "before": T.DoubleType(),
    "before_n": T.LongType(),
    "after": T.DoubleType(),
    "after_n": T.LongType(),
    "evidence": T.DoubleType(),
    "bound": T.DoubleType(),
    "id": T.StringType(),
    "reason": T.StringType(),
    "row": T.StringType(),
    "rows": T.LongType(),
}


def result_schema(task: Task, schema: T.StructType) -> T.StructType:
    """The columns of the result, from the key, the order, and the finding."""
    own = [*task.by, *task.order[:1]]
    if taken := [name for name in [*own, *task.versions] if name in FIELDS]:
        raise ValueError(f"column {taken[0]!r} has the name of a column of the result: rename it")
    given = [T.StructField(name, schema[name].dataType) for name in own]
    given += [T.StructField(name, T.StringType()) for name in task.versions]
    fields = dict(FIELDS)
    if task.order and isinstance(schema[task.order[0]].dataType, T.TimestampNTZType | T.DateType):
        fields["started_time"] = T.TimestampNTZType()
    return T.StructType(given + [T.StructField(name, kind) for name, kind in fields.items()])


class Rows:
    def __init__(self, task: Task) -> None:
        self._own, self._version = [*task.by, *task.order[:1]], task.version
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, own: Sequence[Any], finding: Finding) -> None:
        """One row for each rate that moved; `own` are the values of the key and of the order."""
        started = finding.started_time
        place = dict(zip(self._own, own, strict=True))
        place["started_time"] = None if started is None else int(started.astype(np.int64))
        if self._version is not None:
            place[self._version] = finding.version
            own = [*own, finding.version]
        for row in _by_rate(finding):
            name = json.dumps([str(value) for value in own] + [row["kind"], row["at"], row["rate"]])
            self._rows.append(place | row | {"id": hashlib.blake2b(name.encode(), digest_size=12).hexdigest()})

    def reject(self, letters: Iterable[str]) -> None:
        for letter in letters:
            self._rows.append(json.loads(letter))

    def batch(self, schema: T.StructType) -> pa.RecordBatch:
        arrow = to_arrow_schema(schema, timezone="UTC")
        columns = [pa.array([row.get(field.name) for row in self._rows], field.type) for field in arrow]
        return pa.RecordBatch.from_arrays(columns, schema=arrow)


def _by_rate(finding: Finding) -> list[dict[str, Any]]:
    first, last = finding.started_between or (None, None)
    head = {
        "kind": finding.kind,
        "at": finding.at,
        "drift": None if finding.about is None else finding.about.at,
        "closes": finding.closes,
        "since": finding.since if isinstance(finding, Drift) else None,
        "started": finding.started,
        "started_first": first,
        "started_last": last,
    }
    if isinstance(finding, Shift):
        direction = "up" if finding.after.value > finding.before.value else "down"
        return [head | {"rate": "positives", "direction": direction} | _shares(finding.before, finding.after)]
    return [
        head
        | {"rate": change.rate, "direction": change.direction}
        | {"evidence": _finite(change.statistic), "bound": _finite(change.bound)}
        | _shares(change.before, change.after)
        for change in finding.changes
    ]


def _shares(before: Any, after: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, share in (("before", before), ("after", after)):
        if share is not None:
            found |= {name: _finite(share.value), f"{name}_n": share.n}
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None

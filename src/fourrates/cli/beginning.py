"""First facts for a watch from the existing rows of a growing file: its classes and daily volume."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.cli.errors import checked
from fourrates.events.batch import Table
from fourrates.frames import RATED
from fourrates.io import MAX_LINE, Batch, Columns, Events, Tail
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.dates import Order

PIECE = 1 << 20  # bytes read at a time, up to the number of rows that `detect` uses


@dataclass(frozen=True, slots=True)
class Beginning:
    """Facts from the first rows."""

    labels: list[Hashable]  # the positive one of two last
    rows: int  # number examined
    times: npt.NDArray[np.datetime64] | None
    dates: Order | None  # order of dates that are not ISO 8601

    def __str__(self) -> str:
        names = ", ".join(map(str, self.labels[:12])) + (" ..." if len(self.labels) > 12 else "")
        positive = f"; {self.labels[1]} is the positive one" if len(self.labels) == 2 else ""
        return f"classes from the first {self.rows:,} rows: {names}{positive}"


def beginning(
    file: str,
    columns: Columns,
    positive: Hashable,
    threshold: float | None,
    labels: list[Hashable] | None = None,
    max_line: int = MAX_LINE,
) -> Beginning | None:
    """Examine the existing rows, except invalid ones, which the watch meets again; None if there are none."""
    if file == "-" or not os.path.exists(file) or not stat.S_ISREG(os.stat(file).st_mode):
        return None
    with open(file, "rb") as opened, checked():
        rows = _Rows(file, columns, None if labels is None else Labels(labels, positive), threshold, positive=positive)
        tail = Tail(rows, file, max_line=max_line, refuse=lambda *_: None)
        size = 0
        while size < RATED and (piece := opened.read(PIECE)):
            for _ in tail.feed(piece):  # only collects tables
                pass
            size = sum(table.size for table in rows.met)
        if not rows.met:
            return None
        if labels is None:
            rows.learn_labels(rows.met)
        times = None
        if rows.columns.time is not None:
            times = np.concatenate([rows.times_in(table, rows.columns.time)[0] for table in rows.met])[:RATED]
    return Beginning(labels or list(rows.labels.values), size, times, rows.columns.dates)


class _Rows(Events):
    """Tables as read: the classes are inferred from all of them."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.met: list[Table] = []

    def batch(self, table: Table) -> Iterator[Batch]:
        if not self.settled:
            self.resolve(list(table.data), table.times, table.source)
        self.met.append(table)
        return iter(())

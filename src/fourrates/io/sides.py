"""The two sides of a join by id: predictions, and labels that come later, each from a source of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.events.batch import Table
from fourrates.events.columns import checked_column, is_missing, listed_values
from fourrates.events.door import Columns, missing_problem
from fourrates.events.labels import LabelEncoder
from fourrates.events.rows import UNLABELLED, InputError, NoColumn
from fourrates.io.events import Events, guess_column, listed
from fourrates.io.opening import pyarrow
from fourrates.join import LabelJoin
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from fourrates.events.clock import Times
    from fourrates.events.rows import Mask
    from fourrates.labels import Codes

    Fingerprints = npt.NDArray[np.void]

ROW_BITS = 40  # of a tag: the row of a prediction, counted over all files; above them its key


class Rows:
    """Some rows of one side, ready for the join."""

    __slots__ = ("codes", "ids", "tags", "times")

    def __init__(
        self, ids: Fingerprints, codes: Codes, tags: npt.NDArray[np.int64], times: npt.NDArray[np.float64] | None
    ) -> None:
        self.ids, self.codes, self.tags, self.times = ids, codes, tags, times

    @property
    def size(self) -> int:
        """How many."""
        return self.codes.size

    def part(self, start: int, stop: int) -> Rows:
        """Some of them."""
        times = None if self.times is None else self.times[start:stop]
        return Rows(self.ids[start:stop], self.codes[start:stop], self.tags[start:stop], times)

    def with_(self, other: Rows) -> Rows:
        """These and others, which both have times."""
        assert self.times is not None
        assert other.times is not None
        return Rows(
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.tags, other.tags]),
            np.concatenate([self.times, other.times]),
        )


class Side(Events, ABC):
    """One of the two sources: columns to ids, codes and times."""

    join: LabelJoin
    first: Table | None  # until it is taken

    def start(self, id_name: str | None) -> tuple[Iterator[Table], str | None]:
        """Open the source far enough to know its columns; the tables, and the column of ids."""
        if self.columns.id is None:
            self.columns = replace(self.columns, id=id_name)
        tables = self.tables()
        first = next(tables, None)
        if first is not None and not self._settled:
            self.resolve(list(first.data), first.times, first.source)
        self._latest = -np.inf
        self._base = 0  # rows of the files before this one
        self._last = 0  # the last row met, counted over all files
        self.bases: list[int] = []
        self.first = first

        def all_tables() -> Iterator[Table]:
            if first is not None:
                yield first
            self.first = None  # which need not be kept
            yield from tables

        return all_tables(), self.columns.id

    def resolve(self, names: Sequence[str], times: Sequence[str] = (), source: str = "") -> Columns:
        """Settle which column is what; one with the ids there must be."""
        where = f"{source}: " if source else ""
        for name in self.columns.used():
            if name not in names:
                raise NoColumn(where, name, listed(names))
        asked, found = self.columns, self.columns
        if found.id is None:
            found = replace(found, id=guess_column("id", names, found.used()))
        if found.id is None:
            raise InputError(f"{where}which column holds the ids (--id)? There are {listed(names)}")
        found = self._resolve_rest(found, names, where)
        if found.time is None and not self._settled:
            found = replace(found, time=guess_column("time", times, found.used()))
        kinds = {"id": "ids", "truth": "labels", "pred": "predictions", "score": "scores", "time": "times"}
        guessed = [
            f"{what} in column {getattr(found, kind)!r}"
            for kind, what in kinds.items()
            if getattr(found, kind) is not None and getattr(asked, kind) is None
        ]
        if guessed:
            self._say(where + ", ".join(guessed))
        self.hint_at_times(found, times)
        self.columns, self._settled = found, True
        return found

    @abstractmethod
    def _resolve_rest(self, found: Columns, names: Sequence[str], where: str) -> Columns: ...

    def rows_of(self, table: Table, timed: bool) -> Rows:
        """The rows of a table in which nothing is missing."""
        if table.source not in self.sources[-1:]:
            self.sources.append(table.source)
            self._base = self._last
            self.bases.append(self._base)
        self._last = self._base + int(table.rows[-1]) if table.size else self._last
        self.rows += table.size
        name = self.columns.id
        assert name is not None
        self.door.columns = self.columns
        reading = self.door.reading(table)
        self._note_clock()
        bad = reading.bad
        ids, nameless = _texts(checked_column(table.data[name], name, validate=not table.sound))
        bad.add(nameless, name, "missing", lambda row: missing_problem(name))
        if self.bad == "reject" and (first := bad.first) is not None:
            raise self.rejection(table, first)
        if reading.scores is not None:
            self.remarks.scores(reading.scores, reading.with_comma)
        codes = reading.truths if reading.preds is None else reading.preds
        assert codes is not None
        times = self._moments(reading.times, reading.utc) if timed and reading.times is not None else None
        tags = self._base + table.rows
        if (kept := bad.kept) is not None:
            self.skipped += len(bad)
            self.remarks.unlabelled += bad.counts[UNLABELLED]
            codes, tags = codes[kept], tags[kept]
            ids = ids.filter(_bools(kept)) if hasattr(ids, "filter") else [ids[i] for i in np.flatnonzero(kept)]
            times = None if times is None else times[kept]
        keys = self.door.named_keys(reading)
        if keys is not None:
            if len(self.keys) >= 1 << 63 - ROW_BITS:
                most = f"{1 << 63 - ROW_BITS:,}"
                raise InputError(f"{table.source}: more than {most} different values in column {self.columns.by!r}")
            tags = tags | keys << ROW_BITS
        return Rows(self.join.fingerprints(ids), codes, tags, times)

    def use_labels(self, labels: Labels) -> None:
        """Read with the labels of the other side."""
        self._labelled, self.labels, self.door.encoder = True, labels, LabelEncoder(labels)

    def _moments(self, given: Times, utc: bool) -> npt.NDArray[np.float64]:
        """Times in microseconds that never run backwards: what is earlier, or unknown, has the latest before it."""
        self.utc |= utc
        micros = np.where(np.isnat(given), -np.inf, given.astype(np.int64).astype(np.float64))
        if micros.size:
            micros[0] = max(micros[0], self._latest)
            micros = np.maximum.accumulate(micros)
            self._latest = float(micros[-1])
        return micros


class Predictions(Side):
    """What the classifier said."""

    def _resolve_rest(self, found: Columns, names: Sequence[str], where: str) -> Columns:
        if found.pred is None and found.score is None:
            if self._threshold is None:
                found = replace(found, pred=guess_column("pred", names, found.used()))
            if found.pred is None:
                found = replace(found, score=guess_column("score", names, found.used()))
        if found.pred is None and found.score is None:
            raise InputError(
                f"{where}which column holds the predictions (--pred, or --score)? There are {listed(names)}"
            )
        self._check_score(found.score, where)
        return replace(found, truth=None)


class LateLabels(Side):
    """What the events turned out to be."""

    def _resolve_rest(self, found: Columns, names: Sequence[str], where: str) -> Columns:
        if found.truth is None:
            found = replace(found, truth=guess_column("truth", names, found.used()))
        if found.truth is None:
            raise InputError(f"{where}which column holds the true labels (--truth)? There are {listed(names)}")
        return Columns(truth=found.truth, time=found.time, id=found.id)


def _texts(column: Any) -> tuple[Any, Mask | None]:
    """Ids as text, so that 17 in one file is "17" in another, and where one is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        pa = pyarrow("pyarrow")
        return pa.array(column).cast(pa.string()), None
    if hasattr(column, "dictionary_encode") and str(column.type).endswith(("string", "string_view")):
        return column, np.array(column.is_null().to_pylist(), np.bool_) if column.null_count else None
    values = listed_values(column)
    gone = np.array([is_missing(value) for value in values], np.bool_)
    texts = [str(int(value) if isinstance(value, float) and value.is_integer() else value) for value in values]
    return texts, gone if gone.any() else None


def _bools(mask: Mask) -> Any:
    return pyarrow("pyarrow").array(mask)

"""Columns to codes, times and keys, with an explanation for each row that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fourrates.detectors.sampling import LARGEST, OwnFirst, odds_codes
from fourrates.events.batch import Batch, Table
from fourrates.events.clock import Clock, Order, Unit, problem_of_time
from fourrates.events.columns import checked_column, distinct_values, is_missing, item, numbers
from fourrates.events.labels import UNKNOWN, LabelEncoder
from fourrates.events.rows import UNLABELLED, Bad, BadRows, InputError, Mask, check_bad
from fourrates.labels import Labels, shown

Codes = npt.NDArray[np.uint16]
By = str | Sequence[str] | None  # the columns whose values, together, make segments
Named = tuple[list[Any], npt.NDArray[np.int64]]  # distinct values, and the position of each row's among them

LONGEST_KEY = 200  # characters
STRATA = 24  # in a column of strata, small whole numbers
KEYS = str, int, float, bool  # besides dates


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns by role; one that is None is inferred, or absent.

    `dates` is the order of dates that are not ISO 8601: "day" first (01.09.2026) or "month" first. `unit` is that of
    numbers since 1970: "s", "ms", "us" or "ns". Both are inferred from the first times if None. `extra` names further
    columns to read; `version` is the model version that predicted. For events drawn for labelling, `probability` is
    that of the draw, and `other` the one for the other prediction.
    """

    truth: str | None = None
    pred: str | None = None
    score: str | None = None
    time: str | None = None
    by: By = None
    id: str | None = None
    dates: Order | None = None
    unit: Unit | None = None
    extra: tuple[str, ...] = ()
    stratum: str | None = None
    version: str | None = None
    probability: str | None = None
    other: str | None = None

    def __post_init__(self) -> None:
        Clock(self.unit, self.dates)  # which checks them
        if not isinstance(self.by, str | None):
            several = tuple(self.by)
            if not all(isinstance(name, str) for name in several) or len({*several}) < len(several):
                raise TypeError(f"by {several!r} does not name columns, each once")
            object.__setattr__(self, "by", several if len(several) > 1 else next(iter(several), None))

    @property
    def by_names(self) -> tuple[str, ...]:
        return () if self.by is None else (self.by,) if isinstance(self.by, str) else tuple(self.by)

    def to_dict(self) -> dict[str, Any]:
        """Fields to save for a later reading of the same source."""
        return {name: value for name, value in asdict(self).items() if name != "extra"}

    def used(self) -> list[str]:
        those = (self.truth, self.pred, self.score, self.time, self.id, self.stratum, self.version)
        return [*(name for name in those if name is not None), *self.by_names, *self.drawn, *self.extra]

    @property
    def drawn(self) -> tuple[str, ...]:
        return () if self.probability is None or self.other is None else (self.probability, self.other)


@dataclass(slots=True)
class Reading:
    """The rows of a table before bad ones are removed."""

    size: int
    bad: BadRows  # more may be added
    truths: Codes | None = None
    preds: Codes | None = None
    keys: Named | None = None  # tuples if several columns make one
    times: npt.NDArray[np.datetime64] | None = None  # in microseconds
    utc: bool = False  # whether times carry a zone
    strata: Codes | None = None
    versions: Named | None = None
    drawn: OwnFirst | None = None  # probabilities of being labelled
    scores: npt.NDArray[np.float64] | None = None
    with_comma: str | None = None  # the first score with a decimal comma


class Door:
    """Columns to batches of events; nothing is inferred here. A table without predictions is one side of a join.

    A bad row raises, is left out (`bad="skip"`), or is kept in the `BadRows` (`"keep"`). `names` are the segments met
    so far, as `name_of` calls them, and `versions` those of the model.
    """

    def __init__(
        self,
        labels: Labels | LabelEncoder,
        columns: Columns,
        threshold: float = 0.5,
        bad: Bad = "reject",
        *,
        clock: Clock | None = None,
        name_of: Callable[[Any], Hashable] | None = None,
    ) -> None:
        check_bad(bad)
        self.encoder = labels if isinstance(labels, LabelEncoder) else LabelEncoder(labels)
        self.columns, self.threshold, self.bad = columns, threshold, bad
        self.clock = clock or Clock(columns.unit, columns.dates)
        self._segments, self._versions = _Numbering(name_of or key_name), _Numbering(key_name)
        self.names, self.versions = self._segments.names, self._versions.names

    def batch(self, reading: Reading, table: Table) -> Batch:
        """The events among the rows; an InputError names the first bad row if it rejects them."""
        if self.bad == "reject" and (first := reading.bad.first) is not None:
            raise InputError(f"{table.place(first.row)}: {first.problem}")
        assert reading.preds is not None
        kept = reading.bad.kept
        alike = reading.preds if reading.truths is None else reading.truths  # of predictions alone nobody reads them
        columns = alike, reading.preds, table.rows, reading.times, reading.strata
        truths, preds, rows, times, strata = (own if kept is None or own is None else own[kept] for own in columns)
        keys, versions = self.named_keys(reading), self.named_versions(reading)
        made = Batch(truths, preds, table.source, rows, times, keys, strata, None, versions, self.versions)  # type: ignore[arg-type]
        if reading.drawn is None:
            return made
        drawn = OwnFirst(reading.drawn.pairs if kept is None else reading.drawn.pairs[kept])
        return made.sampled(drawn.by_class(made.preds))

    def remember(self, names: list[Any], versions: list[str]) -> None:
        """Restore the numbering of keys and versions of an earlier door."""
        self._segments.restore(names)
        self._versions.restore(versions)

    def named_keys(self, reading: Reading) -> npt.NDArray[np.int64] | None:
        """Keys of the valid rows as positions in `names`; a key found in bad rows only gets none."""
        return None if reading.keys is None else self._segments.numbers(*reading.keys, reading.bad.kept)

    def named_versions(self, reading: Reading) -> npt.NDArray[np.int64] | None:
        """Versions of the valid rows as positions in `versions`."""
        return None if reading.versions is None else self._versions.numbers(*reading.versions, reading.bad.kept)

    def reading(self, table: Table) -> Reading:
        """All rows of a table, with the bad ones marked."""
        found = Reading(table.size, BadRows(table.size))
        columns = self.columns
        single = columns.truth, columns.pred, columns.score, columns.time, columns.stratum, columns.version
        names = [name for name in (*single, *columns.drawn, *columns.by_names) if name is not None]
        data = {name: self._column(table, name) for name in names}
        if columns.truth is not None:
            found.truths = self._labels(data[columns.truth], columns.truth, found.bad, UNLABELLED)
        if columns.pred is not None:
            found.preds = self._labels(data[columns.pred], columns.pred, found.bad, "missing")
        elif columns.score is not None:
            found.scores, _, found.with_comma = _numbers_of(
                data[columns.score], columns.score, found.bad, "bad_score", "a score", lambda scores: scores == scores
            )
            found.preds = (found.scores >= self.threshold).astype(np.uint16)
        for name in columns.by_names:
            found.keys = _combined(found.keys, check_keys(data[name], name, found.bad), len(columns.by_names))
        if columns.version is not None:
            found.versions = check_keys(data[columns.version], columns.version, found.bad)
        if columns.stratum is not None:
            strata, sound, _ = _numbers_of(
                data[columns.stratum],
                columns.stratum,
                found.bad,
                "bad_stratum",
                f"a stratum, a whole number from 0 to {STRATA - 1}",
                lambda values: (values >= 0) & (values < STRATA) & (values == np.floor(values)),
            )
            found.strata = np.where(sound, strata, 0).astype(np.uint16)
        if columns.drawn:
            found.drawn = self._drawn([data[name] for name in columns.drawn], found.bad)
        if columns.time is not None:
            column, name = data[columns.time], columns.time
            found.times, found.utc, wrong = self.clock.read(column)
            clock = Clock(self.clock.unit, self.clock.dates)  # as it is now
            found.bad.add(wrong, name, "bad_time", lambda row: problem_of_time(item(column, row), name, clock))
        return found

    def _column(self, table: Table, name: str) -> Any:
        try:
            return checked_column(table.data[name], name, validate=not table.sound)
        except InputError as error:
            raise InputError(f"{table.source}: {error}" if table.source else str(error)) from None

    def _labels(self, column: Any, name: str, bad: BadRows, gone_code: str) -> Codes:
        codes, gone = self.encoder.encode(column)
        bad.add(gone, name, gone_code, partial(missing_problem, name))
        bad.add(codes == UNKNOWN, name, "bad_label", lambda row: self.encoder.labels.problem(item(column, row), name))
        return codes

    def _drawn(self, columns: Sequence[Any], bad: BadRows) -> OwnFirst:
        """The probabilities with which events were drawn, as predicted, and otherwise."""
        sides = [
            _numbers_of(
                column,
                name,
                bad,
                "bad_probability",
                "a probability above 0 and up to 1",
                lambda values: (values > 0) & (values <= 1),
            )
            for column, name in zip(columns, self.columns.drawn, strict=True)
        ]
        sound = sides[0][1] & sides[1][1]
        pairs = np.stack([np.where(fine, values, 1) for values, fine, _ in sides], 1).astype(np.float32)
        far_apart = f"one probability is more than {LARGEST:.0f} times the other"
        bad.add(odds_codes(pairs)[1], self.columns.drawn[1], "bad_probability", lambda row: far_apart)
        pairs[~sound] = 0
        return OwnFirst(pairs)


def _numbers_of(
    column: Any, name: str, bad: BadRows, code: str, kind: str, is_sound: Callable[[npt.NDArray[np.float64]], Mask]
) -> tuple[npt.NDArray[np.float64], Mask, str | None]:
    """Numbers of a kind, which of them are sound, and the first with a decimal comma; the others are noted."""
    values, gone, with_comma = numbers(column)
    bad.add(gone, name, "missing", partial(missing_problem, name))
    with np.errstate(invalid="ignore"):
        sound = is_sound(values)
    bad.add(~sound, name, code, lambda row: f"{shown(item(column, row))} in column {name!r} is not {kind}")
    return values, sound, with_comma


def _combined(earlier: Named | None, further: Named, columns: int) -> Named:
    """Keys of one more column; of several columns, the combinations that occur."""
    values, positions = further
    if columns == 1:
        return further
    ends = [*values, None]  # for rows without a key
    if earlier is None:
        return [(value,) for value in ends], positions
    begins, places = earlier
    pairs, combined = np.unique(places * len(ends) + positions, return_inverse=True)
    return [(*begins[pair // len(ends)], ends[pair % len(ends)]) for pair in pairs.tolist()], combined


class _Numbering:
    """Names in the order of their first appearance, each with its number."""

    def __init__(self, name_of: Callable[[Any], Hashable]) -> None:
        self._name_of = name_of
        self.names: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def restore(self, names: Sequence[Any]) -> None:
        self.names[:], self._numbers = names, {name: number for number, name in enumerate(names)}

    def numbers(self, values: Sequence[Any], positions: npt.NDArray[np.int64], kept: Any) -> npt.NDArray[np.int64]:
        """The numbers of the valid rows, whose values are at these positions; new names are added."""
        positions = positions if kept is None else positions[kept]
        used = np.flatnonzero(np.bincount(positions, minlength=1))
        there = [values[position] for position in used.tolist()]
        is_whole, numbers = _are_whole(there), np.zeros(len(values) + 1, np.int64)
        numbers[used] = [self._number(value, is_whole) for value in there]
        return numbers[positions]

    def _number(self, value: Any, is_whole: bool) -> int:
        if is_whole and value in self._numbers:
            return self._numbers[value]
        name = self._name_of(value)  # text, whose hash is seeded
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        if is_whole:  # so that it need not be named again
            self._numbers[value] = number
        return number


def _are_whole(values: Sequence[Any]) -> bool:
    return {*map(type, values)} == {int} and max(map(abs, values)) < 2**60


def check_keys(column: Any, name: str, bad: BadRows) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """The distinct values of a key column, and each row's position among them; bad ones are noted."""
    values, positions, gone = distinct_values(column, is_missing)
    bad.add(gone, name, "missing", partial(missing_problem, name))
    if wrong := [at for at, value in enumerate(values) if not is_key(value)] if not _are_whole(values) else []:
        bad.add(np.isin(positions, wrong), name, "bad_segment", partial(_no_key, column, name))
    return values, positions.astype(np.int64)


def key_name(value: Any) -> str:
    """The name of a key: 2 and 2.0 have the same; several columns are joined by commas, quoted if need be."""
    if isinstance(value, tuple):
        names = [key_name(part) for part in value]
        return ", ".join(repr(name) if "," in name or name[:1] in "'\"" else name for name in names)
    return str(int(value) if type(value) is float and value.is_integer() else value)


def is_key(value: Any) -> bool:
    """Whether a value can be a key, that is text, a number, a truth value or a date, not too long."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value.bit_length() <= 3 * LONGEST_KEY
    return isinstance(value, (*KEYS, Decimal, date)) and len(str(value)) <= LONGEST_KEY


def _no_key(column: Any, name: str, row: int) -> str:
    return f"{shown(item(column, row))} in column {name!r} cannot be a key"


def missing_problem(name: str, row: int = -1) -> str:
    return f"the value in column {name!r} is missing"

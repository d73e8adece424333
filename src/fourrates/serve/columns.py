"""Columns as they come in a body to the columns of a batch; rows that cannot be used are named.

A column is a piece of JSON, a list, a NumPy array or an Arrow array. Each is first read the quick way, by compiled
code; where that does not work it is read value by value, which finds every bad row and says what is wrong with it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.bank.keys import canonical
from fourrates.join.ids import bytes_of
from fourrates.kernel import json_columns
from fourrates.serve.batch import INTEGERS, JSON, TEXTS, Ids
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint8]

SEED = int.from_bytes(os.urandom(8), "little")
AHEAD = 86_400.0  # seconds that a time may lie in the future
LONGEST = 1_000  # bytes of an id
LONGEST_SEGMENT = 200  # characters of a value that makes a segment
Problems = dict[int, tuple[str, str, str]]  # row -> column, code, what is wrong


class Plan:
    """What is needed to read bodies of one monitor: labels with their codes, segment columns, threshold."""

    def __init__(self, config: MonitorConfig) -> None:
        self.labels = config.made_labels()
        self.by = config.by
        self.threshold = config.threshold
        written = [msgspec.json.encode(label) for label in self.labels.values]
        self.tokens = np.frombuffer(b"".join(written), np.uint8)
        self.edges = np.cumsum([0, *map(len, written)]).astype(np.int32)


@dataclass(slots=True)
class Read:
    """A column that was read: its values, and what is wrong with some of them."""

    values: Any
    size: int
    problems: Problems = field(default_factory=dict)


def is_json(column: Any) -> bool:
    """Whether a column is a piece of JSON."""
    return isinstance(column, msgspec.Raw)


def listed(column: Any, name: str) -> list[Any]:
    """A column as a list of Python values."""
    if is_json(column):
        try:
            found = msgspec.json.decode(column)
        except (ValueError, RecursionError) as error:
            raise ApiError(400, "bad_json", f"{name}: {error}", {"column": name}) from None
        if not isinstance(found, list):
            raise ApiError(422, "not_a_column", f"{name} is not a list of values", {"column": name})
        return found
    if isinstance(column, list):
        return column
    try:
        values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
    except (ValueError, OverflowError) as error:  # a date beyond the year 9999, a time zone that there is not
        raise ApiError(
            422, "not_a_column", f"{name} holds what cannot be read: {error}"[:300], {"column": name}
        ) from None
    return values


def read_labels(column: Any, name: str, plan: Plan) -> Read:
    """The codes of labels."""
    if is_json(column):
        text = memoryview(column)
        codes = np.empty(len(text) // 2 + 1, np.uint8)
        n = json_columns.label_codes(text, plan.tokens, plan.edges, codes)
        if n >= 0:
            return Read(codes[:n], n)
    elif not isinstance(column, list):
        try:
            found = plan.labels.encode(column, name).astype(np.uint8)
            return Read(found, found.size)
        except (ValueError, TypeError):
            pass
    values = listed(column, name)
    codes = np.zeros(len(values), np.uint8)
    problems: Problems = {}
    for row, value in enumerate(values):
        code = plan.labels.code(value)
        if code < 0:
            problems[row] = (name, "bad_label", str(plan.labels.unknown(_short(value), name, row)))
        else:
            codes[row] = code
    return Read(codes, len(values), problems)


def read_scores(column: Any, plan: Plan) -> Read:
    """The codes of what scores say: positive from the threshold on."""
    if len(plan.labels.values) != 2:
        raise ApiError(422, "no_score", f"score goes with two labels, this monitor has {len(plan.labels.values)}")
    numbers = read_numbers(column, "score")
    for row in np.flatnonzero(np.isnan(numbers.values)).tolist():
        numbers.problems.setdefault(row, ("score", "bad_score", f"score: no number at position {row}"))
    return Read((numbers.values >= plan.threshold).astype(np.uint8), numbers.size, numbers.problems)


def read_numbers(column: Any, name: str) -> Read:
    """Numbers as doubles; nan where one is null."""
    if is_json(column):
        try:
            values = msgspec.json.decode(column, type=list[float])
            return Read(np.array(values, np.float64), len(values))
        except (ValueError, RecursionError):
            pass
    elif isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return Read(column.astype(np.float64), column.size)
    values = listed(column, name)
    found = np.full(len(values), math.nan)
    problems: Problems = {}
    for row, value in enumerate(values):
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                found[row] = value
            except OverflowError:
                problems[row] = (name, "bad_number", f"{name}: {_short(value)!r} at position {row} is too large")
        elif value is not None:
            problems[row] = (name, "bad_number", f"{name}: {_short(value)!r} at position {row} is not a number")
    return Read(found, len(values), problems)


def read_times(column: Any, received: float) -> Read:
    """Times as seconds since 1970, from numbers or ISO 8601; one that is null, or ahead, is when it was received."""
    read = None
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        micros = column.astype("M8[us]")
        read = Read(np.where(np.isnat(micros), math.nan, micros.astype(np.int64) / 1e6), column.size)
    elif is_json(column):
        try:
            dates = msgspec.json.decode(column, type=list[datetime])
            read = Read(np.array([_epoch(date) for date in dates], np.float64), len(dates))
        except (ValueError, RecursionError, OverflowError):
            pass
    if read is None:
        read = _times_one_by_one(column)
    values, latest = read.values, received + AHEAD
    values[np.isnan(values)] = received
    for row in np.flatnonzero(~((values > -1e11) & (values <= latest))).tolist():
        problem = f"time: {values[row]:.17g} at position {row} is not a time up to now, in seconds since 1970"
        read.problems.setdefault(row, ("time", "bad_time", problem))
    # What is a little ahead is now: its clock is, or its zone was left out. It must not make others wait too long.
    np.minimum(values, received, out=values)
    return read


def _times_one_by_one(column: Any) -> Read:
    if is_json(column) or isinstance(column, np.ndarray):
        numbers = read_numbers(column, "time")
        if not numbers.problems:
            return numbers
    values = listed(column, "time")
    found = np.full(len(values), math.nan)
    problems: Problems = {}
    for row, value in enumerate(values):
        try:
            if isinstance(value, str):
                value = msgspec.convert(value, datetime)
            if isinstance(value, datetime):
                found[row] = _epoch(value)
            elif value is not None:
                found[row] = msgspec.convert(value, float)
        except (ValueError, OverflowError):
            problem = f"time: {_short(value)!r} at position {row} is neither ISO 8601 nor seconds since 1970"
            problems[row] = ("time", "bad_time", problem)
    return Read(found, len(values), problems)


def _epoch(date: datetime) -> float:
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()


def read_ids(column: Any) -> Read:
    """Ids in the form of the journal."""
    if is_json(column):
        text = memoryview(column)
        room = len(text) // 2 + 2
        whole = np.empty(room, np.int64)
        if (n := json_columns.integers(text, whole)) >= 0:
            return Read(Ids(INTEGERS, whole[:n].astype("<i8").tobytes()), n)
        edges, data = np.empty(len(text) // 3 + 2, np.uint32), np.empty(len(text), np.uint8)
        if (n := json_columns.texts(text, edges, data)) >= 0:
            return _texts(edges[: n + 1], data[: edges[n]].tobytes())
    elif isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        return Read(Ids(INTEGERS, column.astype("<i8").tobytes()), column.size)
    elif hasattr(column, "type") and str(column.type) in ("string", "large_string") and not column.null_count:
        return _arrow_texts(column)
    values = listed(column, "id")
    problems: Problems = {}
    for row, value in enumerate(values):
        try:
            if isinstance(value, bool | list | dict) or len(bytes_of(value, row)[1]) > LONGEST:
                raise TypeError
        except (TypeError, ValueError):
            problems[row] = ("id", "bad_id", f"id: {_short(value)!r} at position {row} is no number or text")
    try:
        saved = msgspec.json.encode([None if row in problems else value for row, value in enumerate(values)])
    except (ValueError, OverflowError, TypeError) as error:
        raise ApiError(422, "bad_id", f"id: {error}") from None
    return Read(Ids(JSON, saved), len(values), problems)


def _texts(edges: npt.NDArray[np.uint32], data: bytes) -> Read:
    problems: Problems = {}
    lengths = np.diff(edges.astype(np.int64))
    for row in np.flatnonzero(lengths > LONGEST).tolist():
        problems[row] = ("id", "bad_id", f"id: the text at position {row} is longer than {LONGEST} bytes")
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        raise ApiError(400, "bad_json", "id: not UTF-8") from None
    return Read(Ids(TEXTS, data, edges.astype("<u4").tobytes()), edges.size - 1, problems)


def _arrow_texts(column: Any) -> Read:
    width = np.int64 if str(column.type).startswith("large") else np.int32
    _, offsets, data = column.buffers()
    if not len(column):
        return Read(Ids(TEXTS, b"", np.zeros(1, "<u4").tobytes()), 0)
    edges = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    text = b"" if data is None else bytes(data)[edges[0] : edges[-1]]
    return _texts((edges - edges[0]).astype(np.uint32), text)


def read_segments(columns: Mapping[str, Any], by: Sequence[str]) -> tuple[list[str], Read]:
    """The segments that occur, each as a JSON list of values, and which of them each row belongs to."""
    reads = [_distinct(columns[name], name) for name in by]
    sizes = {read.size for _, read in reads}
    if len(sizes) > 1:
        raise ApiError(422, "lengths_differ", f"the columns of `by` have different lengths: {sorted(sizes)}")
    problems: Problems = {row: told for _, read in reads for row, told in read.problems.items()}
    values, codes = [[value] for value in reads[0][0]], reads[0][1].values
    for more, read in reads[1:]:
        both = codes.astype(np.int64) * max(len(more), 1) + read.values
        pairs, codes = np.unique(both, return_inverse=True)
        values = [[*values[pair // max(len(more), 1)], more[pair % max(len(more), 1)]] for pair in pairs.tolist()]
    return [segment_name(one) for one in values], Read(codes.astype("<u4"), sizes.pop(), problems)


def segment_name(values: Sequence[Any]) -> str:
    """The values that make a segment, in the order of `by`, as one text."""
    return msgspec.json.encode(values).decode()


def _distinct(column: Any, name: str) -> tuple[list[Any], Read]:
    """The different values of a column, and which of them each row has."""
    if is_json(column):
        text = memoryview(column)
        room = len(text) // 2 + 1
        table = np.full(1 << (2 * room).bit_length(), -1, np.int32)
        codes, firsts, lasts = (np.empty(room, np.uint32) for _ in range(3))
        n, different = json_columns.distinct(text, SEED, table, codes, firsts, lasts)
        if n >= 0:
            spans = zip(firsts[:different].tolist(), lasts[:different].tolist(), strict=True)
            try:
                values = [msgspec.json.decode(text[start:end]) for start, end in spans]
            except (ValueError, RecursionError) as error:
                raise ApiError(400, "bad_json", f"{name}: {error}", {"column": name}) from None
            return _checked(values, codes[:n], name)
    elif hasattr(column, "dictionary_encode"):
        coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        if not coded.null_count and not coded.dictionary.null_count:
            return _checked(coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.uint32), name)
    codes_of: dict[tuple[type, Any], int] = {}
    found = []
    for row, value in enumerate(listed(column, name)):
        if not isinstance(value, str | int | float | bool | None):
            problem = f"{name}: {_short(value)!r} at position {row} cannot name a segment"
            return [], Read(np.zeros(0), row, {row: (name, "bad_segment", problem)})
        found.append(codes_of.setdefault((type(value), value), len(codes_of)))
    return _checked([value for _, value in codes_of], np.array(found, np.uint32), name)


def _checked(values: list[Any], codes: npt.NDArray[np.uint32], name: str) -> tuple[list[Any], Read]:
    """Values in their one form, and the rows of those that cannot name a segment."""
    one_form: dict[Any, int] = {}
    renamed = np.empty(len(values), np.uint32)
    problems: Problems = {}
    for code, value in enumerate(values):
        sound = isinstance(value, str | int | float | bool) and len(str(value)) <= LONGEST_SEGMENT and value == value
        if not sound:
            for row in np.flatnonzero(codes == code).tolist():
                problem = f"{name}: {_short(value)!r} at position {row} cannot name a segment"
                problems[row] = (name, "bad_segment", problem)
        key = canonical(value) if sound and not isinstance(value, bool | str) else value if sound else ""
        renamed[code] = one_form.setdefault((type(key), key), len(one_form))
    return [key for _, key in one_form], Read(renamed[codes] if len(values) else codes, codes.size, problems)


def _short(value: Any) -> Any:
    return value[:80] + "..." if isinstance(value, str) and len(value) > 80 else value if _small(value) else "..."


def _small(value: Any) -> bool:
    return isinstance(value, str | float | bool | None) or (isinstance(value, int) and abs(value) < 1 << 128)

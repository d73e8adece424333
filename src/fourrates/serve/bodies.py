"""Bodies of requests to batches, from JSON columns or rows or an Arrow stream, gzipped or not.

Nothing from outside is trusted; sizes are bounded before and after unpacking, and all rows checked first.
"""

from __future__ import annotations

import functools
import io
import math
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.bank.keys import canonical
from fourrates.detectors.sampling import DRAWN
from fourrates.events.arrow import TooLarge, read_stream
from fourrates.events.batch import Table
from fourrates.events.clock import Clock
from fourrates.events.columns import checked_column, item, json_number, listed_values, pick
from fourrates.events.door import Columns, Door
from fourrates.events.labels import LabelEncoder
from fourrates.events.rows import SHOWN, BadRow, BadRows, InputError
from fourrates.labels import shown
from fourrates.serve.batch import EVENTS, LABELS, PREDICTIONS, Batch
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    from fourrates.events.clock import Order, Unit
    from fourrates.events.rows import Mask

JSON_TYPES = ("", "application/json", "text/json")
ROW_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")
ARROW_TYPES = ("application/vnd.apache.arrow.stream", "application/x-apache-arrow-stream")
NESTED = 1_000  # lists and objects in the place of values that are kept, and lists and objects in a line
SMALL = 1 << 14  # bytes
LARGE_EXPONENT = re.compile(rb"[eE][+-]?\d{3}")
LONGEST_VALUE = 1_000  # characters of a text that is kept of a rejected row
LONGEST_ID = 1_000  # bytes
AHEAD = 86_400.0  # seconds that a time may lie in the future


class Body(msgspec.Struct):
    """The columns of a body, each a list or an array; those called `y_true` and `y_pred` become `truth` and `pred`."""

    y_true: Any = None
    y_pred: Any = None
    truth: Any = None
    pred: Any = None
    score: Any = None
    id: Any = None
    time: Any = None
    version: Any = None
    label_probability: Any = None
    other_probability: Any = None
    by: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.truth = _either(self.truth, self.y_true, "y_true or truth")
        self.pred = _either(self.pred, self.y_pred, "y_pred or pred")


COLUMNS = [name for name in Body.__struct_fields__ if name != "by"]


def _either(column: Any, other: Any, names: str) -> Any:
    if column is not None and other is not None:
        raise ApiError(422, "two_columns", f"give {names}, not both")
    return other if column is None else column


_decoder = msgspec.json.Decoder(Body)
_rows_decoder = msgspec.json.Decoder(dict[str, Any])
_careful_decoder = msgspec.json.Decoder(Body, float_hook=json_number)
_careful_rows_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=json_number)


class Plan:
    def __init__(self, config: MonitorConfig) -> None:
        self.encoder = LabelEncoder(config.made_labels())
        self.by = config.by
        self.threshold, self.sampled, self.draws = config.threshold, config.sampled, config.label_plan is not None
        self.unit: Unit | None = None  # of times, and the order of day and month in them, once a body has shown them
        self.dates: Order | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The most rows and unpacked bytes of a body."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Rejected(BadRow):
    """A rejected row of a body and its values."""

    values: dict[str, Any]


class Rejections(list[Rejected]):
    """The first rejected rows of a body and their `total`."""

    def __init__(self, rows: Iterable[Rejected] = (), total: int | None = None) -> None:
        super().__init__(rows)
        self.total = len(self) if total is None else total


def unpack(body: bytes, encoding: str, limit: int) -> bytes:
    """A body as it was before it was packed; never more than `limit` bytes."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ApiError(415, "bad_encoding", f"content encoding {encoding[:40]!r} is not gzip", {"accepted": ["gzip"]})
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # gzip or zlib, whichever it is
    try:
        unpacked = unpacker.decompress(body, limit + 1)
    except zlib.error as error:
        raise ApiError(400, "bad_gzip", f"the body cannot be unpacked: {error}") from None
    if len(unpacked) > limit:
        raise ApiError(413, "too_large", f"the body unpacks to more than {limit:,} bytes", {"limit": limit})
    if not unpacker.eof:
        raise ApiError(400, "bad_gzip", "the packed body ends too early")
    if unpacker.unused_data:  # rows that would be lost silently
        raise ApiError(400, "bad_gzip", "something follows the packed body; pack it in one piece")
    return unpacked


def read_table(body: bytes, content_type: str, by: list[str], limits: Limits) -> Body:
    kind = content_type.partition(";")[0].strip().lower()
    if kind in JSON_TYPES:
        return _json_columns(body, len(by), limits)
    if kind in ROW_TYPES:
        return body_of_rows(_json_rows(body, limits), by)
    if kind in ARROW_TYPES:
        return _arrow_columns(body, by, limits)
    raise ApiError(
        415,
        "bad_type",
        f"content type {kind[:80]!r} is none of application/json, application/x-ndjson and {ARROW_TYPES[0]}; "
        "with curl: -H 'content-type: application/json'",
    )


def _json_columns(body: bytes, by: int, limits: Limits) -> Body:
    # An empty list of 3 bytes takes 64 in memory, so values are counted before they are made.
    if body.count(b",") > limits.rows * (7 + by) or body.count(b"{") + body.count(b"[") > limits.rows + 100:
        raise _too_many_rows(limits)
    if 36 * body.count(b'"') > 100_000_000 + 10 * len(body):  # a text takes 72 bytes in memory, however short
        raise ApiError(413, "too_many_texts", "more short texts than fit in memory")
    try:
        return (_careful_decoder if _has_slow_numbers(body) else _decoder).decode(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "bad_json", f"the body is not columns of JSON: {str(error)[:300]}") from None


def object_decoder(body: bytes) -> msgspec.json.Decoder[dict[str, Any]]:
    return _careful_rows_decoder if _has_slow_numbers(body) else _rows_decoder


def _has_slow_numbers(body: bytes) -> bool:
    """Whether a larger body may have numbers with large exponents, which msgspec reads slowly."""
    return len(body) > SMALL and LARGE_EXPONENT.search(body) is not None


def _too_many_rows(limits: Limits) -> ApiError:
    return ApiError(413, "too_many_rows", f"more than {limits.rows:,} rows", {"limit": limits.rows})


def _json_rows(body: bytes, limits: Limits) -> Iterator[dict[str, Any]]:
    """The objects of lines that are not blank, cut from the body one by one."""
    decoder = object_decoder(body)
    rows = blank = 0
    for number, line in enumerate(io.BytesIO(body), 1):
        if not line.strip():
            blank += 1
            if blank > limits.rows:
                raise ApiError(413, "too_many_rows", f"more than {limits.rows:,} blank lines", {"limit": limits.rows})
            continue
        rows += 1
        if rows > limits.rows:
            raise _too_many_rows(limits)
        if len(line) > NESTED and line.count(b"[") + line.count(b"{") > NESTED:
            raise ApiError(422, "bad_json", f"line {number} has too many lists and objects", {"line": number})
        try:
            record = decoder.decode(line)
        except (ValueError, RecursionError) as error:
            raise ApiError(400, "bad_json", f"line {number} is no JSON object: {error}", {"line": number}) from None
        yield record


def body_of_rows(records: Iterable[dict[str, Any]], by: list[str]) -> Body:
    """Rows as columns; the values of `by` are in an object of this name, or next to the others."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    segments: dict[str, list[Any]] = {name: [] for name in by}
    given: set[str] = set()
    nested = 0
    for record in records:
        given |= record.keys() & columns.keys()
        inner = record.get("by")
        beside = inner if isinstance(inner, dict) else record
        for values, source in ((columns, record), (segments, beside)):
            for name, column in values.items():
                value = source.get(name)
                if isinstance(value, list | dict):
                    nested += 1
                    value = value if nested <= NESTED else []
                column.append(value)
    return Body(**{name: columns[name] for name in given}, by=segments)


def _arrow_columns(body: bytes, by: list[str], limits: Limits) -> Body:
    try:
        table = read_stream(body, limits.rows, limits.bytes)
    except TooLarge as error:
        code = "too_many_rows" if error.what == "rows" else "too_large"
        raise ApiError(413, code, str(error), {"limit": error.limit}) from None
    except InputError as error:
        raise ApiError(400, "bad_arrow", str(error)) from None

    names = table.column_names
    for name in (*COLUMNS, *by):
        if names.count(name) > 1:
            raise ApiError(422, "bad_arrow", f"the column {name} is there twice", {"column": name})
    columns, segments = (
        {name: _checked(table.column(name), name) for name in own if name in names} for own in (COLUMNS, by)
    )
    return Body(**columns, by=segments)


def _checked(column: Any, name: str) -> Any:
    try:
        return checked_column(column, name)
    except InputError as error:
        raise ApiError(422, "not_a_column", str(error), {"column": name}) from None


@functools.cache  # of few names
def _columns(names: tuple[str, ...], by: tuple[str, ...]) -> Columns:
    wanted = ("y_true", "y_pred", "score", "time", "version", *DRAWN)
    truth, pred, score, time, version, probability, other = (name if name in names else None for name in wanted)
    return Columns(truth, pred, score, time, by, version=version, probability=probability, other=other)


def make_batch(
    kind: int, body: Body, plan: Plan, received: float, *, limits: Limits, skip: bool = False, shown_rows: int = SHOWN
) -> tuple[Batch, Rejections]:
    """The batch of a body, and the first rejected rows; without `skip` a bad row rejects the whole."""
    data, by = _needed_columns(kind, body, plan)
    size = _size(data, limits)
    clock = Clock(plan.unit, plan.dates)
    door = Door(plan.encoder, _columns(tuple(data), tuple(by)), plan.threshold, clock=clock, name_of=segment_name)
    try:
        reading = door.reading(Table(data, "", np.arange(size), sound=True))
    except InputError as error:
        raise ApiError(422, "not_a_column", str(error)) from None
    times, bad = None, reading.bad
    if reading.times is not None:
        times = _seconds(reading.times, received, bad, data["time"])
    if "id" in data:
        mask, describe = bad_ids(data["id"])
        bad.add(mask, "id", "bad_id", describe)
    if not skip and bad.rejected:
        raise _rejection(bad)
    plan.unit, plan.dates = clock.unit, clock.dates
    batch, kept = Batch(kind, received, size - len(bad)), bad.kept
    for name, values, dtype in (
        ("truths", reading.truths, "u1"),
        ("preds", reading.preds, "u1"),
        ("times", times, "<f8"),
        ("drawn", reading.drawn and reading.drawn.pairs, "<f4"),
    ):
        if values is not None:
            setattr(batch, name, (values if kept is None else values[kept]).astype(dtype).tobytes())
    if "id" in data:
        ids = data["id"] if kept is None else pick(data["id"], np.flatnonzero(kept))
        batch.ids = ids_of(ids, limits.bytes)
    if (keys := door.named_keys(reading)) is not None:
        batch.segments, batch.segment_codes = door.names, keys.astype("<u4").tobytes()
    if (versions := door.named_versions(reading)) is not None:
        batch.versions, batch.version_codes = door.versions, versions.astype("<u4").tobytes()
    if not bad.counts:
        return batch, Rejections()
    rejected = (
        Rejected(row.row, row.column, row.code, row.problem, {name: _brief(data[name], row.row) for name in data})
        for row in bad.several(shown_rows, unlabelled=True)
    )
    return batch, Rejections(rejected, len(bad))


def _needed_columns(kind: int, body: Body, plan: Plan) -> tuple[dict[str, Any], list[str]]:
    """The columns that a batch of this kind has, and which of them make a segment."""
    data: dict[str, Any] = {}
    if kind != PREDICTIONS:
        data["y_true"] = _needed(body.truth, "y_true")
    if kind != LABELS and body.pred is None and body.score is not None:
        if (many := len(plan.encoder.labels.values)) != 2:
            raise ApiError(422, "no_score", f"score goes with two labels, this monitor has {many}")
        data["score"] = _needed(body.score, "score")
    elif kind != LABELS:
        data["y_pred"] = _needed(body.pred, "y_pred")
    if body.id is not None or kind != EVENTS:
        data["id"] = _needed(body.id, "id")
    if body.time is not None:
        data["time"] = _needed(body.time, "time")
    if body.version is not None and kind != LABELS:
        data["version"] = _needed(body.version, "version")
    if plan.sampled and kind != LABELS and not (plan.draws and kind == PREDICTIONS):
        data |= {name: _needed(getattr(body, name), name) for name in DRAWN}
    by: list[str] = []
    for name in plan.by if kind != LABELS else ():
        by.append(name if name not in data else f"by.{name}")
        data[by[-1]] = _needed(body.by.get(name), f"by.{name}")
    return data, by


def _size(data: dict[str, Any], limits: Limits) -> int:
    """How many rows columns have; an ApiError unless it is the same number for all, and not too large."""
    size, *others = {len(column) for column in data.values()}
    if others:
        sizes = {name: len(column) for name, column in data.items()}
        lengths = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise ApiError(422, "lengths_differ", f"columns of different lengths: {lengths}", {"lengths": sizes})
    if size > limits.rows:
        raise _too_many_rows(limits)
    return size


def _seconds(times: Any, received: float, bad: BadRows, column: Any) -> Any:
    """Times in seconds since 1970; those that are missing, or a little ahead, are now, and later ones are bad."""
    seconds = np.where(np.isnat(times), received, times.astype(np.int64) / 1e6)
    problem = "{} in column 'time' is later than now; times are ISO 8601 or seconds since 1970".format
    ahead = seconds > max(received, time.time()) + AHEAD  # also of the wall clock, which may be right
    bad.add(ahead, "time", "bad_time", lambda row: problem(shown(item(column, row))))
    # A time slightly ahead counts as now (a fast clock, or a missing zone), so that others need not wait.
    return np.minimum(seconds, received)


def to_json(value: Any) -> bytes:
    """Values of rejected rows as JSON; in Python's words if JSON has none for them."""
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except (ValueError, OverflowError):  # integers beyond 64 bits, half of a surrogate pair
        return msgspec.json.encode(repr(value).encode("utf-8", "replace").decode())


def _brief(column: Any, row: int) -> Any:
    """A value of a rejected row, shortened, for one long text may be the value of many rows."""
    value = item(column, row)
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return f"{value[:LONGEST_VALUE]}..."
    return shown(value) if isinstance(value, list | dict) else value


def _needed(column: Any, name: str) -> Any:
    if column is None:
        raise ApiError(422, "no_column", f"the column {name} is missing", {"column": name})
    if not isinstance(column, list) and not hasattr(column, "dtype") and not hasattr(column, "null_count"):
        raise ApiError(422, "not_a_column", f"{name} is not a list of values", {"column": name})
    return column


def _rejection(bad: BadRows) -> ApiError:
    first, *others = bad.several()
    more = [{"row": other.row, "column": other.column} for other in others]
    where = {"row": first.row, "column": first.column, "bad_rows": bad.rejected, **({"more": more} if more else {})}
    return ApiError(422, first.code, f"row {first.row}: {first.problem}", where)


# Ids, and names of segments ------------------------------------------------------------------------------------


def segment_name(values: Any) -> str:
    """The values that make a segment, in the order of `by`, as one text."""
    several = values if isinstance(values, tuple | list) else (values,)
    plain = [value if isinstance(value, str | bool) else canonical(value) for value in several]
    return msgspec.json.encode(plain, enc_hook=str).decode()


def bad_ids(column: Any) -> tuple[Mask | None, Any]:
    """The rows whose id is none, and how one of those is put into words."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return None, None
    values = listed_values(column)
    bad = np.array([not _is_id(value) for value in values], np.bool_)
    return bad, lambda row: f"{shown(values[row])} in column 'id' is no number or text of up to {LONGEST_ID:,} bytes"


def _is_id(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() < 8 * LONGEST_ID
    if type(value) is str:
        if len(value) <= LONGEST_ID // 4 or len(value) > LONGEST_ID:  # between one and four bytes a character
            return len(value) <= LONGEST_ID
        return len(value.encode("utf-8", "surrogatepass")) <= LONGEST_ID
    return isinstance(value, float) and math.isfinite(value)


def ids_of(column: Any, most: int) -> bytes:
    """Ids in the form of the journal; an ApiError if they make more than `most` bytes."""
    values = listed_values(column)
    if sum(len(value) for value in values if type(value) is str) > most:  # an Arrow column may say the same often
        raise ApiError(413, "too_large", f"ids of more than {most:,} bytes", {"limit": most})
    try:
        return msgspec.json.encode(values)
    except (ValueError, OverflowError, TypeError) as error:  # half of a surrogate pair
        raise ApiError(422, "bad_id", f"id: {error}") from None

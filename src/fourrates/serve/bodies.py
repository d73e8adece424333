"""Bodies of requests to batches: columns or rows of JSON, an Arrow stream; gzip.

Nothing from outside is believed: sizes are bounded before and after unpacking, rows are checked before one is taken.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from fourrates.io.opening import pyarrow
from fourrates.serve.batch import EVENTS, LABELS, PREDICTIONS, Batch, Ids
from fourrates.serve.columns import (
    Plan,
    Problems,
    Read,
    is_json,
    listed,
    read_ids,
    read_labels,
    read_scores,
    read_segments,
    read_times,
)
from fourrates.serve.errors import ApiError

JSON_TYPES = ("", "application/json", "text/json")
ROW_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")
ARROW_TYPES = ("application/vnd.apache.arrow.stream", "application/x-apache-arrow-stream")
SHOWN = 20  # bad rows named in one answer


_NOTHING = msgspec.Raw(b"null")


class _Columns(msgspec.Struct):
    """A body of columns; each stays a piece of JSON until it is known what it is for."""

    y_true: msgspec.Raw = _NOTHING
    y_pred: msgspec.Raw = _NOTHING
    truth: msgspec.Raw = _NOTHING
    pred: msgspec.Raw = _NOTHING
    score: msgspec.Raw = _NOTHING
    id: msgspec.Raw = _NOTHING
    time: msgspec.Raw = _NOTHING
    by: dict[str, msgspec.Raw] = {}


_decoder = msgspec.json.Decoder(_Columns)
_rows_decoder = msgspec.json.Decoder(dict[str, Any])


@dataclass(slots=True)
class Table:
    """The columns of a body: one list, array or piece of JSON for each."""

    truth: Any = None
    pred: Any = None
    score: Any = None
    id: Any = None
    time: Any = None
    by: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was set aside: its position in the body, what is wrong with it, and what it held."""

    row: int
    column: str
    code: str
    problem: str
    values: dict[str, Any]


def unpack(body: bytes, encoding: str, limit: int) -> bytes:
    """A body as it was before it was packed; never more than `limit` bytes."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ApiError(415, "bad_encoding", f"content encoding {encoding[:40]!r} is not gzip", {"accepted": ["gzip"]})
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # gzip or zlib, whichever it is
    try:
        found = unpacker.decompress(body, limit + 1)
    except zlib.error as error:
        raise ApiError(400, "bad_gzip", f"the body cannot be unpacked: {error}") from None
    if len(found) > limit:
        raise ApiError(413, "too_large", f"the body unpacks to more than {limit:,} bytes", {"limit": limit})
    if not unpacker.eof:
        raise ApiError(400, "bad_gzip", "the packed body ends too early")
    return found


def read_table(body: bytes, content_type: str, by: list[str], max_rows: int) -> Table:
    """The columns in a body."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in JSON_TYPES:
        return _json_columns(body)
    if kind in ROW_TYPES:
        return table_of_rows(_json_rows(body, max_rows), by)
    if kind in ARROW_TYPES:
        return _arrow_columns(body, by, max_rows)
    raise ApiError(
        415,
        "bad_type",
        f"content type {kind[:80]!r} is none of application/json, application/x-ndjson and {ARROW_TYPES[0]}; "
        "with curl: -H 'content-type: application/json'",
    )


def _json_columns(body: bytes) -> Table:
    try:
        found = _decoder.decode(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "bad_json", f"the body is not columns of JSON: {str(error)[:300]}") from None
    score, ids, times = (None if one == _NOTHING else one for one in (found.score, found.id, found.time))
    truth = _one_of(found.y_true, found.truth, "y_true or truth")
    return Table(truth, _one_of(found.y_pred, found.pred, "y_pred or pred"), score, ids, times, dict(found.by))


def _one_of(ours: msgspec.Raw, theirs: msgspec.Raw, names: str) -> msgspec.Raw | None:
    if _NOTHING not in (ours, theirs):
        raise ApiError(422, "two_columns", f"give {names}, not both")
    found = theirs if ours == _NOTHING else ours
    return None if found == _NOTHING else found


def _json_rows(body: bytes, max_rows: int) -> Iterator[dict[str, Any]]:
    rows = 0
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        rows += 1
        if rows > max_rows:
            raise ApiError(413, "too_many_rows", f"more than {max_rows:,} rows", {"limit": max_rows})
        try:
            record = _rows_decoder.decode(line)
        except (ValueError, RecursionError) as error:
            raise ApiError(400, "bad_json", f"line {number} is no JSON object: {error}", {"line": number}) from None
        yield record


def table_of_rows(records: Iterable[dict[str, Any]], by: list[str]) -> Table:
    """Rows as columns; the values of `by` stand in an object of this name, or next to the others."""
    names = ("truth", "pred", "score", "id", "time")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    segments: dict[str, list[Any]] = {name: [] for name in by}
    for record in records:
        record.setdefault("truth", record.get("y_true"))
        record.setdefault("pred", record.get("y_pred"))
        for name in names:
            columns[name].append(record.get(name))
        inner = record.get("by")
        for name in by:
            segments[name].append(inner.get(name) if isinstance(inner, dict) else record.get(name))
    given: dict[str, Any] = {
        name: column for name, column in columns.items() if any(value is not None for value in column)
    }
    return Table(**given, by=segments)


def _arrow_columns(body: bytes, by: list[str], max_rows: int) -> Table:
    pa = pyarrow("pyarrow")
    try:
        with pa.ipc.open_stream(body) as reader:
            batches, rows = [], 0
            for one in reader:
                one.validate(full=True)
                rows += one.num_rows
                if rows > max_rows:
                    raise ApiError(413, "too_many_rows", f"more than {max_rows:,} rows", {"limit": max_rows})
                batches.append(one)
            table = pa.Table.from_batches(batches, reader.schema).unify_dictionaries().combine_chunks()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ApiError(400, "bad_arrow", f"not a sound Arrow stream: {str(error).splitlines()[0][:200]}") from None

    def column(*names: str) -> Any:
        for name in names:
            if name in table.column_names:
                found = table.column(name)
                array = found.chunk(0) if found.num_chunks else pa.array([], found.type)
                kind = str(array.type)
                value_type = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
                if pa.types.is_nested(value_type):
                    raise ApiError(422, "not_a_column", f"{name} holds {kind[:80]}, not values", {"column": name})
                if not array.null_count and kind.startswith(("int", "uint", "float", "double", "timestamp")):
                    return array.to_numpy(zero_copy_only=False)
                return array
        return None

    named = {"truth": ("y_true", "truth"), "pred": ("y_pred", "pred"), "score": ("score",), "id": ("id",)}
    try:
        segments = {name: column(name) for name in by if name in table.column_names}
        return Table(**{name: column(*names) for name, names in named.items()}, time=column("time"), by=segments)
    except (pa.ArrowException, KeyError) as error:
        raise ApiError(422, "bad_arrow", f"a column is there twice: {error}") from None


def make_batch(
    kind: int, table: Table, plan: Plan, received: float, *, max_rows: int, skip: bool = False
) -> tuple[Batch, list[Rejected]]:
    """The batch of a body, and the rows that were set aside; without `skip` a bad row refuses the whole."""
    reads: dict[str, Read] = {}
    if kind != PREDICTIONS:
        reads["y_true"] = read_labels(_needed(table.truth, "y_true"), "y_true", plan)
    if kind != LABELS:
        if table.pred is None and table.score is not None:
            reads["y_pred"] = read_scores(table.score, plan)
        else:
            reads["y_pred"] = read_labels(_needed(table.pred, "y_pred"), "y_pred", plan)
    if table.id is not None or kind != EVENTS:
        reads["id"] = read_ids(_needed(table.id, "id"))
    if table.time is not None:
        reads["time"] = read_times(table.time, received)
    names: list[str] = []
    if plan.by and kind != LABELS:
        for name in plan.by:
            _needed((table.by or {}).get(name), f"by.{name}")
        names, reads["by"] = read_segments(table.by or {}, plan.by)
    problems: Problems = {}
    for read in reads.values():
        for row, told in read.problems.items():
            problems.setdefault(row, told)
    if problems and not skip:
        raise _refusal(problems)
    sizes = {name: read.size for name, read in reads.items()}
    if len({*sizes.values()}) > 1:
        if problems:
            raise _refusal(problems)
        shown = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise ApiError(422, "lengths_differ", f"columns of different lengths: {shown}", {"lengths": sizes})
    size = next(iter(sizes.values()))
    if size > max_rows:
        raise ApiError(413, "too_many_rows", f"{size:,} rows; at most {max_rows:,} are possible", {"limit": max_rows})
    batch = Batch(kind, received, size)
    if "y_true" in reads:
        batch.truths = reads["y_true"].values.tobytes()
    if "y_pred" in reads:
        batch.guesses = reads["y_pred"].values.tobytes()
    if "id" in reads:
        batch.ids = reads["id"].values
    if "time" in reads:
        batch.times = reads["time"].values.astype("<f8").tobytes()
    if "by" in reads:
        batch.segments, batch.segment_codes = names, reads["by"].values.astype("<u4").tobytes()
    if not problems:
        return batch, []
    return _without(batch, sorted(problems)), _set_aside(problems, table)


def _needed(column: Any, name: str) -> Any:
    if column is None:
        raise ApiError(422, "no_column", f"the column {name} is missing", {"column": name})
    if is_json(column) and memoryview(column)[0] != ord("["):
        raise ApiError(422, "not_a_column", f"{name} is not a list of values", {"column": name})
    return column


def _refusal(problems: Problems) -> ApiError:
    row = min(problems)
    column, code, problem = problems[row]
    more = [{"row": other, "column": problems[other][0]} for other in sorted(problems)[1:SHOWN]]
    where = {"row": row, "column": column, "bad_rows": len(problems), **({"more": more} if more else {})}
    return ApiError(422, code, problem, where)


def _without(batch: Batch, bad: list[int]) -> Batch:
    """The batch without its bad rows."""
    keep = np.ones(batch.size, np.bool_)
    keep[bad] = False
    rows = np.flatnonzero(keep)
    made = Batch(batch.kind, batch.received, int(rows.size))
    for name, kind in (("truths", "u1"), ("guesses", "u1"), ("times", "<f8"), ("segment_codes", "<u4")):
        if column := getattr(batch, name):
            setattr(made, name, np.frombuffer(column, kind)[rows].tobytes())
    made.segments = batch.segments
    if made.segment_codes:  # a segment that only bad rows had does not begin
        used, codes = np.unique(np.frombuffer(made.segment_codes, "<u4"), return_inverse=True)
        made.segments = [batch.segments[code] for code in used.tolist()]
        made.segment_codes = codes.astype("<u4").tobytes()
    if batch.ids is not None:
        made.ids = read_ids(msgspec.Raw(msgspec.json.encode(batch.ids.pick(rows)))).values
        assert isinstance(made.ids, Ids)
    return made


def _set_aside(problems: Problems, table: Table) -> list[Rejected]:
    """The bad rows, with what they held."""
    given = {"y_true": table.truth, "y_pred": table.pred, "score": table.score, "id": table.id, "time": table.time}
    given |= table.by or {}
    columns = {name: listed(column, name) for name, column in given.items() if column is not None}
    found = []
    for row in sorted(problems):
        column, code, problem = problems[row]
        values = {name: values[row] for name, values in columns.items() if row < len(values)}
        found.append(Rejected(row, column, code, problem, values))
    return found

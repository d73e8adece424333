"""Columns of events as messages hold them: lists of JSON, Arrow arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates.bank.keys import canonical
from fourrates.engines.kafka.chunk import Message, Refused
from fourrates.io import Events, InputError
from fourrates.io.events import listed
from fourrates.io.formats import ROWS, arrow_tables
from fourrates.io.opening import first_line, pyarrow

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_TABLES = 1_000  # batches of Arrow in one message


@dataclass(frozen=True, slots=True)
class Part:
    """Columns of one length, and how some of their rows are written as a message again."""

    data: Mapping[str, Any]
    size: int
    encode: Callable[[Sequence[int]], bytes]


@dataclass(frozen=True, slots=True)
class Parts:
    """Messages, the columns they hold together, and what could not be read.

    Attributes
    ----------
    messages : list of messages
        Those that hold events.
    rows : array of int64
        How many each of them has.
    data : mapping
        Columns of all events.
    own : list of Part
        What each message holds by itself; empty where each has one event.
    next : int
        The offset after the last message, whether it could be read or not.
    refused : list of Refused
        Messages that could not be read.
    """

    messages: list[Message]
    rows: npt.NDArray[np.int64]
    data: Mapping[str, Any]
    own: list[Part]
    next: int
    refused: list[Refused]

    def joins(self, other: Parts) -> bool:
        """Whether the columns of others can follow these."""
        return not self.data or not other.data or _kinds(self.data) == _kinds(other.data)


def join_parts(several: list[Parts]) -> Parts:
    """What follows each other, as one."""
    if len(several) == 1:
        return several[0]
    filled = [one.data for one in several if one.data]
    data = {name: join_columns([one[name] for one in filled]) for name in filled[0]} if filled else {}
    return Parts(
        [message for one in several for message in one.messages],
        np.concatenate([one.rows for one in several]),
        data,
        [part for one in several for part in one.own],
        several[-1].next,
        [refused for one in several for refused in one.refused],
    )


def _kinds(data: Mapping[str, Any]) -> list[Any]:
    return [getattr(column, "dtype", None) or getattr(column, "type", None) for column in data.values()]


def json_part(record: Mapping[str, Any], fields: Sequence[str]) -> Part:
    """Columns as lists, of one length."""
    for name in fields:
        if name not in record:
            raise InputError(f"no field {name!r}; there are {listed(list(record))}")
        if type(record[name]) is not list:
            raise InputError(f"{record[name]!r:.80} in column {name!r} where other columns have lists")
    lengths = {name: len(record[name]) for name in fields}
    if len({*lengths.values()}) > 1:
        raise InputError("columns of different lengths: " + ", ".join(f"{name} {n:,}" for name, n in lengths.items()))
    length = next(iter(lengths.values()))

    def encode(rows: Sequence[int]) -> bytes:
        whole = {name: value for name, value in record.items() if type(value) is list and len(value) == length}
        return json.dumps({name: [value[row] for row in rows] for name, value in whole.items()}).encode()

    return Part({name: record[name] for name in fields}, length, encode)


def arrow_part(value: bytes, events: Events) -> Part:
    """Columns of an Arrow stream, those that `events` asks for, validated before a value of theirs is read."""
    pa = pyarrow("pyarrow")
    try:
        with pa.ipc.open_stream(value) as reader:
            tables = [*islice(arrow_tables(reader, "Arrow", events), MOST_TABLES + 1)]
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"a damaged Arrow stream ({first_line(error)})") from None
    size = sum(table.size for table in tables)
    if size > ROWS or len(tables) > MOST_TABLES:
        raise InputError(f"more than {ROWS:,} events, or more than {MOST_TABLES:,} batches of them, in one message")
    names = events.columns.used()
    data = {name: join_columns([table.data[name] for table in tables]) for name in names} if tables else {}

    def encode(rows: Sequence[int]) -> bytes:
        sink = pa.BufferOutputStream()
        picked = pa.table({name: pick(column, np.array(rows)) for name, column in data.items()})
        with pa.ipc.new_stream(sink, picked.schema) as writer:
            writer.write_table(picked)
        return bytes(sink.getvalue().to_pybytes())

    return Part(data, size, encode)


def join_columns(columns: list[Any]) -> Any:
    """The columns of several batches as one."""
    if len(columns) == 1:
        return columns[0]
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    pa = pyarrow("pyarrow")
    return pa.chunked_array([*map(pa.array, columns)]).unify_dictionaries().combine_chunks()


def pick(column: Any, rows: npt.NDArray[np.int64]) -> Any:
    """Some rows of a column."""
    if isinstance(column, list):
        return [column[row] for row in rows.tolist()]
    return column[rows] if isinstance(column, np.ndarray) else column.take(pyarrow("pyarrow").array(rows))


def key_problems(keys: Any, name: str | None) -> tuple[dict[int, str], set[int]]:
    """Which keys cannot be one and why, and which are missing."""
    if isinstance(keys, np.ndarray):
        return {}, set()
    if not isinstance(keys, list):
        if not keys.null_count and not str(keys.type).startswith(("float", "double", "halffloat")):
            return {}, set()
        keys = keys.to_pylist()
    wrong: dict[int, str] = {}
    gone: set[int] = set()
    if {*map(type, keys)} <= {str, int}:
        return wrong, gone
    for row, key in enumerate(keys):
        if key is None or (type(key) is float and key != key):
            gone.add(row)
            continue
        try:
            canonical(key)
        except (TypeError, ValueError):
            wrong[row] = f"{key!r:.80} in column {name!r} cannot be a key"
    return wrong, gone

"""Messages to events: JSON with one event or with columns, and Arrow streams.

An unreadable message or unusable event is rejected with its offset and the reason; the others become events. Each
message is read independently of its neighbours, so a partition read again after a restart, in other portions, gives the
same events.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.events.arrow import read_stream
from fourrates.events.batch import Batch, Table
from fourrates.events.clock import Clock
from fourrates.events.columns import checked_column, json_number, pick, pyarrow
from fourrates.events.door import Columns, Door
from fourrates.events.labels import LabelEncoder
from fourrates.events.rows import UNLABELLED, Bad, BadRows, InputError, check_bad
from fourrates.io.events import listed
from fourrates.labels import Labels

if TYPE_CHECKING:
    import numpy.typing as npt
    from confluent_kafka import Message

    Integers = npt.NDArray[np.int64]

KEY, TIME = "_key", "_time"  # columns that every message has, its own key and time
ARROW = b"\xff\xff\xff\xff"  # how a stream of Arrow batches begins; no JSON does
EVENT, LISTS = "event", "lists"  # the forms of JSON; Arrow has types
JOINED = 400_000  # events of several messages that a bank takes together
MOST_EVENTS = 1 << 18  # in one message
MOST_BYTES = 1 << 28  # that an Arrow message may unpack to


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message, or events of one, that cannot be used."""

    offset: int
    problem: str  # the reason and the place
    value: bytes | None  # the message as received, or columns of its bad events
    key: bytes | None = None
    events: int = 1  # that are rejected


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events of one partition, in order, from whole messages; the row of each is the offset of its message."""

    partition: int
    next: int  # the offset after the last message, to resume from once all of it has been used
    events: Batch
    names: Sequence[str] = ()  # of the segments that `events.keys` count
    rejected: list[RejectedMessage] = field(default_factory=list)
    unlabelled: int = 0  # events without a true label, which were left out

    def __len__(self) -> int:
        return self.events.truths.size


class Reader:
    """Messages to chunks of events.

    Times with a zone are converted to UTC; `utc` records whether there were any. A bad message or event is passed on
    with its reason (``bad="keep"``), only counted, or raises an InputError.
    """

    def __init__(
        self, labels: Labels, columns: Columns | None = None, *, threshold: float | None = None, bad: Bad = "keep"
    ) -> None:
        asked = columns or Columns()
        pred = asked.pred or ("y_pred" if asked.score is None else None)
        self.columns = replace(asked, truth=asked.truth or "y_true", pred=pred)
        check_bad(bad)
        if asked.score is not None and len(labels.values) != 2:
            raise InputError(f"a score goes with two labels, not with {len(labels.values)}")
        self.bad, self.utc = bad, False
        self._encoder, self._threshold = LabelEncoder(labels), 0.5 if threshold is None else threshold
        self._doors: dict[int, Door] = {}  # of partitions, each with its own clock
        self._fields = [name for name in self.columns.used() if name not in (KEY, TIME)]
        self._packers = [self._packer(name) for name in self._fields]
        names = {f"_{at}": name for at, name in enumerate(self._fields)}
        kinds = (int | str | list[int | str] if pack is _whole_numbers else Any for pack in self._packers)
        needed = msgspec.defstruct("Needed", [*zip(names, kinds, strict=True)], rename=names, gc=False)
        self._decode = msgspec.json.Decoder(needed, float_hook=json_number).decode
        self._values = attrgetter(*names)

    def _packer(self, name: str) -> Callable[[list[Any]], Any]:
        """The shortest form of a column of this name, if it fits."""
        if self._encoder.is_small and name in (self.columns.truth, self.columns.pred):
            return bytes
        return _whole_numbers if name in self.columns.by_names else list

    def _door(self, clock: Clock | None = None) -> Door:
        return Door(self._encoder, self.columns, self._threshold, "keep", clock=clock)

    def begin(self, partition: int, clock: Clock | None) -> None:
        """Begin a partition with its clock, which its times may settle."""
        self._doors[partition] = self._door(clock)

    def read(self, topic: str, partition: int, messages: Sequence[Message]) -> Iterator[Chunk]:
        source = f"{topic}/{partition}"
        portion = _Portion()
        for message in messages:
            try:
                kind, count, columns = self._columns_of(message.value())
            except InputError as error:
                portion.reject(message, f"{source}, offset {message.offset()}: {error}")
                continue
            if portion.counts and (kind != portion.kind or portion.size >= JOINED):
                yield self._chunk(source, partition, portion)
                portion = _Portion()
            portion.add(message, kind, count, columns)
        if portion.last is not None:
            yield self._chunk(source, partition, portion)

    # Messages to columns ------------------------------------------------------------------------------------

    def _columns_of(self, value: bytes | None) -> tuple[Any, int, Sequence[Any]]:
        """The kind of a message, the number of its events, and for each field a value, or a column of them."""
        if value is None:
            raise InputError("no value")
        if value.startswith(ARROW):
            return self._arrow_columns(value)
        packers: Iterable[Callable[[list[Any]], Any]] = self._packers
        try:
            values = self._values(self._decode(value))
        except (ValueError, RecursionError):  # a key of another type, or no such record
            record, packers = _record(value), repeat(list)
            if missing := [name for name in self._fields if name not in record]:
                raise InputError(f"no field {missing[0]!r}; there are {listed(list(record))}") from None
            values = tuple(record[name] for name in self._fields)
        if type(values[0]) is not list:
            return EVENT, 1, values
        if {*map(type, values)} != {list} or len({*map(len, values)}) > 1:
            raise InputError(self._uneven(values))
        return LISTS, len(values[0]), [*map(_packed, packers, values)]

    def _uneven(self, values: Sequence[Any]) -> str:
        columns = dict(zip(self._fields, values, strict=True))
        for name, column in columns.items():
            if type(column) is not list:
                return f"{column!r:.80} in column {name!r} while other columns have lists"
        sizes = ", ".join(f"{name} {len(column):,}" for name, column in columns.items())
        return f"columns of different lengths: {sizes}"

    def _arrow_columns(self, value: bytes) -> tuple[Any, int, Sequence[Any]]:
        """The columns of an Arrow stream, each checked and validated before a value of it is read."""
        table = read_stream(value, MOST_EVENTS, MOST_BYTES)
        names = table.column_names
        for name in self._fields:
            if names.count(name) != 1:
                there = "twice the" if name in names else "no"
                raise InputError(f"{there} column {name!r}; there are {listed(names)}")
        columns = [checked_column(table[name], name) for name in self._fields]
        return tuple(map(_kind, columns)), table.num_rows, columns

    # Columns to events --------------------------------------------------------------------------------------

    def _chunk(self, source: str, partition: int, portion: _Portion) -> Chunk:
        door = self._doors.setdefault(partition, self._door())
        counts = np.array(portion.counts, np.int64)
        offsets = np.repeat(np.array([message.offset() for message in portion.messages], np.int64), counts)
        data = portion.columns(self._fields)
        if self.columns.by == KEY:
            data[KEY] = _spread([_text(message.key()) for message in portion.messages], counts)
        if self.columns.time == TIME:
            moments = _spread([*map(_milliseconds, portion.messages)], counts)
            data[TIME] = pyarrow("pyarrow").array(moments, pyarrow("pyarrow").timestamp("ms", "UTC"))
        reading = door.reading(Table(data, "", np.arange(offsets.size), sound=True))
        rejected = sorted(
            [*portion.rejected, *self._rejected(source, portion, counts, reading.bad)], key=attrgetter("offset")
        )
        if rejected and self.bad == "reject":
            raise InputError(rejected[0].problem)
        self.utc |= reading.utc
        return Chunk(
            partition,
            portion.last.offset() + 1 if portion.last is not None else 0,
            door.batch(reading, Table(data, source, offsets)),
            door.names,
            rejected,
            reading.bad.counts[UNLABELLED],
        )

    def _rejected(self, source: str, portion: _Portion, counts: Integers, bad: BadRows) -> Iterator[RejectedMessage]:
        ends, rows = np.cumsum(counts), bad.rejected_rows()
        for at, several in groupby(rows.tolist(), lambda row: int(np.searchsorted(ends, row, "right"))):
            message, count, own = portion.messages[at], portion.counts[at], [*several]
            first = int(ends[at]) - count
            event = f", event {own[0] - first + 1}" if count > 1 else ""
            more = f" (and {len(own) - 1:,} more events of it)" if len(own) > 1 else ""
            problem = f"{source}, offset {message.offset()}{event}: {bad[own[0]].problem}{more}"
            value = message.value()
            if value is not None and len(own) < count:
                value = self._part(value, [row - first for row in own], count)
            yield RejectedMessage(message.offset(), problem, value, message.key(), len(own))

    def _part(self, value: bytes, rows: list[int], count: int) -> bytes:
        """Some events of a message, as one of its form; the whole of it if it cannot be divided."""
        if not value.startswith(ARROW):
            try:
                record = _record(value)
            except InputError:  # in a field that is not read
                return value
            columns = {name: column for name, column in record.items() if type(column) is list}
            some = {name: [column[row] for row in rows] for name, column in columns.items() if len(column) == count}
            return msgspec.json.encode(some)
        pa = pyarrow("pyarrow")
        _, _, checked = self._arrow_columns(value)
        picked = pa.table([pick(column, np.array(rows)) for column in checked], self._fields)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, picked.schema) as writer:
            writer.write_table(picked)
        return bytes(sink.getvalue().to_pybytes())


class _Portion:
    """Messages of one kind that follow each other, and those between them that cannot be read."""

    def __init__(self) -> None:
        self.kind: object = None
        self.messages: list[Message] = []
        self.counts: list[int] = []  # events of each message
        self.parts: list[Sequence[Any]] = []  # the values of each in each field
        self.size = 0
        self.last: Message | None = None
        self.rejected: list[RejectedMessage] = []

    def add(self, message: Message, kind: object, count: int, part: Sequence[Any]) -> None:
        self.kind, self.last = kind, message
        self.messages.append(message)
        self.counts.append(count)
        self.parts.append(part)
        self.size += count

    def reject(self, message: Message, problem: str) -> None:
        self.last = message
        self.rejected.append(RejectedMessage(message.offset(), problem, message.value(), message.key()))

    def columns(self, fields: Sequence[str]) -> dict[str, Any]:
        parts = map(list, zip(*self.parts, strict=True)) if self.parts else ([] for _ in fields)
        return dict(zip(fields, parts if self.kind == EVENT else map(_joined, parts), strict=True))


_decode = msgspec.json.Decoder(float_hook=json_number).decode


def _record(value: bytes) -> dict[str, Any]:
    try:
        record = _decode(value)
    except (ValueError, RecursionError) as error:
        raise InputError(f"neither JSON nor Arrow ({error})") from None
    if type(record) is not dict:
        raise InputError(f"{type(record).__name__}, not an object with named values")
    return record


def _kind(column: Any) -> object:
    """The key that columns must share to be joined."""
    return getattr(column, "dtype", None) or getattr(column, "type", None)


def _packed(pack: Callable[[list[Any]], Any], column: list[Any]) -> Any:
    try:
        return pack(column)
    except (TypeError, ValueError, struct.error):
        return column


def _whole_numbers(column: list[Any]) -> memoryview:
    return memoryview(struct.pack(f"{len(column)}q", *column)).cast("q")


def _joined(columns: list[Any]) -> Any:
    kinds = {*map(type, columns)}
    if kinds in ({memoryview}, {bytes}):
        return np.frombuffer(b"".join(columns), np.int64 if kinds == {memoryview} else np.uint8)
    if kinds <= {list, memoryview, bytes}:
        return [*chain.from_iterable(columns)]
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    if len(columns) == 1:
        return columns[0]
    return pyarrow("pyarrow").chunked_array(columns).unify_dictionaries().combine_chunks()


def _spread(values: list[Any], counts: Integers) -> list[Any]:
    return [value for value, count in zip(values, counts.tolist(), strict=True) for _ in range(count)]


def _text(key: bytes | None) -> str | None:
    """A message's key as text; keys that are not UTF-8 never collide with others."""
    return None if key is None else key.decode("utf-8", "surrogateescape")


def _milliseconds(message: Message) -> int | None:
    kind, stamp = message.timestamp()
    return stamp if kind else None

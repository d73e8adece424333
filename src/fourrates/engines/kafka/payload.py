"""Messages to events: JSON with one event or with columns, and Arrow IPC.

A message that cannot be read, and an event in it that cannot be used, is :class:`Refused` with its offset and what is
wrong with it; the others are taken. What a message means does not depend on its neighbours: a partition that is read
again after a restart, in other portions, gives the same events.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from fourrates.engines.kafka.chunk import Chunk, Message, Refused
from fourrates.engines.kafka.columns import Parts, arrow_part, join_parts, json_part, key_problems, pick
from fourrates.engines.kafka.plain import Plain, PlainReader
from fourrates.io import Columns, Events, InputError, Missing
from fourrates.io.events import listed
from fourrates.io.table import Table
from fourrates.io.values import UNKNOWN, Words, times_of
from fourrates.labels import Labels

KEY, TIME = "_key", "_time"  # columns that every message has: its own key and its own time
ARROW = b"\xff\xff\xff\xff"  # how a stream of Arrow batches begins; no JSON does
FEW = 64  # messages that are read value by value if one of them is not plain; of more, each half is tried by itself
TEXT = 1 << 22  # bytes of messages that are read at a time
JOINED = 400_000  # events of several messages that a bank takes together

_NONE = np.empty(0, np.uint16)


class Reader:
    """Messages to chunks of events.

    Parameters
    ----------
    labels : Labels
        The classes.
    columns : Columns
        Which field is what. Nothing is guessed, since other members of the group might guess differently. The names
        ``_key`` and ``_time`` stand for the message's own key and time.
    threshold : float, optional
        With a score: from which on the positive label is predicted; 0.5 if not given.
    missing : {"refuse", "skip"}
        What becomes of an event whose label, prediction or key is null: it is refused, or counted and left out.
    """

    def __init__(
        self,
        labels: Labels,
        columns: Columns | None = None,
        *,
        threshold: float | None = None,
        missing: Missing = "refuse",
    ) -> None:
        asked = columns or Columns()
        guess = asked.guess or ("y_pred" if asked.score is None else None)
        self.columns = Columns(asked.truth or "y_true", guess, asked.score, asked.time, asked.by)
        self.missing = missing
        if self.columns.score is not None and len(labels.values) != 2:
            raise InputError(f"a score goes with two labels, not with {len(labels.values)}")
        coded = Columns(self.columns.truth, guess, asked.score, asked.time)  # keys are the bank's to look at
        self._events = Events(None, coded, labels, threshold, "skip")
        self._events.settle(coded)
        own = [name for name in self.columns.used() if name not in (KEY, TIME)]  # the labels come first
        self._fields = list(dict.fromkeys(own))
        real = {kind: name for kind in Columns.__slots__ if (name := getattr(self.columns, kind)) in self._fields}
        self._arrow = Events(None, Columns(**real), labels, threshold)
        self._arrow.settle(self._arrow.columns)
        self._nonce = secrets.token_hex(16)
        self._plain = self._plain_reader(labels)

    def _plain_reader(self, labels: Labels) -> PlainReader | None:
        """What reads the usual messages quickly, if they can be usual."""
        truth, guess = self.columns.truth, self.columns.guess
        if truth not in self._fields or guess not in self._fields:
            return None
        words = Words(labels)

        def code(value: Any) -> int:
            found = words.code(value)
            return -1 if found == UNKNOWN or words.is_missing(value) else found

        others = [name for name in (self.columns.by, self.columns.time) if name in self._fields]
        return PlainReader(str(truth), str(guess), [str(name) for name in others], labels.values, code)

    @property
    def utc(self) -> bool:
        """Whether times carry a zone; they are then given in UTC."""
        return self._events.utc

    def read(self, topic: str, partition: int, messages: Sequence[Message]) -> Iterator[Chunk]:
        """The events of messages of one partition, in their order."""
        source = f"{topic}/{partition}"
        texts = [message.value() for message in messages]
        end = 0
        for is_arrow, run in groupby((text or b"").startswith(ARROW) for text in texts):
            start, end = end, end + len([*run])
            part = slice(start, end)
            if is_arrow:
                yield from self._read_arrow(source, partition, messages[part], texts[part])
            else:
                yield from self._read(source, partition, messages[part], texts[part])

    def _read_arrow(
        self, source: str, partition: int, messages: Sequence[Message], texts: list[bytes | None]
    ) -> Iterator[Chunk]:
        """Streams of Arrow batches; those that follow each other as one, which reader and bank take faster."""
        gathered: list[Parts] = []
        size = 0
        for message, text in zip(messages, texts, strict=True):
            parts = self._columns_of(message, text or b"")
            if gathered and (size >= JOINED or not gathered[0].joins(parts)):
                yield self._chunk(source, partition, join_parts(gathered))
                gathered, size = [], 0
            gathered.append(parts)
            size += int(parts.rows.sum())
        if gathered:
            yield self._chunk(source, partition, join_parts(gathered))

    def _read(
        self, source: str, partition: int, messages: Sequence[Message], texts: list[bytes | None]
    ) -> Iterator[Chunk]:
        """Messages that are all plain together; others value by value, once there are few of them."""
        many = len(messages) > FEW
        short = not many or sum(len(text or b"") for text in texts) <= TEXT
        plain = self._plain.read(texts) if self._plain is not None and messages and short else None
        chunk = None if plain is None else self._plain_chunk(partition, messages, plain)
        if chunk is not None:
            yield chunk
        elif many and self._plain is not None:
            half = len(messages) // 2
            for part in (slice(half), slice(half, None)):
                yield from self._read(source, partition, messages[part], texts[part])
        else:
            for parts in self._parts(messages, texts):
                yield self._chunk(source, partition, parts)

    def _plain_chunk(self, partition: int, messages: Sequence[Message], plain: Plain) -> Chunk | None:
        """The events of plain messages; None if their keys or times need a closer look."""
        by, time = self.columns.by, self.columns.time
        keys = times = None
        if by is not None:
            keys = plain.others[by] if by != KEY else _spread([_text(one.key()) for one in messages], plain.rows)
            if any(key_problems(keys, by)):
                return None
        if time is not None:
            given = plain.others[time] if time != TIME else _spread([*map(_milliseconds, messages)], plain.rows)
            try:
                times, utc = times_of(Table({time: given}, "", np.arange(plain.truths.size)), time)
            except InputError:
                return None
            self._events.utc |= utc
        offsets = np.repeat(np.array([message.offset() for message in messages], np.int64), plain.rows)
        return Chunk(partition, messages[-1].offset() + 1, plain.truths, plain.guesses, keys, offsets, times)

    # Messages to columns ------------------------------------------------------------------------------------

    def _parts(self, messages: Sequence[Message], texts: list[bytes | None]) -> Iterator[Parts]:
        """Messages with one event each go together, as far as they follow each other; any other goes by itself."""
        decoded = self._decode(texts)
        run: list[tuple[Message, dict[str, Any]]] = []
        truth = self._fields[0]
        for message, record in zip(messages, decoded, strict=True):
            if type(record) is dict and type(record.get(truth)) is not list:
                run.append((message, record))
                continue
            if run:
                yield self._events_of(run)
                run = []
            yield self._columns_of(message, record)
        if run:
            yield self._events_of(run)

    def _decode(self, values: list[bytes | None]) -> list[dict[str, Any] | str]:
        """What each message holds: an object, or what is wrong with it."""
        mark = f'"{self._nonce}"'
        try:  # All at once. The mark between them cannot be foreseen: no message passes for two, or two for one.
            together = json.loads(b"[" + f",{mark},".encode().join(values) + b"]")  # type: ignore[arg-type]
            if len(together) == 2 * len(values) - 1:
                records: list[dict[str, Any] | str] = together[::2]
                if set(together[1::2]) <= {self._nonce} and all(type(record) is dict for record in records):
                    return records
        except (ValueError, TypeError, RecursionError):  # TypeError: no value at all, or a list where a mark belongs
            pass
        return [_decode_one(value) for value in values]

    def _events_of(self, run: list[tuple[Message, dict[str, Any]]]) -> Parts:
        """Messages with one event each."""
        refused: list[Refused] = []
        try:
            data = {name: [record[name] for _, record in run] for name in self._fields}
        except KeyError:
            refused = [self._lacking(message, record) for message, record in run if not self._has_all(record)]
            last, run = run[-1][0], [(message, record) for message, record in run if self._has_all(record)]
            data = {name: [record[name] for _, record in run] for name in self._fields}
        else:
            last = run[-1][0]
        messages = [message for message, _ in run]
        return Parts(messages, np.ones(len(run), np.int64), data, [], last.offset() + 1, refused)

    def _has_all(self, record: dict[str, Any]) -> bool:
        return all(name in record for name in self._fields)

    def _lacking(self, message: Message, record: dict[str, Any]) -> Refused:
        gone = next(name for name in self._fields if name not in record)
        return _refused(message, f"no field {gone!r}; there are {listed(list(record))}")

    def _columns_of(self, message: Message, record: dict[str, Any] | bytes | str) -> Parts:
        """A message with many events, or one that cannot be read."""
        after = message.offset() + 1
        try:
            if type(record) is bytes:
                part = arrow_part(record, self._arrow)
            elif type(record) is dict:
                part = json_part(record, self._fields)
            else:
                raise InputError(str(record))
        except InputError as error:
            return Parts([], np.empty(0, np.int64), {}, [], after, [_refused(message, str(error))])
        return Parts([message], np.array([part.size]), part.data, [part], after, [])

    # Columns to events --------------------------------------------------------------------------------------

    def _chunk(self, source: str, partition: int, parts: Parts) -> Chunk:
        ends = np.cumsum(parts.rows)
        size = int(ends[-1]) if ends.size else 0
        offsets = np.repeat(np.array([message.offset() for message in parts.messages], np.int64), parts.rows)
        if not size:
            refused = [*map(_placed(source), parts.refused)]
            return Chunk(partition, parts.next, _NONE, _NONE, None, offsets, None, refused)
        data = dict(parts.data)
        if TIME in self.columns.used():
            data[TIME] = _spread([*map(_milliseconds, parts.messages)], parts.rows)
        if self.columns.by == KEY:
            data[KEY] = _spread([_text(message.key()) for message in parts.messages], parts.rows)

        def locate(row: int) -> str:
            first = int((ends - parts.rows)[np.searchsorted(ends, row, "right")])
            return f"offset {offsets[row]}" + (f", event {row - first + 1}" if parts.own else "")

        problems: dict[int, str] = {}
        table = Table(data, source, np.arange(size), (), locate)
        rows, truths, guesses, times = self._code(table, problems)
        skipped = 0
        keys = None if self.columns.by is None else data[self.columns.by]
        if rows.size < size or keys is not None:
            wrong, gone = ({}, set()) if keys is None else key_problems(keys, self.columns.by)
            problems |= {row: f"{table.place(row)}: {what}" for row, what in wrong.items() if row not in problems}
            lost = gone | ({*range(size)} - {*rows.tolist()} if rows.size < size else set()) - problems.keys()
            lost -= problems.keys()
            if self.missing == "refuse":
                problems |= {row: f"{table.place(row)}: {self._what_is_missing(data, row)}" for row in lost}
            skipped = 0 if self.missing == "refuse" else len(lost)
            if wrong or gone:
                kept = np.array([row not in wrong and row not in gone for row in rows.tolist()], np.bool_)
                rows, truths, guesses = rows[kept], truths[kept], guesses[kept]
                times = None if times is None else times[kept]
            keys = keys if keys is None or rows.size == size else pick(keys, rows)
        refused = [*map(_placed(source), parts.refused), *self._refuse(parts, problems)]
        refused.sort(key=lambda one: one.offset)
        offsets = offsets if rows.size == size else offsets[rows]
        return Chunk(partition, parts.next, truths, guesses, keys, offsets, times, refused, skipped)

    def _code(self, table: Table, problems: dict[int, str]) -> tuple[Any, Any, Any, Any]:
        """Rows that are events, their codes and times; those that cannot be are found by halving."""
        try:
            batch = next(self._events.batch(table), None)
        except InputError as error:
            if table.size == 1:
                problems[int(table.rows[0])] = str(error).partition("; if these are the labels")[0]
                batch = None
            else:
                half = table.size // 2
                return _together(self._code(_cut(table, side), problems) for side in (slice(half), slice(half, None)))
        if batch is None:
            return np.empty(0, np.int64), _NONE, _NONE, None
        return batch.rows, batch.truths, batch.guesses, batch.times

    def _what_is_missing(self, data: dict[str, Any], row: int) -> str:
        from fourrates.io.values import is_missing, item

        columns = self.columns
        for name in (columns.truth, columns.guess, columns.score, columns.by):
            if name is not None and is_missing(item(data[name], row)):
                return f"the value in column {name!r} is missing"
        return "a value is missing"

    def _refuse(self, parts: Parts, problems: dict[int, str]) -> Iterator[Refused]:
        """Refused events by message."""
        if not parts.own:
            for row in sorted(problems):
                yield _refused(parts.messages[row], problems[row])
            return
        ends = np.cumsum(parts.rows)
        for which, several in groupby(sorted(problems), key=lambda row: int(np.searchsorted(ends, row, "right"))):
            message, rows = parts.messages[which], [*several]
            more = f" (and {len(rows) - 1:,} more events of it)" if len(rows) > 1 else ""
            rest = parts.own[which].encode([row - int(ends[which] - parts.rows[which]) for row in rows])
            yield Refused(message.offset(), problems[rows[0]] + more, rest, message.key(), len(rows))


def _decode_one(value: bytes | None) -> dict[str, Any] | str:
    if value is None:
        return "no value"
    try:
        record = json.loads(value)
    except (ValueError, RecursionError) as error:
        return f"neither JSON nor Arrow ({error})"
    return record if type(record) is dict else f"{type(record).__name__}, not an object with named values"


def _refused(message: Message, problem: str) -> Refused:
    return Refused(message.offset(), problem, message.value(), message.key())


def _placed(source: str) -> Callable[[Refused], Refused]:
    """Says where a message stands that was refused as a whole."""
    return lambda one: Refused(
        one.offset, f"{source}, offset {one.offset}: {one.problem}", one.value, one.key, one.events
    )


def _text(key: bytes | None) -> str | None:
    """A message's key as a name; what is not UTF-8 stays apart from everything that is."""
    return None if key is None else key.decode("utf-8", "surrogateescape")


def _spread(values: list[Any], rows: Any) -> list[Any]:
    """What belongs to messages, for each of their events."""
    if len(values) == rows.sum() and rows.all():
        return values
    return [value for value, count in zip(values, rows.tolist(), strict=True) for _ in range(count)]


def _cut(table: Table, part: slice) -> Table:
    return Table(
        {name: column[part] for name, column in table.data.items()}, table.source, table.rows[part], (), table.locate
    )


def _together(parts: Iterator[tuple[Any, Any, Any, Any]]) -> tuple[Any, Any, Any, Any]:
    """Two halves as one; a half without events has no times."""
    halves = [half for half in parts if half[0].size] or [(np.empty(0, np.int64), _NONE, _NONE, None)]
    rows, truths, guesses, times = zip(*halves, strict=True)
    when = None if times[0] is None else np.concatenate(times)
    return np.concatenate(rows), np.concatenate(truths), np.concatenate(guesses), when


def _milliseconds(message: Message) -> int | None:
    kind, stamp = message.timestamp()
    return stamp if kind else None

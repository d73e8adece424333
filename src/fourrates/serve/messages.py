"""Messages of a topic to batches of a monitor: one row as JSON, columns as JSON, or an Arrow stream.

They mean what a request with the same content means. A message that cannot be read, and a row of one that cannot be
used, is set aside with its place; the others are taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from fourrates.engines.kafka.chunk import RejectedMessage
from fourrates.engines.kafka.reader import ARROW
from fourrates.events.columns import json_number
from fourrates.serve.batch import Batch
from fourrates.serve.bodies import ARROW_TYPES, Body, Limits, Rejected, Rejections, body_of_rows, read_rows, read_table
from fourrates.serve.columns import Plan
from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    from confluent_kafka import Message

COLUMNS = ("y_true", "truth", "y_pred", "pred", "score")  # a list in one of them makes a message columns
ROW = (*COLUMNS, "id", "time")
SHOWN = 2_000  # characters of an unreadable message that are kept with it
_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=json_number)


@dataclass(frozen=True, slots=True)
class Portion:
    """Messages of one partition, in order, and the batch they make.

    Attributes
    ----------
    partition, next : int
        The partition, and the offset after the last of the messages.
    batch : Batch
        Their rows.
    rejected : list of Rejected
        Rows that were set aside.
    refused : list of RejectedMessage
        The same by message, for a topic of dead letters.
    messages : sequence
        The messages.
    """

    partition: int
    next: int
    batch: Batch
    rejected: Rejections
    refused: list[RejectedMessage]
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A message and what it holds: a row, or columns; `shape` is alike for messages that can go together."""

    message: Message
    shape: object
    row: dict[str, Any] | None = None


class BatchReader:
    """Messages to batches.

    Parameters
    ----------
    kind : int
        EVENTS, PREDICTIONS or LABELS.
    plan : callable
        Returns how bodies for the monitor are read at present.
    max_rows, max_bytes : int
        Rows in one message, and bytes of it when it is unpacked, at most.
    now : callable
        Returns the time.
    """

    def __init__(
        self,
        kind: int,
        plan: Callable[[], Plan],
        max_rows: int,
        max_bytes: int = 64 << 20,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.kind, self.plan, self.limits, self.now = kind, plan, Limits(max_rows, max_bytes), now

    def read(self, topic: str, partition: int, messages: Sequence[Message]) -> Iterator[Portion]:
        """The batches of messages of one partition, in their order.

        Messages with one row go together as long as the same fields are there: what one means does not depend on its
        neighbours.
        """
        source = f"{topic}/{partition}"
        for _, run in groupby(map(_opened, messages), key=lambda one: one.shape):
            alike = [*run]
            if alike[0].row is not None:
                yield self._rows(source, partition, alike)
            else:
                yield self._columns(source, partition, alike[0].message)

    def refuse(self, topic: str, partition: int, message: Message, error: ApiError) -> Portion:
        """A message set aside as a whole."""
        return self._refused(f"{topic}/{partition}", partition, [message], error)

    def _rows(self, source: str, partition: int, run: list[_Opened]) -> Portion:
        plan, now = self.plan(), self.now()
        messages = [one.message for one in run]
        try:
            table = body_of_rows((one.row for one in run if one.row is not None), plan.by)
            if table.time is None:
                table.time = [_stamp(message, now) for message in messages]
            batch, _, bad = read_rows(
                self.kind, table, plan, now, limits=Limits(len(run), self.limits.bytes), skip=True
            )
        except ApiError as error:  # a field that none of them has
            return self._refused(source, partition, messages, error)
        rejected, refused = [], []
        for one in bad.several(len(run), unlabelled=True):  # a message each
            message = messages[one.row]
            problem = _placed(source, message, one.problem)
            values = {name: value for name, value in (run[one.row].row or {}).items() if value is not None}
            rejected.append(Rejected(0, one.column, one.code, problem, values))
            refused.append(RejectedMessage(message.offset(), problem, message.value(), message.key()))
        return self._portion(partition, batch, rejected, refused, messages)

    def _columns(self, source: str, partition: int, message: Message) -> Portion:
        plan, now = self.plan(), self.now()
        try:
            table = self._table(message, plan)
            batch, bad, _ = read_rows(self.kind, table, plan, now, limits=self.limits, skip=True)
        except ApiError as error:
            return self._refused(source, partition, [message], error)
        if table.time is None:
            batch.received = _stamp(message, now)
        rejected = Rejections((replace(one, problem=_placed(source, message, one.problem)) for one in bad), bad.total)
        refused = []
        if bad:
            more = f" (and {bad.total - 1:,} more rows of it)" if bad.total > 1 else ""
            rows = _as_columns(bad, plan.by)
            refused = [RejectedMessage(message.offset(), rejected[0].problem + more, rows, message.key(), bad.total)]
        return self._portion(partition, batch, rejected, refused, [message])

    def _table(self, message: Message, plan: Plan) -> Body:
        value = message.value()
        if value is None:
            raise ApiError(422, "no_value", "a message without a value")
        if value.startswith(ARROW):
            return read_table(value, ARROW_TYPES[0], plan.by, self.limits)
        table = read_table(value, "application/json", plan.by, self.limits)
        apart = [name for name in plan.by if name not in (table.by or {})]
        if apart:  # columns of `by` next to the others
            record = _decoder.decode(value)
            table.by = {**(table.by or {}), **{name: record[name] for name in apart if type(record.get(name)) is list}}
        return table

    def _refused(self, source: str, partition: int, messages: list[Message], error: ApiError) -> Portion:
        rejected, refused = [], []
        for message in messages:
            problem = _placed(source, message, error.message)
            column = str(error.where.get("column", ""))
            rejected.append(Rejected(0, column, error.code, problem, {"message": _text(message.value())}))
            refused.append(RejectedMessage(message.offset(), problem, message.value(), message.key()))
        return self._portion(partition, Batch(self.kind, self.now(), 0), rejected, refused, messages)

    def _portion(
        self,
        partition: int,
        batch: Batch,
        rejected: list[Rejected],
        refused: list[RejectedMessage],
        messages: Sequence[Message],
    ) -> Portion:
        kept = batch if batch.size else Batch(self.kind, batch.received, 0)
        counted = rejected if isinstance(rejected, Rejections) else Rejections(rejected)
        return Portion(partition, messages[-1].offset() + 1, kept, counted, refused, messages)


def _opened(message: Message) -> _Opened:
    """What a message holds; one that is no row goes by itself."""
    value = message.value()
    if value is not None and not value.startswith(ARROW):
        try:
            row = _decoder.decode(value)
        except (ValueError, RecursionError):
            pass
        else:
            if not any(type(row.get(name)) is list for name in COLUMNS):
                return _Opened(message, tuple(row.get(name) is not None for name in ROW), row)
    return _Opened(message, message.offset())


def _stamp(message: Message, now: float) -> float:
    """When a message was written, in seconds since 1970."""
    kind, milliseconds = message.timestamp()
    return min(milliseconds / 1e3, now) if kind else now


def _placed(source: str, message: Message, problem: str) -> str:
    return f"{source}, offset {message.offset()}: {problem}"


def _text(value: bytes | None) -> str | None:
    return None if value is None else value[:SHOWN].decode("utf-8", "replace")


def _as_columns(rows: list[Rejected], by: list[str]) -> bytes:
    """Rows that were set aside, as a message that can be sent again."""
    names = dict.fromkeys(name for row in rows for name in row.values)
    columns: dict[str, Any] = {name: [row.values.get(name) for row in rows] for name in names}
    inner = {name: columns.pop(name) for name in by if name in columns}
    try:
        return msgspec.json.encode({**columns, **({"by": inner} if inner else {})}, enc_hook=str)
    except (ValueError, OverflowError):  # integers beyond 64 bits, half of a surrogate pair
        return repr(columns | inner).encode("utf-8", "replace")

"""Messages of a topic to batches of a monitor, from one JSON row, JSON columns or an Arrow stream.

They mean the same as a request with that content. An unreadable message or unusable row is rejected with its place; the
others are taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from fourrates.detectors.sampling import DRAWN
from fourrates.engines.kafka.reader import ARROW, RejectedMessage
from fourrates.events.columns import json_number
from fourrates.serve.batch import Batch
from fourrates.serve.bodies import (
    ARROW_TYPES,
    Body,
    Limits,
    Plan,
    Rejected,
    Rejections,
    body_of_rows,
    make_batch,
    read_table,
    to_json,
)
from fourrates.serve.errors import ApiError

if TYPE_CHECKING:
    from confluent_kafka import Message

COLUMNS = ("y_true", "truth", "y_pred", "pred", "score")  # a list in one of them makes a message columns
ROW = (*COLUMNS, *DRAWN, "id", "time")
SHOWN = 2_000  # characters of an unreadable message that are kept with it
_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=json_number)


@dataclass(frozen=True, slots=True)
class Portion:
    """Messages of one partition, in order, and the batch they make."""

    partition: int
    messages: Sequence[Message]
    batch: Batch
    rejected: Rejections
    refused: list[RejectedMessage]  # the rejected rows by message, for a topic of dead letters

    @property
    def next(self) -> int:
        return int(self.messages[-1].offset() + 1)


class BatchReader:
    """Messages to batches of a kind; `plan` returns how bodies for the monitor are read at present."""

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

        One-row messages merge while their fields are the same, as the meaning of one must not depend on its neighbours.
        """
        opened = ((message, _row_of(message)) for message in messages)
        for _, run in groupby(opened, key=_shape):
            alike, rows = zip(*run, strict=True)
            try:
                if rows[0] is not None:
                    yield self._of_rows(topic, partition, alike, rows)
                else:
                    yield self._of_columns(topic, partition, alike[0])
            except ApiError as error:
                yield self.refuse(topic, partition, alike, error)

    def refuse(self, topic: str, partition: int, messages: Sequence[Message], error: ApiError) -> Portion:
        rejected, refused = Rejections(), []
        for message in messages:
            problem = _placed(topic, partition, message, error.message)
            column = str(error.where.get("column", ""))
            value = message.value()
            text = None if value is None else value[:SHOWN].decode("utf-8", "replace")
            rejected.append(Rejected(0, column, error.code, problem, {"message": text}))
            refused.append(RejectedMessage(message.offset(), problem, value, message.key()))
        rejected.total = len(rejected)
        return Portion(partition, messages, Batch(self.kind, self.now(), 0), rejected, refused)

    def _of_rows(
        self, topic: str, partition: int, messages: Sequence[Message], rows: Sequence[dict[str, Any]]
    ) -> Portion:
        plan, now = self.plan(), self.now()
        table = body_of_rows(rows, plan.by)
        if table.time is None:
            table.time = [_stamp(message, now) for message in messages]
        limits = Limits(len(rows), self.limits.bytes)
        batch, bad = make_batch(self.kind, table, plan, now, limits=limits, skip=True, shown_rows=len(rows))
        rejected, refused = [], []
        for row in bad:  # a message each
            message = messages[row.row]
            problem = _placed(topic, partition, message, row.problem)
            values = {name: value for name, value in rows[row.row].items() if value is not None}
            rejected.append(replace(row, row=0, problem=problem, values=values))
            refused.append(RejectedMessage(message.offset(), problem, message.value(), message.key()))
        return Portion(partition, messages, self._without_empty(batch), Rejections(rejected), refused)

    def _of_columns(self, topic: str, partition: int, message: Message) -> Portion:
        plan, now = self.plan(), self.now()
        table = self._table(message, plan)
        batch, bad = make_batch(self.kind, table, plan, now, limits=self.limits, skip=True)
        if table.time is None:
            batch.received = _stamp(message, now)
        placed = (replace(row, problem=_placed(topic, partition, message, row.problem)) for row in bad)
        rejected = Rejections(placed, bad.total)
        refused = []
        if bad:
            more = f" (and {bad.total - 1:,} more rows of it)" if bad.total > 1 else ""
            rows = _as_columns(bad, plan.by)
            refused = [RejectedMessage(message.offset(), rejected[0].problem + more, rows, message.key(), bad.total)]
        return Portion(partition, [message], self._without_empty(batch), rejected, refused)

    def _without_empty(self, batch: Batch) -> Batch:
        """A batch; one without rows has no columns either."""
        return batch if batch.size else Batch(self.kind, batch.received, 0)

    def _table(self, message: Message, plan: Plan) -> Body:
        value = message.value()
        if value is None:
            raise ApiError(422, "no_value", "a message without a value")
        if value.startswith(ARROW):
            return read_table(value, ARROW_TYPES[0], plan.by, self.limits)
        table = read_table(value, "application/json", plan.by, self.limits)
        apart = [name for name in plan.by if name not in table.by]
        if apart:  # columns of `by` next to the others
            record = _decoder.decode(value)
            table.by |= {name: record[name] for name in apart if type(record.get(name)) is list}
        return table


def _row_of(message: Message) -> dict[str, Any] | None:
    """The row of a message; None if it is no single row."""
    value = message.value()
    if value is None or value.startswith(ARROW):
        return None
    try:
        row = _decoder.decode(value)
    except (ValueError, RecursionError):
        return None
    return None if any(type(row.get(name)) is list for name in COLUMNS) else row


def _shape(opened: tuple[Message, dict[str, Any] | None]) -> object:
    """Neighbours of the same shape are merged."""
    message, row = opened
    return message.offset() if row is None else tuple(row.get(name) is not None for name in ROW)


def _stamp(message: Message, now: float) -> float:
    kind, milliseconds = message.timestamp()
    return min(milliseconds / 1e3, now) if kind else now


def _placed(topic: str, partition: int, message: Message, problem: str) -> str:
    return f"{topic}/{partition}, offset {message.offset()}: {problem}"


def _as_columns(rows: list[Rejected], by: list[str]) -> bytes:
    """Rejected rows, as a message that can be sent again."""
    names = dict.fromkeys(name for row in rows for name in row.values)
    columns: dict[str, Any] = {name: [row.values.get(name) for row in rows] for name in names}
    inner = {name: columns.pop(name) for name in by if name in columns}
    return to_json({**columns, **({"by": inner} if inner else {})})

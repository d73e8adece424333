"""A topic as chunks of events with their positions, for whoever keeps the state that goes with them."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fourrates.engines.kafka.address import Address
from fourrates.io import InputError
from fourrates.lazy import install

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

MOST = 10_000  # messages taken at a time
WAIT = 10.0  # seconds for an answer of the broker
AGAIN = 60.0  # seconds until a message of the client library is logged again
MOST_WORDS = 1_000  # different messages of it that are remembered
COMMIT = 1.0  # seconds between two commits of offsets, which the client library repeats until they succeed
# Read-ahead. When its queue is full, the client library by default waits a second, by when the banks are idle; and a
# partition with large messages would get only a few of them in each answer.
FETCHING = {"queued.max.messages.kbytes": 65_536, "fetch.queue.backoff.ms": 20, "max.partition.fetch.bytes": 8 << 20}

Begin = Callable[[int], int | None]
End = Callable[[list[int], bool], None]


class Seldom(logging.Filter):
    """Lets a message pass once a minute, since retries of a broker that is away are logged many times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        words, now = re.sub(r"\d+", "", record.getMessage()), time.monotonic()
        if now - self._passed.get(words, -math.inf) < AGAIN:
            return False
        if len(self._passed) >= MOST_WORDS:
            self._passed.clear()
        self._passed[words] = now
        return True


LOG = logging.getLogger("fourrates.engines.kafka")  # the log of the client library, for anyone who listens
LOG.addHandler(logging.NullHandler())
LOG.addFilter(Seldom())


def library() -> Any:
    """The client library, or an error with instructions to install it."""
    try:
        import confluent_kafka
    except ImportError:
        raise InputError(f"Kafka needs confluent-kafka: {install('kafka')}") from None
    return confluent_kafka


class Source:
    """Chunks of events from a topic, by partition; `reader` makes them of messages, in order, each with its `next`.

    A partition resumes at the offset that `begin` returns, asked before its first message, instead of the group's
    committed offset. Whoever stores :attr:`Chunk.next` and the results of a chunk in one transaction loses nothing and
    counts nothing twice. :meth:`commit` afterwards informs the group, for those who monitor its lag. `end` is called
    with partitions that this member has lost or gives up, and whether they were lost. In that case another member may
    have them already, and nothing more may be saved. `positions` maps this member's partitions to their next offsets.
    """

    def __init__(
        self,
        address: Address | str,
        reader: Any,
        *,
        begin: Begin | None = None,
        end: End | None = None,
        on_message: Callable[[str], None] | None = None,
    ) -> None:
        self._kafka = library()
        self.address = Address.parse(address) if isinstance(address, str) else address
        self.reader, self.positions = reader, dict[int, int | None]()
        self._begin, self._end = begin or (lambda _: None), end or (lambda _, __: None)
        self._on_message = on_message or (lambda _: None)
        self._fresh: set[int] = set()  # assigned by the call that is under way
        self._crash: Exception | None = None
        self._problems: set[int] = set()  # logged since the last message
        settings = {
            **FETCHING,
            **self.address.settings,
            "partition.assignment.strategy": "cooperative-sticky",
            "bootstrap.servers": self.address.servers,
            "group.id": self.address.group,
            "enable.auto.offset.store": False,  # commits only offsets given to `commit`
            "auto.commit.interval.ms": round(1000 * COMMIT),
            "auto.offset.reset": "error",  # a gap is reported, never skipped silently
            "error_cb": self._failed,
        }
        try:
            self._consumer: Consumer = self._kafka.Consumer(settings, logger=LOG)
        except self._kafka.KafkaException as error:
            raise InputError(f"{self.address}: {error.args[0].str()}") from None
        revoked, lost = partial(self._leave, lost=False), partial(self._leave, lost=True)
        self._consumer.subscribe([self.address.topic], on_assign=self._assigned, on_revoke=revoked, on_lost=lost)

    def take(self, seconds: float, idle: Callable[[], None] | None = None) -> Iterator[Any]:
        """Chunks of the messages within this time; all of them are to be taken before the next call.

        If nothing is ready, `idle` is called before waiting.
        """
        # Messages that arrived meanwhile are ready; waiting for more would idle the banks.
        messages = self._consumer.consume(MOST, 0)
        if not messages:
            if idle is not None:
                idle()
            messages = self._consumer.consume(MOST, seconds)
        self._raise()
        fresh, self._fresh = self._fresh, set()
        by_partition: dict[int, list[Any]] = {}
        for message in messages:
            if message.error() is not None:
                self._handle(message)
            else:
                by_partition.setdefault(message.partition(), []).append(message)
        if by_partition:
            self._problems.clear()
        for partition in fresh & self.positions.keys():
            by_partition.pop(partition, None)  # fetched for an earlier assignment; this one is paused until here
            self._consumer.resume([self._at(partition)])
        for partition, own in by_partition.items():
            yield from self._chunks(partition, own)

    def _raise(self) -> None:
        crash, self._crash = self._crash, None
        if crash is not None:
            raise crash

    def _chunks(self, partition: int, messages: list[Any]) -> Iterator[Any]:
        if partition not in self.positions:
            return  # no longer ours
        known = self.positions[partition]
        if known is not None and messages[0].offset() < known:
            messages = [message for message in messages if message.offset() >= known]
        for chunk in self.reader.read(self.address.topic, partition, messages):
            if partition not in self.positions:
                return
            self.positions[partition] = chunk.next
            yield chunk

    # Decisions of the group ---------------------------------------------------------------------------------

    def _at(self, partition: int, offset: int | None = None) -> Any:
        at = self._kafka.OFFSET_INVALID if offset is None else offset
        return self._kafka.TopicPartition(self.address.topic, partition, at)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        wanted, resumed = [], {}
        for assigned in partitions:
            partition = assigned.partition
            try:
                position = self._begin(partition)
                if position is not None:
                    resumed[partition] = position
                elif self.address.start == "latest":
                    position = consumer.get_watermark_offsets(assigned, timeout=WAIT)[1]
            except Exception as error:  # the client library would drop it
                self._crash = error
                return
            self.positions[partition] = position
            wanted.append(self._at(partition, self._kafka.OFFSET_BEGINNING if position is None else position))
            self._fresh.add(partition)
        consumer.incremental_assign(wanted)
        if wanted:
            consumer.pause(wanted)
        self.commit(resumed)

    def _leave(self, consumer: Consumer, partitions: list[TopicPartition], *, lost: bool) -> None:
        ours = [revoked.partition for revoked in partitions if revoked.partition in self.positions]
        try:
            if ours:
                self._end(ours, lost)
        except Exception as error:
            self._crash = error
        for partition in ours:
            del self.positions[partition]
        consumer.incremental_unassign(partitions)

    # Errors --------------------------------------------------------------------------------------

    def _failed(self, error: Any) -> None:
        """Log the problem once until a broker that is away returns."""
        if error.fatal():
            self._crash = self._kafka.KafkaException(error)
        elif error.code() not in self._problems:
            self._problems.add(error.code())
            self._on_message(f"{self.address}: {error.str()}")

    def _handle(self, message: Any) -> None:
        error, codes = message.error(), self._kafka.KafkaError
        if error.code() == codes._AUTO_OFFSET_RESET:
            self._go_round(message.partition())
        elif error.fatal() or error.code() in (codes.TOPIC_AUTHORIZATION_FAILED, codes.GROUP_AUTHORIZATION_FAILED):
            raise self._kafka.KafkaException(error)
        else:
            self._failed(error)

    def _go_round(self, partition: int) -> None:
        """The offset to resume from is gone; report the deleted gap and read the rest."""
        if partition not in self.positions:
            return
        wanted = self.positions[partition]
        first, end = self._consumer.get_watermark_offsets(self._at(partition), timeout=WAIT)
        lost = (
            f"{first - wanted:,} messages were deleted before they were read"
            if wanted and wanted < first
            else (f"it ends at offset {end:,}, before {wanted:,}: it was cut off, or made again")
        )
        self._on_message(f"{self.address.topic}/{partition}: {lost}; continuing at offset {first:,}")
        self.positions[partition] = first
        here = [self._at(partition, first)]
        self._consumer.incremental_unassign(here)
        self._consumer.incremental_assign(here)

    # The group's own record ---------------------------------------------------------------------------------

    def commit(self, positions: Mapping[int, int], *, wait: bool = False) -> bool | None:
        """Commit offsets within a second, unless the group takes the partitions away.

        With `wait`, they are committed now; returns whether this member still has them, None if that is unknown.
        """
        offsets = [self._at(partition, offset) for partition, offset in positions.items()]
        if not offsets:
            return True
        if not wait:
            with suppress(self._kafka.KafkaException):  # a partition that is not ours
                self._consumer.store_offsets(offsets=offsets)
            return None
        codes = self._kafka.KafkaError
        gone = (codes.ILLEGAL_GENERATION, codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID)
        try:
            committed = self._consumer.commit(offsets=offsets, asynchronous=False)
        except self._kafka.KafkaException as error:
            return False if error.args[0].code() in gone else None
        return None if any(offset.error is not None for offset in committed) else True

    def close(self) -> None:
        self._consumer.close()
        self._raise()

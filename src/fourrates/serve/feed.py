"""A topic as a source of a monitor: ``fourrates serve --from kafka://broker:9092/topic?monitor=name``.

Offsets are written in the same transaction as the events before them. Whenever the server dies, no event is lost and
none is counted twice.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from fourrates.engines.kafka.address import Address
from fourrates.engines.kafka.outbox import Outbox, dead_letter
from fourrates.engines.kafka.source import Source, library
from fourrates.io import InputError
from fourrates.serve.batch import KINDS
from fourrates.serve.config import check_name
from fourrates.serve.errors import ApiError, no_monitor
from fourrates.serve.messages import BatchReader, Portion
from fourrates.serve.registry import Live, Registry
from fourrates.serve.store.base import SourceRow, StoreError
from fourrates.serve.writer import Job, Writer

log = logging.getLogger("fourrates.serve")
WAIT = 0.25  # seconds to collect messages
LOOK = 0.5  # seconds between two looks at whether the monitor is there
SHORTEST, LONGEST = 0.5, 30.0  # seconds until it is tried again, after one failure and after many


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, the monitor that takes it, and the kind of its messages.

    Examples
    --------
    >>> from fourrates.serve.feed import Topic
    >>> topic = Topic.parse("kafka://broker:9092/scores?monitor=fraud&kind=predictions")
    >>> topic.monitor, topic.kind, topic.address.topic, topic.name
    ('fraud', 'predictions', 'scores', 'fourrates-fraud/scores')
    """

    address: Address
    monitor: str
    kind: str = "events"

    @classmethod
    def parse(cls, url: str) -> Topic:
        """Read an address with the name of a monitor in it; the group is named after the monitor if it is not given."""
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        own = {name: value for name, value in given if name in ("monitor", "kind")}
        rest = [(name, value) for name, value in given if name not in own]
        monitor, kind = own.get("monitor", ""), own.get("kind", "events")
        if not monitor:
            raise InputError(f"{url!r} names no monitor, as in kafka://broker:9092/topic?monitor=fraud")
        try:
            check_name(monitor)
        except ApiError as error:
            raise InputError(error.message) from None
        if kind not in KINDS:
            raise InputError(f"{url!r}: kind {kind!r} is none of {', '.join(KINDS)}")
        if not dict(rest).get("group"):
            rest.append(("group", f"fourrates-{monitor}"))
        address = Address.parse(parts._replace(query=urlencode(rest)).geturl())
        if address.drifts is not None:
            raise InputError(f"{url!r}: drifts of a monitor go to its alerts, not to a topic")
        return cls(address, monitor, kind)

    @property
    def name(self) -> str:
        """The key of its offsets; another group starts over."""
        return f"{self.address.group}/{self.address.topic}"


def parse_topics(urls: Sequence[str]) -> list[Topic]:
    """The topics of a server; an InputError if one cannot be read, or two would share their messages."""
    topics = [Topic.parse(url) for url in urls]
    names = [topic.name for topic in topics]
    for topic in topics:
        if names.count(topic.name) > 1:
            raise InputError(f"{topic.address} is given twice in group {topic.address.group}: each needs a group")
    if topics:
        library()
    return topics


class Feed:
    def __init__(self, topic: Topic, registry: Registry, writer: Writer) -> None:
        self.topic, self.registry, self.writer = topic, registry, writer
        self._ending = threading.Event()
        self._pause, self._epoch = SHORTEST, 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outbox: Outbox | None = None
        self._thread = threading.Thread(target=self._run, name=f"fourrates {topic.address}", daemon=True)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; `loop` is that of the writer's answers."""
        self._loop = loop
        self._thread.start()

    def stop(self) -> None:
        """Finish the current write and leave the group."""
        self._ending.set()
        self._thread.join()

    # The thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        failures = (ApiError, InputError, StoreError, library().KafkaException)
        while (live := self._wait_for_monitor()) is not None:
            try:
                self._follow(live)
                continue
            except failures as error:
                log.warning("%s: %s; trying again in %g s", self.topic.address, error, self._pause)
            except Exception:
                log.exception("%s: a defect; trying again in %g s", self.topic.address, self._pause)
            self._ending.wait(self._pause)
            self._pause = min(2 * self._pause, LONGEST)

    def _wait_for_monitor(self) -> Live | None:
        name, is_logged = self.topic.monitor, False
        while not self._ending.is_set():
            live = self.registry.lives.get(name)
            if live is not None:
                return live
            if not is_logged:
                is_logged = True
                where = f"/api/monitors/{quote(name)}"
                log.warning("%s: waiting for monitor %r; PUT %s makes it", self.topic.address, name, where)
            self._ending.wait(LOOK)
        return None

    def _follow(self, live: Live) -> None:
        """Read until the server ends or the monitor is removed."""
        topic, monitor = self.topic, live.row.id
        self._epoch = self.registry.store.epoch
        reader = BatchReader(
            KINDS[topic.kind],
            lambda: self.registry.get(topic.monitor).plan,
            self.registry.settings.max_rows,
            now=self.writer.clock.now,
        )
        source = Source(
            topic.address,
            reader,
            begin=lambda partition: self.registry.store.next_of_source(monitor, topic.name, partition),
            on_message=log.warning,
        )
        try:
            while not self._ending.is_set() and self._is_there(live):
                for portion in source.take(WAIT):
                    if not self._write(live, reader, portion):
                        break
                    source.commit({portion.partition: portion.next})  # for those who monitor the group's lag
        finally:
            with suppress(library().KafkaException):
                source.close()

    def _is_there(self, live: Live) -> bool:
        now = self.registry.lives.get(live.name)
        return now is not None and now.row.uid == live.row.uid

    def _write(self, live: Live, reader: BatchReader, portion: Portion) -> bool:
        if not self._bury(portion):
            return False
        try:
            self._submit(live, portion)
        except ApiError as error:
            if error.status != 422 or not portion.batch.size:
                raise
            return self._divide(live, reader, portion, error)
        self._pause = SHORTEST
        return True

    def _divide(self, live: Live, reader: BatchReader, portion: Portion, error: ApiError) -> bool:
        """Find the messages that the monitor refuses, for instance since they have too many segments."""
        topic, partition, messages = self.topic.address.topic, portion.partition, portion.messages
        if len(messages) == 1:
            return self._write(live, reader, reader.refuse(topic, partition, messages, error))
        middle = len(messages) // 2
        return all(
            self._write(live, reader, part)
            for half in (messages[:middle], messages[middle:])
            for part in reader.read(topic, partition, half)
        )

    def _bury(self, portion: Portion) -> bool:
        """Produce rejected messages to the dead letters before moving past them; false if the server ends."""
        address = self.topic.address
        if address.dead_letter is None or not portion.refused:
            return not self._ending.is_set()
        if self._outbox is None:
            self._outbox = Outbox(address)
        for message in portion.refused:
            self._outbox.put(dead_letter(address, portion.partition, message))
        while not self._outbox.settle(WAIT):
            if self._ending.is_set():
                return False
        return not self._ending.is_set()

    def _submit(self, live: Live, portion: Portion) -> None:
        if not self._is_there(live):
            raise no_monitor(live.name)
        row = SourceRow(live.row.id, self.topic.name, portion.partition, portion.next, self._epoch)

        async def hand_in() -> None:
            await self.writer.submit(Job(live, portion.batch, portion.rejected, source=row))

        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(hand_in(), self._loop).result()

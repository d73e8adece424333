"""What is produced: kept until the broker has it, produced again if it may not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fourrates.alerts.payload import stable_id
from fourrates.engines.kafka.address import Address
from fourrates.engines.kafka.chunk import RejectedMessage
from fourrates.engines.kafka.source import LOG, library
from fourrates.io import InputError

if TYPE_CHECKING:
    from confluent_kafka import Producer


class Letter(NamedTuple):
    """A message to produce."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: Mapping[str, bytes]


def dead_letter(address: Address, partition: int, rejected: RejectedMessage) -> Letter:
    """A message that could not be used, with what is wrong with it and where it was; its id stays the same."""
    assert address.dead_letter is not None
    source = f"{address.topic}/{partition}"
    headers = {
        "id": stable_id(address.group, "rejected", source, rejected.offset).encode(),
        "problem": rejected.problem.encode("utf-8", "replace"),
        "source": source.encode(),
        "offset": str(rejected.offset).encode(),
    }
    return Letter(address.dead_letter, rejected.value, rejected.key, headers)


class Outbox:
    """An idempotent producer whose messages are settled or produced again.

    The broker may have a message twice where a member died before it could know that the first had arrived.
    """

    def __init__(self, address: Address) -> None:
        self._kafka = library()
        self._address = address
        self._left: dict[int, Letter] = {}
        self._failed: list[int] = []
        self._number, self._broken = 0, False
        self._producer = self._connect()

    def _connect(self) -> Producer:
        try:
            found: Producer = self._kafka.Producer(
                {
                    "enable.idempotence": True,
                    "linger.ms": 5,
                    "message.timeout.ms": 0,  # a broker that is away comes back
                    **self._address.producer_settings(),
                    "bootstrap.servers": self._address.servers,
                    "error_cb": lambda _: None,  # the source tells
                },
                logger=LOG,
            )
            return found
        except self._kafka.KafkaException as error:
            raise InputError(f"{self._address}: {error.args[0].str()}") from None

    def put(self, letter: Letter) -> None:
        """Produce a message."""
        self._number += 1
        self._left[self._number] = letter
        self._produce(self._number)

    def _produce(self, number: int) -> None:
        letter = self._left[number]
        while not self._broken:
            try:
                self._producer.produce(
                    letter.topic,
                    letter.value,
                    letter.key,
                    headers=dict(letter.headers),
                    on_delivery=partial(self._delivered, number),
                )
                self._producer.poll(0)
                return
            except BufferError:  # the queue is full
                self._producer.poll(0.1)
            except self._kafka.KafkaException as error:
                if not self._is_broken(error.args[0]):
                    raise

    def _delivered(self, number: int, error: Any, _: Any) -> None:
        if error is None:
            self._left.pop(number, None)
        elif not self._is_broken(error):
            self._failed.append(number)

    def _is_broken(self, error: Any) -> bool:
        """Whether the producer cannot go on, since the broker forgot what it had of it."""
        self._broken |= error.fatal() or error.code() == self._kafka.KafkaError._FATAL
        return self._broken

    def settle(self, seconds: float) -> bool:
        """Wait until the broker has everything, for so long; whether it has."""
        end = time.monotonic() + seconds
        while self._left:
            self._producer.poll(min(0.05, seconds))
            failed, self._failed = self._failed, []
            if self._broken:
                self._producer, self._broken, failed = self._connect(), False, [*self._left]
            for number in failed:
                if number in self._left:
                    self._produce(number)
            if time.monotonic() > end:
                break
        return not self._left

"""The producer, which sends again if the broker did not accept a message."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fourrates.alerts.payload import stable_id
from fourrates.engines.kafka.address import Address
from fourrates.engines.kafka.reader import RejectedMessage
from fourrates.engines.kafka.source import LOG, library
from fourrates.io import InputError

if TYPE_CHECKING:
    from confluent_kafka import Producer


class Letter(NamedTuple):
    topic: str
    value: bytes | None
    key: bytes | None
    headers: Mapping[str, bytes]


def dead_letter(address: Address, partition: int, rejected: RejectedMessage) -> Letter:
    """A rejected message with its reason and place; its id stays the same."""
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
    """A producer that knows whether the broker has everything.

    The broker may receive a message twice, since unconfirmed ones are produced again.
    """

    def __init__(self, address: Address) -> None:
        kafka = library()
        settings = {
            "linger.ms": 5,
            "message.timeout.ms": 0,  # a broker that is away usually returns
            "max.in.flight.requests.per.connection": 1,  # in order, also if something is produced again
            **address.settings,
            "bootstrap.servers": address.servers,
            "error_cb": lambda _: None,  # the source reports it
        }
        try:
            self._producer: Producer = kafka.Producer(settings, logger=LOG)
        except kafka.KafkaException as error:
            raise InputError(f"{address}: {error.args[0].str()}") from None
        self._failed: list[Letter] = []

    def put(self, letter: Letter) -> None:
        headers, delivered = dict(letter.headers), partial(self._delivered, letter)
        while True:
            try:
                self._producer.produce(letter.topic, letter.value, letter.key, headers=headers, on_delivery=delivered)
                self._producer.poll(0)
                return
            except BufferError:  # the queue is full
                self._producer.poll(0.1)

    def _delivered(self, letter: Letter, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(letter)

    def settle(self, seconds: float) -> bool:
        """Wait this long for the broker to have everything; whether it has."""
        failed, self._failed = self._failed, []
        for letter in failed:
            self.put(letter)
        return self._producer.flush(seconds) == 0 and not self._failed

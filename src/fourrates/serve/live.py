"""Live updates, as server-sent events to any number of readers.

An event is encoded once for all readers, and the events of one turn of the event loop are sent together. A slow reader
is not waited for. Its queue is bounded, and on overflow it is dropped and asked to load everything again (`resync`). A
reader that reconnects names the last event it saw and gets those it missed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

REMEMBERED = 1_000  # events that a reconnecting reader can still get
WAITING = 256  # events that wait for one reader
HEARTBEAT = 15.0  # seconds
CHECK = 2.0  # seconds between two looks at readers to whom nothing is sent


@dataclass(frozen=True, slots=True)
class Message:
    number: int
    monitor: str
    body: bytes


@dataclass(slots=True, eq=False)
class Reader:
    monitor: str | None
    waiting: list[bytes] = field(default_factory=list)
    lost: bool = False
    ended: bool = False
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wants(self, message: Message) -> bool:
        return self.monitor is None or message.monitor == self.monitor


class Hub:
    """Takes events and hands them to all readers; used in the event loop alone."""

    def __init__(self) -> None:
        self.boot = secrets.token_hex(8)
        self.readers: set[Reader] = set()
        self.dropped = 0
        self._number = 0
        self._past: deque[Message] = deque(maxlen=REMEMBERED)

    def publish(self, event: str, monitor: str, data: Any) -> None:
        self._number += 1
        message = Message(self._number, monitor, self._body(event, self._number, data))
        self._past.append(message)
        for reader in self.readers:
            if not reader.lost and reader.wants(message):
                if len(reader.waiting) >= WAITING:
                    reader.lost = True
                    reader.waiting.clear()
                    self.dropped += 1
                else:
                    reader.waiting.append(message.body)
                reader.woken.set()

    def close(self) -> None:
        for reader in self.readers:
            reader.ended = True
            reader.woken.set()

    async def beat(self) -> None:
        """Wake all readers now and then, to keep connections alive and recheck permissions."""
        while True:
            await asyncio.sleep(CHECK)
            for reader in self.readers:
                reader.woken.set()

    def _body(self, event: str, number: int, data: Any) -> bytes:
        text = msgspec.json.encode(data)
        return b"event: %b\nid: %b-%d\ndata: %b\n\n" % (event.encode(), self.boot.encode(), number, text)

    def missed(self, last: str, reader: Reader) -> list[Message] | None:
        """The events after the one a reader names; None if they are no longer known."""
        boot, _, number = last.partition("-")
        if boot != self.boot or not (number.isascii() and number.isdigit()) or len(number) > 18:
            return None
        since = int(number)
        oldest = self._past[0].number if self._past else self._number + 1
        if since > self._number or since < oldest - 1:
            return None
        return [message for message in self._past if message.number > since and reader.wants(message)]

    async def stream(
        self, monitor: str | None, last: str | None, allowed: Callable[[], bool] | None = None
    ) -> AsyncIterator[bytes]:
        """The encoded events for one reader, until `allowed` is false."""
        reader = Reader(monitor)
        clock = asyncio.get_running_loop().time
        self.readers.add(reader)
        try:
            yield self._body("hello", self._number, {"server": self.boot})
            if last:
                missed = self.missed(last, reader)
                if missed is None:
                    yield self._body("resync", self._number, {})
                elif missed:
                    yield b"".join(message.body for message in missed)
            heartbeat, check = clock() + HEARTBEAT, clock() + CHECK
            while True:
                await reader.woken.wait()
                reader.woken.clear()
                if reader.ended:
                    return
                if allowed is not None and clock() >= check:
                    if not allowed():
                        return
                    check = clock() + CHECK
                if reader.lost:
                    reader.lost = False
                    yield self._body("resync", self._number, {})
                elif reader.waiting:
                    waiting, reader.waiting = reader.waiting, []
                    yield b"".join(waiting)
                elif clock() >= heartbeat:
                    yield b": still here\n\n"
                else:
                    continue
                heartbeat = clock() + HEARTBEAT
        finally:
            self.readers.discard(reader)

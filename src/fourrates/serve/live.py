"""The names of monitors that changed, as server-sent events to any number of readers.

An event names monitors to look at again, without their state. So a slow reader misses nothing. Names
gather until it reads on, each of them once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

HEARTBEAT = 2.0  # seconds; a reader whose token was revoked is gone after as long
PAUSE = 0.25  # seconds between two events for a reader


@dataclass(slots=True, eq=False)
class Reader:
    monitor: str | None  # None for all
    changed: set[str] = field(default_factory=set)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """Takes names and hands them to all readers; used in the event loop alone."""

    def __init__(self) -> None:
        self.readers: set[Reader] = set()
        self._ended = False

    def publish(self, names: Collection[str]) -> None:
        for reader in self.readers:
            if reader.monitor is None or reader.monitor in names:
                reader.changed.update(names if reader.monitor is None else [reader.monitor])
                reader.woken.set()

    def close(self) -> None:
        self._ended = True
        for reader in self.readers:
            reader.woken.set()

    async def stream(self, monitor: str | None, allowed: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """The encoded events for one reader, until `allowed` is false."""
        reader = Reader(monitor)
        self.readers.add(reader)
        try:
            yield b": connected\n\n"
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.woken.wait(), HEARTBEAT)
                reader.woken.clear()
                if self._ended or not allowed():
                    return
                names, reader.changed = sorted(reader.changed), set()
                yield b"event: changed\ndata: %b\n\n" % msgspec.json.encode(names) if names else b": still here\n\n"
                await asyncio.sleep(PAUSE)
        finally:
            self.readers.discard(reader)

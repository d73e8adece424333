"""What the state store keeps of a shard: its bank, a log of events, those that wait, and a head that names them all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from fourrates.checks import check_whole
from fourrates.state import pack, unpack

COLUMN = "value binary"  # of each variable: Spark makes an encoder of it for every task, longer with more columns
NUMBERS = {"shards": 1, "bank": 1, "log": 0, "wake": -1}  # of a head, and the least that each can be
MARKS = "fingerprint", "marked", "start", "turn", "waiting"
RECENT = 1 / 32  # the most of a bank that the last entries in its head may have,
ENTRIES = 8  # and how many times the last entry: the head is written with every micro-batch, however small


class Value(Protocol):
    """A value in the state store, such as PySpark's ``ValueState``."""

    def get(self) -> tuple[Any, ...] | None:
        """The value; None if there is none."""

    def update(self, newValue: tuple[Any, ...]) -> None:
        """Replace it."""


class Log(Protocol):
    """A list in the state store, such as PySpark's ``ListState``."""

    def get(self) -> Iterator[tuple[Any, ...]]:
        """What was appended, in this order."""

    def appendList(self, newState: list[tuple[Any, ...]]) -> None:
        """Append to it."""

    def clear(self) -> None:
        """Remove all of it."""


class ShardState(NamedTuple):
    """What the state store keeps of a shard; nothing waits where there is no watermark."""

    head: Value
    bank: Value
    log: Log
    waiting: Value | None = None


class Head(NamedTuple):
    """What tells one state of a shard from another.

    Attributes
    ----------
    fingerprint : bytes
        Of the settings and of all events so far.
    shards : int
        How many parts the keys are divided into.
    marked : bytes
        The fingerprint of the bank that was written last.
    bank, log : int
        Bytes of that bank before it was compressed, and of the events since then.
    start, turn : bytes
        The fingerprints at the start of the log, and where it ends and `recent` goes on.
    recent : tuple of bytes
        The last entries.
    wake : int
        When the watermark passes the next event that waits, in milliseconds; -1 if none waits.
    waiting : bytes
        The fingerprint of the events that wait; empty if none does.
    by : tuple of str
        Name and type of each column of the key.
    """

    fingerprint: bytes
    shards: int
    marked: bytes = b""
    bank: int = 0
    log: int = 0
    start: bytes = b""
    turn: bytes = b""
    recent: tuple[bytes, ...] = ()
    wake: int = -1
    waiting: bytes = b""
    by: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """As the state store keeps it."""
        about: dict[str, Any] = {name: getattr(self, name) for name in NUMBERS} | {"by": self.by}
        marks = {name: getattr(self, name) for name in MARKS}
        return pack("Shard", about, **marks, **{f"recent{i}": entry for i, entry in enumerate(self.recent)})

    @classmethod
    def from_bytes(cls, saved: bytes) -> Head:
        """What :meth:`to_bytes` gave; a ValueError if it cannot have."""
        found = unpack(saved)
        if found.kind != "Shard":
            raise ValueError(f"this is the state of {found.kind}, not of a shard")
        try:
            numbers = {name: check_whole(found.about[name], name, least) for name, least in NUMBERS.items()}
            marks = {name: bytes(found.sections.pop(name)) for name in MARKS}
            by = tuple(map(str, found.about["by"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"the saved state of a shard does not fit itself ({error!r})") from None
        recent = tuple(map(bytes, found.sections.values()))
        return cls(**marks, **numbers, recent=recent, by=by)  # type: ignore[arg-type]

    @property
    def room(self) -> float:
        """Bytes of entries that may stay."""
        return min(RECENT * self.bank, ENTRIES * len(self.recent[-1])) if self.recent else 0.0

    def shortened(self) -> tuple[list[bytes], Head]:
        """Without the older entries, so that it can take as much again, and those."""
        sizes = accumulate(len(entry) for entry in reversed(self.recent))
        last = len(self.recent) - sum(size <= self.room / 2 for size in sizes)
        older, recent = [*self.recent[:last]], self.recent[last:]
        return older, self._replace(turn=reduce(extended, older, self.turn), recent=recent)


def extended(fingerprint: bytes, events: bytes) -> bytes:
    """The fingerprint of what had one, and of what came then."""
    return hashlib.blake2b(events, digest_size=16, key=fingerprint).digest()

"""A batch of rows on its way to a monitor, and as an entry of the queue."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from typing import Any, Self

from fourrates.disk_queue import Entry

PATH = re.compile(r"/api/monitors/[!-~]+")


@dataclass(frozen=True, slots=True)
class Batch:
    """A body and where it goes."""

    path: str  # without the address of the server
    key: str  # its idempotency key: the same for every attempt
    body: bytes  # its columns as JSON
    rows: int

    @classmethod
    def new(cls, path: str, body: bytes, rows: int) -> Self:
        """A batch with a key of its own."""
        return cls(path, uuid.uuid4().hex, body, rows)

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """The batch of an entry; a ValueError where it is none. Nothing is posted but to a monitor."""
        path, _, body = entry.body.partition(b"\n")
        if not PATH.fullmatch(text := path.decode("latin-1")):
            raise ValueError("not a batch of events")
        return cls(text, entry.id, body, entry.rows)

    def entry(self, channel: str) -> Entry:
        """The batch as an entry of the queue."""
        return Entry(self.key, channel, self.path.encode() + b"\n" + self.body, self.rows)

    def part(self, start: int, stop: int) -> Batch:
        """Some of its rows. The key depends on them, so that they count once however often they are cut out."""
        try:
            body = json.dumps(_cut(json.loads(self.body), slice(start, stop))).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not columns of JSON ({error})") from None
        key = hashlib.blake2b(self.key.encode() + body, digest_size=16).hexdigest()
        return Batch(self.path, key, body, stop - start)


def _cut(columns: Any, rows: slice) -> Any:
    if isinstance(columns, dict):
        return {name: _cut(values, rows) for name, values in columns.items()}
    return columns[rows]

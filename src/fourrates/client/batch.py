"""Logged rows on their way to a monitor, as columns of JSON, then as a batch, an entry of the queue."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from fourrates.disk_queue import Entry

Kind = Literal["predictions", "events", "labels"]
ORDER: tuple[Kind, ...] = ("predictions", "events", "labels")  # a label never overtakes its prediction
PATH = re.compile(r"/api/monitors/[!-~]+")


@dataclass(frozen=True, slots=True)
class Batch:
    """A body and its destination."""

    path: str  # without the address of the server
    key: str  # its idempotency key, the same for every attempt
    body: bytes  # its columns as JSON
    rows: int

    @classmethod
    def new(cls, path: str, body: bytes, rows: int) -> Self:
        return cls(path, uuid.uuid4().hex, body, rows)

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """The batch of an entry; a ValueError if it is none. Nothing is posted but to a monitor."""
        path, _, body = entry.body.partition(b"\n")
        if not PATH.fullmatch(text := path.decode("latin-1")):
            raise ValueError("not a batch of events")
        return cls(text, entry.id, body, entry.rows)

    def entry(self, channel: str) -> Entry:
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


def kind_of(given: Mapping[str, Any]) -> Kind:
    predicted = "y_pred" in given or "score" in given
    if "y_true" in given and predicted:
        return "events"
    if not predicted and "y_true" not in given:
        raise ValueError("log needs y_true, y_pred or score")
    if "id" not in given:
        alone = "a label" if not predicted else "a prediction"
        raise ValueError(f"{alone} alone needs an id, by which it is joined with the other")
    return "predictions" if predicted else "labels"


def as_list(name: str, values: Any, length: int | None = None) -> list[Any]:
    """A column as a list; one value stays alone, or is repeated to the length of the other columns."""
    for method in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, Arrow
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, list | tuple | range | deque):
        return list(values)
    if isinstance(values, Mapping | set | frozenset):
        raise TypeError(f"{name} must be a value, a list or an array, not {type(values).__name__}")
    return [values] * (1 if length is None else length)


def encoded(name: str, values: list[Any], start: int, number: int) -> str:
    """Several values of a column as JSON, without its brackets."""
    values = values[start : start + number]
    try:
        return json.dumps(values, allow_nan=False, default=_plain)[1:-1]
    except (TypeError, ValueError):
        for position, value in enumerate(values, start):
            try:
                json.dumps(value, allow_nan=False, default=_plain)
            except (TypeError, ValueError):
                raise ValueError(f"{name} {value!r} at position {position} cannot be sent as JSON") from None
        raise


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "item"):  # a scalar of NumPy
        return value.item()
    raise TypeError


def body_of(chunks: Sequence[list[str]], columns: Sequence[str], segments: Sequence[str]) -> bytes:
    """The chunks of one stream as a body, columns of JSON joined as text."""
    joined = [f"[{', '.join(parts)}]" for parts in zip(*chunks, strict=True)]
    parts = [f"{json.dumps(name)}: {text}" for name, text in zip(columns, joined, strict=False)]
    if segments:
        named = zip(segments, joined[len(columns) :], strict=True)
        parts.append(f'"by": {{{", ".join(f"{json.dumps(name)}: {text}" for name, text in named)}}}')
    return f"{{{', '.join(parts)}}}".encode()

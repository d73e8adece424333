"""Arrow streams of a request or a message, checked before anything is unpacked.

A few hundred bytes can announce gigabytes of rows or packed buffers. So the number of rows in a batch, and the unpacked
size of its buffers, are first read from the messages of the stream (Arrow's Message.fbs).
"""

from __future__ import annotations

import struct
from typing import Any

from fourrates.events.columns import pyarrow, text_bytes
from fourrates.events.rows import InputError

BATCHES = 10_000  # in one stream
SCHEMA = 1 << 20  # bytes of metadata in it


class TooLarge(InputError):
    """A stream that has, or unpacks to, more than the limit."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"more than {limit:,} {what}")
        self.what, self.limit = what, limit


def read_stream(body: bytes, max_rows: int, max_bytes: int) -> Any:
    """The table of an Arrow stream; an InputError if it is damaged, TooLarge if it exceeds a limit."""
    pa = pyarrow("pyarrow")
    try:
        _check_sizes(pa.ipc.MessageReader.open_stream(body), max_rows, max_bytes)
        with pa.ipc.open_stream(body) as reader:
            reader.schema.names  # noqa: B018  names that are no UTF-8 are an error when they are first read
            table = pa.Table.from_batches([*reader], reader.schema)
        for column in table.columns:
            if sum(map(text_bytes, column.chunks)) > max_bytes:
                raise TooLarge("bytes of text in a column", max_bytes)
        return table
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        raise InputError(f"a damaged Arrow stream ({str(error).splitlines()[0][:200]})") from None


def _check_sizes(messages: Any, max_rows: int, max_bytes: int) -> None:
    rows = unpacked = 0
    for number, message in enumerate(messages):
        if number > BATCHES:
            raise TooLarge("batches", BATCHES)
        if message.metadata.size > SCHEMA:
            raise TooLarge("bytes of column names and places", SCHEMA)
        if message.type == "schema":
            continue
        meta = message.metadata.to_pybytes()
        header = _follow(meta, _field(meta, struct.unpack_from("<I", meta)[0], 2))
        if message.type == "dictionary":
            if (delta := _field(meta, header, 2)) and meta[delta]:
                raise ValueError("dictionaries that grow are not read")
            header = _follow(meta, _field(meta, header, 1))
        else:
            at = _field(meta, header, 0)
            rows += struct.unpack_from("<q", meta, at)[0] if at else 0
        if rows > max_rows:
            raise TooLarge("rows", max_rows)
        if _field(meta, header, 3):
            unpacked += _unpacked(meta, header, message.body)
        if unpacked > max_bytes:
            raise TooLarge("bytes when unpacked", max_bytes)


def _unpacked(meta: bytes, header: int, body: Any) -> int:
    """The announced unpacked size of a batch's buffers; each begins with its own."""
    vector = _follow(meta, _field(meta, header, 2))
    total = 0
    for at in range(struct.unpack_from("<I", meta, vector)[0]):
        start, length = struct.unpack_from("<qq", meta, vector + 4 + 16 * at)
        if length >= 8:
            announced = struct.unpack("<q", body.slice(start, 8).to_pybytes())[0]
            total += length if announced < 0 else announced
    return total


def _field(meta: bytes, table: int, number: int) -> int:
    """The position of a field in a flatbuffer's table; 0 if it is left out."""
    vtable = table - struct.unpack_from("<i", meta, table)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", meta, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", meta, vtable + place)[0]
    return table + offset if offset else 0


def _follow(meta: bytes, at: int) -> int:
    """The target of an offset in a flatbuffer."""
    if not at:
        raise ValueError("a message without its content")
    return int(at + struct.unpack_from("<I", meta, at)[0])

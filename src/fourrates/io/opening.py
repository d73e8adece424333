"""Bytes of a file or pipe, unpacked as they are read."""

from __future__ import annotations

import io
import sys
from typing import Any

from fourrates.events.columns import pyarrow as pyarrow
from fourrates.events.rows import InputError

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
BLOCK = 1 << 20  # bytes read at a time


class Chain(io.RawIOBase):
    """Bytes already taken from a stream, and then the rest of it."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self.head, self.rest = head, rest
        self._some = getattr(rest, "read1", rest.read)  # available bytes, rather than all that are requested

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            taken, self.head = self.head, b""
            return taken + bytes(self.rest.read())
        first = self.read1(size)
        if len(first) == size or not first:
            return first
        joined = bytearray(first)
        while len(joined) < size and (more := self.read1(size - len(joined))):
            joined += more
        return bytes(joined)

    def read1(self, size: int, /) -> bytes:
        """Up to `size` available bytes; none at the end."""
        if self.head:
            taken, self.head = self.head[:size], self.head[size:]
            return taken
        # A forged length may exceed memory, so allocate for the bytes that arrive, not for those requested.
        return bytes(self._some(min(size, BLOCK)))

    def readinto(self, buffer: Any) -> int:
        data = self.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self.rest.close()
        super().close()


def opened(path: str) -> tuple[Any, bool]:
    """A stream of a file's bytes, unpacked, and whether the file was not packed."""
    try:
        raw = _standard_input() if path == "-" else open(path, "rb")  # noqa: SIM115 (closed by the reader)
        stream = Chain(b"", raw)
        stream.head = head = stream.read(4)
    except OSError as error:
        raise InputError(f"{named(path)}: {(error.strerror or str(error)).lower()}") from None
    packing = next((codec for magic, codec in MAGIC.items() if head.startswith(magic)), None)
    if packing is None:
        return stream, path != "-"
    pa = pyarrow("pyarrow")
    return pa.CompressedInputStream(pa.PythonFile(stream, "r"), packing), False


def _standard_input() -> Any:
    """The standard input unbuffered, as a thread waiting in a buffered read would keep the interpreter alive."""
    if sys.stdin is None:
        raise InputError("standard input: closed")
    return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)


def named(path: str) -> str:
    return "standard input" if path == "-" else path


def spooled(stream: Any) -> Any:
    """The rest of a stream in a temporary file, for formats that are read from their end."""
    import shutil
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115 (gone when the reader lets go of it)
    shutil.copyfileobj(stream, file, BLOCK)
    file.seek(0)
    return file


def is_text(head: bytes) -> bool:
    """Whether these bytes may begin a UTF-8 text."""
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" or error.start >= len(head) - 4
    return True


def first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines() or [type(error).__name__]
    return text[0][:1].lower() + text[0][1:]

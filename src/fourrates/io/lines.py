"""Split bytes into whole lines, in linear time and bounded memory."""

from __future__ import annotations

from fourrates.events.rows import InputError

MAX_LINE = 1 << 24  # bytes; a longer line cannot be an event


class LineBuffer:
    r"""Keeps the beginning of a line until its end arrives.

    At most one byte beyond `limit` is kept of a line, so that :func:`check_length` can find it.

    Examples
    --------
    >>> from fourrates.io.lines import LineBuffer
    >>> buffer = LineBuffer()
    >>> buffer.feed(b"1,1\n0,")
    b'1,1\n'
    >>> buffer.feed(b"1\n")
    b'0,1\n'
    """

    def __init__(self, limit: int = MAX_LINE) -> None:
        self.limit = limit
        self.size = 0  # bytes since the last line end, dropped ones included
        self._pieces: list[bytes] = []
        self._kept = 0

    def feed(self, data: bytes) -> bytes:
        """The lines that these bytes complete, with their ends."""
        end = data.rfind(b"\n") + 1
        if end == 0:
            self._keep(data)
            return b""
        if not self._pieces:
            whole = data[:end]
        else:
            first = data.index(b"\n")
            self._keep(data[:first])
            whole = b"".join([*self._pieces, data[first:end]])
        self.clear()
        self._keep(data[end:])
        return whole

    def rest(self) -> bytes:
        return b"".join(self._pieces)

    def clear(self) -> None:
        self._pieces, self._kept, self.size = [], 0, 0

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        if data and self._kept <= self.limit:
            self._pieces.append(data[: self.limit + 1 - self._kept])
            self._kept += len(self._pieces[-1])


def check_length(lines: list[bytes], limit: int, source: str, first: int) -> None:
    """Raise if a line is longer than `limit` bytes; `first` is the number of the first line."""
    if max(map(len, lines), default=0) > limit:
        at = next(i for i, line in enumerate(lines) if len(line) > limit)
        raise InputError(f"{source}, line {first + at}: longer than {limit:,} bytes (--max-line)")

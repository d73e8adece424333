"""Split bytes into whole lines, in linear time and bounded memory."""

from __future__ import annotations

from fourrates.events.rows import InputError

MAX_LINE = 1 << 24  # bytes; a longer line cannot be an event


class LineBuffer:
    r"""Keeps the beginning of a line until its end arrives.

    At most one byte beyond `MAX_LINE` is kept of a line, so that :func:`check_length` can find it.
    """

    def __init__(self) -> None:
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
        if data and self._kept <= MAX_LINE:
            self._pieces.append(data[: MAX_LINE + 1 - self._kept])
            self._kept += len(self._pieces[-1])


def check_length(lines: list[bytes], source: str, first: int) -> None:
    """Raise if a line is too long; `first` is the number of the first line."""
    if max(map(len, lines), default=0) > MAX_LINE:
        at = next(i for i, line in enumerate(lines) if len(line) > MAX_LINE)
        raise InputError(f"{source}, line {first + at}: longer than {MAX_LINE:,} bytes")

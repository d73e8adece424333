"""`--bad-rows FILE`: rejected lines, saved and counted."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

SHOWN = 10_000  # bytes saved of a line


class BadRows:
    """Appends rejected lines to a file, as JSON with place and problem.

    Parameters
    ----------
    path : Path
        The file; created if missing.
    count, size : int
        Lines rejected before, and the size of the file then. Anything beyond that is from a process that ended before
        it saved its progress; those lines are not written twice.
    """

    def __init__(self, path: Path, count: int = 0, size: int | None = None) -> None:
        self.count = count
        self._file = open(path, "a+b")  # noqa: SIM115 (closed by close)
        end = self._file.seek(0, os.SEEK_END)
        self._again: Counter[bytes] = Counter()
        if size is not None and size < end:
            self._file.seek(size)
            self._again.update(self._file.read().splitlines())
        if end:
            self._file.seek(end - 1)
            if self._file.read(1) != b"\n":  # an incomplete line: begin a new one
                self._file.write(b"\n")

    def refuse(self, source: str, line: int, text: bytes, problem: str) -> None:
        self.count += 1
        record = {"source": source, "line": line, "problem": problem, "text": text[:SHOWN].decode("utf-8", "replace")}
        row = json.dumps(record).encode()
        if self._again[row] > 0:
            self._again[row] -= 1
        else:
            self._file.write(row + b"\n")

    def flush(self) -> int:
        """Flush to disk, and return the size of the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        self._file.close()

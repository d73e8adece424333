"""Batches that wait to be sent, in order: in memory while the server answers, in a folder while it does not.

A batch is a file of two parts: a line of JSON that says what it is, and its body. Two processes that share a folder may
both send a batch; its key sees to it that it counts once.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
import uuid
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from fourrates import files

logger = logging.getLogger("fourrates.client")

NAME = re.compile(r"[0-9]{20}-[0-9a-f]{32}\.batch")
PATH = re.compile(r"/api/monitors/[!-~]+")
REFUSED = "refused"  # the folder of batches that the server will not have
MOST_REFUSED = 100


@dataclass(frozen=True, slots=True)
class Batch:
    """A body on its way.

    Attributes
    ----------
    path : str
        Where it goes, without the address of the server.
    key : str
        Its idempotency key: the same for every attempt.
    rows, size : int
        How much is in it.
    body : bytes
        Empty while it is on the disk.
    file : Path or None
        Where it is on the disk.
    """

    path: str
    key: str
    rows: int
    size: int
    body: bytes
    file: Path | None = None

    @classmethod
    def new(cls, path: str, body: bytes, rows: int) -> Self:
        """A batch with a key of its own."""
        return cls(path, uuid.uuid4().hex, rows, len(body), body)

    def write(self, folder: Path) -> Batch:
        """Put it into a folder; files sort in the order they were written."""
        file = folder / f"{time.time_ns():020d}-{self.key}.batch"
        head = json.dumps({"path": self.path, "key": self.key, "rows": self.rows})
        files.write(file, head.encode() + b"\n" + self.body)
        return replace(self, body=b"", file=file)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read it again; a ValueError where it is not what was written."""
        line, _, body = file.read_bytes().partition(b"\n")
        head = json.loads(line)
        match head:
            case {"path": str(path), "key": str(key), "rows": int(rows)} if (
                rows >= 0 and PATH.fullmatch(path) and key == file.name[21:53]
            ):
                return cls(path, key, rows, len(body), body, file)
        raise ValueError(f"{file}: not a batch of events")


class Backlog:
    """The batches that wait; false when there is none.

    Parameters
    ----------
    folder : Path or None
        Where they are kept; made, for its owner alone, when it is needed. What is in it already comes first. None
        keeps them in memory alone.
    limit : int
        Bytes that may wait. Beyond that the oldest are dropped.
    """

    def __init__(self, folder: Path | None, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.rows = self._size = 0
        self._batches: deque[Batch] = deque()
        if folder is not None and folder.is_dir():
            self._load(folder)
        self._persistent = bool(self._batches)  # until all was sent

    def _load(self, folder: Path) -> None:
        for file in sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name)):
            try:
                found = Batch.read(file)
            except FileNotFoundError:  # another process that shares the folder has sent it
                continue
            except (ValueError, RecursionError) as error:
                self._set_aside(file, error)
            else:
                self._append(replace(found, body=b""))

    def __len__(self) -> int:
        return len(self._batches)

    def put(self, batch: Batch) -> int:
        """Take a batch; how many rows of older ones were dropped for it."""
        dropped = 0
        while self._batches and self._size + batch.size > self.limit:
            dropped += self._batches[0].rows
            self.done()
        if self._persistent and self._batches:
            batch = self._written(batch)
        self._append(batch)
        return dropped

    def first(self) -> Batch | None:
        """The oldest, with its body; one whose file has gone or was damaged is left out.

        An OSError if it cannot be read now, as where too many files are open.
        """
        while self._batches:
            batch = self._batches[0]
            if batch.file is None:
                return batch
            try:
                return Batch.read(batch.file)
            except FileNotFoundError:  # another process that shares the folder has sent it
                self.done()
            except (ValueError, RecursionError) as error:
                self._set_aside(batch.file, error)
                self.done()
        return None

    def done(self) -> None:
        """Forget the oldest."""
        batch = self._batches.popleft()
        self.rows -= batch.rows
        self._size -= batch.size
        self._persistent = self._persistent and bool(self._batches)
        if batch.file is not None:
            with suppress(OSError):
                batch.file.unlink()

    def refuse(self) -> Path | None:
        """Put the oldest where those lie that the server will not have; where that is."""
        batch = self._written(self._batches[0])
        if batch.file is None:
            return None
        self._batches[0] = batch
        return self._set_aside(batch.file)

    def persist(self) -> None:
        """Put everything on the disk, from now on until all of it was sent."""
        self._persistent = True
        self._batches = deque(map(self._written, self._batches))

    def _append(self, batch: Batch) -> None:
        self._batches.append(batch)
        self.rows += batch.rows
        self._size += batch.size

    def _written(self, batch: Batch) -> Batch:
        """The batch on the disk; where that cannot be written it stays in memory."""
        if batch.file is not None or self.folder is None:
            return batch
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return batch.write(self.folder)
        except OSError as error:
            logger.error("%s: batches cannot be kept there (%s)", self.folder, error)
            return batch

    def _set_aside(self, file: Path, error: Exception | None = None) -> Path:
        """Move a file out of the way; the newest of such files are kept."""
        if error is not None:
            logger.error("%s cannot be read (%s)", file, error)
        aside = file.parent / REFUSED
        with suppress(OSError):
            aside.mkdir(mode=0o700, exist_ok=True)
            os.replace(file, aside / file.name)
            for old in sorted(aside.iterdir())[:-MOST_REFUSED]:
                old.unlink()
        return aside / file.name

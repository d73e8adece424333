"""The store in one SQLite file, with a write-ahead log and synchronous FULL."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

from fourrates.serve.store.base import Store, StoreError

CHECKPOINT = 4_000  # pages of the log after which they are moved into the file
PATIENCE = 10.0  # seconds to wait for another process, such as `fourrates token`


class SQLite(Store):
    """The store in a file, created if missing; no other process may be its `owner`, who writes the journal."""

    dialect = "sqlite"
    begin = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, *, owner: bool = True) -> None:
        super().__init__()
        self.path = path
        self._held: IO[bytes] | None = _hold(path.with_suffix(".lock")) if owner else None
        self._opened: sqlite3.Connection | None = None
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # labels and ids are nobody else's business
            self._opened = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            self._query("PRAGMA journal_mode = WAL")
            self._query("PRAGMA synchronous = FULL")
            self._query(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
            self._make_tables()
            self._find_ends()
        except (sqlite3.Error, OSError, StoreError) as error:
            self.close()
            raise (StoreError(f"{path}: {error}") if isinstance(error, sqlite3.Error) else error) from None

    @property
    def _connection(self) -> sqlite3.Connection:
        assert self._opened is not None
        return self._opened

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path.name}: {error}") from None

    def _rollback(self) -> None:
        with suppress(StoreError):
            if self._connection.in_transaction:
                self._query("ROLLBACK")

    def _has_tables(self) -> bool:
        return bool(self._query("SELECT name FROM sqlite_master WHERE name = 'version'"))

    def backup(self, path: str) -> None:
        try:
            with (
                closing(sqlite3.connect(path)) as target,
                closing(sqlite3.connect(self.path, timeout=PATIENCE)) as source,
            ):
                target.execute("PRAGMA journal_mode = OFF")  # nothing to go back to, and no file beside it
                source.backup(target)  # in one step, as steps of a page would restart at each commit
        except sqlite3.Error as error:  # no room
            raise StoreError(f"{path}: {error}") from None

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            if self._held is not None:
                self._held.close()
                self._held = None


def _hold(path: Path) -> IO[bytes]:
    """Hold a lock that ends with the process, or a StoreError if another holds it."""
    file = open(path, "a+b")  # noqa: SIM115 - held until the store is closed
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreError(f"another server is running on {path.parent}") from None
    return file

"""The store in PostgreSQL, with the same tables and one connection that reopens when the database returns.

The connection holds a lock, so that one server writes at a time, and each server that takes the lock counts up a number
in the database. After a new connection that number shows whether another server has written in between.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from fourrates.serve.store.base import Store, StoreAway, StoreError

log = logging.getLogger("fourrates.serve")
LOCK = 0x4652_5345  # of the one server that writes to a database
STARTING = 60.0  # seconds that a server which starts waits for its database, as after a boot of both
REMINDER = 5.0  # seconds between two messages that it waits
RELEASE = 2.0  # seconds for the lock of an earlier connection of ours to be released
# A connection that is dead ends within half a minute on both sides, and with it the lock.
CONNECTION: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
SESSION = {
    "synchronous_commit": "on",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "lock_timeout": "10000",
    "statement_timeout": "120000",
    "idle_in_transaction_session_timeout": "60000",
}
# FATAL now, but may be over soon.
PASSING = ("starting up", "shutting down", "not yet accepting", "too many", "reserved for", "recovery", "terminating")


class PostgreSQL(Store):
    """The store in a database; no other process may be its `owner`, who writes the journal.

    Parts missing from ``postgresql://user@host/name`` are read from the environment (PGPASSWORD and so on).
    """

    dialect = "postgresql"

    def __init__(self, url: str, *, owner: bool = True) -> None:
        super().__init__()
        self.url, self._owner = url, owner
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._name = f"fourrates {uuid.uuid4().hex}"  # of all our connections, and of nobody else's
        self._turn: int | None = None  # how many servers had taken the lock when we last did
        self._open_patiently()

    def _open_patiently(self) -> None:
        until, remind = time.monotonic() + STARTING, 0.0
        while True:
            try:
                self._open()
                return
            except StoreAway as error:
                if not self._owner or time.monotonic() > until:
                    raise
                if time.monotonic() > remind:
                    log.warning("waiting for the database: %s", error)
                    remind = time.monotonic() + REMINDER
            time.sleep(0.2)

    def _open(self) -> None:
        """Connect; if another server has written since our last connection, a new epoch begins with a StoreError."""
        try:
            self._connection = psycopg.connect(
                make_conninfo("", **(CONNECTION | conninfo_to_dict(self.url) | {"application_name": self._name})),
                autocommit=True,
            )
            self._query(f"SELECT {', '.join('set_config(?, ?, false)' for _ in SESSION)}", [*chain(*SESSION.items())])
            if self._owner:
                self._take_lock()
            self._make_tables()
            self._find_ends()
            moved = self._owner and self._is_new_turn()
        except (psycopg.Error, StoreError) as error:
            self._drop()
            raise _problem(error) from None
        if moved:
            self.epoch += 1
            raise StoreAway("another server has written to this database meanwhile")

    def _take_lock(self) -> None:
        """Be the one server that writes. Earlier connections of ours, which a proxy may keep open, are ended first."""
        earlier = "application_name = ? AND pid <> pg_backend_pid()"
        ended = self._query(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {earlier}", (self._name,))
        until = time.monotonic() + (RELEASE if ended else 0.0)
        while not self._query("SELECT pg_try_advisory_lock(?)", (LOCK,))[0][0]:
            if time.monotonic() > until:
                raise StoreAway("another server is running on this database")
            time.sleep(0.05)

    def _is_new_turn(self) -> bool:
        """Whether another server had the lock after us."""
        before, self._turn = self._turn, self._count_up("owner")
        return before is not None and self._turn != before + 1

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._ensure_open()
        assert self._connection is not None
        try:
            cursor = self._connection.execute(sql.replace("?", "%s").encode(), values, prepare=True)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            if self._connection.broken or self._connection.closed:
                self._drop()
            raise _problem(error) from None

    def _rollback(self) -> None:
        if self._connection is not None:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._drop()

    def _ensure_open(self) -> None:
        if self._connection is None:
            self._open()

    def _has_tables(self) -> bool:
        return self._query("SELECT to_regclass('version')") != [(None,)]  # another schema may have its own

    def _restart_serials(self) -> None:
        last = "SELECT coalesce(max(id), 0) + 1 FROM rejected"
        self._query(f"SELECT setval(pg_get_serial_sequence('rejected', 'id'), ({last}), false)")

    def backup(self, path: str) -> None:
        """Write a dump of the current state, for ``pg_restore``, without stopping anything."""
        tool = shutil.which("pg_dump")
        if tool is None:
            raise StoreError("a backup of PostgreSQL needs pg_dump")
        target = conninfo_to_dict(self.url)
        secret = {"PGPASSWORD": str(target.pop("password"))} if "password" in target else {}  # not for all to see
        done = subprocess.run(
            [tool, "--format=custom", f"--file={path}", f"--dbname={make_conninfo('', **target)}"],
            env=os.environ | secret,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StoreError(f"pg_dump: {done.stderr.strip()[:500]}")

    def close(self) -> None:
        with self._lock:
            self._drop()


def _problem(error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    text = " ".join(str(error).split())[:300] or type(error).__name__
    if "FATAL" in text and not any(words in text for words in PASSING):  # a wrong password, no such database
        return StoreError(text)
    return StoreAway(text) if isinstance(error, psycopg.OperationalError) else StoreError(text)

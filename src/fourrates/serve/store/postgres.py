"""The store in PostgreSQL: the same tables, one connection, reopened when the database comes back."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from fourrates.serve.store.base import Store, StoreError

LOCK = 0x4652_5345  # of the one server that writes to a database
FEW = 8  # rows that are inserted one by one, in one statement
PATIENCE = 5  # seconds for a connection
STARTING = 60.0  # seconds for a database that is starting, as after a crash or a boot of both
TYPES = {
    "position": "bigint",
    "monitor": "bigint",
    "first_event": "bigint",
    "events": "bigint",
    "sequence": "bigint",
    "part": "bigint",
    "parts": "bigint",
    "size": "bigint",
    "alerted": "bigint",
    "id": "bigint",
    "made": "double precision",
    "time": "double precision",
    "created": "double precision",
}
TEXT = {("findings", "id"), ("findings", "kind"), ("documents", "kind"), ("documents", "name"), ("examples", "finding")}
TEXT |= {("monitors", "name"), ("monitors", "uid")}


class PostgreSQL(Store):
    """The store in a database.

    Parameters
    ----------
    url : str
        As ``postgresql://user@host/name``; what it leaves out comes from the environment (PGPASSWORD and so on).
    owner : bool
        Whether this process writes the journal: then no other may.
    """

    dialect = "postgresql"

    def __init__(self, url: str, *, owner: bool = True) -> None:
        super().__init__()
        self.url, self._owner = url, owner
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._open_patiently()

    def _open_patiently(self) -> None:
        until = time.monotonic() + STARTING
        while True:
            try:
                self._open()
                return
            except StoreError as error:
                if "starting up" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(0.2)

    def _open(self) -> None:
        """Connect, and see what is there; the journal may have gone further than we were told."""
        try:
            connection = psycopg.connect(
                self.url, autocommit=True, connect_timeout=PATIENCE, application_name="fourrates"
            )
            self._connection = connection
            self._query("SET synchronous_commit = on")
            if self._owner:
                got = self._query("SELECT pg_try_advisory_lock(?)", (LOCK,))
                if not got[0][0]:
                    raise StoreError("another server is running on this database")
            self._migrate()
            self._find_ends()
        except (psycopg.Error, StoreError) as error:
            self._drop()
            raise _problem(error) from None

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._open()
        assert self._connection is not None
        try:
            cursor = self._connection.execute(sql.replace("?", "%s").encode(), values, prepare=True)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            if self._connection.broken or self._connection.closed:
                self._drop()
            raise _problem(error) from None

    def known_keys(self, hashes: Sequence[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
        """Those of these keys that were met before, asked for as one array."""
        with self._lock:
            rows = self._query("SELECT hash, digest, answer FROM keys WHERE hash = ANY(?)", (list(hashes),))
        return {bytes(one): (bytes(digest), bytes(answer)) for one, digest, answer in rows}

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) <= FEW:
            one = f"({','.join('?' * len(columns))})"
            values = [value for row in rows for value in row]
            self._query(f"INSERT INTO {table} ({','.join(columns)}) VALUES {','.join([one] * len(rows))}", values)
            return
        # One statement with an array for each column: quicker than COPY, and than a statement for each row.
        kinds = ["text" if (table, name) in TEXT else TYPES.get(name, "bytea") for name in columns]
        arrays = ",".join(f"?::{kind}[]" for kind in kinds)
        names = ",".join(columns)
        self._query(
            f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays})",
            [list(column) for column in zip(*rows, strict=True)],
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._connection is None:
            self._open()
        self._query("BEGIN")
        try:
            yield
            self._query("COMMIT")
        except BaseException:
            if self._connection is not None:
                try:
                    self._connection.execute("ROLLBACK")
                except psycopg.Error:
                    self._drop()
            raise

    def _single(self) -> AbstractContextManager[None]:
        if self._connection is None:
            self._open()
        return nullcontext()  # what goes wrong is a StoreError already

    def _version(self) -> int:
        if self._query("SELECT to_regclass('version')") == [(None,)]:  # another schema may have one of its own
            return 0
        rows = self._query("SELECT number FROM version")
        return int(rows[0][0]) if rows else 0

    def backup(self, path: str) -> None:
        """Write a dump, as of now, while everything goes on; ``pg_restore`` reads it."""
        tool = shutil.which("pg_dump")
        if tool is None:
            raise StoreError("a backup of PostgreSQL needs pg_dump")
        done = subprocess.run(
            [tool, "--format=custom", f"--file={path}", f"--dbname={make_conninfo(self.url)}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StoreError(f"pg_dump: {done.stderr.strip()[:500]}")

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._drop()


def _problem(error: Exception) -> StoreError:
    return StoreError(" ".join(str(error).split())[:300] or type(error).__name__)

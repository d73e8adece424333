"""The store, with an append-only journal, snapshots with the position they cover, and findings.

Both databases share the SQL, apart from the methods :class:`Store` leaves open. One transaction holds the rows of a
group of requests, their idempotency keys and their results. A row that is a named tuple has the columns of its table as
fields.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from fourrates.serve.store.schema import KEYS, VERSION, tables

AT_ONCE = 500  # rows written in one statement
CHUNK = 64  # rows of the journal read at a time
SNAPSHOTS = ("monitor", "generation", "position", "size")
PARTS = ("monitor", "generation", "part", "body")


class StoreError(Exception):
    """The database cannot be used, for the reason in the message."""


class StoreAway(StoreError):
    """The database is unavailable for now, as it does not answer or another server uses it."""


class MonitorRow(NamedTuple):
    id: int
    name: str
    uid: str
    key: bytes


class JournalRow(NamedTuple):
    """Batches of one monitor that were committed together, and the events they led to."""

    monitor: int
    first_event: int
    events: int
    body: bytes
    position: int = 0


class KeyRow(NamedTuple):
    """An idempotency key's hash, a digest of its body, and its answer."""

    hash: bytes
    digest: bytes
    made: float
    answer: bytes


class RejectedRow(NamedTuple):
    monitor: int
    made: float
    body: bytes


class StoredFinding(NamedTuple):
    id: str
    monitor: int
    kind: str
    body: bytes  # JSON
    examples: bytes | None = None  # the ids of its window, as JSON; not read in lists
    segment: str | None = None  # the name of its segment; None overall


FINDING = ", ".join(StoredFinding._fields)
LISTED = FINDING.replace("examples", "NULL")


class SourceRow(NamedTuple):
    """The offset to resume from in a part of a source, such as a partition of a topic.

    It is valid in the epoch in which reading began, since another server may be further ahead by now.
    """

    monitor: int
    source: str
    part: int
    next: int
    epoch: int = 0


@dataclass(slots=True)
class Group:
    journal: list[JournalRow] = field(default_factory=list)
    keys: dict[bytes, KeyRow] = field(default_factory=dict)
    findings: list[StoredFinding] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)


class Store(ABC):
    """A database. One thread at a time uses it; a lock sees to that.

    `epoch` grows when another server has written since this one last did, which makes loaded data stale.
    """

    dialect: str
    begin = "BEGIN"  # a transaction

    def __init__(self) -> None:
        self.epoch = 0
        self.position = 0  # of the last batch in the journal
        self._sequence = 0  # of the last finding
        self._lock = threading.RLock()

    # Given by a database ------------------------------------------------------------------------------------

    @abstractmethod
    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement with ``?`` for each value and return its rows, or raise a StoreError."""

    @abstractmethod
    def _rollback(self) -> None:
        """End a transaction that failed."""

    def _ensure_open(self) -> None:  # noqa: B027 - a file stays open
        """Connect again, if there is no connection."""

    @abstractmethod
    def _has_tables(self) -> bool:
        """Whether there is a table of the version."""

    @abstractmethod
    def backup(self, path: str) -> None:
        """Write a copy of the current state without stopping anything."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    # Statements -----------------------------------------------------------------------------------------------

    def _read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._query(sql, values)

    def _write(self, sql: str, *values: Any) -> None:
        with self._transaction():
            self._query(sql, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._ensure_open()
            self._query(self.begin)
            try:
                yield
                self._query("COMMIT")
            except BaseException:
                self._rollback()
                raise

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows in one statement, so that the thread does not wait for its turn between two of them."""
        marks = f"({','.join('?' * len(columns))})"
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            values = [value for row in some for value in row]
            self._query(f"INSERT INTO {table} ({','.join(columns)}) VALUES {','.join([marks] * len(some))}", values)

    # Beginning ------------------------------------------------------------------------------------------------

    def _make_tables(self) -> None:
        """Make the tables, unless there are some; those of another version are a StoreError."""
        versions = self._query("SELECT number FROM version") if self._has_tables() else []
        if not versions:
            with self._transaction():
                for statement in tables(self.dialect):
                    self._query(statement)
        elif versions[0][0] != VERSION:
            raise StoreError(f"the database has version {versions[0][0]}; this release reads version {VERSION}")

    def _find_ends(self) -> None:
        """Find the ends of the journal and the findings."""
        ends = [self._query(f"SELECT max(position) FROM {table}")[0][0] or 0 for table in ("journal", "snapshots")]
        self.position = max(ends)
        self._sequence = self._query("SELECT max(sequence) FROM findings")[0][0] or 0

    @contextmanager
    def in_epoch(self, epoch: int) -> Iterator[None]:
        """Hold the store for work done in an epoch; a StoreError if that is over."""
        with self._lock:
            if epoch != self.epoch:
                raise StoreError("another server has written to this database meanwhile")
            yield

    def probe(self) -> None:
        """Write something that nobody reads, so that a store that cannot be written raises a StoreError."""
        self.put_document("probe", "write", b"")

    def move_from(self, other: Store) -> int:
        """Move another store, all or nothing, into this empty one; returns the number of monitors."""
        with self._transaction():
            if self._query("SELECT id FROM monitors") or self.position:
                raise StoreError("there are monitors in it already")
            for table, key in KEYS.items():
                for start in count(0, CHUNK):
                    rows = other._read(f"SELECT * FROM {table} ORDER BY {key} LIMIT {CHUNK} OFFSET {start}")
                    if not rows:
                        break
                    marks = ",".join([f"({','.join('?' * len(rows[0]))})"] * len(rows))
                    self._query(f"INSERT INTO {table} VALUES {marks}", [value for row in rows for value in row])
            ((last,),) = other._read("SELECT number FROM counters WHERE name = 'monitor'")
            self._query("UPDATE counters SET number = ? WHERE name = 'monitor'", (last,))
            self._restart_serials()
            ((monitors,),) = self._query("SELECT count(*) FROM monitors")
            return int(monitors)

    def _restart_serials(self) -> None:  # noqa: B027 - SQLite counts on anyway
        """Have the numbers that the database gives follow those that were copied."""

    # Monitors -------------------------------------------------------------------------------------------------

    def monitors(self) -> list[MonitorRow]:
        return [MonitorRow(*row) for row in self._read("SELECT id, name, uid, key FROM monitors ORDER BY id")]

    def add_monitor(self, name: str, uid: str, key: bytes, snapshot: bytes = b"") -> MonitorRow:
        with self._transaction():
            row = MonitorRow(self._count_up("monitor"), name, uid, key)
            self._insert("monitors", row._fields, [row])
            self._insert("snapshot_parts", PARTS, [(row.id, 0, 0, snapshot)])
            self._insert("snapshots", SNAPSHOTS, [(row.id, 0, self.position, len(snapshot))])
        return row

    def _count_up(self, name: str) -> int:
        self._query("UPDATE counters SET number = number + 1 WHERE name = ?", (name,))
        return int(self._query("SELECT number FROM counters WHERE name = ?", (name,))[0][0])

    def remove_monitor(self, monitor: int) -> None:
        with self._transaction():
            for table in ("journal", "snapshot_parts", "snapshots", "findings", "rejected", "sources"):
                self._query(f"DELETE FROM {table} WHERE monitor = ?", (monitor,))
            self._query("DELETE FROM monitors WHERE id = ?", (monitor,))

    # The journal ----------------------------------------------------------------------------------------------

    def known_keys(self, hashes: Sequence[bytes]) -> dict[bytes, KeyRow]:
        marks = ",".join("?" * len(hashes))
        rows = self._read(f"SELECT {', '.join(KeyRow._fields)} FROM keys WHERE hash IN ({marks})", *hashes)
        return {row[0]: KeyRow(*row) for row in rows}

    def forget_keys(self, before: float) -> None:
        self._write("DELETE FROM keys WHERE made < ?", before)

    def commit(self, group: Group) -> None:
        """Write a group, all or nothing; afterwards its journal rows have their positions."""
        others = group.keys or group.findings or group.rejected or group.sources
        with self._lock:
            self._ensure_open()
            with self._transaction() if others else nullcontext():  # a single statement is one already
                position, sequence = self.position, self._sequence  # only now, as a new connection has read them again
                journal = [row._replace(position=at) for at, row in enumerate(group.journal, position + 1)]
                self._insert("journal", JournalRow._fields, journal)
                self._insert("keys", KeyRow._fields, [*group.keys.values()])
                self._insert("rejected", RejectedRow._fields, group.rejected)
                findings = [(at, *finding) for at, finding in enumerate(group.findings, sequence + 1)]
                self._insert("findings", ("sequence", *StoredFinding._fields), findings)
                for at in group.sources:
                    self._query(
                        "INSERT INTO sources (monitor, source, part, next) VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (monitor, source, part) DO UPDATE SET next = excluded.next",
                        at[:4],
                    )
            group.journal = journal
            self.position, self._sequence = position + len(journal), sequence + len(group.findings)

    def next_of_source(self, monitor: int, source: str, part: int) -> int | None:
        """The offset to resume from in a part of a source; None if nothing was ever read from it."""
        sql = "SELECT next FROM sources WHERE monitor = ? AND source = ? AND part = ?"
        rows = self._read(sql, monitor, source, part)
        return int(rows[0][0]) if rows else None

    def journal(self, monitor: int, after: int) -> Iterator[JournalRow]:
        return self._journal(monitor, after, ">", "ASC")

    def journal_backwards(self, monitor: int) -> Iterator[JournalRow]:
        return self._journal(monitor, 1 << 62, "<", "DESC")

    def _journal(self, monitor: int, beyond: int, side: str, order: str) -> Iterator[JournalRow]:
        """The batches of a monitor on one side of a position, some at a time, so that others can write in between."""
        where = f"monitor = ? AND position {side} ? ORDER BY position {order} LIMIT {CHUNK}"
        sql = f"SELECT {', '.join(JournalRow._fields)} FROM journal WHERE {where}"
        while True:
            rows = self._read(sql, monitor, beyond)
            yield from (JournalRow(*row) for row in rows)
            if len(rows) < CHUNK:
                return
            beyond = rows[-1][-1]

    # Snapshots ------------------------------------------------------------------------------------------------

    def begin_snapshot(self, monitor: int) -> int:
        """The generation of a new snapshot; parts of earlier ones that were never finished go."""
        with self._transaction():
            ((current,),) = self._query("SELECT generation FROM snapshots WHERE monitor = ?", (monitor,))
            self._query("DELETE FROM snapshot_parts WHERE monitor = ? AND generation <> ?", (monitor, current))
        return int(current) + 1

    def put_part(self, monitor: int, generation: int, part: int, body: bytes) -> None:
        """Write a part of a snapshot; it counts for nothing until :meth:`finish_snapshot`."""
        with self._transaction():
            self._insert("snapshot_parts", PARTS, [(monitor, generation, part, body)])

    def finish_snapshot(self, monitor: int, generation: int, position: int, size: int, keep_from: int) -> None:
        """From now on the monitor begins here; batches it covers go, unless they led to events from `keep_from` on."""
        head = "UPDATE snapshots SET generation = ?, position = ?, size = ? WHERE monitor = ?"
        covered = "DELETE FROM journal WHERE monitor = ? AND position <= ? AND first_event + events <= ?"
        with self._transaction():
            self._query(head, (generation, position, size, monitor))
            self._query("DELETE FROM snapshot_parts WHERE monitor = ? AND generation <> ?", (monitor, generation))
            self._query(covered, (monitor, position, keep_from))

    def snapshot(self, monitor: int) -> tuple[int, bytes]:
        """The last snapshot of a monitor, and the position it covers; a ValueError if it is not there, or not whole."""
        with self._lock:
            heads = self._query("SELECT generation, position, size FROM snapshots WHERE monitor = ?", (monitor,))
            if not heads:
                raise ValueError("its snapshot is missing")
            generation, position, size = heads[0]
            parts = "SELECT body FROM snapshot_parts WHERE monitor = ? AND generation = ? ORDER BY part"
            body = b"".join(part for (part,) in self._query(parts, (monitor, generation)))
        if len(body) != size:
            raise ValueError(f"its snapshot has {len(body):,} of the {size:,} bytes written")
        return position, body

    # Findings -------------------------------------------------------------------------------------------------

    def findings(
        self,
        monitor: int,
        limit: int,
        before: str | None = None,
        *,
        overall: bool = False,
        segment: str | None = None,
        kind: str | None = None,
    ) -> list[StoredFinding]:
        """The latest findings, newest first; optionally before one of them, overall, of a segment, or of one kind."""
        where: dict[str, Any] = {"monitor = ?": monitor}
        if segment is not None:
            where["segment = ?"] = segment
        if kind is not None:
            where["kind = ?"] = kind
        if before is not None:
            earlier = "SELECT sequence FROM findings AS f WHERE f.id = ? AND f.monitor = findings.monitor"
            where[f"sequence < ({earlier})"] = before
        conditions = [*where, *(["segment IS NULL"] if overall else [])]
        sql = f"SELECT {LISTED} FROM findings WHERE {' AND '.join(conditions)} ORDER BY sequence DESC LIMIT ?"
        return [StoredFinding(*row) for row in self._read(sql, *where.values(), limit)]

    def finding(self, monitor: int, id: str) -> StoredFinding | None:
        rows = self._read(f"SELECT {FINDING} FROM findings WHERE id = ? AND monitor = ?", id, monitor)
        return StoredFinding(*rows[0]) if rows else None

    def count_findings(self, monitor: int, kind: str) -> int:
        return int(self._read("SELECT count(*) FROM findings WHERE monitor = ? AND kind = ?", monitor, kind)[0][0])

    def change_finding(self, id: str, body: bytes) -> None:
        self._write("UPDATE findings SET body = ? WHERE id = ?", body, id)

    def unalerted(self, limit: int = 1_000) -> list[StoredFinding]:
        sql = f"SELECT {LISTED} FROM findings WHERE alerted = 0 ORDER BY sequence LIMIT ?"
        return [StoredFinding(*row) for row in self._read(sql, limit)]

    # Rejected rows --------------------------------------------------------------------------------------------

    def rejected(self, monitor: int, limit: int) -> list[RejectedRow]:
        sql = "SELECT monitor, made, body FROM rejected WHERE monitor = ? ORDER BY id DESC LIMIT ?"
        return [RejectedRow(*row) for row in self._read(sql, monitor, limit)]

    def count_rejected(self, monitor: int) -> int:
        return int(self._read("SELECT count(*) FROM rejected WHERE monitor = ?", monitor)[0][0])

    def trim_rejected(self, monitor: int, keep: int) -> None:
        oldest = "SELECT id FROM rejected WHERE monitor = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
        self._write(f"DELETE FROM rejected WHERE monitor = ? AND id <= ({oldest})", monitor, monitor, keep)

    # Documents, the state of alerts -----------------------------------------------------------------------------

    def documents(self, kind: str) -> dict[str, bytes]:
        return dict(self._read("SELECT name, body FROM documents WHERE kind = ? ORDER BY name", kind))

    def put_document(self, kind: str, name: str, body: bytes, alerted: Sequence[str] = ()) -> None:
        """Write a document, together with the findings that are alerted by it."""
        put = "INSERT INTO documents (kind, name, body) VALUES (?, ?, ?)"
        with self._transaction():
            self._query(f"{put} ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body", (kind, name, body))
            for id in alerted:
                self._query("UPDATE findings SET alerted = 1 WHERE id = ?", (id,))

    def delete_document(self, kind: str, name: str) -> None:
        self._write("DELETE FROM documents WHERE kind = ? AND name = ?", kind, name)

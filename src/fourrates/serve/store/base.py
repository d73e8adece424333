"""The store: an append-only journal, snapshots with the position they cover, and what was found.

The SQL is the same for both databases but for what :class:`Store` leaves open. Everything that belongs together is
written in one transaction: the rows of a group of requests, their idempotency keys, and what they led to.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from fourrates.serve.store.schema import VERSION, tables

AT_ONCE = 500  # rows written in one statement
CHUNK = 64  # rows of the journal read at a time
SNAPSHOTS = ("monitor", "generation", "position", "size")
PARTS = ("monitor", "generation", "part", "body")
FINDING = "id, monitor, kind, time, body, acknowledged, segment"


class StoreError(Exception):
    """The database cannot be used; the message says why."""


class StoreAway(StoreError):
    """The database cannot be used now, and may be later: it does not answer, or another server uses it."""


@dataclass(slots=True)
class MonitorRow:
    """A monitor as the store knows it."""

    id: int
    name: str
    uid: str
    key: bytes
    config: bytes
    created: float
    silenced_until: float | None = None


@dataclass(slots=True)
class JournalRow:
    """Batches of one monitor that were committed together, and the events they led to."""

    monitor: int
    first_event: int
    events: int
    body: bytes
    position: int = 0


@dataclass(slots=True)
class KeyRow:
    """An idempotency key: its hash, a digest of the body that came with it, and what was answered."""

    hash: bytes
    digest: bytes
    at: float
    answer: bytes


@dataclass(slots=True)
class StoredFinding:
    """A finding of any kind: its body is JSON. `examples` are the ids of its window, as JSON.

    `segment` is the name of its segment, None for a finding overall.
    """

    id: str
    monitor: int
    kind: str
    time: float
    body: bytes
    examples: bytes | None = None
    acknowledged: float | None = None
    segment: str | None = None


@dataclass(slots=True)
class RejectedRow:
    """A row that was set aside, as JSON."""

    monitor: int
    at: float
    body: bytes


@dataclass(slots=True)
class SourceRow:
    """Where a monitor goes on in a part of a source, such as a partition of a topic.

    It counts in the epoch in which reading began: another server may have gone further.
    """

    monitor: int
    source: str
    part: int
    next: int
    epoch: int = 0


@dataclass(slots=True)
class Group:
    """What one transaction writes."""

    journal: list[JournalRow] = field(default_factory=list)
    keys: list[KeyRow] = field(default_factory=list)
    findings: list[StoredFinding] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)
    configs: list[tuple[bytes, int]] = field(default_factory=list)  # new settings, and whose they are
    sources: list[SourceRow] = field(default_factory=list)


class Store(ABC):
    """A database. One thread at a time uses it; a lock sees to that.

    Attributes
    ----------
    epoch : int
        Grows when another server has written since this one last did: what was loaded before is out of date.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._lock = threading.RLock()
        self._position = self._sequence = 0

    # What a database gives ------------------------------------------------------------------------------------

    @abstractmethod
    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, ``?`` for each value, and return its rows."""

    @abstractmethod
    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction; what is wrong with the database is a StoreError."""

    @abstractmethod
    def _single(self) -> AbstractContextManager[None]:
        """As a transaction, for a single statement."""

    @abstractmethod
    def backup(self, path: str) -> None:
        """Write a copy, as of now, while everything goes on."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    @abstractmethod
    def _version(self) -> int:
        """The version of the tables; 0 where there are none."""

    dialect: str

    # Beginning ------------------------------------------------------------------------------------------------

    def _make_tables(self) -> None:
        """Make the tables, unless there are some; those of another version are a StoreError."""
        version = self._version()
        if not version:
            with self._transaction():
                for statement in tables(self.dialect):
                    self._query(statement)
        elif version != VERSION:
            raise StoreError(f"the database has version {version}; this release reads version {VERSION}")

    @contextmanager
    def in_epoch(self, epoch: int) -> Iterator[None]:
        """Hold the store for what was worked out in an epoch; a StoreError if that is over."""
        with self._lock:
            if epoch != self.epoch:
                raise StoreError("another server has written to this database meanwhile")
            yield

    def _find_ends(self) -> None:
        """Where the journal and the findings go on."""
        positions = self._query("SELECT max(position) FROM journal") + self._query(
            "SELECT max(position) FROM snapshots"
        )
        self._position = max(row[0] or 0 for row in positions)
        self._sequence = self._query("SELECT max(sequence) FROM findings")[0][0] or 0

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows, in one statement: between two of them the thread would have to wait for its turn."""
        one = f"({','.join('?' * len(columns))})"
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            values = [value for row in some for value in row]
            self._query(f"INSERT INTO {table} ({','.join(columns)}) VALUES {','.join([one] * len(some))}", values)

    # Monitors -------------------------------------------------------------------------------------------------

    def monitors(self) -> list[MonitorRow]:
        """All monitors."""
        with self._lock:
            rows = self._query("SELECT id, name, uid, key, config, created, silenced_until FROM monitors ORDER BY id")
        return [MonitorRow(a, b, c, bytes(d), bytes(e), f, g) for a, b, c, d, e, f, g in rows]

    def add_monitor(
        self, name: str, uid: str, key: bytes, config: bytes, created: float, snapshot: bytes = b""
    ) -> MonitorRow:
        """A new monitor, with its first snapshot."""
        with self._lock, self._transaction():
            number = self._count_up("monitor")
            self._insert(
                "monitors",
                ("id", "name", "uid", "key", "config", "created"),
                [(number, name, uid, key, config, created)],
            )
            if snapshot:
                self._insert("snapshot_parts", PARTS, [(number, 0, 0, snapshot)])
                self._insert("snapshots", SNAPSHOTS, [(number, 0, self._position, len(snapshot))])
        return MonitorRow(number, name, uid, key, config, created)

    def _count_up(self, name: str) -> int:
        """The next number of a counter."""
        self._query("UPDATE counters SET number = number + 1 WHERE name = ?", (name,))
        return int(self._query("SELECT number FROM counters WHERE name = ?", (name,))[0][0])

    def remove_monitor(self, monitor: int) -> None:
        """Forget a monitor and everything of it."""
        with self._lock, self._transaction():
            self._query("DELETE FROM examples WHERE finding IN (SELECT id FROM findings WHERE monitor = ?)", (monitor,))
            for table in ("journal", "snapshot_parts", "snapshots", "findings", "rejected", "sources"):
                self._query(f"DELETE FROM {table} WHERE monitor = ?", (monitor,))
            self._query("DELETE FROM monitors WHERE id = ?", (monitor,))

    def silence(self, monitor: int, until: float | None) -> None:
        """No alerts until then."""
        with self._lock, self._transaction():
            self._query("UPDATE monitors SET silenced_until = ? WHERE id = ?", (until, monitor))

    # The journal ----------------------------------------------------------------------------------------------

    def known_keys(self, hashes: Sequence[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
        """Those of these keys that were met before: digest of the body, and answer."""
        found: dict[bytes, tuple[bytes, bytes]] = {}
        with self._lock:
            for start in range(0, len(hashes), 500):
                some = hashes[start : start + 500]
                marks = ",".join("?" * len(some))
                for one, digest, answer in self._query(
                    f"SELECT hash, digest, answer FROM keys WHERE hash IN ({marks})", some
                ):
                    found[bytes(one)] = (bytes(digest), bytes(answer))
        return found

    def commit(self, group: Group) -> None:
        """Write a group, all of it or nothing; afterwards its journal rows have their positions."""
        with self._lock:
            with self._together(group):
                position, sequence = self._position, self._sequence  # now: a new connection has looked at them again
                for row in group.journal:
                    position += 1
                    row.position = position
                self._insert(
                    "journal",
                    ("position", "monitor", "first_event", "events", "body"),
                    [(row.position, row.monitor, row.first_event, row.events, row.body) for row in group.journal],
                )
                self._insert(
                    "keys",
                    ("hash", "digest", "made", "answer"),
                    [(key.hash, key.digest, key.at, key.answer) for key in group.keys],
                )
                self._insert(
                    "findings",
                    ("sequence", "id", "monitor", "segment", "kind", "time", "body", "alerted"),
                    [
                        (number, one.id, one.monitor, one.segment, one.kind, one.time, one.body, 0)
                        for number, one in enumerate(group.findings, sequence + 1)
                    ],
                )
                sequence += len(group.findings)
                examples = [(one.id, one.examples) for one in group.findings if one.examples is not None]
                self._insert("examples", ("finding", "body"), examples)
                rows = [(row.monitor, row.at, row.body) for row in group.rejected]
                self._insert("rejected", ("monitor", "made", "body"), rows)
                for config, monitor in group.configs:
                    self._query("UPDATE monitors SET config = ? WHERE id = ?", (config, monitor))
                for at in group.sources:
                    part = (at.monitor, at.source, at.part)
                    self._query("DELETE FROM sources WHERE monitor = ? AND source = ? AND part = ?", part)
                    self._insert("sources", ("monitor", "source", "part", "next"), [(*part, at.next)])
            self._position, self._sequence = position, sequence

    def _together(self, group: Group) -> AbstractContextManager[None]:
        """A transaction, unless there is one statement only, which is one by itself."""
        others = group.keys or group.findings or group.rejected or group.configs or group.sources
        return self._transaction() if others else self._single()

    def next_of_source(self, monitor: int, source: str, part: int) -> int | None:
        """Where a monitor goes on in a part of a source; None if it never took anything from it."""
        with self._lock, self._single():
            rows = self._query(
                "SELECT next FROM sources WHERE monitor = ? AND source = ? AND part = ?", (monitor, source, part)
            )
        return int(rows[0][0]) if rows else None

    def journal(self, monitor: int, after: int) -> Iterator[JournalRow]:
        """The batches of a monitor after a position, in order."""
        return self._journal(monitor, after, ">", "ASC")

    def journal_backwards(self, monitor: int) -> Iterator[JournalRow]:
        """The batches of a monitor, the last one first, as far back as they are kept."""
        return self._journal(monitor, 1 << 62, "<", "DESC")

    def _journal(self, monitor: int, beyond: int, side: str, order: str) -> Iterator[JournalRow]:
        """The batches of a monitor on one side of a position, some at a time, so that others can write in between."""
        while True:
            with self._lock:
                rows = self._query(
                    "SELECT monitor, first_event, events, body, position FROM journal "
                    f"WHERE monitor = ? AND position {side} ? ORDER BY position {order} LIMIT {CHUNK}",
                    (monitor, beyond),
                )
            yield from map(_journal_row, rows)
            if len(rows) < CHUNK:
                return
            beyond = rows[-1][4]

    # Snapshots ------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The position of the last batch."""
        return self._position

    def begin_snapshot(self, monitor: int) -> int:
        """The generation of a new snapshot; parts of earlier ones that were never finished go."""
        with self._lock, self._transaction():
            ((current,),) = self._query("SELECT generation FROM snapshots WHERE monitor = ?", (monitor,))
            self._query("DELETE FROM snapshot_parts WHERE monitor = ? AND generation <> ?", (monitor, current))
        return int(current) + 1

    def put_part(self, monitor: int, generation: int, part: int, body: bytes) -> None:
        """Write a part of a snapshot; it counts for nothing until :meth:`finish_snapshot`."""
        with self._lock, self._transaction():
            self._insert("snapshot_parts", PARTS, [(monitor, generation, part, body)])

    def finish_snapshot(self, monitor: int, generation: int, position: int, size: int, keep_from: int) -> None:
        """From now on the monitor begins here; batches it covers go, unless they led to events from `keep_from` on."""
        with self._lock, self._transaction():
            self._query("DELETE FROM snapshots WHERE monitor = ?", (monitor,))
            self._insert("snapshots", SNAPSHOTS, [(monitor, generation, position, size)])
            self._query("DELETE FROM snapshot_parts WHERE monitor = ? AND generation <> ?", (monitor, generation))
            self._query(
                "DELETE FROM journal WHERE monitor = ? AND position <= ? AND first_event + events <= ?",
                (monitor, position, keep_from),
            )

    def snapshot(self, monitor: int) -> tuple[int, bytes]:
        """The last snapshot of a monitor, and the position it covers; a ValueError if it is not there, or not whole."""
        with self._lock:
            heads = self._query("SELECT generation, position, size FROM snapshots WHERE monitor = ?", (monitor,))
            if not heads:
                raise ValueError("its snapshot is missing")
            generation, position, size = heads[0]
            rows = self._query(
                "SELECT body FROM snapshot_parts WHERE monitor = ? AND generation = ? ORDER BY part",
                (monitor, generation),
            )
        body = b"".join(bytes(row[0]) for row in rows)
        if len(body) != size:
            raise ValueError(f"its snapshot has {len(body):,} bytes where {size:,} were written")
        return position, body

    def forget_keys(self, before: float) -> None:
        """Forget idempotency keys that are older."""
        with self._lock, self._transaction():
            self._query("DELETE FROM keys WHERE made < ?", (before,))

    # What was found -------------------------------------------------------------------------------------------

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
        """The latest findings, the newest first: those before one of them, overall, of a segment, of one kind."""
        where = "monitor = ?"
        values: list[Any] = [monitor]
        if overall:
            where += " AND segment IS NULL"
        for column, wanted in (("segment", segment), ("kind", kind)):
            if wanted is not None:
                where, values = f"{where} AND {column} = ?", [*values, wanted]
        if before is not None:
            earlier = "sequence < (SELECT sequence FROM findings WHERE id = ? AND monitor = ?)"
            where, values = f"{where} AND {earlier}", [*values, before, monitor]
        with self._lock:
            rows = self._query(
                f"SELECT {FINDING} FROM findings WHERE {where} ORDER BY sequence DESC LIMIT ?", (*values, limit)
            )
        return [*map(_finding, rows)]

    def finding(self, monitor: int, number: str) -> StoredFinding | None:
        """One of them, with its examples."""
        with self._lock:
            rows = self._query(f"SELECT {FINDING} FROM findings WHERE id = ? AND monitor = ?", (number, monitor))
            examples = self._query("SELECT body FROM examples WHERE finding = ?", (number,))
        for row in rows:
            found = _finding(row)
            found.examples = bytes(examples[0][0]) if examples else None
            return found
        return None

    def count_findings(self, monitor: int, kind: str) -> int:
        """How many findings of a kind there are."""
        with self._lock:
            rows = self._query("SELECT count(*) FROM findings WHERE monitor = ? AND kind = ?", (monitor, kind))
        return int(rows[0][0])

    def acknowledge(self, number: str, at: float | None, body: bytes) -> None:
        """Somebody has seen it; the new body says who."""
        with self._lock, self._transaction():
            self._query("UPDATE findings SET acknowledged = ?, body = ? WHERE id = ?", (at, body, number))

    def probe(self) -> None:
        """Write something that nobody reads: a StoreError if nothing can be written."""
        self.put_document("probe", "write", b"")

    def unalerted(self, limit: int = 1_000) -> list[StoredFinding]:
        """Findings that were not given to the alerts yet, in order."""
        with self._lock:
            rows = self._query(f"SELECT {FINDING} FROM findings WHERE alerted = 0 ORDER BY sequence LIMIT ?", (limit,))
        return [*map(_finding, rows)]

    def mark_alerted(self, numbers: Sequence[str]) -> None:
        """These were given to the alerts."""
        with self._lock, self._transaction():
            for number in numbers:
                self._query("UPDATE findings SET alerted = 1 WHERE id = ?", (number,))

    def rejected(self, monitor: int, limit: int) -> list[RejectedRow]:
        """The latest rows that were set aside."""
        with self._lock:
            rows = self._query(
                "SELECT monitor, made, body FROM rejected WHERE monitor = ? ORDER BY id DESC LIMIT ?", (monitor, limit)
            )
        return [RejectedRow(a, b, bytes(c)) for a, b, c in rows]

    def count_rejected(self, monitor: int) -> int:
        """How many rows were set aside and are kept."""
        with self._lock:
            return int(self._query("SELECT count(*) FROM rejected WHERE monitor = ?", (monitor,))[0][0])

    def trim_rejected(self, monitor: int, keep: int) -> None:
        """Keep only the latest rows that were set aside."""
        with self._lock, self._transaction():
            rows = self._query(
                "SELECT id FROM rejected WHERE monitor = ? ORDER BY id DESC LIMIT 1 OFFSET ?", (monitor, keep)
            )
            if rows:
                self._query("DELETE FROM rejected WHERE monitor = ? AND id <= ?", (monitor, rows[0][0]))

    # Small things of others: tokens, the state of alerts --------------------------------------------------------

    def documents(self, kind: str) -> dict[str, bytes]:
        """All documents of a kind, by name."""
        with self._lock:
            rows = self._query("SELECT name, body FROM documents WHERE kind = ? ORDER BY name", (kind,))
        return {name: bytes(body) for name, body in rows}

    def put_document(self, kind: str, name: str, body: bytes) -> None:
        """Write a document, in place of one of the same kind and name."""
        with self._lock, self._transaction():
            self._query("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))
            self._insert("documents", ("kind", "name", "body"), [(kind, name, body)])

    def delete_document(self, kind: str, name: str) -> None:
        """Remove a document, if it is there."""
        with self._lock, self._transaction():
            self._query("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))


def _finding(row: Sequence[Any]) -> StoredFinding:
    number, monitor, kind, time, body, acknowledged, segment = row
    return StoredFinding(number, monitor, kind, time, bytes(body), acknowledged=acknowledged, segment=segment)


def _journal_row(row: Sequence[Any]) -> JournalRow:
    monitor, first_event, events, body, position = row
    return JournalRow(monitor, first_event, events, bytes(body), position)

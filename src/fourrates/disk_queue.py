"""A queue on disk, in one SQLite file that several threads and processes may share.

Every change is on the disk when it returns (write-ahead log, ``synchronous=FULL``). Entries wait in channels, each in
the order in which it was put. Whoever delivers an entry holds it for a while; another process takes it over when that
time is up or the holder has died. Alerts wait here for their receivers, the client's batches for the server.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from fourrates.files import user_folder

WAITING, DELIVERED, DEAD = 0, 1, 2
MEMORY = ":memory:"
MARK = 0x34726174  # "4rat": SQLite's id of the application
VERSION = 1
BUSY = 30.0  # seconds to wait for another process that writes
AHEAD = 86_400.0  # seconds; a moment further ahead was written by a clock that has been set back since
KEEP = 7 * 86_400.0  # seconds for which the id of a delivered entry is remembered

# SQLite keeps whatever is written into a column; its own check of the file reports rows that break these conditions.
TABLES = (
    f"""CREATE TABLE entries (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL CHECK (typeof(id) = 'text' AND length(id) BETWEEN 1 AND 200 AND id NOT GLOB '*[^ -~]*'),
    channel TEXT NOT NULL CHECK (typeof(channel) = 'text'),
    rows INTEGER NOT NULL CHECK (typeof(rows) = 'integer' AND rows BETWEEN 1 AND 1e12),
    body BLOB NOT NULL CHECK (typeof(body) = 'blob'),
    status INTEGER NOT NULL CHECK (status IN ({WAITING}, {DELIVERED}, {DEAD})),
    created REAL NOT NULL CHECK (typeof(created) = 'real' AND abs(created) < 1e12),
    due REAL NOT NULL DEFAULT 0 CHECK (typeof(due) = 'real' AND abs(due) < 1e12),
    tries INTEGER NOT NULL DEFAULT 0 CHECK (typeof(tries) = 'integer' AND tries BETWEEN 0 AND 1e9),
    problem TEXT NOT NULL DEFAULT '' CHECK (typeof(problem) = 'text'),
    holder TEXT NOT NULL DEFAULT '' CHECK (typeof(holder) = 'text' AND length(holder) <= 1000),
    held_until REAL NOT NULL DEFAULT 0 CHECK (typeof(held_until) = 'real' AND abs(held_until) < 1e12),
    UNIQUE (id, channel)
)""",
    "CREATE TABLE sqlite_sequence(name,seq)",  # made by SQLite, for places that are never used twice
    "CREATE INDEX entries_in_order ON entries (channel, status, place)",
)
COLUMNS = "id, channel, body, rows, created, tries, problem, place"


class QueueError(OSError):
    """A queue that cannot be read, written or filled further."""


class DamagedQueue(QueueError):
    """A file that is no queue, or no longer one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in the queue, on its way through one channel. `problem` is why the last of its `tries` failed."""

    id: str
    channel: str
    body: bytes  # for an alert, the payload as JSON
    rows: int = 1  # how much it counts for
    created: float = 0.0  # in seconds since 1970
    tries: int = 0
    problem: str = ""
    place: int = 0  # in the file


class DiskQueue:
    """The file. Safe to use from several threads and several processes at once, and across a fork.

    Parameters
    ----------
    path : path
        The file; made, for its owner alone, if it is not there. ``":memory:"`` is a queue in memory.
    limit, limit_bytes : int
        Entries, and bytes of them, that may wait; beyond that the oldest are dropped.
    """

    def __init__(self, path: str | os.PathLike[str], *, limit: int = 10_000, limit_bytes: int = 1 << 26) -> None:
        self.path, self.limit, self.limit_bytes = os.fspath(path), limit, limit_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with _forking:
            _queues.add(self)
        with self._transaction():
            pass

    # Entries ------------------------------------------------------------------------------------------------

    def put(self, entries: Sequence[Entry]) -> int:
        """Put entries on the disk; the rows of older ones that were dropped for them.

        An entry whose id is known in its channel is not put twice.
        """
        now = time.time()
        with self._transaction() as execute:
            known = "SELECT 1 FROM entries WHERE id = ? AND channel = ?"
            new = [entry for entry in entries if not execute(known, (entry.id, entry.channel)).fetchone()]
            execute("DELETE FROM entries WHERE status = ? AND created < ?", (DELIVERED, now - KEEP))
            dropped = self._make_room(execute, len(new), sum(len(entry.body) for entry in new)) if new else 0
            for entry in new:
                execute(
                    "INSERT INTO entries (id, channel, rows, body, status, created) VALUES (?, ?, ?, ?, ?, ?)",
                    (entry.id, entry.channel, entry.rows, entry.body, WAITING, now),
                )
        return dropped

    def _make_room(self, execute: Any, number: int, size: int) -> int:
        total = "SELECT count(*), coalesce(sum(length(body)), 0) FROM entries WHERE status != ?"
        waiting, used = execute(total, (DELIVERED,)).fetchone()
        dropped = 0
        while waiting + number > self.limit or used + size > self.limit_bytes:
            # Dead letters go first, then the oldest; an alert in delivery stays.
            oldest = execute(
                "SELECT place, length(body), rows FROM entries WHERE status != ? AND held_until < ? "
                "ORDER BY status DESC, place LIMIT 1",
                (DELIVERED, time.time()),
            ).fetchone()
            if oldest is None:
                break
            place, length, rows = oldest
            execute("DELETE FROM entries WHERE place = ?", (place,))
            waiting, used, dropped = waiting - 1, used - length, dropped + rows
        return dropped

    def entries(self, status: int = WAITING) -> list[Entry]:
        return [
            Entry(*row) for row in self._run(f"SELECT {COLUMNS} FROM entries WHERE status = ? ORDER BY place", status)
        ]

    def channels(self) -> set[str]:
        return {name for (name,) in self._run("SELECT DISTINCT channel FROM entries WHERE status = ?", WAITING)}

    def waiting(self, channel: str) -> tuple[int, int, int]:
        """The rows that wait for a channel, and the first and the last place in which they do; 0 if none."""
        count = "SELECT total(rows), min(place), max(place) FROM entries WHERE channel = ? AND status = ?"
        ((rows, first, last),) = self._run(count, channel, WAITING)
        return int(rows), first or 0, last or 0

    # Delivery -----------------------------------------------------------------------------------------------

    def claim(self, channel: str, seconds: float, *, in_order: bool = False) -> Entry | None:
        """Hold the oldest entry of a channel that is due and that nobody else holds, for this number of seconds.

        With `in_order` only the very first entry may be claimed, so nothing overtakes it.
        """
        with self._transaction() as execute:
            now = time.time()
            rows = execute(
                f"SELECT {COLUMNS}, holder, held_until FROM entries "
                "WHERE channel = ? AND status = ? AND (due <= ? OR due > ?) ORDER BY place LIMIT ?",
                (channel, WAITING, now, now + AHEAD, 1 if in_order else 20),
            ).fetchall()
            for *facts, holder, until in rows:
                if holder != self.holder and now < until < now + AHEAD and _may_be_alive(holder):
                    continue
                entry = Entry(*facts)
                execute(
                    "UPDATE entries SET holder = ?, held_until = ?, tries = tries + 1 WHERE place = ?",
                    (self.holder, now + seconds, entry.place),
                )
                return entry
        return None

    def delivered(self, entry: Entry) -> None:
        """Note that an entry arrived; its id stays for a while, so that the same is not put again."""
        self._change(entry, "status = ?, body = x'', problem = '', holder = '', held_until = 0", DELIVERED)

    def failed(self, entry: Entry, problem: str, pause: float = 0.0) -> None:
        """Note that it did not, and when to try again."""
        due = time.time() + pause if pause else 0.0
        self._change(entry, "due = ?, problem = ?, holder = '', held_until = 0", due, problem[:500])

    def bury(self, entry: Entry, problem: str, rest: Entry | None = None) -> None:
        """Mark an entry as a dead letter, which failed and will not be tried again; its `rest` follows, still held."""
        if rest is None:
            self._change(entry, "status = ?, problem = ?, holder = '', held_until = 0", DEAD, problem[:500])
            return
        with self._transaction() as execute:
            values = (rest.id, rest.body, rest.rows, entry.place, self.holder)
            done = execute("UPDATE entries SET id = ?, body = ?, rows = ? WHERE place = ? AND holder = ?", values)
            if done.rowcount:
                dead = (entry.id, entry.channel, entry.rows, entry.body, DEAD, time.time(), problem[:500])
                columns = "id, channel, rows, body, status, created, problem"
                execute(f"INSERT INTO entries ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", dead)

    def replace(self, entry: Entry, rest: Entry) -> None:
        """Replace an entry by its rest, still held."""
        self._change(entry, "id = ?, body = ?, rows = ?", rest.id, rest.body, rest.rows)

    def _change(self, entry: Entry, change: str, *values: object) -> None:
        where = "place = ? AND status = ? AND holder = ?"
        self._run(f"UPDATE entries SET {change} WHERE {where}", *values, entry.place, WAITING, self.holder)

    def remove(self, entry: Entry) -> None:
        self._run("DELETE FROM entries WHERE place = ?", entry.place)

    def hasten(self, channel: str) -> None:
        self._run("UPDATE entries SET due = 0.0 WHERE channel = ? AND status = ? AND due > 0", channel, WAITING)

    def next_due(self, channel: str) -> float | None:
        """Seconds until an entry of the channel is due (0: now); None if none waits."""
        ((first,),) = self._run("SELECT min(due) FROM entries WHERE channel = ? AND status = ?", channel, WAITING)
        return None if first is None else max(0.0, first - time.time())

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._lock:
            self._disconnect()

    # SQLite -------------------------------------------------------------------------------------------------

    def _run(self, sql: str, *values: object) -> list[Any]:
        with self._transaction() as execute:
            return list(execute(sql, values).fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._lock:
            try:
                connection = self._connection or self._connect()
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection.execute
            except sqlite3.OperationalError as error:
                raise QueueError(f"{self.path}: the queue cannot be used ({error})") from None
            except (sqlite3.Error, UnicodeError) as error:
                raise DamagedQueue(f"{self.path}: a damaged queue ({error})") from None

    def _connect(self) -> sqlite3.Connection:
        self.holder = f"{_machine()} {os.getpid()} {_started(os.getpid())} {uuid.uuid4().hex}"
        if self.path != MEMORY:
            try:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            except OSError as error:
                raise QueueError(error.errno, error.strerror, self.path) from None
        connection = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        execute = connection.execute
        execute("PRAGMA trusted_schema = OFF")
        _insist_on_wal(connection)
        execute("PRAGMA synchronous = FULL")
        with connection:
            execute("BEGIN IMMEDIATE")
            tables = [sql for (sql,) in execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")]
            if not tables:
                execute(TABLES[0])
                execute(TABLES[2])
                execute(f"PRAGMA application_id = {MARK}")
                execute(f"PRAGMA user_version = {VERSION}")
                return
            marks = [execute(f"PRAGMA {word}").fetchone()[0] for word in ("application_id", "user_version")]
            if marks != [MARK, VERSION] or tables != list(TABLES):
                raise DamagedQueue(f"{self.path}: not a queue of this release")
            if (problem := execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise DamagedQueue(f"{self.path}: a damaged queue ({problem})")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def default_path(*facts: object, suffix: str = ".alerts") -> str:
    """A path in the user's state folder, the same for the same facts, so that the next process finds this queue."""
    folder = user_folder("state")
    if folder.startswith("~"):
        raise QueueError("there is no home to keep files in; name one")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16] + suffix)


def set_aside(path: str) -> str:
    """Move a file that is no queue out of the way, with its log; its new name."""
    aside = f"{path}.damaged-{time.time_ns()}"
    for suffix in ("-wal", "-shm", ""):  # a log left behind would be replayed into the next file of this name
        with suppress(FileNotFoundError):
            os.replace(path + suffix, aside + suffix)
    return aside


def _insist_on_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; while another process does the same SQLite answers "locked" without waiting."""
    end = time.monotonic() + BUSY
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


# Forks. A child shares SQLite's record of locks without having the locks, so no file is open meanwhile.

_queues: weakref.WeakSet[DiskQueue] = weakref.WeakSet()
_forking = threading.Lock()
_locked: list[DiskQueue] = []


def _before_fork() -> None:
    _forking.acquire()
    _locked[:] = _queues
    for queue in _locked:
        queue._lock.acquire()
        if queue.path != MEMORY:
            queue._disconnect()


def _after_fork() -> None:
    while _locked:
        _locked.pop()._lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


# Holders have a machine, a process and its start, as far as known, so others can see whether they are alive.


def _may_be_alive(holder: str) -> bool:
    """False only if the holder has surely died, as a missing process of this very machine."""
    parts = holder.split()
    if len(parts) != 4 or parts[0] == "?" or parts[0] != _machine() or parts[2] == "?":
        return bool(parts)
    return parts[1].isdecimal() and _started(int(parts[1])) == parts[2]


def _machine() -> str:
    """Host, boot and process namespace; "?" if there is no /proc."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{socket.gethostname()}/{boot}/{os.readlink('/proc/self/ns/pid')}".replace(" ", "_")
    except OSError:
        return "?"


def _started(pid: int) -> str:
    """When a process was started, in ticks since boot; "?" if it is not there."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return "?"

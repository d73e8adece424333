"""Alerts on disk: one SQLite file that several processes may share.

Every change is a transaction that is on the disk when it returns (write-ahead log, ``synchronous=FULL``). Who delivers
an alert holds it for a while; another process takes it over when that time is up or the holder has died. What was
delivered leaves its id behind, so that an alert put twice is delivered once.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

WAITING, DELIVERED, DEAD = 0, 1, 2
MARK = 0x34726174  # "4rat": what SQLite keeps as the application's id
VERSION = 1
BUSY = 30.0  # seconds to wait for another process that writes
AHEAD = 86_400.0  # seconds; a moment further ahead was written by a clock that has been set back since
KEEP = 7 * 86_400.0  # seconds for which the id of a delivered alert is remembered
Full = Literal["drop-oldest", "refuse"]

TABLES = (
    """CREATE TABLE alerts (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    channel TEXT NOT NULL,
    status INTEGER NOT NULL,
    created REAL NOT NULL,
    due REAL NOT NULL,
    tries INTEGER NOT NULL,
    holder TEXT NOT NULL,
    held_until REAL NOT NULL,
    problem TEXT NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (id, channel)
)""",
    "CREATE INDEX alerts_in_order ON alerts (channel, status, place)",
    "CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
)
# SQLite keeps whatever is written into a column; what is read here is what was put.
SOUND = f"""typeof(id) = 'text' AND length(id) BETWEEN 1 AND 200 AND id NOT GLOB '*[^ -~]*'
    AND typeof(channel) = 'text' AND typeof(problem) = 'text' AND typeof(body) = 'blob'
    AND status IN ({WAITING}, {DELIVERED}, {DEAD}) AND typeof(tries) = 'integer' AND tries BETWEEN 0 AND 1e9
    AND typeof(holder) = 'text' AND length(holder) <= 1000
    AND typeof(created) = 'real' AND typeof(due) = 'real' AND typeof(held_until) = 'real'
    AND max(abs(created), abs(due), abs(held_until)) < 1e12"""
UNSOUND = (
    f"SELECT 1 FROM alerts WHERE ({SOUND}) IS NOT 1 LIMIT 1",
    "SELECT 1 FROM counts WHERE typeof(value) != 'integer' LIMIT 1",
)


class SpoolError(OSError):
    """A spool that cannot be read, written or filled further."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An alert in the spool, on its way through one channel.

    Attributes
    ----------
    id, channel : str
        Which alert, and through which channel.
    created : float
        When it was put, in seconds since 1970.
    tries : int
        Attempts so far.
    problem : str
        Why the last one failed.
    body : bytes
        The payload as JSON.
    """

    id: str
    channel: str
    created: float
    tries: int
    problem: str
    body: bytes


class Store:
    """The file. Safe to use from several threads, and from several processes at once.

    Parameters
    ----------
    path : path
        The file; made, for its owner alone, if it is not there.
    limit, limit_bytes : int
        Alerts, and bytes of them, that may wait.
    full : {"drop-oldest", "refuse"}
        What happens beyond that: the oldest are dropped and counted, or the new one is refused with an error.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limit: int = 10_000,
        limit_bytes: int = 1 << 26,
        full: Full = "drop-oldest",
    ) -> None:
        if full not in ("drop-oldest", "refuse"):
            raise ValueError(f"full {full!r} is not one of 'drop-oldest', 'refuse'")
        self.path, self.limit, self.limit_bytes, self.full = os.fspath(path), limit, limit_bytes, full
        self.holder = _this_process() + uuid.uuid4().hex
        self._lock = threading.Lock()
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY, isolation_level=None, check_same_thread=False, cached_statements=32
            )
        except OSError as error:
            raise SpoolError(error.errno, error.strerror, self.path) from None
        except sqlite3.Error as error:
            raise self._error(error) from None
        try:
            self._open()
        except (sqlite3.Error, UnicodeError) as error:
            self._connection.close()
            raise self._error(error) from None
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA trusted_schema = OFF")
        _insist_on_wal(self._connection)
        execute("PRAGMA synchronous = FULL")
        with self._transaction():
            there = execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
            if not there:
                for statement in TABLES:
                    execute(statement)
                execute(f"PRAGMA application_id = {MARK}")
                execute(f"PRAGMA user_version = {VERSION}")
                return
            (mark,), (version,) = (execute(f"PRAGMA {word}").fetchone() for word in ("application_id", "user_version"))
            if mark != MARK or version > VERSION:
                raise SpoolError(f"{self.path}: not a spool of alerts, or one of a later release")
            if [sql for (sql,) in there] != list(TABLES):
                raise SpoolError(f"{self.path}: a spool of alerts with other tables in it than belong there")
            unsound = any(execute(statement).fetchone() for statement in UNSOUND)
            if unsound or execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise SpoolError(f"{self.path}: a damaged spool of alerts")

    # Alerts -------------------------------------------------------------------------------------------------

    def add(self, id: str, body: bytes, channels: Sequence[str]) -> bool:
        """Put an alert on the disk, for each channel; false if its id is known already."""
        if len(body) > self.limit_bytes:
            raise SpoolError(f"{self.path}: an alert of {len(body):,} bytes, where {self.limit_bytes:,} are allowed")
        now = time.time()
        rows = [(id, name, WAITING, now, now, body) for name in channels]
        with self._transaction() as execute:
            known = {name for (name,) in execute("SELECT channel FROM alerts WHERE id = ?", (id,))}
            rows = [row for row in rows if row[1] not in known]
            if not rows:
                return False
            execute("DELETE FROM alerts WHERE status = ? AND created < ?", (DELIVERED, now - KEEP))
            self._make_room(len(rows), len(body) * len(rows))
            for row in rows:
                execute(
                    "INSERT INTO alerts (id, channel, status, created, due, tries, holder, held_until, problem, body) "
                    "VALUES (?, ?, ?, ?, ?, 0, '', 0, '', ?)",
                    row,
                )
        return True

    def _make_room(self, rows: int, size: int) -> None:
        execute = self._connection.execute
        held, used = execute(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM alerts WHERE status != ?", (DELIVERED,)
        ).fetchone()
        if held + rows <= self.limit and used + size <= self.limit_bytes:
            return
        if self.full == "refuse":
            raise SpoolError(f"{self.path}: full, {held:,} alerts ({used:,} bytes) wait to be delivered")
        # Dead letters go first, then the oldest; what somebody is delivering right now stays.
        oldest = execute(
            "SELECT place, length(body), status FROM alerts WHERE status != ? AND held_until < ? "
            "ORDER BY status DESC, place",
            (DELIVERED, time.time()),
        ).fetchall()
        gone = []
        for place, length, _ in oldest:
            if held + rows <= self.limit and used + size <= self.limit_bytes:
                break
            gone.append((place,))
            held, used = held - 1, used - length
        self._connection.executemany("DELETE FROM alerts WHERE place = ?", gone)
        execute(
            "INSERT INTO counts VALUES ('dropped', ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            (len(gone),),
        )

    @property
    def dropped(self) -> int:
        """Alerts that were dropped because the spool was full, ever."""
        with self._reading() as execute:
            row = execute("SELECT value FROM counts WHERE name = 'dropped'").fetchone()
        return 0 if row is None else int(row[0])

    def entries(self, status: int = WAITING, channels: Sequence[str] | None = None) -> list[Entry]:
        """What is in the spool, oldest first."""
        with self._reading() as execute:
            rows = execute(
                "SELECT id, channel, created, tries, problem, body FROM alerts WHERE status = ? ORDER BY place",
                (status,),
            ).fetchall()
        return [Entry(*row) for row in rows if channels is None or row[1] in channels]

    # Delivery -----------------------------------------------------------------------------------------------

    def claim(self, channel: str, seconds: float) -> Entry | None:
        """Hold the oldest alert of a channel that is due and that nobody holds, for so many seconds."""
        with self._transaction() as execute:
            now = time.time()
            rows = execute(
                "SELECT place, id, channel, created, tries, problem, body, holder, held_until FROM alerts "
                "WHERE channel = ? AND status = ? AND (due <= ? OR due > ?) ORDER BY place LIMIT 20",
                (channel, WAITING, now, now + AHEAD),
            ).fetchall()
            for place, *facts, holder, until in rows:
                if now < until < now + AHEAD and _may_be_alive(holder):
                    continue
                execute(
                    "UPDATE alerts SET holder = ?, held_until = ?, tries = tries + 1 WHERE place = ?",
                    (self.holder, now + seconds, place),
                )
                return Entry(*facts)
        return None

    def delivered(self, entry: Entry) -> None:
        """Note that an alert arrived; its id stays for a while."""
        self._settle(entry, "status = ?, body = x'', problem = ''", DELIVERED)

    def failed(self, entry: Entry, problem: str, pause: float) -> None:
        """Note that it did not, and when to try again."""
        self._settle(entry, "due = ?, problem = ?", time.time() + pause, problem[:500])

    def bury(self, entry: Entry, problem: str) -> None:
        """Note that it did not and will not be tried again: a dead letter."""
        self._settle(entry, "status = ?, problem = ?", DEAD, problem[:500])

    def _settle(self, entry: Entry, change: str, *values: object) -> None:
        with self._transaction() as execute:
            execute(
                f"UPDATE alerts SET {change}, holder = '', held_until = 0 "
                "WHERE id = ? AND channel = ? AND status = ? AND holder = ?",
                (*values, entry.id, entry.channel, WAITING, self.holder),
            )

    def hasten(self, channel: str) -> None:
        """Make everything that waits for a channel due at once."""
        with self._transaction() as execute:
            execute(
                "UPDATE alerts SET due = ? WHERE channel = ? AND status = ? AND due > ?",
                (now := time.time(), channel, WAITING, now),
            )

    def next_due(self, channel: str) -> float | None:
        """Seconds until an alert of the channel is due (0: now); None if none waits."""
        with self._reading() as execute:
            (due,) = execute(
                "SELECT min(due) FROM alerts WHERE channel = ? AND status = ?", (channel, WAITING)
            ).fetchone()
        return None if due is None else max(0.0, due - time.time())

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    # SQLite -------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._lock:
            execute = self._connection.execute
            try:
                execute("BEGIN IMMEDIATE")
                try:
                    yield execute
                except BaseException:
                    execute("ROLLBACK")
                    raise
                execute("COMMIT")
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        execute("ROLLBACK")
                raise self._error(error) from None

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._lock:
            try:
                yield self._connection.execute
            except sqlite3.Error as error:
                raise self._error(error) from None

    def _error(self, error: Exception) -> SpoolError:
        return SpoolError(f"{self.path}: the spool of alerts cannot be used ({error})")


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


# Holders ----------------------------------------------------------------------------------------------------


def _this_process() -> str:
    """Machine, process and its start, as far as they can be told; others see by it whether it is still there."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())} "


def _may_be_alive(holder: str) -> bool:
    """False only where it is sure that the holder has died: a process of this very machine that is not there."""
    parts = holder.split()
    if len(parts) != 4 or parts[0] == "?" or parts[0] != _machine() or parts[2] == "?":
        return bool(parts)
    return parts[1].isdecimal() and _started(int(parts[1])) == parts[2]


def _machine() -> str:
    """Host, boot and process namespace; "?" where there is no /proc to tell."""
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

"""The client, which collects rows, saves them on disk, and sends them until the server has acknowledged them.

One thread saves; when rows are many or old enough, they become batches in a queue on disk. Another sends, oldest batch
first, each until the answer confirms all its rows.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

from fourrates.client.batch import ORDER, Batch, as_list, body_of, encoded, kind_of
from fourrates.client.server import Answer, Server
from fourrates.disk_queue import MEMORY, DamagedQueue, DiskQueue, Entry, QueueError, default_path, set_aside
from fourrates.escaping import printable
from fourrates.events.rows import Bad, check_bad

logger = logging.getLogger("fourrates.client")

Stream = tuple[int, str, tuple[str, ...], tuple[str, ...]]  # the place of its kind in ORDER, monitor, columns, segments
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between two attempts
LOOK = 5.0  # seconds between looks at a queue that another process may have left something in
MARGIN = 10.0  # seconds that a batch is held beyond the time for its answer
FILE = "batches.queue"
NOTHING = Answer(0, None, "")
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


class Client:
    """Sends predictions and labels to a monitor, in the background.

    Rows wait in memory for up to `wait` seconds or `batch` rows. Then they are on disk, in `folder`, until the server
    has acknowledged every one of them. They outlive the process, and the next client sends them, in order. When the
    program ends in any way that lets Python clean up, everything is sent or on disk. A process that is killed (SIGKILL,
    a SIGTERM nobody handles, ``os._exit``) loses the rows of its last `wait` seconds, unless it calls :meth:`flush`
    first.

    Parameters
    ----------
    url : str
        The address of the service, such as ``http://127.0.0.1:8421``.
    token : str, optional
        A token with the scope `ingest`; without one the variable FOURRATES_TOKEN is used, if it is set.
    folder : path, optional
        The folder of waiting batches; by default one per address in the user's state folder. Processes may share it.
    batch : int
        Rows sent at once.
    wait : float
        Most seconds that a row waits for others.
    limit : int
        Bytes that may wait in memory, and again in the folder. Beyond that refused batches and then the oldest are
        dropped and counted.
    bad : {"keep", "skip", "reject"}
        A row that the monitor cannot use is left out, and kept there with its reason; or only counted; or the batch it
        is in is refused.
    timeout : float
        Seconds for an answer.

    Attributes
    ----------
    sent, repeated, rejected, dropped, refused : int
        Rows that the server accepted, had already, and rejected; rows dropped here for lack of room, which is logged;
        and rows of batches that it refused for good, which stay in the folder's file: in its table ``entries`` (SQLite)
        they have the status 2, with the ``problem`` and the ``body``.

    Examples
    --------
    >>> import tempfile
    >>> import fourrates as fr
    >>> folder = tempfile.TemporaryDirectory()
    >>> client = fr.Client("http://127.0.0.1:9", folder=folder.name)  # nobody listens there
    >>> client.log("fraud", y_true=1, y_pred=0)
    1
    >>> client.log("fraud", id=["a1", "a2"], score=[0.2, 0.9], by={"country": ["FR", "DE"]})
    2
    >>> client.close(0.2)  # rows that are left, for later
    3
    >>> folder.cleanup()
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        folder: str | os.PathLike[str] | None = None,
        batch: int = 1_000,
        wait: float = 1.0,
        limit: int = 1 << 26,
        bad: Bad = "keep",
        timeout: float = 10.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url {url!r} does not begin with http:// or https:// and a host")
        check_bad(bad)
        if batch < 1 or wait < 0 or limit < 1:
            raise ValueError("batch and limit must be at least 1, wait at least 0")
        token = token or os.environ.get("FOURRATES_TOKEN")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("a token is printable ASCII")
        self.url, self.batch, self.wait, self.limit, self.bad, self.timeout = url, batch, wait, limit, bad, timeout
        self._address, self._channel = parts, url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "User-Agent": "fourrates"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._folder = None if folder is None else Path(folder)
        self.sent = self.repeated = self.rejected = self.dropped = self.refused = 0
        self._drops_reported = 0
        self._begin()
        _clients.add(self)

    def _begin(self) -> None:
        """Start with nothing logged, at first and in a forked process."""
        self._changed = threading.Condition()
        self._open: dict[Stream, _Rows] = {}  # rows being collected
        self._size = 0  # bytes in it
        self._saving = threading.RLock()  # held by whoever puts rows on disk
        self._saves = 0
        self._flushing = 0  # how many wait for everything to be sent
        self._closed = self._ended = False
        self._left = 0
        self._threads: list[threading.Thread] = []
        self._queues: list[DiskQueue] = []  # the one on disk, if there is one, and one in memory for when it fails
        self._server = Server(self._address, self._headers, self.timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For who logs -------------------------------------------------------------------------------------------

    def log(
        self,
        monitor: str,
        y_true: Any = None,
        y_pred: Any = None,
        *,
        id: Any = None,
        score: Any = None,
        by: Mapping[str, Any] | None = None,
        time: Any = None,
        version: Any = None,
    ) -> int:
        """Take one event or many, and return how many; they are sent later.

        Both `y_true` and `y_pred` (or `score`) make pairs. A prediction alone, or a label alone, needs an `id`, by
        which the monitor joins them.

        Parameters
        ----------
        monitor : str
            Its name.
        y_true, y_pred, score, id, time : value, list, array or series
            All of the same length.
        by : mapping, optional
            Segment columns by name, such as ``{"country": [...]}``; a single value holds for all rows.
        version : str, list, array or series, optional
            The version of the model that predicted; a single one holds for all rows. Labels need none.
        """
        values_of = {"y_true": y_true, "y_pred": y_pred, "score": score, "id": id, "time": time}
        given = {name: as_list(name, value) for name, value in values_of.items() if value is not None}
        kind = kind_of(given)
        if not monitor or "/" in monitor or monitor in (".", ".."):
            raise ValueError(f"{monitor!r} cannot be the name of a monitor")
        first = next(iter(given))
        length = len(given[first])
        if version is not None:
            given["version"] = as_list("version", version, length)
        segments = {str(name): as_list(name, value, length) for name, value in (by or {}).items()}
        columns = {**given, **{f"by {name!r}": values for name, values in segments.items()}}
        for name, values in columns.items():
            if len(values) != length:
                raise ValueError(f"{name} has {len(values):,} values, {first} has {length:,}")
        if length == 0:
            return 0
        # Encoded here, so that values that cannot be sent are an error at the call that logged them.
        chunks = []
        for start in range(0, length, self.batch):
            texts = [encoded(name, values, start, self.batch) for name, values in columns.items()]
            chunks.append((texts, min(self.batch, length - start)))
        self._add((ORDER.index(kind), monitor, tuple(given), tuple(segments)), chunks)
        return length

    def _add(self, key: Stream, chunks: list[tuple[list[str], int]]) -> None:
        with self._changed:
            if self._closed:
                raise RuntimeError("the client is closed")
            rows = self._open.get(key)
            if rows is None:
                rows = self._open[key] = _Rows(time.monotonic())
                self._changed.notify_all()
            for texts, length in chunks:
                rows.chunks.append((texts, length))
                rows.length += length
                self._size += sum(map(len, texts))
            if rows.length >= self.batch:
                self._changed.notify_all()
            while self._size > self.limit:
                self._drop_oldest()
            if not self._threads:
                self._start()

    def _start(self) -> None:
        """Start the threads at the first row that this process logs."""
        for job, name in ((self._save_in_time, "save"), (self._send_in_order, "send")):
            thread = threading.Thread(target=job, daemon=True, name=f"fourrates client: {name}")
            with suppress(RuntimeError):  # while the interpreter shuts down; `close` puts everything on disk
                thread.start()
                self._threads.append(thread)
        multiprocessing = sys.modules.get("multiprocessing")
        if multiprocessing is not None and multiprocessing.parent_process() is not None:
            from multiprocessing.util import Finalize

            Finalize(None, _close_all, exitpriority=100)  # such processes end without `atexit`

    def _drop_oldest(self) -> None:
        key = min(self._open, key=lambda key: self._open[key].since)
        rows = self._open[key]
        texts, length = rows.chunks.popleft()
        rows.length -= length
        self._size -= sum(map(len, texts))
        self._count_dropped(length, f"more than {self.limit:,} bytes wait in memory")
        if not rows.chunks:
            del self._open[key]

    def to_label(self, monitor: str, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Ask which predictions to label. Returns those the monitor's plan has drawn that have no label yet, in order.

        Ask again with `next` of the answer as `after`, and no prediction is given twice and none left out, whatever
        dies in between. From 0 it gives all that still wait.

        Parameters
        ----------
        monitor : str
            Its name.
        after : int
            The number of the last prediction you have.
        limit : int
            The most predictions, up to 1,000.

        Returns
        -------
        dict
            ``to_label``, a list of predictions with ``number``, ``id``, ``pred``, ``segment`` and ``time``; ``next``;
            and how many were ``drawn`` so far, how many of them are ``labelled`` and ``waiting``.
        """
        server = Server(self._address, self._headers, self.timeout)
        answer = server.get(f"/api/monitors/{quote(monitor, safe='')}/to-label?after={after}&limit={limit}")
        server.disconnect()
        if answer.status != 200 or not isinstance(answer.content, dict):
            raise ConnectionError(f"{self.url} {answer.text}")
        return answer.content

    @property
    def waiting(self) -> int:
        """Rows that are not sent yet, in memory and in the folder."""
        with self._saving:
            with self._changed:
                collected = sum(rows.length for rows in self._open.values())
            return self._left + collected + sum(self._waiting_in(queue)[0] for queue in self._queues)

    def flush(self, deadline: float = 10.0) -> bool:
        """Put everything that was logged on disk, and send it; true if that was done within this number of seconds.

        On return the rows are on disk in any case, so ``flush(0)`` is enough before ``os._exit``.
        """
        end = time.monotonic() + deadline
        if not self._threads and not self._open:
            return True
        with self._changed:
            self._flushing += 1
        try:
            self._save()
            targets = [(queue, self._waiting_in(queue)[2]) for queue in self._queues]
            while any(0 < self._waiting_in(queue)[1] <= target for queue, target in targets):
                with self._changed:
                    left = end - time.monotonic()
                    if left <= 0 or self._ended or not any(thread.is_alive() for thread in self._threads):
                        return False
                    self._changed.wait(min(left, 0.1))
            return True
        finally:
            with self._changed:
                self._flushing -= 1

    def close(self, deadline: float = 5.0) -> int:
        """Put everything on disk, send as much as possible within this time, and return how many rows wait."""
        with self._changed:
            closed, self._closed = self._closed, True
        if not closed:
            self.flush(deadline)
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            self._server.ended = True
            self._server.break_off()
            for thread in self._threads:
                thread.join(1.0)
            with self._saving:
                self._leave()
        return self.waiting

    def _leave(self) -> None:
        """Put rows that are only in memory on disk, or count them as dropped; close the files."""
        if not self._queues:
            return
        *disks, memory = self._queues
        if entries := memory.entries():
            try:
                self._count_dropped(disks[0].put(entries), f"more than {self.limit:,} bytes wait in {disks[0].path}")
            except (QueueError, IndexError) as error:
                self._count_dropped(sum(entry.rows for entry in entries), f"they cannot be put on disk ({error})")
        if self.dropped > self._drops_reported:
            logger.error("%s: %d rows were dropped in all", self.url, self.dropped)
        self._left = sum(self._waiting_in(queue)[0] for queue in disks)
        for queue in self._queues:
            queue.close()
        self._queues = []

    # In the thread that saves -------------------------------------------------------------------------------

    def _save_in_time(self) -> None:
        with self._saving:
            self._open_queues()
        while True:
            with self._changed:
                while not self._ended and (seconds := self._until_saved()) > 0.0:
                    self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
                if self._ended:
                    return
            self._save()

    def _until_saved(self) -> float:
        """Seconds until rows are old enough to be saved; 0 once they are many enough."""
        if any(rows.length >= self.batch for rows in self._open.values()):
            return 0.0
        first = min((rows.since for rows in self._open.values()), default=float("inf"))
        return max(0.0, first + self.wait - time.monotonic())

    def _save(self) -> None:
        """Put all that was collected on disk. Once one stream is ready the others go along, so that order is kept."""
        with self._saving:
            with self._changed:
                taken, self._open, self._size = self._open, {}, 0
            batches = [batch for stream in sorted(taken) for batch in self._seal(stream, taken[stream])]
            self._put([batch.entry(self._channel) for batch in batches])
        with self._changed:
            self._saves += 1
            self._changed.notify_all()

    def _put(self, entries: list[Entry]) -> None:
        self._open_queues()
        for queue in self._queues.copy() if entries else []:
            try:
                return self._count_dropped(queue.put(entries), f"more than {self.limit:,} bytes wait in {queue.path}")
            except QueueError as error:
                logger.error("%s; batches are kept in memory", error)
                if isinstance(error, DamagedQueue):
                    queue.close()
                    self._queues[:1] = self._open_disk()

    def _open_queues(self) -> None:
        if not self._queues:
            self._queues = [*self._open_disk(), DiskQueue(MEMORY, limit_bytes=self.limit)]

    def _open_disk(self) -> list[DiskQueue]:
        """The queue in the folder; None, with the reason in the log, if there cannot be one."""
        try:
            if self._folder is None:
                self._folder = Path(default_path("client", self.url, suffix=".batches"))
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = str(self._folder / FILE)
            try:
                queue = DiskQueue(path, limit=10**9, limit_bytes=self.limit)
            except DamagedQueue as error:
                logger.error("%s; it is now %s, and a new one is begun", error, set_aside(path))
                queue = DiskQueue(path, limit=10**9, limit_bytes=self.limit)
        except OSError as error:
            logger.error("%s: batches are kept in memory alone (%s)", self.url, error)
            return []
        if others := queue.channels() - {self._channel}:
            logger.warning("%s: batches wait there for other addresses: %s", path, ", ".join(sorted(others)))
        return [queue]

    def _seal(self, stream: Stream, rows: _Rows) -> list[Batch]:
        order, monitor, columns, segments = stream
        query = "" if self.bad == "reject" else f"?bad={self.bad}"
        path = f"/api/monitors/{quote(monitor, safe='')}/{ORDER[order]}{query}"
        groups: list[list[list[str]]] = []  # chunks that make a batch
        lengths: list[int] = []  # their rows
        for texts, number in rows.chunks:
            if not lengths or lengths[-1] + number > self.batch:
                groups.append([])
                lengths.append(0)
            groups[-1].append(texts)
            lengths[-1] += number
        bodies = [body_of(chunks, columns, segments) for chunks in groups]
        return [Batch.new(path, body, length) for body, length in zip(bodies, lengths, strict=True)]

    # In the thread that sends -------------------------------------------------------------------------------

    def _send_in_order(self) -> None:
        pause = FIRST_PAUSE
        while not self._ended:
            saves = self._saves
            problem = self._send_oldest()
            if problem is None:
                pause = FIRST_PAUSE
            elif problem is NOTHING:
                self._rest(LOOK, 0.05, saves)
            else:
                if pause == FIRST_PAUSE:
                    logger.warning("%s %s; rows wait in %s", self.url, problem.text, self._folder or "memory")
                self._rest(max(pause, min(problem.seconds, LONGEST_PAUSE)), FIRST_PAUSE, None)
                pause = min(LONGEST_PAUSE, 2 * pause)
        self._server.disconnect()

    def _rest(self, seconds: float, hurried: float, saves: int | None) -> None:
        """Wait; less while somebody waits for everything to be sent, or if rows beyond those `saves` were saved."""
        began = time.monotonic()
        with self._changed:
            while not self._ended and saves in (None, self._saves):
                left = began + (min(seconds, hurried) if self._flushing else seconds) - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _send_oldest(self) -> Answer | None:
        """Send the oldest batch; None if that is settled, else the problem, or that there is nothing to send."""
        problem = NOTHING
        for queue in self._queues.copy():
            try:
                entry = queue.claim(self._channel, 2 * self.timeout + MARGIN, in_order=True)
                if entry is not None:
                    return self._send(queue, entry)
            except QueueError as error:
                problem = Answer(0, None, f"waits: {error}")
        return problem

    def _send(self, queue: DiskQueue, entry: Entry) -> Answer | None:
        """Send a batch, or those of its first rows that the server is willing to read."""
        try:
            part = batch = Batch.of(entry)
            answer = self._server.post(part)
            while answer.status == 413 and part.rows > 1:
                part = batch.part(0, part.rows // 2)
                answer = self._server.post(part)
        except ValueError as error:
            self._refuse(queue, entry, str(error))
            return None
        if counts := answer.counts(part.rows):
            self.sent += counts[0]
            self.repeated += counts[1]
            self.rejected += counts[2]
        elif not answer.final:
            queue.failed(entry, answer.text)
            return answer
        rest = None if part is batch else batch.part(part.rows, batch.rows).entry(self._channel)
        if not counts:
            self._refuse(queue, replace(part.entry(self._channel), place=entry.place), answer.text, rest)
        elif rest is None:
            queue.remove(entry)
        else:
            queue.replace(entry, rest)
        with self._changed:
            self._changed.notify_all()
        return None

    def _refuse(self, queue: DiskQueue, entry: Entry, problem: str, rest: Entry | None = None) -> None:
        """Keep a batch that will never be accepted for a person to look at; of a divided one, all but the rest."""
        self.refused += entry.rows
        queue.bury(entry, problem, rest)
        path = entry.body.partition(b"\n")[0].decode("latin-1")
        logger.error("%s%s %s; the batch stays in %s", self.url, printable(path), problem, queue.path)

    # In any thread ------------------------------------------------------------------------------------------

    def _waiting_in(self, queue: DiskQueue) -> tuple[int, int, int]:
        """Rows that wait, the first place and the last; a queue that cannot be read is not known to be empty."""
        try:
            return queue.waiting(self._channel)
        except QueueError as error:
            logger.error("%s", error)
            return 0, 1, 1

    def _count_dropped(self, rows: int, reason: str) -> None:
        """Count dropped rows, and log the first and each doubling."""
        with self._changed:
            self.dropped += rows
            if rows and self.dropped >= 2 * self._drops_reported:
                self._drops_reported = self.dropped
                logger.error("%s: %s; %d rows were dropped so far", self.url, reason, self.dropped)


@dataclass(slots=True)
class _Rows:
    """Waiting rows; for each call of log, its columns as JSON and its length."""

    since: float
    chunks: deque[tuple[list[str], int]] = field(default_factory=deque)
    length: int = 0


def _close_all() -> None:
    """At the end of the program. All are saved and hurried first, so that several take no longer than one."""
    clients = [client for client in list(_clients) if not client._closed]
    for client in clients:
        client.flush(0)
        with client._changed:
            client._flushing += 1
    end = time.monotonic() + 5.0
    for client in clients:
        client.close(max(0.0, end - time.monotonic()))


def _forked() -> None:
    for client in list(_clients):
        client._begin()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

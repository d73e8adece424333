"""The client: what is logged is collected, sent by a thread, and kept on disk while the server is away."""

from __future__ import annotations

import atexit
import json
import logging
import os
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote, urlsplit

from fourrates.client.backlog import Backlog, Batch
from fourrates.client.columns import ORDER, as_list, body_of, encoded, kind_of
from fourrates.client.model import WatchedModel
from fourrates.names import printable

if TYPE_CHECKING:
    from http.client import HTTPConnection

logger = logging.getLogger("fourrates.client")

Stream = tuple[int, str, tuple[str, ...], tuple[str, ...]]  # the place of its kind in ORDER, monitor, columns, segments
LATER = (401, 403, 408, 425, 429)  # answers that may be different next time; so may every 5xx
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between two attempts
ANSWER = 1 << 20  # bytes of an answer that are read
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


class Client:
    """Sends predictions and labels to a monitor, in the background.

    What is logged waits for up to `wait` seconds or `batch` rows, then it is sent. While the server cannot be reached,
    or is overloaded, batches lie in `folder`, in order; they outlive the process, and the next client takes them up. At
    the end of the program everything is sent, or put into the folder. What a process that is killed had logged in its
    last `wait` seconds is lost.

    Parameters
    ----------
    url : str
        The address of the service, such as ``http://127.0.0.1:8421``.
    token : str, optional
        A token with the scope `ingest`; without one the variable FOURRATES_TOKEN is used, if it is set.
    folder : path, optional
        Where batches wait while the server is away; by default one for this address in the user's folder of state.
    batch : int
        Rows that are sent at once.
    wait : float
        Seconds that a row waits for others at most.
    limit : int
        Bytes that may wait in memory, and again in the folder. Beyond that the oldest are dropped and counted.
    bad : {"skip", "refuse"}
        A row that the monitor cannot use is set aside by the server, or the batch it is in is refused.
    timeout : float
        Seconds for an answer.

    Attributes
    ----------
    sent, repeated, rejected, dropped, refused : int
        Rows that the server has, that it had already, that it has set aside; that were dropped here because too much
        waited, which is logged; and those of batches that it would not have, which lie in the folder ``refused``.

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
        bad: Literal["skip", "refuse"] = "skip",
        timeout: float = 10.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url {url!r} does not begin with http:// or https:// and a host")
        if bad not in ("skip", "refuse"):
            raise ValueError(f"bad {bad!r} is not one of 'skip', 'refuse'")
        if batch < 1 or wait < 0 or limit < 1:
            raise ValueError("batch and limit must be at least 1, wait at least 0")
        token = token or os.environ.get("FOURRATES_TOKEN")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("a token is printable ASCII")
        self.url, self.batch, self.wait, self.limit, self.bad, self.timeout = url, batch, wait, limit, bad, timeout
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "User-Agent": "fourrates"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._folder = None if folder is None else Path(folder)
        self.sent = self.repeated = self.rejected = self.dropped = self.refused = 0
        self._begin()
        _clients.add(self)

    def _begin(self) -> None:
        """With nothing logged yet: at first, and in a process that was forked."""
        self._changed = threading.Condition()
        self._open: dict[Stream, _Rows] = {}  # what is being collected
        self._size = 0  # bytes in it
        self._logged = self._settled = self._urgent = 0  # calls of log: all, those sent, those that are waited for
        self._closed = False
        self._drops_told = 1
        self._thread: threading.Thread | None = None
        self._backlog: Backlog | None = None
        self._connection: HTTPConnection | None = None

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
        """
        columns = {"y_true": y_true, "y_pred": y_pred, "score": score, "id": id, "time": time}
        given = {name: as_list(name, value) for name, value in columns.items() if value is not None}
        kind = kind_of(given)
        length = len(next(iter(given.values())))
        for name, values in given.items():
            if len(values) != length:
                raise ValueError(f"{name} has {len(values):,} values, {next(iter(given))} has {length:,}")
        segments = {str(name): as_list(name, value, length) for name, value in (by or {}).items()}
        for name, values in segments.items():
            if len(values) != length:
                raise ValueError(f"by {name!r} has {len(values):,} values, {next(iter(given))} has {length:,}")
        if length == 0:
            return 0
        # Encoded here, so that what cannot be sent is an error where it was logged.
        texts = [encoded(name, values) for part in (given, segments) for name, values in part.items()]
        self._add((ORDER.index(kind), monitor, tuple(given), tuple(segments)), texts, length)
        return length

    def _add(self, key: Stream, texts: list[str], length: int) -> None:
        size = sum(map(len, texts))
        with self._changed:
            if self._closed:
                raise RuntimeError("the client is closed")
            self._logged += 1
            rows = self._open.get(key)
            if rows is None:
                rows = self._open[key] = _Rows(time.monotonic())
            rows.chunks.append((texts, length))
            rows.length += length
            self._size += size
            while self._size > self.limit:
                self._drop_oldest()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="fourrates client")
                self._thread.start()
            if rows.length >= self.batch or len(rows.chunks) == 1:
                self._changed.notify_all()

    def _drop_oldest(self) -> None:
        key = min(self._open, key=lambda key: self._open[key].since)
        rows = self._open[key]
        texts, length = rows.chunks.popleft()
        rows.length -= length
        self._size -= sum(map(len, texts))
        self._count_dropped(length)
        if not rows.chunks:
            del self._open[key]

    def wrap(
        self,
        model: Any,
        monitor: str,
        *,
        id: str | Callable[[Any], Any] | None = None,
        by: Sequence[str] = (),
    ) -> WatchedModel:
        """A model whose `predict` is logged: ``model = client.wrap(model, "fraud", id="order")``.

        Parameters
        ----------
        model : object
            Anything with `predict`, such as a classifier of scikit-learn; all else about it is as it was.
        monitor : str
            Its name.
        id : str or callable, optional
            The column that holds the ids, or a function of the features that gives them. By default the index of a
            pandas frame; else ids are made, and are found in ``model.last_ids``.
        by : sequence of str
            Columns that name the segments.
        """
        return WatchedModel(self.log, model, monitor, id, tuple(by))

    @property
    def waiting(self) -> int:
        """Rows that are not sent yet, in memory and in the folder."""
        with self._changed:
            collected = sum(rows.length for rows in self._open.values())
        return collected + (0 if self._backlog is None else self._backlog.rows)

    def flush(self, deadline: float = 10.0) -> bool:
        """Send everything that was logged up to now; true if that was done within this number of seconds."""
        end = time.monotonic() + deadline
        with self._changed:
            target = self._urgent = self._logged
            self._changed.notify_all()
            while self._settled < target:
                if (left := end - time.monotonic()) <= 0:
                    return False
                self._changed.wait(left)
        return True

    def close(self, deadline: float = 5.0) -> int:
        """Send what can be sent within this time, put the rest into the folder, and return how many rows wait."""
        self.flush(deadline)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._break_off()
            self._thread.join(self.timeout)
        return self.waiting

    # In the thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        self._backlog = backlog = self._open_backlog()
        pause, due = FIRST_PAUSE, 0.0
        while True:
            batches, calls, closed = self._collect(due if backlog else None)
            self._count_dropped(sum(backlog.put(batch) for batch in batches))
            while not closed and backlog:
                problem = self._send_oldest(backlog)
                if problem is None:
                    pause, due = FIRST_PAUSE, 0.0
                    continue
                if due == 0.0:
                    logger.warning("%s %s; what is logged waits in %s", self.url, problem, backlog.folder)
                due = time.monotonic() + max(pause, min(problem.seconds, LONGEST_PAUSE))
                pause = min(LONGEST_PAUSE, 2 * pause)
                backlog.persist()
                break
            if closed:
                backlog.persist()
                self._disconnect()
            with self._changed:
                if not backlog:
                    self._settled = calls
                    self._changed.notify_all()
            if closed:
                return

    def _send_oldest(self, backlog: Backlog) -> _Problem | None:
        """Send the oldest batch and forget it; the problem if it has to be tried again."""
        try:
            batch = backlog.first()
        except OSError as error:
            return _Problem(f"waits: {error}")
        problem = None if batch is None else self._send(batch)
        if batch is not None and problem is None:
            backlog.done()
        return problem

    def _count_dropped(self, rows: int) -> None:
        """Count rows that were dropped, and say so: at the first, and each time they are twice as many."""
        if not rows:
            return
        self.dropped += rows
        if self.dropped >= self._drops_told:
            self._drops_told = 2 * self.dropped
            logger.error("%s: more than %d bytes wait; %d rows were dropped so far", self.url, self.limit, self.dropped)

    def _open_backlog(self) -> Backlog:
        from fourrates.alerts.folder import default_path

        try:
            folder = self._folder or Path(default_path("client", self.url, suffix=".batches"))
            return Backlog(folder, self.limit)
        except OSError as error:
            logger.error("%s: batches are kept in memory alone while the server is away (%s)", self.url, error)
            return Backlog(None, self.limit)

    def _collect(self, due: float | None) -> tuple[list[Batch], int, bool]:
        """Wait for rows that are many or old enough, or for the time of another attempt."""
        with self._changed:
            while True:
                now = time.monotonic()
                hurry = self._urgent > self._settled
                ready = any(rows.length >= self.batch or rows.since + self.wait <= now for rows in self._open.values())
                # What was logged before is sent before: once one stream is ready the others go along.
                if ready or self._closed or (hurry and self._open):
                    break
                moments = [rows.since + self.wait for rows in self._open.values()]
                if due is not None:
                    moments.append(min(due, now + FIRST_PAUSE) if hurry else due)
                if moments and min(moments) <= now:
                    break
                self._changed.wait(min(moments) - now if moments else None)
                if due is not None and hurry and not self._open and not self._closed:
                    break
            taken, self._open, self._size = self._open, {}, 0
            calls, closed = self._logged, self._closed
        return [batch for stream in sorted(taken) for batch in self._seal(stream, taken[stream])], calls, closed

    def _seal(self, stream: Stream, rows: _Rows) -> list[Batch]:
        order, monitor, columns, segments = stream
        path = f"/api/monitors/{quote(monitor, safe='')}/{ORDER[order]}" + ("?bad=skip" if self.bad == "skip" else "")
        sealed: list[Batch] = []
        chunks: list[list[str]] = []
        length = 0
        for texts, number in rows.chunks:
            if chunks and length + number > self.batch:
                sealed.append(Batch.new(path, body_of(chunks, columns, segments), length))
                chunks, length = [], 0
            chunks.append(texts)
            length += number
        if chunks:
            sealed.append(Batch.new(path, body_of(chunks, columns, segments), length))
        return sealed

    def _send(self, batch: Batch) -> _Problem | None:
        """Send a batch; the problem if it has to be tried again."""
        from http.client import HTTPException

        try:
            status, retry_after, answer = self._post(batch)
        except (OSError, HTTPException) as error:
            return _Problem(f"cannot be reached ({' '.join(str(error).split()) or type(error).__name__})")
        if 200 <= status < 300:
            self.sent += _count(answer, "accepted")
            self.repeated += _count(answer, "repeated")
            self.rejected += _count(answer, "rejected")
            return None
        if status in LATER or status >= 500:
            seconds = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else 0.0
            return _Problem(f"answered {status}{_message(answer)}", seconds)
        assert self._backlog is not None
        self.refused += batch.rows
        where = self._backlog.refuse()
        logger.error("%s%s answered %d%s; the batch is in %s", self.url, batch.path, status, _message(answer), where)
        return None

    def _post(self, batch: Batch) -> tuple[int, str, Any]:
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        headers = {**self._headers, "Idempotency-Key": batch.key}
        while True:
            fresh = self._connection is None
            if self._connection is None:
                kind = HTTPSConnection if self._secure else HTTPConnection
                self._connection = kind(self._host, self._port, timeout=self.timeout)
            try:
                self._connection.request("POST", self._prefix + batch.path, batch.body, headers)
                response = self._connection.getresponse()
                text = response.read(ANSWER)
                if not response.isclosed() or response.will_close:
                    self._disconnect()
                break
            except (OSError, HTTPException) as error:
                self._disconnect()
                if fresh or self._closed or isinstance(error, TimeoutError):
                    raise  # else the server had closed a connection that was idle
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        return response.status, response.getheader("Retry-After") or "", answer

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _break_off(self) -> None:
        """End a call that waits for an answer, from another thread."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class _Rows:
    """Rows that wait for others: for each call of log, its columns as JSON and its length."""

    since: float
    chunks: deque[tuple[list[str], int]] = field(default_factory=deque)
    length: int = 0


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    seconds: float = 0.0  # for which the server asked to be left alone

    def __str__(self) -> str:
        return self.text


def _count(answer: Any, name: str) -> int:
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, int) else 0


def _message(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return f": {printable(str(message))[:300]}" if message else ""


def _close_all() -> None:
    """At the end of the program, all at once: what takes long for one takes no longer for several."""
    threads = [threading.Thread(target=client.close) for client in list(_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _forked() -> None:
    for client in list(_clients):
        client._begin()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

"""Alerts delivered in the background, from a file on disk, until they have arrived."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from fourrates.alerts.channel import Channel, Failure
from fourrates.alerts.payload import encode, stable_id
from fourrates.disk_queue import DEAD, DiskQueue, Entry, QueueError

LOOK = 5.0  # seconds between looks at a file that another process may have put an alert into
MARGIN = 10.0  # seconds that an alert is held beyond its channel's deadline
HURRY = 0.5  # seconds between attempts while the spool is being closed
PATIENCE = 2  # failures in a row before a channel is left alone
LONGEST_REST = 60.0  # seconds for which it is


class Spool:
    """Takes alerts, keeps them on disk, and delivers each at least once through every channel.

    :meth:`put` returns when the alert is on the disk. A thread for each channel delivers the oldest first; a failed
    one is tried again after pauses that double, each shortened at random by up to a half, and after a restart. An alert
    that could not be delivered for `max_age` becomes a dead letter, which stays in the file and is reported.

    Parameters
    ----------
    path : path
        The file, created if missing. Several processes may share it; no two deliver the same alert at once.
    channels : iterable of Channel
        The channels that deliver.
    max_age : float
        Seconds for which delivery is attempted; three days by default.
    first_pause, longest_pause : float
        Seconds before the second attempt, and at most between two.
    limit, limit_bytes : int
        How many alerts and bytes may wait. Beyond that the oldest are dropped, counted and reported.
    on_message : callable, optional
        Given a sentence when a channel begins to fail, works again, or gave up on an alert.

    Attributes
    ----------
    dropped : int
        Alerts that this spool has dropped because the file was full.
    left : list of Entry
        The undelivered alerts when the spool was closed.

    Examples
    --------
    >>> import tempfile
    >>> from fourrates.alerts import Command, Spool
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spool = Spool(f"{folder}/spool", [Command("cat > /dev/null")])
    ...     id = spool.put({"kind": "test", "text": "hello"})
    ...     undelivered = spool.close(deadline=10)
    >>> undelivered
    []
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        channels: Iterable[Channel],
        *,
        max_age: float = 3 * 86_400.0,
        first_pause: float = 1.0,
        longest_pause: float = 600.0,
        limit: int = 10_000,
        limit_bytes: int = 1 << 26,
        on_message: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.dropped = os.fspath(path), 0
        self.left: list[Entry] = []
        self.channels: dict[str, Channel] = {}
        self.max_age, self.first_pause, self.longest_pause = max_age, first_pause, longest_pause
        self._queue = DiskQueue(path, limit=limit, limit_bytes=limit_bytes)
        self._report = on_message or (lambda sentence: None)
        self._changed = threading.Condition()
        self._put = 0  # number of puts so far; a worker that saw a smaller one has something to look at
        self._closing = self._stopped = False
        self._threads: list[threading.Thread] = []
        for channel in channels:
            self.add(channel)

    def add(self, channel: Channel) -> None:
        """Deliver through another channel too, also the alerts in the file that wait for it."""
        if channel.name not in self.channels:
            self.channels[channel.name] = channel
            name = f"alerts: {channel.name}"[:60]
            self._threads.append(threading.Thread(target=self._work, args=(channel,), daemon=True, name=name))
            self._threads[-1].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, payload: Mapping[str, Any], channels: Iterable[str] | None = None) -> str:
        """Take an alert for all channels or those of these names; on return it is on the disk. Returns its id.

        The id is ``payload["id"]``, or else derived from the payload. An alert with a known id, delivered in the last
        week or still waiting, is not added again.
        """
        if self._closing:
            raise QueueError(f"{self.path}: the spool is closed")
        id = str(payload.get("id") or stable_id(payload))
        if not id.isascii() or not id.isprintable() or len(id) > 200:
            raise ValueError(f"an id of an alert is up to 200 printable ASCII characters, not {id[:40]!r}")
        body = encode({**payload, "id": id})
        if len(body) > (most := self._queue.limit_bytes):
            raise QueueError(f"{self.path}: an alert of {len(body):,} bytes, more than the {most:,} allowed")
        names = self.channels if channels is None else channels
        if dropped := self._queue.put([Entry(id, name, body) for name in names]):
            self.dropped += dropped
            self._report(f"{self.path}: full, {self.dropped:,} of the oldest alerts dropped so far")
        with self._changed:
            self._put += 1
            self._changed.notify_all()
        return id

    def pending(self) -> list[Entry]:
        """Undelivered alerts for the channels of this spool, oldest first."""
        return [entry for entry in self._queue.entries() if entry.channel in self.channels]

    def stranded(self) -> list[Entry]:
        """Undelivered alerts in the file for channels that this spool does not have."""
        return [entry for entry in self._queue.entries() if entry.channel not in self.channels]

    def dead_letters(self) -> list[Entry]:
        """Alerts that were given up."""
        return self._queue.entries(DEAD)

    def close(self, deadline: float = 10.0) -> list[Entry]:
        """Deliver as much as possible in this many seconds, end the threads, and return the undelivered alerts.

        They stay in the file, for the next spool that opens it.
        """
        end = time.monotonic() + deadline
        with self._changed:
            first, self._closing = not self._closing, True
            self._changed.notify_all()
        if not first:
            return self.left
        try:
            for thread in self._threads:
                thread.join(max(0.0, end - time.monotonic()))
        finally:  # also when interrupted
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            for channel in self.channels.values():
                channel.close()
            for thread in self._threads:
                thread.join(1.0)
            self.left = self.pending()
            self._queue.close()
        return self.left

    # In a thread for each channel ---------------------------------------------------------------------------

    def _work(self, channel: Channel) -> None:
        failures, hastened = 0, None
        while not self._stopped:
            seen, closing = self._put, self._closing
            if hastened != closing:  # a restart may have fixed the problem; at the end there is no time to wait
                hastened = closing
                self._guarded(lambda: self._queue.hasten(channel.name))
            entry = self._guarded(lambda: self._queue.claim(channel.name, channel.deadline + MARGIN))
            if entry is None:
                due = self._guarded(lambda: self._queue.next_due(channel.name))
                if closing and due is None:
                    return
                self._rest(min(LOOK, max(due, 0.05)) if due is not None else LOOK, seen)
                continue
            problem = self._attempt(channel, entry)
            if problem is None:
                if failures > PATIENCE:
                    self._report(f"{channel.name} works again")
                    self._guarded(lambda: self._queue.hasten(channel.name))
                failures = 0
                continue
            failures += 1
            if failures == PATIENCE + 1:
                self._report(f"{channel.name} failed ({problem}); trying again")
            if failures > PATIENCE:  # the channel fails, not one alert, so pause it
                self._rest(min(self._pause(failures - PATIENCE), LONGEST_REST), None)

    def _attempt(self, channel: Channel, entry: Entry) -> str | None:
        """Deliver once; the problem, or None. Whatever a channel raises, the thread survives."""
        try:
            channel.deliver({**json.loads(entry.body), "id": entry.id})
        except BaseException as error:
            problem = " ".join(str(error).split()) or type(error).__name__
            if time.time() - entry.created > self.max_age:  # an alert that grew old between runs was tried once more
                self._guarded(lambda: self._queue.bury(entry, problem))
                self._report(
                    f"{channel.name}: alert {entry.id} given up after {entry.tries + 1} attempts ({problem}); "
                    f"it stays in {self.path} as a dead letter"
                )
                return problem
            pause = self._pause(entry.tries + 1)
            if isinstance(error, Failure):
                pause = max(pause, min(error.retry_after, self.longest_pause))
            if self._closing:
                pause = min(pause, HURRY)
            self._guarded(lambda: self._queue.failed(entry, problem, pause))
            return problem
        self._guarded(lambda: self._queue.delivered(entry))
        return None

    def _pause(self, tries: int) -> float:
        longest = min(self.longest_pause, self.first_pause * 2.0 ** min(tries - 1, 60))
        return longest * random.uniform(0.5, 1.0)

    def _rest(self, seconds: float, seen: int | None) -> None:
        """Wait; less if the spool is closed meanwhile or, if `seen` is given, after a new alert."""
        with self._changed:
            closing = self._closing
            self._changed.wait_for(
                lambda: self._stopped or self._closing != closing or seen not in (None, self._put),
                min(seconds, HURRY) if closing else seconds,
            )

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """A step on the file. One that fails (a full disk) is reported, and tried again at the next turn."""
        try:
            return step()
        except QueueError as error:
            if not self._stopped:
                self._report(str(error))
                time.sleep(1.0)
            return None

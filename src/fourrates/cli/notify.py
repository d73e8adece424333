"""Telling others about a drift: a command or a webhook, tried again when it fails, never in the way of the stream."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

TRIES = 4
PAUSE = 0.5  # seconds before the second try, doubled before each further one
PATIENCE = 10.0  # seconds for a command or an answer, and for what is left at the end
WAITING = 1000  # drifts that may queue up while the other side is slow


class Notifier:
    """Runs a command and posts to an address for each record, in a thread of its own.

    Parameters
    ----------
    command : str, optional
        Given to the shell, with the record as JSON on its standard input and FOURRATES_AT, FOURRATES_SINCE and
        FOURRATES_RATES in its environment.
    url : str, optional
        Gets a POST with the record as JSON.
    say : callable
        Told of what failed for good.
    """

    def __init__(self, command: str | None, url: str | None, say: Callable[[str], None]) -> None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError(f"--webhook {url!r} does not begin with http:// or https://")
        self.command, self.url, self.say = command, url, say
        self._queue: queue.Queue[Mapping[str, Any] | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        if command is not None or url is not None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def send(self, record: Mapping[str, Any]) -> None:
        """Hand over a record and return at once."""
        if self._thread is None:
            return
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.say(f"{WAITING} drifts are waiting to be told; that at event {record['at']:,} is not")

    def close(self) -> None:
        """Wait a little for what is left."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(PATIENCE)
            if self._thread.is_alive():
                self.say("not every drift could be told in time")

    def _work(self) -> None:
        while (record := self._queue.get()) is not None:
            for name, job in (("--exec", self._run), ("--webhook", self._post)):
                self._insist(name, job, record)

    def _insist(self, name: str, job: Callable[[Mapping[str, Any]], str | None], record: Mapping[str, Any]) -> None:
        problem = job(record)
        for again in range(1, TRIES):
            if problem is None:
                return
            time.sleep(PAUSE * 2 ** (again - 1))
            problem = job(record)
        if problem is not None:
            self.say(f"{name} failed {TRIES} times for the drift at event {record['at']:,}: {problem}")

    def _run(self, record: Mapping[str, Any]) -> str | None:
        if self.command is None:
            return None
        rates = ",".join(f"{change['rate']}:{change['direction']}" for change in record["changes"])
        facts = {"AT": record["at"], "SINCE": record["since"], "RATES": rates}
        environment = os.environ | {f"FOURRATES_{name}": str(value) for name, value in facts.items()}
        try:
            done = subprocess.run(
                self.command,
                shell=True,
                input=json.dumps(record).encode() + b"\n",
                stdout=2,  # the standard output belongs to the results
                env=environment,
                timeout=PATIENCE * 6,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return None if done.returncode == 0 else f"exit status {done.returncode}"

    def _post(self, record: Mapping[str, Any]) -> str | None:
        if self.url is None:
            return None
        import urllib.request  # slow to import, seldom needed

        request = urllib.request.Request(
            self.url, json.dumps(record).encode(), {"Content-Type": "application/json", "User-Agent": "fourrates"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE):
                return None
        except (OSError, ValueError) as error:  # an answer that is an error is an OSError too
            return str(error)

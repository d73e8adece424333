"""The server as the client sees it, which posts batches and judges the answers."""

from __future__ import annotations

import encodings.idna  # noqa: F401  (imported here, as all else, for a thread that imports during a fork blocks the child)
import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult

from fourrates.client.batch import Batch
from fourrates.escaping import printable

LATER = (401, 403, 408, 421, 425, 429)  # answers that may be different next time; so may everything outside 2xx and 4xx
NO_HEADERS: Mapping[str, str] = {}
LONGEST = 1 << 20  # bytes of an answer that are read


@dataclass(frozen=True, slots=True)
class Answer:
    status: int  # 0 if there was no answer
    content: Any  # its JSON, or None
    text: str  # the outcome, for a message
    seconds: float = 0.0  # for which the server asked to be left alone

    def counts(self, rows: int) -> tuple[int, int, int] | None:
        """Rows that were accepted, repeated and rejected, if the server has taken all of these rows.

        Proxies and login pages answer 200 too, so only counts that add up are an acknowledgement.
        """
        content = self.content if 200 <= self.status < 300 and isinstance(self.content, dict) else {}
        counts = [content.get(name) for name in ("accepted", "repeated", "rejected")]
        whole = [count for count in counts if type(count) is int and count >= 0]  # True is no number
        return (whole[0], whole[1], whole[2]) if len(whole) == 3 and sum(whole) == rows else None

    @property
    def final(self) -> bool:
        """Whether the server will never accept this. A 404 of a proxy, or of another server, is not final."""
        error = self.content.get("error") if isinstance(self.content, dict) else None
        if self.status == 404:
            return isinstance(error, dict) and error.get("code") == "no_monitor"
        return 400 <= self.status < 500 and self.status not in LATER


class Server:
    """The connection to a server, opened when needed, with this many seconds for an answer."""

    def __init__(self, address: SplitResult, headers: dict[str, str], timeout: float) -> None:
        self._address, self._headers, self.timeout = address, headers, timeout
        self._connection: HTTPConnection | None = None
        self.ended = False  # no other call is begun

    def post(self, batch: Batch) -> Answer:
        return self._call("POST", batch.path, batch.body, {"Idempotency-Key": batch.key})

    def get(self, path: str) -> Answer:
        return self._call("GET", path)

    def _call(self, *request: Any) -> Answer:
        """Make a request; whatever happens is an answer. One that takes too long, as if it drips in, is broken off."""
        timer = threading.Timer(2 * self.timeout, self.break_off)
        timer.daemon = True
        with suppress(RuntimeError):  # while the interpreter shuts down
            timer.start()
        try:
            return self._ask(*request)
        except (OSError, HTTPException, ValueError) as error:
            self.disconnect()
            return Answer(0, None, f"cannot be reached ({' '.join(str(error).split()) or type(error).__name__})")
        finally:
            timer.cancel()

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> Answer:
        headers = {**self._headers, **headers}
        while True:
            fresh = self._connection is None
            if self._connection is None:
                kind = HTTPSConnection if self._address.scheme == "https" else HTTPConnection
                assert self._address.hostname is not None
                self._connection = kind(self._address.hostname, self._address.port, timeout=self.timeout)
            try:
                self._connection.request(method, self._address.path.rstrip("/") + path, body, headers)
                response = self._connection.getresponse()
                text = response.read(LONGEST)
                if not response.isclosed() or response.will_close:
                    self.disconnect()
                break
            except (OSError, HTTPException) as error:
                self.disconnect()
                if fresh or self.ended or isinstance(error, TimeoutError):
                    raise  # else the server had closed a connection that was idle
        content = None
        with suppress(ValueError, RecursionError):
            content = json.loads(text)
        asked = response.getheader("Retry-After") or ""
        seconds = float(asked) if asked.isascii() and asked.isdecimal() else 0.0
        problem = _message(content) if response.status >= 400 else ", which is no acknowledgement"
        return Answer(response.status, content, f"answered {response.status}{problem}", seconds)

    def break_off(self) -> None:
        """End a call that waits for an answer, from another thread."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _message(content: Any) -> str:
    error = content.get("error") if isinstance(content, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return f": {printable(str(message))[:300]}" if message else ""

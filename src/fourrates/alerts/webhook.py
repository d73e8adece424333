"""Alerts posted to an address, as signed JSON.

Only an answer of 2xx counts as delivered. Redirects are not followed, as they would turn a POST into a GET without a
body. One deadline covers the whole call, from the look-up of the name to the last byte of a slow answer.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import socket
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from fourrates.alerts.channel import Failure, Impatient
from fourrates.alerts.payload import encode
from fourrates.alerts.signature import ID, SIGNATURE, TIMESTAMP, key_of, sign

BODY = 1 << 16  # bytes of an answer that are read at once
COURTESY = 1.0  # seconds to read the body of an answer that is a success, so that the server can finish


class Webhook:
    """Posts each alert as JSON.

    Parameters
    ----------
    url : str
        ``http://`` or ``https://``; a name and password in it are sent as basic authentication.
    secret : str or bytes, optional
        Signs each message, for :func:`fourrates.alerts.verify`; ``whsec_`` and base64, or any text.
    deadline : float
        Seconds for the whole call.
    """

    def __init__(self, url: str, *, secret: str | bytes | None = None, deadline: float = 10.0) -> None:
        self.url, self.secret, self.deadline = url, secret, deadline
        self.headers = {"Content-Type": "application/json", "User-Agent": "fourrates", "Connection": "close"}
        if secret is not None:
            key_of(secret)  # or an error now, not at the first alert
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ValueError(f"webhook {url!r}: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"webhook {url!r} does not begin with http:// or https:// and a host")
        if not url.isascii() or any(letter.isspace() or not letter.isprintable() for letter in url):
            raise ValueError(f"webhook {url!r}: letters beyond ASCII and blanks must be percent-encoded")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        # The rest of an address is often a secret, which must not appear in messages.
        authority = parts.netloc.rpartition("@")[2]
        self.name = f"webhook {parts.scheme}://{authority} {hashlib.sha256(url.encode()).hexdigest()[:8]}"
        self._caller = Impatient()
        self._socket: socket.socket | None = None  # of the call under way

    def deliver(self, alert: Mapping[str, Any]) -> None:
        """Post it; anything but an answer of 2xx within the deadline is a failure."""
        self._send(alert["id"], encode(alert))

    def _send(self, id: str, body: bytes) -> None:
        end = time.monotonic() + self.deadline
        try:
            status, reason, wait = self._caller.call(lambda: self._post(id, body, end), self.deadline, "the call")
        except http.client.HTTPException as error:
            raise Failure(f"not an answer in HTTP ({type(error).__name__}: {str(error)[:200]})") from None
        finally:
            self.close()
        if 300 <= status < 400:
            raise Failure(f"{status} {reason}: redirects are not followed, give the address it leads to")
        if not 200 <= status < 300:
            raise Failure(f"{status} {reason}".strip(), wait)

    def close(self) -> None:
        """Break off the call that is under way."""
        if (stream := self._socket) is not None:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def _post(self, id: str, body: bytes, end: float) -> tuple[int, str, float]:
        """Post a body; status and reason of the answer, and the seconds for which it asks to be left alone."""
        now = int(time.time())
        headers = {**self.headers, ID: id, TIMESTAMP: str(now)}
        if self.secret is not None:
            headers[SIGNATURE] = sign(self.secret, id, now, body)
        patience = self.deadline / 3  # an address of the host that leads nowhere leaves time for those after it
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        with closing(kind(self._host, self._port, timeout=patience)) as connection:
            connection.connect()
            stream = self._socket = connection.sock
            if (left := end - time.monotonic()) <= 0:  # nobody waits for it, or would break it off
                raise TimeoutError
            stream.settimeout(left)
            with suppress(BrokenPipeError, ConnectionResetError):
                # It may have answered before reading everything; if not, the next line shows it.
                connection.request("POST", self._target, body, headers)
            answer = connection.getresponse()
            if 200 <= answer.status < 300:
                with suppress(Exception):  # what it says does not matter, and must not take long
                    stream.settimeout(min(COURTESY, max(end - time.monotonic(), 0.0) / 2))
                    answer.read1(BODY)
        reason = "".join(letter for letter in answer.reason[:80] if letter.isprintable())
        return answer.status, reason, _seconds(answer.headers.get("Retry-After"))


def _seconds(text: str | None) -> float:
    """The seconds in a header Retry-After, if it gives seconds."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 7 else 0.0

"""Alerts posted to an address, as signed JSON.

Only an answer of 2xx counts as delivered. Redirects are not followed: they would turn a POST into a GET and lose what
it carries. One deadline holds for the whole call, from the look-up of the name to the last byte of a dripping answer.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fourrates.alerts.channel import Alert, Failure
from fourrates.alerts.deadline import Deadline, Impatient
from fourrates.alerts.signature import ID, SIGNATURE, TIMESTAMP, key_of, sign

if TYPE_CHECKING:
    import ssl

BODY = 1 << 16  # bytes of an answer that are read
COURTESY = 1.0  # seconds to read the body of an answer that is a success, so that the server can finish
OURS = ("content-length", "content-type", "host", ID.lower(), TIMESTAMP.lower(), SIGNATURE.lower())


class Webhook:
    """Posts each alert as JSON.

    Parameters
    ----------
    url : str
        ``http://`` or ``https://``; a name and password in it are sent as basic authentication.
    secret : str or bytes, optional
        Signs each message (:func:`fourrates.alerts.verify` checks it): ``whsec_`` and base64, or any text.
    headers : mapping, optional
        Sent along, such as ``{"Authorization": "Bearer ..."}``.
    deadline : float
        Seconds for the whole call.
    context : ssl.SSLContext, optional
        For certificates of your own.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | bytes | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        deadline: float = 10.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.url, self.secret, self.deadline, self.context = url, secret, deadline, context
        self.headers = dict(headers)
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
        for name, value in self.headers.items():
            if name.lower() in OURS:
                raise ValueError(f"header {name!r} is set by the webhook itself")
            if not name.isascii() or not name.replace("-", "a").replace("_", "a").isalnum():
                raise ValueError(f"header {name!r} is not a name of letters, digits and hyphens")
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"header {name!r}: its value must be printable ASCII")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, port or (443 if self._secure else 80)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers.setdefault("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._authority = host if port is None else f"{host}:{port}"
        # What follows the host is often a secret, which has no place in messages.
        self.name = f"webhook {parts.scheme}://{self._authority} {hashlib.sha256(url.encode()).hexdigest()[:8]}"
        self._resolver = Impatient()
        self._socket: socket.socket | None = None

    def deliver(self, alert: Alert) -> None:
        """Post it; anything but an answer of 2xx within the deadline is a failure."""
        deadline = Deadline(self.deadline)
        try:
            stream = self._connect(deadline)
            try:
                status, reason, headers = self._post(stream, alert, deadline)
            finally:
                self._socket = None
                stream.close()
        except TimeoutError:
            raise Failure(f"no answer within {self.deadline:g} s") from None
        except http.client.HTTPException as error:
            raise Failure(f"not an answer in HTTP ({type(error).__name__}: {str(error)[:200]})") from None
        if 300 <= status < 400:
            raise Failure(f"{status} {reason}: redirects are not followed, give the address it leads to")
        if not 200 <= status < 300:
            raise Failure(f"{status} {reason}".strip(), _seconds(headers.get("Retry-After")))

    def close(self) -> None:
        """Break off the call that is under way."""
        if (stream := self._socket) is not None:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def _connect(self, deadline: Deadline) -> socket.socket:
        addresses = self._resolver.call(
            lambda: socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM),
            deadline,
            "the look-up of the name",
        )
        problem: OSError = OSError("no address")
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            plain = socket.socket(family, kind, protocol)
            try:  # an address that leads nowhere leaves time for those after it
                plain.settimeout(deadline.left() / (len(addresses) - number))
                plain.connect(address)
                if not self._secure:
                    self._socket = plain
                    return plain
                plain.settimeout(deadline.left())
                self._socket = self._context().wrap_socket(plain, server_hostname=self._host)
                return self._socket
            except OSError as error:
                plain.close()
                problem = error
            except BaseException:
                plain.close()
                raise
        raise problem

    def _context(self) -> ssl.SSLContext:
        if self.context is None:
            import ssl

            self.context = ssl.create_default_context()
        return self.context

    def _post(self, stream: socket.socket, alert: Alert, deadline: Deadline) -> tuple[int, str, Message]:
        now = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "fourrates",
            **self.headers,
            ID: alert.id,
            TIMESTAMP: str(now),
            **({} if self.secret is None else {SIGNATURE: sign(self.secret, alert.id, now, alert.body)}),
            "Connection": "close",
            "Host": self._authority,
        }
        connection = http.client.HTTPConnection(self._host, self._port)
        timed = _Timed(stream, deadline)
        connection.sock = timed
        with suppress(BrokenPipeError, ConnectionResetError):
            # It may have answered before it had read all; if not, the next line says so.
            connection.request("POST", self._target, alert.body, headers)
        answer = connection.getresponse()
        reason = "".join(letter for letter in answer.reason[:80] if letter.isprintable())
        if 200 <= answer.status < 300:
            with suppress(Exception):  # it has said that it has the alert; what more it says is of no matter
                timed.deadline = Deadline(min(COURTESY, deadline.left()))
                answer.read(BODY)
        return answer.status, reason, answer.headers


class _Timed:
    """A socket as http.client wants it, each of whose waits ends at the deadline."""

    def __init__(self, stream: socket.socket, deadline: Deadline) -> None:
        self.stream, self.deadline = stream, deadline

    def sendall(self, data: Any) -> None:
        self.stream.settimeout(self.deadline.left())
        self.stream.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Bytes(self))

    def close(self) -> None:
        pass  # by whoever opened it


class _Bytes(io.RawIOBase):
    def __init__(self, timed: _Timed) -> None:
        self.timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.timed.stream.settimeout(self.timed.deadline.left())
        return self.timed.stream.recv_into(buffer)


def _seconds(text: str | None) -> float:
    """What a header Retry-After asks for, where it gives seconds."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 7 else 0.0

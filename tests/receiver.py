"""A real HTTP server on the loopback that answers as it is told, in bytes if need be."""

import socket
import threading
import time
from contextlib import suppress

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def wait_until(done, seconds=10):
    """Look again and again, and return whether it is done by then."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(done())


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body


class Receiver:
    """Takes requests, one thread each, and answers with the next of `answers` (bytes, or a function of the socket)."""

    def __init__(self):
        self.answers, self.default, self.requests = [], OK, []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self._ended = False
        threading.Thread(target=self._serve, daemon=True).start()

    def ids(self):
        return [request.headers["webhook-id"] for request in self.requests]

    def wait_for(self, number, seconds=10):
        done = wait_until(lambda: len(self.requests) >= number, seconds)
        assert done, f"{len(self.requests)} requests, {number} awaited"

    def close(self):
        self._ended = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self):
        while not self._ended:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        with connection, suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data:
                if not (more := connection.recv(65536)):
                    return
                data += more
            head, _, body = data.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            while len(body) < int(headers.get("content-length", 0)):
                body += connection.recv(65536)
            method, target, _ = first.split(" ")
            answer = self.answers.pop(0) if self.answers else self.default
            self.requests.append(Request(method, target, headers, body))
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)

"""Requests as fast as they are answered, or at a given pace, over many connections: for the load benchmarks.

    python benchmarks/hammer.py PORT CONNECTIONS SECONDS FILE [RATE]

FILE holds whole requests (method, headers, body), each after its length as 4 bytes; they are sent in turn. Where a body
holds ``@@@@@@@@@@@@``, twelve of that letter, each request has a number of its own there, so that ids differ. Prints
JSON: requests answered with 200, others, seconds, and latencies at 50, 90, 99 and 100 %.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

MARK = b"@" * 12


class Connection(asyncio.Protocol):
    """Sends one request after another and notes how long each takes."""

    def __init__(self, hammer: Hammer) -> None:
        self.hammer, self.data, self.sent = hammer, b"", 0.0

    def connection_made(self, transport: Any) -> None:
        """Ready to send."""
        self.transport = transport
        self.hammer.idle(self)

    def send(self, request: bytes, due: float | None = None) -> None:
        """Send a request; its time counts from when it was due."""
        self.sent = time.perf_counter() if due is None else due
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Note an answer when it is whole."""
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self.data.find(b"content-length: ")
        length = int(self.data[at + 16 : self.data.index(b"\r", at + 16)])
        if len(self.data) < end + 4 + length:
            return
        self.hammer.done(self.data[9:12] == b"200", time.perf_counter() - self.sent, self.data)
        self.data = self.data[end + 4 + length :]
        self.hammer.idle(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it."""
        self.hammer.lost += 1


class Hammer:
    """All connections together."""

    def __init__(self, requests: list[bytes], rate: float | None) -> None:
        self.parts = [request.split(MARK) for request in requests]
        self.rate, self.turn, self.lost = rate, 0, 0
        self.latencies: list[float] = []
        self.refused: list[bytes] = []
        self.free: list[Connection] = []
        self.began = self.until = 0.0

    def next_request(self) -> bytes:
        """The next request, with a number of its own."""
        parts = self.parts[self.turn % len(self.parts)]
        self.turn += 1
        return parts[0] if len(parts) == 1 else (b"%012d" % self.turn).join(parts)

    def idle(self, connection: Connection) -> None:
        """Give a connection its next request, or let it wait."""
        if self.rate is None and self.began and time.perf_counter() < self.until:
            connection.send(self.next_request())
        else:
            self.free.append(connection)

    def done(self, good: bool, latency: float, data: bytes) -> None:
        """Note an answer."""
        if good:
            self.latencies.append(latency)
        else:
            self.refused.append(data[:500])

    async def run(self, port: int, connections: int, seconds: float) -> None:
        """Send for so long, and print what came of it."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
        self.began = time.perf_counter()
        self.until = self.began + seconds
        if self.rate is None:
            waiting, self.free = self.free, []
            for connection in waiting:
                self.idle(connection)
            await asyncio.sleep(seconds)
        else:  # a request is due whether or not the one before was answered; waiting for a connection counts
            for number in range(int(seconds * self.rate)):
                due = self.began + number / self.rate
                while (wait := due - time.perf_counter()) > 0 or not self.free:
                    await asyncio.sleep(max(wait, 0.0002))
                self.free.pop().send(self.next_request(), due)
        self.until = time.perf_counter()
        seconds_ = self.until - self.began
        answered = len(self.latencies)
        await asyncio.sleep(0.2)
        shown = np.percentile(self.latencies[:answered] or [0.0], [50, 90, 99, 100]).round(5).tolist()
        refused = [one.decode("latin-1") for one in self.refused[:1]]
        print(
            json.dumps(
                {
                    "answered": answered,
                    "refused": len(self.refused),
                    "first refused": refused,
                    "lost": self.lost,
                    "seconds": seconds_,
                    "latency": shown,
                }
            )
        )


def request(path: str, body: bytes, kind: str = "application/json", headers: str = "") -> bytes:
    """A whole request."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n"
    return f"{head}content-length: {len(body)}\r\n{headers}\r\n".encode() + body


def write(path: Path, requests: list[bytes]) -> None:
    """Requests as a file."""
    path.write_bytes(b"".join(struct.pack("<I", len(one)) + one for one in requests))


def read(path: Path) -> list[bytes]:
    """Requests from a file."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


if __name__ == "__main__":
    uvloop.install()
    hammer = Hammer(read(Path(sys.argv[4])), float(sys.argv[5]) if len(sys.argv) > 5 else None)
    asyncio.run(hammer.run(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))

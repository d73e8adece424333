"""Small bodies made to do harm: the service answers all of them, in bounded memory and time, and others beside them.

Ten thousand bodies, drawn from a seed: columns and rows of JSON, Arrow streams, packed inside (ZSTD, LZ4) and outside
(gzip). They are full of values that are no labels, of blank lines and lists in lists; they announce more rows than they
have, and show one long text in every row. Nine of ten unpack to less than 300 kB, the others to as much as 90 MB: more
than is taken. Four clients send them, while an honest one sends events. The most memory that the server takes may be
100 MB and ten times the limit for a body above what it takes at rest, and no answer may take longer than ten seconds.

    python benchmarks/serve_bombs.py [--requests 10000] [--seed 1]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import struct
import tempfile
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from drawn import keep
from servers import Client, Server

LIMIT = 64 << 20  # bytes of a body
ALLOWED = (100 << 20) + 10 * LIMIT
SLOWEST = 10.0  # seconds
CLIENTS = 4
JSON, ROWS, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
MONITORS: dict[str, dict[str, Any]] = {
    "plain": {},
    "segments": {"by": ["country"]},
    "several": {"labels": ["a", "b", "c"], "by": ["country", "shop"]},
    "late": {"max_wait": "1 minute"},
}
COLUMNS = ("y_true", "y_pred", "score", "id", "time", "country", "shop")
VALUES = (
    *(b"9", b"-1", b'"a"', b'"NA"', b'" "', b"null", b"[]", b"{}", b'{"":0}', b"[[[[]]]]", b"1e308", b"1e999", b"true"),
    *(b"9" * 400, b"1" + b"0" * 5_000, b'"' + b"x" * 5_000 + b'"', b'"\\ud800"', b'"2026-13-45T99:99:99"', b"0", b"1"),
    *(b'"31.12.9999"', b'"1,5"', b'"1_000"', b"0.30000000000000004", b'"\\u0000"', b'"=1+1"'),
)
LINES = (
    *(b"\n", b"\r\n", b" \n", b"{}\n", b"[]\n", b"0\n", b'{"y_true":1,"y_pred":1}\n', b'{"y_true":[],"y_pred":{}}\n'),
    *(
        b'{"y_true":[[],[],[],[]],"y_pred":[]}\n',
        b'{"y_true":"NA","y_pred":null,"country":" "}\n',
        b'{"":{"":{"":[]}}}\n',
    ),
    *(b'{"id":"x","y_true":9,"y_pred":9,"by":{"country":[]}}\n', b'{"y_true":1,"y_true":1,"y_pred":1}\n'),
)
DEEP = (b"[", b'{"a":', b'{"y_true":[', b'{"by":{"country":[', b'{"y_true":[[', b'{"y_true":{"a":')
TYPES = (
    *(pa.month_day_nano_interval(), pa.duration("us"), pa.time64("ns"), pa.binary(), pa.list_(pa.list_(pa.int8()))),
    *(pa.decimal256(70, 3), pa.struct([("a", pa.struct([("a", pa.int8())]))]), pa.timestamp("s", "UTC"), pa.float16()),
    *(
        pa.map_(pa.string(), pa.int8()),
        pa.date64(),
        pa.large_string(),
        pa.uint64(),
        pa.run_end_encoded(pa.int32(), pa.int8()),
    ),
)


class Request(NamedTuple):
    """A request to a monitor."""

    path: str
    body: bytes
    headers: dict[str, str]


class Dice(random.Random):
    """Makes hostile requests."""

    def request(self) -> Request:
        """A request to one of the monitors."""
        kind, body = self.choice((self.columns, self.rows, self.deep, self.arrow, self.arrow))(self.size())
        headers = {"content_type": kind}
        if self.random() < 0.8 or len(body) > 1 << 20:
            body = gzip.compress(body, 1)
            headers["content_encoding"] = "gzip"
            if self.random() < 0.05:
                body = self.choice((body[:-9], body + body, gzip.compress(body)))
        monitor, door = self.choice([*MONITORS]), self.choice(("events", "events", "predictions", "labels"))
        return Request(f"/api/monitors/{monitor}/{door}?bad={self.choice(('reject', 'skip', 'keep'))}", body, headers)

    def size(self) -> int:
        """Bytes of a body before it is packed."""
        least, most = (2.0, 5.5) if self.random() < 0.9 else (6.0, 7.95)
        return int(10 ** self.uniform(least, most))

    def columns(self, size: int) -> tuple[str, bytes]:
        """Columns of JSON, each of one value many times, or of many short texts that all mean nothing."""
        names = ["y_true", "y_pred", *self.sample(("id", "score", "time", "country"), self.randint(0, 3))]
        each, parts = size // len(names), []
        for name in names:
            value = self.choice(VALUES)
            column = b"[" + (value + b",") * max(min(each // (len(value) + 1), 1_200_000), 1) + value + b"]"
            if self.random() < 0.15:
                column = b"[" + b",".join(self._blanks(min(each // 12, 900_000) + 1)) + b"]"
            if self.random() < 0.03:
                column = b'"' + b"x" * each + b'"'
            parts.append(
                b'"by":{"country":%b,"shop":%b}' % (column, column)
                if name == "country"
                else b'"%b":%b' % (name.encode(), column)
            )
        return JSON, b"{" + b",".join(parts) + b"}"

    def _blanks(self, number: int) -> list[bytes]:
        """Different texts that are all blank."""
        blanks = (b" ", b"\\t", b"\\n", b"\\r")
        return [b'"' + b"".join(blanks[at >> 2 * digit & 3] for digit in range(10)) + b'"' for at in range(number)]

    def rows(self, size: int) -> tuple[str, bytes]:
        """The same line, again and again."""
        line = self.choice(LINES)
        return ROWS, line * (size // len(line) + 1)

    def deep(self, size: int) -> tuple[str, bytes]:
        """Lists in lists, without an end."""
        start = self.choice(DEEP)
        return self.choice((JSON, ROWS)), start * (size // len(start) + 1)

    def arrow(self, size: int) -> tuple[str, bytes]:
        """An Arrow stream, packed inside or not; a number in it may be changed to a large one."""
        rows = min(max(size // 16, 1), 4_000_000)
        if self.random() < 0.1:
            rows = self.choice((0, 1, rows))
        columns = {name: self._column(rows, size) for name in self.sample(COLUMNS, self.randint(1, 4))}
        columns |= {name: pa.array(np.zeros(rows, np.int8)) for name in ("y_true", "y_pred") if name not in columns}
        table = pa.table(columns)
        if self.random() < 0.05:
            rows = 2 ** self.randint(10, 30)
            nothing = pa.Array.from_buffers(pa.null(), rows, [None])
            table = pa.table({"y_true": nothing, "y_pred": nothing})
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=self.choice((None, "zstd", "lz4")))
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table, 1 if self.random() < 0.02 and rows < 20_000 else None)
        body = bytearray(sink.getvalue())
        if self.random() < 0.3:
            place = 8 * self.randrange(min(len(body), 2_000) // 8)
            struct.pack_into("<q", body, place, self.choice((-1, 2**31, 2**40, 2**62, self.getrandbits(62))))
        return ARROW, bytes(body)

    def _column(self, rows: int, size: int) -> Any:
        kind = self.random()
        if kind < 0.3:
            return pa.array(np.full(rows, self.choice((0, 1, 9, -1)), self.choice((np.int8, np.int64, np.float64))))
        text = "x" * self.choice((1, 100, 1_001, max(size // 2, 1)))
        if kind < 0.6:
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
        if kind < 0.8:
            view = pa.array([text if len(text) > 12 else "x" * 13], pa.string_view()).buffers()
            return pa.Array.from_buffers(
                pa.string_view(), rows, [None, pa.py_buffer(view[1].to_pybytes() * rows), view[2]]
            )
        return pa.nulls(rows, self.choice(TYPES))


class Honest(threading.Thread):
    """A client that sends events one after the other, and notes how long each took."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.ending, self.times = port, threading.Event(), [0.0]
        self.events = 0
        self.problem: str | None = None

    def run(self) -> None:
        """Send until it is asked to end."""
        try:
            with Client(self.port, timeout=60) as client:
                while not self.ending.wait(0.02):
                    began = time.monotonic()
                    status, answer = client.call(
                        "POST", "/api/monitors/honest/events", {"y_true": [0, 1], "y_pred": [0, 1]}
                    )
                    assert (status, client.call("GET", "/healthz")[0]) == (200, 200), answer
                    self.times.append(time.monotonic() - began)
                    self.events += 2
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"


class Attacker(threading.Thread):
    """A client that sends what it draws."""

    def __init__(self, port: int, seed: int, numbers: count[int], requests: int) -> None:
        super().__init__(daemon=True)
        self.port, self.seed, self.numbers, self.requests = port, seed, numbers, requests
        self.answers: Counter[str] = Counter()
        self.sent, self.slowest = 0, (0.0, -1)
        self.problem: str | None = None

    def run(self) -> None:
        """Send until there are enough."""
        number = -1
        try:
            while (number := next(self.numbers)) < self.requests:
                self._send(number)
        except Exception as error:
            self.problem = f"request {number}: {type(error).__name__}: {error}"

    def _send(self, number: int) -> None:
        request = Dice(f"{self.seed} {number}").request()
        began = time.monotonic()
        with Client(self.port, timeout=60) as client:
            status, answer = client.call("POST", request.path, request.body, **request.headers)
        self.slowest = max(self.slowest, (time.monotonic() - began, number))
        self.sent += len(request.body)
        self.answers[str(status)] += 1
        assert status < 500 or answer["error"]["code"] == "busy", f"{status}: {answer}"


def main(requests: int, seed: int) -> dict[str, Any]:
    """Run it; an AssertionError says which request did harm."""
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        with Client(server.port) as client:
            for name, config in {**MONITORS, "honest": {}}.items():
                assert client.call("PUT", f"/api/monitors/{name}", config)[0] == 201
            sound = {"content_type": ARROW}, Dice(0).arrow(100)[1]  # so that pyarrow is loaded
            client.call("POST", "/api/monitors/plain/events", sound[1], **sound[0])
        resting = server.memory()
        numbers, honest = count(), Honest(server.port)
        attackers = [Attacker(server.port, seed, numbers, requests) for _ in range(CLIENTS)]
        began = time.monotonic()
        for thread in (honest, *attackers):
            thread.start()
        for attacker in attackers:
            attacker.join()
        honest.ending.set()
        honest.join()
        peak, took = server.memory("VmHWM"), time.monotonic() - began
        problems = [one.problem for one in (honest, *attackers) if one.problem is not None]
        log = (Path(folder) / "data.log").read_text()
        assert not problems, f"{problems} {log[-3_000:]}"
        assert "Traceback" not in log, log[-3_000:]
        with Client(server.port) as client:
            assert client.call("GET", "/api/monitors/honest")[1]["events"] == honest.events
        slowest, number = max(one.slowest for one in attackers)
        assert peak - resting <= ALLOWED, f"{(peak - resting) >> 20:,} MB more than at rest"
        assert slowest <= SLOWEST, f"request {number} took {slowest:.1f} s"
        return {
            "requests": requests,
            "answers": dict(sum((one.answers for one in attackers), Counter())),
            "megabytes_sent": round(sum(one.sent for one in attackers) / 1e6, 1),
            "resting_mb": resting >> 20,
            "peak_mb": peak >> 20,
            "allowed_mb": (resting + ALLOWED) >> 20,
            "slowest_seconds": round(slowest, 2),
            "honest_requests": honest.events // 2,
            "honest_slowest_seconds": round(max(honest.times), 2),
            "seconds": round(took),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    result = main(given.requests, given.seed)
    print(f"answered, within bounds: {json.dumps(result)}")
    if given.requests >= 10_000:
        keep("serve_bombs", result)

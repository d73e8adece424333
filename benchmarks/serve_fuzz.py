"""Requests that nobody should send, to a real server: no answer of 500, no hang, and the server goes on.

Each request is made of a sound one and changed in places: methods, paths, queries, headers, tokens (right, wrong, too
narrow, none), bodies (columns, rows, Arrow streams, gzip; cut off, flipped, too deep, too large, packed bombs, numbers
and texts from the edges), and bytes that are no HTTP at all. Meanwhile a sound client sends events: all of them must be
counted. At the end the slow ones: heads and bodies that drip in.

    python benchmarks/serve_fuzz.py [--requests 100000] [--seed 1]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import io
import json
import random
import tempfile
import time
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from drawn import keep
from servers import Client, Server

from fourrates.serve.tokens import SCOPES, Tokens

PATIENCE = 20.0  # seconds for an answer; more is a hang
CONNECTIONS = 16
NAMES = ("m0", "m1", "segmented", "several", "nowhere", "a b", "é", "x" * 300, "..", "%", "m0\n", "<script>", "")
EDGES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400),
    *(True, False, None, "", "0", "1", "\0", "\ud800", "é", "x" * 5_000, "2026-01-01T00:00:00Z", "9999-12-31", "now"),
    *([], {}, [1], {"a": 1}, [[[]]]),
)
SECRETS = ("", "Bearer", "Bearer x", "Basic eDp5", "Bearer frt_000000000000_" + "A" * 43, "Bearer \xff", "x" * 9_000)
TYPES = (
    *(
        "application/json",
        "application/x-ndjson",
        "application/vnd.apache.arrow.stream",
        "text/plain",
        "",
        "a/b; c=\xff",
    ),
    *("application/json; charset=utf-16", "multipart/form-data", "application/x-www-form-urlencoded"),
)
PATHS = (
    *("/api/monitors/{n}/events", "/api/monitors/{n}/predictions", "/api/monitors/{n}/labels", "/api/monitors/{n}"),
    *("/api/monitors", "/api/monitors/{n}/drifts", "/api/monitors/{n}/drifts/x", "/api/monitors/{n}/drifts/x/examples"),
    *("/api/monitors/{n}/drifts/x/acknowledge", "/api/monitors/{n}/segments", "/api/monitors/{n}/series", "/metrics"),
    *(
        "/api/monitors/{n}/rejected",
        "/api/monitors/{n}/silence",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/",
        "/static/x",
    ),
    *("/api/stream/x", "/api/monitors/{n}/", "//api/monitors", "/../api/monitors", "/static/../../x", "/x?y=%00"),
)
QUERIES = (
    "",
    "",
    "",
    "?bad=skip",
    "?bad=keep",
    "?bad=no",
    "?limit=5",
    "?limit=-1",
    "?limit=1e9",
    "?before=x",
    "?points=99999999999",
    "?%",
)


@cache
def bombs() -> list[bytes]:
    """Small bodies that unpack to more than is allowed."""
    return [gzip.compress(bytes(80 << 20), 6), zlib.compress(b"[" * (80 << 20), 6)]


class Dice(random.Random):
    """Makes requests."""

    def __init__(self, seed: int, tokens: dict[str, str]) -> None:
        super().__init__(seed)
        self.tokens = tokens

    def value(self) -> Any:
        """A value of a column."""
        return self.choice(EDGES) if self.random() < 0.3 else self.choice((0, 1))

    def columns(self) -> dict[str, Any]:
        """A body of columns."""
        size = self.choice((0, 1, 2, 3, 50))
        strange = self.random() < 0.5
        names = [
            "y_true",
            "y_pred",
            *self.sample(["id", "score", "time", "by", "truth", "pred", "other"], self.randint(0, 3)),
        ]
        found: dict[str, Any] = {}
        for name in names:
            length = size if self.random() < 0.95 else self.randint(0, 60)
            column: Any = [self.value() if strange else self.choice((0, 1)) for _ in range(length)]
            if name == "id":
                column = [
                    self.choice(("a", "b", 7, self.getrandbits(70))) if strange else self.getrandbits(40)
                    for _ in column
                ]
            if name == "by":
                column = {self.choice(("country", "x")): column}
            found[name] = column if self.random() < 0.97 else self.choice(EDGES)
        return found

    def config(self) -> dict[str, Any]:
        """Settings of a monitor."""
        fields = (
            "labels",
            "positive",
            "budget",
            "arl",
            "by",
            "reference",
            "max_wait",
            "mix",
            "threshold",
            "alerts",
            "x",
        )
        sound = {"labels": [0, 1], "arl": 5_000, "budget": "1 per month", "by": ["country"], "mix": "report"}
        sound |= {"reference": [[9, 1], [2, 8]], "max_wait": "3 days", "alerts": {"silent_after": "5 minutes"}}
        return {
            name: sound.get(name, 1) if self.random() < 0.6 else self.choice(EDGES) for name in self.sample(fields, 3)
        }

    def arrow(self) -> bytes:
        """A body of Arrow."""
        size = self.randint(0, 20)
        types = [
            pa.int8(),
            pa.int64(),
            pa.float64(),
            pa.string(),
            pa.bool_(),
            pa.timestamp("us"),
            pa.null(),
            pa.list_(pa.int8()),
        ]
        arrays, names = [], []
        for name in self.sample(["y_true", "y_pred", "id", "score", "time", "country", "y_true"], self.randint(1, 5)):
            kind = self.choice(types[:2]) if self.random() < 0.6 else self.choice(types)
            values: list[Any] = [None if self.random() < 0.05 else self.choice((0, 1)) for _ in range(size)]
            if kind in (pa.string(), types[-1]):
                values = [None if one is None else str(one) if kind == pa.string() else [one] for one in values]
            if kind == pa.null():
                values = [None] * size
            arrays.append(pa.array(values).cast(kind) if kind not in (pa.null(), types[-1]) else pa.array(values, kind))
            names.append(name)
        sink = io.BytesIO()
        table = pa.Table.from_arrays(arrays, names)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    def damaged(self, body: bytes) -> bytes:
        """The body, or most of it."""
        change = self.random()
        if change < 0.6 or not body:
            return body
        if change < 0.7:
            return body[: self.randrange(len(body))]
        if change < 0.95:
            flipped = bytearray(body)
            for _ in range(self.randint(1, 4)):
                flipped[self.randrange(len(flipped))] = self.getrandbits(8)
            return bytes(flipped)
        return self.randbytes(self.randint(0, 200))

    def body(self, path: str) -> tuple[bytes, str, str]:
        """A body, its type and its encoding."""
        kind = self.random()
        if kind < 0.01:
            deep = self.choice((10, 1_000, 100_000))
            return self.choice((b"[", b'{"a":', b'{"y_true":[', b'{"by":{"country":[')) * deep, TYPES[0], ""
        if kind < 0.012:
            return self.choice(bombs()), TYPES[0], "gzip"
        if "events" in path or "predictions" in path or "labels" in path:
            form = self.random()
            if form < 0.2:
                body, named = self.arrow(), TYPES[2]
            elif form < 0.4:
                columns = self.columns()
                lists = {name: one for name, one in columns.items() if isinstance(one, list)}
                rows = [dict(zip(lists, row, strict=False)) for row in zip(*lists.values(), strict=False)]
                body, named = "\n".join(map(json.dumps, rows)).encode("utf-8", "surrogatepass"), TYPES[1]
            else:
                body, named = json.dumps(self.columns()).encode("utf-8", "surrogatepass"), TYPES[0]
        elif "silence" in path:
            body, named = json.dumps({"until": self.choice((*EDGES, "2030-01-01T00:00:00Z"))}).encode(), TYPES[0]
        else:
            body, named = json.dumps(self.config()).encode("utf-8", "surrogatepass"), TYPES[0]
        body, encoding = self.damaged(body), ""
        if self.random() < 0.1:
            body, encoding = self.damaged(gzip.compress(body)), self.choice(("gzip", "gzip", "deflate", "br", "x"))
        return body, named if self.random() < 0.93 else self.choice(TYPES), encoding

    def request(self) -> tuple[str, bytes]:
        """What it is, for the count, and its bytes."""
        if self.random() < 0.02:
            return "no HTTP", self.randbytes(self.randint(1, 100)) + b"\r\n\r\n"
        template = self.choice(PATHS[:4]) if self.random() < 0.6 else self.choice(PATHS)
        name = self.choice(NAMES[:5]) if self.random() < 0.9 else self.choice(NAMES)
        path = template.replace("{n}", quote(name, safe="%" if self.random() < 0.1 else ""))
        if ("{n}/" in template and self.random() < 0.8) or template == PATHS[0]:
            method = "POST" if template in PATHS[:3] else "GET"
        else:
            method = self.choice(("GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS", "TRACE", "get"))
        if template == PATHS[3] and ((method == "DELETE" and name != "m1") or (method != "GET" and name == "m0")):
            method = "GET"  # so that there are some to be asked about
        lines = [f"{method} {path}{self.choice(QUERIES)} HTTP/1.1", "Host: 127.0.0.1"]
        held = self.choice(["admin"] * 8 + ["ingest", "read", "narrow", "none"])
        if held != "none":
            lines.append(
                "Authorization: " + (f"Bearer {self.tokens[held]}" if self.random() < 0.97 else self.choice(SECRETS))
            )
        if self.random() < 0.1:
            lines.append(f"Idempotency-Key: {self.choice(('a', 'b', 'x' * 300, self.getrandbits(64)))}")
        if self.random() < 0.05:
            lines.append(f"X-{self.getrandbits(16)}: " + "y" * self.choice((1, 100, 10_000, 80_000)))
        body = b""
        if method in ("POST", "PUT", "PATCH") or self.random() < 0.03:
            body, named, encoding = self.body(template)
            lines += [f"Content-Type: {named}"] * bool(named) + [f"Content-Encoding: {encoding}"] * bool(encoding)
            if self.random() < 0.1:
                lines.append("Transfer-Encoding: chunked")
                body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
            else:
                lines.append(f"Content-Length: {len(body)}")
        return held, "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


async def answered(reader: asyncio.StreamReader, head: bool) -> int:
    """Read an answer; its status, 0 where the server closed the connection."""
    try:
        first = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0
    status, low = int(first[9:12]), first.lower()
    if not head and status not in (204, 304):
        if b"transfer-encoding: chunked" in low:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                await reader.readexactly(size + 2)
            await reader.readexactly(2)
        else:
            await reader.readexactly(int(low.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    return -status if b"connection: close" in low else status


async def attack(port: int, dice: Dice, number: int, statuses: Counter[int], slowest: list[float]) -> None:
    """Send a number of requests over connections of one's own."""
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    for _ in range(number):
        _, data = dice.request()
        if writer is None or reader is None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        began = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(data)
                await writer.drain()
                status = await answered(reader, data.startswith(b"HEAD"))
        except TimeoutError:
            raise AssertionError(f"no answer within {PATIENCE:g} s to {data[:300]!r}") from None
        except (ConnectionError, asyncio.IncompleteReadError):
            status = 0
        slowest[0] = max(slowest[0], time.monotonic() - began)
        statuses[abs(status)] += 1
        assert abs(status) < 500, f"{abs(status)} to {data[:2_000]!r}"
        if status <= 0 or (not data.endswith(b"}") and dice.random() < 0.02):
            writer.close()
            reader = writer = None
    if writer is not None:
        writer.close()


async def sound(port: int, token: str, done: asyncio.Event) -> int:
    """A client that does everything right; how many events it has sent."""
    sent = 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"y_true": [0, 1] * 50, "y_pred": [0, 1] * 50}).encode()
    head = f"POST /api/monitors/watched/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    data = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    while not done.is_set():
        async with asyncio.timeout(PATIENCE):
            writer.write(data)
            assert await answered(reader, False) == 200
        sent += 100
        await asyncio.sleep(0.02)
    writer.close()
    return sent


async def slow(port: int, data: bytes, patience: float) -> float:
    """Send bytes one at a time until the server has had enough; seconds it took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()

    async def drip() -> None:
        for byte in data:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.2)

    dripping = asyncio.create_task(drip())
    try:
        async with asyncio.timeout(patience):
            while await reader.read(1 << 16):
                pass
    except ConnectionError:
        pass
    finally:
        dripping.cancel()
        writer.close()
    return time.monotonic() - began


async def main_async(port: int, tokens: dict[str, str], requests: int, seed: int, slow_too: bool) -> dict[str, Any]:
    statuses: Counter[int] = Counter()
    slowest, done = [0.0], asyncio.Event()
    steady = asyncio.create_task(sound(port, tokens["ingest"], done))
    began = time.monotonic()
    each = -(-requests // CONNECTIONS)
    await asyncio.gather(
        *(attack(port, Dice(seed * 1_000 + one, tokens), each, statuses, slowest) for one in range(CONNECTIONS))
    )
    seconds = time.monotonic() - began
    done.set()
    found: dict[str, Any] = {
        "requests": statuses.total(),
        "answers": {str(status): count for status, count in sorted(statuses.items())},
        "slowest_answer_seconds": round(slowest[0], 2),
        "seconds": round(seconds, 1),
        "sound_events": await steady,
    }
    if slow_too:
        head = b"POST /api/monitors/m0/events HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 10_000
        body = (
            f"POST /api/monitors/m0/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {tokens['ingest']}\r\n"
        )
        whole = f"{body}Content-Length: 10000\r\n\r\n".encode()
        ends = await asyncio.gather(slow(port, head, 60), slow(port, b"", 60), slow_body(port, whole))
        found["slow_head_silence_and_body_ended_after_seconds"] = [round(one, 1) for one in ends]
    return found


async def slow_body(port: int, head: bytes) -> float:
    """A head at once, a body a byte at a time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    writer.write(head)
    async with asyncio.timeout(60):
        reading = asyncio.create_task(reader.read())
        while not reading.done():
            try:
                writer.write(b"1")
                await writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0.2)
    reading.cancel()
    writer.close()
    return time.monotonic() - began


def main(requests: int, seed: int, slow_too: bool = True) -> dict[str, Any]:
    """Run it; an AssertionError says which request was answered badly."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        tokens = {scope: Tokens(data).create(scope, [scope])[0] for scope in SCOPES}
        tokens["narrow"] = Tokens(data).create("narrow", ["ingest", "read"], ["m1"])[0]
        with Server(data, "--require-token") as server, Client(server.port) as client:
            bearer = {"Authorization": f"Bearer {tokens['admin']}"}
            configs = {
                "m0": {},
                "m1": {},
                "segmented": {"by": ["country"]},
                "several": {"labels": [0, 1, 2]},
                "watched": {},
            }
            for name, config in configs.items():
                assert client.call("PUT", f"/api/monitors/{name}", config, **bearer)[0] == 201
            before = server.memory()
            found = asyncio.run(main_async(server.port, tokens, requests, seed, slow_too))
            with Client(server.port) as after:
                began = time.monotonic()
                assert after.call("GET", "/healthz")[0] == 200
                found["healthz_afterwards_seconds"] = round(time.monotonic() - began, 4)
                counted = after.call("GET", "/api/monitors/watched", **bearer)[1]["events"]
            assert counted == found["sound_events"], f"{counted} events of a sound client were counted"
            found |= {"memory_before_mb": before >> 20, "memory_after_mb": server.memory() >> 20}
            log = data.with_suffix(".log").read_text()
            assert "Traceback" not in log, log[-3_000:]
            assert '"level": "error"' not in log, log[-3_000:]
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    result = main(given.requests, given.seed)
    print(f"no 500, no hang: {json.dumps(result)}")
    if given.requests >= 100_000:
        keep("serve_fuzz", result)

"""How fast the service takes events that are on disk when it answers, against an endpoint that only decodes them.

Ratios of the same run on this machine, bare endpoint and service in turn, several times; the median counts.

    python benchmarks/serve_load.py [part ...]       parts: columns ids arrow single stream memory late day
"""

from __future__ import annotations

import argparse
import http.client
import json
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import hammer
import numpy as np
from drawn import keep
from servers import Client, Postgres, Server, free_port

HERE = Path(__file__).parent
RANDOM = np.random.default_rng(17)


class Bare:
    """The bare endpoint in a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()

    def __enter__(self) -> Bare:
        self.process = subprocess.Popen([sys.executable, HERE / "bare_server.py", str(self.port)])
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError, http.client.HTTPException), Client(self.port) as client:
                if client.call("GET", "/readyz")[0] == 200:
                    return self
            time.sleep(0.05)
        raise RuntimeError("the bare endpoint does not answer")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def hit(
    port: int, connections: int, seconds: float, requests: list[bytes], rate: float | None = None
) -> dict[str, Any]:
    """Send requests from a process of their own."""
    with tempfile.NamedTemporaryFile() as file:
        hammer.write(Path(file.name), requests)
        command = [sys.executable, HERE / "hammer.py", str(port), str(connections), str(seconds), file.name]
        done = subprocess.run(
            [*command, *([] if rate is None else [str(rate)])], check=True, capture_output=True, text=True
        )
    found: dict[str, Any] = json.loads(done.stdout)
    assert not found["refused"] + found["lost"], found
    found["rate"] = found["answered"] / found["seconds"]
    return found


def columns(size: int, ids: bool = False) -> bytes:
    truths = (RANDOM.random(size) < 0.3).astype(int)
    preds = truths ^ (RANDOM.random(size) < 0.1)
    body: dict[str, Any] = {"y_true": truths.tolist(), "y_pred": preds.tolist()}
    if ids:
        body["id"] = ["@" * 12 + f"-{row:04d}" for row in range(size)]
    return json.dumps(body, separators=(",", ":")).encode()


@contextmanager
def service(database: str = "sqlite", *options: str, config: dict[str, Any] | None = None) -> Any:
    """A server with one monitor."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if database == "postgresql":
            options = (*options, "--database", stack.enter_context(Postgres()).url)
        server = stack.enter_context(Server(folder / "data", *options))
        with Client(server.port) as client:
            assert client.call("PUT", "/api/monitors/m", config or {"arl": 1e9})[0] == 201
        yield server


def against_bare(
    name: str, mark: float, database: str, connections: int, requests: list[bytes], turns: int = 5, seconds: float = 2.0
) -> dict[str, Any]:
    """The ratio of both rates, in turns."""
    with Bare() as bare, service(database) as server:
        ours, theirs = [], []
        hit(server.port, connections, 0.5, requests)
        hit(bare.port, connections, 0.5, requests)
        for _ in range(turns):
            theirs.append(hit(bare.port, connections, seconds, requests))
            ours.append(hit(server.port, connections, seconds, requests))
    ratio = median(one["rate"] / other["rate"] for one, other in zip(ours, theirs, strict=True))
    result = {
        "ratio": round(ratio, 3),
        "mark": mark,
        "ours": round(median(one["rate"] for one in ours)),
        "bare": round(median(one["rate"] for one in theirs)),
        "p99 ms": round(1000 * median(one["latency"][2] for one in ours), 1),
        "bare p99 ms": round(1000 * median(one["latency"][2] for one in theirs), 1),
    }
    print(f"{name:<44} {result}", flush=True)
    return result


def part_columns() -> dict[str, Any]:
    requests = [hammer.request("/api/monitors/m/events", columns(1_000)) for _ in range(16)]
    found = {}
    for database, connections, mark in (
        ("sqlite", 64, 0.28),
        ("postgresql", 64, 0.28),
        ("sqlite", 8, 0.2),
        ("postgresql", 8, 0.2),
    ):
        name = f"columns of 1,000, {database}, {connections} connections"
        found[name] = against_bare(name, mark, database, connections, requests)
    return found


def part_ids() -> dict[str, Any]:
    requests = [hammer.request("/api/monitors/m/events", columns(1_000, ids=True)) for _ in range(4)]
    name = "columns of 1,000 with ids, sqlite, 64"
    return {name: against_bare(name, 0.2, "sqlite", 64, requests)}


def part_arrow() -> dict[str, Any]:
    import pyarrow as pa

    requests = []
    for _ in range(8):
        truths = RANDOM.random(10_000) < 0.3
        table = pa.table({"y_true": truths.astype(np.int8), "y_pred": truths.astype(np.int8)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        kind = "application/vnd.apache.arrow.stream"
        requests.append(hammer.request("/api/monitors/m/events", sink.getvalue().to_pybytes(), kind))
    with service() as server:
        found = [hit(server.port, 8, 2.0, requests)["rate"] * 10_000 for _ in range(5)]
    result = {"events a second": round(median(found)), "mark": 3_000_000}
    print(f"{'Arrow in batches of 10,000':<44} {result}")
    return {"Arrow in batches of 10,000": result}


def part_single() -> dict[str, Any]:
    requests = [hammer.request("/api/monitors/m/events", columns(1)) for _ in range(16)]
    name = "single events, sqlite, 64 connections"
    result = against_bare(name, 0.4, "sqlite", 64, requests)
    with Bare() as bare, service() as server:
        ours, theirs = [], []
        for port in (server.port, bare.port):
            hit(port, 64, 0.5, requests)
        for _ in range(3):  # the bare endpoint at the same pace shows what is the machine's part
            theirs.append(hit(bare.port, 64, 3.0, requests, rate=result["ours"] / 2)["latency"][2])
            ours.append(hit(server.port, 64, 3.0, requests, rate=result["ours"] / 2)["latency"][2])
    result |= {"p99 ms at half": round(1000 * median(ours), 1), "mark p99": 50}
    result |= {"bare p99 ms at half": round(1000 * median(theirs), 1)}
    at_half = f"p99 {result['p99 ms at half']} ms (mark 50), bare at this pace {result['bare p99 ms at half']} ms"
    print(f"{'single events at half of the maximum':<44} {at_half}", flush=True)
    return {name: result}


def part_stream(pairs: int = 10, seconds: float = 1.5) -> dict[str, Any]:
    """200 readers of the stream, half of which do not read; with and without them in turn."""
    requests = [hammer.request("/api/monitors/m/events", columns(1_000)) for _ in range(16)]
    few = [hammer.request("/api/monitors/m/events", columns(10)) for _ in range(16)]
    with service() as server:
        hit(server.port, 64, 0.5, requests)

        def busy() -> float:
            """Seconds of processor time a second while a few events come, so that there is something to tell."""
            before = server.processor_time()
            taken = hit(server.port, 4, 2.0, few, rate=20)["seconds"]
            return (server.processor_time() - before) / taken

        def measured() -> tuple[float, float]:
            return hit(server.port, 64, seconds, requests)["rate"], busy()

        with_readers, without = [], []
        for turn in range(pairs):
            if turn % 2:
                without.append(measured())
            with readers(server.port, 200):
                with_readers.append(measured())
            if not turn % 2:
                without.append(measured())
    costs = np.array([(1 - a / c, b - d) for (a, b), (c, d) in zip(with_readers, without, strict=True)])
    (cost, share), errors = costs.mean(0), costs.std(0, ddof=1) / pairs**0.5
    result = {
        "cost": round(float(cost), 3),
        "standard error": round(float(errors[0]), 3),
        "share of a core": round(float(share), 3),
        "its standard error": round(float(errors[1]), 3),
        "mark": 0.05,
    }
    print(f"{'200 readers of the stream, half not reading':<44} {result}")
    return {"200 readers of the stream": result}


@contextmanager
def readers(port: int, number: int) -> Iterator[None]:
    """Readers of the stream; every other one does not read."""
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(number)]
    ending = threading.Event()

    def drain() -> None:
        while not ending.is_set():
            for one in select.select(sockets[::2], [], [], 0.2)[0]:
                one.recv(65536)

    thread = threading.Thread(target=drain, daemon=True)
    try:
        for one in sockets:
            one.sendall(b"GET /api/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        thread.start()
        time.sleep(0.5)
        yield
    finally:
        ending.set()
        thread.join()
        for one in sockets:
            one.close()
        time.sleep(0.3)


def part_memory(monitors: int = 100, segments: int = 10_000) -> dict[str, Any]:
    names = [f"segment-{number}" for number in range(segments)]
    body = {"y_true": [1] * segments, "y_pred": [1] * segments, "by": {"shop": names}}
    encoded = json.dumps(body).encode()
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "data") as server,
        Client(server.port, 120) as client,
    ):
        empty = server.memory()
        for number in range(monitors):
            assert client.call("PUT", f"/api/monitors/m{number}", {"by": ["shop"]})[0] == 201
            for _ in range(2):
                status, answer = client.call("POST", f"/api/monitors/m{number}/events", encoded)
                assert status == 200, answer
        full = server.memory()
        server.kill()
        server.start()
        again = server.memory()
    result = {"bytes": full, "empty": empty, "after a restart": again, "mark": 1_000_000_000}
    print(f"{f'{monitors} monitors x {segments:,} segments':<44} {result}")
    return {"100 monitors with 10,000 segments": result}


def part_late(waiting: int = 10_000_000, size: int = 10_000) -> dict[str, Any]:
    """Predictions that wait, then labels in random order, against pairs."""
    import pyarrow as pa

    def body(**arrays: Any) -> bytes:
        table = pa.table(arrays)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    kind = {"content_type": "application/vnd.apache.arrow.stream"}
    y = np.zeros(size, np.int8)
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "data") as server,
        Client(server.port, 600) as client,
    ):
        for name in ("pairs", "late"):
            client.call("PUT", f"/api/monitors/{name}", {"arl": 1e9})

        def post(path: str, data: bytes) -> tuple[int, Any]:
            return client.call("POST", f"/api/monitors/{path}", data, **kind)

        rounds = [np.arange(i * size, (i + 1) * size) for i in range(200)]
        bodies = [body(y_true=y, y_pred=y, id=one) for one in rounds]
        began = time.perf_counter()
        for one in bodies:
            assert post("pairs/events", one)[0] == 200
        pairs = len(bodies) * size / (time.perf_counter() - began)
        client.call("DELETE", "/api/monitors/pairs")
        before = server.memory()
        for start in range(0, waiting, size):
            assert post("late/predictions", body(y_pred=y, id=np.arange(start, start + size)))[0] == 200
        each = (server.memory() - before) / waiting
        order = RANDOM.permutation(waiting)[: 100 * size]
        bodies = [body(y_true=y, id=order[start : start + size]) for start in range(0, order.size, size)]
        began = time.perf_counter()
        for one in bodies:
            assert post("late/labels", one)[0] == 200
        labels = order.size / (time.perf_counter() - began)
        shown = client.call("GET", "/api/monitors/late")[1]
        assert (shown["events"], shown["waiting"]) == (order.size, waiting - order.size), shown
        server.kill()
        began = time.perf_counter()
        server.start()
        seconds = time.perf_counter() - began
        with Client(server.port, 600) as second:
            again = second.call("GET", "/api/monitors/late")[1]
        assert (again["events"], again["waiting"]) == (shown["events"], shown["waiting"]), again
    result = {
        "bytes each": round(each, 1),
        "mark bytes": 100,
        "labels a second": round(labels),
        "pairs a second": round(pairs),
        "ratio": round(labels / pairs, 3),
        "mark ratio": 0.3,
        "start-up s": round(seconds, 1),
    }
    print(f"{f'{waiting:,} predictions waiting':<44} {result}")
    return {"late labels": result}


def part_day(hours: int = 24, each: int = 60_000) -> dict[str, Any]:
    """A day of traffic in minutes: predictions, labels an hour later, ids, three segments; memory must stay flat.

    Snapshots are made as of a tenth of the journal, so that there are some in the first hours, and many in a day.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "data", snapshot_bytes=3 << 20) as server,
        Client(server.port, 120) as client,
    ):
        config = {"by": ["country"], "max_wait": "2 hours", "budget": "1 per month"}
        client.call("PUT", "/api/monitors/day", config)
        memory, size, start = [], 2_000, time.time() - hours * 3600
        late: list[tuple[float, list[str], list[int]]] = []
        for step in range(hours * each // size):
            now = start + step * 3600 * size / each
            truths = (RANDOM.random(size) < 0.3).astype(int)
            preds = (truths ^ (RANDOM.random(size) < 0.1)).tolist()
            ids = [f"{step}-{row}" for row in range(size)]
            body = {"id": ids, "y_pred": preds, "time": [now] * size}
            body["by"] = {"country": RANDOM.choice(["DE", "FR", "IT"], size).tolist()}
            assert client.call("POST", "/api/monitors/day/predictions", body)[0] == 200
            late.append((now, ids, truths.tolist()))
            while late and late[0][0] <= now - 3600:
                _, ids, y_true = late.pop(0)
                status, answer = client.call(
                    "POST", "/api/monitors/day/labels", {"id": ids, "y_true": y_true, "time": [now] * size}
                )
                assert status == 200, answer
            if step % (each // size) == 0:
                memory.append(server.memory())
        shown = client.call("GET", "/api/monitors/day")[1]
    # Ids are remembered for two hours: from the fourth hour on nothing should grow.
    settled = memory[4:]
    result = {
        "events": shown["events"],
        "MB by the hour": [round(one / 1e6, 1) for one in memory],
        "MB after 4 h": round(settled[0] / 1e6, 1),
        "MB after 24 h": round(settled[-1] / 1e6, 1),
        "growth": round(settled[-1] / settled[0] - 1, 3),
        "mark": 0.05,
    }
    print(f"{'24 hours of traffic':<44} {result}")
    return {"24 hours of traffic": result}


PARTS = {name.removeprefix("part_"): function for name, function in [*globals().items()] if name.startswith("part_")}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    results: dict[str, Any] = {}
    for part in parser.parse_args().parts or PARTS:
        results |= PARTS[part]()
        keep(f"serve_load_{part}", results)
        results = {}

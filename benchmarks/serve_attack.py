"""The service under attack: a clock that jumps, connections that are cut, backups that are killed, 10^8 events.

`clock` has the clock of the server jump by a minute to a year, ahead and back, under load (libfaketime): no prediction
expires, and every drift is told. `cuts` has two servers on one PostgreSQL, and cuts their connections after any number
of messages: what was acknowledged is counted exactly. `backup` kills `fourrates serve backup` at random moments: its
file is whole or absent. `soak` sends events in large batches: memory does not grow.

    python benchmarks/serve_attack.py clock [--count 200]
    python benchmarks/serve_attack.py cuts [--count 200]
    python benchmarks/serve_attack.py backup [--count 200] [--database postgresql]
    python benchmarks/serve_attack.py soak [--count 100000000]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from drawn import keep
from serve_kill import MONITORS, PATIENCE, Hook, Sender, check
from servers import Client, Postgres, Proxy, Server

from fourrates.serve.settings import Settings

ARROW = "application/vnd.apache.arrow.stream"
YEAR = 365 * 86_400.0
KEEP = {"keep_events": 10**9, "snapshot_bytes": 20_000}
AWAY = 75  # status of a server that waited in vain for its database


class Books:
    """What was sent by hand, as a sender has it."""

    def __init__(self) -> None:
        self.cells: dict[str, Counter[tuple[int, int]]] = {name: Counter() for name in MONITORS}


@contextmanager
def under_load(seed: int, clients: int, *ports: int) -> Iterator[tuple[list[Any], Hook]]:
    """Monitors with a webhook, and clients that send to them; at the end all of them were answered."""
    hook = Hook(seed)
    with Client(ports[0]) as client:
        for name, config in MONITORS.items():
            told = config | {"alerts": {"channels": [hook.url]}}
            assert client.call("PUT", f"/api/monitors/{name}", told)[0] == 201
    senders = [Sender(number, seed, *ports) for number in range(clients)]
    for sender in senders:
        sender.start()
    try:
        yield [*senders], hook
    finally:
        for sender in senders:
            sender.ending.set()
    for sender in senders:
        sender.join(PATIENCE)
        assert not sender.is_alive()
        assert sender.problem is None, sender.problem


def requests_of(senders: list[Any]) -> dict[str, int]:
    """How much was sent."""
    return {"requests": sum(one.requests for one in senders), "retries": sum(one.retries for one in senders)}


# The clock ----------------------------------------------------------------------------------------------------


def faketime() -> Path | None:
    """The library that changes the time of day for a process, if it is installed."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


def clock(count: int, seed: int, clients: int = 4, waiting: int = 5_000) -> dict[str, Any]:
    """Jumps of the clock while predictions wait and drifts are told."""
    dice, library = random.Random(seed), faketime()
    assert library is not None, "libfaketime is not installed: apt-get install libfaketime"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        offset = folder / "offset"

        def set_clock(seconds: float) -> None:
            (folder / "next").write_text(f"{seconds:+.0f}")
            os.replace(folder / "next", offset)

        set_clock(0)
        server = Server(folder / "data", **KEEP, alert_interval=1)
        server.start(
            LD_PRELOAD=str(library),
            FAKETIME_TIMESTAMP_FILE=str(offset),
            FAKETIME_NO_CACHE="1",
            FAKETIME_DONT_FAKE_MONOTONIC="1",
        )
        stack.callback(server.kill)
        books, ids = Books(), [f"waits-{row}" for row in range(waiting)]
        late = "/api/monitors/late"
        with under_load(seed, clients, server.port) as (senders, hook):
            with Client(server.port) as client:
                body = {"id": ids, "y_pred": [0] * waiting, "by": {"country": ["DE"] * waiting}}
                assert client.call("POST", f"{late}/predictions", body)[0] == 200
            largest = 0.0
            for _ in range(count):
                time.sleep(dice.uniform(0.05, 0.5))
                jump = dice.choice((-1, 1)) * 60 * (YEAR / 60) ** dice.random()
                set_clock(jump)
                largest = max(largest, abs(jump))
                time.sleep(dice.uniform(0.05, 0.5))
                if dice.random() < 0.5:
                    set_clock(0)
            set_clock(0)
        with Client(server.port) as client:
            assert client.call("GET", late)[1]["waiting"] == waiting
            answer = client.call("POST", f"{late}/labels", {"id": ids, "y_true": [0] * waiting})
            assert answer[0] == 200, answer
            assert client.call("GET", late)[1]["counts"]["expired"] == 0
        books.cells["late"][0, 0] += waiting
        totals = check(Settings(data=folder / "data"), [*senders, books], hook, server.port)
        log = (folder / "data.log").read_text()
        assert "the clock leapt" in log, "the clock of the server did not jump"
        assert '"level": "error"' not in log, log[-3_000:]
        server.stop()
    jumps = {"jumps": count, "largest_days": round(largest / 86_400, 1), "expired": 0, "waited": waiting}
    return jumps | totals | requests_of(senders)


# Connections to PostgreSQL ------------------------------------------------------------------------------------


def cuts(count: int, seed: int, clients: int = 6) -> dict[str, Any]:
    """Connections cut before a message, or before its answer, of two servers on one database."""
    dice, kinds = random.Random(seed), Counter[str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(Postgres())
        proxies = [Proxy(postgres) for _ in range(2)]
        servers = []
        for name, proxy in zip("ab", proxies, strict=True):
            stack.callback(proxy.close)
            servers.append(Server(folder / name, "--database", proxy.url, **KEEP, alert_interval=0))
        servers[0].start()
        servers[1].start(wait=False)
        for server in servers:
            stack.callback(lambda server=server: server.kill())
        with under_load(seed, clients, *(server.port for server in servers)) as (senders, hook):
            for _ in range(count):
                proxy, late, kept = dice.choice(proxies), dice.random() < 0.5, dice.random() < 0.2
                away = dice.choice((0.0, dice.uniform(0.3, 1.5)))
                proxy.cut_after(int(80 ** dice.random()), late=late, keep=kept, away=away)
                kinds["cuts"] += proxy.was_cut.wait(10)
                kinds["answers lost"] += late
                kinds["sessions left open"] += kept
                time.sleep(dice.uniform(0.0, 0.4))
                kinds["started again"] += sum(restarted(server) for server in servers)
                for sender in senders:
                    assert sender.problem is None, sender.problem
            for proxy in proxies:
                proxy.cut_after(-1)
        books = Books()
        port = owner([server.port for server in servers], books)
        totals = check(Settings(data=folder, database=postgres.url), [*senders, books], hook, port)
        taken = sum((folder / f"{name}.log").read_text().count("every monitor was loaded again") for name in "ab")
    return dict(kinds) | {"rounds": count, "taken over": taken} | totals | requests_of(senders)


def restarted(server: Server) -> bool:
    """Start a server again that waited too long for its turn; it may not end for another reason."""
    assert server.process is not None
    status = server.process.poll()
    assert status in (None, AWAY), f"status {status}: {server.data.with_suffix('.log').read_text()[-2_000:]}"
    if status == AWAY:
        server.start(wait=False)
    return status == AWAY


def owner(ports: list[int], books: Books) -> int:
    """The port of the server that has the database: one that takes an event."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for port in ports:
            try:
                with Client(port, timeout=20) as client:
                    if client.call("POST", "/api/monitors/pairs/events", {"y_true": [0], "y_pred": [0]})[0] == 200:
                        books.cells["pairs"][0, 0] += 1
                        return port
            except OSError:
                pass
        time.sleep(0.2)
    raise AssertionError("none of the servers takes anything")


# Backups ------------------------------------------------------------------------------------------------------


def backup(count: int, seed: int, database: str = "sqlite", rows: int = 400_000) -> dict[str, Any]:
    """Backups killed at any moment, most of them while the copy is written."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(Postgres()) if database == "postgresql" else None
        options = [] if postgres is None else ["--database", postgres.url]
        server = stack.enter_context(Server(folder / "data", *options))
        with Client(server.port) as client:
            assert client.call("PUT", "/api/monitors/m", {})[0] == 201
            for start in range(0, rows, 20_000):
                ids = [f"{row:040}" for row in range(start, start + 20_000)]
                body = {"id": ids, "y_true": [0] * len(ids), "y_pred": [0] * len(ids)}
                assert client.call("POST", "/api/monitors/m/events", body)[0] == 200
        whole, found = folder / "whole", Counter[str]()
        started, until = run_backup(folder, whole, options)
        size = whole.stat().st_size
        for number in range(count):
            target = folder / f"copy-{number}"
            early = dice.random() < 0.2  # before there is a file, and otherwise after
            moment = dice.uniform(0, started if early else 1.3 * (until - started))
            run_backup(folder, target, options, kill=(early, moment))
            found["absent" if not target.exists() else "whole"] += 1
            if target.exists():
                assert is_whole(target, rows, postgres), f"{target.name}: {target.stat().st_size} of {size} bytes"
                target.unlink()
            found["scratch files"] += sum(one.unlink() is None for one in folder.glob(f".{target.name}.*"))
            assert not [*folder.glob(f"{target.name}*")], "something lies beside it"
    return {"kills": count, "database": database, "bytes": size, **found, "cut": 0}


def run_backup(
    folder: Path, target: Path, options: list[str], kill: tuple[bool, float] | None = None
) -> tuple[float, float]:
    """Write a backup, or kill it: so many seconds after its start (True), or after its scratch file appeared.

    Returns when the scratch file appeared and when it ended, in seconds after the start.
    """
    command = "import sys; from fourrates.cli import main; sys.argv[0] = 'fourrates'; main()"
    words = [sys.executable, "-c", command, "serve", "backup", "--data", str(folder / "data"), *options, str(target)]
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    started = 0.0
    while process.poll() is None:
        now = time.monotonic() - began
        if not started and any(folder.glob(f".{target.name}.*")):
            started = now
        if kill is not None and (now >= kill[1] if kill[0] else started and now >= started + kill[1]):
            os.killpg(process.pid, 9)  # with pg_dump, if that runs
            process.wait()
        time.sleep(0.0005)
    return started, time.monotonic() - began


def is_whole(copy: Path, rows: int, postgres: Postgres | None) -> bool:
    """Whether a backup can be used, and has everything."""
    if postgres is not None:
        words = [postgres.programs / "pg_restore", "--file", "/dev/null", copy]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    connection = sqlite3.connect(copy)
    try:
        sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return sound and connection.execute("SELECT sum(events) FROM journal").fetchone() == (rows,)
    finally:
        connection.close()


# Memory -------------------------------------------------------------------------------------------------------


def soak(count: int, seed: int, size: int = 250_000, points: int = 20) -> dict[str, Any]:
    """Events in large batches, plain and by segment; memory is looked at now and then."""
    draw = np.random.default_rng(seed)
    truths = (draw.random(size) < 0.3).astype(np.int8)
    preds = truths ^ (draw.random(size) < 0.1).astype(np.int8)
    segments = pa.DictionaryArray.from_arrays(draw.integers(0, 300, size), [f"s{one}" for one in range(300)])
    sides = {"y_true": pa.array(truths), "y_pred": pa.array(preds)}
    bodies = {"plain": stream(sides), "segments": stream({**sides, "country": segments})}
    series, sent = [], 0
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        with Client(server.port, timeout=120) as client:
            assert client.call("PUT", "/api/monitors/plain", {})[0] == 201
            assert client.call("PUT", "/api/monitors/segments", {"by": ["country"]})[0] == 201
            began = time.monotonic()
            while sent < count:
                for name, body in bodies.items():
                    status, answer = client.call("POST", f"/api/monitors/{name}/events", body, content_type=ARROW)
                    assert status == 200, answer
                    assert answer["accepted"] == size
                    sent += size
                if sent * points >= count * (len(series) + 1):
                    series.append((sent, server.memory() >> 20))
            took = time.monotonic() - began
            counted = sum(client.call("GET", f"/api/monitors/{name}")[1]["events"] for name in bodies)
        assert counted == sent, f"{counted} of {sent} were counted"
        warm = [memory for events, memory in series if events >= count / 10]
        grown = max(warm) - warm[0]
        found = {"events": sent, "seconds": round(took), "memory_mb": series, "grown_mb": grown}
        assert grown <= 20, f"memory grew: {found}"
    return found


def stream(columns: dict[str, Any]) -> bytes:
    """An Arrow stream of one batch."""
    batch, sink = pa.record_batch(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


ATTACKS = {"clock": (clock, 200), "cuts": (cuts, 200), "backup": (backup, 200), "soak": (soak, 10**8)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("--count", type=int, help="jumps, cuts, kills or events")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite", help="of the backup")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    attack, full = ATTACKS[given.attack]
    more = {"database": given.database} if given.attack == "backup" else {}
    result = attack(given.count or full, given.seed, **more)
    print(f"withstood: {json.dumps(result)}")
    if (given.count or full) >= full:
        keep("_".join(["serve_attack", given.attack, *more.values()]), result)

"""Files from anybody, changed at random: whatever is read is refused in one line, or read, and nothing else happens.

CSV, TSV, JSON lines, Parquet and Arrow files, states of `detect` and `watch`, spools of alerts, tables in the cache,
and the whole command line in this process. A file is cut, spliced, filled with telling bytes or numbers, and where it
has a checksum half of them get one that fits. An input error is well; so is a result. A defect (exit status 3), any
other exception, more than 10 seconds or a gigabyte is not.

    python benchmarks/fuzz_files.py --count 10000 --seed 1 [--only csv] [--out build/fuzz.json]

`--count` is for each kind. Prints what came of each; every kind of failure is shown with the file that made it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import fourrates as fr
from fourrates import null, state
from fourrates.alerts import Spool
from fourrates.cli.app import run as command_line
from fourrates.cli.states import Checkpoint, Progress
from fourrates.disk_queue import QueueError
from fourrates.io import InputError, read
from fourrates.watch import Watch

SECONDS = 10
MEGABYTES = 1024
ROWS = 60
TELLING = [
    *(b"\0", b"\n", b"\r", b'"', b"'", b",", b"\t", b"{", b"}", b"[", b"]", b":", b"\xff", b"\xef\xbb\xbf", b"\x1b[2J"),
    *(b"nan", b"null", b"-0", b"1e999", b"9" * 400, b"true", b"[/x]", b"=1+1", b"\\ud800", b"[" * 2000, b'{"a":' * 500),
    *(struct.pack("<i", value) for value in (0, 1, -1, 2**31 - 1, -(2**31), 4096)),
    *(struct.pack("<q", value) for value in (0, 1, -1, 2**63 - 1, -(2**63), 2**40)),
]


def changed(random: np.random.Generator, saved: bytes) -> bytes:
    """The bytes with one to four changes: a bit, a stretch that is cut, doubled or noise, something telling."""
    body = bytearray(saved)
    for _ in range(1 + int(random.geometric(0.6) - 1) % 5):
        place, how, size = (int(random.integers(bound)) for bound in (len(body) + 1, 7, 60))
        telling = TELLING[int(random.integers(len(TELLING)))]
        if how == 0 and place < len(body):
            body[place] ^= 1 << int(random.integers(8))
        elif how == 1:
            del body[place : place + size]
        elif how == 2:
            body[place:place] = body[place : place + size]
        elif how == 3:
            body[place : place + size] = random.bytes(size)
        elif how == 4:
            body[place:place] = telling
        elif how == 5:
            body[place : place + len(telling)] = telling
        elif random.random() < 0.2:
            del body[place:]
    return bytes(body)


def columns(random: np.random.Generator) -> dict[str, list[Any]]:
    """A small stream: labels, predictions, scores, names and times."""
    truth = random.integers(0, 2, ROWS)
    return {
        "y_true": truth.tolist(),
        "y_pred": np.where(random.random(ROWS) < 0.8, truth, 1 - truth).tolist(),
        "score": random.random(ROWS).round(3).tolist(),
        "model": [f"m{i % 3}" for i in range(ROWS)],
        "time": [f"2024-01-{1 + i // 24:02}T{i % 24:02}:00:00" for i in range(ROWS)],
    }


def table_file(kind: str, random: np.random.Generator) -> bytes:
    """The stream as a file of this kind."""
    found = columns(random)
    if kind in ("csv", "tsv"):
        comma = "," if kind == "csv" else "\t"
        lines = [found.keys(), *zip(*found.values(), strict=True)]
        return "".join(comma.join(map(str, line)) + "\n" for line in lines).encode()
    if kind == "jsonl":
        rows = (dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True))
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    table = pa.table({**found, "model": pa.array(found["model"]).dictionary_encode()})
    sink = io.BytesIO()
    if kind == "parquet":
        pyarrow.parquet.write_table(table, sink, compression="none" if random.random() < 0.5 else "snappy")
    else:
        new = pa.ipc.new_file if random.random() < 0.5 else pa.ipc.new_stream
        with new(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


Case = tuple[bytes, Callable[[Path], None]]


def tables(kind: str) -> Callable[[np.random.Generator, Path], Iterator[Case]]:
    """Files of this kind, read and given to a detector."""

    def cases(random: np.random.Generator, folder: Path) -> Iterator[Case]:
        files = [table_file(kind, random) for _ in range(8)]

        def use(path: Path) -> None:
            events = read(str(path), on_message=lambda text: None)
            run = None
            for batch in events:
                run = run or Watch(fr.FourRates(200, labels=events.labels.values))
                run.update(batch, events.keys)

        while True:
            yield changed(random, files[int(random.integers(len(files)))]), use

    return cases


def states(random: np.random.Generator, folder: Path) -> Iterator[Case]:
    """States of `detect` and of `watch`, as the command line saved them."""
    data = folder / "data.csv"
    data.write_bytes(table_file("csv", random))
    saved = []
    for words in ((), ("--by", "model")):
        state = folder / f"state{len(saved)}"
        quiet("detect", str(data), "--state", str(state), *words)
        saved.append(state.read_bytes())
        state = folder / f"state{len(saved)}"
        watch = [sys.executable, "-m", "fourrates", "watch", "-", "--state", str(state), *words]
        with data.open("rb") as pipe:
            subprocess.run(watch, stdin=pipe, capture_output=True, check=True, timeout=60)
        saved.append(state.read_bytes())

    def use(path: Path) -> None:
        content = path.read_bytes()
        kind: Any = Progress if b"fourrates detect" in content[:100] else Checkpoint
        found = kind.load(path)
        if found is not None:
            Watch.from_bytes(found.watch)

    while True:
        one = saved[int(random.integers(len(saved)))]
        if random.random() < 0.5:
            yield changed(random, one), use
        else:
            body = changed(random, one[:-4])
            yield body + struct.pack("<I", zlib.crc32(body)), use


def spools(random: np.random.Generator, folder: Path) -> Iterator[Case]:
    """Spools of alerts, three of them undelivered."""

    class Nobody:
        name, deadline = "nobody", 1.0

        def deliver(self, alert: Any) -> None:
            raise OSError("nobody is there")

        def close(self) -> None:
            pass

    path = folder / "seed.alerts"
    spool = Spool(path, [Nobody()])
    for number in range(3):
        spool.put({"id": f"a{number}", "at": number})
    spool.close(0)
    body = path.read_bytes()

    def use(path: Path) -> None:
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        found = Spool(path, [Nobody()])
        try:
            found.put({"id": "new", "at": 9})
            _ = found.pending, found.stranded, found.dead_letters, found.dropped
        finally:
            found.close(0)

    while True:
        yield changed(random, body), use


def cached(random: np.random.Generator, folder: Path) -> Iterator[Case]:
    """Tables of bounds in the cache, used or rebuilt."""
    os.environ["FOURRATES_CACHE"] = str(folder / "cache")
    null.table(0.3, (0.01,))
    (own,) = (folder / "cache").iterdir()
    content = own.read_bytes()
    whole = state.unpack(content)

    honest, build = null._build(0.3, (0.01,), exact=True), null._build
    null._build = lambda *_, **__: honest  # it takes a while, and is not what is tried here

    def use(path: Path) -> None:
        path.replace(own)
        null._table.cache_clear()
        found = null.table(0.3, (0.01,))
        for n in (0, 1, 5, 30, 10**9):
            if not 0 <= found.lower(0, n, n // 2) <= found.upper(0, n, n // 2) <= 1:
                raise AssertionError(f"bounds out of order at {n}")

    try:
        while True:
            if random.random() < 0.5:
                yield changed(random, content), use
            else:  # with a checksum that fits
                sections = {name: changed(random, bytes(section)) for name, section in whole.sections.items()}
                yield state.pack(whole.kind, whole.about, **sections), use
    finally:
        null._build = build
        null._table.cache_clear()


def commands(random: np.random.Generator, folder: Path) -> Iterator[Case]:
    """The command line on such files, with options that may make sense."""
    kinds = ("csv", "tsv", "jsonl", "parquet", "arrow")
    files = [(kind, table_file(kind, random)) for kind in kinds for _ in range(3)]
    words = [
        *(["--by", "model"], ["--time", "time"], ["--score", "score"], ["--truth", "y_pred"], ["--pred", "[/x]"]),
        *(["--json"], ["--classes", "0,1"], ["--classes", "a,b,c"], ["--positive", "0"], ["--bad", "error"]),
        *(
            ["--budget", "200"],
            ["--budget", "1 per day"],
            ["-d", "LFR"],
            ["-d", "DDM(minimum=3)"],
        ),
        *(["--reference", "90,10,20,80"], ["--csv", str(folder / "out.csv")]),
        *(["--report", str(folder / "out.html")], ["--fail-on", "drift"], ["--threshold", "nan"]),
    ]
    while True:
        kind, body = files[int(random.integers(len(files)))]
        chosen = [words[int(i)] for i in random.integers(0, len(words), int(random.integers(0, 4)))]

        def use(path: Path, kind: str = kind, chosen: list[list[str]] = chosen) -> None:
            named = path.with_name(f"data.{kind}")
            path.replace(named)
            status, said = quiet("detect", str(named), *(word for pair in chosen for word in pair))
            if status not in (0, 1, 2) or (status == 1 and ["--fail-on", "drift"] not in chosen):
                raise AssertionError(f"exit status {status}: {' '.join(map(' '.join, chosen))}: {said[-300:]}")
            if "\x1b" in said:
                raise AssertionError("an escape sequence on the way to a terminal")
            if status == 2:
                raise InputError(said)

        yield changed(random, body), use


def quiet(*words: str) -> tuple[int, str]:
    """Run the command line here: its exit status, and what it wrote."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = command_line(list(words))
    return status, out.getvalue()


KINDS: dict[str, Callable[[np.random.Generator, Path], Iterator[Case]]] = {
    **{kind: tables(kind) for kind in ("csv", "tsv", "jsonl", "parquet", "arrow")},
    "states": states,
    "spools": spools,
    "cache": cached,
    "commands": commands,
}


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def fuzz(kind: str, count: int, seed: int) -> tuple[Counter[str], dict[str, bytes]]:
    """Try many of a kind: how many of each outcome, and each way in which one went wrong with the bytes that did."""
    outcomes: Counter[str] = Counter()
    wrong: dict[str, bytes] = {}
    before = signal.signal(signal.SIGALRM, _late)
    kept = os.environ.get("FOURRATES_CACHE")
    try:
        with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
            warnings.simplefilter("error")
            folder = Path(name)
            cases = KINDS[kind](np.random.default_rng(seed), folder)
            path = folder / "it"
            for _ in range(count):
                body, use = next(cases)
                path.write_bytes(body)
                signal.alarm(SECONDS)
                try:
                    use(path)
                    outcomes["read"] += 1
                except (InputError, QueueError):
                    outcomes["refused"] += 1
                except Exception as error:
                    outcomes["went wrong"] += 1
                    trace = traceback.extract_tb(error.__traceback__)[1:]
                    frames = " ".join(f"{Path(one.filename).name}:{one.lineno}" for one in trace)
                    wrong.setdefault(f"{type(error).__name__}: {error}: {frames}", body)
                finally:
                    signal.alarm(0)
            cases.close()  # type: ignore[attr-defined]
    finally:
        signal.signal(signal.SIGALRM, before)
        if kept is None:
            os.environ.pop("FOURRATES_CACHE", None)
        else:
            os.environ["FOURRATES_CACHE"] = kept
    return outcomes, wrong


def main() -> int:
    import resource  # not on every system

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    asked = parser.parse_args()
    counts, status = {}, 0
    for kind in asked.only or KINDS:
        began = time.perf_counter()
        outcomes, wrong = fuzz(kind, asked.count, asked.seed)
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        counts[kind] = dict(outcomes) | {
            "megabytes in all": megabytes,
            "seconds": round(time.perf_counter() - began, 1),
        }
        print(f"{kind}: {counts[kind]}", flush=True)
        for what, body in wrong.items():
            print(f"  {what}\n    {body[:4000].hex()}")
        status |= bool(wrong) or megabytes > MEGABYTES
    if asked.out:
        asked.out.write_text(json.dumps(counts, indent=2) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())

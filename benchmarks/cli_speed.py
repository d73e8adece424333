"""The command line against pyarrow and against its own promises, as whole processes.

Every ratio is of two times taken in this run, in turns. Python compiles a module when it is first imported and keeps
the result; pip has done so for pyarrow and all else that is installed. A source tree may never have been run, or where
nothing is kept, so its modules are compiled before the clock starts. Ends with status 1 if a mark is missed.
"""

from __future__ import annotations

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import fourrates as fr
from fourrates import io
from fourrates.watch import Watch

ROWS = 10_000_000
TURNS = 5
QUIET = "LFR(detect=1e-9)"  # no alarm interrupts what is timed
OURS = [sys.executable, "-m", "fourrates"]
COMMAND = Path(sys.executable).with_name("fourrates")  # as it is installed, without what `-m` imports

missed = 0


def report(name: str, value: float, mark: float, unit: str = "", at_most: bool = True) -> None:
    global missed
    good = value <= mark if at_most else value >= mark
    missed += not good
    promise = f"{'at most' if at_most else 'at least'} {mark:,g}{unit}"
    print(f"{name:<66} {value:10,.2f}{unit}   {promise}: {'yes' if good else 'NO'}", flush=True)


def write(folder: Path) -> None:
    random = np.random.default_rng(1)
    truth = (random.random(ROWS) < 0.1).astype(np.int64)
    pred = np.where(random.random(ROWS) < 0.9, truth, 1 - truth)
    table = pa.table({"y_true": truth, "y_pred": pred})
    pa.parquet.write_table(table, folder / "one.parquet")
    pa.csv.write_csv(table, folder / "one.csv")
    model = pa.array(random.integers(0, 1000, ROWS).astype(np.int32))
    pa.parquet.write_table(table.append_column("model", model), folder / "many.parquet")


def peak(process: subprocess.Popen[bytes]) -> int:
    """The most memory a process has had so far, in bytes; 0 where the system does not tell."""
    try:
        with open(f"/proc/{process.pid}/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def timed(command: Sequence[str | Path]) -> tuple[float, int]:
    """Seconds and the peak of memory of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, peak(process))
        time.sleep(0.002)
    if process.returncode:
        raise RuntimeError(f"{command} ended with status {process.returncode}")
    return time.perf_counter() - start, most


def in_turns(*commands: Sequence[str | Path]) -> list[tuple[float, int]]:
    """The shortest time and the highest peak of each."""
    runs = [[timed(command) for command in commands] for _ in range(TURNS)]
    return [(min(run[i][0] for run in runs), max(run[i][1] for run in runs)) for i in range(len(commands))]


def pyarrow_read(path: Path, single: bool) -> list[str]:
    """Pyarrow reading the two columns, with the faster of its two ways on this machine."""
    threads = f"use_threads={not single}"
    if path.suffix == ".parquet":
        code = f"import pyarrow.parquet as p; p.read_table({str(path)!r}, columns=['y_true', 'y_pred'], {threads})"
    else:
        code = f"import pyarrow.csv as c; c.read_csv({str(path)!r}, read_options=c.ReadOptions({threads}))"
    return [sys.executable, "-c", code]


def warm(path: Path) -> float:
    """The ratio of the two without starting processes: `detect` has more to import than pyarrow alone."""

    def ours() -> None:
        run = Watch(fr.LFR(detect=1e-9))
        for batch in io.read(path).ahead():
            run.update(batch)

    def theirs() -> None:
        if path.suffix == ".parquet":
            pa.parquet.read_table(path, columns=["y_true", "y_pred"], use_threads=False)
        else:
            pa.csv.read_csv(path, read_options=pa.csv.ReadOptions(use_threads=False))

    times = [[_seconds(ours), _seconds(theirs)] for _ in range(2 * TURNS)]
    return min(pair[0] for pair in times) / min(pair[1] for pair in times)


def _seconds(job: Callable[[], None]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def start(folder: Path) -> None:
    """What a person waits for before anything is read."""
    small = folder / "small.csv"
    small.write_text("y_true,y_pred\n" + "1,1\n0,0\n" * 10)
    imports = [sys.executable, "-c", "import numpy, pyarrow.csv"]
    pairs = [(timed([COMMAND, "detect", small])[0], timed(imports)[0]) for _ in range(4 * TURNS)]
    us, least = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"20 rows: detect {us:.0f} ms, Python importing numpy and pyarrow.csv {least:.0f} ms, medians")
    report("detect on a small file / importing numpy and pyarrow.csv", statistics.median(a / b for a, b in pairs), 1.5)


def files(folder: Path) -> None:
    for name, mark in (("one.parquet", 2.5), ("one.csv", 2.0)):
        path = folder / name
        ours = [*OURS, "detect", path, "--detector", QUIET]
        (us, most), (one, _), (two, _) = in_turns(ours, pyarrow_read(path, True), pyarrow_read(path, False))
        limit = min(one, two)
        print(f"10 million rows, {path.suffix[1:]}: detect {us:.2f} s, pyarrow alone {limit:.2f} s, whole processes")
        report(f"detect {path.suffix} / pyarrow reading the two columns", us / limit, mark)
        if name == "one.parquet":
            report("  its peak of memory", most / 1e6, 300, " MB")
        print(f"  the same within one process, nothing started or imported: {warm(path):.2f}")
    one = [*OURS, "detect", folder / "one.parquet", "--detector", QUIET]
    many = [*OURS, "detect", folder / "many.parquet", "--by", "model", "--detector", QUIET]
    (alone, _), (together, most) = in_turns(one, many)
    report("1,000 streams by --by / one stream", together / alone, 3)
    print(f"  its peak of memory {most / 1e6:.0f} MB")


def watch_speed(folder: Path) -> None:
    command = [*OURS, "watch", "-", "--detector", QUIET]
    rows = 3_000_000
    with open(folder / "one.csv", "rb") as file:
        head = file.readline()
        part = head + b"".join(file.readline() for _ in range(rows))
    empty = min(_piped(command, head + b"1,1\n") for _ in range(TURNS))
    full = min(_piped(command, part) for _ in range(TURNS))
    report("watch on a pipe at full speed, CSV, events a second", rows / (full - empty), 300_000, at_most=False)
    lines = b'{"y_true": 1, "y_pred": 1}\n{"y_true": 0, "y_pred": 0}\n' * (rows // 6)
    full = min(_piped(command, lines) for _ in range(TURNS))
    report("the same, JSON lines", rows / 3 / (full - empty), 300_000, at_most=False)


def _piped(command: Sequence[str], data: bytes) -> float:
    start = time.perf_counter()
    subprocess.run(command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def watch_latency() -> None:
    """From the moment a line is written to the moment its alarm is read, at 1,000 lines a second."""
    command = [*OURS, "watch", "-", "--no-warnings"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    process.stdin.write(b"y_true,y_pred\n" + b"1,1\n0,0\n" * 300)
    process.stdin.flush()
    time.sleep(3)
    latencies: list[float] = []
    pace = time.perf_counter()
    right = 0
    for _ in range(12_000):
        sent = time.perf_counter()
        process.stdin.write(b"1,0\n" if right >= 100 else b"1,1\n")
        right += 1
        process.stdin.flush()
        pace += 1e-3
        while time.perf_counter() < pace:
            if process.stdout.read():  # an alarm: a hundred right ones, and wrong ones until the next
                latencies.append(time.perf_counter() - sent)
                right = 0
            time.sleep(5e-5)
        if len(latencies) >= 40:
            break
    process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()
    slow = 1000 * sorted(latencies)[int(0.95 * len(latencies))]
    median = 1000 * statistics.median(latencies)
    print(f"{len(latencies)} alarms at 1,000 events a second, from line to alarm {median:.2f} ms in the median")
    report("watch, from line to alarm, 95 of 100 within", slow, 10, " ms")


def main() -> int:
    compileall.compile_dir(Path(fr.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        subprocess.run([*OURS, "--version"], stdout=subprocess.DEVNULL, check=True)
        start(Path(folder))
        files(Path(folder))
        watch_speed(Path(folder))
    watch_latency()
    print("every mark reached" if not missed else f"{missed} marks missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""kill -9 under a streaming query: the driver, a worker, and the driver between writing a micro-batch and its commit.

A child process runs the query over files that are all there, a file a micro-batch, on a driver and two executors of its
own, and is started again after each kill until the files are done. One stream in four goes wrong and comes back again
and again, so that drifts are found in most micro-batches. At the end the drifts in the sink are those of one bank, each
once, and the state in the checkpoint is that of a run without kills.

    python benchmarks/spark_kill.py [--kills 30] [--seed 0] [--add] [--small]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import drawn
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spark_events as given

import fourrates as fr

ARL = 100_000
KEYS, BATCH, SHARDS = 100, 4_000, 4
UNSTEADY, PERIOD = 4, 5  # one stream in UNSTEADY changes every PERIOD files, each at its own file
FILES = 3  # for each kill
KINDS = ("driver", "worker", "between write and commit")
ASKED = "kill-yourself"  # a file
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:CICompilerCount=1"  # a Java that is soon killed


def write(folder: Path, files: int) -> None:
    """Files of events."""
    folder.mkdir()
    draw = np.random.default_rng(1)
    for number in range(files):
        key, truth = draw.integers(0, KEYS, BATCH), draw.random(BATCH) < 0.3
        broken = (key % UNSTEADY == 0) & ((number + key // UNSTEADY) // PERIOD % 2 == 1)
        pred = truth ^ (draw.random(BATCH) < np.where(broken, 0.7, 0.1))
        columns = {"key": key, "seq": np.arange(number * BATCH, (number + 1) * BATCH)}
        labels = {"y": truth.astype(np.int32), "p": pred.astype(np.int32)}
        path = folder / f"{number:05d}.parquet"
        pq.write_table(pa.table(columns | labels), path)
        os.utime(path, (number, number))  # Spark takes files by their time, and those of one moment in any order


def child(folder: Path) -> None:
    """Run the query; where it is asked to by a file, the process kills itself after it has written a micro-batch."""
    from fourrates.engines.spark import detect, write_once

    os.environ["JDK_JAVA_OPTIONS"] = SHORT_LIVED
    spark = given.session(folder, master="local-cluster[2,1,1024]", partitions=2, memory="1g")
    source = spark.readStream.schema(given.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    found = detect(source, **given.COLUMNS, arl=ARL, shards=SHARDS)
    write = write_once(str(folder / "out"))

    def write_and_tell(frame: Any, batch: int) -> None:
        write(frame, batch)
        print(f"wrote {batch}", flush=True)
        if (folder / ASKED).exists():
            os.killpg(os.getpgid(0), signal.SIGKILL)

    query = found.writeStream.foreachBatch(write_and_tell).option("checkpointLocation", str(folder / "state"))
    query.trigger(availableNow=True).start().awaitTermination()
    print("done", flush=True)
    spark.stop()


def executors(group: int) -> list[int]:
    """The processes of the executors of a driver's group."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                b"CoarseGrainedExecutorBackend" in (path / "cmdline").read_bytes()
                and os.getpgid(int(path.name)) == group
            ):
                found.append(int(path.name))
    return found


def run(folder: Path, acts: list[str], draw: random.Random, counts: dict[str, int]) -> bool:
    """Start the query, and do one act after another to it until it dies; whether all files are done."""
    (folder / ASKED).unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", str(folder)],
        stdout=subprocess.PIPE,
        stderr=(folder / "stderr").open("a"),
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    wait, act, done = draw.randint(1, 2), "", False
    for line in process.stdout:
        done = line.startswith("done")
        wait -= line.startswith("wrote")
        if done or wait > 0 or not acts or act in ("driver", KINDS[2]):
            continue
        act, wait = acts.pop(), draw.randint(1, 2)
        if act == KINDS[2]:
            (folder / ASKED).touch()  # it dies when it has written the next one
            continue
        time.sleep(draw.random())  # somewhere in the next micro-batch
        victims = executors(process.pid)[:1]
        if act == "driver":
            os.killpg(process.pid, signal.SIGKILL)
        elif victims:
            os.kill(victims[0], signal.SIGKILL)
            counts[act] += 1
            print(f"{sum(counts.values())} kills ({act}), {line.strip()}", flush=True)
        else:
            acts.insert(0, act)
    process.wait()
    if act in ("driver", KINDS[2]) and not done:
        counts[act] += 1
        print(f"{sum(counts.values())} kills ({act})", flush=True)
    return done


def wrong(spark: Any, folder: Path) -> tuple[list[str], int]:
    """Everything that is not as it must be, and the number of changed rates there are."""
    from fourrates.engines.spark import read_bank

    bank, wanted = fr.Bank(arl=ARL), []
    for key, truth, pred in given.read(folder / "in"):
        bank.update(key, truth, pred)
        wanted += given.told(bank.findings)
    rows = spark.read.parquet(str(folder / "out")).where(given.RATES).select(*given.ROW).collect()
    found = sorted(map(tuple, rows))
    said = []
    if found != sorted(wanted):
        lost, more = set(wanted) - set(found), set(found) - set(wanted)
        said.append(f"{len(lost)} lost, {len(more)} that are none, {len(found) - len(set(found))} repeated")
    kept = read_bank(spark, str(folder / "state"))
    if kept.events != bank.events or set(kept) != set(bank):
        said.append(f"{kept.events} events of {len(kept)} streams in the state, {bank.events} of {len(bank)} in all")
    differing = [key for key in bank if key in kept and stands(kept[key]) != stands(bank[key])]
    return said + ([f"{len(differing)} streams with another state"] if differing else []), len(wanted)


def stands(stream: Any) -> str:
    """All there is to know of a stream, to the last digit."""
    detector = stream
    return repr((detector.events, detector.status, detector.evidence, dict(detector.rates), detector.confusion))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--add", action="store_true", help="the kills go to those of another seed that were kept before"
    )
    parser.add_argument("--small", action="store_true", help="three kills; nothing is kept")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return 0
    kills = 3 if options.small else options.kills
    draw = random.Random(options.seed)
    counts = dict.fromkeys(KINDS, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "in", FILES * kills)
        acts = [*KINDS] * (kills // 3)
        draw.shuffle(acts)
        done, begun = False, time.monotonic()
        while not done:
            done = run(folder, acts, draw, counts)
            if time.monotonic() - begun > 300 * (kills + 3):
                print(f"not done in time: {(folder / 'stderr').read_text()[-2000:]}")
                return 1
        spark = given.session(folder, memory="1g")
        said, drifts = wrong(spark, folder)
        spark.stop()
    done_kills = sum(counts.values())
    print(
        f"{counts}; {drifts} changed rates: " + ("; ".join(said) or "none lost, none repeated, the state as it must be")
    )
    if not options.small:
        file = drawn.RESULTS / "spark_kill.json"
        if options.add and file.exists():
            before = json.loads(file.read_text())
            counts = {kind: count + before["kills"][kind] for kind, count in counts.items()}
            drifts, said = drifts + before["drifts"], before["wrong"] + said
        drawn.keep("spark_kill", {"kills": counts, "drifts": drifts, "wrong": said})
    return 1 if said or done_kills < kills // 3 * 3 else 0


if __name__ == "__main__":
    sys.exit(main())

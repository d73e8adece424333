"""Spark, batch: time over the same job that only counts, drifts as one bank finds them, one exchange, and growth.

Both jobs read the same files, exchange by key, sort by key and place, and run a function over Arrow batches; the one of
the other job counts the events of each key in NumPy. Each timing is of a plan built for it. Ends with status 1 if a
mark is missed.

    python benchmarks/spark_batch.py [--events 50000000] [--keys 1000000] [--pairs 5] [--parts pairs drifts growth]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drawn
import numpy as np
import pyarrow as pa
import spark_events as given

import fourrates as fr

ARL = 1_000_000
ASKED = 1.3


def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Streams and events of a partition, and the most events of a stream."""
    streams = events = most = carried = 0
    last = None
    for batch in batches:
        keys = batch.column(0).to_numpy()
        ends = np.flatnonzero(np.diff(keys)) + 1
        lengths = np.diff(np.r_[0, ends, keys.size])
        lengths[0] += carried if last == keys[0] else 0
        streams += lengths.size - (last == keys[0])
        most, events = max(most, int(lengths.max())), events + keys.size
        last, carried = keys[-1], int(lengths[-1])
    yield pa.RecordBatch.from_pydict({"streams": [int(streams)], "events": [events], "most": [most]})


def counting(frame: Any) -> Any:
    """The job that only counts."""
    sorted_events = frame.repartition("key").sortWithinPartitions("key", "seq")
    return sorted_events.mapInArrow(count, "streams long, events long, most long")


def detecting(frame: Any) -> Any:
    """The job that finds drifts."""
    from fourrates.engines.spark import detect

    return detect(frame, **given.COLUMNS, arl=ARL)


JOBS = (counting, detecting)


def seconds(spark: Any, folder: Path, job: Any) -> float:
    """One run of a job, from its plan on."""
    begun = time.perf_counter()
    job(spark.read.schema(given.SCHEMA).parquet(str(folder))).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def plan(frame: Any) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()


def same_drifts(spark: Any, folder: Path) -> tuple[bool, int]:
    """Whether the drifts are those of one bank that takes the events in their order, and how many there are."""
    bank, wanted = fr.Bank(arl=ARL), []
    for key, truth, pred in given.read(folder):
        bank.update(key, truth, pred)
        wanted += given.told(bank.findings)
    found = detecting(spark.read.schema(given.SCHEMA).parquet(str(folder)))
    rows = found.where(given.RATES).select(*given.ROW).collect()
    return sorted(map(tuple, rows)) == sorted(wanted), len(wanted)


def growth(spark: Any, folder: Path, events: int) -> dict[str, list[float]]:
    """Nanoseconds an event of counting and of detecting with more and more keys; the best of three turns counts."""
    sizes = (10_000, 100_000, 1_000_000)
    folders = [written(folder / f"{events}-{keys}", events, keys) for keys in sizes]
    seconds(spark, folders[0], detecting)
    turns = np.array([[[seconds(spark, one, job) for job in JOBS] for one in folders] for _ in range(3)])
    costs = 1e9 * turns.min(axis=0) / events
    return {str(keys): cost for keys, cost in zip(sizes, costs.tolist(), strict=True)}


def written(folder: Path, events: int, keys: int) -> Path:
    """A folder of events, written if it is not there."""
    if not folder.exists():
        given.write(folder, events, keys, 1_000_000)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=50_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--parts", nargs="+", default=["pairs", "drifts", "growth"], help="what to do of these")
    parser.add_argument("--data", type=Path, help="a folder for the events, used again if they are there")
    parser.add_argument("--add", action="store_true", help="the pairs go to those that were kept before")
    parser.add_argument("--small", action="store_true", help="2 million events, 40,000 keys, 2 pairs; nothing is kept")
    options = parser.parse_args()
    if options.small:
        options.events, options.keys, options.pairs = 2_000_000, 40_000, 2
    file = drawn.RESULTS / "spark_batch.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if (kept.get("events"), kept.get("keys")) != (options.events, options.keys):
        kept = {"events": options.events, "keys": options.keys}
    marks = []
    with tempfile.TemporaryDirectory() as name:
        data = options.data or Path(name)
        files = written(data / f"{options.events}-{options.keys}", options.events, options.keys)
        spark = given.session(Path(name), partitions=16)
        if "pairs" in options.parts:
            frame = spark.read.schema(given.SCHEMA).parquet(str(files))
            kept["exchanges"] = len(re.findall(r"\bExchange\b", plan(detecting(frame))))
            warm = written(data / "1000000-10000", 1_000_000, 10_000)
            for job in JOBS:
                seconds(spark, warm, job)  # the workers and the compiler are warm
            pairs = [[seconds(spark, files, job) for job in JOBS] for _ in range(options.pairs)]
            print(f"{options.events:,} events, {options.keys:,} keys; seconds of counting and of detecting:")
            print("  " + ", ".join(f"{only:.1f} {detect:.1f}" for only, detect in pairs))
            pairs = [*kept.get("pairs", []), *pairs] if options.add else pairs
            ratio = statistics.median(detect / only for only, detect in pairs)
            kept |= {"pairs": pairs, "ratio": ratio}
            marks += [ratio <= ASKED, kept["exchanges"] == 1]
            print(f"detecting / counting, median of {len(pairs)} pairs: {ratio:.2f}; asked: at most {ASKED}")
            print(f"exchanges in the plan: {kept['exchanges']}; asked: 1")
        if "drifts" in options.parts:
            few = written(data / "2000000-10000", 2_000_000, 10_000)  # 200 events a key, so that there are many drifts
            checked = [same_drifts(spark, one) for one in ([few] if options.small else [files, few])]
            kept["same"], kept["drifts"] = all(same for same, _ in checked), sum(drifts for _, drifts in checked)
            marks.append(kept["same"] and kept["drifts"] > 0)
            print(f"{kept['drifts']:,} changed rates, as one bank finds them: {'yes' if kept['same'] else 'NO'}")
        if "growth" in options.parts:
            kept["growth"] = growth(spark, data, options.events // 5)
            for keys, (only, detect) in kept["growth"].items():
                print(f"{int(keys):>9,} keys: {detect:,.0f} ns an event, of which counting takes {only:,.0f}")
        spark.stop()
    if not options.small:
        drawn.keep("spark_batch", kept)
    return 0 if all(marks) else 1


if __name__ == "__main__":
    sys.exit(main())

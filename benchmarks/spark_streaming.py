"""Spark, streaming: time of a micro-batch over the same stateful job that only counts.

Both jobs read a file of events a micro-batch, divide the keys into the same shards, keep one value for each shard in
RocksDB and rewrite it; the one of the other job holds the keys of the shard and a count for each, in NumPy. Turns
alternate; the first micro-batches of each, in which all keys are new, are left out. Ends with status 1 if the mark is
missed.

    python benchmarks/spark_streaming.py [--keys 100000] [--batch 500000] [--batches 8] [--pairs 3] [--add]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drawn
import numpy as np
import spark_events as given

ARL = 1_000_000
ASKED = 1.4
SKIPPED = 2  # micro-batches
SHARDS = 64


def count(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Add the events of each key of a shard to its count."""
    import pandas

    keys, counts = (
        (np.frombuffer(part, np.int64) for part in state.get) if state.exists else [np.empty(0, np.int64)] * 2
    )
    events = np.concatenate([frame["key"].to_numpy() for frame in frames])
    found, number = np.unique(events, return_counts=True)
    every = np.union1d(keys, found)
    total = np.zeros(every.size, np.int64)
    total[np.searchsorted(every, keys)] += counts
    total[np.searchsorted(every, found)] += number
    state.update((every.tobytes(), total.tobytes()))
    yield pandas.DataFrame({"shard": [key[0]], "events": [int(total.sum())]})


def counting(frame: Any, shards: int) -> Any:
    """The job that only counts."""
    from pyspark.sql import functions as F

    events = frame.withColumn("shard", F.pmod(F.xxhash64("key"), F.lit(shards)).cast("int"))
    schemas = "shard int, events long", "keys binary, counts binary"
    return events.groupBy("shard").applyInPandasWithState(count, *schemas, "append", "NoTimeout")


def detecting(frame: Any, shards: int) -> Any:
    """The job that finds drifts."""
    from fourrates.engines.spark import detect

    return detect(frame, **given.COLUMNS, arl=ARL, shards=shards)


def seconds(spark: Any, files: Path, folder: Path, job: Any, shards: int) -> list[float]:
    """The time of each micro-batch."""
    source = spark.readStream.schema(given.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(files))
    query = job(source, shards).writeStream.format("noop").option("checkpointLocation", str(folder))
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    return [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress if one["numInputRows"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=500_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=SHARDS)
    parser.add_argument("--add", action="store_true", help="the pairs go to those that were kept before")
    parser.add_argument(
        "--small", action="store_true", help="10,000 keys, batches of 50,000, one pair; nothing is kept"
    )
    options = parser.parse_args()
    if options.small:
        options.keys, options.batch, options.batches, options.pairs = 10_000, 50_000, 5, 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given.write(folder / "in", options.batch * options.batches, options.keys, options.batch)
        spark = given.session(folder, partitions=4)
        pairs = []
        for turn in range(options.pairs):
            times = [
                seconds(spark, folder / "in", folder / f"{job.__name__}{turn}", job, options.shards)[SKIPPED:]
                for job in (counting, detecting)
            ]
            pairs.append([statistics.median(one) for one in times])
            print("seconds a micro-batch, counting and detecting: " + " ".join(f"{one:.2f}" for one in pairs[-1]))
        spark.stop()
    file = drawn.RESULTS / "spark_streaming.json"
    if options.add and file.exists():
        pairs = [*json.loads(file.read_text())["times"], *pairs]
    ratio = statistics.median(detect / only for only, detect in pairs)
    print(f"{options.keys:,} keys, micro-batches of {options.batch:,}, {options.shards} shards")
    print(f"detecting / counting, median of {len(pairs)} pairs: {ratio:.2f}; asked: at most {ASKED}")
    if not options.small:
        asked = {name: getattr(options, name) for name in ("keys", "batch", "batches", "shards")}
        drawn.keep("spark_streaming", asked | {"times": pairs, "ratio": ratio})
    return 0 if ratio <= ASKED else 1


if __name__ == "__main__":
    sys.exit(main())

"""What the Spark benchmarks share: a session on this machine, and events in Parquet files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = {"truth": "y", "pred": "p", "by": "key", "order": "seq"}
SCHEMA = "key long, seq long, y int, p int"


def session(folder: Path, master: str = "local[2]", partitions: int = 8, memory: str = "3g") -> Any:
    """Spark on the loopback, quiet."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["PYTHONWARNINGS"] = "ignore::FutureWarning"  # PySpark's about pandas 3
    from pyspark.sql import SparkSession

    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.stateStore.providerClass": store,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    builder = SparkSession.builder.master(master).appName("fourrates")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def draw(random: np.random.Generator, first: int, size: int, keys: int, change: int) -> tuple[Any, Any, Any, Any]:
    """Key, place, truth and pred of events; one stream in forty goes wrong from event `change` on."""
    key = random.integers(0, keys, size)
    place = np.arange(first, first + size)
    truth = random.random(size, np.float32) < 0.3
    wrong = np.where((key % 40 == 0) & (place >= change), np.float32(0.7), np.float32(0.1))
    return key, place, truth, truth ^ (random.random(size, np.float32) < wrong)


def write(folder: Path, events: int, keys: int, batch: int, seed: int = 1) -> None:
    """Files of `batch` events each."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for number, first in enumerate(range(0, events, batch)):
        key, place, truth, pred = draw(random, first, min(batch, events - first), keys, events // 2)
        columns = {"key": key, "seq": place, "y": truth.astype(np.int32), "p": pred.astype(np.int32)}
        pq.write_table(pa.table(columns), folder / f"{number:05d}.parquet")


def read(folder: Path) -> Any:
    """Files in their order, as (key, truth, pred)."""
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        yield table["key"].to_numpy(), table["y"].to_numpy(), table["p"].to_numpy()


def told(findings: Any) -> list[tuple[Any, ...]]:
    """What a bank found, in the form of the result's rows; shifts are about no rate."""
    return [
        (
            keyed.key,
            keyed.finding.kind,
            keyed.finding.at,
            getattr(keyed.finding, "since", None),
            keyed.finding.started,
            change.rate,
            change.direction,
            change.statistic,
        )
        for keyed in findings
        for change in keyed.finding.changes
    ]


ROW = ["key", "kind", "at", "since", "started", "rate", "direction", "evidence"]  # the same columns of the result
RATES = "kind not in ('shift', 'rejected')"  # its rows that are of a rate

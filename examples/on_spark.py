"""On Spark: the drifts of a lake in one batch, and of two streams, predictions and late labels, as they arrive.

    pip install fourrates[spark]    # and Java 17
    python examples/on_spark.py

Three shops send predictions; what was true of them is known up to ten minutes later. Halfway the model of Oslo begins
to miss positives.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fourrates.engines import spark as engine

SIZE = 12_000
os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def start() -> Any:
    """Spark on this machine, its state in RocksDB."""
    from pyspark.sql import SparkSession

    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.streaming.stateStore.providerClass", store).getOrCreate()


def write(folder: Path) -> None:
    """A lake: predictions, and labels under the same ids, which come in another order."""
    random = np.random.default_rng(7)
    shop = random.choice(["Lyon", "Oslo", "Rome"], SIZE)
    truth = random.random(SIZE) < 0.3
    broken = (shop == "Oslo") & (np.arange(SIZE) > SIZE // 2) & truth
    pred = truth ^ (random.random(SIZE) < np.where(broken, 0.7, 0.1))
    second = np.arange(SIZE) * 1_000_000
    late = second + random.integers(1, 600, SIZE) * 1_000_000
    moment = pa.timestamp("us", tz="UTC")
    predictions = pa.table(
        {"id": np.arange(SIZE), "shop": shop, "time": pa.array(second, moment), "pred": pred.astype(np.int32)}
    )
    labels = pa.table({"label_id": np.arange(SIZE), "known": pa.array(late, moment), "truth": truth.astype(np.int32)})
    labels = labels.sort_by("known")
    for name, table in (("predictions", predictions), ("labels", labels)):
        (folder / name).mkdir()
        for part in range(4):
            rows = table.slice(part * SIZE // 4, SIZE // 4)
            pq.write_table(rows, folder / name / f"{part}.parquet")


def joined(predictions: Any, labels: Any) -> Any:
    """Each prediction with its label; Spark keeps either for the other as long as the watermarks allow."""
    from pyspark.sql import functions as F

    pair = F.expr("id = label_id AND known >= time AND known <= time + INTERVAL 10 MINUTES")
    return predictions.join(labels, pair).select("shop", "time", "truth", "pred")


def main() -> None:
    """Both ways."""
    session = start()
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        columns = {"truth": "truth", "pred": "pred", "by": "shop", "order": "time"}
        shown = ["shop", "time", "kind", "at", "started", "rate", "direction", "before", "after"]

        print("The lake, in one batch:")
        events = joined(*(session.read.parquet(str(folder / part)) for part in ("predictions", "labels")))
        engine.detect(events, **columns, budget="1 per week").select(*shown).show()

        print("The same as two streams:")
        predictions, labels = (
            session.readStream.schema(session.read.parquet(str(folder / part)).schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / part))
            for part in ("predictions", "labels")
        )
        events = joined(predictions.withWatermark("time", "1 minute"), labels.withWatermark("known", "1 minute"))
        # An event a second: 604,800 a week. The pairs come in the order of their labels; they are put in that of time.
        found = engine.detect(events, **columns, budget="1 per week", rate=1.0, shards=2, watermark=True)
        query = found.writeStream.foreachBatch(engine.write_once(str(folder / "drifts")))
        query = query.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True).start()
        query.awaitTermination()
        session.read.parquet(str(folder / "drifts")).select(*shown).show()
        bank = engine.read_bank(session, str(folder / "state"))
        print({key: round(bank[key].rates["tpr"].estimate, 2) for key in bank})
    session.stop()


if __name__ == "__main__":
    main()

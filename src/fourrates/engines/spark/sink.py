"""Where a streaming query writes what it found: every micro-batch once, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame


def write_once(path: str, format: str = "parquet") -> Callable[[DataFrame, int], None]:
    """What to give to ``foreachBatch``: each micro-batch goes to a folder of its own, and replaces what is there.

    Spark repeats the last micro-batch after a crash, under the same number and with the same events. Written to
    ``path/query=<id>/batch=<number>``, it replaces what the first attempt left: nothing is lost, and nothing is there
    twice. The id is that of the query's checkpoint, so that a query that begins from the start writes elsewhere.

    Parameters
    ----------
    path : str
        A folder, on any file system that Spark writes to.
    format : str
        As Spark names it.

    Examples
    --------
    >>> from fourrates.engines import spark as engine
    >>> drifts.writeStream.foreachBatch(engine.write_once("drifts")).start()  # doctest: +SKIP
    >>> session.read.parquet("drifts")  # doctest: +SKIP
    """

    def write(found: DataFrame, batch: int) -> None:
        query = found.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        found.write.mode("overwrite").format(format).save(f"{path}/query={query}/batch={batch:09d}")

    return write

"""The sink of a streaming query, which writes every micro-batch once, even after failures."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame


def write_once(path: str, format: str = "parquet") -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that writes each micro-batch to its own folder, replacing earlier attempts.

    Spark repeats the last micro-batch after a crash, with the same number and events. Written to
    ``path/query=<id>/batch=<number>``, it replaces the first attempt, so nothing is lost or duplicated. The id is that
    of the query's checkpoint, so a query that begins from the start writes elsewhere.

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

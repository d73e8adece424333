"""The streams of a streaming query, read from its checkpoint."""

from __future__ import annotations

from pyspark.sql import SparkSession

from fourrates.bank import Bank
from fourrates.engines.spark.shard import open_bank


def read_bank(session: SparkSession, checkpoint: str, batch: int | None = None) -> Bank:
    """Read the streams of a streaming query from its checkpoint, as one bank.

    Events that wait for the watermark are not in it.

    Parameters
    ----------
    session : SparkSession
        It reads the state.
    checkpoint : str
        The query's ``checkpointLocation``.
    batch : int, optional
        The state after this micro-batch; after the last if not given.

    Examples
    --------
    >>> from fourrates.engines import spark as engine
    >>> bank = engine.read_bank(session, "checkpoint")  # doctest: +SKIP
    >>> bank["Oslo"].rates["tpr"].estimate  # doctest: +SKIP
    0.39
    """
    reader = session.read.format("statestore")
    if batch is not None:
        reader = reader.option("batchId", batch)
    shards = reader.load(checkpoint).select("key.*", "value.groupState.bank").orderBy("__shard").collect()
    if not shards:
        raise ValueError(f"{checkpoint}: no shard has had an event yet")
    first, *others = [open_bank(bytes(shard["bank"])) for shard in shards]
    for bank in others:
        first.merge(bank)
    return first

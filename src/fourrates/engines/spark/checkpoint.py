"""The streams of a streaming query, read from its checkpoint."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from fourrates.bank import Bank
from fourrates.engines.spark.shard import Head, key_of, rebuilt


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
    heads, watches, logs = (_variable(session, checkpoint, batch, name) for name in ("head", "watch", "log"))
    if not heads:
        raise ValueError(f"{checkpoint}: no shard has had an event yet")
    found: Bank | None = None
    for shard, saved in sorted(heads.items()):
        head = Head.from_bytes(bytes(saved[0]))
        watch = rebuilt(head, partial(watches.get, shard), partial(logs.get, shard, ()))
        if found is None:
            found = Bank(watch.detector)  # type: ignore[arg-type]
        names, bank = watch.segments.names, watch.segments.bank
        if bank is not None:  # which begins with the first event
            found.merge(bank.renamed([key_of(str(names[number]), head.by) for number in bank]))  # type: ignore[call-overload]
    assert found is not None
    return found


def _variable(session: SparkSession, checkpoint: str, batch: int | None, name: str) -> dict[int, Any]:
    """A variable of the state store, by shard."""
    reader = session.read.format("statestore").option("stateVarName", name).option("flattenCollectionTypes", False)
    if batch is not None:
        reader = reader.option("batchId", batch)
    found = reader.load(checkpoint)
    value = "list_value" if "list_value" in found.columns else "value"
    return dict(found.select("key.__shard", value).collect())

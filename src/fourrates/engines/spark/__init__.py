"""Drifts of many keyed streams on Spark, batch and streaming: the same as :func:`fourrates.detect` finds.

:func:`detect` takes a DataFrame of events and gives one of drifts. On a streaming DataFrame it keeps a watch for each
shard of keys in Spark's state store; :func:`read_bank` reads it back from a checkpoint, and :func:`write_once` writes
what a streaming query finds, each micro-batch once.
"""

from fourrates.engines.spark.checkpoint import read_bank
from fourrates.engines.spark.engine import detect
from fourrates.engines.spark.sink import write_once

__all__ = ["detect", "read_bank", "write_once"]

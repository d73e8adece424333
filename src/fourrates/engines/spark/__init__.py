"""Drifts of many keyed streams on Spark, batch and streaming, the same as those of :func:`fourrates.detect`.

:func:`detect` turns a DataFrame of events into one of drifts. On a streaming DataFrame it keeps a watch for each shard
of keys in Spark's state store. :func:`read_bank` reads it back from a checkpoint, and :func:`write_once` writes the
findings of a streaming query, each micro-batch once.
"""

from fourrates.engines.spark.engine import detect
from fourrates.engines.spark.streaming import read_bank, write_once

__all__ = ["detect", "read_bank", "write_once"]

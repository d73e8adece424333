"""Columns of any transport to class codes, times and keys; bad rows are named.

Files, frames, HTTP, Kafka and Spark bring columns (lists, NumPy or Arrow arrays). :class:`~fourrates.events.door.Door`
checks their types before any conversion and turns them into a :class:`~fourrates.events.batch.Batch`. A row it cannot
use gets the same error message whichever way it arrived.
"""

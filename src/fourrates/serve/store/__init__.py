"""Where a server keeps everything: one small interface, SQLite or PostgreSQL behind it."""

from fourrates.serve.store.base import (
    Finding,
    Group,
    JournalRow,
    KeyRow,
    MonitorRow,
    RejectedRow,
    SourceRow,
    Store,
    StoreAway,
    StoreError,
)
from fourrates.serve.store.opening import open_store

__all__ = [
    "Finding",
    "Group",
    "JournalRow",
    "KeyRow",
    "MonitorRow",
    "RejectedRow",
    "SourceRow",
    "Store",
    "StoreAway",
    "StoreError",
    "open_store",
]

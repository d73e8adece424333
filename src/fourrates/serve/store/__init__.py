"""Where a server keeps everything: one small interface, SQLite or PostgreSQL behind it."""

from fourrates.serve.store.base import (
    Group,
    JournalRow,
    KeyRow,
    MonitorRow,
    RejectedRow,
    SourceRow,
    Store,
    StoreAway,
    StoredFinding,
    StoreError,
)
from fourrates.serve.store.opening import open_store

__all__ = [
    "Group",
    "JournalRow",
    "KeyRow",
    "MonitorRow",
    "RejectedRow",
    "SourceRow",
    "Store",
    "StoreAway",
    "StoreError",
    "StoredFinding",
    "open_store",
]

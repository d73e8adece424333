"""The store of a server, one small interface to SQLite or PostgreSQL."""

from __future__ import annotations

from fourrates.serve.settings import Settings
from fourrates.serve.store.base import Store
from fourrates.serve.store.sqlite import SQLite


def open_store(settings: Settings, *, owner: bool = True) -> Store:
    """Open the store, created if missing, as its one `owner`, who writes the journal, or only to read it."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.database is None:
        return SQLite(settings.data / "fourrates.db", owner=owner)
    from fourrates.serve.store.postgres import PostgreSQL

    return PostgreSQL(settings.database, owner=owner)

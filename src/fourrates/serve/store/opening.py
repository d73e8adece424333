"""From the settings to the store they name."""

from __future__ import annotations

from fourrates.serve.settings import Settings
from fourrates.serve.store.base import Store
from fourrates.serve.store.sqlite import SQLite


def open_store(settings: Settings, *, owner: bool = True) -> Store:
    """Open the store, made where it is not there.

    Parameters
    ----------
    settings : Settings
        Names the folder or the database.
    owner : bool
        Whether it is opened as the one process that writes the journal; a second owner is a StoreError.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.database is None:
        return SQLite(settings.data / "fourrates.db", owner=owner)
    from fourrates.serve.store.postgres import PostgreSQL

    return PostgreSQL(settings.database, owner=owner)

"""The tables, and the version of them that this release reads."""

from __future__ import annotations

VERSION = 6
KEYS = {
    "monitors": "id",
    "journal": "position",
    "keys": "hash",
    "snapshots": "monitor",
    "snapshot_parts": "monitor, generation, part",
    "findings": "sequence",
    "rejected": "id",
    "documents": "kind, name",
    "sources": "monitor, source, part",
}
"""The tables that a move copies, and the order of their rows."""


def tables(dialect: str) -> list[str]:
    postgresql = dialect == "postgresql"
    blob, real, whole = ("BYTEA", "DOUBLE PRECISION", "BIGINT") if postgresql else ("BLOB", "REAL", "INTEGER")
    serial = "BIGSERIAL PRIMARY KEY" if postgresql else "INTEGER PRIMARY KEY AUTOINCREMENT"
    rowless = "" if postgresql else " WITHOUT ROWID"
    statements = [
        f"CREATE TABLE version (number {whole} NOT NULL)",
        f"INSERT INTO version (number) VALUES ({VERSION})",
        f"CREATE TABLE counters (name TEXT PRIMARY KEY, number {whole} NOT NULL)",
        "INSERT INTO counters (name, number) VALUES ('monitor', 0), ('owner', 0)",
        f"CREATE TABLE monitors (id {whole} PRIMARY KEY, name TEXT NOT NULL UNIQUE, uid TEXT NOT NULL, "
        f"key {blob} NOT NULL)",
        f"CREATE TABLE journal (position {whole} PRIMARY KEY, monitor {whole} NOT NULL, first_event {whole} NOT NULL, "
        f"events {whole} NOT NULL, body {blob} NOT NULL)",
        "CREATE INDEX journal_by_monitor ON journal (monitor, position)",
        f"CREATE TABLE keys (hash {blob} PRIMARY KEY, digest {blob} NOT NULL, made {real} NOT NULL, "
        f"answer {blob} NOT NULL){rowless}",
        f"CREATE TABLE snapshots (monitor {whole} PRIMARY KEY, generation {whole} NOT NULL, "
        f"position {whole} NOT NULL, size {whole} NOT NULL)",
        f"CREATE TABLE snapshot_parts (monitor {whole} NOT NULL, generation {whole} NOT NULL, part {whole} NOT NULL, "
        f"body {blob} NOT NULL, PRIMARY KEY (monitor, generation, part))",
        f"CREATE TABLE findings (sequence {whole} PRIMARY KEY, id TEXT NOT NULL UNIQUE, monitor {whole} NOT NULL, "
        f"segment TEXT, kind TEXT NOT NULL, body {blob} NOT NULL, "
        f"alerted {whole} NOT NULL DEFAULT 0, examples {blob})",
        "CREATE INDEX findings_by_monitor ON findings (monitor, sequence)",
        "CREATE INDEX findings_overall ON findings (monitor, sequence) WHERE segment IS NULL",
        "CREATE INDEX findings_to_alert ON findings (sequence) WHERE alerted = 0",
        f"CREATE TABLE rejected (id {serial}, monitor {whole} NOT NULL, made {real} NOT NULL, body {blob} NOT NULL)",
        "CREATE INDEX rejected_by_monitor ON rejected (monitor, id)",
        f"CREATE TABLE documents (kind TEXT NOT NULL, name TEXT NOT NULL, body {blob} NOT NULL, "
        "PRIMARY KEY (kind, name))",
        f"CREATE TABLE sources (monitor {whole} NOT NULL, source TEXT NOT NULL, part {whole} NOT NULL, "
        f"next {whole} NOT NULL, PRIMARY KEY (monitor, source, part))",
    ]
    if postgresql:  # already compact; compression would take most of the time of an insert
        statements += [
            "ALTER TABLE journal ALTER COLUMN body SET STORAGE EXTERNAL",
            "ALTER TABLE snapshot_parts ALTER COLUMN body SET STORAGE EXTERNAL",
        ]
    return statements

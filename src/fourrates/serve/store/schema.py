"""The tables, as steps from one version to the next. A step that was released never changes; a new one is added."""

from __future__ import annotations

from collections.abc import Callable

Statements = Callable[[str], list[str]]


def _types(dialect: str) -> dict[str, str]:
    if dialect == "postgresql":
        return {"blob": "BYTEA", "real": "DOUBLE PRECISION", "whole": "BIGINT", "serial": "BIGSERIAL PRIMARY KEY"}
    return {"blob": "BLOB", "real": "REAL", "whole": "INTEGER", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"}


def _first(dialect: str) -> list[str]:
    t = _types(dialect)
    blob, real, whole = t["blob"], t["real"], t["whole"]
    rowless = " WITHOUT ROWID" if dialect == "sqlite" else ""
    statements = [
        f"CREATE TABLE IF NOT EXISTS version (number {whole} NOT NULL)",
        f"CREATE TABLE counters (name TEXT PRIMARY KEY, number {whole} NOT NULL)",
        f"CREATE TABLE monitors (id {whole} PRIMARY KEY, name TEXT NOT NULL UNIQUE, uid TEXT NOT NULL, "
        f"key {blob} NOT NULL, config {blob} NOT NULL, created {real} NOT NULL, silenced_until {real})",
        f"CREATE TABLE journal (position {whole} PRIMARY KEY, monitor {whole} NOT NULL, first_event {whole} NOT NULL, "
        f"events {whole} NOT NULL, body {blob} NOT NULL)",
        "CREATE INDEX journal_by_monitor ON journal (monitor, position)",
        f"CREATE TABLE keys (hash {blob} PRIMARY KEY, digest {blob} NOT NULL, made {real} NOT NULL, "
        f"answer {blob} NOT NULL){rowless}",
        f"CREATE TABLE snapshots (monitor {whole} PRIMARY KEY, position {whole} NOT NULL, parts {whole} NOT NULL, "
        f"size {whole} NOT NULL)",
        f"CREATE TABLE snapshot_parts (monitor {whole} NOT NULL, position {whole} NOT NULL, part {whole} NOT NULL, "
        f"body {blob} NOT NULL, PRIMARY KEY (monitor, position, part))",
        f"CREATE TABLE findings (sequence {whole} PRIMARY KEY, id TEXT NOT NULL UNIQUE, monitor {whole} NOT NULL, "
        f"kind TEXT NOT NULL, time {real} NOT NULL, body {blob} NOT NULL, acknowledged {real}, "
        f"alerted {whole} NOT NULL)",
        "CREATE INDEX findings_by_monitor ON findings (monitor, sequence)",
        "CREATE INDEX findings_to_alert ON findings (sequence) WHERE alerted = 0",
        f"CREATE TABLE examples (finding TEXT PRIMARY KEY, body {blob} NOT NULL)",
        f"CREATE TABLE rejected (id {t['serial']}, monitor {whole} NOT NULL, made {real} NOT NULL, "
        f"body {blob} NOT NULL)",
        "CREATE INDEX rejected_by_monitor ON rejected (monitor, id)",
        f"CREATE TABLE documents (kind TEXT NOT NULL, name TEXT NOT NULL, body {blob} NOT NULL, "
        "PRIMARY KEY (kind, name))",
    ]
    if dialect == "postgresql":  # compressing what is compact already takes most of the time of an insert
        statements += [
            "ALTER TABLE journal ALTER COLUMN body SET STORAGE EXTERNAL",
            "ALTER TABLE snapshot_parts ALTER COLUMN body SET STORAGE EXTERNAL",
        ]
    return statements


def _second(dialect: str) -> list[str]:
    """How far the partitions of topics were taken."""
    whole = _types(dialect)["whole"]
    return [
        f"CREATE TABLE sources (monitor {whole} NOT NULL, source TEXT NOT NULL, part {whole} NOT NULL, "
        f"next {whole} NOT NULL, PRIMARY KEY (monitor, source, part))"
    ]


MIGRATIONS: tuple[Statements, ...] = (_first, _second)

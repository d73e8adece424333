"""The monitors of a server: loaded from the store, made, changed and removed; used by the writer thread alone."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from fourrates.serve import views
from fourrates.serve.batch import Entry, decode
from fourrates.serve.columns import Plan
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError, no_monitor
from fourrates.serve.history import backwards, read_back, read_window
from fourrates.serve.monitor import WHOLE, Found, Monitor
from fourrates.serve.settings import Settings
from fourrates.serve.store import Finding, MonitorRow, Store

LOOKED_AT = 5_000  # findings among which those of the whole are looked for
WINDOWS = ("drift", "recovery", "improvement")  # findings of a new level, whose events are looked up
PART = 8 << 20  # bytes of a snapshot written in one transaction


class Live:
    """A monitor that runs.

    Attributes
    ----------
    row : MonitorRow
        What the store knows of it.
    monitor : Monitor
        Its state, up to and including the batch at `position` of the journal.
    plan : Plan
        How bodies for it are read.
    unsaved : int
        Bytes of the journal since the last snapshot.
    saved : int
        Bytes of that snapshot.
    drift : dict or None
        The latest drift of the whole.
    """

    def __init__(self, row: MonitorRow, monitor: Monitor, position: int) -> None:
        self.row, self.monitor, self.position = row, monitor, position
        self.plan = Plan(monitor.config)
        self.unsaved = self.saved = 0
        self.drifts = self.rejected = 0
        self.last_finding: dict[str, Any] | None = None
        self.drift: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    def about(self) -> dict[str, Any]:
        """What a summary tells besides the state."""
        return {
            "drifts": self.drifts,
            "last_finding": self.last_finding,
            "drift": self.drift if WHOLE in self.monitor.standing else None,
            "silenced_until": views.iso(self.row.silenced_until),
        }

    def summary(self, now: float | None = None) -> dict[str, Any]:
        """Its summary."""
        return views.summary(self.monitor, self.name, self.about(), time.time() if now is None else now)

    def detail(self) -> dict[str, Any]:
        """Its summary and its detail."""
        counts = {"rejected": self.rejected}
        return {**self.summary(), **views.detail(self.monitor, counts)}


class Registry:
    """All monitors, by name."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.lives: dict[str, Live] = {}

    def load(self) -> None:
        """Bring back every monitor: its snapshot, and what the journal has since."""
        for row in self.store.monitors():
            self.lives[row.name] = self._loaded(row)

    def _loaded(self, row: MonitorRow) -> Live:
        saved = self.store.snapshot(row.id)
        if saved is None:
            position, size = 0, 0
            monitor = Monitor(msgspec.json.decode(row.config, type=MonitorConfig), row.key, self.settings)
        else:
            position, size = saved[0], len(saved[1])
            monitor = Monitor.restore(saved[1], row.key, self.settings)
        live = Live(row, monitor, position)
        live.saved = size
        for written in self.store.journal(row.id, position):
            for entry in decode(written.body):
                monitor.apply(entry.batch)
            live.position = written.position
            live.unsaved += len(written.body)
        live.plan = Plan(monitor.config)
        live.drifts = self.store.count_findings(row.id, "drift")
        live.rejected = self.store.count_rejected(row.id)
        for finding in self.store.findings(row.id, 1):
            live.last_finding = finding_json(finding)
        if WHOLE in monitor.standing:
            of_whole = map(finding_json, self.findings_of_whole(row.id))
            live.drift = next((body for body in of_whole if body["kind"] == "drift"), None)
        return live

    def findings_of_whole(self, monitor: int, before: str | None = None) -> Iterator[Finding]:
        """Findings that are not of a segment, the newest first; among the latest of all, for segments have many."""
        for _ in range(0, LOOKED_AT, 100):
            found = self.store.findings(monitor, 100, before)
            yield from (one for one in found if finding_json(one)["segment"] is None)
            if len(found) < 100:
                return
            before = found[-1].id

    def reload(self, live: Live) -> None:
        """Bring a monitor back to what the store has, after a write that may or may not have reached it."""
        rows = {row.id: row for row in self.store.monitors()}
        if live.row.id in rows:
            self.lives[live.name] = self._loaded(rows[live.row.id])
        elif self.lives.get(live.name) is live:  # and not another one that was made under its name
            del self.lives[live.name]

    def get(self, name: str) -> Live:
        """The monitor of a name, or a 404."""
        live = self.lives.get(name)
        if live is None:
            raise no_monitor(name)
        return live

    def create(self, name: str, config: MonitorConfig) -> Live:
        """Make a monitor."""
        if len(self.lives) >= self.settings.max_monitors:
            limit = self.settings.max_monitors
            raise ApiError(409, "too_many_monitors", f"there are {limit:,} monitors already", {"limit": limit})
        key, saved = os.urandom(16), msgspec.json.encode(config)
        monitor = Monitor(config, key, self.settings)
        snapshot = monitor.snapshot()  # so that settings which change later do not change what went before
        row = self.store.add_monitor(name, uuid.uuid4().hex, key, saved, time.time(), snapshot)
        live = self.lives[name] = Live(row, monitor, self.store.position)
        live.saved = len(snapshot)
        return live

    def remove(self, name: str) -> None:
        """Forget a monitor."""
        live = self.get(name)
        self.store.remove_monitor(live.row.id)
        del self.lives[name]

    def finding(self, live: Live, found: Found, first_event: int, pending: list[Entry]) -> Finding:
        """What was found as the store keeps it, with its window; `pending` are batches that are not in it yet."""
        body = views.finding(live.monitor, live.name, live.row.uid, found)
        examples = None
        if found.kind in WINDOWS:
            stored = read_back(self.store.journal_backwards(live.row.id))
            window = read_window(live.monitor, found, chain(backwards(first_event, pending), stored))
            body["started_time"] = views.iso(window.started) if window.complete else None
            if body["confusion"] is not None and window.complete:
                body["confusion_after"] = window.confusion
                body["confusion_before"] = [
                    [max(a - b, 0) for a, b in zip(all_, after, strict=True)]
                    for all_, after in zip(body["confusion"], window.confusion, strict=True)
                ]
            examples = msgspec.json.encode({"ids": window.ids, "complete": window.complete})
        elif found.kind == "shift" and found.finding.started is not None:
            body["started_time"] = views.iso(views.time_of_event(live.monitor, found.finding.started))
        return Finding(body["id"], live.row.id, found.kind, found.time, msgspec.json.encode(body), examples)

    # Snapshots ------------------------------------------------------------------------------------------------

    def due(self) -> Live | None:
        """A monitor that should be saved."""
        limit = self.settings.snapshot_bytes
        return next((live for live in self.lives.values() if live.unsaved > max(limit, 2 * live.saved)), None)

    def save(self, live: Live) -> Iterator[None]:
        """Write a snapshot, one part at each step, so that others can write in between, or remove the monitor."""
        body, position, unsaved = memoryview(live.monitor.snapshot()), live.position, live.unsaved
        keep_from = live.monitor.events - self.settings.keep_events
        parts = -(-len(body) // PART)
        for part in range(parts):
            self.store.put_part(live.row.id, position, part, bytes(body[part * PART : (part + 1) * PART]))
            yield
            if (now := self.lives.get(live.name)) is None or now.row.id != live.row.id:
                return
        self.store.finish_snapshot(live.row.id, position, parts, len(body), keep_from)
        live.unsaved, live.saved = live.unsaved - unsaved, len(body)


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding of the store as JSON has it."""
    body: dict[str, Any] = msgspec.json.decode(finding.body)
    body["acknowledged"] = views.iso(finding.acknowledged)
    return body

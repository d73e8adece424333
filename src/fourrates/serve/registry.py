"""The monitors of a server, loaded, created, changed and removed in the writer thread alone.

A monitor that cannot be loaded is damaged. The others run, and requests for it get an error with the reason.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from fourrates.findings import Finding
from fourrates.serve import views
from fourrates.serve.batch import Entry, decode
from fourrates.serve.bodies import Plan
from fourrates.serve.config import MonitorConfig
from fourrates.serve.errors import ApiError, no_monitor
from fourrates.serve.history import backwards, read_back, read_window
from fourrates.serve.monitor import Monitor
from fourrates.serve.settings import Settings
from fourrates.serve.store.base import MonitorRow, Store, StoredFinding, StoreError

log = logging.getLogger("fourrates.serve")
WINDOWS = ("drift", "recovery", "improvement")  # findings of a new level, whose events are looked up
SILENCES = "silences"  # the kind of the documents that list them, by monitor
PART = 8 << 20  # bytes of a snapshot written in one transaction


class Live:
    """A running monitor, with its state up to and including the batch at `position` of the journal."""

    def __init__(self, row: MonitorRow, monitor: Monitor, position: int) -> None:
        self.row, self.monitor, self.position = row, monitor, position
        self.plan = Plan(monitor.config)
        self.unsaved = self.saved = 0  # bytes of the journal since the last snapshot, and of that snapshot
        self.drifts = self.rejected = 0
        self.last_finding: dict[str, Any] | None = None
        self.drift: dict[str, Any] | None = None  # the latest overall
        self.silences: dict[str, float] = {}  # of segments, by name; of the monitor itself, by ""

    @property
    def name(self) -> str:
        return self.row.name

    def note(self, finding: StoredFinding) -> None:
        """Note the latest finding."""
        self.last_finding = msgspec.json.decode(finding.body)
        self.drifts += finding.kind == "drift"
        if finding.kind == "drift" and finding.segment is None:
            self.drift = self.last_finding

    def summary(self) -> dict[str, Any]:
        return {
            **views.summary(self.monitor, self.name, self.row.uid, time.time()),
            "drifts": self.drifts,
            "last_finding": self.last_finding,
            "drift": self.drift if None in self.monitor.watch.open_since else None,
            "silenced_until": views.iso(self.silences.get("")),
        }

    def detail(self) -> dict[str, Any]:
        return {**self.summary(), **views.detail(self.monitor, {"rejected": self.rejected})}


class Registry:
    """All monitors by name, running or damaged, the latter with the reason."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.lives: dict[str, Live] = {}
        self.damaged: dict[str, tuple[MonitorRow, str]] = {}
        self.stale: set[int] = set()  # monitors whose last write failed
        self.uncertain = False  # whether a change may or may not have reached the store, which calls for a refresh

    def refresh(self) -> None:
        """Have the monitors that the store has; those not known yet, and those that are stale, are loaded."""
        known = {live.row.id: live for live in self.lives.values()}
        rows, silences = self.store.monitors(), self.store.documents(SILENCES)
        for name in self.lives.keys() - {row.name for row in rows}:
            del self.lives[name]
        damaged = {}
        for row in rows:
            live = known.get(row.id)
            try:
                if live is None or row.id in self.stale:
                    live = self.lives[row.name] = self._loaded(row)
                live.silences = msgspec.json.decode(silences.get(row.uid, b"{}"), type=dict[str, float])
            except (StoreError, MemoryError):
                raise
            except Exception as error:  # whatever damaged bytes lead to
                log.exception("monitor %r is damaged and does not run", row.name)
                damaged[row.name] = row, str(error) or type(error).__name__
                self.lives.pop(row.name, None)
        self.damaged, self.stale, self.uncertain = damaged, set(), False

    def _loaded(self, row: MonitorRow) -> Live:
        """A monitor from its snapshot and the journal since."""
        position, saved = self.store.snapshot(row.id)
        monitor = Monitor.restore(saved, row.key, self.settings)
        live = Live(row, monitor, position)
        live.saved = len(saved)
        for written in self.store.journal(row.id, position):
            if written.first_event != monitor.events:
                first, events = written.first_event, monitor.events
                raise ValueError(f"its journal continues at event {first:,} instead of {events:,}")
            for entry in decode(written.body):
                monitor.apply(entry.batch)
            live.position = written.position
            live.unsaved += len(written.body)
        live.plan = Plan(monitor.config)
        live.rejected = self.store.count_rejected(row.id)
        for finding in (
            *self.store.findings(row.id, 1, overall=True, kind="drift"),
            *self.store.findings(row.id, 1),
        ):
            live.note(finding)
        live.drifts = self.store.count_findings(row.id, "drift")
        return live

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """After a change that failed, the store may have it or not."""
        try:
            yield
        except StoreError:
            self.uncertain = True
            raise

    def get(self, name: str) -> Live:
        live = self.lives.get(name)
        if live is None:
            if name in self.damaged:
                problem = f"monitor {name!r} is damaged: {self.damaged[name][1]}"
                raise ApiError(500, "damaged", problem, {"monitor": name})
            raise no_monitor(name)
        return live

    def create(self, name: str, config: MonitorConfig) -> Live:
        if name in self.damaged:
            self.get(name)
        if len(self.lives) >= self.settings.max_monitors:
            limit = self.settings.max_monitors
            raise ApiError(409, "too_many_monitors", f"there are {limit:,} monitors already", {"limit": limit})
        key = os.urandom(16)
        monitor = Monitor(config, key, self.settings)
        snapshot = monitor.snapshot()  # so that settings which change later do not change earlier rows
        with self._changing():
            row = self.store.add_monitor(name, uuid.uuid4().hex, key, snapshot)
        live = self.lives[name] = Live(row, monitor, self.store.position)
        live.saved = len(snapshot)
        return live

    def remove(self, name: str) -> None:
        row = self.damaged[name][0] if name in self.damaged else self.get(name).row
        with self._changing():
            self.store.remove_monitor(row.id)
            self.store.delete_document(SILENCES, row.uid)
        self.lives.pop(name, None)
        self.damaged.pop(name, None)

    def silence(self, live: Live, until: float | None, segment: str | None = None) -> None:
        """Silence a monitor or one of its segments until then."""
        silences = {name: time for name, time in live.silences.items() if name != (segment or "")}
        if until is not None:
            silences[segment or ""] = until
        with self._changing():
            self.store.put_document(SILENCES, live.row.uid, msgspec.json.encode(silences))
        live.silences = silences

    def finding(self, live: Live, finding: Finding, first_event: int, pending: list[Entry]) -> StoredFinding:
        """A finding as the store keeps it, with its window; `pending` are batches that are not in it yet."""
        body = views.finding(live.monitor, live.name, live.row.uid, finding)
        examples = None
        if finding.kind in WINDOWS:
            stored = read_back(self.store.journal_backwards(live.row.id))
            window = read_window(live.monitor, finding, chain(backwards(first_event, pending), stored))
            if "confusion" in body and window.complete:
                body["confusion_after"] = window.confusion
                before = np.array(body["confusion"]) - np.array(window.confusion)
                body["confusion_before"] = before.clip(0).tolist()
            examples = msgspec.json.encode({"ids": window.ids, "complete": window.complete})
        saved = msgspec.json.encode(body)
        return StoredFinding(body["id"], live.row.id, finding.kind, saved, examples, segment=finding.segment)

    # Snapshots ------------------------------------------------------------------------------------------------

    def due(self) -> Live | None:
        limit = self.settings.snapshot_bytes
        return next((live for live in self.lives.values() if live.unsaved > max(limit, 2 * live.saved)), None)

    def save(self, live: Live) -> Iterator[None]:
        """Write a snapshot, one part at each step, so that others can write in between, or remove the monitor."""
        body, position, unsaved = memoryview(live.monitor.snapshot()), live.position, live.unsaved
        keep_from = live.monitor.events - self.settings.keep_events
        generation = self.store.begin_snapshot(live.row.id)
        for part, start in enumerate(range(0, len(body), PART)):
            self.store.put_part(live.row.id, generation, part, bytes(body[start : start + PART]))
            yield
            if (now := self.lives.get(live.name)) is None or now.row.id != live.row.id:
                return
        self.store.finish_snapshot(live.row.id, generation, position, len(body), keep_from)
        live.unsaved, live.saved = live.unsaved - unsaved, len(body)

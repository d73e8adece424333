"""Turns findings into alerts and sends notifications.

Events of a monitor at about the same time share one notification. A silenced monitor sends nothing until its silence
ends, and then only alerts that still fire. The alerts of a monitor are one document in the store, written before
anything is sent, so a killed server sends the same notifications under the same ids when it restarts. Nothing else
remembers them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from fourrates.alerts import Spool, channel_of
from fourrates.disk_queue import QueueError
from fourrates.serve.alert_state import MonitorAlerts, State, Watched
from fourrates.serve.clock import Clock
from fourrates.serve.notification import NO_LINKS, Links, notification, trial_notification
from fourrates.serve.store.base import Store, StoredFinding, StoreError

log = logging.getLogger("fourrates.serve.alerts")

KIND = "alerts"  # of the documents in the store
NO_ALERTS = msgspec.json.encode(State())
FILE = "alerts.spool"  # in the folder of the server
GROUP_WAIT = 1.0  # seconds of findings about a monitor that share a notification
GROUP_INTERVAL = 60.0  # seconds between two notifications about a monitor
REPEAT = 86_400.0  # seconds until an unacknowledged alert that still fires is repeated
TICK = 5.0  # seconds between two ticks
PATIENCE = 5.0  # seconds for a test to arrive


class Alerting:
    """The alerts of a server. :meth:`tick` does everything; it may be called at any time, by one thread at a time."""

    def __init__(
        self,
        store: Store,
        channels: Channels,
        *,
        group_interval: float = GROUP_INTERVAL,
        repeat: float = REPEAT,
        links: Links = NO_LINKS,
        clock: Clock | None = None,
    ) -> None:
        self.store, self.channels, self.clock, self.links = store, channels, clock or Clock(), links
        self.group_interval, self.repeat = group_interval, repeat
        self._epoch = store.epoch  # of the store, when the last look at it began
        self._seen: dict[str, tuple[Watched, float]] = {}  # as last seen, and when something had last arrived
        self._woken = asyncio.Event()

    # Called by the server ------------------------------------------------------------------------------------

    async def run(self, watched: Callable[[], Awaitable[Sequence[Watched]]]) -> None:
        """Tick regularly, and soon after a finding, until cancelled."""
        pause = 0.0
        while True:
            try:
                await asyncio.wait_for(self._woken.wait(), pause)
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(GROUP_WAIT)
            self._woken.clear()
            try:
                await asyncio.to_thread(self.tick, self.clock.now(), await watched())
            except (StoreError, QueueError) as error:
                log.error("alerts are late: %s", error)
            except Exception:  # or one failure would end all notifications
                log.exception("a defect: alerts are late")
            pause = TICK

    def wake(self) -> None:
        """Look at new findings soon; called in the event loop."""
        self._woken.set()

    def test(self, monitor: str, addresses: Iterable[str]) -> dict[str, Any]:
        """Send a test to the channels of a monitor and return the outcome."""
        payload = trial_notification(monitor, f"test-{uuid.uuid4().hex}", self.links)
        return {"id": payload["id"], "channels": self.channels.test(addresses, payload)}

    def tick(self, now: float, watched: Sequence[Watched]) -> None:
        """Process new findings, check each monitor's rules and put due notifications into the spool."""
        if not self._seen:  # the first look
            for monitor in watched:
                self.channels.open(monitor.alerts.channels)  # waiting ones are delivered
        self._epoch, bodies = self.store.epoch, self.store.documents(KIND)
        findings = defaultdict[int, list[StoredFinding]](list)
        for finding in self.store.unalerted():
            findings[finding.monitor].append(finding)
        for monitor in watched:
            try:
                if not monitor.damaged:
                    self._look(monitor, bodies.get(monitor.uid, NO_ALERTS), findings[monitor.id], now)
            except (StoreError, QueueError):
                raise
            except Exception:  # such as a finding that cannot be read; the others are sent all the same
                log.exception("a defect: alerts of monitor %r are late", monitor.name)
        for gone in (bodies.keys() | self._seen.keys()) - {monitor.uid for monitor in watched}:
            if gone in self._seen:
                self._resolve_removed(self._seen[gone][0], bodies.get(gone, NO_ALERTS), now)
            self.store.delete_document(KIND, gone)
            self._seen.pop(gone, None)

    # One monitor ----------------------------------------------------------------------------------------------

    def _alerts(self, monitor: Watched, body: bytes, now: float) -> MonitorAlerts:
        """The alerts of a monitor as the store has them."""

        def finding_of(id: str) -> dict[str, Any] | None:
            stored = self.store.finding(monitor.id, id)
            return None if stored is None else msgspec.json.decode(stored.body, type=dict[str, Any])

        try:
            state = msgspec.json.decode(body, type=State)
        except msgspec.MsgspecError as error:
            log.error("the alerts of monitor %r cannot be read (%s); they are reset", monitor.name, error)
            state = State()
        return MonitorAlerts(monitor, state, now, finding_of)

    def _resolve_removed(self, monitor: Watched, body: bytes, now: float) -> None:
        """Resolve the alerts of a removed monitor; otherwise those notified would wait forever."""
        alerts = self._alerts(monitor, body, now)
        alerts.end_all("the monitor was removed")
        if payload := self._due(alerts):
            self.channels.put(monitor.alerts.channels, payload)

    def _due(self, alerts: MonitorAlerts) -> dict[str, Any] | None:
        """A notification of the alerts to send, if there are any; from now on they count as sent."""
        if not (items := alerts.due()):
            return None
        payload = notification(alerts.monitor.name, alerts.monitor.uid, items, self.links)
        alerts.mark_sent(items)
        return payload

    def _put(self, uid: str, state: State, findings: Sequence[StoredFinding] = ()) -> None:
        """Write the alerts of a monitor with these findings, unless another server has written meanwhile."""
        with self.store.in_epoch(self._epoch):
            self.store.put_document(KIND, uid, msgspec.json.encode(state), [finding.id for finding in findings])

    def _look(self, monitor: Watched, body: bytes, findings: list[StoredFinding], now: float) -> None:
        alerts = self._alerts(monitor, body, now)
        state = alerts.state
        for finding in findings:
            alerts.note(finding)
        alerts.end_closed()
        alerts.check_rules(self._last_arrival(alerts))
        alerts.expire(self.repeat)
        if now - state.notified >= self.group_interval and (payload := self._due(alerts)):
            state.outbox.append(payload)
        if findings or msgspec.json.encode(state) != body:
            self._put(monitor.uid, state, findings)
        if state.outbox:
            for payload in state.outbox:
                self.channels.put(monitor.alerts.channels, payload)
            state.outbox = []
            self._put(monitor.uid, state)

    def _last_arrival(self, alerts: MonitorAlerts) -> float:
        """When something last arrived, as far as this process knows.

        A server that was down does not blame the stream, but a stream silent before then stays so until something
        arrives.
        """
        monitor, now = alerts.monitor, alerts.now
        known = self._seen.get(monitor.uid)
        if known is not None and known[0].position == monitor.position:
            arrived = min(known[1], now)  # the clock may have been ahead
        else:
            was_silent = known is None and alerts.firing("silent") is not None
            arrived = -math.inf if was_silent else now
        self._seen[monitor.uid] = monitor, arrived
        return arrived


def check_channels(addresses: Iterable[str]) -> None:
    for address in addresses:
        channel_of(address)


class Channels:
    """The channels of a server; alerts for any of them wait in one file, in the folder of the server."""

    def __init__(self, data: str | os.PathLike[str]) -> None:
        self.path = Path(data) / FILE
        self._names: dict[str, str] = {}  # of the channels, by address
        self._lock = threading.Lock()

    @cached_property
    def spool(self) -> Spool:
        return Spool(self.path, [], on_message=lambda text: log.warning("%s", text))

    def open(self, addresses: Iterable[str]) -> list[str]:
        """The names of these channels; delivery of alerts that wait for them begins."""
        with self._lock:
            for address in addresses:
                if address not in self._names:
                    try:
                        channel = channel_of(address)
                    except ValueError as error:
                        log.error("no alerts to a channel: %s", error)
                        continue
                    self.spool.add(channel)
                    self._names[address] = channel.name
            return list(dict.fromkeys(self._names[address] for address in addresses if address in self._names))

    def put(self, addresses: Iterable[str], payload: Mapping[str, Any]) -> list[str]:
        """Put an alert on the disk for each of these addresses, once if it is there already; returns the channels."""
        if names := self.open(addresses):
            self.spool.put(payload, names)
        return names

    def test(self, addresses: Iterable[str], payload: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Queue an alert, wait a moment, and report each channel's outcome."""
        names, end = self.put(addresses, payload), time.monotonic() + PATIENCE
        while (waiting := self._waiting(names, payload["id"])) and time.monotonic() < end:
            time.sleep(0.05)
        return [{"channel": name, "delivered": name not in waiting, "problem": waiting.get(name)} for name in names]

    def _waiting(self, names: Sequence[str], id: str) -> dict[str, str | None]:
        """The channels that have not delivered an alert, with the problem after a failed attempt."""
        entries = self.spool.pending() if names else []
        return {entry.channel: entry.problem or None for entry in entries if entry.id == id}

    def close(self, deadline: float = 5.0) -> None:
        """Deliver as much as possible in this many seconds; the rest stays in the file."""
        if self._names:
            self.spool.close(deadline)

"""What is found becomes alerts: which of them fire, which are resolved, and when somebody is notified.

An alert is about one thing of one monitor: that it drifted, overall or in a segment, that the classes shifted, that it
warns, that no events come, that labels are overdue. It fires once, and is resolved once: that of a drift by the finding
that closes it, a withdrawal, a recovery or an acceptance. Segments that drifted when the overall stream did are part of
its alert, which ends with the last of them. What happens to a monitor at about the same time is sent in
one notification; a silenced monitor tells nothing until its silence ends, and then what still fires. All of this is one
document in the store for each monitor, written before anything is sent: a server that is killed sends the same
notifications, under the same ids, when it is back.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fourrates.alerts.payload import stable_id
from fourrates.disk_queue import QueueError
from fourrates.serve.channels import Channels
from fourrates.serve.clock import Clock
from fourrates.serve.columns import segment_name
from fourrates.serve.config import AlertsConfig, seconds
from fourrates.serve.notification import NO_LINKS, AlertItem, Links, notification, trial_notification
from fourrates.serve.store import Store, StoredFinding, StoreError

log = logging.getLogger("fourrates.serve.alerts")

KIND = "alerts"  # of the documents in the store
GROUP_WAIT = 1.0  # seconds in which what happens to a monitor is sent together
GROUP_INTERVAL = 60.0  # seconds between two notifications about a monitor
REPEAT = 86_400.0  # seconds after which what still fires, and nobody has acknowledged, is sent again
STANDS = 86_400.0  # seconds after which a shift of the classes is the new normal
TICK = 5.0  # seconds between two looks
MOST = 1_000  # alerts kept of one monitor
TOLD = 20  # open drifts of a monitor whose rates are put into words


@dataclass(frozen=True, slots=True)
class Watched:
    """A monitor as the alerts see it.

    Attributes
    ----------
    id, uid, name
        Its number and its name in the store, and its name for people.
    alerts : AlertsConfig
        Where its alerts go, and which.
    mix : str
        What a shift of the classes is.
    silenced_until : float or None
        In seconds since 1970.
    silences : mapping from segments to moments
        Until when alerts of a segment are silenced, by its name.
    position : int
        Changes whenever events, predictions or labels arrive, and only then.
    warning : bool
        Whether it warns.
    waiting_since : float or None
        Since when the oldest prediction waits for its label.
    open : sequence or None
        The open drifts: the values of a segment by column, None for the overall stream, and its rates now in words.
        None if they are too many to tell.
    damaged : bool
        Whether it cannot be loaded: its alerts stay as they are until it can.
    """

    id: int
    uid: str
    name: str
    alerts: AlertsConfig = field(default_factory=AlertsConfig)
    mix: str = "report"
    silenced_until: float | None = None
    silences: Mapping[str, float] = field(default_factory=dict)
    position: int = 0
    warning: bool = False
    waiting_since: float | None = None
    open: Sequence[tuple[dict[str, Any] | None, str]] | None = None
    damaged: bool = False


class Active(msgspec.Struct, kw_only=True):
    """An alert that fires, or that was resolved and is not sent yet."""

    kind: str
    segment: dict[str, Any] | None = None
    starts: float
    ends: float | None = None
    changed: float  # when it last began to fire, or was resolved
    notified: float | None = None  # when it was last sent that it fires
    pending: bool = True  # whether the last change is still to be sent
    finding: str | None = None
    findings: list[str] = []  # that are still to be sent, the latest among them
    text: str
    acknowledged: bool = False
    repeats: int = 0
    time: str = ""  # of the drift: when it was found, and since when
    started: str = ""
    part: bool = False  # whether the alert of the overall stream speaks for it
    over: bool = False  # whether it is over but for its parts


class State(msgspec.Struct, kw_only=True):
    """All alerts of a monitor, by fingerprint; the latest findings; when it was last notified; what is to be sent."""

    active: dict[str, Active] = {}
    seen: list[str] = []
    notified: float = 0.0
    outbox: list[dict[str, Any]] = []


class Alerting:
    """The alerts of a server. :meth:`tick` does everything; it may be called at any time, from one thread at a time.

    Parameters
    ----------
    store : Store
        Holds the findings, and the documents.
    channels : Channels
        Where alerts go.
    group_wait, group_interval, repeat, stands : float
        Seconds: what is sent together, how often at most, and how often again.
    links : Links
        What alerts link to.
    clock : Clock, optional
        The time of day.
    """

    def __init__(
        self,
        store: Store,
        channels: Channels,
        *,
        group_wait: float = GROUP_WAIT,
        group_interval: float = GROUP_INTERVAL,
        repeat: float = REPEAT,
        stands: float = STANDS,
        links: Links = NO_LINKS,
        clock: Clock | None = None,
    ) -> None:
        self.store, self.channels, self.clock, self.links = store, channels, clock or Clock(), links
        self.group_wait, self.group_interval, self.repeat, self.stands = group_wait, group_interval, repeat, stands
        self._lock = threading.Lock()
        self._states: dict[str, State] | None = None
        self._epoch = store.epoch  # of the store, when they were loaded
        self._watched: dict[str, Watched] = {}  # as they were at the last look
        self._arrivals: dict[str, tuple[int, float]] = {}  # position, and when it was first seen
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    # What the server calls ------------------------------------------------------------------------------------

    async def run(self, watched: Callable[[], Awaitable[Sequence[Watched]]]) -> None:
        """Look at everything now and then, and soon after something was found; until cancelled."""
        self._loop = asyncio.get_running_loop()
        pause = 0.0
        while True:
            try:
                await asyncio.wait_for(self._woken.wait(), pause)
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(self.group_wait)
            self._woken.clear()
            try:
                await asyncio.to_thread(self.tick, self.clock.now(), await watched())
            except (StoreError, QueueError) as error:
                log.error("alerts are late: %s", error)
            except Exception:  # the next look may go well, and nobody is notified without one
                log.exception("a defect: alerts are late")
            pause = TICK

    def on_findings(self) -> None:
        """Something was found, and is in the store; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    def acknowledge(self, uid: str, finding: str, now: float) -> None:
        """Somebody has seen a drift: it is not repeated. If that makes it the new normal, an acceptance is found."""
        with self._lock:
            state = self._all().get(uid)
            if state is None:
                return
            for active in state.active.values():
                if active.finding == finding and active.ends is None:
                    active.acknowledged = True
            self._put(uid, state)

    def test(self, monitor: str, addresses: Iterable[str], patience: float = 5.0) -> dict[str, Any]:
        """Send a test to the channels of a monitor, and tell what became of it."""
        payload = trial_notification(monitor, f"test-{uuid.uuid4().hex}", self.links)
        return {"id": payload["id"], "channels": self.channels.test(addresses, payload, patience)}

    def tick(self, now: float, watched: Sequence[Watched]) -> None:
        """Take what was found, check the rules of each monitor, and put what is to be sent into the spool."""
        with self._lock:
            try:
                self._tick(now, watched)
            except BaseException:
                self._states = None  # what the store has is what holds
                raise

    def _tick(self, now: float, watched: Sequence[Watched]) -> None:
        if self._states is None:
            for monitor in watched:
                self.channels.open(monitor.alerts.channels)  # what waited for them is delivered
        states = self._all()
        found: dict[int, list[StoredFinding]] = {}
        for finding in self.store.unalerted():
            found.setdefault(finding.monitor, []).append(finding)
        for monitor in watched:
            findings = found.pop(monitor.id, [])
            try:
                if not monitor.damaged:
                    self._look(monitor, states.setdefault(monitor.uid, State()), findings, now)
            except (StoreError, QueueError):
                raise
            except Exception:  # such as a finding that cannot be read; the others are sent all the same
                log.exception("a defect: alerts of monitor %r are late", monitor.name)
                self._states = None
        for gone in states.keys() - {monitor.uid for monitor in watched}:
            if gone in self._watched:
                self._resolve_removed(self._watched[gone], states[gone], now)
            del states[gone]
            self._arrivals.pop(gone, None)
            self.store.delete_document(KIND, gone)
        self._watched = {monitor.uid: monitor for monitor in watched}
        rest = [finding.id for findings in found.values() for finding in findings]
        if rest:  # of monitors that were removed meanwhile
            self.store.mark_alerted(rest)

    def _resolve_removed(self, monitor: Watched, state: State, now: float) -> None:
        """Resolve what fires of a monitor that is there no more: whoever was notified would wait for it forever."""
        for fingerprint, active in list(state.active.items()):
            if active.notified is None:
                del state.active[fingerprint]
            else:
                _end(active, now, "the monitor was removed")
                active.finding = None
        if items := self._items(monitor, state, now):
            self.channels.put(monitor.alerts.channels, notification(monitor.name, monitor.uid, items, self.links))

    # One monitor ----------------------------------------------------------------------------------------------

    def _all(self) -> dict[str, State]:
        if self._states is None or self._epoch != self.store.epoch:
            self._states, self._epoch = {}, self.store.epoch
            for uid, body in self.store.documents(KIND).items():
                try:
                    self._states[uid] = msgspec.json.decode(body, type=State)
                except msgspec.MsgspecError as error:
                    log.error("the state of alerts of %s cannot be read (%s); it is reset", uid, error)
        return self._states

    def _put(self, uid: str, state: State) -> None:
        """Write what is known of a monitor, unless another server has written since it was loaded."""
        with self.store.in_epoch(self._epoch):
            self.store.put_document(KIND, uid, msgspec.json.encode(state))

    def _look(self, monitor: Watched, state: State, found: list[StoredFinding], now: float) -> None:
        before = msgspec.json.encode(state)
        _follow_clock(state, now)
        fresh = [finding for finding in found if finding.id not in state.seen]
        for finding in fresh:
            self._take(monitor, state, finding, now)
        if fresh:
            state.seen = [finding.id for finding in found]
        self._end_what_is_over(monitor, state, now)
        self._check_rules(monitor, state, now)
        self._expire(state, now)
        _forget_unnotified(monitor, state, now)
        if now - state.notified >= self.group_interval and (items := self._items(monitor, state, now)):
            state.outbox.append(notification(monitor.name, monitor.uid, items, self.links))
            state.notified = now
        if msgspec.json.encode(state) != before:
            self._put(monitor.uid, state)
        if found:
            self.store.mark_alerted([finding.id for finding in found])
        if state.outbox:
            for payload in state.outbox:
                self.channels.put(monitor.alerts.channels, payload)
            state.outbox = []
            self._put(monitor.uid, state)

    def _take(self, monitor: Watched, state: State, finding: StoredFinding, now: float) -> None:
        """What a finding means for the alert it is about."""
        body = msgspec.json.decode(finding.body)
        segment, text = body.get("segment"), str(body.get("text", ""))
        fingerprint = _fingerprint(monitor, "drift", segment)
        active = state.active.get(fingerprint)
        if body["closes"] and active is not None and active.ends is None:
            self._close(monitor, state, fingerprint, now, finding, text)
        if finding.kind == "drift" or (finding.kind == "shift" and monitor.mix == "alarm"):
            seen = finding.acknowledged is not None  # before it came here
            fired = _fire(monitor, state, finding.kind, now, text, segment=segment, finding=finding.id, seen=seen)
            fired.time, fired.started = body.get("time") or "", body.get("started_time") or ""
            if finding.kind == "drift":
                _join_incident(state, fired, state.active.get(_fingerprint(monitor, "drift", None)))

    def _close(
        self, monitor: Watched, state: State, fingerprint: str, now: float, finding: StoredFinding, text: str
    ) -> None:
        """End an alert by the finding that closed its drift; that of the overall stream with the last of its parts."""
        active = state.active[fingerprint]
        if active.part:
            self._drop_part(monitor, state, fingerprint, finding.id)
        elif active.segment is None and _parts(state):
            active.over = active.pending = True
            active.changed, active.text, active.finding = now, text, finding.id
            active.findings = [*active.findings, finding.id][-MOST:]
        elif finding.kind == "acceptance" and active.notified is None:  # whoever accepted it knows
            del state.active[fingerprint]
        else:
            _end(active, now, text, finding.id)
        self._end_incident(monitor, state, now)

    def _drop_part(self, monitor: Watched, state: State, fingerprint: str, finding: str | None = None) -> None:
        """Forget a part whose drift is closed; the alert it is part of names the findings."""
        part = state.active.pop(fingerprint)
        if overall := state.active.get(_fingerprint(monitor, "drift", None)):
            overall.findings = [*overall.findings, *part.findings, *([finding] if finding else ())][-MOST:]

    def _end_incident(self, monitor: Watched, state: State, now: float) -> None:
        """End the alert of the overall stream if it was over but for its parts, and they are over too."""
        overall = state.active.get(_fingerprint(monitor, "drift", None))
        if overall is not None and overall.over and overall.ends is None and not _parts(state):
            _end(overall, now)

    def _end_what_is_over(self, monitor: Watched, state: State, now: float) -> None:
        """Resolve drifts that are not open though no finding closed them.

        New settings have reset the monitor, or they came before normal was known. One that was taken just now may be
        later than what is known of the monitor.
        """
        firing = {
            fingerprint: active
            for fingerprint, active in state.active.items()
            if active.kind == "drift" and active.ends is None and active.changed < now and not active.over
        }
        if not firing or monitor.open is None:
            return
        opened = {_fingerprint(monitor, "drift", segment) for segment, _ in monitor.open}
        for fingerprint in sorted(firing.keys() - opened, key=lambda one: not firing[one].part):
            active = firing[fingerprint]
            if active.part:
                self._drop_part(monitor, state, fingerprint)
            elif active.segment is None and _parts(state):
                active.over = True
            else:
                _end(active, now)
        self._end_incident(monitor, state, now)

    def _check_rules(self, monitor: Watched, state: State, now: float) -> None:
        """Alerts that are about how things stand, not about what was found."""
        rules = monitor.alerts
        arrived = self._last_arrival(monitor, state, now)
        standing: list[tuple[str, bool, str]] = []
        limit = None if rules.silent_after is None else seconds(rules.silent_after, "silent_after")
        text = f"no events for more than {rules.silent_after}"
        standing.append(("silent", limit is not None and now - arrived > limit, text))
        limit = None if rules.labels_overdue is None else seconds(rules.labels_overdue, "labels_overdue")
        since = monitor.waiting_since
        text = f"labels are overdue, predictions have waited for more than {rules.labels_overdue}"
        standing.append(("labels_overdue", limit is not None and since is not None and now - since > limit, text))
        standing.append(("warning", rules.warnings and monitor.warning, "warning, a rate may be moving; no drift yet"))
        for kind, fires, text in standing:
            active = state.active.get(_fingerprint(monitor, kind, None))
            if fires and (active is None or active.ends is not None):
                _fire(monitor, state, kind, now, text)
            elif not fires and active is not None and active.ends is None:
                _end(active, now)

    def _last_arrival(self, monitor: Watched, state: State, now: float) -> float:
        """When something last arrived, as far as this process knows.

        A server that was away does not blame the stream for it; but what was silent before it was is so until
        something arrives.
        """
        known = self._arrivals.get(monitor.uid)
        if known is not None and known[0] == monitor.position:
            self._arrivals[monitor.uid] = monitor.position, min(known[1], now)  # the clock may have been ahead
            return self._arrivals[monitor.uid][1]
        silent = state.active.get(_fingerprint(monitor, "silent", None))
        was_silent = known is None and silent is not None and silent.ends is None
        arrived = -math.inf if was_silent else now
        self._arrivals[monitor.uid] = monitor.position, arrived
        return arrived

    def _expire(self, state: State, now: float) -> None:
        for active in state.active.values():
            if active.ends is None and active.kind == "shift" and now - active.changed > self.stands:
                _end(active, now)
            if active.ends is None and not active.acknowledged and not active.pending:
                last = active.notified if active.notified is not None else active.changed
                if now - last > self.repeat:
                    active.pending = True
                    active.repeats += 1
        for fingerprint in sorted(state.active, key=lambda one: state.active[one].changed)[:-MOST]:
            del state.active[fingerprint]

    def _items(self, monitor: Watched, state: State, now: float) -> list[AlertItem]:
        """The alerts to send about a monitor; from now on they count as sent."""
        items = []
        words = {_fingerprint(monitor, "drift", segment): now for segment, now in monitor.open or ()}
        order = {fingerprint: place for place, fingerprint in enumerate(words)}
        for fingerprint, active in list(state.active.items()):
            if not active.pending or active.part or _silenced(monitor, active, now):
                continue
            parts = _parts(state) if active.kind == "drift" and active.segment is None else []
            parts.sort(key=lambda part: order.get(_fingerprint(monitor, "drift", part.segment), len(order)))
            for part in parts:
                active.findings += part.findings
                part.findings = []
            body = None
            if active.finding is not None and (found := self.store.finding(monitor.id, active.finding)) is not None:
                body = msgspec.json.decode(found.body)
            items.append(
                AlertItem(
                    fingerprint=fingerprint,
                    kind=active.kind,
                    segment=active.segment,
                    starts=active.starts,
                    ends=active.ends,
                    text=active.text,
                    now=words.get(fingerprint, "") if active.ends is None else "",
                    parts=tuple(part.segment for part in parts),
                    parts_now=tuple(words.get(_fingerprint(monitor, "drift", part.segment), "") for part in parts),
                    over=active.over,
                    finding=body,
                    findings=tuple(active.findings),
                    repeats=active.repeats,
                )
            )
            active.pending, active.findings = False, []
            if active.ends is None:
                active.notified = now
            else:
                del state.active[fingerprint]
        return items


def _fingerprint(monitor: Watched, kind: str, segment: dict[str, Any] | None) -> str:
    """Names what an alert is about: the same while it fires, and when it fires again."""
    return stable_id(monitor.uid, kind, segment)[:16]


def _fire(
    monitor: Watched,
    state: State,
    kind: str,
    now: float,
    text: str,
    *,
    segment: dict[str, Any] | None = None,
    finding: str | None = None,
    seen: bool = False,
) -> Active:
    fingerprint = _fingerprint(monitor, kind, segment)
    old = state.active.get(fingerprint)
    fires = old is not None and old.ends is None
    state.active[fingerprint] = fired = Active(
        kind=kind,
        segment=segment,
        starts=old.starts if old is not None and fires else now,
        changed=now,
        notified=old.notified if old is not None else None,
        finding=finding,
        findings=[*(old.findings if old is not None else ()), *([finding] if finding else ())][-MOST:],
        text=text,
        acknowledged=seen,
        part=old is not None and fires and old.part,
    )
    return fired


def _parts(state: State) -> list[Active]:
    """The alerts of segments that the alert of the overall stream speaks for."""
    return [active for active in state.active.values() if active.part]


def _join_incident(state: State, fired: Active, overall: Active | None) -> None:
    """Have the alert of the overall stream speak for the segments that drifted when it did.

    A segment belongs to it if its own drift had started when that of the overall stream was found; and the other way
    round if nobody was notified of the segment yet.
    """
    if overall is None or overall.ends is not None or overall.over:
        return
    if fired is not overall:
        fired.part |= "" < fired.started <= overall.time and fired.notified is None
        return
    for active in state.active.values():
        together = active.kind == "drift" and active.ends is None and "" < overall.started <= active.time
        active.part |= active is not overall and together and active.notified is None


def _end(active: Active, now: float, text: str | None = None, finding: str | None = None) -> None:
    active.ends = active.changed = now
    active.pending = True
    active.text = text or active.text
    if finding is not None:
        active.finding = finding
        active.findings = [*active.findings, finding][-MOST:]


def _follow_clock(state: State, now: float) -> None:
    """A clock that was ahead has left moments that are still to come: a notification then counts as never sent."""
    if state.notified > now:
        state.notified = 0.0
    for active in state.active.values():
        active.starts, active.changed = min(active.starts, now), min(active.changed, now)
        active.notified = None if active.notified is None else min(active.notified, now)


def _silenced(monitor: Watched, active: Active, now: float) -> bool:
    """Whether the monitor is silenced, or the segment of an alert."""
    until = None if active.segment is None else monitor.silences.get(segment_name([*active.segment.values()]))
    return now < max(until or 0.0, monitor.silenced_until or 0.0)


def _forget_unnotified(monitor: Watched, state: State, now: float) -> None:
    """What began and ended during a silence is nothing to tell."""
    for fingerprint, active in list(state.active.items()):
        if active.ends is not None and active.notified is None and _silenced(monitor, active, now):
            del state.active[fingerprint]

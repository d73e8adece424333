"""The one thread that writes: requests are applied in the order of the journal, committed together, then answered.

Whoever waits for an answer gets it after the commit. What cannot be committed has not happened: the monitors it touched
are brought back to what the store has.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from fourrates.serve.batch import CONFIG, Batch, Entry, encode
from fourrates.serve.bodies import Rejected
from fourrates.serve.columns import Plan
from fourrates.serve.errors import ApiError, no_monitor, unavailable
from fourrates.serve.history import pairs_blob
from fourrates.serve.registry import Live, Registry, finding_json
from fourrates.serve.store import Finding, Group, JournalRow, KeyRow, RejectedRow, SourceRow, StoreError

log = logging.getLogger("fourrates.serve")
Result = TypeVar("Result")
IDLE = 0.25  # seconds between looks at what else there is to do
SLICE = 0.0002  # seconds between two looks at whether enough have come
KEEP_REJECTED = 1_000  # rows set aside that are kept, for each monitor
FORGET = 3_600.0  # seconds between two clearances of old keys
FAILPOINT = os.environ.get("FOURRATES_FAILPOINT", "")  # "committed:17": die after the 17th commit, before its answers


@dataclass(slots=True)
class Ingest:
    """A batch on its way, and who waits for it."""

    monitor: str
    uid: str  # the monitor of this name that the batch was read for
    batch: Batch
    rejected: list[Rejected]
    key: bytes | None
    digest: bytes
    future: asyncio.Future[bytes]
    source: SourceRow | None = None  # where to go on after it


@dataclass(slots=True)
class Ask:
    """Something to be done between two groups, with nothing else going on."""

    function: Callable[[], Any]
    future: asyncio.Future[Any]


@dataclass(slots=True)
class _Turn:
    """A group in the making."""

    group: Group = field(default_factory=Group)
    answers: list[tuple[asyncio.Future[bytes], bytes]] = field(default_factory=list)
    touched: dict[int, Live] = field(default_factory=dict)
    entries: dict[int, tuple[int, list[Entry]]] = field(default_factory=dict)  # of each monitor, from which event on
    keys: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)
    findings: list[tuple[Live, Finding]] = field(default_factory=list)


Published = Callable[[list[str], list[dict[str, Any]]], None]


class Writer:
    """The writer thread.

    Parameters
    ----------
    registry : Registry
        The monitors.
    published : callable
        Called in the event loop after a commit, with the names of the monitors that changed and what was found.
    """

    def __init__(self, registry: Registry, published: Published) -> None:
        self.registry, self.store, self.settings = registry, registry.store, registry.settings
        self._published = published
        self._queue: queue.SimpleQueue[Ingest | Ask | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="fourrates writer", daemon=True)
        self._saving: Iterator[None] | None = None
        self._forget_at = 0.0
        self._expected = 1  # requests in the next group
        self._broken: dict[int, Live] = {}
        self.commits = self.batches = 0
        self.on_findings: Callable[[], None] | None = None  # called after findings were committed

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin."""
        self._loop = loop
        self._thread.start()

    def stop(self) -> None:
        """Finish what was asked for, and end."""
        self._queue.put(None)
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def backlog(self) -> int:
        """Requests that wait."""
        return self._queue.qsize()

    def submit(
        self,
        live: Live,
        batch: Batch,
        rejected: list[Rejected],
        key: bytes | None = None,
        digest: bytes = b"",
        source: SourceRow | None = None,
    ) -> asyncio.Future[bytes]:
        """Hand in a batch; the answer comes when it is on disk, together with where to go on in its source."""
        assert self._loop is not None
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._queue.put(Ingest(live.name, live.row.uid, batch, rejected, key, digest, future, source))
        return future

    async def ask(self, function: Callable[[], Result]) -> Result:
        """Do something in the writer thread, where monitors stand still."""
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put(Ask(function, future))
        result: Result = await future
        return result

    # The thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        going = True
        while going:
            jobs, going = self._collect()
            turn: list[Ingest] = []
            for job in jobs:
                if isinstance(job, Ingest):
                    turn.append(job)
                    continue
                self._take(turn)
                turn = []
                self._answer_ask(job)
            self._take(turn)
            try:
                self._tidy()
            except StoreError as error:
                self._saving = None
                log.warning("not saved: %s", error)

    def _collect(self) -> tuple[list[Ingest | Ask], bool]:
        """What has come, after waiting a moment for more."""
        jobs: list[Ingest | Ask] = []
        try:
            first = self._queue.get(timeout=0 if self._saving is not None else IDLE)
        except queue.Empty:
            return jobs, True
        if first is None:
            return jobs, False
        jobs.append(first)
        if isinstance(first, Ingest):  # as many as last time will soon be here again
            until = time.monotonic() + self.settings.group_wait
            while self._queue.qsize() + 1 < self._expected and time.monotonic() < until:
                time.sleep(SLICE)
        while len(jobs) < self.settings.group_size:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, False
            jobs.append(job)
        self._expected = len(jobs)
        return jobs, True

    def _answer_ask(self, job: Ask) -> None:
        try:
            result = job.function()
        except StoreError as error:
            self._resolve([(job.future, unavailable(str(error)))])
        except Exception as error:
            if not isinstance(error, ApiError):
                log.exception("a request failed")
            self._resolve([(job.future, error)])
        else:
            self._resolve([(job.future, result)])

    def _take(self, jobs: list[Ingest]) -> None:
        """Apply, commit, answer."""
        if not jobs:
            return
        turn = _Turn()
        try:
            self._mend()
            keys = [job.key for job in jobs if job.key is not None]
            known = self.store.known_keys(keys) if keys else {}
            failed: list[tuple[asyncio.Future[Any], Any]] = []
            for job in jobs:
                try:
                    self._apply(job, turn, known)
                except ApiError as error:
                    failed.append((job.future, error))
            for number, (first, entries) in turn.entries.items():
                events = sum(entry.events for entry in entries)
                turn.group.journal.append(JournalRow(number, first, events, encode(entries)))
            if turn.group.journal:
                self.store.commit(turn.group)
        except StoreError as error:
            log.error("not written: %s", error)
            self._broken |= turn.touched
            self._resolve([(job.future, unavailable(str(error))) for job in jobs])
            return
        except Exception:
            log.exception("a defect: nothing of this group was written")
            self._broken |= turn.touched
            defect = ApiError(500, "defect", "a defect of fourrates; nothing of this request was taken")
            self._resolve([(job.future, defect) for job in jobs])
            return
        if turn.group.journal:
            self.commits += 1
            self.batches += len(turn.answers)
            _failpoint("committed", self.commits)
            for row in turn.group.journal:
                live = turn.touched[row.monitor]
                live.position = row.position
                live.unsaved += len(row.body)
        told = self._told(turn)
        self._resolve([*turn.answers, *failed], [live.name for live in turn.touched.values()], told)
        if told and self.on_findings is not None:
            self.on_findings()

    def _apply(self, job: Ingest, turn: _Turn, known: dict[bytes, tuple[bytes, bytes]]) -> None:
        if job.key is not None:
            met = known.get(job.key) or turn.keys.get(job.key)
            if met is not None:
                if met[0] != job.digest:
                    raise ApiError(
                        422,
                        "key_reused",
                        "this Idempotency-Key came with another body before",
                        {"header": "Idempotency-Key"},
                    )
                turn.answers.append((job.future, met[1]))
                return
        live = self.registry.get(job.monitor)
        if live.row.uid != job.uid:
            raise no_monitor(job.monitor)  # it was removed, and another one made
        monitor, row = live.monitor, live.row
        first = monitor.events
        try:
            outcome = monitor.apply(job.batch)
        except ValueError as error:
            code = "too_many_segments" if "segments" in str(error) else "bad_batch"
            raise ApiError(422, code, str(error)) from None
        turn.touched[row.id] = live
        begun, entries = turn.entries.setdefault(row.id, (first, []))
        entries.append(Entry(len(outcome.pairs), job.batch, pairs_blob(outcome.pairs)))
        found = [self.registry.finding(live, one, begun, entries) for one in outcome.found]
        turn.group.findings += found
        turn.findings += [(live, one) for one in found]
        for one in job.rejected:
            saved = {
                "row": one.row,
                "column": one.column,
                "code": one.code,
                "problem": one.problem,
                "values": one.values,
            }
            turn.group.rejected.append(RejectedRow(row.id, job.batch.received, _json(saved)))
        answer = msgspec.json.encode(
            {
                "accepted": outcome.accepted,
                "repeated": outcome.repeated,
                "rejected": len(job.rejected),
                "findings": [one.id for one in found],
            }
        )
        turn.answers.append((job.future, answer))
        if job.batch.kind == CONFIG:
            turn.group.configs.append((job.batch.config, row.id))
            live.plan = Plan(monitor.config)
        if job.key is not None:
            turn.keys[job.key] = (job.digest, answer)
            turn.group.keys.append(KeyRow(job.key, job.digest, job.batch.received, answer))
        if job.source is not None:
            turn.group.sources.append(job.source)

    def _told(self, turn: _Turn) -> list[dict[str, Any]]:
        """What was found, as it is told; and what summaries count of it."""
        told = []
        for live, finding in turn.findings:
            body = finding_json(finding)
            live.last_finding = body
            live.drifts += finding.kind == "drift"
            told.append(body)
        for row in turn.group.rejected:
            turn.touched[row.monitor].rejected += 1
        for number in {row.monitor for row in turn.group.rejected}:
            if turn.touched[number].rejected > 2 * KEEP_REJECTED:
                self.store.trim_rejected(number, KEEP_REJECTED)
                turn.touched[number].rejected = self.store.count_rejected(number)
        return told

    def _mend(self) -> None:
        """Bring back monitors whose last write failed."""
        for number, live in [*self._broken.items()]:
            self.registry.reload(live)
            del self._broken[number]

    def _tidy(self) -> None:
        """Save a monitor that is due, part by part; forget old keys."""
        if self._saving is None and (live := self.registry.due()) is not None and live.row.id not in self._broken:
            self._saving = self.registry.save(live)
        if self._saving is not None and next(self._saving, "done") == "done":
            self._saving = None
        now = time.time()
        if now >= self._forget_at:
            self._forget_at = now + FORGET
            self.store.forget_keys(now - self.settings.keep_keys)

    def _resolve(
        self,
        answers: list[tuple[asyncio.Future[Any], Any]],
        changed: list[str] | None = None,
        told: list[dict[str, Any]] | None = None,
    ) -> None:
        """Wake everybody up, in one call."""

        def wake() -> None:
            for future, answer in answers:
                if future.done():  # the client has gone
                    continue
                if isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
            if changed:
                self._published(changed, told or [])

        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(wake)


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except (ValueError, OverflowError):  # integers beyond 64 bits, half of a surrogate pair
        return msgspec.json.encode(repr(value).encode("utf-8", "replace").decode())


def _failpoint(name: str, count: int) -> None:
    """Die here, where the tests say so: what is on disk, and was not answered, hardly ever happens by chance."""
    where, _, number = FAILPOINT.partition(":")
    if where == name and int(number) == count:
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)

"""The one thread that writes, applying requests in journal order, committing them together, then answering.

Requests wait in the event loop while a group is being written, and a moment longer so that clients just answered can
join; then they are handed over together. Small batches of events for the same monitor become one batch of the journal.
Answers follow the commit. If a commit fails, the monitors it touched are restored from the store. So are all monitors
after another server has written to the same database, and work done before then is never committed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from fourrates.serve.batch import CONFIG, Batch, Entry, can_join, encode, joined
from fourrates.serve.bodies import Plan, Rejections, to_json
from fourrates.serve.clock import Clock
from fourrates.serve.errors import ApiError, defect, no_monitor, unavailable
from fourrates.serve.history import pairs_blob
from fourrates.serve.monitor import row_of
from fourrates.serve.registry import Live, Registry
from fourrates.serve.store.base import Group, JournalRow, KeyRow, RejectedRow, SourceRow, StoreError

log = logging.getLogger("fourrates.serve")
Result = TypeVar("Result")
IDLE = 0.25  # seconds between looks for other work
SHORTEST, LONGEST = 0.001, 0.02  # seconds to wait for the number of requests of last time
KEEP_REJECTED = 1_000  # rejected rows that are kept, for each monitor
FORGET = 3_600.0  # seconds between two clearances of old keys
AGAIN = 10.0  # seconds after which a snapshot that failed is tried again
FAILPOINT = os.environ.get("FOURRATES_FAILPOINT", "")  # "committed:17" dies after the 17th commit, before answers


@dataclass(slots=True)
class Job:
    """A batch on its way, and who waits for it."""

    live: Live  # the monitor that the batch was read for
    batch: Batch
    rejected: Rejections = field(default_factory=Rejections)
    key: bytes | None = None  # the same key with the same digest counts once
    digest: bytes = b""
    source: SourceRow | None = None  # the place to resume from after it
    answer: asyncio.Future[bytes] = field(init=False)


@dataclass(slots=True)
class Ask:
    function: Callable[[], Any]
    answer: asyncio.Future[Any]


@dataclass(slots=True)
class _Commit:
    group: Group = field(default_factory=Group)
    answers: list[Answer] = field(default_factory=list)
    touched: dict[int, Live] = field(default_factory=dict)
    entries: dict[int, tuple[int, list[Entry]]] = field(default_factory=dict)  # of each monitor, from which event on


Published = Callable[[set[str], bool], None]
Answer = tuple[asyncio.Future[Any], Any]  # who waits, and a result or an exception for them


class _Refused(Exception):
    """A monitor refuses a batch for the reason in the message, and nothing has changed."""


class Writer:
    """The writer thread.

    `published` is called in the event loop after a commit, with the names of the changed monitors and whether there are
    findings; `clock` has the time at which batches are received.
    """

    def __init__(self, registry: Registry, published: Published, clock: Clock | None = None) -> None:
        self.registry, self.store, self.settings = registry, registry.store, registry.settings
        self._published, self.clock = published, clock or Clock()
        self._waiting: list[Job | Ask] = []  # for the next group; used in the event loop alone
        self._busy, self._expected = False, 1  # whether a group is being written; requests in the next one
        self._gather = SHORTEST  # seconds to wait for them, half of the time of the last write
        self._handed_over = 0.0
        self._queue: queue.SimpleQueue[list[Job | Ask] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="fourrates writer", daemon=True)
        self._saving: Iterator[None] | None = None
        self._forget_at = self._tidy_at = 0.0
        self._epoch = self.store.epoch  # of the store, when the monitors were loaded
        self._refused: tuple[float, str] | None = None  # when a group could last not be written, and why
        self.commits = self.batches = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread.start()

    async def stop(self) -> None:
        """Finish the requests in hand, and end."""
        if self.alive:
            with suppress(ApiError):  # a store that cannot be used, and need not any more
                await self.ask(lambda: None)
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def backlog(self) -> int:
        return len(self._waiting)

    def problem(self, seconds: float) -> str | None:
        """Why the last group could not be written, if that was in the last seconds and none was written since."""
        refused = self._refused
        return refused[1] if refused is not None and time.monotonic() - refused[0] < seconds else None

    def submit(self, job: Job) -> asyncio.Future[bytes]:
        """Submit a batch; the answer follows once it is on disk with the next offset of its source."""
        assert self._loop is not None
        job.answer = self._loop.create_future()
        self._add(job)
        return job.answer

    async def ask(self, function: Callable[[], Result]) -> Result:
        """Run something in the writer thread, so that no monitor changes meanwhile."""
        assert self._loop is not None
        answer: asyncio.Future[Result] = self._loop.create_future()
        self._add(Ask(function, answer))
        return await answer

    def _add(self, job: Job | Ask) -> None:
        assert self._loop is not None
        self._waiting.append(job)
        if self._busy:
            return
        if len(self._waiting) == self._expected:  # the number of last time; others that are ready now join
            self._loop.call_soon(self._hand_over)
        elif len(self._waiting) == 1:
            self._loop.call_later(self._gather, self._hand_over)

    def _hand_over(self) -> None:
        assert self._loop is not None
        if self._busy or not self._waiting:
            return
        self._busy, self._handed_over = True, self._loop.time()
        most = self.settings.group_size
        jobs, self._waiting = self._waiting[:most], self._waiting[most:]
        self._queue.put(jobs)

    def _finish(self, done: int) -> None:
        assert self._loop is not None
        self._busy = False
        self._gather = min(max((self._loop.time() - self._handed_over) / 2, SHORTEST), LONGEST)
        self._expected = min(done + len(self._waiting), self.settings.group_size)
        if len(self._waiting) >= self._expected:
            self._hand_over()
        elif self._waiting:
            self._loop.call_later(self._gather, self._hand_over)

    # The thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                jobs = self._queue.get(timeout=0 if self._saving is not None else IDLE)
            except queue.Empty:
                jobs = []
            if jobs is None:
                return
            if jobs:
                self._do(jobs)
            if time.monotonic() < self._tidy_at:
                continue
            try:
                self._tidy()
            except StoreError as error:
                self._put_off()
                log.warning("not saved: %s; trying again in %g s", error, AGAIN)
            except Exception:  # the next batch is worth more than this snapshot
                self._put_off()
                log.exception("a defect: not saved; trying again in %g s", AGAIN)

    def _put_off(self) -> None:
        """Save later, since a snapshot takes a while and is no use on a full disk."""
        self._saving = None
        self._tidy_at = time.monotonic() + AGAIN

    def _do(self, jobs: list[Job | Ask]) -> None:
        """Process a group in order, and answer everybody in one call."""
        answers: list[Answer] = []
        changed: set[str] = set()
        found = False
        for is_ask, some in groupby(jobs, lambda job: isinstance(job, Ask)):
            if is_ask:
                answers += [self._answer(job) for job in some if isinstance(job, Ask)]
                continue
            left = [job for job in some if isinstance(job, Job)]
            while left:
                commit, left = self._take(left)
                answers += commit.answers
                changed |= {live.name for live in commit.touched.values()}
                found |= bool(commit.group.findings)
                self._count(commit)

        def wake() -> None:
            for answer, result in answers:
                if answer.done():  # nobody waits for it any more
                    continue
                if isinstance(result, BaseException):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)
            self._finish(len(jobs))
            if changed:
                self._published(changed, found)

        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(wake)

    def _answer(self, job: Ask) -> Answer:
        try:
            self._mend()
            return job.answer, job.function()
        except StoreError as error:
            return job.answer, unavailable(str(error))
        except Exception as error:
            if not isinstance(error, ApiError):
                log.exception("a request failed")
            return job.answer, error

    def _take(self, jobs: list[Job]) -> tuple[_Commit, list[Job]]:
        """Apply and commit; returns the answers, the changes on disk, and requests for the next round.

        The latter are for monitors that a defect has left half-changed, which must be reloaded first.
        """
        commit = _Commit()
        try:
            self._mend()
            left = self._apply_all(jobs, commit)
            for number, (first, entries) in commit.entries.items():
                events = sum(entry.events for entry in entries)
                commit.group.journal.append(JournalRow(number, first, events, encode(entries)))
            if commit.group.journal:
                with self.store.in_epoch(self._epoch):
                    self.store.commit(commit.group)
        except StoreError as error:
            log.error("not written: %s", error)
            self._refused = time.monotonic(), str(error)
            self.registry.stale |= commit.touched.keys()
            return _Commit(answers=[(job.answer, unavailable(str(error))) for job in jobs]), []
        except Exception:
            log.exception("a defect: nothing of this group was written")
            self.registry.stale |= commit.touched.keys()
            return _Commit(answers=[(job.answer, defect()) for job in jobs]), []
        if commit.group.journal:
            self._refused = None
            self.commits += 1
            self.batches += len(commit.answers)
            _failpoint("committed", self.commits)
            for row in commit.group.journal:
                live = commit.touched[row.monitor]
                live.position = row.position
                live.unsaved += len(row.body)
        return commit, left

    def _apply_all(self, jobs: list[Job], commit: _Commit) -> list[Job]:
        """Apply the requests run by run, refusing only those at fault; returns those for the next round."""
        keys = [job.key for job in jobs if job.key is not None]
        known = self.store.known_keys(keys) if keys else {}
        runs, left, failed = deque(_runs(jobs)), [], set()
        while runs:
            run = [job for job in runs.popleft() if not _answered(job, commit, known)]
            if not run:
                continue
            name, uid = run[0].live.name, run[0].live.row.uid
            if uid in failed:
                left += run
                continue
            try:
                self._apply(run, commit)
            except ApiError as error:
                commit.answers += [(job.answer, error) for job in run]
            except _Refused as refused:
                if len(run) > 1:  # see which of them it is
                    runs.extendleft([job] for job in reversed(run))
                    continue
                code = "too_many_segments" if "segments" in str(refused) else "bad_batch"
                commit.answers.append((run[0].answer, ApiError(422, code, str(refused))))
            except StoreError:
                raise
            except Exception:
                log.exception("a defect: a batch for monitor %r was not applied", name)
                failed.add(uid)
                self.registry.stale.add(self.registry.lives[name].row.id)
                commit.answers += [(job.answer, defect()) for job in run]
        return left

    def _apply(self, run: list[Job], commit: _Commit) -> None:
        """Apply a run as one batch; the commit has all of it, or after an exception nothing."""
        name = run[0].live.name
        live = self.registry.get(name)
        if live.row.uid != run[0].live.row.uid:  # it was removed, and another one made
            raise no_monitor(name)
        if any(job.source is not None and job.source.epoch != self._epoch for job in run):
            raise unavailable("another server has read this topic meanwhile")
        batch = joined([job.batch for job in run])
        monitor, row = live.monitor, live.row
        first = monitor.events
        commit.touched[row.id] = live
        try:
            outcome = monitor.apply(batch)
        except ValueError as error:
            raise _Refused(str(error)) from None
        begun, entries = commit.entries.get(row.id, (first, []))
        entries = [*entries, Entry(len(outcome.pairs), batch, pairs_blob(outcome.pairs))]
        stored = [self.registry.finding(live, finding, begun, entries) for finding in outcome.findings]
        commit.entries[row.id] = begun, entries
        commit.group.findings += stored
        if batch.kind == CONFIG:
            live.plan = Plan(monitor.config)
        for job in run:
            events = range(first, first + job.batch.size)  # each row is an event if there are several requests
            pairs = zip(stored, outcome.findings, strict=True)
            ids = [saved.id for saved, finding in pairs if len(run) == 1 or row_of(finding) in events]
            self._note(job, commit, row.id, outcome.repeated, ids)
            first = events.stop

    def _note(self, job: Job, commit: _Commit, monitor: int, repeated: int, findings: list[str]) -> None:
        """Add a request's answer and its other records to the group."""
        commit.group.rejected += [RejectedRow(monitor, job.batch.received, to_json(row)) for row in job.rejected]
        counts = {"accepted": job.batch.size - repeated, "repeated": repeated, "rejected": job.rejected.total}
        answer = msgspec.json.encode({**counts, "findings": findings})
        commit.answers.append((job.answer, answer))
        if job.key is not None:
            commit.group.keys[job.key] = KeyRow(job.key, job.digest, job.batch.received, answer)
        if job.source is not None:
            commit.group.sources.append(job.source)

    def _count(self, commit: _Commit) -> None:
        """Count the findings and rejected rows of a commit, for summaries."""
        for finding in commit.group.findings:
            commit.touched[finding.monitor].note(finding)
        for row in commit.group.rejected:
            commit.touched[row.monitor].rejected += 1

    def _mend(self) -> None:
        """Restore monitors whose last write failed; all of them, if another server has written meanwhile."""
        epoch = self.store.epoch
        is_new = epoch != self._epoch
        if is_new:
            self._saving = None
            self.registry.stale |= {live.row.id for live in self.registry.lives.values()}
        if is_new or self.registry.stale or self.registry.uncertain:
            self.registry.refresh()
        if is_new:
            log.warning("another server has written to this database; every monitor was loaded again")
        self._epoch = epoch

    def _tidy(self) -> None:
        """Save a due monitor, part by part; forget old keys and rejected rows."""
        self._mend()
        with self.store.in_epoch(self._epoch):
            if self._saving is None and (live := self.registry.due()) is not None:
                self._saving = self.registry.save(live)
            if self._saving is not None and next(self._saving, "done") == "done":
                self._saving = None
            for live in self.registry.lives.values():
                if live.rejected > 2 * KEEP_REJECTED:
                    self.store.trim_rejected(live.row.id, KEEP_REJECTED)
                    live.rejected = self.store.count_rejected(live.row.id)
            now = time.monotonic()
            if now >= self._forget_at:
                self._forget_at = now + FORGET
                self.store.forget_keys(self.clock.now() - self.settings.keep_keys)


def _runs(jobs: list[Job]) -> Iterator[list[Job]]:
    """Requests by monitor, in runs that are applied as one batch; a repeated key waits until the first is stored."""
    runs: dict[str, list[Job]] = {}
    keys: set[bytes] = set()
    for job in jobs:
        run = runs.setdefault(job.live.row.uid, [])
        if run and (job.key in keys or not can_join(run[-1].batch, job.batch)):
            yield run
            run = runs[job.live.row.uid] = []
        run.append(job)
        if job.key is not None:
            keys.add(job.key)
    yield from runs.values()


def _answered(job: Job, commit: _Commit, known: dict[bytes, KeyRow]) -> bool:
    """Whether a request with this key was stored before; it then gets the same answer."""
    met = None if job.key is None else known.get(job.key) or commit.group.keys.get(job.key)
    if met is None:
        return False
    answer: bytes | ApiError = met.answer
    if met.digest != job.digest:
        problem = "this Idempotency-Key had another body before"
        answer = ApiError(422, "key_reused", problem, {"header": "Idempotency-Key"})
    commit.answers.append((job.answer, answer))
    return True


def _failpoint(name: str, count: int) -> None:
    """Die here if a test asks for it, with all on disk but not answered, which chance hardly ever produces."""
    where, _, number = FAILPOINT.partition(":")
    if where == name and int(number) == count:
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)

"""Drifts in a topic, from one watch per partition that is saved with its offset and handed over at a rebalance."""

from __future__ import annotations

import os
import time as clock
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fourrates.alerts.payload import encode, finding_alert
from fourrates.detectors.base import RecordDetector
from fourrates.detectors.four_rates import FourRates
from fourrates.detectors.sampling import DRAWN
from fourrates.engines.kafka.address import Address
from fourrates.engines.kafka.outbox import Letter, Outbox, dead_letter
from fourrates.engines.kafka.reader import Chunk, Reader, RejectedMessage
from fourrates.engines.kafka.source import Source
from fourrates.engines.kafka.store import Claim, Fenced, Folder, Partition
from fourrates.events.door import By
from fourrates.events.rows import Bad
from fourrates.findings import Finding, Shift
from fourrates.io import Columns, InputError
from fourrates.plain import finding_record
from fourrates.watch import Now, Watch

SAVE = 1.0  # seconds between two savings, at least
SHARE = 0.05  # the largest fraction of time spent saving, so large states are saved less often
PATIENCE = 30.0  # seconds for the broker to confirm everything before a partition is handed over

AHEAD = 16  # chunks that are read before the first of them is reported

Record = dict[str, Any]


class Monitor:
    """Watches a topic of predictions and their labels, and produces drifts, and their ends, to another.

    Any number of monitors with the same group and state share the partitions. Events of a key must be in one partition,
    as Kafka does with keyed messages; the same key in two partitions makes two segments.

    Parameters
    ----------
    address : Address or str
        The topic, as ``kafka://broker:9092/topic?group=name&drifts=topic&dead_letter=topic``.
    detector : FourRates or LFR, optional
        The settings; ``FourRates()`` if not given.
    arl : float, optional
        Instead of a detector: ``FourRates(arl=arl)``.
    state : path, optional
        The folder of states, which all members share. Without it nothing is saved or committed.
    truth, pred, score, time, by : str, optional
        The fields; ``y_true`` and ``y_pred`` if not given. Without `by` each partition is one stream.
        ``_key`` and ``_time`` are the message's own key and time. With a `sampled` detector, events also have
        ``label_probability`` and ``other_probability``.
    version : str, optional
        The field of the model version that predicted; each has its own normal and drifts.
    threshold : float, optional
        The score from which the positive label is predicted.
    bad : {"keep", "skip", "reject"}
        A bad message or event goes to the dead-letter topic, if there is one, and to `refuse`; or is counted only; or
        ends the monitor with an :class:`~fourrates.io.InputError`. Events without a true label are always only counted.
    found, shifted : callable, optional
        Given each finding about a drift, or each class-mix shift, as the dict that ``fourrates watch`` writes.
    refuse : callable, optional
        Given the topic and partition as text, and each :class:`RejectedMessage`.
    save_every : float
        Least seconds between two savings; a large state is saved less often, to spend at most a twentieth of the time
        on it. Events since the last saving are read again after a crash.
    on_message : callable, optional
        Given sentences that a person should read.

    Attributes
    ----------
    partitions : dict from int to Partition
        The present partitions of this member.
    events, drifts, rejected, unlabelled : int
        Counts of this member since it began. Events that it read again after a partition returned count twice here.

    Notes
    -----
    A partition's offset is saved with its watch, in one write. The member that replaces a dead one reads the events
    since the last saving again and reaches the same state; repeated findings have the same ids.
    """

    def __init__(
        self,
        address: Address | str,
        detector: RecordDetector | None = None,
        *,
        arl: float | None = None,
        state: str | os.PathLike[str] | None = None,
        truth: str | None = None,
        pred: str | None = None,
        score: str | None = None,
        time: str | None = None,
        by: By = None,
        version: str | None = None,
        threshold: float | None = None,
        bad: Bad = "keep",
        found: Callable[[Record], None] | None = None,
        shifted: Callable[[Record], None] | None = None,
        refuse: Callable[[str, RejectedMessage], None] | None = None,
        save_every: float = SAVE,
        on_message: Callable[[str], None] | None = None,
    ) -> None:
        if detector is not None and arl is not None:
            raise ValueError(f"arl {arl!r} and a detector: give the detector its arl")
        self.address = Address.parse(address) if isinstance(address, str) else address
        self.detector = (FourRates() if arl is None else FourRates(arl)) if detector is None else detector.clone()
        self.partitions: dict[int, Partition] = {}
        self.events = self.drifts = self.rejected = self.unlabelled = 0
        probability, other = DRAWN if self.detector.parameters.get("sampled") else (None, None)
        columns = Columns(truth, pred, score, time, by, version=version, probability=probability, other=other)
        self._reader = Reader(self.detector.labels, columns, threshold=threshold, bad=bad)
        self._store = None if state is None else Folder(state)
        self._claims: dict[int, Claim] = {}
        self._unsaved: set[int] = set()
        self._under_way: deque[tuple[Chunk, Future[list[Finding]]]] = deque()  # read, and not yet reported
        self._found, self._shifted = found or (lambda _: None), shifted or (lambda _: None)
        self._refuse = refuse or (lambda _, __: None)
        self._on_message = on_message or (lambda _: None)
        self._save_every, self._due = save_every, clock.monotonic() + save_every
        self._worker = ThreadPoolExecutor(1, "fourrates-watch")  # processes chunks in order while others are read
        produces = self.address.drifts is not None or self.address.dead_letter is not None
        self._outbox = Outbox(self.address) if produces else None
        self._source = Source(self.address, self._reader, begin=self._begin, end=self._end, on_message=self._on_message)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Events -------------------------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Process events until `until` returns true; it is asked at least once a second."""
        while until is None or not until():
            self.step()

    def step(self, seconds: float = 1.0) -> int:
        """Take messages for this number of seconds, and save if it is time to; the number of events taken.

        While messages keep arriving, the watches process the last ones of a step during the next one, in which they
        count.
        """
        before = self.events
        try:
            for chunk in self._source.take(seconds, idle=self._settle):
                self._under_way.append((chunk, self._worker.submit(self._taken, chunk)))
                while self._under_way and (self._under_way[0][1].done() or len(self._under_way) > AHEAD):
                    self._tell()
            if clock.monotonic() >= self._due:
                self.save()
        except BaseException:  # half processed; only the saved state counts
            wait([future for _, future in self._under_way if not future.cancel()])
            for chunk, _ in self._under_way:
                self._drop(chunk.partition)
            self._under_way.clear()
            raise
        return self.events - before

    def _settle(self) -> None:
        while self._under_way:
            self._tell()

    def _taken(self, chunk: Chunk) -> list[Finding]:
        partition = self.partitions.get(chunk.partition)
        if partition is None or not len(chunk):
            return []
        try:
            return partition.watch.update(chunk.events, chunk.names)
        except ValueError as error:  # too many segments
            raise InputError(f"{self.address.topic}/{chunk.partition}: {error}") from None

    def _tell(self) -> None:
        """Report the findings of the oldest chunk once its watch has finished it; only then does it count."""
        chunk, taken = self._under_way[0]
        partition, findings = self.partitions.get(chunk.partition), taken.result()
        if partition is not None:  # otherwise it was given up, since another member has it
            for finding in findings:
                self._report(finding)
            for rejected in chunk.rejected:
                self._rejected(rejected, chunk.partition)
            partition.next = chunk.next
            self.events += len(chunk)
            self.unlabelled += chunk.unlabelled
            self._unsaved.add(chunk.partition)
        self._under_way.popleft()

    def _report(self, finding: Finding) -> None:
        stream = finding.source if finding.segment is None else finding.segment
        assert stream is not None
        if isinstance(finding, Shift):
            self._shifted(finding_record(replace(finding, segment=stream), self._reader.utc))
            return
        origin = f"{self.address.group}/{finding.source}/{finding.row}"
        record = finding_alert(finding, stream=stream, origin=origin, utc=self._reader.utc)
        if self.address.drifts is not None and self._outbox is not None:
            key = stream.encode("utf-8", "surrogateescape")
            self._outbox.put(Letter(self.address.drifts, encode(record), key, {"id": record["id"].encode()}))
        self.drifts += finding.kind == "drift"
        self._found(record)

    def _rejected(self, message: RejectedMessage, partition: int) -> None:
        self.rejected += message.events
        if self._reader.bad == "skip":
            return
        if self.address.dead_letter is not None and self._outbox is not None:
            self._outbox.put(dead_letter(self.address, partition, message))
        self._refuse(f"{self.address.topic}/{partition}", message)

    def now(self) -> Now:
        """How things are now, in the partitions of this member; a partition that has no segments is one itself."""
        self._settle()
        topic = self.address.topic
        return Now.together({f"{topic}/{number}": state.watch.now() for number, state in self.partitions.items()})

    # State --------------------------------------------------------------------------------------------------

    def _name(self, partition: int) -> str:
        return f"{self.address.group}/{self.address.topic}/{partition}"

    def _begin(self, partition: int) -> int | None:
        """Take over a partition from its previous member; returns the offset to resume from."""
        state = Partition(Watch(self.detector))
        if self._store is not None:
            try:
                claim = self._store.claim(self._name(partition))
                if claim.content is not None:
                    state = Partition.from_bytes(claim.content)
                    state.check_detector(self.detector)
            except ValueError as error:
                raise InputError(f"the state of {self._name(partition)}: {error}") from None
            self._claims[partition] = replace(claim, content=None)
        self.partitions[partition] = state
        self._reader.begin(partition, state.clock)
        return state.next

    def _end(self, partitions: list[int], lost: bool) -> None:
        """Give partitions away, saved unless another member may have them already."""
        self._settle()
        ours = [partition for partition in partitions if partition in self.partitions]
        if not lost:
            self._save(ours, PATIENCE, wait=True)
        for partition in ours:
            self._drop(partition)

    def _drop(self, partition: int) -> None:
        self.partitions.pop(partition, None)
        self._claims.pop(partition, None)
        self._unsaved.discard(partition)

    def save(self) -> bool:
        """Save changes; false if some is unsaved because the broker has not confirmed all messages."""
        self._settle()
        began = clock.monotonic()
        done = self._save(sorted(self._unsaved), self._save_every, wait=False)
        took = clock.monotonic() - began
        self._due = clock.monotonic() + max(self._save_every, took / SHARE)
        return done

    def _save(self, partitions: list[int], patience: float, wait: bool) -> bool:
        """Save partitions once the broker has all their findings, then commit their offsets."""
        if self._outbox is not None and not self._outbox.settle(patience):
            return False  # if saved now, an undelivered drift would be lost
        saved: dict[int, int] = {}
        for partition in partitions:
            state = self.partitions[partition]
            if self._store is None or not self._keep(partition, state):
                continue
            self._unsaved.discard(partition)
            if state.next is not None:
                saved[partition] = state.next
        self._source.commit(saved, wait=wait)
        return not self._unsaved & {*partitions}

    def _keep(self, partition: int, state: Partition) -> bool:
        """Save one partition; false if another member claimed it since. The group then shows who has it."""
        assert self._store is not None
        try:
            self._store.save(self._claims[partition], state.to_bytes())
            return True
        except Fenced as fenced:
            ours = None if state.next is None else self._source.commit({partition: state.next}, wait=True)
            if ours is False:
                self._on_message(f"{fenced}: another member has this partition; unsaved events are left to it")
                self._drop(partition)
            elif ours:  # a late member claimed it; our state in memory is consistent
                self._claims[partition] = replace(self._store.claim(self._name(partition)), content=None)
                with suppress(Fenced):  # claimed once more meanwhile
                    self._store.save(self._claims[partition], state.to_bytes())
                    return True
            return False  # tried again with the next saving

    def close(self) -> None:
        if self._outbox is not None:
            self._outbox.settle(PATIENCE)
        self._worker.shutdown()
        self._source.close()

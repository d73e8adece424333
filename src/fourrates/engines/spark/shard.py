"""One shard of a streaming query, a watch over some keys with the events waiting for the watermark.

Between two micro-batches the state store holds an earlier state of the watch, a log of the events since, and a head
that names both and has the events that wait. Events are much shorter than a watch, so most micro-batches write little;
when the log has grown, the watch is written again.

Every state has a fingerprint, of the settings and of all events so far, and the log leads from one to the next. Worker
processes are used again, and cache the watches they had last by their fingerprints. A cached one is brought up to date
by the log if another worker had the shard since; the saved watch is read, and checked, only if none of them is cached.

Events are Arrow tables with columns ``key0``, ``key1``, ...; ``time`` if there is an order, timestamps or integers;
``version``, if versions are known; and ``code``, a pair of labels.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from fourrates.checks import check_whole
from fourrates.detectors.base import Detector
from fourrates.engines.spark.coding import events_of, moments
from fourrates.engines.spark.events import CODE, TIME, VERSION
from fourrates.findings import Finding
from fourrates.state import MAX_STATE, check_size, pack, unpack
from fourrates.watch import Watch

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql.streaming.stateful_processor import ListState, ValueState

VERSIONED = "version="  # before the column of versions, after those of the key
LOGGED = 0.25  # the longest log since the watch was written, as a share of it
CACHED = 256 << 20  # bytes of watches that a worker process caches
CODEC = "lz4"
WRITING = pa.ipc.IpcWriteOptions(compression=CODEC, use_threads=False)  # a worker has one core
READING = pa.ipc.IpcReadOptions(use_threads=False)
NUMBERS = {"shards": 1, "size": 0, "log": 0, "wake": -1}  # of a head, and the least that each can be
SECTIONS = "fingerprint", "start", "waiting"


class ShardState(NamedTuple):
    """A shard in the state store."""

    head: ValueState
    watch: ValueState
    log: ListState


class Head(NamedTuple):
    shards: int  # how many parts the keys are divided into
    by: tuple[str, ...]  # name and type of each column of the key, and the column of versions
    fingerprint: bytes  # of the settings and of all events so far
    start: bytes = b""  # the fingerprint of the saved watch, from which the log begins
    size: int = 0  # bytes of that watch before it was compressed
    log: int = 0  # bytes of the log
    wake: int = -1  # when the watermark passes the next event that waits, in milliseconds; -1 if none waits
    waiting: bytes = b""  # the events that wait; empty if none does

    def to_bytes(self) -> bytes:
        about: dict[str, Any] = {name: getattr(self, name) for name in (*NUMBERS, "by")}
        return pack("Shard", about, **{name: getattr(self, name) for name in SECTIONS})

    @classmethod
    def from_bytes(cls, saved: bytes) -> Head:
        found = unpack(saved, "Shard")
        try:
            numbers = {name: check_whole(found.about[name], name, least) for name, least in NUMBERS.items()}
            sections = {name: bytes(found.sections[name]) for name in SECTIONS}
            return cls(by=tuple(map(str, found.about["by"])), **numbers, **sections)  # type: ignore[arg-type]
        except (KeyError, TypeError) as error:
            raise ValueError(f"the saved state of a shard does not fit itself ({error!r})") from None


cache: OrderedDict[bytes, tuple[Watch, int]] = OrderedDict()  # with the bytes that each takes, about


@dataclass
class Shard:
    watch: Watch
    head: Head
    waiting: pa.Table | None = None  # events that the watermark has not passed

    def __post_init__(self) -> None:
        self._taken: list[bytes] = []  # for the log

    @classmethod
    def begin(cls, detector: Detector, shards: int, by: Sequence[str] = ()) -> Shard:
        """A shard that has seen nothing; `by` has name and type of each column of the key."""
        settings = extended(b"", repr(sorted(detector.parameters.items())).encode())
        return cls(Watch(detector), Head(shards, tuple(by), settings))

    @classmethod
    def restore(cls, kept: ShardState, detector: Detector, shards: int, by: Sequence[str] = ()) -> Shard:
        """The shard of :meth:`save`, or one that has seen nothing; other settings are a ValueError that names them."""
        named = kept.head.get()
        if named is None:
            return cls.begin(detector, shards, by)
        head = Head.from_bytes(bytes(named[0]))
        if head.shards != shards:
            raise ValueError(
                f"the checkpoint has its keys in {head.shards} shards, not in {shards}: keep shards={head.shards}"
            )
        if head.by != tuple(by):
            saved, asked = (", ".join(columns) or "nothing" for columns in (head.by, by))
            raise ValueError(f"the checkpoint has streams by {saved}, not by {asked}: begin with a new one")
        watch = rebuilt(head, kept.watch.get, kept.log.get)
        own = watch.detector
        if type(own) is not type(detector) or own.parameters != detector.parameters:
            raise ValueError(
                f"the checkpoint is that of {own!r}, not of {detector!r}: begin with a new one, or ask for the same"
            )
        return cls(watch, head, _from_bytes(head.waiting, watch) if head.waiting else None)

    def save(self, kept: ShardState, wake: int = -1) -> None:
        """Write changes to the state store; `wake` is when the watermark passes the next waiting event."""
        waiting = b"" if wake < 0 or self.waiting is None else _to_bytes(self.waiting)
        head = self.head._replace(log=self.head.log + sum(map(len, self._taken)), wake=wake, waiting=waiting)
        spread = 0.5 + head.fingerprint[0] / 255  # so that shards are not all written in the same micro-batch
        if not head.size or head.log > LOGGED * spread * head.size:
            saved = self.watch.to_bytes()
            pressed = pa.compress(saved, codec=CODEC, asbytes=True)
            kept.watch.update((pack("ShardWatch", {"size": len(saved)}, fingerprint=head.fingerprint, watch=pressed),))
            kept.log.clear()
            head = head._replace(start=head.fingerprint, size=len(saved), log=0)
        elif self._taken:
            kept.log.appendList([(events,) for events in self._taken])
        self._taken, self.head = [], head
        kept.head.update((head.to_bytes(),))
        cache[head.fingerprint] = self.watch, head.size
        while len(cache) > 1 and sum(size for _, size in cache.values()) > CACHED:
            cache.popitem(last=False)

    def take(self, events: pa.Table) -> list[tuple[list[Any], Finding]]:
        """Take events, each stream's in the order of their times; findings with the key and the time of their event."""
        if not events.num_rows:
            return []
        by = [_times(events)] if TIME in events.column_names else []
        if VERSION not in events.column_names:  # which version serves is a question of all streams
            by.append(_segments(events)[0])
        if by:
            events = events.take(pa.array(np.lexsort(by)))
        logged = events if _is_timed(events) else events.select([name for name in events.column_names if name != TIME])
        self._taken.append(_to_bytes(logged))
        self.head = self.head._replace(fingerprint=extended(self.head.fingerprint, self._taken[-1]))
        own = [events[name] for name in _keys(events)]
        if TIME in events.column_names:
            own.append(events[TIME].cast(pa.int64()))
        found = []
        for finding in _update(self.watch, events):
            values = [column[finding.row].as_py() for column in own]
            if finding.kind == "acceptance" and finding.segment:  # a version retired, at an event of any stream
                key = key_of(finding.segment, self.head.by)
                values[: len(_keys(events))] = key if isinstance(key, tuple) else (key,)
            found.append((values, finding))
        return found

    def pass_watermark(self, events: pa.Table, watermark: int) -> tuple[list[tuple[list[Any], Finding]], pa.Table]:
        """Queue new events and process all that the watermark has passed; returns those that were late."""
        late = _times(events) <= watermark
        held = events.filter(pa.array(~late))
        if self.waiting is not None:
            held = pa.concat_tables([self.waiting, held]).combine_chunks()
        due = _times(held) <= watermark
        self.waiting = held.filter(pa.array(~due))
        return self.take(held.filter(pa.array(due))), events.filter(pa.array(late))


def rebuilt(head: Head, saved: Callable[[], Any], log: Callable[[], Any]) -> Watch:
    """The current watch of a head; `saved` and `log` read the store if the cache is not enough."""
    if head.fingerprint in cache:
        return cache.pop(head.fingerprint)[0]
    entries = [bytes(events) for (events,) in log()]
    states = [*accumulate(entries, extended, initial=head.start)]
    if states[-1] != head.fingerprint:
        raise ValueError("the saved state of a shard is damaged (its log does not lead to its head)")
    place = next((i for i in reversed(range(len(states))) if states[i] in cache), None)
    watch = _read_watch(head, saved()) if place is None else cache.pop(states[place])[0]
    for entry in entries[place or 0 :]:
        _update(watch, _from_bytes(entry, watch))
    return watch


def extended(fingerprint: bytes, events: bytes) -> bytes:
    """The fingerprint of a state after further events."""
    return hashlib.blake2b(events, digest_size=16, key=fingerprint).digest()


def key_of(name: str, by: Sequence[str]) -> Any:
    """The key of a segment as a bank has it; a tuple for several columns, 0 for none."""
    by = [column for column in by if not column.startswith(VERSIONED)]
    if len(by) > 1:
        return tuple(json.loads(name))
    return 0 if not by else name if by[0].endswith("string") else int(name)


def _update(watch: Watch, events: pa.Table) -> list[Finding]:
    """Let a watch take events; each finding has the place of its event as its row."""
    streams, names = _segments(events)
    times = moments(events[TIME].combine_chunks()) if _is_timed(events) else None
    versions = events[VERSION].combine_chunks() if VERSION in events.column_names else None
    batch = events_of(events[CODE].to_numpy(), _classes(watch), times, versions)
    return watch.update(replace(batch, keys=streams), names)


def _segments(events: pa.Table) -> tuple[npt.NDArray[np.int64], list[str]]:
    if not (keys := [events[name].combine_chunks().dictionary_encode() for name in _keys(events)]):
        return np.zeros(events.num_rows, np.int64), [""]
    if len(keys) == 1:
        return keys[0].indices.to_numpy().astype(np.int64), [*map(str, keys[0].dictionary.to_pylist())]
    pairs, streams = np.unique([key.indices.to_numpy() for key in keys], axis=1, return_inverse=True)
    values = [key.dictionary.take(pa.array(own)).to_pylist() for key, own in zip(keys, pairs, strict=True)]
    return streams.reshape(-1), [json.dumps(key) for key in zip(*values, strict=True)]


def _keys(events: pa.Table) -> list[str]:
    return [name for name in events.column_names if name not in (TIME, VERSION, CODE)]


def _is_timed(events: pa.Table) -> bool:
    return TIME in events.column_names and pa.types.is_timestamp(events.schema.field(TIME).type)


def _times(events: pa.Table) -> npt.NDArray[np.int64]:
    times: npt.NDArray[np.int64] = events[TIME].cast(pa.int64()).to_numpy()
    return times


def _to_bytes(events: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema, options=WRITING) as writer:
        writer.write_table(events)
    return bytes(sink.getvalue().to_pybytes())


def _from_bytes(saved: bytes, watch: Watch) -> pa.Table:
    try:
        table = pa.ipc.open_stream(saved, options=READING).read_all().combine_chunks()
        table.validate(full=True)
        codes = table[CODE].to_numpy()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"the saved events of a shard are damaged ({error})") from None
    if any(column.null_count for column in table.columns):
        raise ValueError("the saved events of a shard are damaged (a value is missing)")
    if codes.size and not 0 <= codes.min() <= codes.max() < _classes(watch) ** 2:
        raise ValueError(f"the saved events of a shard have labels that are not those of {_classes(watch)} classes")
    return table


def _read_watch(head: Head, saved: tuple[Any, ...] | None) -> Watch:
    try:
        found = unpack(bytes(saved[0]) if saved is not None else b"", "ShardWatch")
        if found.sections["fingerprint"] != head.start:
            raise ValueError("its watch is not the one that its head names")
        size = check_whole(found.about["size"], "size", 0)
        check_size(size, MAX_STATE)
        whole = pa.decompress(found.sections["watch"], decompressed_size=size, codec=CODEC, asbytes=True)
        return Watch.from_bytes(whole)
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the saved state of a shard is damaged ({error})") from None


def _classes(watch: Watch) -> int:
    return len(watch.detector.labels.values)

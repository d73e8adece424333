"""One shard of a streaming query: a bank of some keys, and the events that wait for the watermark.

Between two micro-batches it is what the state store keeps of it: the bank as it was some time ago, a log of the events
since then, and a head that names both and holds the last entries of the log. Events are much shorter than a bank, so
most micro-batches write little; when the log has grown, the bank is written again.

Every state has a fingerprint, of the settings and of all events so far, and the log leads from one to the next. Worker
processes are used again, and keep the banks they had last at hand by their fingerprints. One that is at hand is brought
up to date by the last entries, if another worker had the shard since; the log and the bank are read, and checked, only
if there is none, or one of long ago.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from fourrates.bank import Bank
from fourrates.checks import check_whole
from fourrates.detectors.base import RecordDetector
from fourrates.engines.spark.findings import update
from fourrates.engines.spark.shard_state import Head, ShardState, Value, extended
from fourrates.findings import Finding
from fourrates.state import MAX_STATE, check_size, pack, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

LOGGED = 0.25  # the longest log since the bank was written, as a share of it
KEPT = 256 << 20  # bytes of banks that a worker process keeps at hand
CODEC = "lz4"
WRITING = pa.ipc.IpcWriteOptions(compression=CODEC, use_threads=False)  # a worker has one core
READING = pa.ipc.IpcReadOptions(use_threads=False)


class AtHand(NamedTuple):
    """A bank with its settings."""

    bank: Bank
    detector: RecordDetector
    size: int = 0  # bytes that it takes, where a worker process keeps it


at_hand: OrderedDict[bytes, AtHand] = OrderedDict()


class Events(NamedTuple):
    """Some events.

    Attributes
    ----------
    keys : list of Arrow arrays
        A column each.
    times : array
        What they are put in order by; empty where there is no order.
    codes : array
        A pair of labels each.
    """

    keys: list[pa.Array]
    times: Integers
    codes: Integers

    def take(self, places: Any) -> Events:
        """Some of them."""
        chosen = pa.array(places)
        times = self.times[places] if self.times.size else self.times
        return Events([key.take(chosen) for key in self.keys], times, self.codes[places])

    def to_bytes(self) -> bytes:
        """As Arrow writes them, compressed."""
        columns = {f"key{i}": key for i, key in enumerate(self.keys)}
        if self.times.size:
            columns["time"] = self.times
        codes = self.codes.astype(np.min_scalar_type(int(self.codes.max(initial=0))))
        table = pa.table(columns | {"code": codes})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=WRITING) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, saved: bytes, classes: int) -> Events:
        """What :meth:`to_bytes` gave; a ValueError if it cannot have."""
        try:
            table = pa.ipc.open_stream(saved, options=READING).read_all().combine_chunks()
            table.validate(full=True)
            columns = {name: table[name].combine_chunks() for name in table.column_names}
            codes = columns.pop("code").cast(pa.int64())
            times = columns.pop("time") if "time" in columns else pa.array([], pa.int64())
        except (pa.ArrowException, OSError, KeyError) as error:
            raise ValueError(f"the saved events of a shard are damaged ({error})") from None
        if times.type != pa.int64() or any(one.null_count for one in (codes, times, *columns.values())):
            raise ValueError("the saved events of a shard are damaged (a value is missing, or of another type)")
        codes, times = codes.to_numpy(), times.to_numpy()
        if codes.size and not 0 <= codes.min() <= codes.max() < classes * classes:
            raise ValueError(f"the saved events of a shard have labels that are not those of {classes} classes")
        return cls([*columns.values()], times, codes)

    def after(self, earlier: Events) -> Events:
        """Earlier ones, and then these."""
        return Events(
            [pa.concat_arrays([old, new]) for old, new in zip(earlier.keys, self.keys, strict=True)],
            np.concatenate([earlier.times, self.times]),
            np.concatenate([earlier.codes, self.codes]),
        )


class StreamFinding(NamedTuple):
    """A finding, its key, and the time of the event that gave it, if there is an order."""

    key: tuple[Any, ...]
    time: int | None
    finding: Finding


@dataclass
class Shard:
    """A bank, what made it, and what waits.

    Attributes
    ----------
    bank : Bank
        The streams.
    detector : FourRates or LFR
        Their settings.
    head : Head
        What names its state.
    waiting : Events or None
        Events that the watermark has not passed.
    """

    bank: Bank
    detector: RecordDetector
    head: Head
    waiting: Events | None = None

    def __post_init__(self) -> None:
        self._taken: list[bytes] = []  # for the log
        self.bank.threads = 1  # Spark has a task for each processor

    @classmethod
    def begin(cls, detector: RecordDetector, shards: int, by: Sequence[str] = ()) -> Shard:
        """A shard that has seen nothing; `by` has name and type of each column of the key."""
        first = extended(b"", repr(sorted(detector.parameters.items())).encode())
        head = Head(first, shards, start=first, turn=first, by=tuple(by))
        return cls(Bank(detector), detector, head)

    @classmethod
    def restore(cls, kept: ShardState, detector: RecordDetector, shards: int, by: Sequence[str] = ()) -> Shard:
        """What :meth:`save` kept, or one that has seen nothing; other settings are a ValueError that names them."""
        named = kept.head.get()
        if named is None:
            return cls.begin(detector, shards, by)
        head = Head.from_bytes(bytes(named[0]))
        if head.shards != shards:
            raise ValueError(
                f"the checkpoint has its keys in {head.shards} shards, not in {shards}: keep shards={head.shards}"
            )
        if head.by != tuple(by):
            raise ValueError(
                f"the checkpoint has streams by {_listed(head.by)}, not by {_listed(by)}: begin with a new one"
            )
        bank, own, _ = rebuilt(head, kept.bank.get, kept.log.get)
        if type(own) is not type(detector) or own.parameters != detector.parameters:
            raise ValueError(
                f"the checkpoint is that of {own!r}, not of {detector!r}: begin with a new one, or ask for the same"
            )
        return cls(bank, own, head, _read_waiting(head, kept.waiting, _classes(bank)))

    def save(self, kept: ShardState, wake: int = -1) -> None:
        """Give the state store what has changed; `wake` is when the watermark passes the next event that waits."""
        log = self.head.log + sum(map(len, self._taken))
        head = self.head._replace(log=log, recent=(*self.head.recent, *self._taken))
        if not head.bank or log > LOGGED * _spread(head.fingerprint) * head.bank:
            head = self._save_bank(kept, head)
        elif sum(map(len, head.recent)) > head.room:
            older, head = head.shortened()
            kept.log.appendList([(events,) for events in older])
        waiting = b""
        if wake >= 0 and self.waiting is not None and kept.waiting is not None:
            saved = self.waiting.to_bytes()
            kept.waiting.update((saved,))
            waiting = extended(b"", saved)
        self._taken, self.head = [], head._replace(wake=wake, waiting=waiting)
        kept.head.update((self.head.to_bytes(),))
        at_hand[self.head.fingerprint] = AtHand(self.bank, self.detector, self.bank.nbytes)
        while len(at_hand) > 1 and sum(one.size for one in at_hand.values()) > KEPT:
            at_hand.popitem(last=False)

    def _save_bank(self, kept: ShardState, head: Head) -> Head:
        """Write the bank, and forget the log but for its last entries: other workers have banks of that time."""
        saved = self.bank.to_bytes()
        pressed = pa.compress(saved, codec=CODEC, asbytes=True)
        kept.bank.update((pack("ShardBank", {"size": len(saved)}, fingerprint=head.fingerprint, bank=pressed),))
        kept.log.clear()
        _, head = head._replace(marked=head.fingerprint, bank=len(saved), log=0).shortened()
        return head._replace(start=head.turn)

    def take(self, events: Events) -> list[StreamFinding]:
        """Take events, each stream's in the order of their times."""
        if not events.codes.size:
            return []
        streams = [_numbered(key) for key in events.keys]
        order = np.lexsort(([events.times] if events.times.size else []) + streams) if streams else None
        if order is None and events.times.size:
            order = np.argsort(events.times, kind="stable")
        events = events if order is None else events.take(order)
        self._taken.append(events._replace(times=np.empty(0, np.int64)).to_bytes())  # a bank knows no times
        self.head = self.head._replace(fingerprint=extended(self.head.fingerprint, self._taken[-1]))
        return [
            StreamFinding(
                tuple(key[place].as_py() for key in events.keys),
                int(events.times[place]) if events.times.size else None,
                finding,
            )
            for place, finding in update(self.bank, _keys(events), events.codes)
        ]

    def pass_watermark(self, events: Events, watermark: int) -> tuple[list[StreamFinding], Events]:
        """Let new events wait, and take all that the watermark has passed; what came after it is given back."""
        late = events.times <= watermark
        behind, fresh = events.take(np.flatnonzero(late)), events.take(np.flatnonzero(~late))
        held = fresh if self.waiting is None else fresh.after(self.waiting)
        due = held.times <= watermark
        self.waiting = held.take(np.flatnonzero(~due))
        return self.take(held.take(np.flatnonzero(due))), behind


def rebuilt(
    head: Head, kept: Callable[[], tuple[Any, ...] | None], log: Callable[[], Iterable[tuple[Any, ...]]]
) -> AtHand:
    """The bank of a head and what belongs to it: one at hand, or the one that is kept, up to date by the events since.

    Parameters
    ----------
    head : Head
        What names it.
    kept, log : callable
        They read the bank and the log from the state store, if they are needed.
    """
    found = at_hand.pop(head.fingerprint, None)
    if found is not None:
        return found
    entries = [*head.recent]
    states = _states(head, head.turn, entries)
    place = _last_at_hand(states)
    if place is None:
        entries = [*(bytes(events) for (events,) in log()), *head.recent]
        states = _states(head, head.start, entries)
        place = _last_at_hand(states)
    if place is not None:
        found = at_hand.pop(states[place])
    elif head.marked in states:
        found, place = _read_bank(head, kept()), states.index(head.marked)
    else:
        raise ValueError("the saved state of a shard is damaged (its log does not lead on from its bank)")
    for entry in entries[place:]:
        events = Events.from_bytes(entry, _classes(found.bank))
        update(found.bank, _keys(events), events.codes)
    return found


def _states(head: Head, start: bytes, entries: list[bytes]) -> list[bytes]:
    """The fingerprints before, between and after entries that lead to a head."""
    states = [*accumulate(entries, extended, initial=start)]
    if states[-1] != head.fingerprint:
        raise ValueError("the saved state of a shard is damaged (its log does not lead to what its head names)")
    return states


def _last_at_hand(states: list[bytes]) -> int | None:
    """The place of the last state whose bank is at hand."""
    return next((i for i in reversed(range(len(states))) if states[i] in at_hand), None)


def _read_bank(head: Head, kept: tuple[Any, ...] | None) -> AtHand:
    try:
        found = unpack(bytes(kept[0]) if kept is not None else b"")
        if found.kind != "ShardBank" or found.sections["fingerprint"] != head.marked:
            raise ValueError("its bank is not the one that its head names")
        size = check_whole(found.about["size"], "size", 0)
        check_size(size, MAX_STATE)
        whole = pa.decompress(found.sections["bank"], decompressed_size=size, codec=CODEC, asbytes=True)
        bank = Bank.from_bytes(whole)
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the saved state of a shard is damaged ({error})") from None
    return AtHand(bank, bank.detector)


def _read_waiting(head: Head, kept: Value | None, classes: int) -> Events | None:
    """The events that wait, those that the head names."""
    if not head.waiting:
        return None
    found = None if kept is None else kept.get()
    saved = b"" if found is None else bytes(found[0])
    if extended(b"", saved) != head.waiting:
        raise ValueError("the saved state of a shard is damaged (its events that wait are not those of its head)")
    return Events.from_bytes(saved, classes)


def _listed(by: Sequence[str]) -> str:
    return ", ".join(by) or "nothing"


def _classes(bank: Bank) -> int:
    return len(bank.labels.values)


def _spread(fingerprint: bytes) -> float:
    """A number from 0.5 to 1.5, another for each state: shards are not all written in the same micro-batch."""
    return 0.5 + fingerprint[0] / 255


def _numbered(key: pa.Array) -> Integers:
    """Numbers that are equal where keys are."""
    numbers: Integers = (key if pa.types.is_integer(key.type) else key.dictionary_encode().indices).to_numpy()
    return numbers


def _keys(events: Events) -> Any:
    """Keys as a bank has them: of one column as they are, of several as tuples, of none one for all."""
    if len(events.keys) == 1:
        key = events.keys[0]
        return key.to_numpy() if pa.types.is_integer(key.type) else key.dictionary_encode()
    if not events.keys:
        return np.zeros(events.codes.size, np.int64)
    return list(zip(*(key.to_pylist() for key in events.keys), strict=True))

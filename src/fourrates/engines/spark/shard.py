"""One shard of a streaming query: a bank of some keys, and the events that wait for the watermark.

It is bytes between two micro-batches. Worker processes are used again, so the banks they had last are kept at hand, by
a fingerprint of all the events that made them: the state in the store says which one it is, and if it is there it need
not be read, and checked, from its bytes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from fourrates.bank import Bank
from fourrates.detectors.base import RecordDetector
from fourrates.drift import Drift, Shift
from fourrates.state import MAX_STATE, check_size

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

STATE = "fingerprint binary, shards int, bank binary, waiting binary"
KEPT = 256 << 20  # bytes of banks that a worker process keeps at hand
COMPRESSED, CODEC = b"4rates-lz4", "lz4"  # how a compressed bank begins

_at_hand: OrderedDict[bytes, Bank] = OrderedDict()


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
        """As Arrow writes them."""
        columns = {f"key{i}": key for i, key in enumerate(self.keys)}
        table = pa.table(columns | {"time": self.times, "code": self.codes})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, saved: bytes) -> Events:
        """What :meth:`to_bytes` gave."""
        table = pa.ipc.open_stream(saved).read_all().combine_chunks()
        keys = [table.column(i).combine_chunks() for i in range(table.num_columns - 2)]
        return cls(keys, table["time"].to_numpy(), table["code"].to_numpy())

    def after(self, earlier: Events) -> Events:
        """Earlier ones, and then these."""
        return Events(
            [pa.concat_arrays([old, new]) for old, new in zip(earlier.keys, self.keys, strict=True)],
            np.concatenate([earlier.times, self.times]),
            np.concatenate([earlier.codes, self.codes]),
        )


class Found(NamedTuple):
    """A finding, its key, and the time of the event that gave it, if there is an order."""

    key: tuple[Any, ...]
    time: int | None
    what: Drift | Shift


@dataclass
class Shard:
    """A bank, what made it, and what waits.

    Attributes
    ----------
    bank : Bank
        The streams.
    fingerprint : bytes
        Of the settings and of all events so far.
    shards : int
        How many parts the keys are divided into.
    waiting : Events or None
        Events that the watermark has not passed.
    """

    bank: Bank
    fingerprint: bytes
    shards: int
    waiting: Events | None = None

    @classmethod
    def begin(cls, detector: RecordDetector, shards: int) -> Shard:
        """A shard that has seen nothing."""
        return cls(Bank(detector), _mixed(b"", repr(sorted(detector.parameters.items())).encode()), shards)

    @classmethod
    def restore(cls, state: tuple[Any, ...], detector: RecordDetector, shards: int) -> Shard:
        """What :meth:`state` gave; a state of other settings is a ValueError that names the difference."""
        fingerprint, divided, saved, waiting = state
        if divided != shards:
            raise ValueError(f"the checkpoint has its keys in {divided} shards, not in {shards}: keep shards={divided}")
        bank = _at_hand.pop(bytes(fingerprint), None) or open_bank(bytes(saved))
        own, asked = bank.detector, detector
        if type(own) is not type(asked) or own.parameters != asked.parameters:
            raise ValueError(
                f"the checkpoint is that of {own!r}, not of {asked!r}: begin with a new one, or ask for the same"
            )
        held = Events.from_bytes(bytes(waiting)) if waiting else None
        return cls(bank, bytes(fingerprint), shards, held)

    def state(self) -> tuple[Any, ...]:
        """Everything, as the state store keeps it."""
        saved = _compressed(self.bank.to_bytes())
        _at_hand[self.fingerprint] = self.bank
        while len(_at_hand) > 1 and sum(bank.nbytes for bank in _at_hand.values()) > KEPT:
            _at_hand.popitem(last=False)
        return self.fingerprint, self.shards, saved, self.waiting.to_bytes() if self.waiting is not None else b""

    def take(self, events: Events, classes: int) -> list[Found]:
        """Take events, each stream's in the order of their times."""
        if not events.codes.size:
            return []
        streams = [_numbered(key) for key in events.keys]
        order = np.lexsort(([events.times] if events.times.size else []) + streams) if streams else None
        if order is None and events.times.size:
            order = np.argsort(events.times, kind="stable")
        events = events if order is None else events.take(order)
        self.fingerprint = _mixed(
            self.fingerprint, *(buffer for key in events.keys for buffer in key.buffers() if buffer), events.codes
        )
        truths, guesses = (part.astype(np.uint16) for part in np.divmod(events.codes, classes))
        first = self.bank.events
        found: list[tuple[int, Drift | Shift]] = [
            (one.event - first, one.drift) for one in self.bank.update_coded(_keys(events), truths, guesses)
        ]
        found += [(one.event - first, one.shift) for one in self.bank.shifts]
        return [
            Found(
                tuple(key[place].as_py() for key in events.keys),
                int(events.times[place]) if events.times.size else None,
                what,
            )
            for place, what in sorted(found, key=lambda pair: pair[0])
        ]

    def pass_watermark(self, events: Events, watermark: int, classes: int) -> tuple[list[Found], Events]:
        """Let new events wait, and take all that the watermark has passed; what came after it is given back."""
        late = events.times <= watermark
        behind, fresh = events.take(np.flatnonzero(late)), events.take(np.flatnonzero(~late))
        held = fresh if self.waiting is None else fresh.after(self.waiting)
        due = held.times <= watermark
        self.waiting = held.take(np.flatnonzero(~due))
        return self.take(held.take(np.flatnonzero(due)), classes), behind


def _compressed(saved: bytes) -> bytes:
    """A saved bank as the state store keeps it: it goes from process to process twice a micro-batch."""
    pressed: bytes = pa.compress(saved, codec=CODEC, asbytes=True)
    return b"".join([COMPRESSED, len(saved).to_bytes(8, "little"), pressed])


def open_bank(saved: bytes) -> Bank:
    """The bank in a state of a shard; one that was kept as it is can be read too."""
    if not saved.startswith(COMPRESSED):
        return Bank.from_bytes(saved)
    start = len(COMPRESSED) + 8
    size = int.from_bytes(saved[len(COMPRESSED) : start], "little")
    check_size(size, MAX_STATE)
    try:
        whole = pa.decompress(saved[start:], decompressed_size=size, codec=CODEC, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"the saved state of a shard is damaged ({error})") from None
    return Bank.from_bytes(whole)


def _mixed(before: bytes, *parts: Any) -> bytes:
    digest = hashlib.blake2b(before, digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()


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

"""Rows of one request as columns of codes, as the journal stores and a monitor takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fourrates.detectors.sampling import OwnFirst

if TYPE_CHECKING:
    import numpy.typing as npt

EVENTS, PREDICTIONS, LABELS, CONFIG, ACCEPTED = range(5)
KINDS = {"events": EVENTS, "predictions": PREDICTIONS, "labels": LABELS}
JOINED = 1 << 10  # rows up to which a batch is merged with others


class Batch(msgspec.Struct, array_like=True):
    """Rows in the form of the journal; times are in seconds since 1970."""

    kind: int  # EVENTS, PREDICTIONS, LABELS; CONFIG for new settings; ACCEPTED for a drift that is normal from now on
    received: float  # when the server received it, used for rows without a time
    size: int  # rows
    truths: bytes = b""  # class codes, one byte each; empty if the kind has none
    preds: bytes = b""
    ids: bytes = b""  # a list as JSON; empty if rows have none
    times: bytes = b""  # doubles; empty if no row has one
    segments: list[str] = []  # those that occur, each a JSON list of the values of the `by` columns
    segment_codes: bytes = b""  # for each row, which of them, as 32-bit integers
    versions: list[str] = []  # of the model that predicted, those that occur
    version_codes: bytes = b""
    drawn: bytes = b""  # two probabilities of being labelled each, its own first, in single precision
    config: bytes = b""  # the new settings; or the drift, an AcceptedDrift, as JSON

    def codes(self, name: str) -> npt.NDArray[np.uint16]:
        return np.frombuffer(getattr(self, name), np.uint8).astype(np.uint16)

    def listed_ids(self) -> list[Any]:
        return msgspec.json.decode(self.ids, type=list[Any])

    def probabilities(self) -> OwnFirst | None:
        """With which each row was drawn for labelling."""
        return OwnFirst(np.frombuffer(self.drawn, "<f4").reshape(-1, 2)) if self.drawn else None

    def time_column(self) -> npt.NDArray[np.float64] | float:
        """When each row happened, or one time for all of them."""
        return np.frombuffer(self.times, "<f8") if self.times else self.received

    def last_time(self) -> float:
        return float(np.frombuffer(self.times, "<f8").max()) if self.times else self.received


def can_join(first: Batch, second: Batch) -> bool:
    """Whether two batches of a monitor can merge, which needs events without ids, one per row, and not too many."""
    alike = all(batch.kind == EVENTS and not batch.ids and batch.size <= JOINED for batch in (first, second))
    return alike and bool(first.versions) == bool(second.versions)


def joined(batches: list[Batch]) -> Batch:
    """The rows of batches that can be joined, in order, as one batch, received when the last of them was."""
    last = batches[-1]
    if len(batches) == 1:
        return last
    made = Batch(EVENTS, last.received, sum(batch.size for batch in batches))
    made.truths = b"".join([batch.truths for batch in batches])
    made.preds = b"".join([batch.preds for batch in batches])
    made.drawn = b"".join([batch.drawn for batch in batches])
    if any(batch.times for batch in batches):
        made.times = b"".join(
            [batch.times or np.full(batch.size, batch.received, "<f8").tobytes() for batch in batches]
        )
    made.segments, made.segment_codes = _together([(batch.segments, batch.segment_codes) for batch in batches])
    made.versions, made.version_codes = _together([(batch.versions, batch.version_codes) for batch in batches])
    return made


def _together(columns: list[tuple[list[str], bytes]]) -> tuple[list[str], bytes]:
    """Names and the codes of rows, of several batches as one."""
    numbers: dict[str, int] = {}
    codes = []
    for names, own in columns:
        renamed = np.array([numbers.setdefault(name, len(numbers)) for name in names], "<u4")
        codes.append(renamed[np.frombuffer(own, "<u4")].tobytes())
    return [*numbers], b"".join(codes)


class AcceptedDrift(msgspec.Struct):
    """A drift accepted as the new normal, with its segment as JSON (None if overall) and its event."""

    segment: str | None
    at: int


class Entry(msgspec.Struct, array_like=True):
    """A batch in the journal and its events, their number, rows and segments."""

    events: int
    batch: Batch
    pairs: bytes | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Entry])


def encode(entries: list[Entry]) -> bytes:
    return _encoder.encode(entries)


def decode(saved: bytes) -> list[Entry]:
    """Batches of the journal; bytes that are none are a ValueError."""
    entries = _decoder.decode(saved)
    for entry in entries:
        batch = entry.batch
        for name, width in (("truths", 1), ("preds", 1), ("drawn", 8)):
            if len(getattr(batch, name)) not in (0, width * batch.size):
                raise ValueError(f"a batch of {batch.size} rows with {len(getattr(batch, name))} bytes of {name}")
    return entries

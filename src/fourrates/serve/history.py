"""The window of a drift from the journal, with the ids of its examples and their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from fourrates.findings import Finding
from fourrates.serve.batch import Entry, decode
from fourrates.serve.monitor import Monitor, Pairs, row_of
from fourrates.serve.store.base import JournalRow


@dataclass(frozen=True, slots=True)
class Window:
    """The events of a drift from its start on, as far as the journal still has them."""

    ids: list[Any]
    confusion: list[list[int]]
    complete: bool


def pairs_blob(pairs: Pairs) -> bytes | None:
    """The journal's record of a batch's events; None if they are its rows."""
    if pairs.positions is None:
        return None
    numbers = (pairs.positions, pairs.segments, pairs.versions)
    positions, segments, versions = (b"" if one is None else one.astype("<u4").tobytes() for one in numbers)
    truths, preds = (codes.astype(np.uint8).tobytes() for codes in (pairs.truths, pairs.preds))
    return msgspec.msgpack.encode((positions, truths, preds, segments, versions))


def _pairs(monitor: Monitor, entry: Entry) -> Pairs:
    batch = entry.batch
    if entry.pairs is not None:
        kind = tuple[bytes, bytes, bytes, bytes, bytes]
        positions, truths, preds, segments, versions = msgspec.msgpack.decode(entry.pairs, type=kind)
        return Pairs(
            np.frombuffer(truths, np.uint8).astype(np.uint16),
            np.frombuffer(preds, np.uint8).astype(np.uint16),
            np.frombuffer(positions, "<u4").astype(np.int64),
            np.frombuffer(segments, "<u4").astype(np.int64) if segments else None,
            np.frombuffer(versions, "<u4").astype(np.int64) if versions else None,
        )
    return Pairs(batch.codes("truths"), batch.codes("preds"), np.arange(batch.size), *monitor.numbers(batch))


def backwards(first_event: int, entries: list[Entry]) -> Iterator[tuple[int, Entry]]:
    end = first_event + sum(entry.events for entry in entries)
    for entry in reversed(entries):
        end -= entry.events
        yield end, entry


def read_back(rows: Iterable[JournalRow]) -> Iterator[tuple[int, Entry]]:
    """The batches of rows of the journal, last first."""
    for row in rows:
        yield from backwards(row.first_event, decode(row.body))


def read_window(monitor: Monitor, finding: Finding, entries: Iterable[tuple[int, Entry]]) -> Window:
    """The window of a drift; `entries` are those of the journal, the last one first."""
    left, last = len(finding.window), row_of(finding)
    segment = None if finding.segment is None else monitor.segments[finding.segment]
    ids: list[list[Any]] = []
    confusion = np.zeros((monitor.classes, monitor.classes), np.int64)
    for first_event, entry in entries:
        if left <= 0:
            break
        if first_event > last or not entry.events:
            continue
        batch = entry.batch
        pairs = _pairs(monitor, entry)
        chosen = np.arange(len(pairs))
        if segment is not None:
            chosen = np.flatnonzero(pairs.segments == segment) if pairs.segments is not None else chosen[:0]
        if finding.version is not None:
            version = monitor.versions.index(finding.version)
            chosen = chosen[pairs.versions[chosen] == version] if pairs.versions is not None else chosen[:0]
        chosen = chosen[first_event + chosen <= last][-left:]
        if not chosen.size:
            continue
        left -= chosen.size
        np.add.at(confusion, (pairs.truths[chosen].astype(np.int64), pairs.preds[chosen].astype(np.int64)), 1)
        assert pairs.positions is not None
        if batch.ids is not None:
            ids.append(batch.ids.pick(pairs.positions[chosen]))
    return Window([id for part in reversed(ids) for id in part], confusion.tolist(), left <= 0)

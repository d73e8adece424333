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


COLUMNS = {"truths": "u1", "preds": "u1", "positions": "<u4", "segments": "<u4", "versions": "<u4"}
"""The columns of pairs in the journal, with their types there."""


def pairs_blob(pairs: Pairs) -> bytes | None:
    """The journal's record of a batch's events; None if they are its rows."""
    if pairs.positions is None:
        return None
    columns = [(getattr(pairs, name), kind) for name, kind in COLUMNS.items()]
    return msgspec.msgpack.encode([None if own is None else own.astype(kind).tobytes() for own, kind in columns])


def _pairs(monitor: Monitor, entry: Entry) -> Pairs:
    batch = entry.batch
    if entry.pairs is None:
        return Pairs(batch.codes("truths"), batch.codes("preds"), np.arange(batch.size), *monitor.numbers(batch))
    saved = msgspec.msgpack.decode(entry.pairs, type=list[bytes | None])
    columns = zip(saved, COLUMNS.values(), strict=True)
    return Pairs(*(None if own is None else np.frombuffer(own, kind).astype(np.int64) for own, kind in columns))  # type: ignore[arg-type]


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
        np.add.at(confusion, (pairs.truths[chosen], pairs.preds[chosen]), 1)
        assert pairs.positions is not None
        if batch.ids:
            own = batch.listed_ids()
            ids.append([own[row] for row in pairs.positions[chosen].tolist()])
    return Window([id for part in reversed(ids) for id in part], confusion.tolist(), left <= 0)

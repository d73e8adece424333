"""Measure the detectors of one library, in its own environment, on streams that were written for all.

    python worker.py FAMILY found|size|cost|alarms STREAMS OUT.json

`found` judges the detectors on the streams, `size` weighs them, `cost` takes times, and `alarms` counts how often they
alarm on streams that do not change.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.metadata
import json
import pickle
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from entry import Entry

CHANGE, WITHIN = 5_000, 200
TURNS = 2
LEAST = 20_000  # events: what is timed on fewer is too slow to be counted on streams that do not change
SIZED = 10_000  # events after which a detector is weighed


def fed(pairs: np.ndarray, takes: str) -> Any:
    """Events as the detector takes them, in plain Python numbers."""
    truth, pred = pairs
    if takes == "arrays":
        return truth, pred
    if takes == "pairs":
        return list(zip(truth.tolist(), pred.tolist(), strict=True))
    return (truth != pred).astype(float if takes == "floats" else int).tolist()


def until(deadline: float, events: Iterable[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        if time.perf_counter() > deadline:
            return


def seconds(job: Iterator[int]) -> float:
    start = time.perf_counter()
    deque(job, maxlen=0)
    return time.perf_counter() - start


def nothing(events: Any, takes: str) -> Iterator[int]:
    """The same loop without a detector in it."""
    if takes == "pairs":
        for _, (_, _) in enumerate(events):
            pass
    elif takes != "arrays":
        for _, _ in enumerate(events):
            pass
    yield from ()


def cost(entry: Entry, stable: np.ndarray) -> dict[str, Any]:
    """Microseconds per event: the best of some turns, without the loop's own time."""
    if entry.seconds:
        return limited(entry, stable)
    events = fed(stable[:, : entry.events], entry.takes)
    deque(entry.loop(entry.make(), fed(stable[:, :1_000], entry.takes)), maxlen=0)  # what is done once
    own = min(seconds(entry.loop(entry.make(), events)) for _ in range(TURNS))
    empty = min(seconds(nothing(events, entry.takes)) for _ in range(TURNS))
    return {"microseconds": 1e6 * (own - empty) / entry.events, "events": entry.events}


def limited(entry: Entry, stable: np.ndarray) -> dict[str, Any]:
    """As far as it comes in its time."""
    detector, done = entry.make(), []
    start = time.perf_counter()
    counted = (done.append(None) or event for event in until(start + entry.seconds, fed(stable, entry.takes)))
    deque(entry.loop(detector, counted), maxlen=0)
    return {"microseconds": 1e6 * (time.perf_counter() - start) / len(done), "events": len(done)}


class Mallinfo(ctypes.Structure):
    """What glibc says of its heap."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def in_use() -> int | None:
    """Bytes handed out by malloc, to Python (under PYTHONMALLOC=malloc) and to compiled code; None without glibc."""
    gc.collect()
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    ask.restype = Mallinfo
    heap = ask()
    return heap.uordblks + heap.hblkhd


def size(entry: Entry, stable: np.ndarray) -> dict[str, Any]:
    """Bytes that another detector needs, after some events, and of its pickle; None if it cannot be pickled."""
    if entry.seconds:
        return {"memory": None, "saved": None}
    events = fed(stable[:, :SIZED], entry.takes)
    first = entry.make()  # what all share stays with the first
    deque(entry.loop(first, events), maxlen=0)
    others, uses = [], [in_use()]
    for _ in range(9 if entry.events >= 5_000 else 1):  # the slowest one once
        detector = entry.make()
        others.append(detector)
        deque(entry.loop(detector, events), maxlen=0)
        uses.append(in_use())
    # The median, for Python keeps some small objects back, and Java's threads use malloc when they like.
    memory = None if uses[0] is None else round(median(after - before for before, after in pairwise(uses)))
    try:
        saved = len(pickle.dumps(detector, protocol=5))
    except (pickle.PicklingError, TypeError, AttributeError):
        saved = None
    return {"memory": memory, "saved": saved}


def judged(entry: Entry, streams: list[Any], *value: float) -> dict[str, Any]:
    """Alarms before the change, and the delay of the first one after it, None if there is none."""
    false, delays = 0, []
    for events in streams:
        delay = None
        for at in entry.loop(entry.make(*value), events):
            if at >= CHANGE:
                delay = at - CHANGE
                break
            false += 1
        delays.append(delay)
    hits = sum(delay is not None and delay < WITHIN for delay in delays)
    return {"streams": len(streams), "false": false, "hits": hits, "delays": delays}


def found(entry: Entry, folder: Path) -> dict[str, Any]:
    """On the streams with the default settings, and on those of equal error with every other setting too."""
    if not entry.streams:
        return {"found": {}, "sweep": []}
    cells, sweep = {}, []
    for path in sorted(folder.glob("*.npy")):
        if path.stem == "stable":
            continue
        every = np.load(path)
        some = every[: max(2, round(entry.streams * len(every)))]
        streams = [fed(pairs, entry.takes) for pairs in some]
        cells[path.stem] = judged(entry, streams)
        if path.stem == "EqualError":
            sweep = [{"value": value, **judged(entry, streams, value)} for value in entry.sweep]
    for one in sweep:
        del one["delays"]
    return {"found": cells, "sweep": sweep}


def alarms(entry: Entry, folder: Path) -> dict[str, Any]:
    """How often it alarms on each stream, with its default settings, in as many events as are there for its kind."""
    found = {}
    for path in sorted(folder.glob("*.npy")):
        pairs = np.load(path)[:, : 2 * entry.events]
        found[path.stem] = {
            "alarms": sum(1 for _ in entry.loop(entry.make(), fed(pairs, entry.takes))),
            "events": pairs.shape[1],
        }
    return {"stable": found}


MEASURES = {"cost": cost, "size": size}


def main(family: str, what: str, streams: str, out: str) -> None:
    library = importlib.import_module(f"families.{family}")
    whole = {"found": found, "alarms": alarms}
    stable = None if what in whole else np.load(Path(streams) / "stable.npy")
    rows = []
    for entry in library.ENTRIES:
        if what == "alarms" and (not entry.streams or entry.events < LEAST):
            continue
        measured = whole[what](entry, Path(streams)) if what in whole else MEASURES[what](entry, stable)
        rows.append({"name": entry.name, "takes": entry.takes, "parameter": entry.parameter, **measured})
        print(f"{family} {entry.name}", file=sys.stderr, flush=True)
    version = importlib.metadata.version(library.PACKAGE)
    Path(out).write_text(json.dumps({"family": family, "version": version, "rows": rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Ten million predictions that wait, and their labels in random order: bytes each and labels a second, beside a dict.

Speed is per second of processor time of this one thread, in batches of 100,000 ids given as arrays; the dict is given
the same ids as Python integers, made beforehand. Bytes are what the operating system says the process grew by. Writes
build/join.json and ends with status 1 if a mark is missed. ``python benchmarks/join_speed.py [predictions]``
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np

import fourrates as fr

WAITING = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 10_000_000
BATCH = 100_000
MOST_BYTES, LEAST_LABELS = 100, 2e6  # the marks


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def ids_of(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids in the order of the predictions, in that of the labels, and predictions."""
    random = np.random.default_rng(1)
    ids = random.integers(-(2**63), 2**63 - 1, WAITING)
    if kind == "text":
        ids = ids.view(np.uint64).astype("U20")
    return ids, random.permutation(ids), random.integers(0, 2, WAITING).astype(np.int8)


def parts(array: np.ndarray):
    return (array[start : start + BATCH] for start in range(0, array.size, BATCH))


def with_join(kind: str) -> dict[str, float]:
    ids, late, y = ids_of(kind)
    join = fr.LabelJoin(seed=1)
    before, begun = resident(), time.process_time()
    for some, said in zip(parts(ids), parts(y), strict=True):
        join.predict(some, said)
    predicted, bytes_each = time.process_time() - begun, (resident() - before) / join.waiting
    largest = 0
    begun = time.process_time()
    for some, said in zip(parts(late), parts(y), strict=True):
        join.label(some, said)
        largest = max(largest, resident())
    labelled = time.process_time() - begun
    assert join.counts["pairs"] == WAITING
    return {
        "bytes": bytes_each,
        "bytes while labels come": (largest - before) / WAITING,
        "predictions a second": WAITING / predicted,
        "labels a second": WAITING / labelled,
    }


def with_dict(kind: str) -> dict[str, float]:
    ids, late, y = ids_of(kind)
    table: dict[object, int] = {}
    before, predicted, labelled = resident(), 0.0, 0.0
    for some, said in zip(parts(ids), parts(y), strict=True):
        listed, codes = some.tolist(), said.tolist()  # the ids live on in the dict, so they count
        begun = time.process_time()
        for one, code in zip(listed, codes, strict=True):
            table[one] = code
        predicted += time.process_time() - begun
    bytes_each = (resident() - before) / WAITING
    for some, said in zip(parts(late), parts(y), strict=True):
        listed, codes = some.tolist(), said.tolist()
        begun = time.process_time()
        [(code, table.pop(one)) for one, code in zip(listed, codes, strict=True)]
        labelled += time.process_time() - begun
    return {
        "bytes": bytes_each,
        "predictions a second": WAITING / predicted,
        "labels a second": WAITING / labelled,
    }


def alone(work, kind: str) -> dict[str, float]:
    """In a process of its own, so that what one leaves behind does not count for the other."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (kind,))


def main() -> int:
    missed, figures = 0, {}
    for kind in ("integers", "text"):
        join, plain = alone(with_join, kind), alone(with_dict, kind)
        ratios = {name: join[name] / plain[name] for name in plain}
        figures[kind] = {"join": join, "dict": plain, "ratio": ratios}
        print(f"\n{kind}: {WAITING:,} predictions waiting, labels in random order")
        for name, value in join.items():
            beside = f"   dict {plain[name]:14,.0f}   ratio {ratios[name]:.2f}" if name in plain else ""
            print(f"  {name:24} {value:14,.0f}{beside}")
        marks = {
            f"at most {MOST_BYTES} bytes, at any moment": max(join["bytes"], join["bytes while labels come"])
            <= MOST_BYTES,
        }
        if kind == "integers":
            marks[f"at least {LEAST_LABELS / 1e6:g} million labels a second"] = join["labels a second"] >= LEAST_LABELS
        for text, reached in marks.items():
            print(f"  {text}: {'yes' if reached else 'NO'}")
            missed += not reached
    Path("build").mkdir(exist_ok=True)
    Path("build/join.json").write_text(json.dumps({"waiting": WAITING, "batch": BATCH, **figures}, indent=1) + "\n")
    print("every mark reached" if not missed else f"{missed} marks missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

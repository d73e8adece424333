"""DDM and EDDM against river's: one event at a time in a plain Python loop, and in one batch.

    python benchmarks/baselines_speed.py

Every line is a ratio of two times taken in this run, each the best of several turns taken alternately, so that a busy
machine disturbs both alike. Ends with status 1 if a mark is missed: an update no slower than river's, a batch at least
50 times as fast as river's loop.
"""

from __future__ import annotations

import sys
from typing import Any

from river.drift import binary
from turns import best

import fourrates as fr
from fourrates.streams import SCENARIOS

LOOP = 100_000
BATCH = 1_000_000
PEERS: dict[Any, Any] = {fr.baselines.DDM: binary.DDM, fr.baselines.EDDM: binary.EDDM}


def ours(kind: Any, events: list[tuple[int, int]]) -> int:
    detector, alarms = kind(), 0
    for truth, pred in events:
        detector.update(truth, pred)
        alarms += detector.drift_detected
    return alarms


def theirs(kind: Any, events: list[tuple[int, int]]) -> int:
    detector, alarms = kind(), 0
    for truth, pred in events:
        detector.update(truth != pred)
        alarms += detector.drift_detected
    return alarms


def main() -> int:
    # One concept, so that alarms, which cost a report, are as rare as they are in use; one event in five is an error.
    truth, pred = SCENARIOS["Balance1"].stream(seed=1, length=BATCH, change=BATCH)
    events = list(zip(truth[:LOOP].tolist(), pred[:LOOP].tolist(), strict=True))
    missed = 0
    for own, peer in PEERS.items():
        name = own.__name__
        update, peer_update, batch = best(
            lambda own=own: ours(own, events),
            lambda peer=peer: theirs(peer, events),
            lambda own=own: own().update_many(truth, pred),
        )
        update, peer_update, batch = update / LOOP, peer_update / LOOP, batch / BATCH
        print(
            f"{name}: microseconds per event {1e6 * update:.3f} (update), {1e6 * batch:.4f} (update_many), "
            f"river {1e6 * peer_update:.3f}"
        )
        slower, faster = update / peer_update, peer_update / batch
        for line, ratio, good in (
            (f"{name}.update / river {name}.update, at most 1", slower, slower <= 1),
            (f"river {name}.update / {name}.update_many, at least 50", faster, faster >= 50),
        ):
            missed += not good
            print(f"  {line:<56} {ratio:8.2f}   {'yes' if good else 'NO'}")
    print("every mark reached" if not missed else f"{missed} marks missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

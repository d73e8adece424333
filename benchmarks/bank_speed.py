"""A bank of a million streams: events a second, bytes a stream, and whether single detectors find the same.

50 million events in random key order, in batches of a million, with FourRates and with the paper's LFR, whose
keys are arbitrary integers of 64 bits. Speed is by the wall clock, on all processors, of a machine that does
nothing else; events per second of processor time, of all threads together, stand next to it. Ends with status 1 if a
mark is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import keep

import fourrates as fr
from fourrates.bank.taking import processors
from fourrates.findings import KeyedFinding

STREAMS, EVENTS, BATCH = 1_000_000, 50_000_000, 1_000_000
CHECKED = 1_000  # streams held against a detector of their own
ARL = 1_000_000
marks: list[bool] = []
numbers: dict[str, Any] = {"threads": processors(), "streams": STREAMS, "events": EVENTS, "banks": []}


def four_rates() -> fr.FourRates:
    return fr.FourRates(ARL)


def linear() -> fr.LFR:
    return fr.LFR(0.9, arl=ARL)


def state(detector: fr.LFR | fr.FourRates) -> str:
    """Where a stream stands, to the last digit."""
    return repr((detector.events, detector.warning_detected, dict(detector.rates)))


def mark(text: str, reached: bool) -> None:
    marks.append(reached)
    print(f"{text}: {'yes' if reached else 'NO'}")


def batches(keys: np.ndarray, seed: int):
    """Keys in random order and pairs; one stream in forty goes wrong half-way."""
    random = np.random.default_rng(seed)
    for start in range(0, EVENTS, BATCH):
        slot = random.integers(0, STREAMS, BATCH)
        truth = random.random(BATCH, np.float32) < 0.3
        wrong = np.where((slot % 40 == 0) & (start >= EVENTS // 2), np.float32(0.7), np.float32(0.1))
        yield slot, keys[slot], truth, truth ^ (random.random(BATCH, np.float32) < wrong)


def run(name: str, make: Callable[[], Any], keys: np.ndarray, least: float, most: int) -> float:
    """Fill a bank; seconds of processor time an event, of all threads."""
    bank = fr.Bank(make())
    processor = wall = 0.0
    drifts: list[KeyedFinding] = []
    sampled = []
    for slot, batch, truth, pred in batches(keys, seed=1):
        begun, clock = time.process_time(), time.perf_counter()
        drifts += bank.update(batch, truth, pred)
        processor += time.process_time() - begun
        wall += time.perf_counter() - clock
        part = slot % (STREAMS // CHECKED) == 0
        sampled.append((slot[part], truth[part], pred[part]))
    speed, size = EVENTS / processor / 1e6, bank.nbytes / len(bank)
    print(f"\n{name}: {len(bank):,} streams, {bank.events:,} events, {len(drifts):,} drifts")
    print(f"million events a second: {speed:.1f} of processor time, {EVENTS / wall / 1e6:.1f} by the wall clock")
    numbers["banks"].append({"bank": name, "speed": speed, "wall": EVENTS / wall / 1e6, "bytes": size})
    mark(f"  at least {least:g} by the wall clock, with {bank.threads} threads", EVENTS / wall / 1e6 >= least)
    mark(f"  {size:.0f} bytes a stream; at most {most:,}", size <= most)
    slot, truth, pred = map(np.concatenate, zip(*sampled, strict=True))
    chosen = range(0, STREAMS, STREAMS // CHECKED)
    alone = {int(keys[one]): make() for one in chosen}
    expected = [
        (int(keys[one]), drift)
        for one in chosen
        for drift in alone[int(keys[one])].update_many(truth[slot == one], pred[slot == one])
    ]
    found = [(one.key, one.finding) for one in drifts if one.key in alone]
    same = sorted(found, key=repr) == sorted(expected, key=repr)
    same &= all(state(bank[key]) == state(one) for key, one in alone.items())
    mark(f"  {CHECKED:,} streams ({len(expected)} drifts) as one detector for each key leaves them", same)
    return processor / EVENTS


def dictionary_loop() -> float:
    """Seconds of processor time an event with one detector for each key, in a plain loop."""
    random = np.random.default_rng(2)
    detectors = {key: linear() for key in range(1000)}
    keys = random.integers(0, 1000, 300_000).tolist()
    begun = time.process_time()
    for key in keys:
        detectors[key].update(1, 1)
    return (time.process_time() - begun) / len(keys)


def one_stream() -> float:
    """Seconds of processor time an event of one stream in one batch."""
    random = np.random.default_rng(3)
    truth = random.random(10_000_000) < 0.3
    pred = truth ^ (random.random(truth.size) < 0.1)
    begun = time.process_time()
    linear().update_many(truth, pred)
    return (time.process_time() - begun) / truth.size


def main() -> int:
    linear(), four_rates()  # the tables, before the clock starts
    arbitrary = np.random.default_rng(4).integers(-(2**63), 2**63 - 1, STREAMS)
    run("FourRates, arbitrary keys of 64 bits", four_rates, arbitrary, 3.5, 1_450)
    own = run("LFR, arbitrary keys of 64 bits", linear, arbitrary, 4, 200)
    loop, alone = dictionary_loop(), one_stream()
    print("\nper event, by processor time:")
    print(f"a dictionary of 1,000 detectors in a plain loop / the bank   {loop / own:8.2f}")
    print(f"the bank / LFR.update_many on one stream                     {own / alone:8.2f}")
    keep("bank_speed", numbers | {"loop over bank": loop / own, "bank over alone": own / alone})
    print("every mark reached" if all(marks) else f"{marks.count(False)} marks missed")
    return 0 if all(marks) else 1


if __name__ == "__main__":
    sys.exit(main())

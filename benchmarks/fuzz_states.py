"""Bytes from anywhere may be refused, never believed: saved states, changed at random and their checksums mended.

Records of single detectors and whole files, of detectors and of banks, are changed and loaded; of watches, joins,
nights and monitors also what their JSON says. What is not refused with a ValueError must take events, report and be
saved again, without any other error or warning, in little time and memory. And the other way round: of what a detector
itself saved, over streams of every sort, nothing may be refused.

    python benchmarks/fuzz_states.py [--records 1000000] [--files 100000] [--banks 100000] [--watches 20000] [--seed 1]

Prints how many of each were refused and how many ran; each kind of failure is shown with bytes that made it, and the
exit status is 1. `make fuzz` also runs it on kernels built with AddressSanitizer.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import json
import math
import struct
import sys
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fourrates as fr
from fourrates.io import InputError
from fourrates.io.cohorts import Cohorts
from fourrates.serve.batch import EVENTS, Batch
from fourrates.serve.config import MonitorConfig
from fourrates.serve.monitor import Monitor
from fourrates.serve.settings import Settings
from fourrates.state import pack, unpack

SECONDS = 5.0  # the longest that one of them may take
INTERESTING = [
    struct.pack(form, value)
    for form, values in (
        ("<f", (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-30, 3e38, np.inf, -np.inf, np.nan, 1e9, 255.0, 256.0, 1e30)),
        ("<d", (0.0, 1.0, -1.0, 5e-324, 1e308, np.inf, np.nan, 0.5, 1e15)),
        ("<i", (0, 1, -1, 2, 3, 2**31 - 1, -(2**31), 6, 255)),
        ("<q", (0, 1, -1, 2**63 - 1, -(2**63), 2**47, 2**53, 2**62, 1000, 64, 1 << 16)),
    )
    for value in values
]


def streams(classes: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of events whose concept changes every 150 events."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, size)
    right = random.random(size) < np.where(np.arange(size) // 150 % 2, 0.45, 0.9)
    return truth, np.where(right, truth, (truth + random.integers(1, classes, size)) % classes)


def detectors() -> list[Any]:
    """Every kind of detector, with and without what it may be given."""
    reference = (np.full((5, 5), 10) + np.eye(5, dtype=int) * 400).tolist()
    return [
        fr.FourRates(200),
        fr.FourRates(200, mix="ignore", dispersion=1.5),
        fr.FourRates(200, mix="alarm", reference=[[90, 10], [30, 70]]),
        fr.FourRates(200, labels=range(5), reference=reference),
        fr.FourRates(200, labels=range(3), sides="down"),
        fr.FourRates(200, tolerance=0.05, reference=[[90, 10], [30, 70]]),
        fr.FourRates(200, tolerance={"tnr": 0.1, "tpr": 0.02}, learning=True),
        fr.FourRates(200, strata=7),
        fr.FourRates(200, labels=range(3), strata="day", mix="alarm"),
        fr.FourRates(200, sampled=True),
        fr.LFR(warn=0.1, detect=0.01),
        fr.LFR((0.8, 0.94), warn=0.1, detect=0.01),
        fr.LFR(warn=0.1, detect=0.01, labels=range(4)),
        fr.baselines.DDM(warn=1.0, detect=1.5, minimum=5),
        fr.baselines.DDMOCI(warn=1.0, detect=2.0, minimum=5),
        fr.baselines.EDDM(minimum=5),
        fr.baselines.NFR(warn=0.2, detect=0.02, minimum=5),
        fr.baselines.PerfSim(warn=0.97, detect=0.9, batch=7),
        fr.baselines.ThreeMeasures(warn=2.0, detect=4.0, batch=7, history=3),
    ]


def take(detector: Any, truth: Any, pred: Any) -> None:
    """Give it events, with the strata and the probabilities of their labels if it asks for them."""
    asked = detector.parameters
    number = {"day": 24, "week": 7}.get(asked.get("strata"), asked.get("strata"))
    more = {} if number is None else {"strata": np.arange(len(truth)) // 10 % number}
    if asked.get("sampled"):
        more["probability"] = np.column_stack(
            [np.where(np.arange(len(truth)) % 3, 0.5, 0.04), np.full(len(truth), 0.3)]
        )
    detector.update_many(truth, pred, **more)


def fed() -> list[Any]:
    """Each of them fresh, after some events, and in the middle of a change."""
    found = []
    for one in detectors():
        for size in (0, 40, 170, 700, 3_000):
            detector = one.clone()
            take(detector, *streams(len(detector.labels.values), size, size))
            found.append(detector)
    return found


def changed(random: np.random.Generator, saved: bytes) -> bytearray:
    """The bytes with one to four changes: a bit, a byte, a telling number where one may lie, or a stretch of noise."""
    body = bytearray(saved)
    for _ in range(int(random.integers(1, 5))):
        place, how = int(random.integers(len(body))), int(random.integers(8))
        if how == 0:
            body[place] ^= 1 << int(random.integers(8))
        elif how == 1:
            body[place] = int(random.integers(256))
        elif how == 2:
            noise = random.bytes(int(random.integers(1, 40)))
            body[place : place + len(noise)] = noise[: len(body) - place]
        elif how == 3:  # a number of any size
            value = struct.pack("<f", float(np.float32(random.standard_normal() * 10.0 ** random.integers(-30, 30))))
            place &= ~3
            body[place : place + 4] = value[: len(body) - place]
        elif how == 4:  # a count of any size
            value = struct.pack("<q", int(random.integers(0, 2 ** int(random.integers(1, 63)))))
            place &= ~7
            body[place : place + 8] = value[: len(body) - place]
        else:
            value = INTERESTING[int(random.integers(len(INTERESTING)))]
            place = place // len(value) * len(value)
            body[place : place + len(value)] = value[: len(body) - place]
    return body


def mended(body: bytes | bytearray) -> bytes:
    """With a checksum that fits."""
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def use(detector: Any) -> None:
    """Let a detector do all that it can do."""
    labels = detector.labels.values
    truth, pred = streams(len(labels), 60, 5)
    named = [labels[code] for code in truth], [labels[code] for code in pred]
    take(detector, *named)
    take(detector, *(side[:1] for side in named))
    take(detector, *(side * 4 for side in named))
    for finding in detector.findings[:5]:
        str(finding)
    if isinstance(detector, fr.FourRates):
        str(detector.open)
        _ = [state.now_in_words for state in detector.rates.values()], detector.alarmed
        other = fr.FourRates.from_bytes(detector.to_bytes()) if detector.events < 2**46 else detector
        other.accept(force=True)
        take(other, *(side[:1] for side in named))
    _ = detector.rates, detector.status, detector.warning_since, detector.earliest_start
    if detector.events < 2**46:  # the end of the world is near: what goes beyond is refused
        type(detector).from_bytes(detector.to_bytes())


def records(random: np.random.Generator) -> Iterator[tuple[bytes, Callable[[bytes], Any]]]:
    """Records that a detector of known settings is to go on from."""
    kinds = [(detector, detector.clone(), detector.record_bytes) for detector in fed()]
    while True:
        _, other, record = kinds[int(random.integers(len(kinds)))]

        def load(body: bytes, other: Any = other) -> Any:
            other.restore(body)
            return other

        yield bytes(changed(random, record)), load


def files(random: np.random.Generator) -> Iterator[tuple[bytes, Callable[[bytes], Any]]]:
    """Whole states, settings and all; and one event over each."""
    kinds = [(type(detector), detector.to_bytes()[:-4]) for detector in fed()]
    while True:
        kind, body = kinds[int(random.integers(len(kinds)))]

        def load(saved: bytes, kind: Any = kind) -> Any:
            detector = kind.from_bytes(saved)
            take(detector, detector.labels.values[:1], detector.labels.values[1:2])
            return kind.from_bytes(detector.to_bytes())

        yield mended(changed(random, body)), load


def banks(random: np.random.Generator) -> Iterator[tuple[bytes, Callable[[bytes], Any]]]:
    """Whole files of banks, some with references by key."""
    saved = []
    keys: tuple[list[Any], ...] = ([1, 2, 3, 70], ["a", 5, 2**64 - 1, (1, "b"), b"c", 2**70], [10**15, -7])
    made = [(fr.Bank(one), names) for one, names in itertools.product(detectors()[:7], keys)]
    for names, after in itertools.product(keys, ("hold", "restart")):
        references = {name: [[900 + i, 100], [200, 800 + i]] for i, name in enumerate(names[1:])}
        made.append((fr.Bank(fr.FourRates(200, after=after), reference=references), names))
    for bank, names in made:
        for size in (1, 900):
            truth, pred = streams(len(bank.labels.values), size, 3)
            bank.update([names[i % len(names)] for i in range(size)], truth, pred)
            saved.append(bank.to_bytes()[:-4])
            bank.start_period()
    while True:
        yield mended(changed(random, saved[int(random.integers(len(saved)))])), fr.Bank.from_bytes


HOSTILE: list[Any] = [
    *(
        None,
        0,
        -1,
        1,
        2,
        7,
        256,
        2**31,
        2**53,
        2**62,
        2**63 - 1,
        2**63,
        -(2**63),
        10**30,
        0.5,
        1e308,
        math.nan,
        math.inf,
    ),
    *(True, False, "", "a", "x" * 300, "\ud800", "\0", "week", "LFR", [], {}, [1], [[]], {"a": 1}, [None], ["a", "a"]),
]


def told(random: np.random.Generator, about: Any) -> Any:
    """What the JSON of a state says, with one to three values changed, left out or there twice."""
    about = copy.deepcopy(about)
    for _ in range(int(random.integers(1, 4))):
        inner, key = None, None
        place = about
        while isinstance(place, dict | list) and place and (inner is None or random.random() < 0.8):
            inner, key = (
                place,
                (
                    [*place][int(random.integers(len(place)))]
                    if isinstance(place, dict)
                    else int(random.integers(len(place)))
                ),
            )
            place = inner[key]
        if inner is None:
            continue
        how = int(random.integers(5))
        if how == 0 and isinstance(inner, dict):
            del inner[key]
        elif how == 1 and isinstance(inner, list):
            inner.append(copy.deepcopy(place))
        elif how == 2 and type(place) in (int, float):
            inner[key] = place + [1, -1, 2**40, -(2**40)][int(random.integers(4))]
        else:
            inner[key] = copy.deepcopy(HOSTILE[int(random.integers(len(HOSTILE)))])
    return about


def watched(size: int) -> dict[str, Any]:
    """Events in segments, in the middle of a change."""
    truth, pred = streams(2, size, 3)
    times = np.datetime64("2026-09-01", "s") + 900 * np.arange(size)
    return {"y_true": truth, "y_pred": pred, "k": np.array(["a", "b", "c"])[np.arange(size) % 3], "time": times}


def served(first: int, size: int) -> Any:
    """The same, as the service has them."""
    data = {name: column[first : first + size] for name, column in watched(first + size).items()}
    names, codes = np.unique(data["k"], return_inverse=True)
    batch = Batch(EVENTS, 2e9, size, bytes(data["y_true"].tolist()), bytes(data["y_pred"].tolist()))
    batch.times = data["time"].astype(np.int64).astype("<f8").tobytes()
    batch.segments, batch.segment_codes = [json.dumps([one]) for one in names.tolist()], codes.astype("<u4").tobytes()
    return batch


def watches(random: np.random.Generator) -> Iterator[tuple[bytes, Callable[[bytes], Any]]]:
    """What doors keep: watches, joins of late labels, nights of them, monitors of the service."""
    week, reference = fr.FourRates(200, strata="week"), [[90, 10], [30, 70]]
    kept: list[Any] = [
        fr.Watch(fr.FourRates(200)),
        fr.Watch(fr.FourRates(200, tolerance=0.02, reference=reference), "k"),
        fr.Watch(week, "k", time="time", overall=week.clone()),
        fr.Watch(fr.FourRates(200), "k", references={"a": reference}),
        fr.Watch(fr.baselines.DDM(warn=1.0, detect=1.5, minimum=5), "k"),
    ]
    for watch in kept:
        watch.update(watched(1_500))
    join, nights = fr.LabelJoin(seed=1), Cohorts(fr.LabelJoin(seed=1))
    numbers, codes = np.arange(40), np.arange(40) % 2
    tags = nights.add(numbers, codes, None, numbers.astype(float), 0)
    nights.names, nights.files = ["x", "y"], ["a"]
    nights.join.predict(numbers, codes, tags=tags)
    nights.pair(nights.join.label(numbers[:20], codes[:20]), None)
    join.predict(numbers, codes, tags=numbers)
    join.label(numbers[20:] + 10, codes[20:])
    monitor = Monitor(MonitorConfig(arl=200, by=["k"]), bytes(16), Settings(data=Path()))
    for first in range(0, 1_500, 500):
        monitor.apply(served(first, 500))
    load = partial(Monitor.restore, key=bytes(16), settings=Settings(data=Path()))
    saved = [(one.to_bytes(), type(one).from_bytes) for one in (*kept, join, nights)] + [(monitor.snapshot(), load)]
    while True:
        state, load = saved[int(random.integers(len(saved)))]
        if random.random() < 0.3:
            yield mended(changed(random, state[:-4])), load
        else:
            found = unpack(state)
            try:
                yield pack(found.kind, told(random, found.about), **found.sections), load
            except (ValueError, OverflowError):  # what JSON cannot say
                continue


def use_kept(one: Any) -> None:
    """Let a watch, a join or a monitor do all that it can do; events of other labels are refused."""
    if isinstance(one, Monitor):
        one.apply(served(1_500, 100))
        one.watch.now()
        one.snapshot()
    elif isinstance(one, Cohorts):
        _ = [*one.batches(True, False)], one.ripe_until(), one.drop(), one.to_bytes()
    elif isinstance(one, fr.LabelJoin):
        labels = np.array([one.parameters["labels"][0]] * 3, object).tolist()
        one.predict([7, 8, 9], labels)
        one.label([7, 8, 9], labels)
        fr.LabelJoin.from_bytes(one.to_bytes())
    else:
        with contextlib.suppress(InputError):
            one.update(watched(100))
        one.now().to_json()
        for segment in one.open_since:
            one.accept(segment)
        fr.Watch.from_bytes(one.to_bytes())


def own(random: np.random.Generator) -> Iterator[tuple[bytes, Callable[[bytes], Any]]]:
    """States as they are, along streams of any rate and mix of classes, some of which change."""

    def load(saved: bytes, kind: Any) -> Any:
        try:
            return kind.from_bytes(saved)
        except ValueError as error:
            raise AssertionError(f"a state of its own was refused: {error}") from error

    while True:
        for one in detectors():
            if isinstance(one, fr.FourRates):
                one = fr.FourRates(**one.parameters | {"arl": float(np.round(10 ** random.uniform(2, 6)))})
            classes, detector = len(one.labels.values), one.clone()
            shares, rate = random.dirichlet(np.full(classes, 0.7)), 1 - 10 ** random.uniform(-4, 0)
            for _ in range(12):
                if random.random() < 0.2:
                    rate = 1 - 10 ** random.uniform(-4, 0)
                size = int(10 ** random.uniform(0, 3))
                truth = random.choice(classes, size, p=shares)
                wrong = (truth + random.integers(1, classes, size)) % classes
                take(detector, truth, np.where(random.random(size) < rate, truth, wrong))
                yield detector.to_bytes(), partial(load, kind=type(detector))


def use_bank(bank: fr.Bank) -> None:
    """Let a bank do all that it can do."""
    labels = bank.labels.values
    truth, pred = ([labels[code] for code in side] for side in streams(len(labels), 60, 5))
    for key in itertools.islice(bank, 3):
        bank.update([key] * 60, truth, pred)
        _ = bank[key].rates, bank[key].status
    for found in bank.update(["a", 5, "new"] * 20, truth, pred):
        str(found)
    if isinstance(bank.detector, fr.FourRates):
        bank.discoveries(0.5)
    bank.evict(idle=100)
    fr.Bank.from_bytes(bank.to_bytes())


USES: dict[type, Callable[[Any], None]] = {fr.Bank: use_bank}
USES |= dict.fromkeys((fr.Watch, fr.LabelJoin, Cohorts, Monitor), use_kept)


def fuzz(
    source: Iterator[tuple[bytes, Callable[[bytes], Any]]], count: int, seconds: float = SECONDS
) -> tuple[Counter[str], dict[str, bytes]]:
    """Try so many: how many of each outcome, and each way in which one went wrong with the bytes that did."""
    outcomes: Counter[str] = Counter()
    wrong: dict[str, bytes] = {}
    for saved, load in itertools.islice(source, count):
        began = time.process_time()  # of this process alone: others may keep the machine busy
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    found = load(saved)
                except ValueError:
                    outcomes["refused"] += 1
                    continue
                USES.get(type(found), use)(found)
                outcomes["ran"] += 1
        except Exception as error:
            outcomes["went wrong"] += 1
            frames = [
                f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)
            ]
            wrong.setdefault(f"{type(error).__name__}: {error}: {' '.join(frames[1:])}", saved)
        took = time.process_time() - began
        if took > seconds:
            outcomes["went wrong"] += 1
            wrong.setdefault(f"took more than {seconds:g} seconds", saved)
    return outcomes, wrong


def main() -> int:
    import resource  # not on every system

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (
        ("records", 1_000_000),
        ("files", 100_000),
        ("banks", 100_000),
        ("watches", 20_000),
        ("own", 20_000),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    asked = parser.parse_args()
    counts, status = {}, 0
    for name, source in (("records", records), ("files", files), ("banks", banks), ("watches", watches), ("own", own)):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcomes, wrong = fuzz(source(np.random.default_rng(asked.seed)), getattr(asked, name))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        counts[name] = dict(outcomes) | {"megabytes": round(grown), "seconds": round(time.perf_counter() - began)}
        print(f"{name}: {counts[name]}", flush=True)
        for what, saved in wrong.items():
            print(f"  {what}\n    {saved.hex()}")
            status = 1
    if asked.out:
        asked.out.write_text(json.dumps(counts, indent=2) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Time per event against river's detectors and against a loop that does nothing but the four means.

Every line is a ratio of two times taken in this run, each the best of several turns taken alternately, so that a busy
machine disturbs both alike. Ends with status 1 if a mark is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pyximport
from river.drift import ADWIN
from river.drift.binary import DDM
from turns import best

import fourrates as fr

pyximport.install(language_level=3, inplace=False)
import bare  # noqa: E402

LOOP = 200_000
QUIET = 1e-9  # no alarm interrupts the loops that are timed


def stream(size: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(classes)
    truth = random.integers(0, classes, size, dtype=np.uint16)
    other = (truth + random.integers(1, classes, size, dtype=np.uint16)) % classes
    return truth, np.where(random.random(size) < 0.9, truth, other)


def pairs_loop(make: Callable[[], fr.LFR | fr.FourRates], events: list[tuple[int, int]]) -> Callable[[], int]:
    def run() -> int:
        detector, alarms = make(), 0
        for truth, pred in events:
            detector.update(truth, pred)
            if detector.drift_detected:
                alarms += 1
        return alarms

    return run


def errors_loop(make: Callable[[], ADWIN | DDM], events: list[tuple[int, int]]) -> Callable[[], int]:
    def run() -> int:
        detector, alarms = make(), 0
        for truth, pred in events:
            detector.update(truth != pred)
            if detector.drift_detected:
                alarms += 1
        return alarms

    return run


missed = 0


def report(name: str, ratio: float, mark: float | None, at_most: bool = True) -> None:
    global missed
    if mark is None:
        print(f"{name:<64} {ratio:8.2f}")
        return
    good = ratio <= mark if at_most else ratio >= mark
    missed += not good
    print(f"{name:<64} {ratio:8.2f}   {'at most' if at_most else 'at least'} {mark:g}: {'yes' if good else 'NO'}")


def main() -> int:
    truth, pred = stream(10_000_000)
    events = list(zip(truth[:LOOP].tolist(), pred[:LOOP].tolist(), strict=True))

    def quiet() -> fr.LFR:
        return fr.LFR(detect=QUIET)

    def budget(classes: int = 2) -> fr.FourRates:
        return fr.FourRates(1e9, labels=range(classes))

    quiet(), budget(), budget(50)  # the tables, before the clock starts
    ours, four, adwin, ddm, empty = best(
        pairs_loop(quiet, events),
        pairs_loop(budget, events),
        errors_loop(ADWIN, events),
        errors_loop(DDM, events),
        lambda: [None for truth, pred in events if truth > 1],
    )
    names = ("LFR", "FourRates", "river ADWIN", "river DDM", "nothing")
    taken = zip(names, (ours, four, adwin, ddm, empty), strict=True)
    told = ", ".join(f"{name} {1e6 * seconds / LOOP:.3f}" for name, seconds in taken)
    print(f"microseconds per event in a plain Python loop: {told}")
    report("LFR.update / river ADWIN.update", ours / adwin, 0.6)
    report("FourRates.update / river ADWIN.update", four / adwin, 0.6)
    report("LFR.update / river DDM.update", ours / ddm, 0.3)

    batch, means = best(lambda: quiet().update_many(truth, pred), lambda: bare.four_means(truth, pred, 0.9))
    print(
        f"million events a second: LFR.update_many {truth.size / batch / 1e6:.0f}, "
        f"four means and no bounds {truth.size / means / 1e6:.0f}"
    )
    report("river DDM.update / LFR.update_many, per event", ddm / LOOP / (batch / truth.size), 20, at_most=False)
    report("LFR.update_many / four means and no bounds", batch / means, None)

    many, of = stream(10_000_000, 50)
    for size, mark in ((10**7, 1.5), (10**5, None)):  # fifty classes take fifty times as long to get going
        wide, narrow = best(
            lambda size=size: fr.LFR(detect=QUIET, labels=range(50)).update_many(many[:size], of[:size]),
            lambda size=size: quiet().update_many(truth[:size], pred[:size]),
        )
        report(f"50 classes / 2 classes, per event of {size:,}", wide / narrow, mark)
    wide, narrow = best(lambda: budget(50).update_many(many, of), lambda: budget().update_many(truth, pred))
    report(f"FourRates, 50 classes / 2 classes, per event of {many.size:,}", wide / narrow, 1.5)
    for size in (10**4, 10**5, 10**6, 10**7):
        part = slice(size)
        four, ours = best(
            lambda part=part: [budget().update_many(truth[part], pred[part]) for _ in range(10**7 // part.stop)],
            lambda part=part: [quiet().update_many(truth[part], pred[part]) for _ in range(10**7 // part.stop)],
        )
        report(f"FourRates / LFR, per event of {size:,} ({1e2 * four:.1f} ns)", four / ours, 3.5)

    first = None
    for size in (10**4, 10**5, 10**6, 10**7, 10**8):
        repeats = max(1, 10**7 // size)
        whole = size // truth.size or 1
        part = slice(min(size, truth.size))

        def run(repeats: int = repeats, whole: int = whole, part: slice = part) -> None:
            for _ in range(repeats):
                detector = quiet()
                for _ in range(whole):
                    detector.update_many(truth[part], pred[part])

        (seconds,) = best(run, turns=7 if size < 10**8 else 1)
        cost = seconds / (repeats * size)
        first = first or cost
        report(f"{size:,} events / 10,000 events, per event ({1e9 * cost:.1f} ns)", cost / first, 1.25)
    print("every mark reached" if not missed else f"{missed} marks missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

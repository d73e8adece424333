"""Changes of any size: the delay of FourRates over that of a CUSUM that knows both concepts, at the same run length.

Ten changes of tnr after 50,000 stable events and after 5,000, two gradual ones, and thirty that a seed draws: rates,
sizes, class shares and directions nobody chose. Streams with a false alarm before the change are drawn again. River's
ADWIN, Page-Hinkley and HDDM_W watch the errors of such streams, tuned to the same run length, with --river.
With --reference the same streams are watched against a reference of that many events, drawn from the old concept, after
1,000 events and after 50,000.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import Concept, draw, first_alarm, keep, limit

import fourrates as fr

ARL = 100_000
CHANGES = (
    (0.9, 0.6), (0.9, 0.8), (0.9, 0.87), (0.9, 0.88), (0.7, 0.67),
    (0.8, 0.86), (0.99, 0.98), (0.999, 0.99), (0.999, 0.998), (0.99, 0.95),
)  # fmt: skip
MOST = 100_000  # events after the change


def delays(before: Concept, after: Concept, history: int, streams: int, seed: int, shipped: int = 0) -> np.ndarray:
    """Events from a change to its alarm; with a reference of `shipped` events, if any."""
    random, validation = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    found: list[float] = []
    while len(found) < streams:
        detector = fr.FourRates(ARL, reference=draw(validation, shipped, before) if shipped else None)
        if detector.update_many(*draw(random, history, before), first_only=True):
            continue
        drift = first_alarm(detector, random, after, MOST)
        found.append(np.inf if drift is None else drift.at - history + 1)
    return np.array(found)


def against_reference(
    shipped: int, limits: dict[tuple[float, float], float], streams: int, seed: int
) -> dict[str, Any]:
    """The ten changes with a reference, after little history and after much: median delays over the limit."""
    found: dict[str, Any] = {}
    for history in (1_000, 50_000):
        ratios = []
        for (p, q), best in limits.items():
            late = delays(Concept(0.5, p, 0.8), Concept(0.5, q, 0.8), history, streams, seed, shipped)
            ratios.append(float(np.median(late)) / best)
            print(f"  after {history:,}: {p} -> {q} {ratios[-1]:6.2f}", flush=True)
        found[str(history)] = {"ratios": ratios, "mean": mean(ratios)}
        print(f"  geometric mean after {history:,} events {mean(ratios):.2f} (at most 1.8)", flush=True)
    return found


def gradual(width: int, streams: int, seed: int) -> float:
    random = np.random.default_rng(seed)
    old, new = Concept(0.5, 0.9, 0.8), Concept(0.5, 0.8, 0.8)
    found: list[float] = []
    while len(found) < streams:
        detector = fr.FourRates(ARL)
        if detector.update_many(*draw(random, 50_000, old), first_only=True):
            continue
        drifts = detector.update_many(*draw(random, width, old, new), first_only=True)
        drift = drifts[0] if drifts else first_alarm(detector, random, new, MOST)
        found.append(np.inf if drift is None else drift.at - 49_999)
    return float(np.median(found))


def drawn_changes(count: int, seed: int) -> list[tuple[Concept, Concept]]:
    """Changes of one recall or both, by 0.1 to 2.5 in log-odds, that a CUSUM finds within 20,000 events."""
    random = np.random.default_rng(seed)

    def moved(rate: float) -> float:
        step = random.choice([-1, 1]) * np.exp(random.uniform(np.log(0.1), np.log(2.5)))
        odds = rate / (1 - rate) * np.exp(step)
        return float(odds / (1 + odds))

    found = []
    while len(found) < count:
        positives = float(random.uniform(0.1, 0.9))
        before = Concept(positives, *(1 - np.exp(random.uniform(np.log(0.005), np.log(0.5), 2))))
        which = random.integers(3)
        after = Concept(
            positives, moved(before.tnr) if which != 1 else before.tnr, moved(before.tpr) if which != 0 else before.tpr
        )
        if max(after[1:]) < 0.9995 and limit(before, after, 20_000, streams=200) < 5_000:
            found.append((before, after))
    return found


def mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def river_detectors() -> dict[str, tuple[Callable[[float], Any], list[float]]]:
    import river.drift.binary
    from river.drift import ADWIN, PageHinkley

    weighted = getattr(river.drift.binary, "HDDMW", None) or river.drift.binary.HDDM_W  # its name before release 0.26
    return {
        "river ADWIN": (lambda x: ADWIN(delta=x), [10.0**-k for k in np.arange(1, 12, 0.5)]),
        "river PageHinkley": (
            lambda x: PageHinkley(min_instances=30, delta=0.005, threshold=x, mode="up"),
            [float(x) for x in np.geomspace(5, 400, 24)],
        ),
        "river HDDM_W": (
            lambda x: weighted(drift_confidence=x, warning_confidence=min(10 * x, 0.5)),
            [10.0**-k for k in np.arange(1, 12, 0.5)],
        ),
    }


def river(streams: int, seed: int) -> dict[str, list[float]]:
    """Median delays on the ten changes, each detector at the setting whose run length comes closest from above."""
    found = {}
    for name, (make, settings) in river_detectors().items():
        row: list[float] = []
        tuned = {p: _tuned(make, settings, Concept(0.5, p, 0.8), seed) for p in {p for p, _ in CHANGES}}
        for p, q in CHANGES:
            before, after = Concept(0.5, p, 0.8), Concept(0.5, q, 0.8)
            chosen = make(tuned[p])
            random = np.random.default_rng(seed)
            late = []
            for _ in range(streams):
                detector = chosen.clone()
                for concept, size in ((before, 10_000), (after, 30_000)):
                    truth, pred = draw(random, size, concept)
                    at = next((i for i, x in enumerate((truth != pred).tolist()) if _drifts(detector, x)), None)
                    if concept is after:
                        late.append(np.inf if at is None else at + 1)
            row.append(float(np.median(late)))
        found[name] = row
        print(name, row, flush=True)
    return found


def _drifts(detector: Any, error: bool) -> bool:
    detector.update(error)
    return bool(detector.drift_detected)


def _tuned(make: Callable[[float], Any], settings: list[float], concept: Concept, seed: int) -> float:
    truth, pred = draw(np.random.default_rng(seed + 1), 1_000_000, concept)
    errors = (truth != pred).tolist()
    low, high = 0, len(settings) - 1
    while low < high:  # the run length grows along the settings
        middle = (low + high) // 2
        detector = make(settings[middle])
        alarms = sum(_drifts(detector, x) for x in errors)
        low, high = (low, middle) if alarms <= len(errors) / ARL else (middle + 1, high)
    return settings[low]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--drawn", type=int, default=30)
    parser.add_argument("--river", type=int, default=0, metavar="STREAMS", help="only this: river's detectors")
    parser.add_argument("--reference", type=int, default=0, metavar="EVENTS", help="only this: against a reference")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    start, missed = time.time(), 0
    limits = {change: limit(Concept(0.5, change[0], 0.8), Concept(0.5, change[1], 0.8), ARL) for change in CHANGES}
    numbers: dict[str, Any] = {"arl": ARL, "streams": options.streams, "limit": [*limits.values()], "changes": CHANGES}
    if options.reference:
        numbers["reference"] = options.reference
        found = against_reference(options.reference, limits, options.streams, options.seed)
        keep("any_size_reference", numbers | found)
        return int(any(found[history]["mean"] > 1.8 for history in found))
    if options.river:
        rows = {
            name: [late / best if np.isfinite(late) else None for late, best in zip(row, limits.values(), strict=True)]
            for name, row in river(options.river, options.seed).items()
        }
        keep("any_size_river", {"streams": options.river, "rows": rows})
        print(f"{time.time() - start:.0f} s")
        return 0
    for history, most in ((50_000, 1.75), (5_000, 2.8)):
        print(f"After {history:,} stable events; median delay, over the limit, found within 20,000")
        ratios, rows = [], []
        for (p, q), best in limits.items():
            late = delays(Concept(0.5, p, 0.8), Concept(0.5, q, 0.8), history, options.streams, options.seed)
            ratios.append(float(np.median(late)) / best)
            rows.append([float(np.median(late)), round(ratios[-1], 3), float(np.mean(late <= 20_000))])
            print(f"  {p} -> {q}: {rows[-1][0]:8,.0f} {rows[-1][1]:6.2f} {rows[-1][2]:6.1%}", flush=True)
        numbers[str(history)] = {"rows": rows, "mean": mean(ratios)}
        worst = max(r for change, r in zip(limits, ratios, strict=True) if change != (0.999, 0.998))
        print(f"  geometric mean {mean(ratios):.2f} (at most {most}), largest but 0.999 -> 0.998 {worst:.2f}")
        missed += mean(ratios) > most
    for width, most in ((1_000, 899), (10_000, 5_035)):
        numbers[f"gradual {width}"] = gradual(width, options.streams, options.seed)
        late = numbers[f"gradual {width}"]
        print(f"Gradual 0.9 -> 0.8 over {width:,}: {late:,.0f} (windows had {most:,})", flush=True)
        missed += late > most
    ratios = []
    for i, (before, after) in enumerate(drawn_changes(options.drawn, options.seed)):
        late = float(np.median(delays(before, after, 50_000, options.streams // 4, options.seed + i)))
        ratios.append(late / limit(before, after, ARL, streams=600))
    numbers["drawn"] = {"ratios": ratios, "mean": mean(ratios)} if ratios else None
    if ratios:
        quarters = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(f"{len(ratios)} drawn changes: geometric mean {mean(ratios):.2f}, quartiles {np.round(quarters, 2)}")
    keep("any_size", numbers)
    print(f"{missed} marks missed; {time.time() - start:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

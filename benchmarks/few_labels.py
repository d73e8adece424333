"""Few labels: the budget of FourRates for events that are drawn for labelling, and what a plan of which to label gives.

budget: stable streams, labelled with probabilities from .5 % to 100 %, constant or other ones every day, with and
without a reference, overall and by segment: the run length over that asked for.
delay: events until a fall is found, with 1, 5 and 20 % of the labels, by a plan and by an even draw.
best: the same by the best of many ratios of the two probabilities, each tried.
coverage: how often the intervals of rates hold the truth of all events.
wrong: about 5,000 labels that came by outcome, said to be drawn by a plan: how often the data warnings name it.
predictions: false shifts of stable predictions over those asked for, and predictions until a share that grew is found.

    python benchmarks/few_labels.py [--only budget|delay|best|coverage|wrong|predictions] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from drawn import Concept, keep

import fourrates as fr
import fourrates.io

CONCEPTS = [Concept(0.01, 0.98, 0.7), Concept(0.1, 0.98, 0.7), Concept(0.4, 0.95, 0.8)]
DAY = 50  # labelled events of a day whose probabilities are its own
PAIRS = {
    "even, .5 %": (0.005, 0.005),
    "4 and 30 %": (0.04, 0.3),
    ".5 and 100 %": (0.005, 1.0),
    "100 and 10 %": (1.0, 0.1),
}
WHERE = {"tnr": (0.5, 1.0), "tpr": (1.0, 0.5), "both": (0.5, 0.5)}  # odds of being right, after the fall


def cells(concept: Concept) -> Any:
    """The joint law of truth and prediction."""
    p, tnr, tpr = concept
    return np.array([[(1 - p) * tnr, (1 - p) * (1 - tnr)], [p * (1 - tpr), p * tpr]])


def labelled(random: np.random.Generator, size: int, concept: Concept, probabilities: Any) -> tuple[Any, Any]:
    """Labelled events, where those predicted d are drawn with the d-th of these probabilities."""
    weights = (cells(concept)[None] * np.broadcast_to(probabilities, (size, 2))[:, None, :]).reshape(size, 4).cumsum(1)
    return np.divmod((random.random((size, 1)) * weights[:, 3:] >= weights[:, :3]).sum(1), 2)


def probabilities_of(random: np.random.Generator, size: int, kind: str) -> Any:
    if kind in PAIRS:
        return np.broadcast_to(np.array(PAIRS[kind]), (size, 2))
    days = np.exp(random.uniform(np.log(0.005), 0, (size // DAY + 1, 2)))
    return np.repeat(days, DAY, 0)[:size]


def given(random: np.random.Generator, concept: Concept, size: int = 20_000) -> Any:
    return random.multinomial(size, cells(concept).ravel()).reshape(2, 2)


def budget(scale: float) -> list[dict[str, Any]]:
    """The run length over that asked for."""
    found = []
    for arl in (2_000.0, 20_000.0):
        for concept in CONCEPTS:
            for kind in [*PAIRS, "other ones every day"]:
                for how in ("", "reference", "three segments"):
                    random = np.random.default_rng([int(arl), int(1000 * concept.positives), len(kind), len(how)])
                    events = alarms = 0
                    for _ in range(max(1, round(scale * (20 if arl > 5_000 else 100)))):
                        size = int(10 * arl)
                        probabilities = probabilities_of(random, size, kind)
                        pairs = labelled(random, size, concept, probabilities)
                        reference = given(random, concept) if how == "reference" else None
                        detector = fr.FourRates(arl, sampled=True, after="restart" if reference is None else "hold",
                                                reference=reference)  # fmt: skip
                        if how == "three segments":
                            bank, keys = fr.Bank(detector), random.integers(3, size=size)
                            alarms += len(bank.update(keys, *pairs, probability=probabilities))
                        else:
                            alarms += len(detector.update_many(*pairs, probability=probabilities))
                        events += size
                    ratio = events / max(alarms, 1) / arl
                    found.append({"arl": arl, "positives": concept.positives, "labelled": kind, "how": how,
                                  "ratio": ratio, "alarms": alarms})  # fmt: skip
                    print(f"{arl:>8,.0f} {concept.positives:>5} {kind:<22}{how:<16}{ratio:.2f} ({alarms})", flush=True)
    ratios = [one["ratio"] for one in found]
    inside = sum(0.8 <= ratio <= 1.3 for ratio in ratios)
    print(f"run length over asked: {min(ratios):.2f} to {max(ratios):.2f}, {inside} of {len(ratios)} in .8 to 1.3")
    return found


def fallen(concept: Concept, which: str) -> Concept:
    odds = [factor * rate / (1 - rate) for factor, rate in zip(WHERE[which], concept[1:], strict=True)]
    return Concept(concept.positives, *(one / (1 + one) for one in odds))


def mean_delay(concept: Concept, which: str, pair: Any, streams: int, seed: int) -> float:
    """Events, labelled or not, from a fall to its alarm; streams with a false alarm before it do not count."""
    random, after, waits = np.random.default_rng(seed), fallen(concept, which), []
    asked = {0: float(pair[0]), 1: float(pair[1])}
    rate = float((cells(after).sum(0) * pair).sum())
    while len(waits) < streams:
        detector = fr.FourRates(100_000, sampled=True, reference=given(random, concept))
        if detector.update_many(*labelled(random, 1_000, concept, pair), probability=asked):
            continue
        drifts: list[fr.Drift] = []
        while not drifts:
            drifts = detector.update_many(*labelled(random, 2_000, after, pair), probability=asked, first_only=True)
        waits.append((drifts[0].at + 1 - 1_000) / rate)
    return float(np.mean(waits))


def plan_of(concept: Concept, share: float, which: str | None = None) -> fr.LabelPlan:
    guard = None if which is None else {which: concept[1:][which == "tpr"] - fallen(concept, which)[1:][which == "tpr"]}
    return fr.LabelPlan(np.round(1e6 * cells(concept)).astype(int), share=share, guard=guard)


def delay(scale: float) -> list[dict[str, Any]]:
    """A plan against an even draw."""
    found, streams = [], max(5, round(600 * scale))
    for concept in CONCEPTS:
        for share in (0.01, 0.05, 0.2):
            plan = plan_of(concept, share)
            pair = np.array([*plan.probabilities.values()])
            for which in WHERE:
                seed = round(1e4 * share + 10 * concept.positives)
                planned, even = (mean_delay(concept, which, one, streams, seed) for one in (pair, np.full(2, share)))
                expected = next(one for one in plan.delays if one.fall in (which, "together"[: 8 * (which == "both")]))
                told = {"plan": planned, "even": even, "expected": expected.events, "probabilities": pair.tolist()}
                found.append({"positives": concept.positives, "share": share, "fall": which} | told)
                line = f"plan {planned:>9,.0f} (expected {expected.events:>9,.0f}) even {even:>9,.0f}"
                print(f"{concept.positives:>5} {share:>5} {which:<5} {line}: {even / planned:.2f}", flush=True)
    rare = [one["even"] / one["plan"] for one in found if one["positives"] <= 0.1 and one["fall"] != "tpr"]
    worst = max(one["plan"] / one["even"] for one in found)
    print(f"tnr and both, up to 10 % positives: {min(rare):.2f} to {max(rare):.2f} times as soon")
    print(f"plan over even at most {worst:.2f}")
    return found


def best(scale: float) -> list[dict[str, Any]]:
    """A plan that guards one fall against the best of the ratios tried."""
    found, streams = [], max(5, round(100 * scale))
    for concept in CONCEPTS:
        rates = cells(concept).sum(0)
        for which in ("tnr", "tpr"):
            share, tried = 0.05, {}
            for ratio in 2.0 ** np.arange(-3, 8):
                pair = share / (rates @ [1, ratio]) * np.array([1, ratio])
                if pair.max() <= 1:
                    tried[float(ratio)] = mean_delay(concept, which, pair, streams, 7)
            pair = np.array([*plan_of(concept, share, which).probabilities.values()])
            planned, soonest = mean_delay(concept, which, pair, streams, 7), min(tried.values())
            found.append({"positives": concept.positives, "fall": which, "plan": planned, "best": soonest})
            line = f"plan {planned:>9,.0f} at a ratio of {pair[1] / pair[0]:.1f}, best of {len(tried)} {soonest:>9,.0f}"
            print(f"{concept.positives:>5} {which} {line}: {planned / soonest:.2f}", flush=True)
    print(f"plan over the best: at most {max(one['plan'] / one['best'] for one in found):.2f}")
    return found


def coverage(scale: float) -> list[dict[str, Any]]:
    """Intervals of rates: now, and the normal learned."""
    found, streams = [], max(20, round(1_000 * scale))
    for concept in CONCEPTS:
        p, tnr, tpr = concept
        truth = {
            "tnr": tnr,
            "tpr": tpr,
            "npv": (1 - p) * tnr / cells(concept)[:, 0].sum(),
            "ppv": p * tpr / cells(concept)[:, 1].sum(),
        }
        for kind in ("4 and 30 %", "other ones every day"):
            random, held = (
                np.random.default_rng(round(100 * p)),
                {(rate, what): 0 for rate in truth for what in ("now", "baseline")},
            )
            for _ in range(streams):
                probabilities = probabilities_of(random, 3_000, kind)
                detector = fr.FourRates(1e6, sampled=True)
                detector.update_many(*labelled(random, 3_000, concept, probabilities), probability=probabilities)
                for rate, what in held:
                    interval = getattr(detector.rates[rate], what)
                    held[rate, what] += interval is not None and interval.lower <= truth[rate] <= interval.upper
            shares = {f"{rate} {what}": n / streams for (rate, what), n in held.items() if n}
            found.append({"positives": p, "labelled": kind, **shares})
            print(p, kind, " ".join(f"{name} {share:.3f}" for name, share in shares.items()), flush=True)
    return found


def wrong(scale: float) -> dict[str, float]:
    """How often it is named that labels do not fit the plan."""
    found, streams = {}, max(20, round(400 * scale))
    _, concept, _ = CONCEPTS
    pair = np.array([*plan_of(concept, 0.05).probabilities.values()])
    for kind in ("as drawn", "by outcome", "errors twice as often"):
        named = 0
        for seed in range(streams):
            random = np.random.default_rng(seed)
            truth, pred = labelled(random, 100_000, concept, np.ones(2))
            own, other = pair[pred], pair[1 - pred]
            chances = {"as drawn": own, "by outcome": pair[truth], "errors twice as often": own * (1 + (truth != pred))}
            known = random.random(truth.size) < chances[kind]
            frame = {"y_true": [one if there else None for one, there in zip(truth.tolist(), known, strict=True)]}
            events = fr.io.read(frame | {"y_pred": pred, "label_probability": own, "other_probability": other})
            for _ in events:
                pass
            named += "labelled" in events.data_warnings()
        found[kind] = named / streams
        print(f"labels {kind}: named in {named / streams:.3f} of {streams}", flush=True)
    return found


def predictions(scale: float) -> list[dict[str, Any]]:
    """Shifts of the share of predicted positives: the run length over that asked for, and delays."""
    found: list[dict[str, Any]] = []
    for share in (0.01, 0.1, 0.4):
        random, alarms, asked, streams = (
            np.random.default_rng(round(100 * share)),
            0,
            10_000,
            max(5, round(100 * scale)),
        )
        for _ in range(streams):
            watch = fr.Watch(fr.FourRates(asked / 10))
            alarms += len(watch.predict({"y_pred": (random.random(10 * asked) < share).astype(int)}))
        found.append({"positives": share, "times": 1.0, "ratio": 10 * streams / max(alarms, 1), "alarms": alarms})
        print(f"{share:>5} run length over asked {found[-1]['ratio']:.2f} ({alarms})", flush=True)
        for times in (1.5, 2.0, 3.0) if share < 0.4 else ():
            waits: list[int] = []
            while len(waits) < streams:
                watch = fr.Watch(fr.FourRates(100_000))
                if watch.predict({"y_pred": (random.random(50_000) < share).astype(int)}):
                    continue
                shifts: list[fr.Finding] = []
                while not shifts:
                    shifts = watch.predict({"y_pred": (random.random(5_000) < times * share).astype(int)})
                waits.append(shifts[0].at - 50_000 + 1)
            found.append({"positives": share, "times": times, "delay": float(np.mean(waits))})
            print(f"{share:>5} x {times}: found after {np.mean(waits):,.0f} predictions", flush=True)
    return found


PARTS = budget, delay, best, coverage, wrong, predictions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS], action="append")
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    start = time.time()
    for part in PARTS:
        if not options.only or part.__name__ in options.only:
            keep(f"few_labels_{part.__name__}", part(options.scale))
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

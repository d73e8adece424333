"""Where people stand: the first weeks of a correlated stream, seasons, and changes too small to matter.

young: a fresh detector on stable correlated streams of 20,000 events, 18 % of which may alarm by the budget; how many
alarmed, and how many alarms were not withdrawn by then; the same with an ordered reference of 50,000 events.
seasons: the error rate up and down by 30 %, in the long run: alarms over those asked for, by period in observations of
a class.
weeks: errors doubled (or half as much more) at weekends, through `fr.detect` as a person gets it: alarms from the third
week on over those asked for, and the delay of a fall of tpr over a CUSUM that knows the season.
tolerance: streams that wander within it, against a reference: alarms over those asked for; and changes beyond it, over
a CUSUM that starts from its edge.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import RESULTS, Concept, draw, first_alarm, keep, limit
from real_streams import repeating, season

import fourrates as fr

Pairs = tuple[Any, Any]
POSITIVES, ERRORS = 0.3, 0.1
YOUNG, ARL = 20_000, 100_000
WEEKS, FIRST = 26, 2  # in all, and those before counting begins
TOLERANCE, EDGE_ARL = 0.03, 20_000  # the latter for streams that stay within; changes beyond are found at ARL


def thrice(random: np.random.Generator, size: int) -> Pairs:
    truth = np.repeat(random.random(size // 3 + 1) < POSITIVES, 3)[:size]
    return truth, truth ^ np.repeat(random.random(size // 3 + 1) < ERRORS, 3)[:size]


def shocks(random: np.random.Generator, size: int, length: int) -> Pairs:
    """The log-odds of an error have a level of their own in every stretch of events, with a deviation of 0.3."""
    odds = np.log(ERRORS / (1 - ERRORS)) + np.repeat(random.normal(0, 0.3, size // length + 1), length)[:size]
    truth = random.random(size) < POSITIVES
    return truth, truth ^ (random.random(size) < 1 / (1 + np.exp(-odds)))


CORRELATED: dict[str, tuple[Callable[[np.random.Generator, int], Pairs], float]] = {
    "errors repeat .3": (lambda random, size: repeating(random, size, 0.3), 0.40),
    "errors repeat .6": (lambda random, size: repeating(random, size, 0.6), 0.60),
    "every event thrice": (thrice, 0.45),
    "season of 20 %, period 2,000": (lambda random, size: season(random, size, 0.2, 2_000), 0.30),
    "shocks per 100 events": (lambda random, size: shocks(random, size, 100), 0.45),
    "shocks per 1,000 events": (lambda random, size: shocks(random, size, 1_000), 0.70),
    "independent": (lambda random, size: repeating(random, size, 0.0), 0.20),
}
PERIODS = [round(300 * (8_000 / 300) ** (i / 14)) for i in range(15)]  # in observations of a class
LONGER = [12_000, 20_000]


def young(streams: int, seed: int) -> list[dict[str, Any]]:
    """Shares of streams that alarmed within 20,000 events, and that have an alarm that was not withdrawn."""
    rows = []
    for name, (make, most) in CORRELATED.items():
        row: dict[str, Any] = {"stream": name, "most": most}
        for shipped in (0, 50_000):
            random, alarmed, standing = np.random.default_rng(seed), 0, 0
            for _ in range(streams):
                truth, pred = make(random, shipped + YOUNG)
                phase = int(random.integers(2_000))  # a season may begin anywhere
                truth, pred = np.roll(truth, phase), np.roll(pred, phase)
                reference = (truth[:shipped], pred[:shipped]) if shipped else None
                detector = fr.FourRates(ARL, reference=reference)
                detector.update_many(truth[shipped:], pred[shipped:])
                kinds = [finding.kind for finding in detector.findings]
                alarmed += "drift" in kinds
                standing += "confirmation" in kinds or detector.open is not None
            row |= {f"alarmed_{shipped}": alarmed / streams, f"standing_{shipped}": standing / streams}
        rows.append(row)
        print("  {stream:<30} {alarmed_0:.2f} {standing_0:.2f} (at most {most:.2f})   with a reference "
              "{alarmed_50000:.2f} {standing_50000:.2f} (at most 0.30)".format(**row), flush=True)  # fmt: skip
    return rows


def seasons(alarms: int, seed: int) -> list[dict[str, Any]]:
    """False alarms over those asked for, one in 20,000 events, after the first 50,000."""
    rows = []
    for period in [*PERIODS, *LONGER]:
        random, arl = np.random.default_rng(seed + period), 20_000
        detector, size = fr.FourRates(arl), alarms * arl
        truth = random.random(size + 50_000) < 0.5
        rate = ERRORS * (1 + 0.3 * np.sin(np.pi * np.arange(truth.size) / period))  # half of the events are of a class
        drifts = detector.update_many(truth, truth ^ (random.random(truth.size) < rate))
        ratio = sum(drift.at >= 50_000 for drift in drifts) / alarms
        rows.append({"period": period, "ratio": ratio, "asked": period in PERIODS})
        print(f"  period {period:>6,} {ratio:5.2f}", flush=True)
    return rows


def weekly(random: np.random.Generator, a_week: int, weeks: int, factor: float, fall: int | None = None) -> Any:
    """A frame of events with weekend errors `factor` times the others'; tpr falls from .85 to .78 at an event."""
    size = a_week * weeks
    second = np.sort(random.integers(0, weeks * 7 * 86_400, size))
    weekend = second // 86_400 % 7 >= 5
    truth = random.random(size) < POSITIVES
    wrong = np.where(truth, 0.15, 0.1) * np.where(weekend, factor, 1.0)
    if fall is not None:
        odds = wrong / (1 - wrong) * (0.22 / 0.78) / (0.15 / 0.85)
        wrong = np.where(truth & (np.arange(size) >= fall), odds / (1 + odds), wrong)
    pred = truth ^ (random.random(size) < wrong)
    times = np.datetime64("2026-01-05", "us") + second.astype("m8[s]")
    return {"label": truth.astype(int), "prediction": pred.astype(int), "time": times}, wrong


def weeks(streams: int, seed: int, volumes: list[int]) -> list[dict[str, Any]]:
    """Alarms in a weekly season, from the third week on, and the delay of a fall in the middle of it."""
    rows = []
    for factor in (2.0, 1.5):
        for a_week in volumes:
            random, counted, asked, late, best = np.random.default_rng(seed), 0, 0.0, [], []
            arl = a_week * WEEKS // 6
            stable = [knowing(*weekly(random, a_week, WEEKS, factor)) for _ in range(10)]
            highest = [part.max() for one in stable for part in np.split(one[: 6 * arl], 6)]
            threshold = np.quantile(highest, np.exp(-1))  # as for `limit`
            for _ in range(streams):
                start = a_week * (WEEKS // 2) + int(random.integers(a_week))
                frame, wrong = weekly(random, a_week, WEEKS, factor, start)
                found = [drift.at for drift in fr.detect(frame, arl=arl).drifts]
                counted += sum(FIRST * a_week <= at < start for at in found)
                asked += (start - FIRST * a_week) / arl
                late.append(min((at - start + 1 for at in found if at >= start), default=np.inf))
                best.append(1 + int((knowing(frame, wrong, start) >= threshold).argmax()))
            row = {"factor": factor, "a_week": a_week, "ratio": counted / asked,
                   "delay": float(np.median(late)), "knowing": float(np.median(best))}  # fmt: skip
            rows.append(row | {"over": row["delay"] / row["knowing"]})
            print("  errors x {factor} at weekends, {a_week:>6,} a week: {ratio:.2f} of the alarms asked; {delay:,.0f} "
                  "events to find a fall, {knowing:,.0f} if all is known: {over:.2f}".format(**rows[-1]))  # fmt: skip
    return rows


def knowing(frame: Any, wrong: Any, start: int | None = None) -> Any:
    """A CUSUM of positives that knows every rate before and after, event by event; of a fall, from its start on."""
    begin = 0 if start is None else start
    rate, truth, error = wrong[begin:], frame["label"][begin:] == 1, (frame["label"] != frame["prediction"])[begin:]
    odds = rate / (1 - rate) * ((0.15 / 0.85) / (0.22 / 0.78)) ** (1 if start is not None else -1)
    other = odds / (1 + odds)
    before, after = (rate, other) if start is None else (other, rate)
    step = np.where(truth, np.where(error, np.log(after / before), np.log((1 - after) / (1 - before))), 0.0)
    total = np.cumsum(step)
    return total - np.minimum(np.minimum.accumulate(total), 0)


def wandering(random: np.random.Generator, size: int, kind: str) -> Pairs:
    """Recalls of .9 and .85 that stay within the tolerance."""
    at = np.arange(size)
    if kind == "random walk":
        walk = np.cumsum(random.normal(0, 3e-4, (2, size)), axis=1)
        folded = np.abs((walk + TOLERANCE) % (4 * TOLERANCE) - 2 * TOLERANCE) - TOLERANCE
    elif kind == "sine":
        folded = TOLERANCE * np.sin(2 * np.pi * at / np.array([[5_000.0], [17_000.0]]))
    elif kind == "learning":
        folded = np.tile(TOLERANCE * (1 - 2 * np.exp(-at / 50_000)), (2, 1))
    elif kind == "recalls traded":
        swapped = TOLERANCE * np.where(at // 4_000 % 2, 1, -1)
        folded = np.stack([swapped, -swapped])
    else:  # at the edge, and the level of every stretch of 200 events is the edge or normal
        folded = np.repeat(random.choice([-TOLERANCE, 0.0], (2, size // 200 + 1)), 200, axis=1)[:, :size]
    truth = random.random(size) < POSITIVES
    right = random.random(size) < np.where(truth, 0.85 + folded[1], 0.9 + folded[0])
    return truth, truth == right


WANDERING = ("random walk", "sine", "learning", "recalls traded", "in stretches")
BEYOND = ((0.9, 0.8), (0.9, 0.75), (0.93, 0.85), (0.8, 0.9), (0.97, 0.9))


def tolerance(alarms: int, streams: int, seed: int) -> dict[str, Any]:
    """Alarms over those asked for within the tolerance; and delays beyond it, over a CUSUM from its edge."""
    shipped = [[31_500, 3_500], [2_250, 12_750]]
    within, beyond = [], []
    for kind in WANDERING:
        random, size = np.random.default_rng(seed), alarms * EDGE_ARL
        detector = fr.FourRates(EDGE_ARL, reference=shipped, tolerance=TOLERANCE)
        without = fr.FourRates(EDGE_ARL, reference=shipped)
        truth, pred = wandering(random, size, kind)
        ratio, bare = (len(one.update_many(truth, pred)) / alarms for one in (detector, without))
        within.append({"stream": kind, "ratio": ratio, "without": bare})
        print(f"  {kind:<20} {ratio:.2f} (at most 1.0); without tolerance {bare:.2f}", flush=True)
    for p, q in BEYOND:
        random = np.random.default_rng(seed)
        edge = p - TOLERANCE if q < p else p + TOLERANCE
        best, late = limit(Concept(0.5, edge, 0.8), Concept(0.5, q, 0.8), ARL, streams=1_000), []
        while len(late) < streams:
            counts = [[round(25_000 * p), 25_000 - round(25_000 * p)], [5_000, 20_000]]
            detector = fr.FourRates(ARL, reference=counts, tolerance=TOLERANCE)
            if not detector.update_many(*draw(random, 2_000, Concept(0.5, p, 0.8)), first_only=True):
                drift = first_alarm(detector, random, Concept(0.5, q, 0.8), 100_000)
                late.append(np.inf if drift is None else drift.at - 1_999)
        beyond.append({"before": p, "after": q, "delay": float(np.median(late)), "limit": best})
        print(f"  {p} -> {q}: {np.median(late):,.0f} events, {np.median(late) / best:.2f} of the limit", flush=True)
    ratios = [row["delay"] / row["limit"] for row in beyond]
    print(f"  geometric mean {np.exp(np.mean(np.log(ratios))):.2f} (at most 1.7)", flush=True)
    return {"within": within, "beyond": beyond}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["young", "seasons", "weeks", "tolerance"], action="append")
    parser.add_argument(
        "--streams", type=int, default=100, help="a share of 100 streams has a standard error of 5 points"
    )
    parser.add_argument("--alarms", type=int, default=60, help="that are asked for: a ratio has an error of 13 percent")
    parser.add_argument("--volumes", type=int, nargs="+", default=[2_000, 5_000, 10_000, 25_000, 70_000])
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "young": lambda: young(options.streams, options.seed),
        "seasons": lambda: seasons(options.alarms, options.seed),
        "weeks": lambda: weeks(max(options.streams // 4, 1), options.seed, options.volumes),
        "tolerance": lambda: tolerance(options.alarms, options.streams, options.seed),
    }
    start, path = time.time(), RESULTS / "first_weeks.json"
    numbers = json.loads(path.read_text()) if path.exists() else {}
    for name in options.part or parts:
        print(name, flush=True)
        numbers[name] = parts[name]()
    keep("first_weeks", numbers)
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

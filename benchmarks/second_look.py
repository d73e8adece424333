"""The life of a drift: how long a false alarm stays open, how often a true one is withdrawn, how recoveries are told.

Stable streams first, with exact, small and learned normals: the share of time that a drift is open and confirmed, how
many false alarms are withdrawn, and how far apart they are. Then changes that last: the ten of any_size.py and thirty
drawn ones. Then rates that come back, or half of the way back. Then whether the intervals of `now` hold. All of it
once more, shorter, on streams whose errors are correlated.

    python benchmarks/second_look.py [--only stable|lasting|returning|now|correlated] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from any_size import CHANGES, drawn_changes
from drawn import Concept, draw, keep

import fourrates as fr
from fourrates.findings import Share

ALLOWED = {0.015: (0.32, 0.08), 0.1: (0.17, 0.05), 0.5: (0.06, 0.02)}  # of the time: open, confirmed
NORMALS = ("exact", "small", "learned")
HISTORY = 50_000


def counts(concept: Concept, size: int) -> list[list[int]]:
    """The confusion counts that a concept has on average."""
    positives = round(size * concept.positives)
    negatives = size - positives
    right = round(negatives * concept.tnr), round(positives * concept.tpr)
    return [[right[0], negatives - right[0]], [positives - right[1], right[1]]]


def made(normal: str, concept: Concept, arl: float, random: np.random.Generator) -> fr.FourRates:
    """A detector with this kind of normal; a small one is drawn, not exact."""
    if normal == "learned":
        return fr.FourRates(arl)
    if normal == "exact":
        return fr.FourRates(arl, reference=counts(concept, 10_000_000))
    return fr.FourRates(arl, reference=draw(random, round(100 / concept.positives), concept))


def fed(detector: fr.FourRates, chunks: Iterator[tuple[Any, Any]]) -> list[fr.Finding]:
    found: list[fr.Finding] = []
    for chunk in chunks:
        detector.update_many(*chunk)
        found += detector.findings
    return found


class Times:
    """How long drifts are open and confirmed, and what becomes of them."""

    def __init__(self) -> None:
        self.events = self.open = self.confirmed = 0
        self.kinds: Counter[str] = Counter()
        self.known: Counter[str] = Counter()  # of drifts whose normal has 400 observations

    def add(self, findings: list[fr.Finding], events: int, start: int = 0) -> None:
        """Findings of one stream of this length; those before `start` do not count."""
        opened = confirmed = None
        ends: Counter[int] = Counter()
        for finding in findings:
            if finding.kind == "shift":
                continue
            self.kinds[finding.kind] += finding.at >= start
            if finding.kind == "drift" and finding.normal_known:
                opened = finding.at if opened is None else opened
            if finding.kind == "confirmation":
                confirmed = finding.at if confirmed is None else confirmed
            if finding.kind == "withdrawal":
                ends[finding.drift.at] += 1
            if finding.closes:
                self._count(opened, confirmed, finding.at, start)
                opened = confirmed = None
        self._count(opened, confirmed, events, start)
        self.events += events - start
        for finding in findings:  # the first of an episode, that had its time to be withdrawn
            if finding.kind != "drift" or finding.about is not None or not finding.normal_known:
                continue
            if start <= finding.at < 0.8 * events and min(change.before.n for change in finding.changes) >= 400:
                self.known["drifts"] += 1
                self.known["withdrawn"] += finding.at in ends

    def _count(self, opened: int | None, confirmed: int | None, end: int, start: int) -> None:
        if opened is not None:
            self.open += max(end - max(opened, start), 0)
        if confirmed is not None:
            self.confirmed += max(end - max(confirmed, start), 0)

    def row(self, arl: float) -> dict[str, float]:
        """The shares of all that was added."""
        drifts = max(self.known["drifts"], 1)
        return {
            "open": self.open / self.events,
            "confirmed": self.confirmed / self.events,
            "withdrawn": self.known["withdrawn"] / drifts,
            "known": self.known["drifts"],
            "alarms": self.kinds["drift"],
            "run_length": self.events / arl / max(self.kinds["drift"], 1),
        }


def stable(scale: float, seed: int) -> tuple[list[dict[str, Any]], int]:
    """Streams in which nothing changes, over ten run lengths; a learned normal has the first of them to learn."""
    rows, missed = [], 0
    print("stable: positives, normal, arl: time open, confirmed; withdrawn (of 400 and more); run length over asked")
    for positives, (most_open, most_confirmed) in ALLOWED.items():
        for normal in NORMALS:
            for arl, streams in ((20_000, 160), (100_000, 60), (1_000_000, 12)):
                random = np.random.default_rng(seed)
                concept, times = Concept(positives, 0.9, 0.8), Times()
                for _ in range(max(round(streams * scale), 2)):
                    start, events = (arl if normal == "learned" else 0), 10 * arl
                    detector = made(normal, concept, arl, random)
                    chunks = (draw(random, 200_000, concept) for _ in range(events // 200_000))
                    times.add(fed(detector, chunks), events, start)
                row = {"positives": positives, "normal": normal, "arl": arl, **times.row(arl)}
                rows.append(row)
                error = math.sqrt(0.92 * 0.08 / max(row["known"], 1))
                bad = (
                    row["open"] > most_open or row["confirmed"] > most_confirmed or row["withdrawn"] + 2 * error < 0.92
                )
                missed += bad
                print(
                    f"  {positives:5.1%} {normal:<8} {arl:>9,}: {row['open']:6.1%} {row['confirmed']:6.1%}   "
                    f"{row['withdrawn']:.3f}   {row['run_length']:.2f} ({row['alarms']} alarms){' <--' if bad else ''}",
                    flush=True,
                )
    return rows, missed


def lasting(scale: float, seed: int, drawn: int = 30) -> tuple[list[dict[str, Any]], int]:
    """Changes that last: wrongly withdrawn within 50,000 events, found again, and how soon confirmed."""
    cases = [(Concept(0.5, p, 0.8), Concept(0.5, q, 0.8), f"tnr {p} -> {q}") for p, q in CHANGES]
    cases += [(before, after, f"drawn {i + 1}") for i, (before, after) in enumerate(drawn_changes(drawn, seed))]
    rows, missed = [], 0
    print("lasting: withdrawn wrongly, of these found again; events to the alarm, and from it to the confirmation")
    for before, after, name in cases:
        for arl in (20_000, 100_000):
            row = _lasting(before, after, arl, max(round((200 if "drawn" not in name else 80) * scale), 10), seed)
            size = smallness(before, after, arl)
            kind = "clear" if size < 0.25 else "near" if size < 1 else "below"
            rows.append({"change": name, "arl": arl, "kind": kind, **row})
            most = {"clear": 0.05, "near": 0.2, "below": 1.0}[kind]
            error = math.sqrt(most * (1 - most) / max(row["n"], 1))
            bad = arl == 100_000 and row["withdrawn"] > most + 2 * error
            missed += bad
            print(
                f"  {name:<22} {arl:>8,}: {row['withdrawn']:.3f} {row['again']:.2f} of {row['n']}   "
                f"{row['alarm']:8,.0f} {row['confirmation']:8,.0f}  {kind}{' <--' if bad else ''}",
                flush=True,
            )
    return rows, missed


def smallness(before: Concept, after: Concept, arl: float) -> float:
    """Observations that a change takes to be found over those of the smallest step that is looked for there."""
    found = []
    for share, old, new in ((1 - before.positives, before.tnr, after.tnr), (before.positives, before.tpr, after.tpr)):
        nats = new * math.log(new / old) + (1 - new) * math.log((1 - new) / (1 - old))
        found.append(8 / max(nats, 1e-9) / min(0.7 * HISTORY * share, 0.1 * arl))
    return min(found)


def _lasting(before: Concept, after: Concept, arl: float, streams: int, seed: int) -> dict[str, float]:
    random = np.random.default_rng(seed)
    alarms: list[float] = []
    waits: list[float] = []
    withdrawn = again = 0
    while len(alarms) < streams:
        detector = fr.FourRates(arl)
        if detector.update_many(*draw(random, HISTORY, before), first_only=True):
            continue
        detector.update_many(*draw(random, HISTORY, after))
        moved = {name for name, old, new in zip(("tnr", "tpr"), before[1:], after[1:], strict=True) if old != new}
        true = [
            finding
            for finding in detector.findings
            if finding.kind != "shift" and moved & {change.rate for change in finding.changes}
        ]
        drift = next((finding for finding in true if finding.kind == "drift"), None)
        alarms.append(np.inf if drift is None else drift.at - HISTORY + 1)
        if drift is None:
            continue
        later = true[true.index(drift) + 1 :]
        confirmed = next((finding.at for finding in later if finding.kind == "confirmation"), None)
        waits.append(np.inf if confirmed is None else confirmed - drift.at)
        first = next((finding for finding in later if finding.kind == "withdrawal" and finding.closes), None)
        if first is not None:
            withdrawn += 1
            again += any(finding.kind == "drift" for finding in later[later.index(first) :])
    return {
        "n": len(waits),
        "withdrawn": withdrawn / max(len(waits), 1),
        "again": again / max(withdrawn, 1),
        "alarm": float(np.median(alarms)),
        "confirmation": float(np.median(waits)) if waits else float("nan"),
    }


RETURNING = {
    "full .9 .6 .9": (0.9, 0.6, 0.9),
    "full .8 .72 .8": (0.8, 0.72, 0.8),
    "full .95 .8 .95": (0.95, 0.8, 0.95),
    "partial .9 .6 .75": (0.9, 0.6, 0.75),
    "partial .85 .75 .80": (0.85, 0.75, 0.80),
    "partial .95 .8 .9": (0.95, 0.8, 0.9),
    "partial .9 .8 .87": (0.9, 0.8, 0.87),
}


def returning(scale: float, seed: int) -> tuple[list[dict[str, Any]], int]:
    """A rate that comes back, or half of the way, after 10,000 events away: told as a recovery within 20,000 events."""
    rows, missed = [], 0
    print("returning: recovery, improvement, still recovering; by the events from which normal is known")
    for name, (normal, away, back) in RETURNING.items():
        for size in (20_000, 4_000, 1_000):
            random = np.random.default_rng(seed)
            kinds: Counter[str] = Counter()
            for _ in range(max(round(200 * scale), 10)):
                concepts = [Concept(0.5, 0.8, rate) for rate in (normal, away, back)]
                detector = fr.FourRates(100_000)
                if detector.update_many(*draw(random, size, concepts[0]), first_only=True):
                    continue
                detector.update_many(*draw(random, 10_000, concepts[1]))
                if detector.rates["tpr"].state == "normal":
                    continue
                detector.update_many(*draw(random, 20_000, concepts[2]))
                told = [f.kind for f in detector.findings if "tpr" in {change.rate for change in f.changes}]
                kinds["n"] += 1
                kinds["recovery"] += "recovery" in told
                kinds["improvement"] += "improvement" in told and "recovery" not in told
                kinds["recovering"] += detector.rates["tpr"].state == "recovering"
            n = max(kinds["n"], 1)
            row = {
                "course": name,
                "normal": size,
                **{k: kinds[k] / n for k in ("recovery", "improvement", "recovering")},
            }
            rows.append(row)
            full = name.startswith("full")
            bad = row["recovery"] < 0.94 if full else size > 1_000 and "87" not in name and row["recovery"] > 0.03
            missed += bad
            print(
                f"  {name:<20} {size:>6,}: {row['recovery']:.3f} {row['improvement']:.3f} {row['recovering']:.3f} "
                f"of {kinds['n']}{' <--' if bad else ''}",
                flush=True,
            )
    return rows, missed


def now(scale: float, seed: int) -> tuple[list[dict[str, Any]], int]:
    """How often the 90 % interval of `now` holds the true rate: some observations after an alarm, and when quoted."""
    held: dict[str, list[bool]] = {}
    random = np.random.default_rng(seed)

    def note(what: str, share: Share, truth: float) -> None:
        held.setdefault(what, []).append(share.lower <= truth <= share.upper)

    cases = [
        (Concept(0.5, p, t), Concept(0.5, p, q))
        for p, t, q in ((0.9, 0.8, 0.7), (0.9, 0.9, 0.85), (0.8, 0.7, 0.8), (0.95, 0.95, 0.9), (0.9, 0.8, 0.6))
    ]
    cases += [(before, before) for before, _ in cases] * 2  # and false alarms
    for before, after in cases:
        kind = "false" if before == after else "true"
        for _ in range(max(round(300 * scale), 10)):
            detector = fr.FourRates(20_000, reference=draw(random, 20_000, before))
            _follow(detector, random, before, after, kind, note)
            if kind == "true":
                _return(random, before, after, note)
    rows, missed = [], 0
    print("now: coverage of the 90 % interval")
    for what, inside in sorted(held.items()):
        share = float(np.mean(inside))
        bad = "at a" not in what and not 0.87 <= share <= 0.93
        bad |= what in ("at a confirmation", "at a withdrawal", "at a recovery") and share < 0.87
        missed += bad
        rows.append({"where": what, "coverage": share, "n": len(inside)})
        print(f"  {what:<34} {share:.3f} of {len(inside)}{' <--' if bad else ''}", flush=True)
    return rows, missed


def _follow(detector: fr.FourRates, random: np.random.Generator, before: Any, after: Any, kind: str, note: Any) -> None:
    """Watch tpr from its alarm on: at 30, 100 and 1,000 observations, and at what is found."""
    truth = after.tpr
    for _ in range(10 if kind == "false" else 3):
        drifts = detector.update_many(*draw(random, 20_000, after), first_only=True)
        if drifts and "tpr" in {change.rate for change in drifts[0].changes}:
            break
    else:
        return
    at = {30, 100, 1_000}
    seen = 0
    y_true, y_pred = draw(random, 4_000, after)
    for pair in zip(y_true.tolist(), y_pred.tolist(), strict=True):
        detector.update(*pair)
        for finding in detector.findings:
            for change in finding.changes:
                if change.rate == "tpr" and finding.kind in ("confirmation", "withdrawal", "recovery"):
                    note(f"at a {finding.kind}", change.after, truth)
                    note(f"at a {finding.kind}, {kind}", change.after, truth)
        seen += pair[0]
        if pair[0] and seen in at:
            note(f"{seen:5,} after an alarm, {kind}", detector.rates["tpr"].now, truth)
        if seen > max(at):
            break


def _return(random: np.random.Generator, before: Concept, after: Concept, note: Any) -> None:
    """A change of tpr that is over after 4,000 events: what its recovery quotes."""
    detector = fr.FourRates(20_000, reference=draw(random, 20_000, before))
    for concept, size in ((before, 1_000), (after, 4_000), (before, 10_000)):
        detector.update_many(*draw(random, size, concept))
    for finding in detector.findings:
        for change in finding.changes:
            if finding.kind == "recovery" and change.rate == "tpr":
                note("at a recovery", change.after, before.tpr)


def correlated(scale: float, seed: int) -> tuple[list[dict[str, Any]], int]:
    """Stable streams whose errors repeat, or whose events come twice: withdrawn and confirmed, after 20,000 events."""
    rows = []
    print("correlated and stable (10 % positives, arl 100,000, learned): open, confirmed, withdrawn, run length")
    for name in ("independent", "errors repeat .3", "every event twice"):
        random, times, concept = np.random.default_rng(seed), Times(), Concept(0.1, 0.9, 0.8)
        for _ in range(max(round(40 * scale), 2)):
            y_true, y_pred = draw(random, 1_000_000, concept)
            if name == "every event twice":
                y_true, y_pred = (np.repeat(side, 2)[:1_000_000] for side in (y_true, y_pred))
            elif name == "errors repeat .3":
                y_pred = y_true ^ _repeated(random, y_true, y_true != y_pred, 0.3)
            detector = fr.FourRates(100_000)
            detector.update_many(y_true, y_pred)
            times.add(list(detector.findings), 1_000_000, 20_000)
        row = times.row(100_000)
        rows.append({"stream": name, **row})
        print(
            f"  {name:<20} {row['open']:6.1%} {row['confirmed']:6.1%}  {row['withdrawn']:.3f}  {row['run_length']:.2f}",
            flush=True,
        )
    return rows, 0


def _repeated(random: np.random.Generator, truth: Any, wrong: Any, share: float) -> Any:
    """Errors of which this share is that of the last event of the same class."""
    wrong = wrong.copy()
    for c in (False, True):
        own = np.flatnonzero(truth == c)
        source = np.where(random.random(own.size) < share, -1, np.arange(own.size))
        source[0] = 0
        wrong[own] = wrong[own][np.maximum.accumulate(source)]
    return wrong


PARTS = {"stable": stable, "lasting": lasting, "returning": returning, "now": now, "correlated": correlated}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*PARTS], action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer streams")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    start, missed, numbers = time.time(), 0, {}
    for name, part in PARTS.items():
        if options.only is None or name in options.only:
            numbers[name], bad = part(options.scale, options.seed)
            missed += bad
    if options.only is None:
        keep("second_look", {"scale": options.scale, "seed": options.seed, **numbers})
    print(f"{missed} marks missed; {time.time() - start:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""A fraud log whose labels come 3 to 45 days later, looked at every night: `detect --labels-from --state` and SQL.

400,000 predictions in 90 days, 1.5 % positives, seven countries; labels 3 days and then about 10 more later, 45 at
most, 5 % never. On day 55 tpr falls from .78 to .62 in one country of 12 %. Beside it what people have: each night, of
every country and week of predictions, tpr over the labels so far against all earlier weeks, |z| > 3.

The deployment: v1 falls on day 30, v2 is deployed on day 45, labels come about 20 days later; in half of the streams v2
falls on day 70. Found of v2 may be only what is found as well if v1 never gets a label.

Stable logs with other settings: false drifts over what the budget allows, of all nights together and of one pass.

Two cores take half an hour for 100 draws; `--first` and `--rows` make it in pieces.

    python benchmarks/nights.py [--draws 100] [--first 0] [--rows FILE] [--only fraud|deployment|stable|table]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from drawn import keep

import fourrates as fr
from fourrates.io import Batch, Columns, History, joined
from fourrates.io.cohorts import Cohorts
from fourrates.join import LabelJoin
from fourrates.watch.nightly import new_findings

DAYS, FALL, SIZE = 90, 55, 400_000
START, DAY = np.datetime64("2026-06-01T00:00:00", "us"), 86_400_000_000
COUNTRIES = ("US", "DE", "GB", "FR", "IT", "ES", "NL")
SHARES = (0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05)
TPR, FALLEN, FPR = 0.78, 0.62, 0.005
BUDGET = SIZE / DAYS * 30  # one false alarm a month
VALIDATION = 20_000  # rows of each country, of the classifier as it was shipped
SETTINGS: dict[str, dict[str, Any]] = {
    "FourRates": {},
    "rates=['tpr'], and a reference": {"rates": ["tpr"], "reference": VALIDATION},
}
CUSUM = 4.5  # false once in 2,000 positives of a country, which are 133,333 of its events


def fraud_log(seed: int) -> dict[str, Any]:
    """The log: when each was predicted and labelled, in days; its country, truth and prediction."""
    random = np.random.default_rng(seed)
    day = np.sort(random.random(SIZE)) * DAYS
    country = random.choice(len(COUNTRIES), SIZE, p=SHARES)
    truth = random.random(SIZE) < 0.015
    tpr = np.where((country == 3) & (day >= FALL), FALLEN, TPR)
    pred = random.random(SIZE) < np.where(truth, tpr, FPR)
    late = 3 + np.minimum(random.exponential(10, SIZE), 42)
    came = np.where(random.random(SIZE) < 0.05, np.inf, day + late)
    return {"day": day, "came": came, "truth": truth, "pred": pred, "country": country}


def dates(days: Any) -> Any:
    return START + (days * DAY).astype("m8[us]")


class Nightly:
    """What the command does each night, without its files."""

    def __init__(
        self, detector: fr.FourRates, by: str | None, version: str | None = None, references: Any = None
    ) -> None:
        self.cohorts = Cohorts(LabelJoin([0, 1]))
        self.state = fr.Watch(detector, references=references).to_bytes()
        self.columns = Columns(pred="pred", id="id", time="time", by=by, version=version)
        self.reported: dict[str, int] = {}

    def night(self, predictions: dict[str, Any], labels: dict[str, Any]) -> list[fr.Finding]:
        """The findings that are new."""
        late = Columns(truth="label", id="id", time="label_time")
        watch, found = fr.Watch.from_bytes(self.state), []
        events = joined(
            predictions,
            labels,
            columns=self.columns,
            label_columns=late,
            history=History(),
            cohorts=self.cohorts,
        )
        saved = None
        for number, batch in enumerate(events):
            if number == events.ripe:
                saved = watch.to_bytes()
            found += watch.update(batch, events.keys)
        self.cohorts, self.state = events.cohorts, watch.to_bytes() if saved is None else saved
        return new_findings(watch, found, self.reported)


def nights(log: dict[str, Any], more: dict[str, Any], nightly: Nightly, first: int, last: int) -> Any:
    """What each night finds, with its number."""
    ids = np.arange(log["day"].size)
    for night in range(first, last + 1):
        made = log["day"] < night if night == first else (log["day"] >= night - 1) & (log["day"] < night)
        came = log["came"] < night if night == first else (log["came"] >= night - 1) & (log["came"] < night)
        predictions = {"id": ids[made], "time": dates(log["day"][made]), "pred": log["pred"][made] * 1}
        predictions |= {name: column[made] for name, column in more.items()}
        order = np.argsort(log["came"][came], kind="stable")
        which = ids[came][order]
        labels = {"id": which, "label": log["truth"][which] * 1, "label_time": dates(log["came"][which])}
        for finding in nightly.night(predictions, labels):
            yield night, finding


def validated(seed: int, rows: int) -> dict[str, Any] | None:
    """Confusion counts of each country, of a validation set."""
    random = np.random.default_rng([seed, 7])
    positives = random.binomial(rows, 0.015, len(COUNTRIES)) if rows else ()
    cells = [(rows - n, random.binomial(rows - n, FPR), n, random.binomial(n, TPR)) for n in positives]
    counts = [[[no - false, false], [n - hits, hits]] for no, false, n, hits in cells]
    return dict(zip(COUNTRIES, counts, strict=True)) if rows else None


def ours(log: dict[str, Any], last: int, seed: int, reference: int = 0, **settings: Any) -> dict[str, Any]:
    """When the country's fall was reported, how it was dated, and the false drifts."""
    nightly = Nightly(fr.FourRates(BUDGET, **settings), "country", references=validated(seed, reference))
    names = np.array(COUNTRIES)[log["country"]]
    found: dict[str, Any] = {"night": None, "date": None, "false": 0}
    for night, finding in nights(log, {"country": names}, nightly, 7, last):
        if finding.kind != "drift":
            continue
        fell = any(change.rate == "tpr" and change.direction == "down" for change in finding.changes)
        if finding.segment == "FR" and fell and finding.time >= dates(np.array(FALL * 1.0)):
            if found["night"] is None:
                began = (finding.started_time - START).astype(int) / DAY
                found |= {"night": night, "date": float(began) - FALL}
        else:
            found["false"] += 1
    return found


def weekly_sql(log: dict[str, Any], last: int) -> dict[str, Any]:
    """The same of tpr by country and week of the prediction, with the labels so far, |z| > 3."""
    positives = log["truth"]
    day, came, country = log["day"][positives], log["came"][positives], log["country"][positives]
    week, right = (day // 7).astype(int), log["pred"][positives]
    found: dict[str, Any] = {"night": None, "date": None, "false": 0}
    flagged: set[tuple[int, int]] = set()
    for night in range(35, last + 1):
        known = came < night
        shape = len(COUNTRIES), DAYS // 7 + 1
        n, k = (np.zeros(shape) for _ in range(2))
        np.add.at(n, (country[known], week[known]), 1)
        np.add.at(k, (country[known], week[known]), right[known])
        before, correct = np.cumsum(n, 1) - n, np.cumsum(k, 1) - k
        with np.errstate(all="ignore"):
            pooled = (k + correct) / (n + before)
            z = (k / n - correct / before) / np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / before))
        for one in zip(*np.nonzero((np.abs(z) > 3) & (n >= 10) & (np.arange(shape[1]) >= 4)), strict=True):
            if one in flagged:
                continue
            flagged.add(one)
            if one[0] == 3 and one[1] >= FALL // 7 and z[one] < 0:
                if found["night"] is None:
                    found |= {"night": night, "date": float(one[1] * 7 - FALL)}
            else:
                found["false"] += 1
    return found


def oracle(log: dict[str, Any], last: int) -> dict[str, Any]:
    """A CUSUM of the country's positives that knows both rates, at the end of each night."""
    which = log["truth"] & (log["country"] == 3)
    came, right = log["came"][which], log["pred"][which]
    step = np.where(right, np.log(FALLEN / TPR), np.log((1 - FALLEN) / (1 - TPR)))
    for night in range(FALL + 1, last + 1):
        sums = np.append(0.0, np.cumsum(step[came < night]))
        if sums[-1] - sums.min() >= CUSUM:
            return {"night": night, "date": None, "false": 0}
    return {"night": None, "date": None, "false": 0}


def draw(seed: int) -> dict[str, Any]:
    log = fraud_log(seed)
    made = {name: ours(log, DAYS, seed, **settings) for name, settings in SETTINGS.items()}
    return made | {"weekly SQL": weekly_sql(log, DAYS), "oracle": oracle(log, DAYS)}


def table(draws: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in draws[0]:
        rows = [one[name] for one in draws]
        found = [row["date"] for row in rows if row["night"] is not None]
        dated = [abs(date) for date in found if date is not None]
        made[name] = {
            "found": len(found),
            "night, median": float(np.median([row["night"] or np.inf for row in rows])),
            "off by days, median": float(np.median(dated)) if dated else None,
            "false drifts": float(np.mean([row["false"] for row in rows])),
        }
    return made | {"draws": len(draws), "budget": SIZE / BUDGET}


# Stable logs with other settings: size, days, positives, tpr, fpr, shares of segments, and delays of labels in days.
STABLE: dict[str, tuple[Any, ...]] = {
    "5 % positives": (150_000, 60, 0.05, 0.7, 0.02, (0.4, 0.25, 0.15, 0.12, 0.08), (1, 6, 60)),
    "2 % positives": (200_000, 80, 0.02, 0.85, 0.01, (0.3, 0.3, 0.2, 0.2), (5, 12, 25)),
    "30 % positives": (100_000, 60, 0.3, 0.8, 0.1, (0.5, 0.3, 0.2), (2, 10, 30)),
    "slow labels": (300_000, 80, 0.02, 0.8, 0.01, (0.3, 0.2, 0.15, 0.2, 0.15), (3, 12, 40)),
}


def stable(seed: int, kind: str) -> dict[str, float]:
    """False drifts over what the budget allows: as all nights report them, and of one pass over the final log."""
    size, days, positives, tpr, fpr, shares, (least, mean, most) = STABLE[kind]
    random = np.random.default_rng([seed, 11])
    day, segment = np.sort(random.random(size)) * days, random.choice(len(shares), size, p=shares)
    truth = random.random(size) < positives
    pred = random.random(size) < np.where(truth, tpr, fpr)
    came, times = day + least + np.minimum(random.exponential(mean, size), most), dates(day)
    names, allowed = [f"s{one}" for one in range(len(shares))], 4
    found: list[fr.Finding] = []
    reported: dict[str, int] = {}
    nightly = 0
    for night in range(7, days + 1):
        known = came < night
        watch = fr.Watch(fr.FourRates(size / allowed), "segment")
        parts = (truth[known].astype(np.uint16), pred[known].astype(np.uint16))
        found = watch.update(Batch(*parts, "log", np.flatnonzero(known), times[known], segment[known]), names)
        nightly += sum(one.kind == "drift" for one in new_findings(watch, found, reported))
    return {"nightly": nightly / allowed, "one pass": sum(one.kind == "drift" for one in found) / allowed}


def deployment(seed: int, falls: bool) -> dict[str, Any]:
    """v1 falls, v2 takes over, labels of v1 go on coming: what is found, by version."""
    random = np.random.default_rng(seed)
    size = 100_000
    day = np.sort(random.random(size)) * DAYS
    second = day >= 45
    truth = random.random(size) < 0.05
    tpr = np.where(second, np.where(falls & (day >= 70), FALLEN, TPR), np.where(day >= 30, FALLEN, TPR))
    pred = random.random(size) < np.where(truth, tpr, 0.02)
    came = day + random.uniform(15, 25, size)
    log = {"day": day, "came": came, "truth": truth, "pred": pred}
    drifts = versions_of(log, second)
    own = [one for one in drifts if one[0] == "v2"]
    alone = versions_of(log | {"came": np.where(second, came, np.inf)}, second) if own else []
    return {
        "v1": sum(one[0] == "v1" for one in drifts),
        "v2": own,
        "falls": falls,
        "from v1": sum(one not in alone for one in own),
    }


def versions_of(log: dict[str, Any], second: Any) -> list[tuple[Any, ...]]:
    """The drifts of all nights, with their version, night and start."""
    nightly, drifts = Nightly(fr.FourRates(1_000_000), None, "version"), []
    for night, finding in nights(log, {"version": np.where(second, "v2", "v1")}, nightly, 7, 120):
        if finding.kind == "drift":
            began = (finding.started_time - START).astype(int) / DAY
            drifts.append((finding.version, night, round(float(began), 1), str(finding)))
    return drifts


def deployments(streams: list[dict[str, Any]]) -> dict[str, Any]:
    quiet, fallen = ([one for one in streams if one["falls"] is falls] for falls in (False, True))
    return {
        "streams": len(streams),
        "findings about v2 that v1's labels made": sum(one["from v1"] for one in streams),
        "findings about v2 that did not fall": sum(len(one["v2"]) for one in quiet),
        "findings about v2 before it fell": sum(began < 60 for one in fallen for _, _, began, _ in one["v2"]),
        "falls of v2 found": sum(any(began >= 60 for _, _, began, _ in one["v2"]) for one in fallen),
        "of": len(fallen),
        "falls of v1 found": sum(one["v1"] > 0 for one in streams),
    }


def shares(streams: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over streams of each kind of log."""
    return {
        kind: {way: float(np.mean([one[kind][way] for one in streams])) for way in one}
        for kind, one in streams[0].items()
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=Path, default=Path("build/nights.jsonl"))
    parser.add_argument("--only", choices=["fraud", "deployment", "stable", "table"])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no draw after so many")
    asked = parser.parse_args()
    began = time.monotonic()
    asked.rows.parent.mkdir(exist_ok=True)
    for seed in range(asked.first, asked.first + asked.draws) if asked.only != "table" else ():
        if time.monotonic() - began > asked.seconds:
            break
        row: dict[str, Any] = {"seed": seed}
        if asked.only in (None, "fraud"):
            row["fraud"] = draw(1_000 + seed)
        if asked.only in (None, "deployment"):
            row["deployment"] = deployment(2_000 + seed, seed % 2 == 1)
        if asked.only in (None, "stable") and seed < 20:
            row["stable"] = {kind: stable(3_000 + seed, kind) for kind in STABLE}
        print(json.dumps(row), flush=True)
        with open(asked.rows, "a") as file:
            file.write(json.dumps(row) + "\n")
    rows = [json.loads(line) for line in asked.rows.read_text().splitlines()]
    made = {
        name: summary([row[name] for row in rows if name in row])
        for name, summary in (("fraud", table), ("deployment", deployments), ("stable", shares))
        if any(name in row for row in rows)
    }
    print(json.dumps(made, indent=1))
    if len(made) == 3:
        keep("nights", made)


if __name__ == "__main__":
    main()

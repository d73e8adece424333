"""What was measured as tables, and whether fourrates is first where it says so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

SCENARIOS = ("Balance1", "Balance2", "Balance3", "Imbalance1", "Imbalance2", "Imbalance3", "EqualError")
OURS = "fourrates"
LUCKY = 1_000  # false alarms per 100 streams, one in 500 events: from here on a hit in 200 events is mostly luck
BEFORE, WITHIN = 5_000, 200

Row = dict[str, Any]


@dataclass
class Library:
    """The measurements of one library, a row for each detector."""

    family: str
    version: str
    rows: list[Row]

    def take(self, turn: dict[str, Any]) -> None:
        """Add what else was measured; of several times the best."""
        for row, new in zip(self.rows, turn["rows"], strict=True):
            if new.get("microseconds", 0) < row.get("microseconds", math.inf):
                row |= new

    def forget_times(self) -> None:
        """Before new ones are taken."""
        for row in self.rows:
            row.pop("microseconds", None)


def rows(libraries: Iterable[Library]) -> Iterator[tuple[Library, Row]]:
    for library in libraries:
        for row in library.rows:
            yield library, row


def row_of(libraries: Iterable[Library], name: str) -> Row:
    return next(row for library, row in rows(libraries) if library.family == OURS and row["name"] == name)


def markdown(head: list[str], body: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def per_100(count: float, cell: Row) -> float:
    return 100 * count / cell["streams"]


def figure(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def named(library: Library, row: Row) -> str:
    name = f"{library.family} {row['name']}"
    return f"**{name}**" if library.family == OURS else name


def cost_table(libraries: list[Library]) -> str:
    unit = row_of(libraries, "LFR()")["microseconds"]
    kinds = {"pairs": "pairs", "arrays": "pairs, all at once"}

    def size(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    ordered = sorted(rows(libraries), key=lambda one: one[1]["microseconds"])
    return markdown(
        ["detector", "sees", "µs per event", "times `LFR().update`", "memory, bytes", "saved, bytes"],
        (
            [
                named(library, row) + (f", first {row['events']} events" if row["events"] < 1_000 else ""),
                kinds.get(row["takes"], "errors"),
                figure(row["microseconds"]),
                figure(row["microseconds"] / unit),
                size(row["memory"]),
                size(row["saved"]),
            ]
            for library, row in ordered
        ),
    )


def found_table(libraries: list[Library]) -> str:
    def cell(one: Row) -> str:
        return f"{per_100(one['hits'], one):.0f} / {per_100(one['false'], one):.0f}"

    return markdown(
        ["detector", "streams", *SCENARIOS],
        (
            [named(library, row), str(row["found"]["Balance1"]["streams"]), *(cell(row["found"][s]) for s in SCENARIOS)]
            for library, row in rows(libraries)
            if row["found"]
        ),
    )


def delay_table(libraries: list[Library]) -> str:
    def cell(one: Row) -> str:
        middle = median(math.inf if delay is None else delay for delay in one["delays"])
        return "never" if math.isinf(middle) else f"{middle:,.0f}"

    return markdown(
        ["detector", *SCENARIOS],
        (
            [named(library, row), *(cell(row["found"][s]) for s in SCENARIOS)]
            for library, row in rows(libraries)
            if row["found"]
        ),
    )


def curve(row: Row) -> tuple[np.ndarray, np.ndarray]:
    """False alarms and hits per 100 streams over the settings, by rising false alarms."""
    points = sorted((per_100(one["false"], one), per_100(one["hits"], one)) for one in row["sweep"])
    false, hits = np.array(points, float).reshape(-1, 2).T
    # Of settings with equally few false alarms the best, so that the curve is one of values.
    kept = np.append(np.flatnonzero(np.diff(false)), len(false) - 1) if len(false) else []
    return false[kept], hits[kept]


def luck(false: float | np.ndarray) -> np.ndarray:
    """Hits per 100 of a detector that alarms at random, with so many false alarms per 100 streams."""
    return 100 * (1 - np.exp(-np.asarray(false) / 100 * WITHIN / BEFORE))


@dataclass(frozen=True)
class Match:
    """A setting of a peer, and the hits of fourrates at as many false alarms."""

    peer: str
    setting: str
    streams: int
    false: float
    hits: float
    level: float
    budget: float

    @property
    def lead(self) -> float:
        """How many more hits fourrates has."""
        return self.level - self.hits


def matches(libraries: list[Library]) -> list[Match]:
    """Every setting of every peer that is not beyond comparison."""
    level, budget = (curve(row_of(libraries, name)) for name in ("LFR()", "LFR(arl=37_000)"))
    found = []
    for library, row in rows(libraries):
        if library.family == OURS or not row["found"]:
            continue
        default = {"value": None, **row["found"]["EqualError"]}
        for one in row["sweep"] or [default]:
            false, hits = per_100(one["false"], one), per_100(one["hits"], one)
            if false <= LUCKY:
                setting = f"{row['parameter']}={one['value']:g}" if row["sweep"] else "nothing to set"
                ours = (float(np.interp(false, *own)) for own in (level, budget))
                found.append(Match(named(library, row), setting, one["streams"], false, hits, *ours))
    return found


def equal_table(libraries: list[Library], every: bool = False) -> str:
    """For each peer the setting with which it hits most, or every setting."""
    found = matches(libraries)
    if not every:
        found = [
            max((m for m in found if m.peer == peer), key=lambda m: (m.hits, m.false))
            for peer in dict.fromkeys(m.peer for m in found)
        ]
    return markdown(
        [
            "peer",
            "setting",
            "streams",
            "false alarms",
            "its hits",
            "`LFR(detect=...)`",
            "`LFR(arl=...)`",
            "fourrates first",
        ],
        (
            [
                one.peer,
                one.setting,
                str(one.streams),
                f"{one.false:.1f}",
                f"{one.hits:.1f}",
                f"{one.level:.1f}",
                f"{one.budget:.1f}",
                "yes" if one.lead >= 0 else "NO",
            ]
            for one in found
        ),
    )


def missed(libraries: list[Library]) -> list[str]:
    """The claims that do not hold."""
    found = [] if len(libraries) > 1 else ["no peer was measured"]
    unit = row_of(libraries, "LFR()")["microseconds"]
    for library, row in rows(libraries):
        if library.family != OURS and row["microseconds"] <= unit:
            found.append(f"{named(library, row)} takes {row['microseconds'] / unit:.2f} of the time of LFR().update")
    for own in ("DDM", "EDDM"):
        like = row_of(libraries, f"{own}()")["microseconds"]
        for library, row in rows(libraries):
            if row["name"] == own and row["microseconds"] <= like:
                found.append(f"{named(library, row)} takes {row['microseconds'] / like:.2f} of the time of our {own}")
    for one in matches(libraries):
        if one.lead < 0:
            found.append(f"{one.peer}, {one.setting}: {one.hits:.1f} hits, fourrates {one.level:.1f}")
    return found


def write(libraries: list[Library], left_out: dict[str, str]) -> tuple[str, list[str]]:
    """All of it, and the claims that were missed."""
    versions = ", ".join(f"{library.family} {library.version}" for library in libraries)
    absent = "".join(f"\nLeft out: {family}: {reason}\n" for family, reason in left_out.items())
    text = (
        f"{versions}\n{absent}\n"
        f"Time, memory after 10,000 events, and size of the pickle:\n\n{cost_table(libraries)}\n"
        f"Hits within {WITHIN} events / false alarms before the change, per 100 streams, default settings:\n\n"
        f"{found_table(libraries)}\n"
        f"Median delay in events, default settings:\n\n{delay_table(libraries)}\n"
        "Drift at equal error, hits per 100 streams at the peer's false alarms per 100 streams, with the setting "
        f"that hits most:\n\n{equal_table(libraries)}"
    )
    return text, missed(libraries)

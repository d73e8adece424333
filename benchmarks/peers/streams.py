"""Streams that do not change and are not independent: how often the detectors of others alarm on them.

    python benchmarks/peers/streams.py

The streams of ``benchmarks/real_streams.py``, as files, for river, frouros and CapyMOA with their default settings,
each in its own environment as in ``run.py``. Next to them FourRates with one alarm in 100,000 events asked for. None of
the others takes a budget: to be compared is how a detector fares on a stream and how on an independent one, which
stands in the first row.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from environment import BUILD, LeftOut, called, environment
from run import HERE

sys.path.insert(0, str(HERE.parent))
from drawn import RESULTS, keep  # of the benchmarks above
from real_streams import STREAMS, alarms

import fourrates as fr

FAMILIES = ("river", "frouros", "capymoa")
EVENTS, ARL = 400_000, 100_000


def write_streams(folder: Path) -> dict[str, str]:
    """The streams as files, and which is which."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = {}
    for number, (name, draw) in enumerate(STREAMS.items()):
        truth, pred = draw(np.random.default_rng(100 + number), EVENTS)
        np.save(folder / f"{number:02}.npy", np.array([truth, pred], np.int64))
        names[f"{number:02}"] = name
    return names


def counted(family: str, folder: Path, names: dict[str, str]) -> list[dict[str, Any]]:
    """Alarms per 100,000 events of every detector of a library."""
    out = BUILD / f"{family}-alarms.json"
    called(environment(family), HERE / "worker.py", family, "alarms", folder, out)
    found = json.loads(out.read_text())
    return [
        {
            "detector": f"{family} {row['name']}",
            "version": found["version"],
            "alarms": {names[key]: 100_000 * one["alarms"] / one["events"] for key, one in row["stable"].items()},
            "events": max(one["events"] for one in row["stable"].values()),
        }
        for row in found["rows"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", choices=FAMILIES, default=FAMILIES, help="the others as the last run left them"
    )
    options = parser.parse_args()
    folder = BUILD / "not-independent"
    names = write_streams(folder)
    own = {name: alarms(fr.FourRates(ARL), draw)["ratio"] for name, draw in STREAMS.items()}
    rows: list[dict[str, Any]] = [{"detector": f"FourRates({ARL})", "alarms": own}]
    kept = RESULTS / "peers_streams.json"
    known = json.loads(kept.read_text())["rows"] if kept.exists() else []
    for family in FAMILIES:
        if family not in options.only:
            rows += [row for row in known if row["detector"].startswith(f"{family} ")]
            continue
        try:
            rows += counted(family, folder, names)
        except LeftOut as reason:
            print(f"{family} is left out: {reason}", flush=True)
    for row in rows:
        shown = " ".join(f"{row['alarms'][name]:7.1f}" for name in STREAMS)
        print(f"{row['detector']:<22} {shown}")
    keep("peers_streams", {"streams": list(STREAMS), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())

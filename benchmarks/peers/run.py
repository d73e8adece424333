"""fourrates beside its peers on the same streams: one command, one table, two pictures.

    python benchmarks/peers/run.py

Each library gets a virtual environment of its own under build/peers, since some cannot share one; all read the same
streams from files. A library that cannot be installed or run is named with the reason and left out. Ends with status 1
if fourrates is not first in time per event, one event at a time, or not first in hits on drift at equal error, at
equal measured false alarms.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from environment import BUILD, REQUIREMENTS, LeftOut, called, environment
from pictures import draw
from table import Library, equal_table, write

from fourrates.streams import SCENARIOS, Scenario

HERE = Path(__file__).parent
# One event in ten is positive. The tpr falls from 0.75 to 0.25; one event in eight is an error before and after.
EQUAL_ERROR = Scenario(((0.80, 0.10), (0.025, 0.075)), ((0.85, 0.05), (0.075, 0.025)))
MEASURES = ("found", "size", "cost")
ROUNDS = 2
# One place to count all memory, and nothing that was freed counted as used.
COUNTED = {
    "PYTHONMALLOC": "malloc",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
}


def write_streams(folder: Path, number: int) -> None:
    """The six scenarios, twice as many of equal error, and a long one that is stable."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, scenario in SCENARIOS.items():
        np.save(folder / f"{name}.npy", [scenario.stream(seed) for seed in range(number)])
    np.save(folder / "EqualError.npy", [EQUAL_ERROR.stream(seed) for seed in range(2 * number)])
    np.save(folder / "stable.npy", EQUAL_ERROR.stream(seed=0, length=100_000, change=100_000))


def measured(family: str, python: Path, what: str) -> dict[str, Any]:
    out = BUILD / f"{family}-{what}.json"
    called(python, HERE / "worker.py", family, what, BUILD / "streams", out, **(COUNTED if what == "size" else {}))
    return json.loads(out.read_text())


def measure_all(families: list[str], measures: list[str], libraries: dict[str, Library]) -> dict[str, str]:
    """Add to what is known of the libraries; gives why some are left out."""
    pythons: dict[str, Path] = {}
    left_out: dict[str, str] = {}

    def attempt(family: str, job: Any) -> None:
        if family not in left_out:
            try:
                job(family)
            except LeftOut as reason:
                left_out[family] = str(reason)
                print(f"{family} is left out: {reason}", flush=True)

    def install(family: str) -> None:
        pythons[family] = environment(family)

    def judge(family: str) -> None:
        print(f"judging {family}", flush=True)
        libraries[family] = Library(**measured(family, pythons[family], "found"))

    def weigh(family: str) -> None:
        libraries[family].take(measured(family, pythons[family], "size"))

    def clock(family: str) -> None:
        libraries[family].take(measured(family, pythons[family], "cost"))

    if "cost" in measures:
        for library in libraries.values():
            library.forget_times()
    # The times are taken in turn, so that a busy machine disturbs all alike.
    jobs = {"found": [judge], "size": [weigh], "cost": [clock] * ROUNDS}
    for job in (install, *(job for what, each in jobs.items() if what in measures for job in each)):
        for family in families:
            attempt(family, job)
    for family in left_out:
        libraries.pop(family, None)
    return left_out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100, help="of each scenario; slow detectors get a part of them")
    parser.add_argument("--only", nargs="*", choices=REQUIREMENTS, default=list(REQUIREMENTS), help="peers to compare")
    parser.add_argument(
        "--measure",
        nargs="*",
        choices=MEASURES,
        default=MEASURES,
        help="only this; the rest is as the last run measured it, all of it without a name",
    )
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    kept = BUILD / "measured.json"
    known = {"libraries": [], "left_out": {}} if "found" in options.measure else json.loads(kept.read_text())
    by_name = {one["family"]: Library(**one) for one in known["libraries"]}
    if options.measure:
        if "found" in options.measure:
            write_streams(BUILD / "streams", options.streams)
        known["left_out"] |= measure_all(list(by_name) or ["fourrates", *options.only], options.measure, by_name)
        if "fourrates" not in by_name:
            sys.exit(f"fourrates itself could not be measured: {known['left_out']['fourrates']}")
        kept.write_text(json.dumps(known | {"libraries": [vars(one) for one in by_name.values()]}))
    libraries = list(by_name.values())
    text, missed = write(libraries, known["left_out"])
    (BUILD / "table.md").write_text(text)
    (BUILD / "equal.md").write_text(equal_table(libraries, every=True))
    draw(libraries, BUILD)
    print(text)
    print(f"{BUILD / 'table.md'}; every setting in equal.md; pictures: peers-time and peers-equal, .svg and .png")
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

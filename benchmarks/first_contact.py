"""``fourrates detect FILE`` with nothing but a file: what is found where the truth is known, by the default budget.

The demo's stream, 20 million rows of a model that does not change, and the predictions of a scikit-learn model on SEA
and USENET (a folder with them in FOURRATES_DATA). Ends with status 1 if a mark is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from drawn import Concept, draw, keep

from fourrates.streams import fraud
from paper.datasets import load

STABLE = Concept(0.1, 0.95, 0.8)
TRAINED = {"sea": 5_000, "usenet1": 150, "usenet2": 150}  # rows the model learns from, before the first change


def drifts(found):
    """The events at which drifts were found."""
    return [one["at"] for one in found["findings"] if one["kind"] == "drift"]


def detected(path: Path) -> dict[str, Any]:
    """What the command line says, as a person would run it; --json for the numbers alone."""
    command = [sys.executable, "-m", "fourrates", "detect", str(path), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {**json.loads(done.stdout), "messages": done.stderr.splitlines()}


def write(path: Path, **columns: Any) -> Path:
    pa.csv.write_csv(pa.table(columns), path)
    return path


def demo(folder: Path) -> dict[str, Any]:
    stream = fraud(seed=5)
    path = write(folder / "demo.csv", timestamp=stream.times, y_true=stream.y_true, y_pred=stream.y_pred)
    return {
        "changes": stream.changes,
        "found": drifts(detected(path)),
    }


def stable(folder: Path, rows: int) -> dict[str, Any]:
    truth, pred = draw(np.random.default_rng(1), rows, STABLE)
    path = write(folder / "stable.csv", y_true=truth.astype(np.int8), y_pred=pred.astype(np.int8))
    found = detected(path)
    asked = rows / found["parameters"]["arl"]
    return {"rows": rows, "asked": asked, "alarms": len(drifts(found))}


def predictions(folder: Path, name: str) -> dict[str, Any]:
    """A logistic regression on words, a small forest on numbers; labels as the data set writes them."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    data = load(name)
    rows = TRAINED[name]
    model = RandomForestClassifier(50, random_state=0) if name == "sea" else LogisticRegression(max_iter=1000)
    words = np.array(data.classes)[data.labels]
    model.fit(data.features[:rows], words[:rows])
    truth, pred = words[rows:], model.predict(data.features[rows:])
    found = detected(write(folder / f"{name}.csv", target=truth, prediction=pred))
    changes = [at - rows for at in data.changes]
    return {
        "changes": changes,
        "rows": truth.size,
        "found": drifts(found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    missed = 0
    numbers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numbers["demo"] = one = demo(folder)
        exact = len(one["found"]) == 2 and all(
            0 <= at - to < 4_000 for at, to in zip(one["found"], one["changes"], strict=False)
        )
        missed += not exact
        print(f"demo: changes at {one['changes']}, found at {one['found']}: {'exactly these' if exact else 'NO'}")
        numbers["stable"] = one = stable(folder, options.rows)
        ratio = one["alarms"] / one["asked"]
        error = one["asked"] ** -0.5  # of a Poisson count
        missed += abs(ratio - 1) > 0.1 + 2 * error
        shares = f"{one['alarms']} alarms, {one['asked']:.0f} asked for: {ratio:.2f}, +- {error:.2f}"
        print(f"{options.rows:,} stable rows: {shares}", flush=True)
        for name in TRAINED if "FOURRATES_DATA" in os.environ else ():
            numbers[name] = one = predictions(folder, name)
            print(f"{name}: changes at {one['changes']} of {one['rows']:,} rows, found at {one['found']}")
    keep("first_contact", numbers)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

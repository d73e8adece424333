"""Try an installed fourrates, from a folder where its source is not: the detectors, the command line, the report.

python tests/release/smoke.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words):
    """The command line of this environment, and what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "fourrates", *words], check=True, capture_output=True, text=True
    ).stdout


def main():
    import fourrates as fr
    from fourrates.streams import SCENARIOS

    assert Path(fr.__file__).is_relative_to(sys.prefix), f"{fr.__file__} is not the installed one"
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    (drift,) = fr.LFR().update_many(y_true, y_pred)
    assert (drift.at, drift.since, drift.changes[0].rate) == (5098, 5051, "tpr"), drift
    watching = fr.FourRates(arl=100_000)
    drift, *_ = watching.update_many(y_true, y_pred)
    assert "tpr" in {change.rate for change in drift.changes}, drift
    assert (watching.open, watching.rates["tpr"].state) == (drift, "confirmed"), watching.findings
    detector = fr.LFR.from_bytes(fr.LFR().to_bytes())
    assert detector.update(1, 1) is None

    assert run("--version").strip() == f"fourrates {fr.__version__}"
    with tempfile.TemporaryDirectory() as folder:
        data, page = Path(folder, "predictions.csv"), Path(folder, "page.html")
        data.write_text("y_true,y_pred\n" + "".join(f"{a},{b}\n" for a, b in zip(y_true, y_pred, strict=True)))
        assert f'"at": {drift.at}' in run("detect", str(data), "--json", "--report", str(page))
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    print(f"fourrates {fr.__version__} works on Python {sys.version.split()[0]}, {sys.platform}")


if __name__ == "__main__":
    main()

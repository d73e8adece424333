"""`fourrates detect` as a person and as a program use it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import fourrates as fr

CAREFUL = "LFR(detect=1e-6)"
ROOT = Path(__file__).parents[2]


def drifts_of(ran):
    return json.loads(ran.out)["findings"]


@pytest.fixture(scope="module")
def wanted(stream):
    return fr.LFR(detect=1e-6).update_many(stream.y_true, stream.y_pred)


def test_the_table_tells_when_since_which_rate_and_from_what_to_what(fourrates, drifting, wanted, stream):
    ran = fourrates("detect", drifting, "--detector", CAREFUL)
    assert ran.status == 0
    assert ran.out.startswith(f"{len(wanted)} drift")
    change = wanted[0].changes[0]
    for part in (
        str(stream.times[wanted[0].at].astype("M8[m]")).replace("T", " "),
        f"event {wanted[0].since:,}",
        f"{change.rate} ↓",
        f"{change.expected:.3f} → {change.statistic:.3f}",
    ):
        assert part in ran.out
    assert "times in column 'timestamp'" in ran.err


def test_json_holds_what_the_detector_reported(fourrates, drifting, wanted, stream):
    ran = fourrates("detect", drifting, "-d", CAREFUL, "--json")
    found = drifts_of(ran)
    assert [(one["at"], one["since"]) for one in found] == [(drift.at, drift.since) for drift in wanted]
    for one, drift in zip(found, wanted, strict=True):
        assert np.datetime64(one["time"]) == stream.times[drift.at]
        assert one["row"] == drift.at + 1
        assert one["confusion"] == [list(row) for row in drift.confusion]
    assert json.loads(ran.out)["parameters"]["detect"] == 1e-6


def test_csv_has_a_row_for_each_rate_that_moved(fourrates, drifting, wanted, tmp_path):
    path = tmp_path / "drifts.csv"
    assert fourrates("detect", drifting, "-d", CAREFUL, "--csv", path).status == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(int(row["at"]), row["rate"]) for row in rows] == [(d.at, c.rate) for d in wanted for c in d.changes]


def test_the_exit_status_tells_of_drift_when_asked(fourrates, drifting, tmp_path):
    assert fourrates("detect", drifting, "--fail-on", "drift").status == 1
    assert fourrates("detect", drifting).status == 0
    quiet = tmp_path / "quiet.csv"
    quiet.write_text("y_true,y_pred\n" + "1,1\n0,0\n" * 100)
    ran = fourrates("detect", quiet, "--fail-on", "drift")
    assert ran.status == 0
    assert ran.out.splitlines()[0].startswith("Stable: tnr 1.000 (0.974 to 1.000 of 100; normal 1.000)")
    assert ran.out.splitlines()[1:] == ["No drift in 200 events"]


def test_a_pipe_gives_what_the_file_gives(fourrates, drifting):
    with drifting.open() as file:
        piped = fourrates("detect", "-", "-d", CAREFUL, "--json", stdin=file)
    assert [one["at"] for one in drifts_of(piped)] == [
        one["at"] for one in drifts_of(fourrates("detect", drifting, "-d", CAREFUL, "--json"))
    ]


def test_many_streams_in_one_file_are_as_many_files(fourrates, tmp_path):
    random = np.random.default_rng(3)
    alone = {}
    rows = []
    for model in ("a", "b", "c"):
        truth = random.integers(0, 2, 4000)
        share = np.where((np.arange(4000) >= 2000) & (model == "b"), 0.5, 0.9)
        pred = np.where(random.random(4000) < share, truth, 1 - truth)
        alone[model] = fr.LFR(detect=1e-6).update_many(truth, pred)
        rows += [(i + random.random(), model, t, g) for i, (t, g) in enumerate(zip(truth, pred, strict=True))]
    path = tmp_path / "models.csv"
    path.write_text("model,y_true,y_pred\n" + "".join(f"{m},{t},{g}\n" for _, m, t, g in sorted(rows)))
    found = drifts_of(fourrates("detect", path, "--by", "model", "-d", CAREFUL, "--json"))
    assert alone["b"]
    for model, drifts in alone.items():
        mine = [(one["at"], one["since"]) for one in found if one["segment"] == model]
        assert mine == [(drift.at, drift.since) for drift in drifts]


def test_labels_words_and_the_positive_one(fourrates, tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text("label,prediction\n" + "ham,ham\nspam,spam\n" * 50)
    ran = fourrates("detect", path, "--classes", "spam,ham", "--positive", "spam", "--json")
    assert json.loads(ran.out)["parameters"]["positive"] == "spam"


def test_missing_rows_are_told(fourrates, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("y_true,y_pred\n1,1\n,1\n0,0\n")
    assert "1 of 3 rows skipped" in fourrates("detect", path).err
    path.write_text("y_true,y_pred\n1,1\n0,\n0,0\n")
    ran = fourrates("detect", path)
    assert ran.status == 2
    assert "gaps.csv, line 3: the value in column 'y_pred' is missing" in ran.err
    assert "1 of 3 rows skipped" in fourrates("detect", path, "--bad", "skip").err


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        ("NONE", "no detector 'NONE'; there are "),
        ("LFR(speed=2)", "LFR has no parameter 'speed'; it has decay"),
        ("LFR(0.9)", "name the parameters"),
        ("LFR(decay=", "is not written like"),
        ("LFR(decay=2)", "decay 2.0 is not in (0, 1)"),
        ("LFR(decay=__import__('os'))", "is not written like"),
        ("river.ADWIN", "no detector 'river.ADWIN'; there are "),
    ],
)
def test_a_detector_that_cannot_be_made_is_said(fourrates, drifting, detector, message):
    ran = fourrates("detect", drifting, "--detector", detector)
    assert ran.status == 2
    assert message in ran.err


def test_a_run_length_is_asked_for_in_events_or_time(fourrates, drifting):
    ran = fourrates("detect", drifting, "--budget", "soon")
    assert ran.status == 2
    assert "--budget 'soon': try '1 per month' or 100000" in ran.err


def test_the_core_imports_nothing_of_this():
    import subprocess
    import sys

    code = "import sys, fourrates; print([m for m in sys.modules if m.split('.')[0] in ('click', 'rich', 'pyarrow')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_and_help(fourrates):
    assert fourrates("--version").out.strip() == f"fourrates {fr.__version__}"
    for command in ("detect", "watch", "demo"):
        assert "Usage: fourrates" in fourrates(command, "--help").out


@pytest.mark.slow
def test_the_picture_is_drawn(fourrates, drifting, tmp_path):
    for suffix, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        path = tmp_path / f"rates.{suffix}"
        assert fourrates("detect", drifting, "--plot", path).status == 0
        assert path.read_bytes().startswith(magic)
    assert fourrates("detect", drifting, "--plot", tmp_path / "rates.doc").status == 2


@pytest.mark.slow
def test_the_demo_finds_both_changes_and_writes_its_report_as_the_page_shows(fourrates, tmp_path):
    ran = fourrates("demo", tmp_path / "demo")
    assert ran.status == 0
    assert ran.out.startswith("Stable: tnr 0.9")
    assert ran.out.splitlines()[1].startswith("2 drifts and 2 recoveries in 200,000 events")
    assert "tpr ↓" in ran.out
    assert "tpr ↑" in ran.out
    assert "from 2026-01-08 23:51 " in ran.err  # to the minute: it is found after midnight
    assert (tmp_path / "demo" / "report.html").stat().st_size < 2_000_000
    page = {" ".join(line.split()) for line in (ROOT / "docs" / "cli.md").read_text().splitlines()}
    found = fourrates("detect", tmp_path / "demo" / "transactions.csv").out
    assert [line for line in found.splitlines() if " ".join(line.split()) not in page] == []

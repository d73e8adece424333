"""``fourrates sample``."""

import csv

import numpy as np

REFERENCE = "8820,180,300,700"


def predictions(path, size=200_000, changes=100_000):
    """A file of them, 8,640 a day, whose tnr falls from .98 to .94; the truths by id."""
    random = np.random.default_rng(5)
    truth = (random.random(size) < 0.1).astype(int)
    tnr = np.where(np.arange(size) < changes, 0.98, 0.94)
    pred = np.where(random.random(size) < np.where(truth, 0.7, tnr), truth, 1 - truth)
    times = np.datetime64("2026-01-01T00:00") + np.arange(size) * np.timedelta64(10, "s")
    rows = zip(range(size), pred, times.astype(str), strict=True)
    path.write_text("id,prediction,timestamp\n" + "".join(f"o{i},{p},{t}\n" for i, p, t in rows))
    return {f"o{i}": label for i, label in enumerate(truth.tolist())}


def test_what_is_sampled_and_labelled_is_what_detect_takes(fourrates, tmp_path):
    truths = predictions(tmp_path / "p.csv")
    asked = "sample", tmp_path / "p.csv", "--reference", REFERENCE, "--labels"
    done = fourrates(*asked, "400/day", "-o", tmp_path / "to-label.csv")
    assert "label 3.2 % of predicted 0, 19.1 % of predicted 1: 4.6 % of the events" in done.err
    assert (tmp_path / "to-label.csv").read_text() == fourrates(*asked, "400/day").out  # drawn again, the same
    with open(tmp_path / "to-label.csv") as file:
        rows = list(csv.DictReader(file))
    assert abs(len(rows) - 400 * 200_000 / 8_640) < 1_000
    assert {(row["label_probability"] > row["other_probability"]) for row in rows if row["prediction"] == "1"} == {True}
    with open(tmp_path / "labelled.csv", "w", newline="") as file:
        out = csv.DictWriter(file, [*rows[0], "label"])
        out.writeheader()
        out.writerows(row | {"label": truths[row["id"]]} for row in rows)
    found = fourrates("detect", tmp_path / "labelled.csv", "--reference", REFERENCE, "--budget", 100_000)
    assert "Drifted: tnr 0.94" in found.out
    assert "normal 0.9" in found.out


def test_what_cannot_be_sampled_is_said(fourrates, tmp_path):
    (tmp_path / "p.csv").write_text("id,prediction\na,1\nb,0\n")
    asked = "sample", tmp_path / "p.csv"
    assert "needs times" in fourrates(*asked, "--reference", REFERENCE, "--labels", "200/day").err
    assert "not written like 200/day" in fourrates(*asked, "--reference", REFERENCE, "--labels", "many").err
    assert "--reference says what" in fourrates(*asked, "--labels", "5%").err
    (tmp_path / "p.csv").write_text("prediction\n1\n0\n")
    assert "which column holds the ids" in fourrates(*asked, "--reference", REFERENCE, "--labels", "5%").err

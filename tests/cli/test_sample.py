"""``fourrates sample``."""

import csv
import json
import re

import numpy as np
import pytest

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
    done = fourrates(*asked, "400/day")
    (tmp_path / "to-label.csv").write_text(done.out)
    assert "label 3.3 % of predicted 0, 18.6 % of predicted 1: 4.6 % of the events" in done.err
    assert done.out == fourrates(*asked, "400/day").out  # drawn again, the same
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
    late = "detect", tmp_path / "p.csv", "--labels-from", tmp_path / "labelled.csv"
    budgets = [
        int(re.search(r"one false alarm a month, which is ([\d,]+) events", told.err)[1].replace(",", ""))
        for told in (
            fourrates("detect", tmp_path / "labelled.csv", "--reference", REFERENCE),
            fourrates(*late, "--reference", REFERENCE),
            fourrates(*late, "--reference", REFERENCE, "--state", tmp_path / "late.state"),
        )
    ]
    assert max(budgets) < 1.1 * min(budgets)
    assert budgets[0] < 500 * 31  # labelled events, not predictions


def test_classes_are_inferred_as_detect_does(fourrates, tmp_path):
    truths = predictions(tmp_path / "p.csv", 20_000)
    text = (tmp_path / "p.csv").read_text().replace(",1,", ",fraud,").replace(",0,", ",legit,")
    (tmp_path / "words.csv").write_text(text)
    pairs = [(truths[line.split(",")[0]], line.split(",")[1]) for line in text.splitlines()[1:]]
    told = "".join(f"{'fraud' if truth else 'legit'},{pred}\n" for truth, pred in pairs)
    (tmp_path / "validation.csv").write_text(f"label,prediction\n{told}")
    for reference in (tmp_path / "validation.csv", REFERENCE):  # or of the predictions alone
        done = fourrates("sample", tmp_path / "words.csv", "--reference", reference, "--labels", "5%")
        named = fourrates(
            *("sample", tmp_path / "words.csv", "--reference", reference, "--labels", "5%", "--classes", "legit,fraud")
        )
        assert "legit, fraud; fraud, the rarer, is the positive one" in done.err
        assert done.status == 0
        assert done.out == named.out
        assert done.out.count("\n") > 500


def test_what_cannot_be_sampled_is_said(fourrates, tmp_path):
    (tmp_path / "p.csv").write_text("id,prediction\na,1\nb,0\n")
    asked = "sample", tmp_path / "p.csv"
    assert "needs times" in fourrates(*asked, "--reference", REFERENCE, "--labels", "200/day").err
    assert "not written like 200/day" in fourrates(*asked, "--reference", REFERENCE, "--labels", "many").err
    assert "--reference is needed" in fourrates(*asked, "--labels", "5%").err
    (tmp_path / "p.csv").write_text("prediction\n1\n0\n")
    assert "which column holds the ids" in fourrates(*asked, "--reference", REFERENCE, "--labels", "5%").err


@pytest.mark.parametrize(
    ("verdict", "human"), [("verdict", "human"), ("judge_label", "human_label"), ("grade", "gold")]
)
def test_verdicts_of_a_judge_are_drawn_and_watched_as_an_eval_tool_exports_them(fourrates, tmp_path, verdict, human):
    """A judge that passes 5 % of bad answers, and from 60,000 on 25 %."""
    random, size = np.random.default_rng(6), 120_000
    bad = random.random(size) < 0.3
    missed = random.random(size) < np.where(np.arange(size) < 60_000, 0.05, 0.25)
    said = np.where(bad & ~missed, "fail", "pass").tolist()
    rows = [
        {"trace_id": f"t{i}", "input": "why?", "output": "so", verdict: one, "explanation": "as asked", "score": None}
        for i, one in enumerate(said)
    ]
    (tmp_path / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = tmp_path / "judged.jsonl", "--classes", "pass,fail"
    drawn = fourrates("sample", *words, "--reference", "690,10,15,285", "--labels", "10%")
    assert f"predictions in column '{verdict}'" in drawn.err
    read = list(csv.DictReader(drawn.out.splitlines()))
    with open(tmp_path / "read.csv", "w", newline="") as file:
        out = csv.DictWriter(file, [*read[0], human])
        out.writeheader()
        out.writerows(row | {human: "fail" if bad[int(row["trace_id"][1:])] else "pass"} for row in read)
    found = fourrates("detect", *words, "--labels-from", tmp_path / "read.csv", "--budget", 20_000, "--json")
    findings = json.loads(found.out)["findings"]
    assert f"labels in column '{human}'" in found.err
    drift = next(one for one in findings if one["kind"] == "drift")
    assert [(change["rate"], change["direction"]) for change in drift["changes"]] == [("tpr", "down")]
    shifts = [one for one in findings if one["kind"] == "prediction_shift" and 60_000 < one["at"] < 65_000]
    assert shifts[0]["after"]["value"] < shifts[0]["before"]["value"]

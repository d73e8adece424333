"""The budget, the reference and late labels on the command line."""

import json

import numpy as np
import pytest

import fourrates as fr
from fourrates.plain import KINDS


def detected(ran):
    assert ran.status == 0, ran.err
    return json.loads(ran.out)


def places(found):
    return [(one["at"], one["kind"]) for one in found["findings"] if one["kind"] != "shift"]


def wanted(detector, stream):
    """Where a detector finds drifts and what becomes of them, and where shifts of the classes."""
    assert detector.update_many(stream.y_true, stream.y_pred)
    listed = [(finding.at, finding.kind) for finding in detector.findings]
    return [one for one in listed if one[1] != "shift"], [at for at, kind in listed if kind == "shift"]


def test_the_default_is_four_rates_and_one_false_alarm_a_month(fourrates, drifting):
    ran = fourrates("detect", drifting, "--json")
    found = detected(ran)
    assert found["detector"] == "FourRates"
    assert f"budget: one false alarm a month, which is {found['parameters']['arl']:,.0f} events" in ran.err
    assert 58_000 < found["parameters"]["arl"] < 64_000  # 2,000 a day, give or take the season


def test_a_budget_in_words_is_one_in_events(fourrates, drifting, stream):
    ran = fourrates("detect", drifting, "--budget", "one a quarter", "--json")
    found = detected(ran)
    assert "so 'one a quarter' is one false alarm in" in ran.err
    findings, shifts = wanted(fr.FourRates(found["parameters"]["arl"]), stream)
    assert places(found) == findings
    assert {"drift", "recovery"} <= {kind for _, kind in findings}
    assert [one["at"] for one in found["findings"] if one["kind"] == "shift"] == shifts
    assert fourrates("detect", drifting, "--budget", "one a quarter", "--json").out == ran.out


def test_a_tolerance_is_a_number_or_one_by_rate(fourrates, drifting, stream, tmp_path):
    for text, tolerance in (("0.03", 0.03), ("tpr=0.5, tnr=0.001", {"tpr": 0.5, "tnr": 0.001})):
        ran = fourrates("detect", drifting, "--budget", 100_000, "--tolerance", text, "--json")
        detector = fr.FourRates(100_000, tolerance=tolerance)
        detector.update_many(stream.y_true, stream.y_pred)
        kinds = [(one.at, one.kind) for one in detector.findings if one.kind != "shift"]
        assert places(detected(ran)) == kinds
        assert "as you asked" in ran.err
    state = tmp_path / "state"
    assert fourrates("detect", drifting, "--tolerance", "0.03", "--state", state).status == 0
    assert fourrates("detect", drifting, "--tolerance", "0.03", "--state", state).status == 0
    assert fourrates("detect", drifting, "--state", state).status == 0
    for options, message in (
        (("--tolerance", "0.04", "--state", state), "only --budget can be changed"),
        (("--tolerance", "x"), "--tolerance 'x' is not written like 0.03"),
        (("--tolerance", "0.03", "--detector", "LFR"), "LFR takes no tolerance; FourRates does"),
    ):
        ran = fourrates("detect", drifting, *options)
        assert ran.status == 2
        assert message in ran.err


def test_a_reference_is_a_file_or_counts(fourrates, drifting, stream, tmp_path):
    counts = [[11_700, 300], [60, 180]]
    path = tmp_path / "validation.csv"
    rows = [f"{t},{g}\n" * counts[t][g] for t in (0, 1) for g in (0, 1)]
    path.write_text("y_true,y_pred\n" + "".join(rows))
    findings, _ = wanted(fr.FourRates(100_000, reference=counts), stream)
    assert {"drift", "recovery"} <= {kind for _, kind in findings}
    for reference in (path, "11700,300,60,180", "[[11700, 300], [60, 180]]"):
        found = detected(fourrates("detect", drifting, "--budget", 100_000, "--reference", reference, "--json"))
        assert places(found) == findings
    shown = fourrates("detect", drifting, "--budget", 100_000, "--reference", path).out
    for kind in {kind for _, kind in findings} - {"drift"}:
        assert f" {KINDS[kind]} " in shown


@pytest.mark.parametrize(
    ("reference", "why"),
    [("1,2,3", "3 counts make no square"), ("1,2,3,4,5,6,7,8,9", "shape"), ("nowhere.csv", "nowhere.csv")],
)
def test_a_reference_that_cannot_be(fourrates, drifting, reference, why):
    ran = fourrates("detect", drifting, "--reference", reference)
    assert ran.status == 2
    assert why in ran.err


def test_labels_from_another_file_are_joined(fourrates, drifting, stream, tmp_path):
    size = stream.y_true.size
    order = np.random.default_rng(1).permutation(size)
    predictions, outcomes = tmp_path / "predictions.csv", tmp_path / "outcomes.csv"
    predictions.write_text("order,y_pred\n" + "".join(f"{i},{g}\n" for i, g in enumerate(stream.y_pred)))
    outcomes.write_text("order,y_true\n" + "".join(f"{i},{stream.y_true[i]}\n" for i in order))
    words = ["detect", predictions, "--labels-from", outcomes, "--id", "order", "--budget", 60_000]
    findings, _ = wanted(fr.FourRates(60_000), stream)
    found = places(detected(fourrates(*words, "--json")))
    assert [one for one in found if one[1] != "prediction_shift"] == findings
    assert fourrates(*words, "--state", tmp_path / "state").status == 2
    assert fourrates("detect", drifting, "--id", "y_true").status == 2


def test_only_a_drift_fails_not_a_recovery(fourrates, tmp_path):
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, 4000)
    right = random.random(4000) < np.where((np.arange(4000) < 2000) & (truth == 1), 0.4, 0.9)
    path, state = tmp_path / "a.csv", tmp_path / "state"
    rows = [f"{t},{t if r else 1 - t}\n" for t, r in zip(truth, right, strict=True)]
    reference = ["--reference", "9000,1000,1000,9000", "--budget", 1_000_000]
    path.write_text("y_true,y_pred\n" + "".join(rows[:2000]))
    assert fourrates("detect", path, *reference, "--fail-on", "drift", "--state", state).status == 1
    path.write_text("y_true,y_pred\n" + "".join(rows[2000:]))
    ran = fourrates("detect", path, "--state", state, "--fail-on", "drift")
    assert ran.status == 0
    now, history = ran.out.splitlines()[:2]
    assert now.startswith("Stable: ")
    assert history.startswith("No new drift and 1 recovery in ")


@pytest.mark.slow
def test_expect_says_that_larger_falls_are_found_sooner(fourrates):
    words = ["expect", "900,100,200,800", "--budget", 20_000, "--fall", 10, "--fall", 30, "--json"]
    falls = detected(fourrates(*words))["falls"]
    assert [one["rate"] for one in falls] == ["tnr", "tnr", "tpr", "tpr"]
    for small, large in (falls[:2], falls[2:]):
        assert large["median"] < small["median"]
    for wrong in ("900,100", "a,b,c,d", "0,0,1,1"):
        assert fourrates("expect", wrong).status == 2


@pytest.mark.parametrize("words", [[], ["--positive", "fraud"]])
def test_counts_of_a_reference_have_the_positive_class_last_whether_it_is_named_or_guessed(fourrates, tmp_path, words):
    path = tmp_path / "words.csv"
    path.write_text("label,prediction\n" + "ok,ok\n" * 95 + "fraud,fraud\n" * 5)
    ran = fourrates("detect", path, "--reference", "9550,250,50,150", *words)
    assert ran.status == 0
    assert "classes from the data: ok, fraud; fraud" in ran.err
    assert "reference: tnr 0.974 of 9,800, tpr 0.750 of 200" in ran.err


def test_a_reference_has_the_versions_that_its_column_names(fourrates, tmp_path):
    """v2 is worse than v1 from its first day, as its own validation set says, so nothing has drifted."""
    random, size = np.random.default_rng(4), 8_000
    truth, version = random.integers(0, 2, size), np.where(np.arange(size) < size // 2, "v1", "v2")
    pred = np.where(random.random(size) < np.where(version == "v1", 0.95, 0.8), truth, 1 - truth)
    lines = [f"{t},{p},{v}" for t, p, v in zip(truth, pred, version, strict=True)]
    path, reference = tmp_path / "data.csv", tmp_path / "reference.csv"
    path.write_text("\n".join(["y_true,y_pred,model", *lines]) + "\n")
    cells = {"v1": (95, 5), "v2": (80, 20)}
    rows = [
        f"{y},{y if i < right else 1 - y},{v}"
        for v, (right, wrong) in cells.items()
        for y in (0, 1)
        for i in range(100)
    ]
    reference.write_text("\n".join(["y_true,y_pred,model", *(rows * 20)]) + "\n")
    ran = fourrates("detect", path, "--version-column", "model", "--reference", reference, "--json")
    assert ran.status == 0
    found = json.loads(ran.out)
    python = fr.detect(path, version="model", reference=reference)
    assert [one["at"] for one in found["findings"]] == [one.at for one in python]
    assert found["findings"] == []


def test_a_topic_has_one_reference_for_all_segments(fourrates, tmp_path):
    pytest.importorskip("confluent_kafka")
    reference = tmp_path / "reference.csv"
    reference.write_text("country,y_true,y_pred\n" + "de,1,1\nde,0,0\nfr,1,1\nfr,0,0\n" * 40)
    ran = fourrates("watch", "kafka://127.0.0.1:9/x", "--by", "country", "--reference", reference)
    assert ran.status == 2
    assert "--reference: a topic has one for all segments" in ran.err

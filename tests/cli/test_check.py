"""``fourrates check``, and ``expect`` with a volume."""

import json

import numpy as np
import pytest

import fourrates as fr


@pytest.mark.slow
def test_check_says_what_the_library_says(fourrates, drifting):
    ran = fourrates("check", drifting, "--json")
    assert ran.status == 0
    assert json.loads(ran.out) == json.loads(json.dumps(fr.diagnose(drifting).to_dict(), default=str))


@pytest.mark.slow
def test_check_shows_volume_problems_budget_and_falls(fourrates, drifting):
    ran = fourrates("check", drifting, "--budget", "one a quarter")
    assert ran.status == 0
    assert "2,000 a day" in ran.out
    assert "which here is 0.33 a month: one in 3 months" in ran.out
    assert "found after, median" in ran.out
    assert "labels in column 'y_true'" in ran.err


def test_check_joins_late_labels_and_says_what_it_says_of_one_file(fourrates, tmp_path):
    random = np.random.default_rng(3)
    truth, times = (random.random(4_000) < 0.3) * 1, np.datetime64("2026-06-01", "m") + 30 * np.arange(4_000)
    pred = np.where(random.random(4_000) < 0.9, truth, 1 - truth)
    own = {"id": range(4_000), "time": times, "predicted_fraud": pred}
    late = random.permutation(3_900)
    labels = {"id": late, "is_fraud": truth[late], "label_time": times[late] + np.timedelta64(9, "D")}
    for name, columns in (("p", own), ("l", labels), ("both", own | {"is_fraud": truth})):
        rows = zip(*columns.values(), strict=True)
        text = "".join(",".join(map(str, row)) + "\n" for row in rows if name != "both" or row[0] < 3_900)
        (tmp_path / f"{name}.csv").write_text(",".join(columns) + "\n" + text)
    ran = fourrates("check", tmp_path / "p.csv", "--labels-from", tmp_path / "l.csv", "--json")
    assert ran.status == 0
    found, whole = json.loads(ran.out), json.loads(fourrates("check", tmp_path / "both.csv", "--json").out)
    assert "100 predictions wait for a label" in found["messages"]
    same = ("events", "labels", "confusion", "arl", "drifts", "dispersion")
    assert {name: found[name] for name in same} == {name: whole[name] for name in same}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--truth", "nowhere"], "no column 'nowhere'"),
        (["--budget", "often"], "budget 'often': try '1 per month' or 100000"),
        (["--id", "nowhere"], "no column 'nowhere'"),
    ],
)
def test_check_refuses_what_it_cannot_use(fourrates, drifting, words, why):
    ran = fourrates("check", drifting, *words)
    assert ran.status == 2
    assert why in ran.err


@pytest.mark.slow
def test_a_volume_and_patience_make_a_budget(fourrates):
    words = ["--volume", "40,000 a day", "--budget", "one a quarter", "--fall", 20]
    ran = fourrates("expect", *words, "--json")
    assert ran.status == 0
    found = json.loads(ran.out)
    assert found["parameters"]["arl"] == pytest.approx(91.31 * 40_000)
    assert found["per_day"] == pytest.approx(40_000)
    for fall in found["falls"]:
        assert fall["days"] == pytest.approx(fall["median"] / 40_000, abs=1e-4)
    shown = fourrates("expect", *words)
    assert "40,000 events a day: one false alarm in 3,652,400 events is one in 3 months" in shown.err
    assert "minutes" in shown.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--budget", "1 per month"], "--budget '1 per month': add --volume, such as 40000/day"),
        (["--budget", "often"], "budget 'often': try '1 per month' or 100000"),
        (["--volume", "often"], "--volume 'often': try 40000/day or '40,000 a day'"),
    ],
)
def test_a_budget_that_expect_cannot_use(fourrates, words, why):
    ran = fourrates("expect", *words)
    assert ran.status == 2
    assert why in ran.err


def test_expect_names_a_fall_that_a_recall_cannot_have(fourrates):
    ran = fourrates("expect", "--fall", 90, "--json")
    assert ran.status == 0
    assert [fall["rate"] for fall in json.loads(ran.out)["falls"]] == ["tnr"]
    assert "tpr is 0.800 and cannot fall by 90 points" in ran.err
    ran = fourrates("expect", "--fall", 95, "--fall", 99)
    assert ran.status == 2
    assert "tnr is 0.900 and cannot fall by 95 or 99 points" in ran.err
    assert ran.err.splitlines()[-1] == "fourrates: no recall can fall by that many points"


@pytest.mark.slow
def test_check_by_segment_says_whose_events_its_delays_count(fourrates, tmp_path):
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 30_000)
    pred = np.where(random.random(30_000) < 0.9, truth, 1 - truth)
    times = np.datetime64("2026-01-01", "m") + np.arange(30_000)
    segment = np.array(["a", "b", "c"])[(np.arange(30_000) % 6 > 0) * 1 + (np.arange(30_000) % 6 > 2)]
    rows = zip(times, truth, pred, segment, strict=True)
    path = tmp_path / "by.csv"
    path.write_text("time,y_true,y_pred,country\n" + "".join(f"{t},{y},{p},{s}\n" for t, y, p, s in rows))
    ran = fourrates("check", path, "--by", "country", "--budget", "20000")
    told = "delays count events of the segment that falls, of which one of middling size has 10,000, 480 a day"
    assert told in " ".join(ran.out.split())
    assert "delays count" not in fourrates("check", path, "--budget", "20000").out
    found = json.loads(fourrates("check", path, "--by", "country", "--budget", "20000", "--json").out)
    assert found["per_day"] == pytest.approx(1_440, rel=1e-3)
    for fall in found["falls"]:
        assert fall["days"] == pytest.approx(fall["median"] / 480, rel=1e-3)


@pytest.mark.parametrize("volume", ["40000", "many a day", "40000/fortnight", "0/day"])
def test_a_volume_that_cannot_be(fourrates, volume):
    ran = fourrates("expect", "--volume", volume)
    assert ran.status == 2
    assert "--volume" in ran.err

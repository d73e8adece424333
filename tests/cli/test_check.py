"""``fourrates check``, and ``expect`` with a volume."""

import json

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


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--truth", "nowhere"], "no column 'nowhere'"),
        (["--budget", "often"], "budget 'often' is not written like"),
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


@pytest.mark.parametrize("volume", ["40000", "many a day", "40000/fortnight", "0/day"])
def test_a_volume_that_cannot_be(fourrates, volume):
    ran = fourrates("expect", "--volume", volume)
    assert ran.status == 2
    assert "--volume" in ran.err

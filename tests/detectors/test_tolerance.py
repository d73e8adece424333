"""Tolerance: changes that are too small to matter, and models that go on learning."""

import numpy as np
import pytest

import fourrates as fr

SHIPPED = [[31_500, 3_500], [2_250, 12_750]]  # tnr .9, tpr .85


def events(random, size, tnr, tpr):
    """Events whose recalls may be numbers or one for each event."""
    truth = random.random(size) < 0.3
    return truth, truth == (random.random(size) < np.where(truth, tpr, tnr))


@pytest.mark.parametrize("kind", ["at the edge", "traded", "sine"])
def test_streams_within_the_tolerance_keep_the_budget_whatever_they_do(kind):
    """100 alarms are asked for, so a count of at most 130 fails by chance less than once in 300 runs."""
    random, size, at = np.random.default_rng(4), 200_000, np.arange(200_000)
    away = {
        "at the edge": np.full(size, -0.03),
        "traded": 0.03 * np.where(at // 2_000 % 2, 1, -1),
        "sine": 0.03 * np.sin(at / 700),
    }[kind]
    pairs = events(random, size, 0.9 + away, 0.85 + (away if kind == "at the edge" else -away))
    detector = fr.FourRates(2_000, reference=SHIPPED, tolerance=0.03)
    assert len(detector.update_many(*pairs)) <= 130


def test_a_change_beyond_the_tolerance_is_found_named_and_recovers():
    random = np.random.default_rng(5)
    detector = fr.FourRates(50_000, reference=SHIPPED, tolerance=0.03)
    assert detector.update_many(*events(random, 20_000, 0.88, 0.84)) == []
    (drift,) = detector.update_many(*events(random, 10_000, 0.88, 0.72))
    assert [(change.rate, change.direction) for change in drift.changes] == [("tpr", "down")]
    assert drift.changes[0].before.value == pytest.approx(0.85, abs=1e-3)
    assert detector.rates["tpr"].state == "confirmed"
    detector.update_many(*events(random, 20_000, 0.9, 0.83))  # within the tolerance is normal
    assert [finding.kind for finding in detector.findings] == ["recovery"]
    assert detector.rates["tpr"].baseline.value == pytest.approx(0.85, abs=1e-3)


def test_a_tolerance_by_rate_leaves_the_others_as_they_are():
    for rate, found in (("tpr", {"tnr"}), ("tnr", {"tpr"})):
        detector = fr.FourRates(50_000, reference=SHIPPED, tolerance={rate: 0.1})
        drifts = detector.update_many(*events(np.random.default_rng(6), 30_000, 0.84, 0.78))
        assert {change.rate for drift in drifts for change in drift.changes} == found


def test_no_rate_beyond_one_is_looked_for():
    detector = fr.FourRates(1_000, reference=[[980, 20], [20, 980]], tolerance=0.05)
    assert detector.update_many(*events(np.random.default_rng(7), 50_000, 1.0, 1.0)) == []


def test_a_bank_and_a_saved_state_have_the_same_tolerance():
    truth, pred = events(np.random.default_rng(8), 30_000, 0.84, 0.72)
    detector = fr.FourRates(20_000, reference=SHIPPED, tolerance={"tpr": 0.04})
    drifts = [*detector.update_many(truth[:200], pred[:200])]
    resumed = fr.FourRates.from_bytes(detector.to_bytes())
    drifts += resumed.update_many(truth[200:], pred[200:])
    bank = fr.Bank(fr.FourRates(20_000, tolerance={"tpr": 0.04}), reference={"a": SHIPPED})
    assert [keyed.finding for keyed in bank.update(["a"] * truth.size, truth, pred)] == drifts
    assert drifts


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tolerance": 1.5}, "tolerance 1.5 is not a number from 0 to 1"),
        ({"tolerance": -0.1}, "tolerance -0.1 is not a number from 0 to 1"),
        ({"tolerance": {"ppv": 0.1}}, "'ppv' is not a recall; there are tnr, tpr"),
        ({"learning": True, "sides": "down"}, "falls are alarms, rises are not"),
    ],
)
def test_what_is_no_tolerance_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        fr.FourRates(**given)


def test_a_model_that_learns_may_improve_and_its_new_level_is_what_it_falls_from():
    random = np.random.default_rng(9)
    detector = fr.FourRates(50_000, learning=True)
    learnt = 0.9 - 0.3 * np.exp(-np.arange(40_000) / 8_000)
    assert detector.update_many(*events(random, 40_000, learnt, learnt)) == []
    assert {finding.kind for finding in detector.findings} <= {"shift"}
    drifts = detector.update_many(*events(random, 4_000, 0.9, 0.75))
    assert [(change.rate, change.direction) for drift in drifts for change in drift.changes] == [("tpr", "down")]
    assert fr.FourRates(50_000).update_many(*events(random, 40_000, learnt, learnt))


def test_detect_says_what_is_ignored():
    truth, pred = events(np.random.default_rng(10), 3_000, 0.9, 0.8)
    found = fr.detect((truth, pred), tolerance=0.03)
    assert "changes under 3 points are ignored, as you asked" in found.summary()
    found = fr.detect((truth, pred), tolerance={"tpr": 0.05}, learning=True)
    assert "changes are ignored under 5 points of tpr, improvements become the normal, as you asked" in found.messages
    with pytest.raises(ValueError, match="LFR takes no tolerance"):
        fr.detect((truth, pred), tolerance=0.03, detector=fr.LFR)

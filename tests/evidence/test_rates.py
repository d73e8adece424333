"""Only some recalls may raise an alarm, and the whole budget is theirs."""

import numpy as np
import pytest

import fourrates as fr


def stream(tnr, tpr, size=40_000, seed=3):
    """Both rates are .9 up to the middle."""
    random = np.random.default_rng(seed)
    truth = (random.random(size) < 0.1).astype(int)
    second = np.arange(size) >= size // 2
    right = random.random(size) < np.where(second, np.where(truth == 1, tpr, tnr), 0.9)
    return truth, np.where(right, truth, 1 - truth)


def test_only_the_rates_asked_for_raise_an_alarm():
    detector = fr.FourRates(arl=1_000_000, rates=["tpr"])
    assert not detector.update_many(*stream(tnr=0.7, tpr=0.9))
    assert detector.rates["tnr"].now.value < 0.72  # it is still observed
    [drift] = detector.clone().update_many(*stream(tnr=0.7, tpr=0.7))
    assert [change.rate for change in drift.changes] == ["tpr"]


@pytest.mark.slow
def test_a_fall_of_the_rate_asked_for_is_found_sooner_with_the_whole_budget():
    def at(rates):
        found = [
            fr.FourRates(50_000, rates=rates, mix="ignore").update_many(*stream(0.9, 0.75, seed=s)) for s in range(200)
        ]
        return np.median([drifts[0].at if drifts else np.inf for drifts in found])

    assert at(["tpr"]) < at(None)


@pytest.mark.slow
def test_the_budget_of_one_rate_is_kept():
    """60 streams of two budgets each: 120 false alarms are allowed, and 60 is four deviations below 0.75 of that."""
    random, alarms = np.random.default_rng(8), 0
    for _ in range(60):
        truth = (random.random(40_000) < 0.1).astype(int)
        pred = np.where(random.random(40_000) < 0.9, truth, 1 - truth)
        detector = fr.FourRates(20_000, rates=["tpr"], after="restart")
        alarms += len(detector.update_many(truth, pred))
    assert alarms < 120 + 3 * np.sqrt(120)


@pytest.mark.parametrize("rates", [[], ["ppv"], ["TPR"], "tpr"])
def test_what_is_no_recall_is_refused(rates):
    with pytest.raises(ValueError, match="is not a recall"):
        fr.FourRates(rates=rates)


def test_they_are_part_of_the_state():
    detector = fr.FourRates(50_000, rates=["tpr"])
    detector.update_many(*stream(0.7, 0.9, size=5_000))
    again = fr.FourRates.from_bytes(detector.to_bytes())
    assert again.parameters == detector.parameters
    assert all(change.rate == "tpr" for drift in again.update_many(*stream(0.7, 0.9)) for change in drift.changes)

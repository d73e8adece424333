"""A change of ppv or npv is explained by what moved: recall, mix, or both."""

from dataclasses import replace

import numpy as np
import pytest

import fourrates as fr
from fourrates.evidence.precision import Mixed, moved


def events(random, size, positives, tnr, tpr):
    truth = random.random(size) < positives
    return truth, truth == (random.random(size) < np.where(truth, tpr, tnr))


def learned(count):
    """Detectors that have seen 20,000 stable events, and no false alarm in them; and what draws the events to come."""
    seed = 0
    while count:
        random, detector = np.random.default_rng(seed), fr.FourRates(100_000)
        if not detector.update_many(*events(random, 20_000, 0.3, 0.9, 0.8)):
            count -= 1
            yield random, detector
        seed += 1


def test_the_parts_make_the_change():
    random = np.random.default_rng(0)
    for _ in range(200):
        before, after = (Mixed(*random.uniform(0.05, 0.95, 3)) for _ in range(2))
        for change in moved(before, after):
            assert change.by_recalls + change.by_mix == pytest.approx(change.after - change.before)
            assert change.before == pytest.approx(getattr(before, change.rate))
            assert change.after == pytest.approx(getattr(after, change.rate))


def test_a_precision_without_predictions_is_left_out():
    assert [one.rate for one in moved(Mixed(0.3, 1.0, 0.0), Mixed(0.3, 1.0, 0.5))] == ["npv"]
    assert moved(Mixed(0.3, 0.9, 0.8), Mixed(0.3, 0.9, 0.8)) == ()


def test_a_fall_of_recall_moves_ppv_by_recall():
    named = 0
    for random, detector in learned(20):
        (drift,) = detector.update_many(*events(random, 20_000, 0.3, 0.9, 0.6), first_only=True)
        assert {one.rate for one in drift.precisions} == {"npv", "ppv"}
        named += all(one.because == "recall" for one in drift.precisions)
    assert named >= 19  # the mix is taken to have moved at three standard errors


def test_a_shift_of_the_classes_moves_ppv_by_the_mix():
    detector = fr.FourRates(100_000)
    random = np.random.default_rng(1)
    detector.update_many(*events(random, 20_000, 0.3, 0.9, 0.8))
    detector.update_many(*events(random, 20_000, 0.6, 0.9, 0.8))
    shift = next(finding for finding in detector.findings if finding.kind == "shift")
    ppv = next(one for one in shift.precisions if one.rate == "ppv")
    assert ppv.because == "mix"
    assert ppv.before == pytest.approx(0.3 * 0.8 / (0.3 * 0.8 + 0.7 * 0.1), abs=0.02)
    assert ppv.after > ppv.before + 0.03
    assert str(ppv).endswith("because the class mix changed")


def test_both_at_once_are_mostly_seen_as_both():
    both = 0
    for random, detector in learned(20):
        (drift,) = detector.update_many(*events(random, 20_000, 0.6, 0.9, 0.65), first_only=True)
        both += any(one.because == "both" for one in drift.precisions)
    assert both >= 14  # 93 of 100 streams on other seeds; 14 of 20 is four standard errors below


def test_it_is_told_in_findings_and_part_of_what_makes_drifts_equal():
    random = np.random.default_rng(2)
    parts = [events(random, 20_000, 0.3, 0.9, tpr) for tpr in (0.8, 0.5)]
    pairs = tuple(np.concatenate(side) for side in zip(*parts, strict=True))
    found = fr.detect(pairs, arl=100_000)
    assert ", because recall changed" in found.summary()
    assert found.to_dict()["findings"][0]["precisions"][0]["because"] == "recall"
    drift = found[0]
    assert drift.precisions
    assert drift != replace(drift, precisions=())


def test_more_than_two_classes_have_none():
    random = np.random.default_rng(3)
    truth = random.integers(3, size=20_000)
    pred = np.where(random.random(20_000) < np.where(np.arange(20_000) < 10_000, 0.9, 0.6), truth, 0)
    drifts = fr.FourRates(10_000, labels=(0, 1, 2)).update_many(truth, pred)
    assert drifts
    assert all(drift.precisions == () for drift in drifts)

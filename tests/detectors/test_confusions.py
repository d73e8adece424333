"""Single confusions of more than two classes: found, named, kept and within the budget."""

import numpy as np
import pytest

import fourrates as fr

NAMES = np.array(["cat", "dog", "fox", "owl", "yak"])


def matrix(swap=0.0):
    """Recalls of 0.84, errors spread evenly; then cats and dogs are taken for each other more often."""
    rates = np.full((5, 5), 0.04) + 0.8 * np.eye(5)
    rates[[0, 1], [0, 1]] -= swap
    rates[[0, 1], [1, 0]] += swap
    return rates


def draw(random, size, rates):
    truth = random.integers(5, size=size)
    pred = (random.random(size)[:, None] > rates.cumsum(1)[truth]).sum(1).clip(max=4)
    return NAMES[truth], NAMES[pred]


def first_drift(seed, swap=0.08):
    random = np.random.default_rng(seed)
    detector = fr.FourRates(100_000, labels=NAMES)
    detector.update_many(*draw(random, 10_000, matrix()))
    drifts = detector.update_many(*draw(random, 20_000, matrix(swap)), first_only=True)
    return detector, drifts[0]


def test_the_two_classes_that_are_confused_are_named_with_their_shares():
    # 40 streams: of a share of 0.9 the standard error is 0.05.
    drifts = [first_drift(seed)[1] for seed in range(40)]
    named = [
        {(one.truth, one.pred) for one in drift.confusions} <= {("cat", "dog"), ("dog", "cat")} for drift in drifts
    ]
    assert np.mean(named) >= 0.9
    told = [one for drift in drifts for one in drift.confusions]
    assert len(told) >= 36
    assert np.median([one.before.value for one in told]) == pytest.approx(0.04, abs=0.01)
    assert np.median([one.after.value for one in told]) == pytest.approx(0.12, abs=0.06)  # an alarm exaggerates


def test_a_saved_detector_tells_the_same_confusion():
    detector, drift = first_drift(3)
    again = fr.FourRates.from_bytes(detector.to_bytes())
    assert again.open == detector.open
    assert str(drift).endswith(str(drift.confusions[0]))
    assert again.to_bytes() == detector.to_bytes()


def test_a_batch_and_single_events_give_the_same_confusions():
    truth, pred = draw(np.random.default_rng(5), 6_000, matrix())
    later = draw(np.random.default_rng(6), 4_000, matrix(0.15))
    truth, pred = np.append(truth, later[0]), np.append(pred, later[1])
    batch, single = fr.FourRates(5_000, labels=NAMES), fr.FourRates(5_000, labels=NAMES)
    found = [drift for pair in zip(truth, pred, strict=True) if (drift := single.update(*pair)) is not None]
    assert list(batch.update_many(truth, pred)) == found
    assert batch.to_bytes() == single.to_bytes()
    assert any(drift.confusions for drift in found)


def test_confusions_stay_within_the_budget():
    # 160 alarms are asked for; at most three standard errors more, 198.
    random, alarms = np.random.default_rng(8), 0
    for _ in range(20):
        alarms += len(fr.FourRates(2_500, labels=NAMES).update_many(*draw(random, 20_000, matrix())))
    assert 60 <= alarms <= 198


def test_with_more_than_fifty_classes_single_confusions_are_not_watched():
    sizes = [fr.FourRates(labels=range(classes)).rules.watch_confusions for classes in (2, 3, 50, 51)]
    assert sizes == [False, True, True, False]

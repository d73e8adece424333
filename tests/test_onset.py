"""When a drift started: against brute force, against the truth, and over states that were saved."""

import math

import numpy as np
import pytest

import fourrates as fr
from fourrates.onset import Share, locate
from fourrates.streams import SCENARIOS


def log_likelihood(bits):
    ones, n = sum(bits), len(bits)
    return sum(count * math.log(count / n) for count in (ones, n - ones) if count)


def test_the_likeliest_mark_is_that_of_brute_force():
    random = np.random.default_rng(1)
    for _ in range(50):
        n = int(random.integers(20, 60))
        change = int(random.integers(5, n - 5))
        bits = (random.random(n) < np.where(np.arange(n) < change, 0.9, 0.4)).astype(int)
        marks = np.arange(2, n, 3)
        ones = np.cumsum(bits)[marks - 1]
        best = [log_likelihood(bits[:mark].tolist()) + log_likelihood(bits[mark:].tolist()) for mark in marks]
        found = locate(marks[:, None], ones[:, None], [[n], [bits.sum()]])
        assert best[found.mark] == pytest.approx(max(best))
        # As likely as 90 % asks for: the top less -log(1 - sqrt(0.9)).
        near = [i for i, one in enumerate(best) if one >= max(best) + math.log(1 - math.sqrt(0.9)) - 1e-9]
        assert (found.first, found.last) == (near[0], near[-1])


@pytest.mark.parametrize("classes", [2, 3])
def test_the_marks_hold_the_counts_of_their_moments(classes):
    random = np.random.default_rng(2)
    truth, guess = random.integers(0, classes, (2, 5_003))
    detector = fr.LFR(detect=1e-9, labels=range(classes))
    assert detector.update_many(truth, guess) == []
    marks = detector._marks()
    for events, n, ones in marks:
        assert n == [*np.bincount(truth[:events], minlength=classes), *np.bincount(guess[:events], minlength=classes)]
        assert ones == [((truth == c) & (guess == c))[:events].sum() for c in range(classes)]
    ages = 5_003 - np.array([events for events, *_ in marks])
    assert ages[-1] < 4 * classes
    # No two neighbours are further apart than an eighth of their age, or one mark's distance.
    assert (np.diff(-ages) <= np.maximum(ages[:-1] / 8 + 4 * classes, 4 * classes)).all()


def test_what_is_remembered_does_not_grow_with_the_stream():
    detector = fr.LFR(detect=1e-9)
    pairs = np.random.default_rng(3).integers(0, 2, (2, 300_000))
    detector.update_many(*pairs[:, :100_000])
    size, marks = len(detector.to_bytes()), len(detector._marks())
    assert size < 4_000
    detector.update_many(*pairs)
    assert len(detector.to_bytes()) < 1.3 * size  # it is packed
    assert len(detector._marks()) <= marks + 16


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_start_is_near_the_truth_and_its_interval_holds_it(name):
    detector = fr.LFR(arl=37_000)
    errors, since, held = [], [], []
    for seed in range(150):
        detector.reset()
        change = 4_990 + seed % 17
        drifts = detector.update_many(*SCENARIOS[name].stream(seed, change=change))
        drift = next((one for one in drifts if one.at >= change), None)
        if drift is None:
            continue
        errors.append(abs(drift.started - change))
        since.append(abs(drift.since - change))
        first, last = drift.started_between
        assert first <= drift.started <= last <= drift.at
        held.append(first <= change <= last)
    assert np.median(errors) < np.median(since) / 2
    # 90 % or more, less four standard errors.
    assert np.mean(held) >= 0.9 - 4 * math.sqrt(0.09 / len(held))


def test_a_moved_rate_has_its_values_before_and_after():
    y_true, y_pred = SCENARIOS["Imbalance2"].stream(seed=1)
    drift = fr.LFR().update_many(y_true, y_pred, first_only=True)[0]
    (change,) = [one for one in drift.changes if one.rate == "tpr"]
    for share, part in (
        (change.before, slice(drift.started)),
        (change.after, slice(drift.started, drift.at + 1)),
    ):
        positives = y_true[part] == 1
        assert share.n == positives.sum()
        assert share.value == pytest.approx((y_pred[part] == 1)[positives].mean())
        assert share.lower < share.value < share.upper
    assert change.before.lower < 0.75 < change.before.upper
    assert change.after.upper < change.before.lower


def test_the_interval_of_a_share_holds_the_rate_as_often_as_it_says():
    random = np.random.default_rng(4)
    for n, rate in ((20, 0.5), (60, 0.8), (200, 0.97)):
        shares = [Share.of(int(ones), n) for ones in random.binomial(n, rate, 2_000)]
        held = np.mean([share.lower <= rate <= share.upper for share in shares])
        # Wilson's interval swings about its level by up to 0.05 at such n.
        assert abs(held - 0.9) < 0.05 + 4 * math.sqrt(0.09 / 2_000)
    assert math.isnan(Share.of(0, 0).value)


def test_a_restart_counts_from_its_own_beginning_and_a_saved_state_keeps_the_past():
    streams = [SCENARIOS["Imbalance2"].stream(seed) for seed in (1, 2)]
    y_true, y_pred = (np.concatenate(parts) for parts in zip(*streams, strict=True))
    whole = fr.LFR().update_many(y_true, y_pred)
    assert all(abs(drift.started - round(drift.started, -3)) < 60 for drift in whole)
    cut = 5_013
    detector = fr.LFR()
    found = list(detector.update_many(y_true[:cut], y_pred[:cut]))
    detector = fr.LFR.from_bytes(detector.to_bytes())
    found += detector.update_many(y_true[cut:], y_pred[cut:])
    for one, other in zip(found, whole, strict=True):
        assert (one.started, one.started_between) == (other.started, other.started_between)
        assert [(c.before, c.after) for c in one.changes] == [(c.before, c.after) for c in other.changes]


def test_other_detectors_and_very_many_classes_have_no_start():
    y_true, y_pred = SCENARIOS["Imbalance3"].stream(seed=1)
    assert all(drift.started is None for drift in fr.DDM().update_many(y_true, y_pred))
    drifts = fr.LFR(labels=range(65)).update_many(y_true, y_pred)
    assert drifts
    assert all(drift.started is None for drift in drifts)

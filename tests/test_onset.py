"""When a drift started: against brute force, against the truth, and over states that were saved."""

import math

import numpy as np
import pytest

import fourrates as fr
from fourrates.onset import PRIOR, Share, locate
from fourrates.streams import SCENARIOS


def best_log_likelihood(bits):
    ones, n = sum(bits), len(bits)
    return sum(count * math.log(count / n) for count in (ones, n - ones) if count)


def mean_likelihood(bits, old):
    """The likelihood averaged over new values, each as likely as so many observations at the old one make it."""
    ones, n = sum(bits), len(bits)
    grid = (np.arange(5_000) + 0.5) / 5_000
    found = 0.0
    for known, probability in PRIOR.items():
        prior = grid ** (known * old - 0.5) * (1 - grid) ** (known * (1 - old) - 0.5)
        found += probability * (grid**ones * (1 - grid) ** (n - ones) * prior).sum() / prior.sum()
    return found


def test_the_likeliest_moment_and_those_nearly_as_likely_are_those_of_brute_force():
    random = np.random.default_rng(1)
    for _ in range(20):
        n = int(random.integers(20, 60))
        change = int(random.integers(5, n - 5))
        bits = (random.random(n) < np.where(np.arange(n) < change, 0.9, 0.4)).astype(int)
        moments = np.arange(1, n)
        ones = np.cumsum(bits)[moments - 1]
        likelihood = np.array(
            [
                best_log_likelihood(bits[:t].tolist())
                + math.log(mean_likelihood(bits[t:].tolist(), (bits[:t].sum() + 0.5) / (t + 1)))
                for t in moments
            ]
        )
        found = locate(moments, moments[:, None], ones[:, None], [[n], [bits.sum()]])
        close = 0.02  # the grid's error
        assert likelihood[found.moment] == pytest.approx(likelihood.max(), abs=close)
        assert found.first <= moments[found.moment] <= found.last
        # At 90 % no moment less than a tenth as likely as the top is near; a large change asks for more.
        edge = min(likelihood[found.first - 1], likelihood[found.last - 1])
        assert edge > likelihood.max() - math.log(10) - close
        outside = np.concatenate([likelihood[: found.first - 1], likelihood[found.last :]])
        assert (outside < edge + close).all()


def test_ends_lie_between_moments_where_these_are_sparse():
    bits = np.random.default_rng(7).random(1_200) < np.where(np.arange(1_200) < 800, 0.8, 0.6)
    dense = np.arange(1, 1_200)
    sparse = dense[39::40]
    whole, part = (
        locate(moments, moments[:, None], np.cumsum(bits)[moments - 1][:, None], [[1_200], [bits.sum()]])
        for moments in (dense, sparse)
    )
    for one, other in ((sparse[part.moment], dense[whole.moment]), (part.first, whole.first), (part.last, whole.last)):
        assert abs(one - other) < 40
    assert {part.first, part.last}.isdisjoint(sparse.tolist())


@pytest.mark.parametrize("classes", [2, 3])
def test_the_past_holds_the_counts_of_its_moments(classes):
    random = np.random.default_rng(2)
    truth, guess = random.integers(0, classes, (2, 9_003))
    detector = fr.LFR(detect=1e-9, labels=range(classes))
    assert detector.update_many(truth, guess) == []
    past = detector._past()
    events = past[:, :classes].sum(1)
    for moment, row in zip(events, past.tolist(), strict=True):
        seen = truth[:moment], guess[:moment], truth[:moment][truth[:moment] == guess[:moment]]
        assert row == [count for labels in seen for count in np.bincount(labels, minlength=classes)]
    ages = 9_003 - events
    assert ages[-512:].tolist() == list(range(512, 0, -1))  # the latest one by one
    # Of the others no two are further apart than a sixteenth of their age, or two marks.
    assert (np.diff(-ages) <= np.maximum(ages[:-1] / 16, 16 * classes)).all()


def test_a_short_stream_is_remembered_from_its_first_event_on():
    detector = fr.LFR(detect=1e-9)
    assert len(detector._past()) == 0
    for size in range(1, 600):
        detector.update(1, size % 3 == 0)
        events = detector._past()[:, :2].sum(1)
        assert events[-1:].tolist() == ([size - 1] if size > 1 else [])  # a change has an event before it
        assert (np.diff(events) <= 32).all()  # two marks


def test_what_is_remembered_does_not_depend_on_the_size_of_batches():
    y_true, y_pred = np.random.default_rng(5).integers(0, 2, (2, 4_000))
    whole, single, batches = (fr.LFR(detect=1e-9) for _ in range(3))
    whole.update_many(y_true, y_pred)
    for pair in zip(y_true.tolist(), y_pred.tolist(), strict=True):
        single.update(*pair)
    for part in np.split(np.arange(4_000), [3, 700, 1_300, 3_990]):
        batches.update_many(y_true[part], y_pred[part])
    assert whole.to_bytes() == single.to_bytes() == batches.to_bytes()
    assert (whole._past() == single._past()).all()


def test_what_is_remembered_does_not_grow_with_the_stream():
    detector = fr.LFR(detect=1e-9)
    pairs = np.random.default_rng(3).integers(0, 2, (2, 300_000))
    detector.update_many(*pairs[:, :100_000])
    size, moments = len(detector.to_bytes()), len(detector._past())
    assert size < 2_000
    detector.update_many(*pairs)
    assert len(detector.to_bytes()) < 1.3 * size  # it is packed
    assert len(detector._past()) <= moments + 32


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
    # 90 %, within four standard errors.
    assert abs(np.mean(held) - 0.9) <= 4 * math.sqrt(0.09 / len(held))


@pytest.mark.parametrize("after", [0.1, 0.5, 0.9])
def test_the_interval_holds_a_change_of_known_place_as_often_as_it_says_however_large(after):
    random = np.random.default_rng(6)
    held, size, change = [], 900, 700
    for _ in range(600):
        bits = random.random(size) < np.where(np.arange(size) < change, 0.97 if after < 0.9 else 0.6, after)
        moments = np.arange(1, size)
        found = locate(moments, moments[:, None], np.cumsum(bits)[:-1, None], [[size], [bits.sum()]])
        held.append(found.first <= change <= found.last)
    # Whole events hold a little more; four standard errors.
    assert abs(np.mean(held) - 0.9) <= 0.02 + 4 * math.sqrt(0.09 / len(held))


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

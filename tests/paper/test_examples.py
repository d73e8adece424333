"""Examples that are generated, and the bootstrap of them."""

import math

import numpy as np
import pytest

from paper.examples import Examples, permuted
from paper.hyperplane import hyperplane
from paper.sea import sea


def concepts(examples):
    return np.split(np.arange(len(examples.labels)), examples.changes)


def close(share, chance, n):
    """Whether a share of n lies within five standard errors of its chance; one in a million does not."""
    return abs(share - chance) <= 5 * math.sqrt(chance * (1 - chance) / n)


# ---------------------------------------------------------------------------------------------- sea


def test_the_second_and_third_feature_of_sea_decide_but_for_the_noise():
    examples = sea(seed=1)
    assert examples.features.shape == (60_000, 3)
    for part, threshold in zip(concepts(examples), (8, 9, 7, 9), strict=True):
        above = examples.features[part, 1:].sum(1) > threshold
        assert close((above == examples.labels[part]).mean(), 0.9, part.size)


def test_sea_without_noise_is_what_its_thresholds_say():
    examples = sea(seed=2, length=1001, thresholds=(5, 15), noise=0)
    assert examples.changes == (500,)
    threshold = np.r_[np.full(500, 5), np.full(501, 15)]
    assert np.array_equal(examples.labels, examples.features[:, 1:].sum(1) > threshold)


def test_the_features_of_sea_fill_the_cube():
    features = sea(seed=3).features
    assert 0 <= features.min() <= features.max() <= 10
    for column in features.T:
        # A tenth of them in each tenth.
        assert all(close(share, 0.1, 60_000) for share in np.histogram(column, 10, (0, 10))[0] / 60_000)


def test_one_threshold_is_a_stream_without_changes():
    assert sea(seed=1, length=10, thresholds=[8]).changes == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thresholds": []}, "0 thresholds for 60000 examples"),
        ({"length": 3}, "4 thresholds for 3 examples"),
        ({"noise": 1.5}, r"noise 1.5 is not in \[0, 1\]"),
    ],
)
def test_a_sea_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sea(seed=1, **options)


# ---------------------------------------------------------------------------------------------- hyperplane


def fitted(examples, part):
    centred, side = examples.features[part] - 0.5, 2 * examples.labels[part] - 1
    plane = np.linalg.lstsq(centred, side, rcond=None)[0]
    return plane / np.linalg.norm(plane)


def test_half_of_the_examples_lie_on_each_side_of_the_hyperplane():
    examples = hyperplane(seed=1)
    assert examples.features.shape == (90_000, 10)
    assert examples.changes == tuple(range(10_000, 90_000, 10_000))
    assert all(close(examples.labels[part].mean(), 0.5, part.size) for part in concepts(examples))


def test_a_standing_plane_parts_the_classes_but_for_the_noise():
    # Least squares finds the direction of the plane up to a few degrees; without noise it is right but near the plane.
    examples = hyperplane(seed=1, length=40_000, changes=[20_000], speed=0, noise=0)
    for part in concepts(examples):
        told = (examples.features[part] - 0.5) @ fitted(examples, part) > 0
        assert (told == examples.labels[part]).mean() > 0.97
    noisy = hyperplane(seed=1, length=40_000, changes=[20_000], speed=0, noise=0.2)
    assert close((noisy.labels != examples.labels).mean(), 0.2, 40_000)


def test_a_change_is_a_new_plane():
    examples = hyperplane(seed=1, length=40_000, changes=[20_000], speed=0, noise=0)
    first, second = concepts(examples)
    # Two independent weights of [0, 1]^10 have a cosine of 3/4 in the mean; halves of one concept nearly 1.
    assert fitted(examples, first[:10_000]) @ fitted(examples, first[10_000:]) > 0.99
    assert fitted(examples, first) @ fitted(examples, second) < 0.95


def test_only_the_drifting_weights_move_and_the_class_follows_a_plain_loop():
    length, drifting, speed = 3000, 2, 0.001
    examples = hyperplane(
        seed=5, length=length, changes=[], features=4, drifting=drifting, speed=speed, turns=0.01, noise=0
    )
    random = np.random.default_rng(5)
    points, weights = random.random((length, 4)), random.random(4)
    turn, way = random.random((length, drifting)) < 0.01, random.choice([-1.0, 1.0], drifting)
    for at in range(length):
        way = np.where(turn[at], -way, way)
        weights[:drifting] += speed * way
        margin = points[at] @ weights - weights.sum() / 2
        # Sums of thousands of steps in another order: roundings of 1e-13 at most.
        if abs(margin) > 1e-12:
            assert examples.labels[at] == (margin > 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": [200, 100]}, r"changes \(200, 100\) do not rise between 0 and 1000"),
        ({"changes": [1000]}, r"changes \(1000,\) do not rise"),
        ({"changes": [0]}, r"changes \(0,\) do not rise"),
        ({"drifting": 11}, "11 drifting weights of 10 features"),
        ({"turns": -0.1}, r"turns -0.1 is not in \[0, 1\]"),
        ({"noise": 2}, r"noise 2 is not in \[0, 1\]"),
    ],
)
def test_a_hyperplane_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        hyperplane(1, length=1000, **options)


@pytest.mark.parametrize("make", [sea, hyperplane])
def test_one_seed_gives_one_stream(make):
    one, same, other = make(seed=1), make(seed=1), make(seed=2)
    assert np.array_equal(one.features, same.features)
    assert np.array_equal(one.labels, same.labels)
    assert not np.array_equal(one.features, other.features)


# ---------------------------------------------------------------------------------------------- bootstrap


def numbered(length, changes):
    return Examples(np.arange(length, dtype=float)[:, None], np.arange(length), ("0",), changes)


def test_examples_are_shuffled_within_their_concept_and_keep_their_label():
    copy = permuted(numbered(100, (30, 80)), seed=1)
    assert np.array_equal(copy.features[:, 0], copy.labels)
    for low, high in ((0, 30), (30, 80), (80, 100)):
        assert sorted(copy.labels[low:high]) == list(range(low, high))
        assert copy.labels[low:high].tolist() != list(range(low, high))
    assert copy.changes == (30, 80)


@pytest.mark.slow
def test_every_order_is_as_likely():
    # Six orders of a concept of three, 6,000 seeds: 1,000 each, standard error 29; five of them.
    orders = [tuple(permuted(numbered(5, (2,)), seed).labels[2:].tolist()) for seed in range(6000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert counts.size == 6
    assert (abs(counts - 1000) <= 5 * math.sqrt(6000 * (1 / 6) * (5 / 6))).all()


def test_without_changes_all_is_one_concept_and_the_original_stays():
    examples = numbered(50, ())
    assert sorted(permuted(examples, seed=1).labels) == list(range(50))
    assert examples.labels.tolist() == list(range(50))

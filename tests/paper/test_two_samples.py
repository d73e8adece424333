"""Density, rank, margin and error: levels, what each can see, and what is refused."""

import numpy as np
import pytest

from paper.two_samples import DensityTest, ErrorTest, MarginTest, RankTest
from paper.two_samples.density import bandwidth

TESTS = [DensityTest, RankTest, MarginTest, ErrorTest]
every_test = pytest.mark.parametrize("kind", TESTS)
linear_test = pytest.mark.parametrize("kind", [MarginTest, ErrorTest])


def quick(kind, **settings):
    return kind(**settings) if kind is RankTest else kind(permutations=99, **settings)


@pytest.mark.slow
@every_test
@pytest.mark.parametrize("size", [2, 30])
def test_the_level_is_kept_where_nothing_changes(kind, size):
    # A true level of at most 0.2 in 100 comparisons: 20 on average, with a deviation of 4; three of them above.
    found = 0
    for seed in range(100):
        random = np.random.default_rng((size, seed))
        X = random.normal(size=(100, size))
        y = X[:, 0] + random.normal(size=100) > 0
        found += quick(kind, seed=seed).fit(X[:50], y[:50]).test(X[50:], y[50:]).p_value <= 0.2
    assert 4 <= found <= 32


@every_test
def test_a_change_of_the_features_is_found(kind):
    random = np.random.default_rng(1)
    test = quick(kind).fit(random.normal(size=(200, 2)))
    assert test.test(random.normal(1.5, size=(200, 2))).p_value <= 0.02


@every_test
def test_a_change_of_the_concept_alone_is_found_with_labels(kind):
    random = np.random.default_rng(2)
    old, new = random.normal(size=(2, 300, 2))
    assert quick(kind).fit(old, old[:, 0] > 0).test(new, new[:, 0] < 0).p_value <= 0.02
    assert quick(kind).fit(old).test(new).p_value > 0.02


@pytest.mark.parametrize("kind", [DensityTest, RankTest])
@pytest.mark.parametrize("spread", [0.6, 1.6])
def test_density_sees_a_spread_that_grows_or_shrinks(kind, spread):
    # One way alone does not: rows inside the old distribution are as likely as ever.
    random = np.random.default_rng(3)
    test = quick(kind).fit(random.normal(size=(300, 2)))
    assert test.test(random.normal(scale=spread, size=(300, 2))).p_value <= 0.02


@linear_test
def test_many_features_without_a_change_hide_little(kind):
    random = np.random.default_rng(4)
    old, new = random.normal(size=(2, 200, 200))
    new[:, 7] += 1
    assert quick(kind).fit(old).test(new).p_value <= 0.02


@every_test
def test_more_than_two_classes_and_labels_that_are_words_will_do(kind):
    random = np.random.default_rng(5)
    old, new = random.normal(size=(2, 300, 2))
    words = np.array(["low", "middle", "high"])
    labels = [words[np.digitize(part[:, 0], [-0.4, 0.4])] for part in (old, -new)]
    assert quick(kind).fit(old, labels[0]).test(new, labels[1]).p_value <= 0.02


@every_test
def test_the_scale_of_a_feature_does_not_matter(kind):
    random = np.random.default_rng(6)
    old, new = random.normal(size=(2, 100, 3))
    p_value = quick(kind).fit(old).test(new).p_value
    for factor in (1024.0, 1 / 4096):  # powers of two, so that no digit is lost
        assert quick(kind).fit(factor * old).test(factor * new).p_value == pytest.approx(p_value)


@every_test
def test_windows_need_not_be_of_the_same_length(kind):
    random = np.random.default_rng(7)
    test = quick(kind).fit(random.normal(size=(400, 2)))
    assert test.test(random.normal(2, size=(40, 2))).p_value <= 0.02


def test_a_machine_that_finds_no_difference_still_has_a_rule():
    # The same rows in both windows: no rule is right more often than by chance, and none is an error.
    rows = np.random.default_rng(8).normal(size=(50, 2))
    assert MarginTest().fit(rows).test(rows).p_value > 0.05
    assert ErrorTest().fit(rows).test(rows).p_value > 0.05


def test_the_bandwidth_has_the_greatest_leave_one_out_likelihood():
    points = np.random.default_rng(9).standard_t(4, size=(60, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)

    def likelihood(width):
        kernels = np.exp(-squares / (2 * width**2)) / width**2
        np.fill_diagonal(kernels, 0)
        return np.log(kernels.sum(axis=1)).sum()

    widths = np.geomspace(0.1, 3, 400)
    best = widths[np.argmax([likelihood(width) for width in widths])]
    assert bandwidth(points) == pytest.approx(best, rel=0.02)


def test_rows_that_are_repeated_do_not_make_the_bandwidth_nothing():
    assert bandwidth(np.repeat(np.eye(3), 5, axis=0)) == pytest.approx(1e-3)


def test_features_of_a_few_values_can_be_compared():
    random = np.random.default_rng(10)
    old, new = random.integers(0, 2, size=(2, 200, 5))
    new[:, 0] |= random.integers(0, 2, 200)
    for kind in TESTS:
        assert 0 < quick(kind).fit(old).test(new).p_value <= 1


# What is rejected --------------------------------------------------------------------------------------------

ROWS = np.random.default_rng(11).normal(size=(60, 3))


@pytest.mark.parametrize(
    ("X", "y", "error"),
    [
        (ROWS[:19], None, "X has 19 rows; this test needs at least 20"),
        (ROWS[:, :2], None, "X has 2 features; the reference has 3"),
        (ROWS, np.zeros(60), "labels are given always or never"),
    ],
)
def test_samples_that_cannot_be_compared_are_rejected(X, y, error):
    test = RankTest().fit(ROWS)
    with pytest.raises(ValueError, match=error):
        test.test(X, y)
    with pytest.raises(ValueError, match="there is no reference yet: call fit first"):
        RankTest().test(X, y)


def test_a_feature_may_be_constant_in_the_reference_only():
    flat = ROWS.copy()
    flat[:, 1] = 4
    with pytest.raises(ValueError, match="X is constant: feature 1 is always 4"):
        RankTest().fit(flat).test(flat)
    RankTest().fit(flat).test(ROWS)


@linear_test
def test_settings_that_make_no_sense_are_rejected(kind):
    with pytest.raises(ValueError, match="threshold 0"):
        kind(threshold=0)
    with pytest.raises(ValueError, match="permutations 0"):
        kind(permutations=0).fit(ROWS)

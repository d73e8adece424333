"""E-divisive: what it finds, and when."""

import numpy as np
import pytest

from fourrates.distribution import EDivisive


def test_the_second_part_may_end_before_the_segment_does():
    # 60 rows, then 20 far away, then 60 like the first: against all that follows the middle would be diluted.
    random = np.random.default_rng(1)
    points = np.concatenate([random.normal(size=60), random.normal(5, size=20), random.normal(size=60)])[:, None]
    assert EDivisive(min_size=10).fit(points).change_points_.tolist() == [60, 80]


def test_changes_of_mean_and_spread_are_found_where_they_are():
    random = np.random.default_rng(1)
    parts = [
        random.normal(size=(100, 2)),
        random.normal(2, size=(100, 2)),
        random.normal(2, 4, size=(100, 2)),
    ]
    found = EDivisive(seed=2).fit(np.concatenate(parts))
    assert len(found.change_points_) == 2
    assert np.abs(found.change_points_ - [100, 200]).max() <= 5
    assert (found.p_values_ <= 0.05).all()
    assert found.rejected_p_value_ > 0.05


def test_labels_make_a_change_of_the_concept_visible():
    random = np.random.default_rng(2)
    X = random.normal(size=(400, 2))
    y = np.where(np.arange(400) < 200, X[:, 0] > 0, X[:, 0] < 0)
    assert EDivisive().fit(X).change_points_.size == 0
    assert np.abs(EDivisive().fit(X, y).change_points_ - 200).max() <= 5


def test_p_values_are_those_of_permutations_within_segments():
    # With the largest possible statistic no permutation is as good: 1 / (R + 1).
    rows = np.concatenate([np.random.default_rng(5).normal(size=50), np.random.default_rng(6).normal(50, size=50)])
    assert EDivisive(permutations=99).fit(rows).p_values_.tolist() == [0.01]
    assert EDivisive(permutations=19).fit(rows).p_values_.tolist() == [0.05]
    assert EDivisive(permutations=18).fit(rows).change_points_.size == 0  # 1 / 19 is above the level


def test_the_level_is_kept_where_nothing_changes():
    # A true level of 0.1: 300 streams have 30 on average, with a deviation of 5.2; within 3 of them.
    found = 0
    for seed in range(300):
        rows = np.random.default_rng(seed).normal(size=(40, 2))
        found += EDivisive(min_size=10, permutations=49, level=0.1, seed=seed).fit(rows).change_points_.size > 0
    assert 14 <= found <= 46


def test_the_same_seed_gives_the_same_result():
    rows = np.random.default_rng(7).normal(size=80)
    one, other = EDivisive(seed=1).fit(rows), EDivisive(seed=1).fit(rows)
    assert one.rejected_p_value_ == other.rejected_p_value_


def test_segments_too_short_for_another_split_end_the_search():
    rows = np.concatenate([np.zeros(30), np.ones(30)]) + 1e-3 * np.random.default_rng(8).normal(size=60)
    found = EDivisive(min_size=30).fit(rows)
    assert found.change_points_.tolist() == [30]
    assert found.rejected_p_value_ is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"alpha": 0}, r"alpha 0 is not in \(0, 2\]"),
        ({"alpha": 2.5}, "alpha 2.5"),
        ({"min_size": 1}, "min_size 1"),
        ({"permutations": 0}, "permutations 0"),
        ({"level": 0}, "level 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        EDivisive(**settings).fit(np.arange(100.0))


def test_fewer_rows_than_two_segments_are_refused():
    with pytest.raises(ValueError, match="X has 59 rows; a split needs two segments of min_size 30, 60 rows"):
        EDivisive().fit(np.arange(59.0))


ROWS = np.random.default_rng(11).normal(size=(60, 3))


def changed(row, column, value):
    rows = ROWS.copy()
    rows[row, column] = value
    return rows


@pytest.mark.parametrize(
    ("X", "y", "error"),
    [
        (changed(17, 2, np.nan), None, "X is nan at row 17, feature 2; 1 values are not finite"),
        (changed(5, 0, np.inf), None, "X is inf at row 5, feature 0"),
        (np.zeros((3, 3, 3)), None, r"X has the shape \(3, 3, 3\)"),
        ([["a", "b", "c"]] * 60, None, "X is not a table of numbers"),
        (ROWS * [1, 0, 1], None, "X is constant: feature 1 is always 0; leave it out"),
        (ROWS, np.ones(60, int), "y has one class only: 1; leave y out"),
        (ROWS, np.zeros(59), r"y has the shape \(59,\); X has 60 rows"),
        (ROWS, np.where(np.arange(60) == 3, np.nan, 1.0), "y is nan at row 3"),
    ],
)
def test_bad_features_and_labels_are_named_with_their_place(X, y, error):
    with pytest.raises(ValueError, match=error):
        EDivisive().fit(X, y)


# What R's ecp 3.1.6 found, e.divisive(x, sig.lvl = 0.05, R = 199, min.size = 30, alpha = 1), counted from 0.
OF_ECP = [
    [100, 200],
    [100, 200],
    [100, 200],
    [101],
    [100, 200],
    [100, 164, 200],
    [100, 200],
    [104, 200],
    [100, 200],
    [100, 200],
    [100, 200],
    [111, 195],
]


@pytest.mark.slow
def test_the_changes_are_those_of_ecp():
    random = np.random.default_rng(42)
    for i, expected in enumerate(OF_ECP):
        mean, deviation = [(1, 1), (0, 5), (2, 1), (0, 2)][i % 4]
        parts = [random.normal(size=(100, 2)), random.normal(mean, deviation, (100, 2)), random.normal(size=(100, 2))]
        found = EDivisive(permutations=199, min_size=30, level=0.05, seed=i).fit(np.concatenate(parts))
        assert found.change_points_.tolist() == expected
